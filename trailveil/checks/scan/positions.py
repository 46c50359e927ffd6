"""Fixes of a release beside those of the original: unmoved, hardly moved, or elsewhere.

Noise can leave a fix where it was by chance. Of fixes that are moved by m metres in the median (a
Rayleigh distance), a share of ln 2 / m^2 comes within 1 m, one of ln 2 a / (pi m^2) to the same
cell of area a, and about one of b / m to the same latitude or longitude, in steps of b metres. What
that explains is not told; one fix among a few hundred that are moved by hundreds of metres is.

Where a step of the recorded grid is not small beside m, smooth noise may leave a whole stay in its
cell. But each fix has independent noise of a step at least, which leaves it there, whatever the
rest of the noise is, with a chance of at most 0.383 for each coordinate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.scan.matching import How, Leak, LeakKind, Matching, Moved, cells, matched
from trailveil.traces.grid import position_grid
from trailveil.traces.projection import MICRO, metres_between, microdegrees
from trailveil.traces.trace import Recording, Trace
from trailveil.traces.visits import TELLS, Places

_STEP = 0.1114  # metres at most, of a step of the public grid
_STAYS = 0.383  # how likely a normal number is within half a deviation: of one coordinate
_COARSE = 0.1  # of what fixes are moved by: from which on a step of the recorded grid is coarse
_SURE = 1e-4  # what chance alone brings about less often than this is told
_SURE_ELSEWHERE = 0.01
_HALF_MOVED = 0.5  # of the protected fixes, from which on one coordinate alone is told
_OWN = "positions of fixes at their own times"
_COARSER = (10, 100, 1000)  # steps of the recorded grid
_AROUND = 5  # steps of the grid
_MOST_CELLS = 20_000
_OFF_GRID = 1e-3  # steps of the grid
_EXACT = 5e-8  # degrees: as recorded, to half a semicircle
_HARDLY = 25.0  # metres: a fix that is moved by less still shows which house it was
_SOME = 5  # fixes at a place from which on its middle is told


_PROTECT_RETURNS = (
    "The recording is at a protected place when it is hardly moved. Protect it without "
    "--no-returns, or state the place (--near LAT,LON,50) or the whole time there (--between T1 "
    "T2); if it was protected so, noise that came out small by chance is no flaw."
)


@dataclass(frozen=True, slots=True)
class FixComparison:
    """What comparing the fixes of two files found."""

    findings: tuple[Leak, ...]
    notes: tuple[str, ...]
    every: Moved
    of_protected: Moved


def compare(
    original: Trace,
    protected: NDArray[np.bool_],
    released: Recording,
    hidden: Places | None = None,
) -> FixComparison:
    """Compare the fixes of a release with those of the original, of which `protected` (n,) are.

    hidden: where the protected fixes are, to be looked at whenever the recording was there.
    """
    sound = _sound(released)
    times = released.times[sound].astype("datetime64[ns]").astype(np.int64)
    places = released.positions[sound]
    grid, true = microdegrees(places), microdegrees(original.positions)
    leaks = [_stray(int((~sound).sum()))]
    if not len(times):
        return FixComparison(_only(leaks), (), Moved(), Moved())
    match = matched(original.times, cells(true), times, cells(grid))
    agree = match.matched
    rows = match.rows[agree]
    away = np.full(len(times), np.inf)
    away[agree] = metres_between(original.positions[rows], places[agree])
    exact = np.zeros(len(times), dtype=np.bool_)
    exact[agree] = np.abs(original.positions[rows] - places[agree]).max(axis=1) < _EXACT
    same = np.zeros(len(times), dtype=np.bool_)
    same[agree] = cells(true[rows]) == cells(grid[agree])
    of_protected = np.zeros(len(times), dtype=np.bool_)
    of_protected[agree] = protected[rows]
    counted = _moved(away[of_protected], same[of_protected])
    steps = true[match.rows[of_protected]] - grid[of_protected]
    rounding = _released_step(original, grid)
    step = 1 if np.any(true % rounding) else rounding
    chance = _Chance.of(away[of_protected], step)
    leaks += [
        _finer(places[~exact]),
        *_unmoved(counted, chance),
        _rounded(true[match.rows[of_protected]], grid[of_protected], step, rounding),
        _half_moved(steps, chance),
        _elsewhere(true[protected], grid[~of_protected], step),
        _uncompared(agree),
    ]
    notes = _notes(match)
    if hidden and (shown := _at_places(original.positions[rows], away[agree], hidden, step)):
        leaks.append(shown)
        notes = (*notes, _PROTECT_RETURNS)
    return FixComparison(_only(leaks), notes, _moved(away[agree], same[agree]), counted)


def _only(leaks: list[Leak | None]) -> tuple[Leak, ...]:
    return tuple(leak for leak in leaks if leak is not None)


def _sound(released: Recording) -> NDArray[np.bool_]:
    """(m,) whether a fix has a time and a position on the globe."""
    with np.errstate(invalid="ignore"):
        on_globe = (np.abs(released.positions) <= [90.0, 180.0]).all(axis=1)
    return np.asarray(on_globe & ~np.isnat(released.times))


def _moved(away: NDArray[np.float64], same: NDArray[np.bool_]) -> Moved:
    near = [int((same | (away < metres)).sum()) for metres in (1.0, 10.0)]
    return Moved(len(away), int(same.sum()), *near)


def _stray(count: int) -> Leak | None:
    where = "fixes without a time or a position"
    return Leak(LeakKind.STRAY, where, count) if count else None


def _finer(places: NDArray[np.float64]) -> Leak | None:
    """Digits below the grid, of fixes that are not as recorded, are none of a release.

    They could be those of the truth.
    """
    steps = places * MICRO
    off = int((np.abs(steps - np.rint(steps)) > _OFF_GRID).any(axis=1).sum())
    return Leak(LeakKind.FINE, "positions of fixes", off) if off else None


def _released_step(original: Trace, grid: NDArray[np.int64]) -> int:
    """The step in microdegrees that noise is rounded to, if all released places (m, 2) are on it.

    Else 1. The recorded places may be on no whole multiples of it.
    """
    step = position_grid(original.positions).micro
    return 1 if np.any(grid % step) else step


@dataclass(frozen=True, slots=True)
class _Chance:
    """Which shares of fixes noise leaves where they were.

    within: 1 m. cell: in their cell of the grid. half: on one line of it and not on the other.
    """

    within: float
    cell: float
    half: float

    @classmethod
    def of(cls, away: NDArray[np.float64], step: int) -> "_Chance":
        """By what it moves the others, of fixes that are moved by some metres (n,)."""
        moved = away[away >= 1.0]
        middle = float(np.median(moved)) if moved.size else 0.0
        metres = _in_metres(step)
        if metres > (_COARSE * middle if middle else _HARDLY):
            return cls(1.0 if moved.size else 0.0, _STAYS**2, 2 * _STAYS * (1 - _STAYS))
        if not middle:
            return cls(0.0, 0.0, 0.0)
        within = float(np.log(2)) / middle**2
        return cls(within, within * metres**2 / np.pi, metres / middle)


def _in_metres(step: int) -> float:
    return step * _STEP


def _unmoved(counted: Moved, chance: _Chance) -> list[Leak | None]:
    """Protected fixes that are where they were, or within 1 m, beyond what chance explains."""
    near = counted.below_1 - counted.unmoved
    cases = (
        (LeakKind.UNMOVED, counted.unmoved, counted.unmoved, chance.cell),
        (LeakKind.NEARLY, near, counted.below_1, chance.within),
    )
    return [
        Leak(kind, _OWN, count)
        for kind, count, all_of, share in cases
        if count and not _is_share(all_of, counted.compared, share)
    ]


def _rounded(
    true: NDArray[np.int64], grid: NDArray[np.int64], step: int, released: int
) -> Leak | None:
    """Protected fixes (n, 2) that stand, most of them, where theirs are with fewer decimals.

    Noise puts one on a grid of so few decimals, and beside it at that, once in a million releases.
    step: of the recorded grid; released: of that which noise is rounded to as well. There, what is
    rounded without noise is so at every fix.
    """
    for wide in (step * more for more in _COARSER):
        on = ((grid % wide == 0) & (np.abs(grid - true) < wide)).all(axis=1)
        if wide == released:
            down = true // wide * wide
            same = [(grid == each).all() for each in (down, (true + wide // 2) // wide * wide)]
            on &= any(same)
        count = int(on.sum())
        if 2 * count > len(grid):
            return Leak(LeakKind.NEARLY, "positions of fixes (with fewer decimals)", count)
    return None


def _half_moved(steps: NDArray[np.int64], chance: _Chance) -> Leak | None:
    """A latitude or a longitude left as it was in most protected fixes, and the other not."""
    still = steps == 0
    half = still[:, 0] ^ still[:, 1]
    count = int(half.sum())
    if not count or half.mean() < _HALF_MOVED:
        return None
    is_chance = _is_share(count, len(half), chance.half)
    return None if is_chance else Leak(LeakKind.HALF_MOVED, _OWN, count)


def _elsewhere(true: NDArray[np.int64], others: NDArray[np.int64], step: int) -> Leak | None:
    """Other fixes (m, 2) of the release at the very place of a protected one (n, 2).

    How many are there by chance is told by how many are beside such places, within a few steps, or
    by independent noise where a step is no place any more.
    """
    secret = np.unique(cells(true))
    other = cells(others)
    hits = int(np.isin(other, secret).sum())
    if not hits:
        return None
    some = secret[:: len(secret) // _MOST_CELLS + 1]
    span = step * np.arange(-_AROUND, _AROUND + 1)
    around = (span[:, None] * 360_000_000 + span[None, :]).ravel()
    halo = np.setdiff1d((some[:, None] + around[None, :]).ravel(), secret)
    in_halo = int(np.isin(other, halo).sum())
    expected = in_halo * len(secret) / max(len(halo), 1)
    if _in_metres(step) > _HARDLY:
        expected = max(expected, min(1.0, _STAYS**2 * len(secret)) * len(other))
    if _is_chance(hits, expected, _SURE_ELSEWHERE):
        return None
    return Leak(LeakKind.PLACE, "positions of fixes at other times", hits)


def _at_places(
    true: NDArray[np.float64], away: NDArray[np.float64], hidden: Places, step: int
) -> Leak | None:
    """Fixes whose true positions (n, 2) are at a place, hardly moved: more than chance explains.

    Their mean gives the place away, whenever they are, and whether or not they had to be protected.
    """
    at_place = away[hidden.near(true, TELLS)]
    count = int((at_place < _HARDLY).sum())
    far = at_place[at_place >= _HARDLY]
    share = 1 - 2.0 ** -((_HARDLY / np.median(far)) ** 2) if far.size else 0.0
    if _in_metres(step) > _HARDLY:
        share = max(share, _STAYS)
    if count < _SOME or _is_share(count, at_place.size, share, _SURE_ELSEWHERE):
        return None
    return Leak(LeakKind.RETURN, "positions of fixes at any time", count)


def _is_share(count: int, of: int, share: float, least: float = _SURE) -> bool:
    """Whether so many of some, each of which is so likely, are no rarer than `least`."""
    from scipy.special import bdtrc  # of a binomial count: the chance of more

    return count == 0 or bool(bdtrc(count - 1, of, share) >= least)


def _is_chance(count: int, expected: float, least: float) -> bool:
    """Whether so many or more, where so many are expected, are no rarer than `least`."""
    from scipy.special import gammainc  # of a Poisson count: the chance of so many or more

    return count == 0 or bool(gammainc(count, expected) >= least)


def _uncompared(agree: NDArray[np.bool_]) -> Leak | None:
    """Where most fixes are at other times, nothing is known of their moves: that is no success."""
    gone = int((~agree).sum())
    return Leak(LeakKind.UNCOMPARED, "times of fixes", gone) if 2 * gone > len(agree) else None


def _notes(match: Matching) -> tuple[str, ...]:
    notes = {
        How.SHIFTED: "All times are shifted by one amount, which the file itself gives away to "
        "anybody who has the original times; fixes were matched by it.",
        How.ROUNDED: "Times are rounded; each fix was compared with the first that rounds to its "
        "time.",
        How.ORDER: "Times are not those of the original; fixes were matched by their order.",
    }
    lines = [notes[match.how]] if match.how in notes else []
    if gone := int((~match.matched).sum()):
        lines.append(f"Fixes at times that the original does not have: {gone}.")
    return tuple(lines)
