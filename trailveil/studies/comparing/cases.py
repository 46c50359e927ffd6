"""What is compared, and on what: cases, what is disclosed of them, and what attackers know.

A mechanism is a function of a `Case` and a random generator that returns a trace, or a `Disclosure`
where an adversary is to know how its noise varies. An attack is a function of a `Sighting`, what
was released, and of `Clues`, what is known besides; it returns places, or a person.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.secrets import Secret
from trailveil.release.request import DEFAULT_KERNEL
from trailveil.traces.projection import MICRO, Frame, placed
from trailveil.traces.selection import Stretch
from trailveil.traces.streets.network import Network
from trailveil.traces.trace import NANOSECONDS, Trace, cut_out

T = TypeVar("T")

ACCURACY = 10.0
"""Metres per coordinate to which true places are known by those who know some."""


def generator(*names: object) -> np.random.Generator:
    """A random generator that depends on these names alone, each by its text."""
    digest = sha256("\x1f".join(map(str, names)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """A recording, whose it is, and what is to be hidden in it.

    Its fixes are `metres` (n, 2) at `seconds` (n,); `spans` says when each secret is, `truths`
    where.
    `placed_at`, `timed_at` and `only` make traces of other places, other times or fewer fixes.

    data: the data set. person: whose it is. name: of the recording, once in its data set. secrets:
    the parts to hide, in order of time. streets: a map in metres of the frame, where there is one.
    """

    data: str
    person: str
    name: str
    trace: Trace
    secrets: tuple[Stretch, ...]
    streets: Network | None = None
    _memory: dict[Hashable, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what nothing can be compared on."""
        if len(self.trace) < 2 or not self.secrets:
            raise InvalidValue(
                f"a case must have two fixes and something to hide, got {len(self.trace)} and "
                f"{len(self.secrets)}: leave this recording out"
            )

    def __getstate__(self) -> dict[str, Any]:
        """All but what is remembered, which other processes compute for themselves."""
        names = ("data", "person", "name", "trace", "secrets", "streets")
        return {name: getattr(self, name) for name in names} | {"_memory": {}}

    @cached_property
    def frame(self) -> Frame:
        """The local frame: metres are right within 0.1 % at any latitude."""
        return placed(self.trace.positions)[0]

    @cached_property
    def metres(self) -> FloatArray:
        """The places (n, 2), east and north, in metres of the frame."""
        return np.asarray(placed(self.trace.positions)[1] / MICRO)

    @property
    def seconds(self) -> FloatArray:
        """The times (n,) since the first fix."""
        return self.trace.seconds

    @cached_property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """From when to when each secret is, in seconds since the first fix."""
        return tuple(stretch.seconds(self.trace) for stretch in self.secrets)

    @cached_property
    def inside(self) -> tuple[NDArray[np.bool_], ...]:
        """The fixes (n,) of each secret; of a moment between two fixes, the nearest."""
        masks = []
        for begin, end in self.spans:
            mask = (self.seconds >= begin) & (self.seconds <= end)
            if not mask.any():
                mask[np.argmin(np.abs(self.seconds - (begin + end) / 2))] = True
            masks.append(mask)
        return tuple(masks)

    @cached_property
    def truths(self) -> FloatArray:
        """Where each secret is (k, 2): the mean of its fixes, in metres."""
        return np.array([self.metres[mask].mean(axis=0) for mask in self.inside])

    @cached_property
    def means(self) -> tuple[Secret, ...]:
        """Of each secret the mean of its fixes, or the place of its only one."""
        times = [self.seconds[mask] for mask in self.inside]
        return tuple(Secret.mean(t) if t.size > 1 else Secret.at(float(t[0])) for t in times)

    def remembered(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What was computed for this case under a key, computed once in each process."""
        if key not in self._memory:
            self._memory[key] = compute()
        value: T = self._memory[key]
        return value

    def placed_at(self, metres: FloatArray) -> Trace:
        """The trace with other places (n, 2) in metres, rounded to microdegrees."""
        return replace(self.trace, positions=self.degrees(metres))

    def only(self, released: NDArray[np.bool_]) -> Trace:
        """The trace with some of its fixes (n,)."""
        return cut_out(self.trace, released)

    def timed_at(self, seconds: FloatArray, metres: FloatArray) -> Trace:
        """A trace of one segment: places (m, 2) in metres at seconds (m,) since the first fix."""
        times = int(self.trace.times[0]) + np.round(seconds * NANOSECONDS).astype(np.int64)
        return Trace(times, self.degrees(metres), np.zeros(times.size, np.intp), (0,))

    def degrees(self, metres: FloatArray) -> FloatArray:
        """Latitude and longitude (m, 2) of places in metres, in whole microdegrees."""
        return self.frame.to_degrees(np.floor(metres * MICRO + 0.5).astype(np.int64)) / MICRO


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Disclosure:
    """A released trace, and what everybody may know of its noise.

    noise: of the released fixes, in the seconds of the case; None where there is none. It is
    Gaussian; of other noise it has the variance.
    """

    trace: Trace
    noise: Mechanism | None = None


Mechanisms = Mapping[str, Callable[..., Trace | Disclosure]]


@dataclass(frozen=True, eq=False, repr=False)
class Sighting:
    """What an attacker gets: a released trace in the frame and the seconds of its case.

    metres: the places (m, 2) in metres of the frame of the case, at `seconds` (m,). noise: how it
    varies, as everybody may know. What else is in `case` is the truth: no attack may look.
    """

    case: Case
    trace: Trace
    noise: Mechanism
    metres: FloatArray

    @classmethod
    def of(cls, case: Case, released: Trace | Disclosure) -> "Sighting":
        """What is to be had of a release. Raises InvalidValue where its noise is of other fixes."""
        if isinstance(released, Trace):
            released = Disclosure(released)
        seconds = (released.trace.times - case.trace.times[0]) / NANOSECONDS
        noise = released.noise or no_noise(seconds)
        if noise.rows.size != seconds.size:
            raise InvalidValue(
                f"the noise must be of the {seconds.size} released fixes, got {noise.rows.size}"
            )
        metres = case.frame.to_lattice(released.trace.positions) / MICRO
        return cls(case, released.trace, noise, metres)

    @cached_property
    def seconds(self) -> FloatArray:
        """The times (m,) since the first fix of the recording."""
        return np.asarray((self.trace.times - self.case.trace.times[0]) / NANOSECONDS)

    @cached_property
    def distances(self) -> tuple[float, float, float]:
        """Metres from the recording: Hausdorff, Frechet and warping, see `curves.distances`."""
        return distances(self.case.metres, self.metres)

    @cached_property
    def covariance(self) -> FloatArray:
        """Gamma (m, m) of the released fixes."""
        return self.noise.covariance()


Locations = FloatArray | tuple[FloatArray, FloatArray] | str | None
"""What an attack returns: places (k, 2) in metres, one for each secret, NaN for no idea; the same
with deviations (k,) in metres per coordinate; the name of a person; or nothing."""

Attack = Callable[..., Locations]


@dataclass(frozen=True, eq=False, repr=False)
class Clues:
    """What an attacker knows besides a release; each attack takes what its adversary has.

    spans: from when to when each secret is, in seconds. kernel: how people move. random: for
    attacks that draw. repeat: further releases of the recording, by their number. elsewhere: the
    other releases of the same person. training: pairs of other people's releases and recordings.
    people: true recordings by person, of days that are known; empty on such a day.
    """

    case: Case = field(repr=False)
    spans: tuple[tuple[float, float], ...]
    random: np.random.Generator
    repeat: Callable[[int], Sighting]
    elsewhere: Callable[[], Sequence[Sighting]]
    training: Callable[[], Sequence[tuple[Sighting, Case]]]
    people: Callable[[], Mapping[str, Sequence[Case]]]
    remembered: Callable[[Hashable, Callable[[], Any]], Any]
    kernel: Kernel = DEFAULT_KERNEL

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What is sought: the mean place of each part."""
        return self.case.means

    @property
    def streets(self) -> Network | None:
        """A map, where there is one."""
        return self.case.streets

    def places(self, seconds: FloatArray) -> FloatArray:
        """True places (p, 2) at times (p,), to `ACCURACY`: for adversaries who know some."""
        true = [np.interp(seconds, self.case.seconds, axis) for axis in self.case.metres.T]
        return np.transpose(true) + ACCURACY * self.random.standard_normal((len(seconds), 2))


def distances(first: FloatArray, other: FloatArray) -> tuple[float, float, float]:
    """Hausdorff, discrete Frechet and dynamic time warping of curves (n, 2) and (m, 2), O(n m).

    Hausdorff: the largest distance from a point of either to the nearest of the other. Frechet: the
    shortest leash for two who walk the points in order and never go back; Eiter and Mannila (1994),
    Computing discrete Frechet distance, CD-TR 94/64, TU Vienna. Warping: the mean distance along
    the best alignment with steps of one in either or both, its sum divided by the points of the
    longer curve; Sakoe and Chiba (1978), IEEE Trans. ASSP 26.
    """
    apart = cdist(first, other)
    leash, way = _walked(apart)
    nearest = max(apart.min(axis=0).max(), apart.min(axis=1).max())
    return float(nearest), leash, way / max(len(first), len(other))


def _walked(apart: FloatArray) -> tuple[float, float]:
    """The least largest, and the least sum, of the costs (n, m) along a walk from first to last.

    A diagonal of pairs depends on the two before it alone, so each is one step, of both at once.
    """
    rows, columns = apart.shape
    flat = np.ascontiguousarray(apart).ravel()
    # Row i of a diagonal stands at i + 1; the pair before the first costs nothing.
    before, latest, new = (np.full((2, rows + 1), np.inf) for _ in range(3))
    before[:, 0] = -np.inf, 0.0
    for diagonal in range(rows + columns - 1):
        low, high = max(0, diagonal - columns + 1), min(rows, diagonal + 1)
        begin = diagonal + low * (columns - 1)
        end = begin + (high - low - 1) * (columns - 1) + 1
        costs = flat[begin : end : max(columns - 1, 1)]
        cheapest = np.minimum(latest[:, low:high], latest[:, low + 1 : high + 1])
        np.minimum(cheapest, before[:, low:high], out=cheapest)
        new[:] = np.inf
        np.maximum(costs, cheapest[0], out=new[0, low + 1 : high + 1])
        np.add(costs, cheapest[1], out=new[1, low + 1 : high + 1])
        before, latest, new = latest, new, before
    return float(latest[0, rows]), float(latest[1, rows])
