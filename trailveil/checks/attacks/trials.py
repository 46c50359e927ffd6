"""What is tried: each attack as somebody's, aimed at one protected part, with what was promised."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trailveil.checks.attacks.contract import Attack, OnGrid
from trailveil.checks.attacks.estimators import (
    average,
    circle_of_holes,
    circle_of_stay,
    edges_of_hole,
    kalman_smoother,
    known_paths,
)
from trailveil.checks.attacks.exact import EXACT
from trailveil.checks.attacks.on_streets import on_streets
from trailveil.checks.attacks.posterior import posterior_mean, repeated_releases
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, Matern32, Sum, White
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import PLAIN, Adversary, Known
from trailveil.privacy.anytime import Worst
from trailveil.privacy.knowledge import TrackExposure
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation
from trailveil.privacy.priors import LEVEL_STD
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop
from trailveil.release.request import HAS_THE_REST, KNOWS_PLACE, STRANGER
from trailveil.traces.streets.network import Network

# Seconds before and after a secret of the true places that somebody knows, and how well (metres).
_TRUE_AWAY, _TRUE_ACCURACY = (60.0, 120.0, 300.0), 10.0
# Fixes either way of a place under noise for every place; seconds to a path that is known then.
_AROUND, _PATH_AWAY = 1000, 300.0
_KNOWS = {"plain": "no place", "point": "one true place", "path": "the path"}
# Releases that are averaged.
_REPEATED = 10
# Seconds beyond what is uncertain of a place that is known, and of the path.
_PLACE_AWAY, _PATH_BEYOND = 60.0, 240.0
# Another smoothness, with the scale and deviation of half hours of people's movements; and how many
# times as long a steady pace lasts.
_OTHER_KERNEL = Matern32(427.0, 860.0) + Constant(LEVEL_STD) + White(2.0)
_LASTS = 10.0

MAP = "map"
"""The attack of somebody with a street map."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scene:
    """One part of a release, at the fixes that have to do with it, in metres and seconds.

    fixes: (n, 2) as recorded. file: (m, 2) of the released rows of the file, or None. grid: that
    they were recorded on. floors: m/s, at least how fast the person moves by what is promised of
    noise, and of a cut.
    """

    crop: Crop
    number: int
    kernel: Kernel
    mechanism: Mechanism
    fixes: FloatArray
    file: FloatArray | None
    tracks: tuple[FloatArray, ...]
    grid: OnGrid | None = None
    exposures: tuple[TrackExposure, ...] = ()
    floors: tuple[float, float] = (1.0, 1.0)
    uncertain: float = 0.0
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
        return at_speed(self.kernel, floor) or self.kernel

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
        """What an adversary by that name knows of the path."""
        away = self.uncertain + (_PLACE_AWAY if adversary == KNOWS_PLACE else _PATH_BEYOND)
        begin, end = self.span
        far = self.times[(self.times <= begin - away) | (self.times >= end + away)]
        if adversary == KNOWS_PLACE and far.size:
            far = far[[np.argmin(np.maximum(begin - far, far - end))]]
        return SideInformation(far, _TRUE_ACCURACY) if far.size else NOTHING_KNOWN

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
    name: str
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


def _of_the_set(scene: Scene) -> list[Trial]:
    """The best attack of each adversary that the release was made against.

    None of them need know how the person moved within the part; each is tried on somebody who
    stood still there, and a stranger on somebody who moved as well.
    """
    trials = []
    for exposure in scene.exposures:
        still = scene.stood_still
        if exposure.adversary in (STRANGER, HAS_THE_REST):
            slow = Adversary.believes(exposure.adversary, scene.slowest(exposure.adversary))
            trials.append(
                Trial(posterior_mean, "posterior", slow, scene.at, deviation=exposure.posterior)
            )
            who, known = slow & still, NOTHING_KNOWN
        else:
            who = replace(still, name=exposure.adversary)
            known = scene.known_to(exposure.adversary)
            if not known.times.size:
                continue
        deviation = exposure.posterior
        trials.append(Trial(posterior_mean, "posterior", who, scene.at, known, deviation=deviation))
    return trials


def _against(attack: Attack, name: str, *, still: bool) -> Trials:
    """An attack that is held to what is left to a stranger, who may see stillness."""

    def trials(scene: Scene) -> list[Trial]:
        who = replace(scene.stood_still, name=PLAIN.name) if still else PLAIN
        return [Trial(attack, name, who, scene.middle, deviation=scene.least)]

    return trials


def _with_a_map(scene: Scene) -> list[Trial]:
    """Somebody with a street map, held to what is left to everybody who knows no place."""
    if scene.streets is None:
        return []
    who = replace(scene.stood_still, name="has a street map")
    return [Trial(on_streets, MAP, who, scene.middle, deviation=scene.least, mapped=True)]


def _misspecified(scene: Scene) -> list[Trial]:
    """Who believes in another smoothness, and who reckons with a steady pace."""
    others = [Adversary.believes("believes in a Matern 3/2 prior", _OTHER_KERNEL)]
    steady = _steady(scene.kernel)
    others += [] if steady is None else [Adversary.believes("reckons with a steady pace", steady)]
    return [
        Trial(
            posterior_mean,
            "misspecified",
            PLAIN,
            scene.middle,
            believed=other,
            deviation=scene.least,
        )
        for other in others
    ]


def _steady(kernel: Kernel) -> Kernel | None:
    """The same movement with a velocity that lasts ten times as long; None where it has none."""
    terms = kernel.terms()
    if not any(isinstance(term, IntegratedOU) for term in terms):
        return None
    longer = [
        replace(term, time_constant=_LASTS * term.time_constant)
        if isinstance(term, IntegratedOU)
        else term
        for term in terms
    ]
    return Sum(tuple(longer))


def _true_places(scene: Scene) -> list[Trial]:
    begin, end = scene.span
    times = [t for away in _TRUE_AWAY for t in (begin - away, end + away)]
    inside = [t for t in times if scene.times[0] <= t <= scene.times[-1]]
    nearest = [int(np.argmin(np.abs(scene.times - t))) for t in inside]
    outside = scene.times[np.unique(nearest)] if nearest else np.empty(0)
    outside = outside[(outside < begin) | (outside > end)]
    if not outside.size:
        return []
    who = Adversary(
        f"knows {outside.size} true places 1 to 5 min away",
        still=(Adversary.sees_stillness([scene.span]).still if begin < end else ()),
        point=Known(_TRUE_AWAY[0], _TRUE_ACCURACY),
    )
    # What is known is told as it is: of no value besides it is the worst to be found.
    believed = replace(who, point=None)
    known = SideInformation(outside, _TRUE_ACCURACY)
    return [Trial(posterior_mean, "true-places", who, scene.middle, known, believed)]


def _exactly(scene: Scene) -> list[Trial]:
    """An adversary who looks for what is exact in the recording, and knows nothing else."""
    return [
        Trial(
            attack,
            "lattice",
            replace(PLAIN, name=name),
            scene.middle,
            deviation=scene.least,
            exact=True,
        )
        for name, attack in EXACT.items()
    ]


def _not_promised(attack: Attack, name: str, who: str, *, repeated: int = 0) -> Trials:
    def trials(scene: Scene) -> list[Trial]:
        adversary = replace(scene.stood_still, name=who)
        return [
            Trial(attack, name, adversary, scene.middle, repeated=repeated, besides=scene.others)
        ]

    return trials


ATTACKS: dict[str, Trials] = {
    "posterior": _of_the_set,
    "misspecified": _misspecified,
    "true-places": _true_places,
    "kalman": _against(kalman_smoother, "kalman", still=False),
    "average": _against(average, "average", still=True),
    "circle": _against(circle_of_stay, "circle", still=True),
    "edges": _against(edges_of_hole, "edges", still=False),
    "lattice": _exactly,
    "holes": _not_promised(circle_of_holes, "holes", "takes all parts near it for one place"),
    MAP: _with_a_map,
    "repeated": _not_promised(
        repeated_releases, "repeated", f"has {_REPEATED} releases of it", repeated=_REPEATED
    ),
    "known-paths": _not_promised(known_paths, "known-paths", "has earlier tracks"),
}
"""The attacks by name: what each is tried as on a part."""

ALONE: dict[str, Attack] = {
    "kalman": kalman_smoother,
    "average": average,
    "circle": circle_of_stay,
    "edges": edges_of_hole,
    "holes": circle_of_holes,
    "known-paths": known_paths,
    MAP: on_streets,
}
"""The attacks that need not know how the noise varies."""


PLACES = (0.0, 0.5, 1.0)
"""How far along a recording the places are that are attacked under noise for every place."""


def around(kernel: Kernel, times: FloatArray, part: int) -> Crop:
    """The fixes (of times (n,), at most `_AROUND` either way) around one of `PLACES`, by number."""
    middle = round(PLACES[part] * (times.size - 1))
    first, last = max(0, middle - _AROUND), min(times.size, middle + _AROUND + 1)
    seconds = times[first:last]
    at = float(times[middle])
    span = (float(seconds[0]), float(seconds[-1]))
    return Crop(
        first,
        last,
        0.0,
        Prior(kernel, seconds),
        (part,),
        ((at, at),),
        span,
        (),
        (False, False),
        1.0,
    )


def _worst(scene: Scene, cases: Sequence[Worst]) -> list[Trial]:
    """Each kind of adversary at a place, of the speed and the stay where it learns most."""
    trials = []
    at = scene.span[0]
    for case in cases:
        speed = at_speed(scene.kernel, case.speed) or scene.kernel
        stays = [(at - case.stay / 2, at + case.stay / 2)] if case.stay else []
        who = Adversary.believes(f"knows {_KNOWS[case.kind]}, at {case.speed:g} m/s", speed)
        who = who & Adversary.sees_stillness(stays) if stays else who
        away = case.stay / 2 + (_PATH_AWAY if case.kind == "path" else case.known)
        known = scene.times[np.abs(scene.times - at) >= away]
        if case.kind == "point" and known.size:
            known = known[np.argmin(np.abs(known - at))][None]
        information = NOTHING_KNOWN
        if case.kind != "plain" and known.size:
            information = SideInformation(known, _TRUE_ACCURACY)
        trials.append(
            Trial(
                posterior_mean, "posterior", who, Secret.at(at), information, deviation=case.after
            )
        )
    return trials


def _plainly(attack: Attack, name: str) -> Callable[[Scene, Sequence[Worst]], list[Trial]]:
    """Held to what is left to who knows no place."""

    def trials(scene: Scene, cases: Sequence[Worst]) -> list[Trial]:
        plain = next(case for case in cases if case.kind == "plain")
        return [Trial(attack, name, PLAIN, Secret.at(scene.span[0]), deviation=plain.after)]

    return trials


EVERYWHERE: dict[str, Callable[[Scene, Sequence[Worst]], list[Trial]]] = {
    "posterior": _worst,
    "kalman": _plainly(kalman_smoother, "kalman"),
}
"""The attacks on noise for every place, at one place of a moment."""
