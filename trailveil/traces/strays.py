"""Fixes that are surely off: of a clock that was wrong, or thrown to where nobody gets so fast.

Both are sure only where they are few, beside most fixes that agree: a twentieth of them, or one.
More may be the truth, such as an archive of many years, and are kept.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trailveil.traces.projection import metres_between

FASTEST = 350.0
"""Metres a second: no person moves so fast from one fix to the next; an airliner does 250."""

_THROWN = 100_000.0  # metres: what jumps so far and back was never there
_YEAR = np.timedelta64(366, "D")
_FEW, _ENOUGH = 0.05, 5

Rows = NDArray[np.intp]


def of_other_years(times: NDArray[np.datetime64]) -> Rows:
    """The few times of (n,) that are more than a year from most, with none between."""
    order = np.argsort(times, kind="stable")
    pieces = np.split(order, np.flatnonzero(np.diff(times[order]) > _YEAR) + 1)
    most = _longest(pieces)
    return _if_few([piece for i, piece in enumerate(pieces) if i != most], len(times))


def thrown(times: NDArray[np.datetime64], positions: NDArray[np.float64]) -> Rows:
    """The few fixes of (n,) that are far from those around, before and after.

    positions: (n, 2), latitude and longitude in degrees.
    """
    order = np.argsort(times, kind="stable")
    jumps = _too_far(times, positions, order[:-1], order[1:])
    pieces = np.split(order, np.flatnonzero(jumps) + 1)
    most = _longest(pieces)
    off: list[Rows] = []
    last = pieces[most]
    for piece in pieces[most + 1 :]:  # what cannot be reached from what is right is off
        if _too_far(times, positions, last[-1:], piece[:1])[0]:
            off.append(piece)
        else:
            last = piece
    last = pieces[most]
    for piece in pieces[:most][::-1]:
        if _too_far(times, positions, piece[-1:], last[:1])[0]:
            off.append(piece)
        else:
            last = piece
    return _if_few(off, len(times))


def _too_far(
    times: NDArray[np.datetime64], positions: NDArray[np.float64], before: Rows, after: Rows
) -> NDArray[np.bool_]:
    """Whether it is too far from fixes to later ones, for the time between."""
    metres = metres_between(positions[before], positions[after])
    seconds = (times[after] - times[before]) / np.timedelta64(1, "s")
    return np.asarray((metres >= _THROWN) & (metres >= FASTEST * seconds))


def _longest(pieces: Sequence[Rows]) -> int:
    return max(range(len(pieces)), key=lambda i: len(pieces[i]))


def _if_few(pieces: Sequence[Rows], count: int) -> Rows:
    """The rows of pieces, none where they are more than surely are off."""
    rows = np.concatenate([*pieces, np.empty(0, dtype=np.intp)])
    sure = len(rows) <= max(1, _FEW * count) and count - len(rows) >= _ENOUGH
    return rows if sure else rows[:0]
