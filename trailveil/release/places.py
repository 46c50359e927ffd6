"""Places that a person names, and the noise that all visits of each of them share.

The draw of the common noise is a keyed function of all that was stated about a place: with another
radius, epsilon or position it is another draw, never the same one at another scale. Two devices
with one key and one statement agree without talking.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.gp.randomness import derive, normals
from trailveil.privacy.adversaries import Named
from trailveil.privacy.movement import least_cut
from trailveil.privacy.priors import BUILT_IN
from trailveil.release.request import Method, Paces, Request
from trailveil.traces.selection import Stretch
from trailveil.traces.stops import Interval, joined
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import TELLS, Circle, between_places, visits

if TYPE_CHECKING:
    from trailveil.designer.table import Cache
    from trailveil.release.place_noise import PlaceNoise


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Common:
    """Noise that a release shares with others: of one draw, whatever the seed of the release.

    name: of the draw. columns: (n, r) metres. draw: (2, r), east and north. withheld: (n,), fixes
    that are not released because of it. around: where fields tell of what it hides. who: whom it is
    made against.
    """

    name: bytes
    columns: FloatArray
    draw: FloatArray
    withheld: NDArray[np.bool_]
    around: tuple[Stretch, ...]
    who: tuple[Named, ...]


def named_in_full(common: Iterable[Common]) -> list[bytes]:
    """Which draws a release shares, and around what: for its identity.

    Not the columns: another machine may round them otherwise, and it is the same release.
    """
    return [
        repr((one.name, [(part.begin, part.end) for part in one.around])).encode()
        + one.withheld.tobytes()
        for one in common
    ]


# Raised whenever the same statement would get another noise: draws are not shared between them.
_DESIGN = 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Place:
    """A place by its name, and what is stated about it; printing it shows nothing.

    circle: a visit is to be within it. radius: metres, epsilon, order, as of a release. ways: how
    many ways to and from it the noise is made for. withhold: seconds around a visit within which
    nothing is released, or None. prior: the name of a built-in one. who: the adversaries. ident:
    what the ledger knows it by. designed_noise: None for a place of an earlier version, which can
    only be cut. gone: removed, and kept, so that it is known if it comes back.
    """

    name: str
    circle: Circle
    radius: float
    epsilon: float
    order: float
    ways: int
    withhold: float | None
    prior: str
    who: tuple[Named, ...]
    ident: bytes
    designed_noise: "PlaceNoise | None" = None
    gone: bool = False

    @property
    def wide(self) -> Circle:
        """Where a visit is one: the circle, and all that tells its middle."""
        return replace(self.circle, metres=max(self.circle.metres, TELLS))

    @property
    def noise(self) -> "PlaceNoise":
        """Its noise; Refused for a place of an earlier version, whose noise was another."""
        if self.designed_noise is None:
            raise Refused(
                f"noise for a place must be designed by this version, got {self.name!r} of an "
                "earlier one: state it anew (trailveil place add --change), or use --mechanism cut"
            )
        return self.designed_noise

    @property
    def kernel(self) -> Kernel:
        """The prior of movement, metres and seconds."""
        return BUILT_IN[self.prior].kernel

    @property
    def request(self) -> Request:
        """What is asked for at it, as of a release."""
        return Request(
            (), self.radius, self.epsilon, self.order, self.who, Method.NOISE, self.kernel
        )

    @property
    def variance(self) -> float:
        """Square metres per coordinate that each cut must leave, for so many visits together.

        Given the place, ways to and from it are independent: what cuts tell of it adds up.
        """
        return self.ways / self.request.bound

    @property
    def reach(self) -> float:
        """Seconds from a visit within which another recording may be cut or moved because of it."""
        slowest = Request(())
        try:
            cut = least_cut(slowest.slowest, self.variance, 1) + slowest.uncertain
        except Refused:
            cut = float("inf")
        moved = 0.0 if self.designed_noise is None else self.designed_noise.reach
        return max(moved, cut, self.withhold or 0.0)

    @property
    def statement(self) -> bytes:
        """All that was stated about it: what its draw depends on."""
        at = (self.circle.latitude, self.circle.longitude, self.circle.metres)
        stated = (self.radius, self.epsilon, self.order, self.ways, self.withhold)
        return repr((_DESIGN, self.name, at, *stated, self.kernel, self.who)).encode()

    def seed(self, key: bytes) -> bytes:
        """The seed of its draw under a key."""
        return derive(key, [b"common noise of a place", self.statement])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Visited:
    """A place that a recording visits, with the draw of its common noise.

    intervals: the visits, nanoseconds, of this recording or known from others. seed: of the draw.
    """

    place: Place
    intervals: tuple[Interval, ...]
    seed: bytes = field(repr=False)

    @property
    def draw(self) -> bytes:
        """What the ledger knows the draw by."""
        return derive(self.seed, [b"name"])[: len(self.place.ident)]

    def counted_as(self, method: Method) -> bytes:
        """What the ledger counts its visits as, in a release by this method: a draw, or cuts."""
        return self.place.ident if method.cuts else self.draw

    def parts(self, paces: Paces, uncertain: float) -> list[Stretch]:
        """Its visits as parts to be cut. uncertain: seconds around a part that belong to it."""
        variance, silent = self.place.variance, self.place.withhold
        if silent is not None and silent > uncertain:
            variance = max(variance, paces.end.bridged(silent - uncertain))
        name = self.place.name
        return [
            Stretch(name, *interval, by_place=True, variance=variance)
            for interval in self.intervals
        ]

    def away(self, trace: Trace) -> FloatArray:
        """Seconds of each fix to the nearest visit (n,)."""
        gaps = [np.maximum(begin - trace.times, trace.times - end) for begin, end in self.intervals]
        return np.asarray(np.maximum(np.min(gaps, axis=0), 0) / NANOSECONDS)

    def common(self, trace: Trace) -> Common:
        """Its noise at the fixes of a trace."""
        noise, silence = self.place.noise, self.place.withhold
        parts = tuple(
            Stretch(self.place.name, *interval, by_place=True) for interval in self.intervals
        )
        columns = noise.at(trace.seconds, [part.seconds(trace) for part in parts])
        size = columns.shape[1]
        draws = [normals(self.seed, f"{axis} place", size) for axis in ("east", "north")]
        silent = self.away(trace) <= (-1.0 if silence is None else silence)
        return Common(self.draw, columns, np.array(draws), silent, parts, self.place.who)


def shared_noise(places: Sequence[Visited], trace: Trace, method: Method) -> list[Common]:
    """The noise of the places that a trace visits, as a release by this method has it.

    A cut alone has none. Beside a cut it is another draw than without one: who has the rest of a
    track as it was recorded learns the draw, and what it hides elsewhere must not hang on that.
    """
    if method is Method.CUT:
        return []
    if method is Method.BOTH:
        places = [replace(visit, seed=derive(visit.seed, [b"beside a cut"])) for visit in places]
    return [visit.common(trace) for visit in places]


def visited(
    trace: Trace,
    places: Sequence[Place],
    key: bytes,
    known: Mapping[bytes, Sequence[Interval]],
) -> list[Visited]:
    """The places that a trace visits, or is near in time to a visit of.

    known: visits that earlier releases had, near in time, by the ident of the place.
    """
    visits_by_place = []
    for place in places:
        whole = joined(sorted({*visits(trace, place.wide), *known.get(place.ident, ())}))
        if whole:
            visits_by_place.append(Visited(place, tuple(whole), place.seed(key)))
    return visits_by_place


def designed(place: Place, cache: "Cache | None" = None) -> Place:
    """The place with its noise. Raises as `trailveil.release.place_noise.place_noise` does."""
    from trailveil.release.place_noise import place_noise

    return replace(place, designed_noise=place_noise(place.request, place.ways, cache))


def overlap(place: Place, other: Place) -> bool:
    """Whether two places may be one: what nobody is to tell apart is counted together."""
    apart = between_places(place.circle, other.circle)
    return apart <= place.circle.metres + other.circle.metres + max(place.radius, other.radius)
