"""The prior in O(n): the observed rows of a Markov kernel as a System, without a matrix.

The rows, sorted by time, are observations of the joint state of all terms
(trailveil.gp.statespace), those of a noise process included, which is heard on released rows only:

    row i = series(t_i) + measurement noise(t_i) + [i released] process(t_i) + own noise_i

Rows of one fix share its measurement noise; they are made independent by subtracting from each what
the ones before it tell of that noise. S^-1 is then a Kalman filter (trailveil.gp.filtering); S x
are two recursions for each term (trailveil.gp.chains), which know nothing of the filter.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.chains import Chain, by_columns, chain
from trailveil.gp.filtering import Factor, factorise
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.gp.statespace import (
    Component,
    LevelState,
    StateSpace,
    is_markov,
    required_state_space,
)
from trailveil.privacy.mechanism import Process

# A kernel matrix times a vector is formed in pieces of this many entries ...
_LARGEST_BLOCK = 2**20
# ... or not at all from this many entries a row of either side on: then recursions are faster.
_MANY_COLUMNS = 64


@dataclass(frozen=True, slots=True, eq=False)
class MarkovRows:
    """n rows of a Markov series, sorted by time; all but their own independent noise.

    order: (n,) the rows as given, by time. times: (n,) sorted. heard: (n,) sorted, 1 where the
    process is heard, else 0. chains: of the terms of the series, then of those of the process.
    diagonal: (n,), as given, the variance of each row.
    """

    series: StateSpace
    process: StateSpace
    order: NDArray[np.intp]
    times: FloatArray
    heard: FloatArray
    chains: tuple[Chain, ...]
    diagonal: FloatArray

    @property
    def components(self) -> tuple[Component, ...]:
        """The terms of the joint state; where there are none, one that is always zero."""
        terms = (*self.series.components, *self.process.components)
        return terms or (Component(LevelState(), 0.0),)

    @property
    def loadings(self) -> FloatArray:
        """What each sorted row observes of the joint state (n, d)."""
        return self.of_series + self.heard[:, None] * (self._firsts - self.of_series)

    @property
    def of_series(self) -> FloatArray:
        """The series as a functional of the joint state, without the process (d,)."""
        size = sum(part.term.size for part in self.series.components)
        return np.where(np.arange(self._firsts.size) < size, self._firsts, 0.0)

    @property
    def _firsts(self) -> FloatArray:
        """1 where a term's own value stands in the joint state, 0 where its derivatives do (d,)."""
        sizes = [part.term.size for part in self.components]
        firsts = np.zeros(sum(sizes))
        firsts[np.cumsum([0, *sizes[:-1]])] = 1.0
        return firsts

    def covariance(self, x: FloatArray) -> FloatArray:
        """(S without the rows' own noise) x, for x (n, m), in the order as given."""
        return by_columns(self._covariance, x, 1 + max(part.term.size for part in self.components))

    def _covariance(self, x: FloatArray) -> FloatArray:
        x = x[self.order]
        total, count = self.series.white * self._sums(x), len(self.series.components)
        for part in self.chains[:count]:
            total += part.product(x)
        heard = self.heard[:, None]
        for part in self.chains[count:]:
            total += heard * part.product(heard * x)
        if self.process.white > 0:
            total += self.process.white * heard * x
        return self.as_given(total)

    def _sums(self, x: FloatArray) -> FloatArray:
        """For each sorted row, the sum over the rows of the same fix (n, m)."""
        starts = fix_starts(self.times)
        if starts.size == self.times.size:
            return x
        sizes = np.diff(starts, append=self.times.size)
        return np.repeat(np.add.reduceat(x, starts, axis=0), sizes, axis=0)

    def later(self) -> tuple[NDArray[np.intp], ...]:
        """The sorted rows that are second of their fix, those that are third, and so on."""
        starts = fix_starts(self.times)
        sizes = np.diff(starts, append=self.times.size)
        ranks = np.arange(self.times.size) - np.repeat(starts, sizes)
        return tuple(np.flatnonzero(ranks == k) for k in range(1, int(ranks.max()) + 1))

    def as_given(self, x: FloatArray) -> FloatArray:
        """Sorted rows (n, ...) in the order as given."""
        unsorted = np.empty_like(x)
        unsorted[self.order] = x
        return unsorted

    def system(self, noise: FloatArray, least: float) -> "MarkovSystem":
        """The system of the rows with independent noise of variances (n,) of their own.

        least: a lower bound (> 0) of the eigenvalues of S. Raises NumericalError where a row has no
        noise that is independent of the rows before it.
        """
        if noise.shape != self.times.shape or not np.all(np.isfinite(noise) & (noise >= 0)):
            raise InvalidValue(
                f"noise must be {self.times.size} finite variances, got shape {noise.shape}"
            )
        variances = noise[self.order] + self.process.white * self.heard
        whitening = _whitening(self.later(), variances, self.series.white)
        loadings = whitening.forwards(self.loadings)
        factor = factorise(self.components, self.times, loadings, whitening.variances)
        return MarkovSystem(self, np.array(noise), least, whitening, factor)


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """The noise of the rows of each fix, w 1 1^T + diag(own) = L D L^T, L unit lower triangular.

    later: sorted rows by their rank in their fix, from the second on. shares: (n,), how far a row
    tells of the measurement noise of its fix: L_ij = shares_j for j before i. variances: D (n,).
    """

    later: tuple[NDArray[np.intp], ...]
    shares: FloatArray
    variances: FloatArray

    def forwards(self, y: FloatArray) -> FloatArray:
        """L^-1 y (n, m)."""
        if not self.later:
            return y
        y, known = y.copy(), np.zeros_like(y)
        for rows in self.later:
            known[rows] = known[rows - 1] + self.shares[rows - 1, None] * y[rows - 1]
            y[rows] -= known[rows]
        return y

    def backwards(self, y: FloatArray) -> FloatArray:
        """L^-T y (n, m)."""
        if not self.later:
            return y
        y, after = y.copy(), np.zeros_like(y)
        for rows in reversed(self.later):
            after[rows - 1] = after[rows] + y[rows]
            y[rows - 1] -= self.shares[rows - 1, None] * after[rows - 1]
        return y


def _whitening(later: tuple[NDArray[np.intp], ...], noise: FloatArray, white: float) -> Whitening:
    """What is left of the measurement noise after each row of a fix, as in a scalar filter."""
    open_variance = np.full(noise.size, white)
    for rows in later:
        before = rows - 1
        total = open_variance[before] + noise[before]
        open_variance[rows] = open_variance[before] * (
            noise[before] / np.where(total > 0, total, 1.0)
        )
    variances = open_variance + noise
    if not np.all(variances > 0):
        raise NumericalError("the observed values have no independent noise of their own")
    return Whitening(later, open_variance / variances, variances)


@dataclass(frozen=True, slots=True, eq=False)
class MarkovSystem:
    """S of n rows as a `gp.gaussian.System`, in O(n) a column: see `MarkovRows.system`."""

    rows: MarkovRows
    noise: FloatArray
    least: float
    whitening: Whitening
    factor: Factor

    @property
    def size(self) -> int:
        """n."""
        return int(self.noise.size)

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of S, (n,)."""
        return self.rows.diagonal + self.noise

    def apply(self, x: FloatArray) -> FloatArray:
        """S x for x (n, m), by recursions that know nothing of the factor."""
        return self.rows.covariance(x) + self.noise[:, None] * x

    def solve(self, rhs: FloatArray) -> FloatArray:
        """S^-1 rhs (n, m), refined once.

        One step in the same precision makes a solve as accurate as its residual allows. Source:
        Skeel (1980), Iterative refinement implies numerical stability for Gaussian elimination.
        """
        solution = self._solve(rhs)
        return solution + self._solve(rhs - self.apply(solution))

    def whitened(self, rhs: FloatArray) -> FloatArray:
        """W (n, m) of rhs (n, m), with W^T W = rhs^T S^-1 rhs: one recursion, and not refined."""
        return by_columns(self._whitened_columns, rhs, self.factor.loadings.shape[1])

    def _whitened_columns(self, rhs: FloatArray) -> FloatArray:
        return self.factor.whitened(self.whitening.forwards(rhs[self.rows.order]))

    def _solve(self, rhs: FloatArray) -> FloatArray:
        return by_columns(self._solve_columns, rhs, self.factor.loadings.shape[1])

    def _solve_columns(self, rhs: FloatArray) -> FloatArray:
        solved = self.factor.solve(self.whitening.forwards(rhs[self.rows.order]))
        return self.rows.as_given(self.whitening.backwards(solved))


def fix_starts(times: FloatArray) -> NDArray[np.intp]:
    """The first row of each fix, for rows sorted by time (n,)."""
    return np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)


def markov_rows(
    kernel: Kernel | None,
    times: ArrayLike,
    process: Process | None = None,
    released: ArrayLike | None = None,
) -> MarkovRows:
    """The rows of a Markov kernel at times (n,) in any order; rows of one time are of one fix.

    kernel: measurement noise included, levels left out (None: nothing but a level). process: noise
    heard on the rows where `released` (n,) is true (None: on all), Markov too.
    Raises InvalidValue where a kernel is not Markov (see `is_markov`), or not at these times.
    """
    points = np.asarray(times, dtype=np.float64)
    if points.ndim != 1 or points.size == 0 or not np.all(np.isfinite(points)):
        raise InvalidValue(f"times must be one finite number a row, got shape {points.shape}")
    series, noise = required_state_space(kernel), required_state_space(process)
    heard = np.ones(points.size) if released is None else np.asarray(released, dtype=np.float64)
    diagonal = np.zeros(points.size) if kernel is None else kernel.diagonal(points)
    if process is not None:
        diagonal = diagonal + heard * process.diagonal(points)
    order = np.argsort(points, kind="stable")
    ordered, parts = points[order], (*series.components, *noise.components)
    chains = tuple(chain(part, ordered) for part in parts)
    return MarkovRows(series, noise, order, ordered, heard[order], chains, diagonal)


def covariance_product(kernel: Kernel, a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """kernel(a, b) x (n, m) for inputs a (n,), b (k,) and x (k, m), in bounded memory.

    O(n + k) where the kernel is Markov and the matrix large; else the matrix in pieces.
    """
    both = np.concatenate([a, b])
    large = a.size * b.size > max(_LARGEST_BLOCK, _MANY_COLUMNS * both.size)
    if large and is_markov(kernel, both):
        rows = markov_rows(kernel, both)
        return rows.covariance(np.concatenate([np.zeros((a.size, x.shape[1])), x]))[: a.size]
    step = max(1, _LARGEST_BLOCK // max(1, b.size))
    if a.size <= step:
        return kernel(a, b) @ x
    return np.concatenate([kernel(a[i : i + step], b) @ x for i in range(0, a.size, step)])
