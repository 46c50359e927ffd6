"""The part of a trace around a protected one that is cut: a window, and how far beyond it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.movement import Movement, least_cut
from trailveil.traces.projection import MICRO
from trailveil.traces.returns import in_space
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

# Seconds from which on a part is a stay, and no stop on a way that goes on.
_STAY = 180
# Metres: protected parts of one recording that are this near, or within the radius, may be one.
_ONE_PLACE = 500.0


@dataclass(frozen=True, slots=True)
class Paces:
    """The least that a person moves: outward from an end of a recording, and through its middle.

    A person who goes on and on through a place gives more of it away on both sides together than
    two separate ways would: see docs/activities.md. After a stay the way is another one.
    """

    end: Movement
    middle: Movement

    def around(self, stretch: Stretch, sides: int) -> Movement:
        """The movement to reckon with around a part that has so many sides."""
        # After so long a stay, the way there and the way on are two.
        stay = stretch.end - stretch.begin >= _STAY * NANOSECONDS
        return self.middle if sides > 1 and not stay else self.end


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a trace with what is uncertain around it. before, after: (n,) seconds to it."""

    stretch: Stretch
    before: FloatArray
    after: FloatArray
    inside: NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace, stretch: Stretch, uncertain: float) -> "Window":
        """The window of a stretch. uncertain: seconds around it that belong to it."""
        begin, end = stretch.seconds(trace)
        begin, end = begin - uncertain, end + uncertain
        before = np.maximum(begin - trace.seconds, 0.0)
        after = np.maximum(trace.seconds - end, 0.0)
        return cls(stretch, before, after, stretch.rows(trace))

    @property
    def silence(self) -> float:
        """Seconds beyond the window to the nearest fix that is recorded."""
        return float(np.min(np.maximum(self.before, self.after)))

    def variance(self, paces: Paces, seconds: float) -> float:
        """Square metres per coordinate that a cut of so many seconds beyond the window leaves."""
        sides = self.sides(seconds)
        return paces.around(self.stretch, sides).bridged(seconds) / sides

    def sides(self, silent: float = 0.0) -> int:
        """How many sides are recorded beyond so many seconds: at least 1 is reckoned with."""
        if not self.before.size:
            return 1
        return max(1, int(self.before[0] > silent) + int(self.after[-1] > silent))

    def least_cut(self, paces: Paces, variance: float) -> float:
        """Seconds outward from the window of which nothing may be released.

        variance: square metres per coordinate that must be left.
        """
        short = least_cut(paces.end, variance, 1)
        if self.sides(short) < 2:
            return short
        return max(short, least_cut(paces.around(self.stretch, 2), variance, 2))

    def within(self, seconds: float) -> NDArray[np.bool_]:
        """The fixes in the window and so many seconds outward (n,)."""
        return np.asarray(np.maximum(self.before, self.after) <= seconds)


def at_one_place(trace: Trace, stretches: Sequence[Stretch], radius: float) -> list[int]:
    """Of each part, the number of the place that it may be at: the same where they may be one."""
    where, near = in_space(trace.positions), max(_ONE_PLACE, radius)
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
