"""What is exact in a recording, turned against noise of low rank: `audit --attack lattice`.

A release is X + F z with few unknowns z, many times fewer than fixes. Whatever is exact in X is an
equation for z, and some tens of them solve for it:

- X lies on a grid (decimals), or some of it on a coarser one: a lattice problem, see
  `trailveil.checks.attacks.lattice`;
- X repeats, or goes on in straight lines at a steady pace: its first or second differences are 0;
- X lies on a line of few corners, as on a map: each step goes on as the last one;
- X was recorded every so many metres: all steps have one length;
- X was smoothed by a filter: it is likelier as a moving average of how people move.

Independent noise at each fix takes the exactness away. How far that hides a place depends on what
is exact: a grid, wholly; filters of half a minute, nearly; long lines, repeats on the way and even
distances, hardly.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from trailveil.checks.attacks.contract import (
    Attack,
    Background,
    Estimate,
    Evidence,
    required_mechanism,
)
from trailveil.checks.attacks.lattice import LowRank, by_coarse_subset, by_grid
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

# Metres: what a release is rounded to at the least, as a deviation. Fixes that are looked at.
_ROUNDED, _MOST = 0.03, 1500
# Fixes, at least, in which differences are looked for; how many of them must be nothing, to so
# many deviations of independent noise.
_LEAST, _MANY, _NOTHING = 50, 0.5, 5.0
# Metres: how far places may be from the middle of all.
_LEVEL = 3000.0
# Steps of Gauss and Newton; metres that a way has at least.
_STEPS, _SHORTEST = 60, 1e-9
# Seconds that fixes may be averages of; how much greater a logarithm of likelihood must be.
_WINDOWS, _LIKELIER = (10.0, 20.0, 30.0, 60.0, 120.0, 300.0), 10.0
# Squares, in units of what is expected, beyond which a model is none of what is released.
_AS_EXPECTED = 1.5

_Off = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def on_a_grid(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret where noise is found that leaves all places on their grid; None without.

    As the others here, raises InvalidValue where it is not known how the noise varies.
    """
    return _tried(by_grid, view, known)


def on_a_grid_at_times(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret by the fixes that are on a coarser grid than the others, where it is known which.

    No release tells which they are: that is granted.
    """
    return _tried(by_coarse_subset, view, known)


def repeating(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret where noise is found that leaves most places where the last one was."""
    return _tried(partial(_by_differences, order=1), view, known)


def going_straight(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret where noise is found that leaves most places on lines at a steady pace."""
    return _tried(partial(_by_differences, order=2), view, known)


def on_lines(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret by the noise that leaves the places as straight as they can be, at any pace."""
    return _tried(partial(_by_steps, off=_bends), view, known)


def smoothed(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret where places are likelier as a moving average of the prior than as it is."""
    return _tried(_by_smoothness, view, known)


def evenly_apart(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret by the noise that leaves the places as evenly apart as they can be."""
    return _tried(partial(_by_steps, off=_lengths), view, known)


EXACT: dict[str, Attack] = {
    "looks for a grid": on_a_grid,
    "looks for a grid of some fixes": on_a_grid_at_times,
    "looks for repeated places": repeating,
    "looks for straight lines": going_straight,
    "looks for one distance": evenly_apart,
    "looks for roads": on_lines,
    "looks for a filter": smoothed,
}
"""Who looks for what."""


def _tried(
    attempt: Callable[[Evidence, Background, LowRank], FloatArray],
    view: Evidence,
    known: Background,
) -> tuple[Estimate | None, ...]:
    """The estimates of an attempt, which has places (draws, m, 2), NaN where it finds nothing."""
    noise = _low_rank(required_mechanism(known))
    if noise is None:
        return (None,) * len(known.secrets)
    recovered = attempt(view, known, noise)
    if np.all(np.isnan(recovered)):
        return (None,) * len(known.secrets)
    places = np.where(np.isnan(recovered), view.places, recovered)
    return tuple(Estimate(_at(view.times, places, secret)) for secret in known.secrets)


def _low_rank(mechanism: Mechanism) -> LowRank | None:
    rows = mechanism.rows
    factor = mechanism.factor[rows]
    moved = np.any(factor != 0, axis=1)
    if mechanism.process is not None or not np.any(moved):
        return None
    white = mechanism.floor + float(np.median(mechanism.independent_variances[rows][moved]))
    return LowRank(mechanism.times[rows], factor, float(np.sqrt(white + _ROUNDED**2)))


def _at(times: FloatArray, places: FloatArray, secret: Secret) -> FloatArray:
    """The secret (draws, 2) of places (draws, m, 2)."""
    each = [[np.interp(secret.times, times, axis) for axis in draw.T] for draw in places]
    return np.asarray(np.array(each) @ secret.weights[0])


def _by_differences(view: Evidence, known: Background, noise: LowRank, order: int) -> FloatArray:
    """The recorded places where noise leaves most differences at nothing, else NaN.

    First differences are nothing where a position is repeated, second ones on straight lines.
    """
    recovered = np.full(view.places.shape, np.nan)
    few = _few(known, noise)
    if few.size < _LEAST:
        return recovered
    times, factor = noise.times[few], noise.factor[few]
    movement = _Movement(factor, Prior(known.kernel, times).covariance)
    take = _differences(times, order)
    columns = take @ factor
    for draw, places in enumerate(view.places):
        broken = _broken(columns, take @ places[few], movement.likely(places[few]), noise.width)
        if np.mean(broken) <= 1 - _MANY:
            pieces, starts = _pieces(times, np.flatnonzero(broken) + 1, order)
            between = Prior(known.kernel, times[starts]).covariance
            exact = pieces @ between @ pieces.T + noise.width**2 * np.eye(few.size)
            weights = _Movement(factor, exact).likely(places[few])
            recovered[draw] = places - noise.factor @ weights
    return recovered


def _broken(
    columns: FloatArray, observed: FloatArray, weights: FloatArray, width: float
) -> NDArray[np.bool_]:
    """Which differences (k,) told - own z (k, 2) are not nothing, for the z that most of them fit.

    Least squares again and again from a first z, with less and less weight for what is far off.
    """
    size = np.zeros(len(columns))
    for _ in range(_STEPS):
        size = np.hypot(*(observed - columns @ weights).T)
        scale = max(width, float(np.median(size)) / 3)
        trust = (1 / (scale**2 + size**2))[:, None]
        inner = columns.T @ (trust * columns) + np.eye(columns.shape[1])
        weights = np.linalg.solve(inner, columns.T @ (trust * observed))
    return np.asarray(size > _NOTHING * width)


def _pieces(
    times: FloatArray, breaks: NDArray[np.intp], order: int
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Constant or straight pieces (n, k) between breaks, and the rows (k,) they are known by."""
    ends = [0] if order == 1 else [0, times.size - 1]
    rows = np.union1d(breaks, ends).astype(np.intp)
    if order == 1:
        which = np.searchsorted(rows, np.arange(times.size), side="right") - 1
        return np.eye(rows.size)[which], rows
    each = [np.interp(times, times[rows], axis) for axis in np.eye(rows.size)]
    return np.column_stack(each), rows


class _Movement:
    """What is likely of z (r, 2) where the true places (m,) have some covariance (m, m)."""

    def __init__(self, factor: FloatArray, covariance: FloatArray) -> None:
        # Of the level, as much is left as double precision has room for beside what is exact.
        level = max(0.0, float(np.min(covariance)) - _LEVEL**2)
        self._solved = np.linalg.solve(covariance - level, factor)
        self._precision = np.eye(factor.shape[1]) + factor.T @ self._solved

    def likely(self, places: FloatArray) -> FloatArray:
        """The most likely z (r, 2) of released places (m, 2)."""
        pull = self._solved.T @ (places - np.median(places, axis=0))
        return np.asarray(np.linalg.solve(self._precision, pull))


def _few(known: Background, noise: LowRank) -> NDArray[np.intp]:
    """The fixes nearest to the first secret, in order: as many as full matrices may have."""
    middle = float(np.mean(known.secrets[0].times))
    order = np.argsort(np.abs(noise.times - middle), kind="stable")
    return np.sort(order[:_MOST])


def _differences(times: FloatArray, order: int) -> FloatArray:
    """First differences, or how far each fix is off the line between its neighbours: (k, n)."""
    size = times.size
    if order == 1:
        return np.asarray(np.eye(size)[1:] - np.eye(size)[:-1])
    share = ((times[1:-1] - times[:-2]) / (times[2:] - times[:-2]))[:, None]
    whole = np.eye(size)
    return np.asarray(whole[1:-1] - (1 - share) * whole[:-2] - share * whole[2:])


def _by_steps(view: Evidence, known: Background, noise: LowRank, off: _Off) -> FloatArray:
    """The recorded places by the noise that leaves least of something of the steps between fixes.

    NaN for few fixes.
    """
    recovered = np.full(view.places.shape, np.nan)
    few = _few(known, noise)
    if few.size < _LEAST:
        return recovered
    factor = noise.factor[few]
    columns = np.diff(factor, axis=0)
    movement = _Movement(factor, Prior(known.kernel, noise.times[few]).covariance)
    for draw, places in enumerate(view.places):
        start = movement.likely(places[few])
        weights = _least_off(off, columns, np.diff(places[few], axis=0), start, noise.width)
        recovered[draw] = places - noise.factor @ weights
    return recovered


def _least_off(
    off: _Off, columns: FloatArray, steps: FloatArray, weights: FloatArray, width: float
) -> FloatArray:
    """The z (r, 2) that leaves least off of steps (k, 2), from a first one.

    Gauss and Newton, with weights for what is far off: a step may be of another length.
    """
    rank = columns.shape[1]
    for _ in range(_STEPS):
        far, slopes = off(steps - columns @ weights, columns)
        scale = max(width, float(np.median(np.abs(far))))
        trust = 1 / (scale**2 + far**2)
        inner = slopes.T @ (trust[:, None] * slopes) + np.eye(2 * rank)
        pull = slopes.T @ (trust * far) - weights.T.ravel()
        weights = weights + np.linalg.solve(inner, pull).reshape(2, rank).T
    return weights


def _lengths(true: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How much longer than the middle one steps (k, 2) are, and how much each z takes of that."""
    lengths = np.hypot(*true.T)
    ways = true / np.maximum(lengths, _SHORTEST)[:, None]
    return lengths - np.median(lengths), np.hstack([ways[:, :1] * columns, ways[:, 1:] * columns])


def _bends(true: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far each step (k, 2) is beside the way of the one before, and what z takes of that."""
    first, then = true[:-1], true[1:]
    across = 1 / np.maximum(np.hypot(*(first + then).T), _SHORTEST)[:, None]
    before, other = columns[:-1], columns[1:]
    east = before * then[:, 1:] - other * first[:, 1:]
    north = other * first[:, :1] - before * then[:, :1]
    bends = first[:, :1] * then[:, 1:] - first[:, 1:] * then[:, :1]
    return (across * bends)[:, 0], across * np.hstack([east, north])


def _by_smoothness(view: Evidence, known: Background, noise: LowRank) -> FloatArray:
    """The most likely places of the likeliest moving average; NaN where none is likelier."""
    recovered = np.full(view.places.shape, np.nan)
    few = _few(known, noise)
    if few.size < _LEAST:
        return recovered
    times, factor = noise.times[few], noise.factor[few]
    moves = Prior(known.kernel, times).covariance
    moves = moves - max(0.0, float(np.min(moves)) - _LEVEL**2)
    besides = factor @ factor.T + noise.width**2 * np.eye(few.size)
    away = view.places[:, few] - np.median(view.places[:, few], axis=1, keepdims=True)
    best = np.full(len(away), -np.inf)
    for seconds in (0.0, *_WINDOWS):
        root = cho_factor(_averaged(moves, times, seconds) + besides, lower=True)
        size = 2 * float(np.sum(np.log(np.diag(root[0]))))
        for draw, places in enumerate(away):
            pull = cho_solve(root, places)
            square = float(np.sum(places * pull))
            likely = -size - square / 2
            if seconds and likely > best[draw] and square < _AS_EXPECTED * places.size:
                recovered[draw] = view.places[draw] - noise.factor @ (factor.T @ pull)
                best[draw] = likely
            elif not seconds:
                best[draw] = likely + _LIKELIER
    return recovered


def _averaged(covariance: FloatArray, times: FloatArray, seconds: float) -> FloatArray:
    """The covariance (n, n) of the averages of each place with all within so many seconds."""
    first = np.searchsorted(times, times - seconds / 2)
    last = np.searchsorted(times, times + seconds / 2, side="right")
    for _ in range(2):
        sums = np.vstack([np.zeros(times.size), np.cumsum(covariance, axis=0)])
        covariance = ((sums[last] - sums[first]) / (last - first)[:, None]).T
    return covariance
