"""What every attack is: something that sees a release and knows something, and says where.

An attack is a function of a `Evidence` and a `Background` that returns an `Estimate` for each
secret, or None where it has nothing to go by. All of it comes in many draws at once: the noise of a
release has many outcomes, and one of them proves nothing.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.secrets import Secret
from trailveil.traces.grid import CoarseSubset
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.streets.network import Network


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evidence:
    """What was published, and what it could have been instead.

    times: (m,) seconds of the released fixes. places: (draws, m, 2) metres, in one frame.
    """

    times: FloatArray
    places: FloatArray

    def __post_init__(self) -> None:
        """Check the shapes."""
        if self.places.ndim != 3 or self.places.shape[1:] != (self.times.size, 2):
            raise InvalidValue(
                f"places must have shape (draws, {self.times.size}, 2), got {self.places.shape}"
            )

    @property
    def draws(self) -> int:
        """How many outcomes of the noise there are."""
        return int(self.places.shape[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TruePlaces:
    """True recorded places that somebody knows, to an accuracy (metres per coordinate).

    times: (p,) seconds. places: (draws, p, 2) metres, as they are known: errors included.
    """

    times: FloatArray
    places: FloatArray
    accuracy: float


@dataclass(frozen=True, slots=True)
class OnGrid:
    """That recorded places are whole multiples of a step (degrees), and the frame of the metres.

    coarse: which of all recorded fixes lie on a coarser grid, for an attacker who knows that.
    """

    frame: Frame
    step: float
    coarse: CoarseSubset | None = None

    def nearest(self, places: FloatArray) -> tuple[FloatArray, float]:
        """The grid points (m, 2) nearest to places (m, 2), metres of the frame; steps off (rms)."""
        degrees = self.frame.in_degrees(places)
        lines = np.floor(degrees / self.step + 0.5) * self.step
        off = float(np.sqrt(np.mean(((degrees - lines) / self.step) ** 2)))
        return self.frame.to_lattice(lines) / MICRO, off

    def slopes(self, places: FloatArray) -> FloatArray:
        """How degrees of latitude and longitude change by metres east and north: (m, 2, 2)."""
        ends = [
            (self.frame.in_degrees(places + way) - self.frame.in_degrees(places - way)) / 2
            for way in np.eye(2)
        ]
        return np.stack(ends, axis=2)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Filter:
    """What a Gaussian adversary makes of data, whatever they are.

    weights: (n,) of their offsets from a common origin. level: the weight of that origin.
    deviation: metres per coordinate that it leaves.
    """

    weights: FloatArray
    level: float
    deviation: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Background:
    """What an attacker knows besides the release.

    secrets: what is sought, each of one location: when it was is taken to be known. kernel: how
    people move. mechanism: how the noise varies, at all recorded times, or None where that is not
    known. adversary: what is believed besides. true: true places. tracks: (k, 2) metres each, lines
    of earlier recordings. others: (draws, count, m, 2) metres, further releases of the recording.
    grid: that it was recorded on. streets: of the place, where somebody has a map. filters: those
    of other recordings of the same times and noise, to use and to add to; None remembers none.
    """

    secrets: tuple[Secret, ...]
    kernel: Kernel
    mechanism: Mechanism | None = None
    adversary: Adversary = PLAIN
    true: TruePlaces | None = None
    tracks: tuple[FloatArray, ...] = ()
    others: FloatArray | None = None
    grid: OnGrid | None = None
    streets: Network | None = None
    filters: dict[Hashable, Filter] | None = None

    def __post_init__(self) -> None:
        """Refuse secrets of several locations."""
        if any(secret.size != 1 for secret in self.secrets):
            raise InvalidValue("an attack must seek one location at a time, got several in one")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate:
    """Where an attack says that a secret is, and how sure of it it is.

    places: (draws, 2) metres. deviation: metres per coordinate, or None where it does not say.
    """

    places: FloatArray
    deviation: float | None = None

    def errors(self, truth: FloatArray) -> FloatArray:
        """Distances (draws,) in metres from the true places (draws, 2), or from one (2,)."""
        return np.asarray(np.hypot(*np.moveaxis(self.places - truth, -1, 0)))


Attack = Callable[[Evidence, Background], tuple[Estimate | None, ...]]
"""Raises InvalidValue where it is not told what it cannot do without."""


def when(secret: Secret) -> tuple[float, float]:
    """From when to when (seconds) a secret is."""
    return secret.window or (float(secret.times.min()), float(secret.times.max()))


def required_mechanism(known: Background) -> Mechanism:
    """How the noise varies. Raises InvalidValue where that is not known."""
    if known.mechanism is None:
        raise InvalidValue("this attack must know how the noise varies, got no mechanism")
    return known.mechanism
