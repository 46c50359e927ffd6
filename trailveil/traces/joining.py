"""Segments and laps of what is left of a trace: where they begin inside a cut tells nothing.

A segment or a lap begins only between two fixes that were recorded one after the other and are both
released. What begins inside a cut, or at its edge, is part of what was before it: neither when in
the cut somebody paused or pressed a button, nor whether they did, can be told from what leaves. A
new track is one in any case.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.traces.trace import Trace


def cut_out(trace: Trace, released: NDArray[np.bool_]) -> Trace:
    """The released fixes (n,) of a trace.

    Where segments follow one another in time, their bounds and those of laps are a function of
    `released`, of the tracks, and of bounds between two released fixes with none between.
    """
    part, rows = trace.only(released), np.flatnonzero(released)
    if rows.size == len(trace):
        return part
    owners = np.array(trace.tracks, dtype=np.intp)[part.segments]
    across = (np.diff(rows) > 1) & (np.diff(owners) == 0)
    return replace(part, segments=_joined(part.segments, across), laps=_joined(part.laps, across))


def _joined(numbers: NDArray[np.intp], across: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Numbers of what fixes (m,) belong to, those on both sides of a cut (m - 1,) as one.

    What has fixes on both sides of another's bound stays as it is: they do not follow in time.
    """
    if not numbers.size:
        return numbers
    known, first = np.unique(numbers, return_index=True)
    last = numbers.size - 1 - np.unique(numbers[::-1], return_index=True)[1]
    of = np.searchsorted(known, numbers)
    new = known.copy()
    for at in np.flatnonzero(across & (np.diff(numbers) != 0)).tolist():
        before, after = of[at], of[at + 1]
        if last[before] == at and first[after] == at + 1:
            new[after] = new[before]
    return np.asarray(new[of])
