"""False tracks: changes of a true track around a protected window, as curves between knots.

A false track phi is 1 m all over the window (the whole window lies elsewhere, shifted) and fades to
0 outside. On one side it is a cubic Hermite curve of the seconds u outward from the window's edge:
given by its value at the edge, where its slope is 0, by value and slope at each inner knot, and 0
with slope 0 from the last knot on. The noise of a part is a random curve of the same kind.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray


@dataclass(frozen=True, slots=True)
class Knots:
    """Where the curves of one side bend: whole seconds outward from a window's edge.

    seconds: growing, from 0 to where curves end. Raises InvalidValue for others.
    """

    seconds: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the seconds."""
        growing = all(a < b for a, b in zip(self.seconds, self.seconds[1:], strict=False))
        if len(self.seconds) < 2 or self.seconds[0] != 0 or not growing:
            raise InvalidValue(f"knots must grow from 0, got {self.seconds}")

    @property
    def size(self) -> int:
        """How many coefficients a curve has: the value at the edge, two at each inner knot."""
        return 2 * len(self.seconds) - 3

    @property
    def end(self) -> int:
        """Seconds from the edge beyond which every curve is 0."""
        return self.seconds[-1]

    def before(self, seconds: float) -> int:
        """How many coefficients belong to knots nearer to the edge than so many seconds."""
        return 2 * sum(0 < knot < seconds for knot in self.seconds) + 1

    def rows(self, away: ArrayLike, *, slopes: bool = False) -> FloatArray:
        """The value of each coefficient's curve at times so many seconds outward: (n, size).

        At 0 and below, inside the window, that is the value at the edge. slopes: its slope (1 / s)
        in place of the value.
        """
        u = np.clip(np.asarray(away, dtype=np.float64), 0.0, float(self.end))
        knots = np.asarray(self.seconds, dtype=np.float64)
        piece = np.clip(np.searchsorted(knots, u, side="right") - 1, 0, knots.size - 2)
        h = np.diff(knots)[piece]
        z = (u - knots[piece]) / h
        shapes = (
            (1 + 2 * z) * (1 - z) ** 2,
            h * z * (1 - z) ** 2,
            z**2 * (3 - 2 * z),
            -h * z**2 * (1 - z),
        )
        if slopes:
            rise = 6 * z * (1 - z) / h
            shapes = (-rise, (1 - z) * (1 - 3 * z), rise, z * (3 * z - 2))
        # The slope at the edge, and the two zeros at the end, have no column of their own.
        column = np.full(2 * knots.size, self.size)
        column[self._coefficients] = np.arange(self.size)
        out = np.zeros((u.size, self.size + 1))
        places = (self.size + 1) * np.arange(u.size)
        for offset, shape in enumerate(shapes):
            out.ravel()[places + column[2 * piece + offset]] = shape
        return out[:, : self.size]

    def forms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The integrals of phi^2, phi'^2 and phi''^2 over one side, as (size, size) matrices."""
        whole = np.zeros((3, 2 * len(self.seconds), 2 * len(self.seconds)))
        forms = pieces(np.diff(np.asarray(self.seconds, dtype=np.float64)))
        for i in range(forms.shape[-1]):
            whole[:, 2 * i : 2 * i + 4, 2 * i : 2 * i + 4] += forms[..., i]
        value, slope, bend = whole[:, self._coefficients][:, :, self._coefficients]
        return value, slope, bend

    @property
    def _coefficients(self) -> NDArray[np.intp]:
        """Of value and slope at every knot, those that are not zero for every curve."""
        return np.array([0, *range(2, 2 * len(self.seconds) - 2)])


def rows_within(seconds: FloatArray, span: tuple[float, float], around: float) -> slice:
    """Which of the times (n,), in order, lie in a window, or so many seconds outward from it."""
    begin, end = span
    first = bisect_left(seconds, True, key=lambda time: begin - time <= around)
    return slice(first, bisect_left(seconds, True, lo=first, key=lambda time: time - end > around))


def pieces(h: FloatArray) -> FloatArray:
    """The three integrals over pieces of h (p,) seconds, of (value, slope) at their two ends.

    (3, 4, 4, p): of phi^2, phi'^2 and phi''^2.
    """
    unit = np.ones_like(h)
    value = np.array(
        [
            [156 * unit, 22 * h, 54 * unit, -13 * h],
            [22 * h, 4 * h**2, 13 * h, -3 * h**2],
            [54 * unit, 13 * h, 156 * unit, -22 * h],
            [-13 * h, -3 * h**2, -22 * h, 4 * h**2],
        ]
    )
    slope = np.array(
        [
            [36 * unit, 3 * h, -36 * unit, 3 * h],
            [3 * h, 4 * h**2, -3 * h, -(h**2)],
            [-36 * unit, -3 * h, 36 * unit, -3 * h],
            [3 * h, -(h**2), -3 * h, 4 * h**2],
        ]
    )
    bend = np.array(
        [
            [12 * unit, 6 * h, -12 * unit, 6 * h],
            [6 * h, 4 * h**2, -6 * h, 2 * h**2],
            [-12 * unit, -6 * h, 12 * unit, -6 * h],
            [6 * h, 2 * h**2, -6 * h, 4 * h**2],
        ]
    )
    return np.array([value * h / 420, slope / (30 * h), bend / h**3])
