"""Recordings on a clock, for tests of designs of kinds."""

from collections.abc import Iterable

import numpy as np

from trailveil.release import Plan, Request, plan
from trailveil.selection import Stretch
from trailveil.trace import NANOSECONDS, Trace

BEGIN = 1_715_672_400 * NANOSECONDS
STEP = 30


def recording(
    before: float,
    length: float,
    after: float,
    *,
    step: float = STEP,
    without: Iterable[float] = (),
    offset: float = 0.0,
) -> tuple[Trace, Stretch]:
    """Fixes every step (seconds) around a part, all at one place.

    without: some of them, by their seconds from where it begins. offset: seconds by which all of
    them are later than that.
    """
    first, last = -int(before // step), int((length + after) // step)
    seconds = np.arange(first, last + 1) * step
    seconds = seconds[~np.isin(seconds, list(without))]
    times = BEGIN + np.round((seconds + offset) * NANOSECONDS).astype(np.int64)
    count = times.size
    trace = Trace(times, np.full((count, 2), 46.2), np.zeros(count, np.intp), (0,))
    return trace, Stretch("tested", BEGIN, BEGIN + round(length * NANOSECONDS))


def planned(trace: Trace, part: Stretch, **more: object) -> Plan:
    """The release of one part."""
    return plan(trace, Request((part,), **more))  # type: ignore[arg-type]  # fields of a request
