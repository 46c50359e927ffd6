"""Cutting long series into windows that a likelihood can be computed of."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray

Rows: TypeAlias = NDArray[np.intp]


def cut(times: ArrayLike, window: float, points: int, gap: float = np.inf) -> list[Rows]:
    """Rows of each window of times (n,) increasing, at most `points` of them, evenly thinned.

    A window is as long as it can be, up to `window` seconds from its first point, and ends before a
    pause of more than `gap` seconds. Windows do not overlap. Raises InvalidValue for limits that
    are not positive.
    """
    if not (window > 0 and points > 1 and gap > 0):
        raise InvalidValue(
            "a window must be longer than 0 s, with two points or more and a pause over 0 s, got "
            f"{window:g} s, {points} points, {gap:g} s"
        )
    seconds = np.asarray(times, dtype=np.float64)
    return list(_windows(seconds, window, points, gap))


def _windows(seconds: FloatArray, window: float, points: int, gap: float) -> Iterator[Rows]:
    breaks = np.append(np.flatnonzero(np.diff(seconds) > gap) + 1, len(seconds))
    first = 0
    while first < len(seconds):
        end = int(np.searchsorted(seconds, seconds[first] + window, side="right"))
        end = min(end, int(breaks[np.searchsorted(breaks, first, side="right")]))
        count = min(points, end - first)
        yield first + np.round(np.linspace(0, end - first - 1, count)).astype(np.intp)
        first = end
