"""What to protect: times as people write them, stays and ends, as stretches of a trace.

TIME is ISO 8601 with a zone, `start+5m` or `end-1h30m`, or HH:MM[:SS] with a zone stated apart.
Times are in nanoseconds since 1970 UTC here, exact; seconds since the first fix are what priors
see.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Refused
from trailveil.readings import Timed
from trailveil.returns import Places, places_of
from trailveil.stops import LASTS, WITHIN, Interval, settled, stays
from trailveil.trace import NANOSECONDS, Trace
from trailveil.visits import Circle, visits

# Seconds at a place, on the way to a protected time or from it, that are no return to it: noise for
# the time is smooth over them.
LEAVING = 60.0
_RELATIVE = re.compile(r"(start|end)(?:([+-])((?:\d{1,9}(?:\.\d{1,9})?[hms])+))?", re.ASCII)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([hms])")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_UNITS = {"h": 3600, "m": 60, "s": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400 * NANOSECONDS
_MOST_LISTED = 6
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

    def rows(self, trace: Timed) -> NDArray[np.bool_]:
        """The fixes inside, (n,)."""
        return (trace.times >= self.begin) & (trace.times <= self.end)

    def seconds(self, trace: Timed) -> tuple[float, float]:
        """Begin and end in seconds since the first fix."""
        first = int(trace.times[0])
        return (self.begin - first) / NANOSECONDS, (self.end - first) / NANOSECONDS


def moment(text: str, trace: Timed, zone: tzinfo | None) -> int:
    """A time as people write it, in nanoseconds since 1970 UTC.

    Raises InvalidValue where it cannot be read; Refused where it is not clear which time is meant
    (no zone, or a local time that was passed more or less than once), with the candidates.
    """
    text = text.strip()
    if relative := _RELATIVE.fullmatch(text):
        edge, sign, amount = relative.groups()
        shift = _duration(amount) if amount else 0
        return int(trace.times[0 if edge == "start" else -1]) + (-shift if sign == "-" else shift)
    if clock := _CLOCK.fullmatch(text):
        return _of_the_clock(text, clock, trace, zone)
    try:
        when = datetime.fromisoformat(text)
        return _nanoseconds(when) if when.tzinfo else _local(text, when, zone)
    except (ValueError, OverflowError) as error:
        form = "a time must be like 2024-05-14T08:30:00Z, start+5m, end-10m or 08:30, got "
        raise InvalidValue(f"{form}{text[:40]!r}", public=f"{form}another") from error


def at(text: str, trace: Timed, zone: tzinfo | None) -> Stretch:
    """One time within the trace. Raises Refused for one outside."""
    when = moment(text, trace, zone)
    _check_inside(text, when, trace)
    return Stretch("at a stated time", when, when)


def between(first: str, second: str, trace: Timed, zone: tzinfo | None) -> Stretch:
    """A stay within the trace. InvalidValue where it ends before it begins, Refused outside."""
    begin, end = moment(first, trace, zone), moment(second, trace, zone)
    if not begin < end:
        order = "--between must be two times, the earlier one first, got "
        raise InvalidValue(
            f"{order}{first[:40]!r} and {second[:40]!r}", public=f"{order}the later one first"
        )
    for text, when in ((first, begin), (second, end)):
        _check_inside(text, when, trace)
    return Stretch("between stated times", begin, end)


def near(place: Circle, trace: Trace, *, number: int = 1) -> list[Stretch]:
    """Every visit to a place, the stated one of this number: their times depend on the trace.

    Raises Refused, without the place, where there was none.
    """
    found = visits(trace, place)
    if found:
        return [Stretch(f"near stated place {number}", *one, by_place=True) for one in found]
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

    Their times depend on the trace. Raises Refused where there is none.
    """
    found = stays(trace, within, lasts)
    if not found:
        raise Refused(
            f"--stops auto must find a stay ({lasts / 60:g} min within {within:g} m), got none in "
            "the recording: state times (--between, --at) or a place (--near), or leave --stops out"
        )
    return [Stretch("a stay that was found", *one, by_place=True) for one in found]


def ends(trace: Trace) -> list[Stretch]:
    """Both ends of the trace: first and last fix, widened over the stays that adjoin.

    Where it pauses for hours, of each outing. They depend on where the person was, and say so.
    """
    gaps, rows = np.diff(trace.seconds), np.arange(len(trace))
    usual = float(np.median(gaps)) if gaps.size else 0.0
    outings = np.split(rows, np.flatnonzero(gaps >= max(_OUTING_ENDS, _FAR_MORE * usual)) + 1)
    if len(outings) == 1:
        return _ends_of(trace, "")
    parts = (trace.only(np.isin(rows, outing)) for outing in outings)
    return [end for part in parts for end in _ends_of(part, " of an outing")]


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
    found: list[Stretch] = []
    for stay in sorted((one for one in stretches if one.is_stay), key=lambda one: one.begin):
        if found and stay.begin < found[-1].end:
            found.append(_joined(found.pop(), stay))
        else:
            found.append(stay)
    moments: dict[int, Stretch] = {}
    for one in (one for one in stretches if not one.is_stay):
        known = moments.get(one.begin)
        moments[one.begin] = _joined(known, one) if known else one
    return sorted([*found, *moments.values()], key=lambda one: (one.begin, one.end))


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to protect, as it was asked for: times in people's words, see `moment`.

    near: places of which every visit is protected. stops: every stay within so many metres and of
    so many seconds, or more, is protected; None for those that are not asked for.
    """

    at: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()
    zone: tzinfo | None = None
    near: tuple[Circle, ...] = ()
    stops: tuple[float, float] | None = None
    returns: bool = True

    @property
    def states(self) -> bool:
        """Whether it says what to protect; both ends are protected where it does not."""
        return bool(self.at or self.between or self.near or self.stops)

    def stated(self, trace: Timed) -> list[Stretch]:
        """The parts that were stated by their times."""
        stated = [at(text, trace, self.zone) for text in self.at]
        return stated + [between(*both, trace, self.zone) for both in self.between]

    def stretches(self, trace: Trace, known: Sequence[Interval] = ()) -> list[Stretch]:
        """The parts of the trace to protect; both its ends where nothing is stated.

        With every time at which the trace is at one of their places, unless `returns` is False.
        known: visits (nanoseconds) of places that are protected anyway: what is in one is left out.
        """
        parts = self._parts(trace, known)
        if not self.returns:
            return parts
        return merged(_with_returns(parts, self._places(trace, parts).times(trace), known))

    def places(self, trace: Trace) -> Places:
        """Where the protected parts of the trace are, returns left out."""
        return self._places(trace, self._parts(trace, ()))

    def _parts(self, trace: Trace, known: Sequence[Interval]) -> list[Stretch]:
        stated = self.stated(trace)
        for number, place in enumerate(self.near, start=1):
            stated += near(place, trace, number=number)
        if self.stops is not None:
            stated += stops(trace, *self.stops)
        if not stated:
            stated = [part for part in ends(trace) if not _is_covered(part, known)]
        return merged(stated)

    def _places(self, trace: Trace, parts: Sequence[Stretch]) -> Places:
        intervals = [((one.begin, one.end), not one.by_place) for one in parts]
        return places_of(trace, intervals, self.near)


def _with_returns(
    parts: Sequence[Stretch], there: Sequence[Interval], known: Sequence[Interval]
) -> list[Stretch]:
    """The parts and the times at their places: what is longer there than a part is one with it.

    parts, in order of time, as `merged` has them.
    """
    joined: set[Stretch] = set()
    visits_there: list[Stretch] = []
    when = _Overlaps([(part.begin, part.end) for part in parts])
    whose = _Overlaps(sorted(known))
    for begin, end in there:
        own = [parts[i] for i in when.rows(begin, end)]
        covered = [(part.begin, part.end) for part in own]
        covered += [whose.intervals[i] for i in whose.rows(begin, end)]
        exact = any(part.is_stay and part.by_place for part in own)
        if covered and _bare(begin, end, covered) <= (0 if exact else LEAVING * NANOSECONDS):
            continue
        joins = [part for part in own if part.is_stay or part.by_place]
        label = joins[0].label if joins else "a return to a protected place"
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


def in_words(when: int, zone: tzinfo | None = UTC) -> str:
    """A time in a zone (the computer's own for None), to the second."""
    return _shown(when, zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def _joined(one: Stretch, other: Stretch) -> Stretch:
    label = one.label if one.label == other.label else f"{one.label}, {other.label}"
    return Stretch(label, one.begin, max(one.end, other.end), one.by_place or other.by_place)


def _duration(text: str) -> int:
    parts = _AMOUNT.findall(text)
    return round(sum(Fraction(number) * _UNITS[unit] for number, unit in parts) * NANOSECONDS)


def _of_the_clock(text: str, clock: re.Match[str], trace: Timed, zone: tzinfo | None) -> int:
    hour, minute, second = (int(part or 0) for part in clock.groups())
    if hour > 23 or minute > 59 or second > 59:
        clock_times = "a clock time must be from 00:00 to 23:59:59, got "
        raise InvalidValue(f"{clock_times}{text!r}", public=f"{clock_times}another")
    candidates = _passes(timedelta(hours=hour, minutes=minute, seconds=second), trace, zone or UTC)
    listed = _listed(candidates, zone or UTC)
    if zone is None:
        raise Refused(
            f"a clock time must state its zone, got {text!r}; add --tz ZONE (in UTC it would be: "
            f"{listed})",
            public="a clock time must state its zone, got one without; add --tz ZONE",
        )
    if len(candidates) != 1:
        raise Refused(
            f"a clock time must be passed once by the recording, got {text!r} {len(candidates)} "
            f"times ({listed}); state date and offset as well",
            public="a clock time must be passed once by the recording, got one that it passes "
            f"{len(candidates)} times; state date and offset as well",
        )
    return candidates[0]


def _passes(clock: timedelta, trace: Timed, zone: tzinfo) -> list[int]:
    """The moments within the trace at which clocks in the zone show a time."""
    first, last = int(trace.times[0]), int(trace.times[-1])
    midnight = datetime.combine(_shown(first, zone).date(), datetime.min.time())
    days = range((last - first) // _DAY + 2)
    moments = [when for day in days for when in _moments(midnight + timedelta(day) + clock, zone)]
    return [when for when in moments if first <= when <= last]


def _moments(shown: datetime, zone: tzinfo) -> list[int]:
    """When clocks in a zone show a local time: once, or never or twice where they are changed."""
    found = {_nanoseconds(shown.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)}
    return sorted(when for when in found if _shown(when, zone).replace(tzinfo=None) == shown)


def _local(text: str, shown: datetime, zone: tzinfo | None) -> int:
    """A local time as a moment. Raises Refused where no zone is stated, or clocks were changed."""
    if zone is None:
        raise Refused(
            f"a time must state its zone, got {text!r}; add Z or an offset such as +02:00, or "
            "--tz ZONE",
            public="a time must state its zone, got one without; add Z or an offset such as "
            "+02:00, or --tz ZONE",
        )
    moments = _moments(shown, zone)
    if len(moments) != 1:
        raise Refused(
            f"a local time must be shown once by clocks, got {text!r} {len(moments)} times "
            f"({_listed(moments, zone)}), since they were changed; state an offset as well",
            public="a local time must be shown once by clocks, got one that they showed "
            f"{len(moments)} times, since they were changed; state an offset as well",
        )
    return moments[0]


def _listed(moments: list[int], zone: tzinfo) -> str:
    found = [_shown(when, zone).isoformat() for when in moments]
    more = ", ..." if len(found) > _MOST_LISTED else ""
    return ", ".join(found[:_MOST_LISTED]) + more or "none"


def _shown(when: int, zone: tzinfo | None) -> datetime:
    return (_EPOCH + timedelta(microseconds=when // 1000)).astimezone(zone)


def _nanoseconds(when: datetime) -> int:
    return (when.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) * 1000


def _check_inside(text: str, when: int, trace: Timed) -> None:
    first, last = int(trace.times[0]), int(trace.times[-1])
    if not first <= when <= last:
        raise Refused(
            f"a protected time must be within the recording ({in_words(first)} to "
            f"{in_words(last)}), got {text[:40]!r}",
            public="a protected time must be within the recording, got one outside of it",
        )


def within(
    times: NDArray[np.int64], stretches: Sequence[Stretch], seconds: float | None
) -> NDArray[np.bool_]:
    """Which times (n,) lie within the stated seconds of any stretch; none for None."""
    found = np.zeros(times.size, dtype=np.bool_)
    if seconds is not None:
        around = round(seconds * NANOSECONDS)
        for one in stretches:
            found |= (times >= one.begin - around) & (times <= one.end + around)
    return found
