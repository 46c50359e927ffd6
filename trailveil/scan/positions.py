"""Fixes of a release beside those of the original: unmoved, hardly moved, or elsewhere.

Noise can leave a fix where it was by chance. Of fixes that are moved by m metres in the median (a
Rayleigh distance), a share of ln 2 / m^2 comes within 1 m, one of ln 2 a / (pi m^2) to the same
cell of area a, and about one of 0.1 / m to the same latitude or longitude. What that explains is
not told; one fix among a few hundred that are moved by hundreds of metres is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.projection import MICRO, microdegrees
from trailveil.returns import TELLS, Places
from trailveil.scan.findings import Finding, Kind, Moved
from trailveil.scan.matching import How, Matching, cells, matched
from trailveil.trace import Recording, Trace

_RADIUS = 6_371_009.0  # metres, of the Earth
_CELL = 0.0124  # square metres at most, of a cell of the grid
_SURE = 1e-4  # what chance alone brings about less often than this is told
_SURE_ELSEWHERE = 0.01
_HALF_MOVED = 0.5  # of the protected fixes, from which on one coordinate alone is told
_OWN = "positions of fixes at their own times"
_COARSER = (10, 100, 1000)  # steps of the grid
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
class Compared:
    """What comparing the fixes of two files found."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    every: Moved
    of_protected: Moved


def compare(
    original: Trace,
    protected: NDArray[np.bool_],
    released: Recording,
    hidden: Places | None = None,
) -> Compared:
    """Compare the fixes of a release with those of the original, of which `protected` (n,) are.

    hidden: where the protected fixes are, to be looked at whenever the recording was there.
    """
    sound = _sound(released)
    times = released.times[sound].astype("datetime64[ns]").astype(np.int64)
    places = released.positions[sound]
    grid, true = microdegrees(places), microdegrees(original.positions)
    found = [_stray(int((~sound).sum()))]
    if not len(times):
        return Compared(_only(found), (), Moved(), Moved())
    match = matched(original.times, cells(true), times, cells(grid))
    agree = match.matched
    rows = match.rows[agree]
    away = np.full(len(times), np.inf)
    away[agree] = _metres(original.positions[rows], places[agree])
    exact = np.zeros(len(times), dtype=np.bool_)
    exact[agree] = np.abs(original.positions[rows] - places[agree]).max(axis=1) < _EXACT
    same = np.zeros(len(times), dtype=np.bool_)
    same[agree] = cells(true[rows]) == cells(grid[agree])
    of_protected = np.zeros(len(times), dtype=np.bool_)
    of_protected[agree] = protected[rows]
    counted = _moved(away[of_protected], same[of_protected])
    steps = true[match.rows[of_protected]] - grid[of_protected]
    found += [
        _finer(places[~exact]),
        *_unmoved(counted, away[of_protected]),
        _rounded(true[match.rows[of_protected]], grid[of_protected]),
        _half_moved(steps, away[of_protected]),
        _elsewhere(cells(true[protected]), cells(grid[~of_protected])),
        _uncompared(agree),
    ]
    notes = _notes(match)
    if hidden and (shown := _at_places(original.positions[rows], away[agree], hidden)):
        found.append(shown)
        notes = (*notes, _PROTECT_RETURNS)
    return Compared(_only(found), notes, _moved(away[agree], same[agree]), counted)


def _only(found: list[Finding | None]) -> tuple[Finding, ...]:
    return tuple(one for one in found if one is not None)


def _sound(released: Recording) -> NDArray[np.bool_]:
    """(m,) whether a fix has a time and a position on the globe."""
    with np.errstate(invalid="ignore"):
        on_globe = (np.abs(released.positions) <= [90.0, 180.0]).all(axis=1)
    return np.asarray(on_globe & ~np.isnat(released.times))


def _metres(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances (n,) of positions (n, 2) in degrees, to 0.6 %."""
    a, b = np.radians(one), np.radians(other)
    half = np.sin((b - a) / 2) ** 2
    inner = half[:, 0] + np.cos(a[:, 0]) * np.cos(b[:, 0]) * half[:, 1]
    return np.asarray(2 * _RADIUS * np.arcsin(np.sqrt(np.minimum(inner, 1.0))))


def _moved(away: NDArray[np.float64], same: NDArray[np.bool_]) -> Moved:
    near = [int((same | (away < metres)).sum()) for metres in (1.0, 10.0)]
    return Moved(len(away), int(same.sum()), *near)


def _stray(count: int) -> Finding | None:
    where = "fixes without a time or a position"
    return Finding(Kind.STRAY, where, count) if count else None


def _finer(places: NDArray[np.float64]) -> Finding | None:
    """Digits below the grid, of fixes that are not as recorded, are none of a release.

    They could be those of the truth.
    """
    steps = places * MICRO
    off = int((np.abs(steps - np.rint(steps)) > _OFF_GRID).any(axis=1).sum())
    return Finding(Kind.FINE, "positions of fixes", off) if off else None


def _unmoved(counted: Moved, away: NDArray[np.float64]) -> list[Finding | None]:
    """Protected fixes that are where they were, or within 1 m, beyond what chance explains."""
    within = _within_1_m(away)
    near = counted.below_1 - counted.unmoved
    cell = within * _CELL / np.pi
    told = (
        (Kind.UNMOVED, counted.unmoved, _is_chance(counted.unmoved, cell * counted.compared)),
        (Kind.NEARLY, near, _is_chance(counted.below_1, within * counted.compared)),
    )
    return [Finding(kind, _OWN, count) for kind, count, chance in told if count and not chance]


def _rounded(true: NDArray[np.int64], grid: NDArray[np.int64]) -> Finding | None:
    """Protected fixes (n, 2) that stand, most of them, where theirs are with fewer decimals.

    Noise puts one on a grid of so few decimals, and beside it at that, once in a million releases.
    """
    for step in _COARSER:
        on = (grid % step == 0) & (np.abs(grid - true) < step)
        count = int(on.all(axis=1).sum())
        if 2 * count > len(grid):
            return Finding(Kind.NEARLY, "positions of fixes (with fewer decimals)", count)
    return None


def _within_1_m(away: NDArray[np.float64]) -> float:
    """The share of fixes that noise brings within 1 m, by those that it does not; else none."""
    rest = away[away >= 1.0]
    return float(np.log(2) / np.median(rest) ** 2) if rest.size else 0.0


def _half_moved(steps: NDArray[np.int64], away: NDArray[np.float64]) -> Finding | None:
    """A latitude or a longitude left as it was in most protected fixes, and the other not."""
    still = steps == 0
    half = still[:, 0] ^ still[:, 1]
    count = int(half.sum())
    if not count or half.mean() < _HALF_MOVED:
        return None
    expected = 0.1 * np.sqrt(_within_1_m(away) / np.log(2)) * len(half)
    return None if _is_chance(count, expected) else Finding(Kind.HALF_MOVED, _OWN, count)


def _elsewhere(secret: NDArray[np.int64], others: NDArray[np.int64]) -> Finding | None:
    """Other fixes of the release at the very place of a protected one.

    How many are there by chance is told by how many are beside such places, within a few steps.
    """
    secret = np.unique(secret)
    hits = int(np.isin(others, secret).sum())
    if not hits:
        return None
    some = secret[:: len(secret) // _MOST_CELLS + 1]
    span = np.arange(-_AROUND, _AROUND + 1)
    steps = (span[:, None] * 360_000_000 + span[None, :]).ravel()
    halo = np.setdiff1d((some[:, None] + steps[None, :]).ravel(), secret)
    beside = int(np.isin(others, halo).sum())
    expected = beside * len(secret) / max(len(halo), 1)
    if _is_chance(hits, expected, _SURE_ELSEWHERE):
        return None
    return Finding(Kind.PLACE, "positions of fixes at other times", hits)


def _at_places(
    true: NDArray[np.float64], away: NDArray[np.float64], hidden: Places
) -> Finding | None:
    """Fixes whose true positions (n, 2) are at a place, hardly moved: more than chance explains.

    Their mean gives the place away, whenever they are, and whether or not they had to be protected.
    """
    at_place = away[hidden.near(true, TELLS)]
    count = int((at_place < _HARDLY).sum())
    rest = at_place[at_place >= _HARDLY]
    share = 1 - 2.0 ** -((_HARDLY / np.median(rest)) ** 2) if rest.size else 0.0
    if count < _SOME or _is_chance(count, share * at_place.size, _SURE_ELSEWHERE):
        return None
    return Finding(Kind.RETURN, "positions of fixes at any time", count)


def _is_chance(count: int, expected: float, least: float = _SURE) -> bool:
    """Whether so many or more, where so many are expected, are no rarer than `least`."""
    from scipy.special import gammainc  # of a Poisson count: the chance of so many or more

    return count == 0 or bool(gammainc(count, expected) >= least)


def _uncompared(agree: NDArray[np.bool_]) -> Finding | None:
    """Where most fixes are at other times, nothing is known of their moves: that is no success."""
    gone = int((~agree).sum())
    return Finding(Kind.UNCOMPARED, "times of fixes", gone) if 2 * gone > len(agree) else None


def _notes(match: Matching) -> tuple[str, ...]:
    notes = {
        How.SHIFTED: "All times are shifted by one amount, which the file itself gives away to who "
        "has the original times; fixes were matched by it.",
        How.ROUNDED: "Times are rounded; each fix was compared with the first that rounds to its "
        "time.",
        How.ORDER: "Times are not those of the original; fixes were matched by their order.",
    }
    found = [notes[match.how]] if match.how in notes else []
    if gone := int((~match.matched).sum()):
        found.append(f"Fixes at times that the original does not have: {gone}.")
    return tuple(found)
