"""Coarser or other times for what is released: after the noise, as times are public in the model.

The loss is computed at the true times, which the noise was made for. What is done here depends on
times alone, so it takes nothing away from a guarantee, and adds nothing to it: who knows the true
times knows what they did.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.traces.readings import Readings
from trailveil.traces.trace import NANOSECONDS, Trace

SHIFTED_TO = 946_684_800 * NANOSECONDS
"""2000-01-01T00:00:00Z, in nanoseconds since 1970: when a shifted release begins."""

_LONGEST = 86_400.0


@dataclass(frozen=True, slots=True)
class Retiming:
    """What becomes of the times of released fixes.

    step: seconds to multiples of which they are rounded, or None. shift: whether they count from
    SHIFTED_TO in place of when it was. drop: whether no times leave at all: the order of fixes
    does. Raises InvalidValue for a step outside of 0 to a day, or of less than a nanosecond, and
    for times that are both dropped and changed.
    """

    step: float | None = None
    shift: bool = False
    drop: bool = False

    def __post_init__(self) -> None:
        """Check the step, and that times are not both dropped and changed."""
        if self.drop and (self.shift or self.step is not None):
            raise InvalidValue(
                "times must be dropped, or rounded and shifted, got both: leave --drop-times out"
            )
        if self.step is not None and not 1 / NANOSECONDS <= self.step <= _LONGEST:
            raise InvalidValue(
                f"times must be rounded to at most a day ({_LONGEST:g} s), and more than nothing, "
                f"got {self.step:g} s: choose such as 60"
            )

    def times(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The new times (n,) of released fixes, nanoseconds since 1970, in their order.

        They may be equal once rounded. A shift comes first, so that rounding tells nothing of when
        in a step the recording began.
        """
        shifted = times - times[:1] + SHIFTED_TO if self.shift else times
        if self.step is None:
            return np.asarray(shifted)
        step = round(self.step * NANOSECONDS)
        return np.asarray((shifted + step // 2) // step * step)

    def kept(self, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which fixes are released (n,): of several at one new time the first."""
        retimed_times = self.times(times)
        return (
            np.concatenate([[True], retimed_times[1:] > retimed_times[:-1]])
            if retimed_times.size
            else retimed_times > 0
        )


T = TypeVar("T", Trace, Readings)

AS_RECORDED = Retiming()
"""Times as they are."""


def retimed(trace: T, grid: NDArray[Any], retiming: Retiming) -> tuple[T, NDArray[Any]]:
    """A released trace, or readings, and its grid (n, ...), at its new times, each once."""
    if retiming == AS_RECORDED:
        return trace, grid
    kept_rows = retiming.kept(trace.times)
    part = trace.only(kept_rows)
    if retiming.drop and isinstance(part, Trace):
        return replace(part, timed=False), grid
    return replace(part, times=retiming.times(trace.times)[kept_rows]), grid[kept_rows]
