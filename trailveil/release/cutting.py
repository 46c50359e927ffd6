"""What is left out around a protected part: the fixes of a window, and fields for longer.

Fields that were asked for leave with a release, but not near what is protected. Nothing in them is
protected, so they are reckoned to give the true path away wherever they are kept. An adversary who
knows the whole path, but for 5 minutes around each protected part, is one of those whom noise is
made against. Fields are left out for twice as long: whoever reads the path from the rest, however
well, is left with more metres than that adversary.

Where a part is protected by withholding alone, every place that is released is exact, and an
elevation or a temperature tells no more of it. So those stay. Fields of movement are left out there
as well: a speed at the edge of what is withheld tells how the way goes on. Blanks tell when, to
some minutes: they begin and end at whole five minutes since the first fix that is released.
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import or_

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import Named
from trailveil.privacy.false_tracks import rows_within
from trailveil.privacy.movement import LONGEST_CUT, least_cut
from trailveil.release.places import Common
from trailveil.release.public import NOTHING_PUBLIC, Around, Position, nothing_hidden
from trailveil.release.request import Method, Paces, Request
from trailveil.traces.projection import MICRO
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import in_space

# Metres: protected parts of one recording that are this near, or within the radius, may be one.
_ONE_PLACE = 500.0
AROUND = 600.0
"""Seconds around a protected part, or what is cut around it, in which no field is released."""
EDGES = 300.0
"""Seconds: fields are left out from a whole multiple of them to another: see above."""
MOVEMENT = frozenset({"speed", "course", "cadence", "power"})
"""Fields that tell how somebody moves on."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a trace with what is uncertain around it, from `begin` to `end`.

    seconds: (n,) of all fixes, in order. rows: the fixes of the part itself. public: what is public
    already of places in the window, before it and after it.
    """

    stretch: Stretch
    seconds: FloatArray
    begin: float
    end: float
    rows: slice
    public: Around = NOTHING_PUBLIC

    @classmethod
    def of(
        cls, trace: Trace, stretch: Stretch, uncertain: float, public: Sequence[Position] = ()
    ) -> "Window":
        """The window of a stretch. uncertain: seconds around it that belong to it.

        public: positions that are public already.
        """
        begin, end = stretch.seconds(trace)
        around = Around.of(public, stretch.begin, stretch.end, uncertain)
        first, last = np.searchsorted(trace.times, [stretch.begin, stretch.end + 1]).tolist()
        rows = slice(first, last)
        return cls(stretch, trace.seconds, begin - uncertain, end + uncertain, rows, around)

    @property
    def silence(self) -> float:
        """Seconds beyond the window to the nearest fix that is recorded."""
        near = self.within(0.0)
        beyond = self.seconds[max(0, near.start - 1) : near.stop + 1]
        return float(np.min(np.maximum(0.0, np.maximum(self.begin - beyond, beyond - self.end))))

    def variance(self, paces: Paces, seconds: float) -> float:
        """Square metres per coordinate that a cut of so many seconds beyond the window leaves."""
        sides = self.sides(seconds)
        if not self.public:
            return paces.around(self.stretch, sides).bridged(seconds) / sides
        recorded = self._recorded(seconds)
        known = sum(map(bool, map(or_, recorded, map(bool, self.public.sides))))
        movement = paces.around(self.stretch, max(known, sides))
        return 1 / self.public.precision(movement, seconds, recorded)

    def sides(self, silent: float = 0.0) -> int:
        """How many sides are recorded beyond so many seconds: at least 1 is reckoned with."""
        return max(1, sum(self._recorded(silent)))

    def _recorded(self, silent: float) -> tuple[bool, bool]:
        """Whether the recording goes on, before and after so many seconds."""
        if not self.seconds.size:
            return False, False
        before, after = self.begin - self.seconds[0], self.seconds[-1] - self.end
        return bool(before > silent), bool(after > silent)

    def least_cut(self, paces: Paces, variance: float) -> float:
        """Seconds outward from the window of which nothing may be released.

        variance: square metres per coordinate that must be left.
        """
        least = least_cut(paces.end, variance, 1)
        if self.sides(least) > 1:
            both = least_cut(paces.around(self.stretch, 2), variance, 2)
            # A cut that reaches an end of the recording has one side again.
            end = math.ceil(min(self.begin - self.seconds[0], self.seconds[-1] - self.end))
            least = min(max(least, both), float(end))
        if not self.public or self.variance(paces, least) >= variance:
            return least
        return self._beside_what_is_public(paces, variance, int(least))

    def _beside_what_is_public(self, paces: Paces, variance: float, least: int) -> float:
        """The same where a cut of `least` seconds is too short, for what is public already."""
        most = self.variance(paces, LONGEST_CUT)
        if most < variance:
            raise nothing_hidden(self.public, most)
        whole = range(least, LONGEST_CUT + 1)
        return float(whole[bisect_left(whole, variance, key=lambda h: self.variance(paces, h))])

    def within(self, seconds: float) -> slice:
        """The fixes in the window and so many seconds outward."""
        return rows_within(self.seconds, (self.begin, self.end), seconds)


@lru_cache(maxsize=1)  # asked for with many a request of one trace
def windows_of(
    trace: Trace,
    stretches: tuple[Stretch, ...],
    uncertain: float,
    public: tuple[Position, ...] = (),
) -> list[Window]:
    """The window of each stretch, as of `Window.of`."""
    return [Window.of(trace, stretch, uncertain, public) for stretch in stretches]


def silent(
    windows: Sequence[Window], cuts: Sequence[float | None], uncertain: float
) -> list[Stretch]:
    """The parts of windows, with the seconds around them in which nothing is released.

    cuts: seconds beyond each window; None for none. uncertain: as of `Window.of`.
    """
    parts = []
    for window, cut in zip(windows, cuts, strict=True):
        around = 0 if cut is None else round((cut + uncertain) * NANOSECONDS)
        part = window.stretch
        parts.append(replace(part, begin=part.begin - around, end=part.end + around))
    return parts


def at_one_place(trace: Trace, stretches: Sequence[Stretch], radius: float) -> list[int]:
    """Of each part, the number of the place that it may be at: the same where they may be one."""
    return _within_metres(trace, tuple(stretches), max(_ONE_PLACE, radius))


@lru_cache(maxsize=1)  # likewise
def _within_metres(trace: Trace, stretches: tuple[Stretch, ...], near: float) -> list[int]:
    where = in_space(trace.positions)
    middles: list[FloatArray] = []
    numbers = []
    for stretch in stretches:
        first, last = np.searchsorted(trace.times, [stretch.begin, stretch.end + 1]).tolist()
        if first == last:
            first = int(np.argmin(np.abs(trace.times - stretch.begin)))
            last = first + 1
        middle = np.mean(where[first:last], axis=0)
        alike = (math.dist(middle, other) <= near for other in middles)
        numbers.append(next((i for i, same in enumerate(alike) if same), len(middles)))
        if numbers[-1] == len(middles):
            middles.append(middle)
    return numbers


def reckoned_together(
    trace: Trace, stretches: Sequence[Stretch], places: Sequence[int]
) -> list[int]:
    """With how many parts each is reckoned, itself among them: those at the place of both ends.

    places: of `at_one_place`. Ends whose times were stated, and places with names, which have an
    account of their own, are reckoned by themselves.
    """
    by_place = [
        i for i, stretch in enumerate(stretches) if stretch.by_place and not stretch.variance
    ]
    starts = [i for i in by_place if stretches[i].begin <= trace.times[0]]
    stops = [i for i in by_place if stretches[i].end >= trace.times[-1]]
    homes = {places[i] for i in starts} & {places[i] for i in stops}
    return [
        sum(places[k] == places[i] for k in by_place) if i in by_place and places[i] in homes else 1
        for i in range(len(stretches))
    ]


def withheld(values: FloatArray, rows: NDArray[np.intp]) -> float:
    """How much of a recording is not released. values: what grows from fix to fix, (n,).

    rows: the fixes that are released. A step counts unless both of its ends are.
    """
    released = np.zeros(values.size, dtype=np.bool_)
    released[rows] = True
    return float(np.sum(np.diff(values)[~(released[1:] & released[:-1])]))


def way(places: NDArray[np.int64]) -> FloatArray:
    """Metres (n,) from the first of places (n, 2) in micrometres along all of them."""
    steps = np.hypot(*(np.diff(places, axis=0) / MICRO).T)
    return np.concatenate([[0.0], np.cumsum(steps)])


def leaving(
    trace: Trace, request: Request, hidden: Sequence[Stretch], common: Sequence[Common], first: int
) -> Trace:
    """The trace with the fields that may leave.

    hidden: the parts, of `silent`. first: the row of the first fix that is released.
    """
    around = [*hidden, *(part for noise in common for part in noise.around)]
    # Where a cut alone protects, released places are exact: but how one moves is not.
    only = MOVEMENT if request.method is Method.CUT and not common else None
    who = set(request.who).intersection(*(noise.who for noise in common))
    return with_fields_left_out(trace, around, who, int(trace.times[first]), only=only)


def with_fields_left_out(
    trace: Trace,
    stretches: Sequence[Stretch],
    who: Iterable[Named],
    since: int,
    *,
    only: Collection[str] | None = None,
) -> Trace:
    """The trace without its fields around the stretches, or what is cut around them.

    since: time of the first fix that is released, nanoseconds since 1970. only: the names of those
    that are left out; None is all. Raises Refused where the
    trace has fields and the noise is not made against who knows the path.
    """
    names = {name for name, _ in trace.fields if only is None or name in only}
    if not (names and stretches):
        return trace
    if Named.PATH not in set(who):
        raise Refused(
            "kept fields must come with noise that is made against someone who knows the path, "
            "which they can give away, got other noise: add --adversary path, or leave --keep out "
            "(of a place with a name: trailveil place add --change)"
        )
    hidden = left_out(trace, stretches, since)
    fields = tuple(
        (name, np.where(hidden & (name in names), np.nan, values)) for name, values in trace.fields
    )
    return replace(trace, fields=fields)


def left_out(trace: Trace, stretches: Sequence[Stretch], since: int) -> NDArray[np.bool_]:
    """At which fixes (n,) of a trace no field is released; since: as above."""
    around, step = round(AROUND * NANOSECONDS), round(EDGES * NANOSECONDS)
    blank = np.zeros(len(trace), dtype=np.bool_)
    for stretch in stretches:
        begin = (stretch.begin - around - since) // step * step + since
        end = -((since - stretch.end - around) // step) * step + since
        blank |= (trace.times >= begin) & (trace.times <= end)
    return blank
