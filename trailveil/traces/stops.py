"""Stays: where somebody spent some minutes at one place, found in a cleaned trace.

The time is cut into short pieces, and the place of a piece is the median of its fixes, then the
median of three neighbouring pieces: a stray fix, or a few, end no stay. A window is a run of pieces
no two places of which are further apart than a stay may extend, and that lasts long enough but for
a piece at each end, which may be cut: what lasts long enough is found, and some that is a little
shorter. A stay is a union of windows that overlap, from its first fix there to its last. A gap of
the recording between two fixes at one place belongs to it, or is one. The longest recording takes
twenty passes over its pieces. Why no library does this: docs/decisions.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import number_between
from trailveil.traces.projection import MICRO, placed
from trailveil.traces.trace import NANOSECONDS, Trace

Interval = tuple[int, int]
"""First and last moment, nanoseconds since 1970 UTC."""

WITHIN = 100.0
"""Metres: no two places of some minutes of a stay are further apart."""

LASTS = 300.0
"""Seconds that a stay lasts at least."""

ABSENCE = 300.0
"""Seconds: who is back sooner has not left."""

UNSEEN = 60
"""Seconds without a fix beside a visit, in which nothing is assumed of the movement by default."""

STILL_WITHIN, STILL_FOR = 30.0, 30.0
"""Metres and seconds: who stays so near one fix for so long stands still at an end."""

STILL_BEGINS = 60.0
"""Seconds from an end, at most a quarter of the trace, within which somebody stands still there:
the first fixes of a receiver are often far off."""

STRAYED, STRAYS = 300.0, 2
"""Metres and fixes: a stay so near an end of the trace is at it, whatever strayed beyond."""

# Pieces in the shortest stay: long enough for strays to be few in one, short enough for its edges.
_PIECES = 20


def stays(trace: Trace, within: float = WITHIN, lasts: float = LASTS) -> list[Interval]:
    """Every stay of a trace, in order of time: begin and end in nanoseconds, O(n log n).

    within: metres, in the frame of the trace. lasts: seconds; stays of 0.9 times as many may be
    found, too. Begin and end are times of fixes. Two stays that are less than ABSENCE and `within`
    apart are one. Raises InvalidValue for numbers out of range, Refused for a trace that reaches
    too far for one frame.
    """
    for name, value in (("within", within), ("lasts", lasts)):
        number_between(name, value, 0.0, 1e9)
    if not len(trace):
        return []
    frame, lattice = placed(trace.positions)
    metres, seconds = lattice / MICRO, trace.seconds
    within *= (1 + frame.scale_error) / (1 + frame.SCALE_ERROR)
    first, last = _pieces(seconds, lasts / _PIECES)
    places = _without_strays(_medians(metres, first, last))
    nearby = np.hypot(*(metres - np.repeat(places, last - first + 1, axis=0)).T) <= within
    least = lasts * (1 - 2 / _PIECES)
    together = _together(seconds[first], seconds[last], places, within, least)
    stays_found = _gaps(trace, metres, within, lasts)
    for begin, end in _runs(together):
        fixes = first[begin] + np.flatnonzero(nearby[first[begin] : last[end + 1] + 1])
        if fixes.size and np.ptp(seconds[fixes[[0, -1]]]) >= least:
            moments = trace.times[fixes[[0, -1]]].tolist()
            stays_found.append(_Stay(moments[0], moments[1], places[begin], places[end + 1]))
    return _each_once(stays_found, within)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Stay:
    """Begin and end in nanoseconds; the places (2,), in metres, at either."""

    begin: int
    end: int
    came: NDArray[np.float64]
    left: NDArray[np.float64]

    def goes_on(self, other: "_Stay", within: float) -> bool:
        """Whether a later one is the same: it overlaps, or follows a short absence."""
        soon = other.begin - self.end < ABSENCE * NANOSECONDS
        near = bool(np.hypot(*(other.came - self.left)) <= within)
        return other.begin <= self.end or (soon and near)

    def until(self, other: "_Stay") -> "_Stay":
        """Both as one."""
        later = other if other.end > self.end else self
        return _Stay(self.begin, later.end, self.came, later.left)


def _each_once(stays_found: list[_Stay], within: float) -> list[Interval]:
    """In order of time, joined where one goes on."""
    joined_stays: list[_Stay] = []
    for later in sorted(stays_found, key=lambda stay: (stay.begin, stay.end)):
        goes_on = bool(joined_stays) and joined_stays[-1].goes_on(later, within)
        joined_stays.append(joined_stays.pop().until(later) if goes_on else later)
    return [(stay.begin, stay.end) for stay in joined_stays]


def _gaps(trace: Trace, metres: NDArray[np.float64], within: float, lasts: float) -> list[_Stay]:
    """Fixes of which each is where the one before was, and time enough has passed between them."""
    near = np.hypot(*np.diff(metres, axis=0).T) <= within
    return [
        _Stay(int(trace.times[i]), int(trace.times[k + 1]), metres[i], metres[k + 1])
        for i, k in _runs(near & (np.diff(trace.seconds) >= lasts))
    ]


def settled(trace: Trace) -> tuple[int, int]:
    """The last fix of where a trace begins to move, and the first of where it comes to rest.

    Each is that of a stay, or of standing still for a moment; the first and the last fix of a trace
    that does neither. All of it is one stay where the first is not before the last. Raises as
    `stays` does.
    """
    seconds, count = trace.seconds, len(trace)
    metres = placed(trace.positions)[1] / MICRO
    stayed = np.searchsorted(trace.times, np.array(stays(trace), dtype=np.int64).reshape(-1, 2))
    since_end = seconds[-1] - seconds[::-1]
    first = _stay_at_start(seconds, metres, stayed)
    last = count - 1 - _stay_at_start(since_end, metres[::-1], count - 1 - stayed[:, ::-1])
    still = first if first >= last else max(first, _still_until(seconds, metres))
    if first >= last or still == count - 1:
        return count - 1, 0
    backwards = slice(None, still, -1)  # what belongs to the start is not the end
    short = count - 1 - _still_until(seconds[-1] - seconds[backwards], metres[backwards])
    return still, max(min(last, short), still + 1)


def _stay_at_start(
    seconds: NDArray[np.float64], metres: NDArray[np.float64], stayed: NDArray[np.intp]
) -> int:
    """The last fix of the stays, first and last fix (k, 2) of each, that a trace begins with."""
    last = 0
    for begin, end in stayed[(stayed[:, 0] <= STRAYS) | (seconds[stayed[:, 0]] < ABSENCE)]:
        if np.hypot(*(np.median(metres[begin : end + 1], axis=0) - metres[0])) < STRAYED:
            last = max(last, int(end))
    return last


def _still_until(seconds: NDArray[np.float64], metres: NDArray[np.float64]) -> int:
    """The last fix of those that stay near one of the first fixes for a while; 0 where none do."""
    last, latest = 0, min(STILL_BEGINS, seconds[-1] / 4)
    anchors = np.flatnonzero(seconds <= latest)
    # Who is gone when the moment has passed has not stood still for it.
    passed = np.searchsorted(seconds, seconds[anchors] + (STILL_FOR - 1e-3))
    anchors, passed = anchors[passed < seconds.size], passed[passed < seconds.size]
    near = np.hypot(*(metres[passed] - metres[anchors]).T) <= STILL_WITHIN
    for anchor in anchors[near]:
        away = np.hypot(*(metres[anchor:] - metres[anchor]).T) > STILL_WITHIN
        until = anchor + (int(np.argmax(away)) if away.any() else away.size) - 1
        if seconds[until] - seconds[anchor] >= STILL_FOR:
            last = max(last, int(until))
    return last


def unseen(
    times: NDArray[np.int64], first: NDArray[np.intp], last: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When visits that fixes first to last (k,) show may have begun and ended, nanoseconds (k,).

    Nobody knows when somebody came and went in a gap of more than UNSEEN seconds before or after:
    such a visit is as long as the gap lasts.
    """
    before, after = np.maximum(first - 1, 0), np.minimum(last + 1, times.size - 1)
    most = UNSEEN * NANOSECONDS
    begin, end = times[first], times[last]
    return (
        np.where(begin - times[before] > most, times[before], begin),
        np.where(times[after] - end > most, times[after], end),
    )


def joined(intervals: list[Interval]) -> list[Interval]:
    """In order of time; those that are less than ABSENCE apart are one."""
    joined_intervals: list[Interval] = []
    for begin, end in sorted(intervals):
        if joined_intervals and begin - joined_intervals[-1][1] < ABSENCE * NANOSECONDS:
            joined_intervals[-1] = (joined_intervals[-1][0], max(joined_intervals[-1][1], end))
        else:
            joined_intervals.append((begin, end))
    return joined_intervals


def _pieces(
    seconds: NDArray[np.float64], length: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first and the last fix of each piece of time that has any."""
    number = np.floor(seconds / length)
    first = np.flatnonzero(np.diff(number, prepend=-1.0))
    return first, np.append(first[1:], seconds.size) - 1


def _medians(
    metres: NDArray[np.float64], first: NDArray[np.intp], last: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The lower median of each piece, (m, 2), each coordinate by itself."""
    piece = np.repeat(np.arange(first.size), last - first + 1)
    middle = (first + last) // 2
    columns = [column[np.lexsort((column, piece))][middle] for column in metres.T]
    return np.stack(columns, axis=1)


def _without_strays(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of each place and its two neighbours; the outermost as they are."""
    calm = places.copy()
    calm[1:-1] = np.median([places[:-2], places[1:-1], places[2:]], axis=0)
    return calm


def _together(
    first: NDArray[np.float64],
    last: NDArray[np.float64],
    places: NDArray[np.float64],
    within: float,
    lasts: float,
) -> NDArray[np.bool_]:
    """(m - 1,) whether a piece and the next are in one window.

    Windows of more pieces than the shortest stay can have are unions of windows that have so many.
    """
    begun = np.zeros(len(places), dtype=np.intp)  # windows that begin at a piece, less those over
    near = np.ones(len(places), dtype=np.bool_)
    for more in range(1, min(_PIECES, len(places))):
        apart = np.hypot(*(places[more:] - places[:-more]).T)
        near = near[:-1] & near[1:] & (apart <= within)
        if not near.any():
            break
        window = np.flatnonzero(near & (last[more:] - first[:-more] >= lasts))
        begun[window] += 1
        begun[window + more] -= 1
    return np.cumsum(begun)[:-1] > 0


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(int(begin), int(end) - 1) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
