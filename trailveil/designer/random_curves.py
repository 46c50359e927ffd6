"""Noise around protected windows, as random curves: the factor of it at fixes, and its digits.

A release whose designs are known takes this, and not what designs them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots, rows_within

VERSION = 1
"""Of how such noise is proved and kept."""
NOISE_DIGITS, TRACK_DIGITS = (16, 26), (16, 26)
"""Binary digits after the point of values and slopes, of noise (metres) and of tracks."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowNoise:
    """Noise around a window: metres, for one coordinate.

    knots: of each side. even: (size, size) factor of the sum of both sides, the value at the window
    first. odd: (size - 1, size - 1) of their difference; None where there is one side. proof: what
    `trailveil.privacy.checker` reads. gap: how far above the least of such noise, relative.
    """

    knots: Knots
    even: FloatArray
    odd: FloatArray | None
    proof: dict[str, Any]
    gap: float

    @property
    def size(self) -> int:
        """How many random numbers it takes."""
        return int(self.even.shape[1] + (0 if self.odd is None else self.odd.shape[1]))

    def columns(self, before: FloatArray, after: FloatArray, *, slopes: bool = False) -> FloatArray:
        """The factor (n, r) at times so many seconds before and after the window.

        Both are 0 within it. Where there is one side, the other's seconds are not looked at:
        nothing may be released there. slopes: how fast it changes with time (1 / s) instead.
        """
        rows = self.knots.rows(np.maximum(before, after), slopes=slopes)
        side = np.where(before > after, -1.0, 1.0)[:, None]
        even = rows @ self.even
        if slopes:  # that of what is the same on both sides has two signs
            even *= side
        if self.odd is None:
            return even
        odd = rows[:, 1:] @ self.odd
        return np.hstack([even, odd if slopes else side * odd])


def together(
    seconds: FloatArray, spans: Sequence[tuple[float, float]], noises: Sequence[WindowNoise]
) -> FloatArray:
    """The factor (n, r) of independent noises, read-only: zeros that take no memory but near each.

    seconds: (n,) of fixes, in order. spans: begin and end of each window, with its noise.
    """
    whole = np.zeros((seconds.size, sum(noise.size for noise in noises)))
    used = 0
    for (begin, end), noise in zip(spans, noises, strict=True):
        near = rows_within(seconds, (begin, end), noise.knots.end)
        before, after = np.maximum(begin - seconds[near], 0.0), np.maximum(seconds[near] - end, 0.0)
        whole[near, used : used + noise.size] = noise.columns(before, after)
        used += noise.size
    whole.flags.writeable = False
    return whole


def few_digits(numbers: FloatArray, digits: tuple[int, int], slope: int) -> FloatArray:
    """Values and slopes by rows with few binary digits: their fractions are short."""
    unit = units(numbers.shape, digits, slope)
    return np.asarray(np.round(numbers * unit) / unit)


def units(shape: tuple[int, ...], digits: tuple[int, int], slope: int) -> FloatArray:
    """What makes whole numbers of values and slopes by rows with so many binary digits.

    slope: 0 where the first row is a value of the edge, 1 where it is the first knot's value.
    """
    rows = np.arange(shape[0]) + slope
    powers = np.where((rows > 0) & (rows % 2 == 0), digits[1], digits[0]).astype(np.float64)
    return np.asarray((2.0**powers).reshape(-1, *[1] * (len(shape) - 1)))
