"""Clocks: what time a kernel reads. One that stands still is somebody who stands still."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from trailveil.errors import InvalidValue

# float64 arrays, or object arrays of extended-precision numbers: no static type fits both.
Numbers: TypeAlias = Any
Clock: TypeAlias = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class StoppedClock:
    """A clock that stands still in each window [start, end] and runs on afterwards.

    A person who stands still is one whose clock has stopped: a prior on this clock has one position
    throughout each window.
    """

    windows: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        """Check the windows: finite, ordered and disjoint."""
        edges = [edge for window in self.windows for edge in window]
        in_order = all(earlier <= later for earlier, later in pairwise(edges))
        if not in_order or not all(np.isfinite(edge) for edge in edges):
            raise InvalidValue(f"windows must be finite, in order, disjoint, got {self.windows}")

    def __call__(self, times: Numbers) -> Numbers:
        """The times less the time in windows so far: exactly one value throughout a window."""
        if not self.windows:
            return times
        exact = 0 * times  # so that edges are added in the arithmetic of the times
        running = np.minimum(times, exact + self.windows[0][0])
        starts = [*(start for start, _ in self.windows[1:]), np.inf]
        for (_, end), start in zip(self.windows, starts, strict=True):
            running = running + (np.minimum(np.maximum(times, exact + end), exact + start) - end)
        return running

    def seen_on(self, clock: Clock) -> "StoppedClock":
        """The same stops, on the face of a clock that reads the times first."""
        edges = [np.asarray(clock(np.array(window)), dtype=np.float64) for window in self.windows]
        return stopped([(float(start), float(end)) for start, end in edges])


def stopped(windows: Iterable[tuple[float, float]]) -> StoppedClock:
    """A clock that stands still in each of these windows, in any order; they may overlap."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(windows):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return StoppedClock(tuple(merged))
