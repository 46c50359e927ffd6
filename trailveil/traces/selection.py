"""What to protect: stated times, stays and ends, as stretches of a trace.

Times are in nanoseconds since 1970 UTC here, exact; seconds since the first fix are what priors
see.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Refused
from trailveil.traces.stated_times import check_inside, is_relative, moment, zone_of
from trailveil.traces.stops import ABSENCE, LASTS, WITHIN, Interval, settled, stays
from trailveil.traces.trace import NANOSECONDS, TimeSeries, Trace
from trailveil.traces.visits import Circle, Places, places_of, visits

# Seconds at a place, on the way to a protected time or from it, that are no return to it: noise for
# the time is smooth over them.
LEAVING = 60.0
RETURN = "a return to a protected place"
# Seconds from which on a gap ends an outing, and how many times the usual step it must be.
_OUTING_ENDS, _FAR_MORE = 3600.0, 30.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a trace to protect: one time, or a stay from begin to end (nanoseconds, inclusive).

    label: what asked for it. by_place: whether its times were chosen by where the person was.
    variance: of a place with a name, the square metres per coordinate that a cut must leave, at
    least, in frames that are not wide; 0 for what the request asks for.
    """

    label: str
    begin: int
    end: int
    by_place: bool = False
    variance: float = 0.0

    @property
    def is_stay(self) -> bool:
        """Whether it has a duration."""
        return self.end > self.begin

    def rows(self, trace: TimeSeries) -> NDArray[np.bool_]:
        """The fixes inside, (n,)."""
        return (trace.times >= self.begin) & (trace.times <= self.end)

    def seconds(self, trace: TimeSeries) -> tuple[float, float]:
        """Begin and end in seconds since the first fix."""
        first = int(trace.times[0])
        return (self.begin - first) / NANOSECONDS, (self.end - first) / NANOSECONDS


def at(text: str, trace: TimeSeries, zone: tzinfo | None) -> Stretch:
    """One time within the trace. Raises Refused for one outside."""
    when = moment(text, trace, zone)
    check_inside(text, when, trace, zone)
    return Stretch("at a stated time", when, when)


def between(first: str, second: str, trace: TimeSeries, zone: tzinfo | None) -> Stretch:
    """A stay within the trace. InvalidValue where it ends before it begins, Refused outside."""
    begin, end = moment(first, trace, zone), moment(second, trace, zone)
    if not begin < end:
        order = "--between must be two times, the earlier one first, got "
        raise InvalidValue(
            f"{order}{first[:40]!r} and {second[:40]!r}", public=f"{order}the later one first"
        )
    for text, when in ((first, begin), (second, end)):
        check_inside(text, when, trace, zone)
    return Stretch("between stated times", begin, end)


def near(place: Circle, trace: Trace, *, number: int = 1) -> list[Stretch]:
    """Every visit to a place, the stated one of this number: their times depend on the trace.

    Raises Refused, without the place, where there was none.
    """
    intervals = visits(trace, place)
    if intervals:
        return [
            Stretch(f"near stated place {number}", *interval, by_place=True)
            for interval in intervals
        ]
    swapped = place.swapped
    hint = (
        "with latitude and longitude the other way round there are, so write LAT,LON,METRES"
        if swapped and visits(trace, swapped)
        else "check LAT,LON,METRES, or state more metres"
    )
    raise Refused(
        f"--near must name a place that was visited, got no visit to place {number}: {hint}"
    )


def stops(trace: Trace, within: float = WITHIN, lasts: float = LASTS) -> list[Stretch]:
    """Every stay that is found in the trace, within metres and of so many seconds or more.

    Their times depend on the trace.
    """
    intervals = stays(trace, within, lasts)
    return [Stretch("a stay that was found", *interval, by_place=True) for interval in intervals]


@lru_cache(maxsize=1)  # asked for with what was stated, and without
def ends(trace: Trace) -> tuple[Stretch, ...]:
    """Both ends of the trace: first and last fix, widened over the stays that adjoin.

    Where it pauses for hours, or for minutes between two tracks, of each outing. They depend on
    where the person was, and say so.
    """
    gaps, rows = np.diff(trace.seconds), np.arange(len(trace))
    usual = float(np.median(gaps)) if gaps.size else 0.0
    starts = np.diff(np.array(trace.tracks)[trace.segments]) != 0  # a recording is begun anew
    least = np.maximum(np.where(starts, ABSENCE, _OUTING_ENDS), _FAR_MORE * usual)
    outings = np.split(rows, np.flatnonzero(gaps >= least) + 1)
    if len(outings) == 1:
        return tuple(_ends_of(trace, ""))
    parts = (trace.only(np.isin(rows, outing)) for outing in outings)
    return tuple(end for part in parts for end in _ends_of(part, " of an outing"))


def _ends_of(trace: Trace, of: str) -> list[Stretch]:
    times = trace.times.tolist()
    first, last = settled(trace)
    if first >= last:
        label = f"the whole{of}" if of else "the whole recording, which stands still"
        return [Stretch(label, times[0], times[-1], True)]
    return [
        Stretch(f"the start{of}", times[0], times[first], by_place=True),
        Stretch(f"the end{of}", times[last], times[-1], by_place=True),
    ]


def merged(stretches: list[Stretch]) -> list[Stretch]:
    """In order of time, each once, and stays that overlap made one: one person has one clock."""
    stays_merged: list[Stretch] = []
    for stay in sorted(
        (stretch for stretch in stretches if stretch.is_stay), key=lambda stretch: stretch.begin
    ):
        if stays_merged and stay.begin < stays_merged[-1].end:
            stays_merged.append(_joined(stays_merged.pop(), stay))
        else:
            stays_merged.append(stay)
    moments: dict[int, Stretch] = {}
    for short in (stretch for stretch in stretches if not stretch.is_stay):
        known = moments.get(short.begin)
        moments[short.begin] = _joined(known, short) if known else short
    return sorted(
        [*stays_merged, *moments.values()], key=lambda stretch: (stretch.begin, stretch.end)
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to protect, as it was asked for: times in people's words, see `moment`.

    zone: of clock times; for None the one in which all of the trace is, if there is one.
    near: places of which every visit is protected. stops: every stay within so many metres and of
    so many seconds, or more, is protected; None for those that are not asked for. ends: whether
    both ends of the recording are protected besides. returns: whether every time at one of the
    protected places is, too.
    """

    at: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()
    zone: tzinfo | None = None
    near: tuple[Circle, ...] = ()
    stops: tuple[float, float] | None = None
    returns: bool = True
    ends: bool = True

    @property
    def states(self) -> bool:
        """Whether it says what to protect besides the ends."""
        return bool(self.at or self.between or self.near or self.stops)

    def stated(self, trace: TimeSeries) -> list[Stretch]:
        """The parts that were stated by their times."""
        zone, texts = self.zone, [*self.at, *(text for both in self.between for text in both)]
        if zone is None and not all(map(is_relative, texts)) and isinstance(trace, Trace):
            zone = zone_of(trace)
        stated = [at(text, trace, zone) for text in self.at]
        return stated + [between(*both, trace, zone) for both in self.between]

    def stretches(self, trace: Trace, known: Sequence[Interval] = ()) -> list[Stretch]:
        """The parts of the trace to protect: both its ends, and what was stated, together.

        With every time at which the trace is at one of their places, unless `returns` is False.
        known: visits (nanoseconds) of places that are protected anyway: what is in one is left out.
        What is protected with the ends alone is protected whatever is stated besides: a place whose
        middle a stop moves keeps its visits. Raises Refused where nothing is to be protected.
        """
        parts = self._parts_with_visits(trace, known)
        if self.ends and self.states:
            parts = merged(parts + Chosen(returns=self.returns)._parts_with_visits(trace, known))
        return parts

    def _parts_with_visits(self, trace: Trace, known: Sequence[Interval]) -> list[Stretch]:
        parts = self._parts(trace, known)
        if not self.returns:
            return parts
        return merged(_with_returns(parts, self._places(trace, parts).times(trace), known))

    def places(self, trace: Trace, known: Sequence[Interval] = ()) -> Places:
        """Where the protected parts of the trace are, returns and what is known left out."""
        return self._places(trace, self._parts(trace, known))

    def _parts(self, trace: Trace, known: Sequence[Interval]) -> list[Stretch]:
        stated = self.stated(trace)
        for number, place in enumerate(self.near, start=1):
            stated += near(place, trace, number=number)
        stated += [] if self.stops is None else stops(trace, *self.stops)
        if self.ends:
            stated += [part for part in ends(trace) if not _is_covered(part, known)]
        elif not (stated or known):
            raise _nothing(self.stops)
        return merged(stated)

    def _places(self, trace: Trace, parts: Sequence[Stretch]) -> Places:
        intervals = [((part.begin, part.end), not part.by_place) for part in parts]
        return places_of(trace, intervals, self.near)


def _nothing(looked_for: tuple[float, float] | None) -> Refused:
    what = "nothing else"
    if looked_for is not None:
        within, lasts = looked_for
        what = f"no stay that --stops auto finds ({lasts / 60:g} min within {within:g} m)"
    return Refused(
        f"something must be protected, got --no-ends and {what}: state times (--between, --at), a "
        "place (--near) or stops (--stops auto), or leave --no-ends out"
    )


def _with_returns(
    parts: Sequence[Stretch], times_there: Sequence[Interval], known: Sequence[Interval]
) -> list[Stretch]:
    """The parts and the times at their places: what is longer there than a part is one with it.

    parts, in order of time, as `merged` has them.
    """
    joined: set[Stretch] = set()
    visits_there: list[Stretch] = []
    when = _Overlaps([(part.begin, part.end) for part in parts])
    whose = _Overlaps(sorted(known))
    for begin, end in times_there:
        overlapping = [parts[i] for i in when.rows(begin, end)]
        covered = [(part.begin, part.end) for part in overlapping]
        covered += [whose.intervals[i] for i in whose.rows(begin, end)]
        exact = any(part.is_stay and part.by_place for part in overlapping)
        if covered and _bare(begin, end, covered) <= (0 if exact else LEAVING * NANOSECONDS):
            continue
        joins = [part for part in overlapping if part.is_stay or part.by_place]
        label = joins[0].label if joins else RETURN
        edges = [begin, end, *(edge for part in joins for edge in (part.begin, part.end))]
        visits_there.append(Stretch(label, min(edges), max(edges), by_place=True))
        joined.update(joins)
    return [*(part for part in parts if part not in joined), *visits_there]


class _Overlaps:
    """Intervals in order of their begin, to be searched in logarithmic time."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self.intervals = intervals
        self._begins = [begin for begin, _ in intervals]
        self._until = list(accumulate((end for _, end in intervals), max))

    def rows(self, begin: int, end: int) -> list[int]:
        """Those that have a moment from begin to end."""
        some = range(bisect_left(self._until, begin), bisect_right(self._begins, end))
        return [i for i in some if self.intervals[i][1] >= begin]


def _is_covered(part: Stretch, known: Sequence[Interval]) -> bool:
    """Whether visits hold a part, but for a minute on the way to them or from them."""
    over = [(a, b) for a, b in known if a <= part.end and part.begin <= b]
    return bool(over) and _bare(part.begin, part.end, over) <= LEAVING * NANOSECONDS


def _bare(begin: int, end: int, covered: Sequence[Interval]) -> int:
    """The longest time from begin to end that no interval covers, nanoseconds."""
    longest, until = 0, begin
    for a, b in sorted(covered):
        longest, until = max(longest, a - until), max(until, b)
    return max(longest, end - until)


def _joined(stretch: Stretch, other: Stretch) -> Stretch:
    names = dict.fromkeys([*stretch.label.split(", "), *other.label.split(", ")])
    asked = [name for name in names if name != RETURN]
    label = ", ".join(asked or [RETURN])
    return Stretch(
        label, stretch.begin, max(stretch.end, other.end), stretch.by_place or other.by_place
    )


def within(
    times: NDArray[np.int64], stretches: Sequence[Stretch], seconds: float | None
) -> NDArray[np.bool_]:
    """Which times (n,) lie within the stated seconds of any stretch; none for None."""
    inside = np.zeros(times.size, dtype=np.bool_)
    if seconds is not None:
        around = round(seconds * NANOSECONDS)
        for stretch in stretches:
            inside |= (times >= stretch.begin - around) & (times <= stretch.end + around)
    return inside
