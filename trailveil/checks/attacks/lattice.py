"""Lattice reduction: noise of low rank is solved for where what it was added to lies on a grid.

The grid is that of all fixes, or a coarser one of some. Noise F z that leaves places on it is
sought along latitudes and longitudes apart, and then fitted to the grid as it lies on the globe.

Z = X + F z with X on a grid is a search for the grid point that is nearest to Z, in the measure of
how likely noise and movement are. The basis of that lattice is made short after Lenstra, Lenstra
and Lovasz (1982), Math. Ann. 261, and rounded in plane after plane, after Babai (1986),
Combinatorica 6.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky

from trailveil.checks.attacks.contract import Background, Evidence, OnGrid, required_mechanism
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.prior import Prior

# How much shorter a vector must be to be swapped (Lovasz' condition).
_LOVASZ = 0.99
# Steps: noise is never taken to be narrower, so that numbers stay in double precision.
_NARROWEST = 0.02
# How often the noise is fitted again to all fixes.
_FITTED = 3


def reduced(triangle: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """A short basis of the lattice of the columns of an upper triangle (m, m): R', U.

    R' is upper triangular, of R U up to a rotation from the left; U is unimodular.
    """
    basis = np.array(triangle)
    size = basis.shape[1]
    turned = np.eye(size, dtype=np.int64)
    k = 1
    while k < size:
        _reduce(basis, turned, k, k - 1)
        below, above = basis[k, k] ** 2 + basis[k - 1, k] ** 2, basis[k - 1, k - 1] ** 2
        if below >= _LOVASZ * above:
            for j in range(k - 2, -1, -1):
                _reduce(basis, turned, k, j)
            k += 1
            continue
        basis[:, [k - 1, k]] = basis[:, [k, k - 1]]
        turned[:, [k - 1, k]] = turned[:, [k, k - 1]]
        length = float(np.hypot(basis[k - 1, k - 1], basis[k, k - 1]))
        c, s = basis[k - 1, k - 1] / length, basis[k, k - 1] / length
        basis[k - 1 : k + 1, k - 1 :] = np.array([[c, s], [-s, c]]) @ basis[k - 1 : k + 1, k - 1 :]
        basis[k, k - 1] = 0.0
        k = max(k - 1, 1)
    return basis, turned


def _reduce(basis: FloatArray, turned: NDArray[np.int64], k: int, j: int) -> None:
    times = int(np.floor(basis[j, k] / basis[j, j] + 0.5))
    if times:
        basis[: j + 1, k] -= times * basis[: j + 1, j]
        turned[:, k] -= times * turned[:, j]


def nearest(basis: FloatArray, target: FloatArray) -> NDArray[np.int64]:
    """Babai's nearest plane: whole numbers (m,) for which basis @ them is near the target (m,).

    basis: upper triangular (m, m), reduced.
    """
    coordinates, remainder = np.zeros(target.size, dtype=np.int64), np.array(target)
    for k in range(target.size - 1, -1, -1):
        coordinates[k] = int(np.floor(remainder[k] / basis[k, k] + 0.5))
        remainder -= coordinates[k] * basis[:, k]
    return coordinates


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solver:
    """What does not depend on the draw: the reduced lattice of some fixes.

    factor: F (n, r). steps: (n,) of the grid, in the unit of F. width: the deviation of independent
    noise. rows: (m,) the fixes of the lattice. noise: (m, m), its covariance there; precision:
    (m, m), of noise and movement together. basis, turned: as `reduced` has them.
    """

    factor: FloatArray
    steps: FloatArray
    width: float
    rows: NDArray[np.intp]
    noise: FloatArray
    precision: FloatArray
    basis: FloatArray
    turned: NDArray[np.int64]

    def recovered(self, released: FloatArray) -> tuple[FloatArray, float]:
        """The noise F z (n,) that leaves released values (n,) on their grid, and how far off.

        off: the root mean square distance to the grid, in steps: 0.29 says nothing.
        """
        rows, steps = self.rows, self.steps[self.rows]
        # Counted from grid points nearby, so that numbers stay small.
        start = np.floor(float(np.median(released)) / self.steps + 0.5) * self.steps
        away = released - start
        weighted = cho_solve(cho_factor(self.noise), away[rows])
        middle = cho_solve(cho_factor(self.precision), weighted)
        # In the rotated frame of the reduced basis, through the coordinates of the old one.
        target = self.basis @ np.linalg.solve(self.turned.astype(np.float64), middle / steps)
        on_grid = (self.turned @ nearest(self.basis, target)) * steps
        noise = self._fitted(away[rows] - on_grid, rows)
        for _ in range(_FITTED):
            lines = np.floor((away - noise) / self.steps + 0.5) * self.steps
            noise = self._fitted(away - lines, np.arange(away.size))
        off = (away - noise) / self.steps
        return noise, float(np.sqrt(np.mean((off - np.floor(off + 0.5)) ** 2)))

    def _fitted(self, noise: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
        """The most likely F z (n,) of noise at some rows."""
        columns, width = self.factor[rows], self.width
        inner = columns.T @ columns + width**2 * np.eye(columns.shape[1])
        return np.asarray(self.factor @ np.linalg.solve(inner, columns.T @ noise))


def solver(
    factor: FloatArray,
    movement: FloatArray,
    steps: FloatArray,
    width: float,
    rows: NDArray[np.intp],
) -> Solver:
    """The lattice of some rows (m,) of a series, reduced.

    factor: F (n, r). movement: (m, m), the covariance of the series at those rows. steps: (n,) of
    its grid. width: the deviation of what independent noise there is, rounding included.
    """
    columns = factor[rows]
    width = max(width, _NARROWEST * float(np.min(steps)))
    noise = columns @ columns.T + width**2 * np.eye(rows.size)
    precision = np.linalg.inv(noise) + np.linalg.inv(movement)
    precision = (precision + precision.T) / 2
    triangle = cholesky(precision) * steps[rows]
    return Solver(factor, steps, width, rows, noise, precision, *reduced(triangle))


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
