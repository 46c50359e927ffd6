"""What is attacked, one protected part of a release, and what an attempt on it is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trailveil.checks.attacks.contract import Attack, OnGrid
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.movement import Movement
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop
from trailveil.release.request import HAS_THE_REST, STRANGER
from trailveil.traces.streets.network import Network

TRUE_ACCURACY = 10.0
"""How well (metres) somebody knows true places."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scene:
    """One part of a release, at the fixes that have to do with it, in metres and seconds.

    fixes: (n, 2) as recorded. file: (m, 2) of the released rows of the file, or None. grid: that
    they were recorded on. floors: m/s, at least how fast the person moves by what is promised of
    noise, and of a cut. knowledge: of the adversaries that the noise was made against.
    """

    crop: Crop
    number: int
    kernel: Kernel
    mechanism: Mechanism
    fixes: FloatArray
    file: FloatArray | None
    tracks: tuple[FloatArray, ...]
    grid: OnGrid | None = None
    exposures: tuple[Exposure, ...] = ()
    floors: tuple[float, float] = (1.0, 1.0)
    uncertain: float = 0.0
    knowledge: tuple[Knowledge, ...] = ()
    streets: Network | None = None

    @property
    def part(self) -> int:
        """Its number among all parts."""
        return self.crop.parts[self.number]

    @property
    def times(self) -> FloatArray:
        """Of the fixes (n,)."""
        return self.crop.prior.times

    @property
    def prior(self) -> Prior:
        """How people move, at these times."""
        return Prior(self.kernel, self.times)

    @property
    def span(self) -> tuple[float, float]:
        """From when to when it is."""
        return self.crop.spans[self.number]

    def slowest(self, adversary: str) -> Kernel:
        """The prior of somebody who moves as slowly as is reckoned with against an adversary."""
        floor = self.floors[adversary == HAS_THE_REST]
        if adversary not in (STRANGER, HAS_THE_REST):
            movement = self._knowledge_of(adversary).movement
            floor = movement.speed if isinstance(movement, Movement) else floor
        return at_speed(self.kernel, floor) or self.kernel

    def knows_places(self, adversary: str) -> bool:
        """Whether an adversary by that name knows any true place."""
        if adversary in (STRANGER, HAS_THE_REST):
            return False
        of = self._knowledge_of(adversary)
        return of.place is not None or of.path is not None

    def _knowledge_of(self, adversary: str) -> Knowledge:
        return next(each for each in self.knowledge if each.name == adversary)

    @property
    def at(self) -> Secret:
        """The place in the middle of the part."""
        return Secret.at(sum(self.span) / 2)

    @property
    def stood_still(self) -> Adversary:
        """Somebody who sees that the person stood still in the part, and a little around it."""
        begin, end = self.span
        around = (begin - self.uncertain, end + self.uncertain)
        return Adversary.sees_stillness([around]) if around[0] < around[1] else PLAIN

    @property
    def least(self) -> float:
        """Metres per coordinate that a stranger is left with."""
        return min(exposure.posterior for exposure in self.exposures if exposure.prior == np.inf)

    def known_to(self, adversary: str) -> SideInformation:
        """What an adversary by that name knows of the path: as much as the noise reckons with."""
        of = self._knowledge_of(adversary)
        outward = of.path if of.place is None else of.place
        if outward is None:
            return NOTHING_KNOWN
        away, (begin, end) = self.uncertain + outward, self.span
        far = self.times[(self.times <= begin - away) | (self.times >= end + away)]
        if of.place is not None and far.size:
            far = far[[np.argmin(np.maximum(begin - far, far - end))]]
        return SideInformation(far, TRUE_ACCURACY) if far.size else NOTHING_KNOWN

    @property
    def middle(self) -> Secret:
        """The mean of a stay, or the place at a time."""
        return self._middle_of(self.span)

    @property
    def others(self) -> tuple[Secret, ...]:
        """The same of the other parts that are near."""
        spans = self.crop.spans
        return tuple(self._middle_of(span) for i, span in enumerate(spans) if i != self.number)

    def _middle_of(self, span: tuple[float, float]) -> Secret:
        inside = self.times[(self.times >= span[0]) & (self.times <= span[1])]
        return Secret.mean(inside) if inside.size > 1 else Secret.at(sum(span) / 2)

    def place(self, time: float | None) -> Secret:
        """The place of a judgement, by its time since the first fix of the recording."""
        return self.middle if time is None else Secret.at(time - self.crop.start)

    def truth(self, secret: Secret, *, still: bool) -> FloatArray:
        """Where the secret was (2,), as recorded: of who stood still, the mean."""
        of = self.middle if still else secret
        at = [np.interp(of.times, self.times, axis) for axis in self.fixes.T]
        return np.asarray(of.weights[0] @ np.transpose(at))


@dataclass(frozen=True, slots=True)
class Trial:
    """An attack by somebody on one secret, and the deviation that is promised of it, if any.

    besides: the other parts near it, for an attack that takes all of them for one place. exact: it
    is about what is exact in this recording, which those drawn from a prior have none of. mapped:
    whether it takes a map, and so is tried on rides over streets.
    """

    attack: Attack
    who: Adversary
    secret: Secret
    known: SideInformation = NOTHING_KNOWN
    believed: Adversary | None = None
    deviation: float | None = None
    repeated: int = 0
    besides: tuple[Secret, ...] = ()
    exact: bool = False
    mapped: bool = False

    @property
    def still(self) -> bool:
        """Whether it is about somebody who stands still."""
        return bool(self.who.still)


Trials = Callable[[Scene], list[Trial]]
"""What an attack is tried as on a part."""
