"""Which fix of the original a fix of a release is: by time, by shifted time, or by order.

Times are public, so most releases have them as they were. A constant shift of all of them hides
nothing, and is found here as anyone could find it: by the pattern of the intervals, and by fixes
that were not moved.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from trailveil.traces.projection import microdegrees
from trailveil.traces.retiming import SHIFTED_TO, Retiming
from trailveil.traces.trace import NANOSECONDS, Recording, Trace


class LeakKind(StrEnum):
    """What leaked, in words that need no more."""

    UNMOVED = "protected fixes where they were recorded"
    NEARLY = "protected fixes within 1 m of where they were recorded"
    HALF_MOVED = "protected fixes of which one coordinate is as recorded"
    PLACE = "coordinates of a protected fix"
    RETURN = "fixes within 50 m of a protected place, moved by less than 25 m"
    COORDINATE = "coordinates of the original"
    TEXT = "text of the original"
    NUMBER = "numbers of the original"
    FIELD = "what no release has: a field, a name, a comment"
    STRAY = "positions, times or segment numbers that belong to no fix"
    FINE = "coordinates finer than the public grid of 1e-6 degree"
    DIGITS = "coordinates in digits that no release has"
    UNCOMPARED = "fixes at times that the original does not have"


@dataclass(frozen=True, slots=True)
class Leak:
    """One kind of leak at one place of the released file.

    where: in words that tell nothing of the leak itself. count: how many. leaked: some of the
    values, for the owner alone; they are not printed with the rest.
    """

    kind: LeakKind
    where: str
    count: int
    leaked: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Moved:
    """How many fixes were compared with the original, and how many were hardly moved.

    unmoved: at the same coordinates of the grid; below_1, below_10: by less than so many metres,
    those unmoved among them.
    """

    compared: int = 0
    unmoved: int = 0
    below_1: int = 0
    below_10: int = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """All that was found. leaks: each of them fails; notes: what is worth knowing.

    recorded, released: fixes of the two files. protected: fixes of the original that had to be.
    every, of_protected: how far fixes are moved, of all that were compared and of the protected.
    """

    leaks: tuple[Leak, ...]
    notes: tuple[str, ...]
    recorded: int
    released: int
    protected: int
    every: Moved
    of_protected: Moved

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.leaks


Times = NDArray[np.int64]
Cells = NDArray[np.int64]
"""Places on the public grid, one number for each: see `cells`."""

_ANCHORS = 32  # fixes of the release whose intervals to all of the original are looked at
_MOST_TRIED = 64
_MOST_PAIRS = 20_000_000
_LEAST_UNMOVED = 3
_LONGEST_STEP = 86_400 * NANOSECONDS


class How(StrEnum):
    """By what fixes were matched."""

    TIME = "time"
    SHIFTED = "shifted time"
    ROUNDED = "rounded time"
    ORDER = "order"


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """rows: (n,) index of the fix of the original for each of the release, -1 for none."""

    rows: NDArray[np.intp]
    how: How

    @property
    def matched(self) -> NDArray[np.bool_]:
        """(n,) whether there is one."""
        return self.rows >= 0


def cells(grid: NDArray[np.int64]) -> Cells:
    """One number (n,) for each place on the grid, (n, 2) in whole microdegrees."""
    return np.asarray((grid[:, 0] + 90_000_000) * 360_000_000 + grid[:, 1] + 180_000_000)


def matched(original: Times, places: Cells, times: Times, cells: Cells) -> Matching:
    """Match fixes of a release (times and cells, (m,) each) to those of the original, (n,) each.

    original must be sorted. Times are in nanoseconds. Where neither times nor shifted times agree
    for half of the fixes, rounded ones may; else, where there are as many as in the original, their
    order decides.
    """
    rows = _rows(original, times, 0)
    best, shift = _score(rows, places, cells), 0
    for candidate in _shifts(original, places, times, cells):
        score = _score(_rows(original, times, candidate), places, cells)
        if score > best:
            best, shift = score, candidate
    rows = _rows(original, times, shift)
    if 2 * int((rows >= 0).sum()) >= len(times):
        # Rounded times, shifted or not, may be those of fixes beside the released ones.
        rounded = _rounded(original, places, times, cells, shifted=False)
        if rounded and _score(rounded.rows, places, cells) > _score(rows, places, cells):
            return rounded
        return Matching(rows, How.SHIFTED if shift else How.TIME)
    if (rounded := _rounded(original, places, times, cells)) is not None:
        return rounded
    if len(times) == len(original):
        return Matching(np.argsort(np.argsort(times, kind="stable")), How.ORDER)
    return Matching(_rows(original, times, 0), How.TIME)


def _rounded(
    original: Times, places: Cells, times: Times, cells: Cells, *, shifted: bool = True
) -> Matching | None:
    """By times rounded as `traces.retiming` does it, shifted or not; None where few agree."""
    step = int(np.gcd.reduce(np.diff(times))) if len(times) > 1 else 0
    if not 0 < step <= _LONGEST_STEP:
        return None
    retiming = Retiming(step / NANOSECONDS)
    starts = [0, *(SHIFTED_TO - original[: _MOST_TRIED if shifted else 0])]
    rounded = [retiming.times(original + start) for start in starts]
    tried = [np.searchsorted(candidate, times) for candidate in rounded]
    rows = [
        np.where(candidate[np.minimum(index, len(candidate) - 1)] == times, index, -1)
        for candidate, index in zip(rounded, tried, strict=True)
    ]
    best = max(range(len(rows)), key=lambda i: _score(rows[i], places, cells))
    if 2 * int((rows[best] >= 0).sum()) < len(times):
        return None
    return Matching(_unmoved(rows[best], rounded[best], places, times, cells), How.ROUNDED)


def _unmoved(
    rows: NDArray[np.intp], rounded: Times, places: Cells, times: Times, cells: Cells
) -> NDArray[np.intp]:
    """Of the fixes that share a rounded time, the one at the released place, if there is one.

    Which of them was released depends on what was cut: the first that was not.
    """
    ends, rows = np.searchsorted(rounded, times, side="right"), rows.copy()
    for i in np.flatnonzero((rows >= 0) & (places[rows] != cells)):
        same = np.flatnonzero(places[rows[i] : ends[i]] == cells[i])
        rows[i] += same[0] if same.size else 0
    return rows


def _rows(original: Times, times: Times, shift: int) -> NDArray[np.intp]:
    shifted = times - shift
    index = np.minimum(np.searchsorted(original, shifted), len(original) - 1)
    return np.where(original[index] == shifted, index, -1)


def _score(rows: NDArray[np.intp], places: Cells, cells: Cells) -> int:
    """Fixes whose times agree, and once more those that were not moved."""
    agree = rows >= 0
    return int(agree.sum() + (places[rows[agree]] == cells[agree]).sum())


def _shifts(original: Times, places: Cells, times: Times, cells: Cells) -> list[int]:
    """Shifts that are worth a try, the small ones first."""
    tried: set[int] = set()
    if (_rows(original, times, 0) < 0).any():
        spread = np.unique(np.linspace(0, len(times) - 1, _ANCHORS).astype(int))
        spread = spread[: max(1, _MOST_PAIRS // len(original))]
        tried.update(_common(times[spread][:, None] - original[None, :], _MOST_TRIED))
    known, first = np.unique(places, return_index=True)
    index = np.minimum(np.searchsorted(known, cells), len(known) - 1)
    same = known[index] == cells
    unmoved = times[same] - original[first[index[same]]]
    tried.update(_common(unmoved, 1, least=_LEAST_UNMOVED))
    return sorted(tried - {0}, key=abs)


def _common(differences: Times, most: int, least: int = 1) -> list[int]:
    """The differences that are met most often."""
    values, counts = np.unique(differences, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    return [int(value) for value in values[order[counts[order] >= least]]]


def in_order(original: Trace, released: Recording) -> Recording:
    """A release of which no fix has a time, with the times that the order of its fixes gives it.

    As many fixes as were recorded are these; of fewer each is the next one at its place, and one
    that is at none of these has no time.
    """
    if not (len(released) and np.isnat(released.times).all()):
        return released
    times = original.times
    if len(released) != len(original):
        times = np.full(len(released), np.iinfo(np.int64).min)  # which is NaT
        true = cells(microdegrees(original.positions)).tolist()
        rows: dict[int, list[int]] = {cell: [] for cell in true}
        for row, cell in enumerate(true):
            rows[cell].append(row)
        last = -1
        for fix, cell in enumerate(cells(microdegrees(released.positions)).tolist()):
            later = rows.get(cell, [])
            at = bisect_right(later, last)
            if at < len(later):
                last = later[at]
                times[fix] = original.times[last]
    return replace(released, times=times.astype("datetime64[ns]"))
