"""What is exact in a recording beyond its grid, and so impossible by a prior with white noise.

Short filled-in lines, short filters, and repeats where somebody stands still, are hidden by
independent noise. A long steady line, a long filter, repeats on the way, a road that fixes were
snapped to, and times that tell how far somebody went are hidden by none. A cut hides them all, if
no fix was computed of others that are further away than it is uncertain of its ends.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.traces.grid import METRES_A_DEGREE, Grid, position_grid
from trailveil.traces.trace import Trace

# Metres, and steps of the grid: what is off by less is on a line. A step must be so many times as
# long for that to say anything; so many fixes in a row make it no chance.
_OFF, _ROUNDED, _LONGER, _ROW = 0.05, 0.75, 4.0, 3
# Fixes of which a rule can be told; the share of a distance that fixes are apart to, how many must
# be, and how much times must vary, relative to their median.
_ENOUGH, _ALIKE, _MOST, _VARIES = 20, 0.05, 0.8, 0.2
# The share of a distance that steps at one speed differ by, beyond rounding: a chord is as much
# shorter than its arc where a curve turns by 28 degrees from fix to fix.
_STEADY = 0.01
# The shares of fixes on steady lines, if one lasts so many seconds, and on lines at any pace, that
# are no ordinary road; seconds of a steady line that is none by itself.
_FILLED_IN, _LASTS, _SNAPPED, _LONG = 0.2, 30.0, 0.5, 120.0
# The share of fixes that are repeated on the way: where the next place is so many metres a second
# from the one that is repeated.
_HELD, _MOVES = 0.05, 0.3
# Mean squares of second differences of how people move grow with the third power of the time
# between fixes, and of a moving average with the fourth, up to its window over the third of these
# numbers. The second is what no average has.
_SMOOTH, _ERRATIC, _OF_WINDOW = 3.4, 4.3, 2.7
# Second differences of which a mean is taken, at least; how alike their times must be.
_DIFFERENCES, _EVEN = 50, 0.1
# Seconds of a filter that independent noise hides, and how much longer others are taken to be.
_HIDDEN, _SURELY = 30.0, 1.25


@dataclass(frozen=True, slots=True)
class Structure:
    """What is exact in a recording: how many of its fixes.

    repeated: at the place of the fix before. held: of these, on the way. straight: on a line at a
    steady pace. longest: seconds on one such line. snapped: on a line, at another pace. apart:
    metres that fixes are apart where they were recorded by distance, else 0. hold: seconds of the
    longest repeat on the way. window: seconds of the moving average that it may be, or 0. speed:
    m/s, of a recording at one speed all along, else 0.
    """

    fixes: int = 0
    repeated: int = 0
    held: int = 0
    straight: int = 0
    longest: float = 0.0
    snapped: int = 0
    apart: float = 0.0
    hold: float = 0.0
    window: float = 0.0
    speed: float = 0.0

    @property
    def smoothed(self) -> bool:
        """Whether it may be smoothed by a filter that independent noise does not hide."""
        return self.window > _SURELY * _HIDDEN

    @property
    def reach(self) -> float:
        """Seconds to other fixes that a fix may be computed of, a little less if not known."""
        filled_in = self.longest if self.filled_in else 0.0
        return max(filled_in, self.hold if self.repeats else 0.0, self.window / _SURELY)

    @property
    def filled_in(self) -> bool:
        """Whether steady lines are much of it, or long."""
        many = self.straight > _FILLED_IN * self.fixes and self.longest >= _LASTS
        return many or self.longest > _LONG

    @property
    def repeats(self) -> bool:
        """Whether positions are repeated on the way, often enough to tell how noise changes."""
        return self.held > _HELD * self.fixes

    @property
    def on_a_map(self) -> bool:
        """Whether most of it lies on lines."""
        return self.snapped > _SNAPPED * self.fixes


def structure_of(trace: Trace, grid: Grid | None = None) -> Structure:
    """What is exact in a trace, in O(n). grid: that of its positions, where it is known."""
    count = len(trace)
    if count < _ROW + 2:
        return Structure(count)
    degrees = trace.positions - trace.positions[0]
    degrees[:, 1] = (degrees[:, 1] + 180) % 360 - 180
    across = np.cos(np.radians(float(np.median(trace.positions[:, 0]))))
    places = degrees * METRES_A_DEGREE * np.array([1.0, across])
    limit = max(_OFF, _ROUNDED * (grid or position_grid(trace.positions)).metres)
    steps = np.diff(places, axis=0)
    lengths = np.hypot(*steps.T)
    steady, straight = _on_lines(trace.seconds, places, limit)
    moving = np.minimum(lengths[1:], lengths[:-1]) > _LONGER * limit
    lines = _in_rows(steady & moving)
    held, hold = _held(lengths, trace.seconds, limit)
    whole = trace.seconds[2:] - trace.seconds[:-2]
    return Structure(
        count,
        int(np.sum(lengths == 0)),
        held,
        int(lines.sum()),
        _longest(lines, trace.seconds) if np.any(lines) else 0.0,
        int(_in_rows(straight & ~steady & moving & (whole > 0)).sum()),
        _apart(lengths, np.diff(trace.seconds), limit),
        hold,
        _window(trace.seconds, places),
        _speed(lengths, np.diff(trace.seconds), limit),
    )


def _held(lengths: FloatArray, times: FloatArray, limit: float) -> tuple[int, float]:
    """How many fixes repeat a place that somebody moves on from before long; and how long."""
    moves = np.flatnonzero(lengths > 0)
    starts = np.concatenate([[0], moves[:-1] + 1]) if moves.size else moves
    speeds = lengths[moves] / (times[moves + 1] - times[starts])
    on_the_way = (speeds > _MOVES) & (lengths[moves] > _LONGER * limit)
    longest = np.max((times[moves] - times[starts])[on_the_way], initial=0.0)
    return int(np.sum((moves - starts)[on_the_way])), float(longest)


def _window(times: FloatArray, places: FloatArray) -> float:
    """Seconds of the moving average that most of places (n, 2) may be; 0 for none."""
    between, apart = float(np.median(np.diff(times))), 1
    squares: list[float] = []
    while 2 * apart < times.size:
        steps = times[apart:] - times[:-apart]
        even = np.abs(steps - apart * between) <= _EVEN * apart * between
        whole = even[apart:] & even[:-apart]
        if int(whole.sum()) < _DIFFERENCES:
            break
        bends = places[2 * apart :] - 2 * places[apart:-apart] + places[: -2 * apart]
        squares.append(float(np.mean(np.sum(bends[whole] ** 2, axis=1))))
        apart *= 2
    if len(squares) < 3 or min(squares) <= 0:
        return 0.0
    slopes = np.diff(np.log2(squares))
    smooth = (slopes >= _SMOOTH) & (slopes <= _ERRATIC)
    # Of one time between fixes alone, it may be chance.
    last = np.flatnonzero(smooth[:-1] & smooth[1:]) + 1
    if last.size == 0:
        return 0.0
    top = int(last[-1])
    after = slopes[top + 1] if top + 1 < slopes.size else slopes[top]
    more = (slopes[top] - _SMOOTH) / (slopes[top] - after) if after < _SMOOTH else 1.0
    return _OF_WINDOW * between * float(2.0 ** (top + more))


def _on_lines(
    times: FloatArray, places: FloatArray, limit: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which fixes are where a steady pace between their neighbours has them, and on their line."""
    before, here, after = places[:-2], places[1:-1], places[2:]
    share = ((times[1:-1] - times[:-2]) / (times[2:] - times[:-2]))[:, None]
    steady = np.hypot(*(here - before - share * (after - before)).T) <= limit
    way, off = after - before, here - before
    across = np.abs(way[:, 0] * off[:, 1] - way[:, 1] * off[:, 0])
    return steady, across <= limit * np.hypot(*way.T)


def _in_rows(marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Those that are in a row of at least _ROW."""
    edges = np.flatnonzero(np.diff(marked.astype(np.int8), prepend=0, append=0))
    in_row = np.zeros_like(marked)
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        in_row[begin:end] = end - begin >= _ROW
    return in_row


def _longest(lines: NDArray[np.bool_], times: FloatArray) -> float:
    """Seconds of the longest row of fixes between neighbours (n - 2,), these included."""
    edges = np.flatnonzero(np.diff(lines.astype(np.int8), prepend=0, append=0))
    return float(np.max(times[edges[1::2] + 1] - times[edges[::2]]))


def _apart(lengths: FloatArray, between: FloatArray, limit: float) -> float:
    """The distance that most fixes are apart, at times that vary; 0 for none."""
    if lengths.size < _ENOUGH:
        return 0.0
    middle = float(np.median(lengths))
    alike = np.mean(np.abs(lengths - middle) <= _ALIKE * middle)
    varies = float(np.median(np.abs(between - np.median(between)))) > _VARIES * float(
        np.median(between)
    )
    return middle if middle > _LONGER * limit and alike >= _MOST and varies else 0.0


def _speed(lengths: FloatArray, between: FloatArray, limit: float) -> float:
    """The speed that most steps have, to the rounding of the grid; 0 for none."""
    timed = between > 0
    lengths, between = lengths[timed], between[timed]
    if lengths.size < _ENOUGH:
        return 0.0
    speed = float(np.median(lengths / between))
    steady = speed * between
    alike = np.mean(np.abs(lengths - steady) <= limit + _STEADY * steady)
    return speed if float(np.median(steady)) > _LONGER * limit and alike >= _MOST else 0.0
