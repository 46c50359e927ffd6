"""Grids, turned against noise of low rank: that of all fixes, or a coarser one of some.

Noise F z that leaves places on their grid is sought by `trailveil.checks.attacks.lattice`, along
latitudes and longitudes apart, and then fitted to the grid as it lies on the globe.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks.contract import Background, Evidence, OnGrid, required_mechanism
from trailveil.checks.attacks.lattice import Solver, solver
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.prior import Prior

# Rows of a lattice: more than these many times the rank, and at most so many.
_ROWS_EACH, _MOST_ROWS = 20, 160
# Steps off the grid, root mean square: 0.29 where there is none. A third of that is never chance.
_ON_GRID = 0.1
# How often noise is looked for again with what it was found to be.
_TRIES = 4
# How often it is fitted to the grid in the plane.
_SETTLING = 6


@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    """Noise F z + white at released rows: factor (m, r), and the deviation of the latter."""

    times: FloatArray
    factor: FloatArray
    width: float


def by_grid(view: Evidence, known: Background, noise: LowRank) -> FloatArray:
    """The recorded places (draws, m, 2) where some noise leaves them on a grid, else NaN."""
    recovered = np.full(view.places.shape, np.nan)
    if known.grid is None or known.grid.step <= 0:
        return recovered
    # In metres along the degrees: d(degrees) = slopes d(metres), nearly the same at each fix.
    slopes = known.grid.slopes(view.places[0])
    middle = slopes.mean(axis=0)
    turn = middle / np.linalg.norm(middle, axis=1)[:, None]
    alike = np.einsum("mij,jk->mik", slopes, np.linalg.inv(middle))
    stretched = [alike[:, axis, axis] for axis in range(2)]
    lengths = 1 / np.linalg.norm(middle, axis=1)
    solvers = [
        _solver(known, noise, stretched[axis], known.grid.step * lengths[axis]) for axis in range(2)
    ]
    for draw, places in enumerate(view.places):
        moved = np.zeros_like(places)
        for _ in range(_TRIES):
            # What of the way along the degrees is not as the slopes have it, for noise so far.
            before = known.grid.frame.in_degrees(places - moved) * lengths
            along = before + np.column_stack(stretched) * (moved @ turn.T)
            tried = [solvers[i].recovered(along[:, i])[0] / stretched[i] for i in range(2)]
            moved = np.column_stack(tried) @ np.linalg.inv(turn).T
            exact, off = _settled(places, moved, noise, known.grid)
            if off <= _ON_GRID:
                recovered[draw] = exact
                break
    return recovered


def _solver(known: Background, noise: LowRank, stretched: FloatArray, step: float) -> Solver:
    rows = _telling(noise.factor)
    movement = Prior(known.kernel, noise.times[rows]).covariance
    factor = stretched[:, None] * noise.factor
    return solver(factor, movement, np.full(noise.times.size, step), noise.width, rows)


def _telling(factor: FloatArray) -> NDArray[np.intp]:
    """Rows (m,) for a lattice: evenly along the way that the noise of any draw goes.

    The directions of the noise count alike, so that what is narrow in time has its rows, too.
    """
    count = min(_MOST_ROWS, _ROWS_EACH * factor.shape[1])
    alike, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    steps = np.linalg.norm(np.diff(alike[:, sizes > 0], axis=0), axis=1)
    gone = np.concatenate([[0.0], np.cumsum(steps)])
    return np.unique(np.searchsorted(gone, np.linspace(0, gone[-1], count)).clip(0, gone.size - 1))


def _settled(
    places: FloatArray, moved: FloatArray, noise: LowRank, grid: OnGrid
) -> tuple[FloatArray, float]:
    """Places (m, 2) less their noise, fitted to the grid as it lies on the globe; steps off it."""
    off = np.inf
    for _ in range(_SETTLING):
        lines, off = grid.nearest(places - moved)
        moved = _fitted(noise, places - lines)
    return places - moved, off


def _fitted(noise: LowRank, drawn: FloatArray) -> FloatArray:
    """The most likely F z (m, 2) of noise (m, 2)."""
    return np.asarray(noise.factor @ _weights(noise, drawn))


def _weights(noise: LowRank, drawn: FloatArray) -> FloatArray:
    """The most likely z (r, 2) of noise (m, 2)."""
    inner = noise.factor.T @ noise.factor + noise.width**2 * np.eye(noise.factor.shape[1])
    return np.asarray(np.linalg.solve(inner, noise.factor.T @ drawn))


def by_coarse_subset(view: Evidence, known: Background, noise: LowRank) -> FloatArray:
    """The recorded places (draws, m, 2) by the fixes that are on a coarser grid, else NaN."""
    unknown = np.full(view.places.shape, np.nan)
    if known.grid is None or known.grid.coarse is None:
        return unknown
    which = known.grid.coarse.fixes[required_mechanism(known).rows]
    if not np.any(noise.factor[which]):
        return unknown
    subset = LowRank(noise.times[which], noise.factor[which], noise.width)
    grid = replace(known.grid, step=known.grid.coarse.step)
    released = view.places[:, which]
    exact = by_grid(Evidence(subset.times, released), replace(known, grid=grid), subset)
    weights = [_weights(subset, drawn) for drawn in released - exact]
    return np.array(view.places - noise.factor @ np.array(weights))
