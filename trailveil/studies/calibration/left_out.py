"""Fixes of a recording that are to be predicted, each with the fixes that may be looked at.

A fix is left out with all others nearer in time than a gap, on both sides. What is kept is thinned
with its distance, so that the work for one does not grow with the recording: an interval that is
conditional on some of the fixes must hold what it promises as well as one that is conditional on
all. For the same reason the pace is that of the kept fixes: under a Gaussian prior the error is
independent of them, so whatever is chosen by them must be covered at the nominal rate, while what
is chosen by the fix that is left out need not be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray

PACES: Final = {"still": 0.0, "walking": 0.6, "cycling": 2.0, "driving": 6.0, "fast": 25.0}
"""Metres a second from which on a pace is called so. Still: standing or strolling; fast: trains."""

MOST_PER_SERIES: Final = 12
"""Fixes of a series that are predicted for each gap, evenly in time."""

SLACK: Final = 60.0
"""Seconds: how much further than the gap the nearest kept fix may be, on either side."""

_KEPT = 32  # fixes on each side
_REACH = 1_000  # of so many: the nearest as they are, further ones ever more thinned
_SEEN, _CHORD = 120.0, 20.0  # seconds of each side that tell the pace, and of one step of it
_LEAST_SEEN = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """One fix to be predicted.

    times: (k,) seconds of the kept fixes, increasing. values: (k, d), theirs. time, value (d,): of
    the fix itself. gap: seconds within which everything was left out, 0 for the fix alone. speed:
    metres a second of what is seen within 120 s of the gap, in steps of 20 s.
    """

    times: FloatArray
    values: FloatArray
    time: float
    value: FloatArray
    gap: float
    speed: float

    @property
    def pace(self) -> str:
        """The name of the pace: of PACES."""
        return pace_of(self.speed)


def pace_of(speed: float) -> str:
    """The name of a speed in metres a second: of PACES."""
    return [name for name, least in PACES.items() if speed >= least][-1]


def left_out(
    times: FloatArray, values: FloatArray, gaps: Sequence[float], most: int = MOST_PER_SERIES
) -> list[LeftOut]:
    """The fixes of a series to predict, at most `most` for each gap, by gap and time.

    times: (n,) seconds, increasing. values: (n, d). A fix counts for a gap where on each side the
    nearest kept one is no further than the gap and SLACK, and where a pace is seen. Raises
    InvalidValue for other shapes or a gap below 0.
    """
    if times.ndim != 1 or values.ndim != 2 or len(times) != len(values):
        raise InvalidValue(
            f"a series must have one row of values for each time, got shapes {times.shape} and "
            f"{values.shape}"
        )
    if not all(0 <= gap < np.inf for gap in gaps):
        raise InvalidValue(f"gaps must be 0 s or more, got {', '.join(f'{g:g}' for g in gaps)}")
    cases_left_out = []
    for gap in gaps:
        rows = _candidates(times, gap)
        if len(rows) > most:
            evenly = np.linspace(times[rows[0]], times[rows[-1]], most)
            nearest = np.searchsorted((times[rows][1:] + times[rows][:-1]) / 2, evenly)
            rows = rows[np.unique(nearest)]
        cases = (_left_out(times, values, int(row), gap) for row in rows)
        cases_left_out += [case for case in cases if case is not None]
    return cases_left_out


def _edges(times: FloatArray, rows: NDArray[np.intp], gap: float) -> tuple[NDArray[np.intp], ...]:
    """The last row kept before each of these rows, and the first one after; -1 and n for none."""
    before = np.searchsorted(times, times[rows] - gap, side="right") - 1
    after = np.searchsorted(times, times[rows] + gap, side="left")
    return np.minimum(before, rows - 1), np.maximum(after, rows + 1)


def _candidates(times: FloatArray, gap: float) -> NDArray[np.intp]:
    rows = np.arange(len(times))
    before, after = _edges(times, rows, gap)
    inside = (before >= 0) & (after < len(times))
    rows, before, after = rows[inside], before[inside], after[inside]
    near = times[rows] - times[before] <= gap + SLACK
    return rows[near & (times[after] - times[rows] <= gap + SLACK)]


def _left_out(times: FloatArray, values: FloatArray, row: int, gap: float) -> LeftOut | None:
    before, after = (int(edge[0]) for edge in _edges(times, np.array([row]), gap))
    before_row = np.arange(before, max(before - _REACH, -1), -1)
    right = np.arange(after, min(after + _REACH, len(times)))
    length, seconds = np.sum([_seen(times, values, side) for side in (before_row, right)], axis=0)
    if seconds < _LEAST_SEEN:
        return None
    rows_around = np.concatenate(
        [before_row[_ranks(before_row.size)][::-1], right[_ranks(right.size)]]
    )
    speed = float(length / seconds)
    return LeftOut(
        times[rows_around], values[rows_around], float(times[row]), values[row], gap, speed
    )


def _ranks(count: int) -> NDArray[np.intp]:
    """Ranks of the kept ones of `count` fixes on one side, from the nearest (0) outwards."""
    if count <= _KEPT:
        return np.arange(count)
    spread = np.round(np.geomspace(1, count, _KEPT)).astype(np.intp)
    return np.maximum(spread, np.arange(1, _KEPT + 1)) - 1


def _seen(times: FloatArray, values: FloatArray, side: NDArray[np.intp]) -> tuple[float, float]:
    """Metres and seconds of the chords seen on one side: its rows, from the nearest outwards."""
    apart = np.abs(times[side] - times[side[0]])
    steps = np.searchsorted(apart, np.arange(0, _SEEN + _CHORD / 2, _CHORD))
    steps = np.unique(steps[steps < np.count_nonzero(apart <= _SEEN)])
    chords = np.diff(values[side[steps]], axis=0)
    return float(np.sum(np.linalg.norm(chords, axis=1))), float(apart[steps[-1]])
