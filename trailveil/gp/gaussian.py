"""Gaussian linear algebra: factorising, conditioning, divergences. The only home of tolerances.

Everything here is about a joint Gaussian of data Z (n values) and a secret s (k values)

    Cov(Z) = S + U U^T        S symmetric positive definite, U (n x m) any loadings
    Cov(Z, s) = C + U V^T     V (k x m) the secret's loadings on the same directions
    Var(s) = P0 + V V^T

and the posterior covariance Q = Var(s | Z). A large common level (100 km), or a noise of low rank,
is a column of U: it is never added into S, where it would drown what is small.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.arrays import numbers_in

FloatArray: TypeAlias = NDArray[np.float64]

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
# Rounding of one kernel value, in units of its two deviations and of UNIT_ROUNDOFF (tested).
KERNEL_ROUNDING = 64.0
# Relative; how far a covariance given by a user may be from symmetric or from non-negative.
SYMMETRY_TOLERANCE = 1e-12
NEGATIVE_EIGENVALUE_TOLERANCE = 1e-12
# The same of a function that may compute in single precision.
FUNCTION_TOLERANCE = 1e-5
# Relative slack on a loss above which double precision is given up for extended precision ...
LOSS_SLACK = 1e-8
# ... and above which, where extended precision is out of reach, no figure is given at all.
LARGEST_LOSS_SLACK = 1e-3
# A loss from which on the secret is as good as known: the square of it is still a number.
LARGEST_LOSS = 1e150
# Relative: what a variance without an error bound of its own is taken to be known to, at best.
POINT_SLACK = 1e-9
# Relative: an inverse less certain than this is none.
WORST_INVERSE = 0.1
# Steps of iterative refinement, as long as each makes the squared residual smaller by this factor.
MOST_REFINEMENTS = 6
REFINEMENT_GAIN = 0.1
# Relative to where a search for a positive root began: what is below this is zero.
LEAST_START = 1e-40
# Relative: a Newton step of this size is the last, since the next would be of its square.
LAST_NEWTON_STEP = 1e-6
# Relative to where a search begins: what is below this is nothing.
NEGLIGIBLE = 1e-12
# Relative: the least step to the safe side after a solve; the loss is recomputed at each.
SAFE_STEP = 1e-11
# Relative: what is added to a root at once, so that the first check mostly succeeds.
SAFE_START = 1e-9
MOST_SAFE_STEPS = 30
# Relative: how far below the root of its equation a lower bound is tried, in turn.
LOWER_STEPS = (1e-10, 1e-8, 1e-6, 1e-4)
# Relative agreement between two extended precisions.
EXTENDED_AGREEMENT = 1e-13
# Relative: a mechanism that misses its target by more than this is never returned.
TARGET_TOLERANCE = 1e-9


class System(Protocol):
    """A symmetric positive definite n x n matrix S, known by what it does to vectors."""

    @property
    def size(self) -> int:
        """n."""

    @property
    def least(self) -> float:
        """A lower bound of the eigenvalues of S that is known without computing them."""

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of S, (n,)."""

    def solve(self, rhs: FloatArray) -> FloatArray:
        """S^-1 rhs, for rhs (n, m)."""

    def apply(self, x: FloatArray) -> FloatArray:
        """S x, for x (n, m)."""


@dataclass(frozen=True, slots=True, eq=False)
class DenseSystem:
    """S as a full matrix and its Cholesky factor: O(n^3) once, then O(n^2) a column."""

    matrix: FloatArray
    factor: FloatArray
    least: float

    @property
    def size(self) -> int:
        """n."""
        return int(self.matrix.shape[0])

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of S, (n,)."""
        return np.diagonal(self.matrix)

    def solve(self, rhs: FloatArray) -> FloatArray:
        """S^-1 rhs."""
        return cholesky_solve(self.factor, rhs)

    def apply(self, x: FloatArray) -> FloatArray:
        """S x."""
        return self.matrix @ x

    def whitened(self, rhs: FloatArray) -> FloatArray:
        """W (n, m) of rhs (n, m), with W^T W = rhs^T S^-1 rhs."""
        return triangular_solve(self.factor, rhs)


def dense_system(matrix: FloatArray, least: float) -> DenseSystem:
    """A DenseSystem of a symmetric positive definite matrix (n, n).

    least: a lower bound (> 0) of its eigenvalues, such as the variance of independent noise in it.
    Raises NumericalError where double precision cannot factorise it.
    """
    return DenseSystem(matrix, cholesky_factor(matrix), least)


def cholesky_factor(matrix: FloatArray) -> FloatArray:
    """The lower Cholesky factor; NumericalError where the matrix is not positive definite."""
    from scipy.linalg.lapack import dpotrf  # heavy, and only needed for noise

    factor, status = dpotrf(matrix, lower=1, clean=1)
    if status != 0:
        raise _indefinite()
    return np.asarray(factor)


def cholesky_solve(factor: FloatArray, rhs: FloatArray) -> FloatArray:
    """(factor factor^T)^-1 rhs for a lower triangular factor (n, n) and rhs (n, m)."""
    if rhs.size == 0:
        return np.zeros_like(rhs)
    from scipy.linalg.lapack import dpotrs

    return np.asarray(dpotrs(factor, rhs, lower=1)[0])


def _indefinite() -> NumericalError:
    return NumericalError(
        "the covariance must be positive definite to double precision, got one that is not; "
        "state a measurement noise (--noise-std) or an independent noise floor (--floor)"
    )


def triangular_solve(factor: FloatArray, rhs: FloatArray) -> FloatArray:
    """factor^-1 rhs for a lower triangular factor (n, n)."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, rhs, lower=True, check_finite=False))


def check_symmetric(matrix: FloatArray, what: str, tolerance: float = SYMMETRY_TOLERANCE) -> float:
    """The largest of the absolute entries (n, n); InvalidValue where they are not symmetric."""
    scale = float(np.max(np.abs(matrix), initial=0.0))
    skew = float(np.max(np.abs(matrix - matrix.T), initial=0.0))
    if skew > tolerance * scale:
        raise InvalidValue(f"{what} must be symmetric, got entries that differ by {skew:.3g}")
    return scale


def check_covariance(given: ArrayLike, what: str) -> FloatArray:
    """The same matrix; InvalidValue where it is not square, finite, symmetric and PSD."""
    matrix = numbers_in(f"{what} must be a square matrix", given)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValue(f"{what} must be a square matrix, got shape {matrix.shape}")
    if not np.all(np.isfinite(matrix)):
        raise InvalidValue(f"{what} must be finite, got infinite or missing entries")
    scale = check_symmetric(matrix, what)
    from scipy.linalg import eigh

    lowest = float(eigh(matrix, eigvals_only=True)[0]) if matrix.size else 0.0
    if lowest < -NEGATIVE_EIGENVALUE_TOLERANCE * scale * matrix.shape[0]:
        raise InvalidValue(
            f"{what} must be positive semidefinite, got an eigenvalue of {lowest:.3g}"
        )
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Data and secret as they vary together: see the formulas at the head of this module.

    cross: C (n, k). variance: P0 (k, k). loadings: U (n, m). secret_loadings: V (k, m).
    scale: (k,), the deviations that each location weighs up, added up: what the rounding of C and
    P0 is relative to. None where a location is one value, and so of its own deviation.
    """

    system: System
    cross: FloatArray
    variance: FloatArray
    loadings: FloatArray
    secret_loadings: FloatArray
    scale: FloatArray | None = None

    @property
    def size(self) -> FloatArray:
        """The scale, stated or of single values (k,)."""
        deviations = np.sqrt(np.diagonal(self.variance)) if self.scale is None else self.scale
        return np.asarray(deviations)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Q (k, k) = Var(s | Z) as computed, and the per-column slack (k,) of what rounding may hide.

    For each column i the true Q_ii lies in [covariance_ii - slack_i, covariance_ii + slack_i].
    weights: W (n, k), the regression of s on Z.
    """

    covariance: FloatArray
    slack: FloatArray
    weights: FloatArray

    @property
    def doubt(self) -> float:
        """d such that covariance - d I <= Q <= covariance + d I, as matrices."""
        return spectral_doubt(np.diagonal(self.covariance), self.slack)


def largest_eigenvalue(matrix: FloatArray) -> float:
    """The largest eigenvalue of a symmetric matrix (k, k)."""
    from scipy.linalg import eigh

    return float(matrix[0, 0] if matrix.shape[0] == 1 else eigh(matrix, eigvals_only=True)[-1])


def spectral_doubt(diagonal: FloatArray, slack: FloatArray) -> float:
    """A bound of the norm of the error of a covariance (k, k), from the slack (k,) of its diagonal.

    Rounding of a sum gives errors of at most a_i a_j, with a_i^2 <= slack_i: norm sum(slack). Error
    e_i of a deviation d_i gives d_i e_j + e_i d_j + e_i e_j, with 2 d_i e_i + e_i^2 <= slack_i:
    norm 2 |d| |e| + |e|^2. The two are added.
    """
    if slack.size == 1:
        return float(slack[0])
    deviations = np.sqrt(np.maximum(diagonal, 0.0))
    moved = slack / np.maximum(
        np.sqrt(deviations**2 + slack) + deviations, np.finfo(np.float64).tiny
    )
    size, error = float(np.sqrt(deviations @ deviations)), float(np.sqrt(moved @ moved))
    return float(np.sum(slack)) + 2 * size * error + error**2


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Weights W (n, k), S W, the misfit V^T - U^T W, and R = Cov(Z, s) - (S + U U^T) W."""

    weights: FloatArray
    applied: FloatArray
    misfit: FloatArray
    residual: FloatArray

    def variance(self, joint: Joint) -> FloatArray:
        """Var(s - W^T Z) (k, k): insensitive to small errors of W."""
        base = joint.variance - joint.cross.T @ self.weights
        base = base - self.weights.T @ (joint.cross - self.applied)
        covariance = base + self.misfit.T @ self.misfit
        return np.asarray((covariance + covariance.T) / 2)


Regression = Callable[[FloatArray, FloatArray], FloatArray]


def conditioned(joint: Joint, solve: Regression | None = None) -> tuple[FloatArray, FloatArray]:
    """Var(s | Z) (k, k) and the weights (n, k), with no bound of their error: to search with.

    solve: `regression(joint)`, where it is at hand.
    """
    solve = solve or regression(joint)
    fit = _fit(joint, solve(joint.cross, joint.secret_loadings.T))
    return fit.variance(joint), fit.weights


def posterior(joint: Joint) -> Posterior:
    """Var(s | Z), with a bound of its own numerical error.

    The error bound does not trust the solve. For *any* weights W,
        Var(s - W^T Z) = Q + R^T (S + U U^T)^-1 R,     R = Cov(Z, s) - (S + U U^T) W,
    so Q is the variance of the actual residual less what R makes of it, and the rounding of
    evaluating both, kernel values included, is bounded by the sizes of the terms.
    """
    solve = regression(joint)
    fit = _fit(joint, solve(joint.cross, joint.secret_loadings.T))
    # Iterative refinement: eliminating a large level costs each solve digits, but not all of them.
    for _ in range(MOST_REFINEMENTS):
        finer = _fit(joint, fit.weights + solve(fit.residual, np.zeros_like(fit.misfit)))
        if not np.sum(finer.residual**2) < REFINEMENT_GAIN * np.sum(fit.residual**2):
            break
        fit = finer
    return Posterior(fit.variance(joint), _slack(joint, fit), fit.weights)


def _fit(joint: Joint, weights: FloatArray) -> _Fit:
    applied = joint.system.apply(weights)
    misfit = joint.secret_loadings.T - joint.loadings.T @ weights
    return _Fit(weights, applied, misfit, joint.cross + joint.loadings @ misfit - applied)


def regression(joint: Joint) -> Regression:
    """(C, Y) -> (S + U U^T)^-1 (C + U Y), by Woodbury around S."""
    loadings, system = joint.loadings, joint.system
    if loadings.shape[1] == 0:
        return lambda cross, loaded: system.solve(cross)
    directions = system.solve(loadings)
    capacity = cholesky_factor(np.eye(loadings.shape[1]) + loadings.T @ directions)

    def solve(cross: FloatArray, loaded: FloatArray) -> FloatArray:
        base = system.solve(cross)
        return base + directions @ cholesky_solve(capacity, loaded - loadings.T @ base)

    return solve


def rounding(terms: int) -> float:
    """The relative error of a sum of products of this many kernel values, at most.

    2 n u is the worst case of the two nested sums; independent roundings add up like their square
    root, and stay below 10 of it but for a chance of 1e-20. Source: Higham and Mary (2019), A new
    approach to probabilistic rounding error analysis, theorem 2.4.
    """
    return 2 * (min(float(terms), 10.0 * float(np.sqrt(terms))) + KERNEL_ROUNDING) * UNIT_ROUNDOFF


def _size(joint: Joint, fit: _Fit) -> FloatArray:
    """The deviations that s - W^T Z adds up, loadings aside (k,): its terms are of their square."""
    return np.asarray(np.sqrt(joint.system.diagonal) @ np.abs(fit.weights) + joint.size)


def _rounding_of_residual(joint: Joint, fit: _Fit) -> FloatArray:
    """The norm (k,) of what rounding can do to R, a misfit that is itself rounded aside."""
    spread = float(np.sqrt(np.sum(joint.system.diagonal)))
    loaded = np.sqrt(_squared(joint.loadings)) @ np.abs(fit.misfit)
    return np.asarray(rounding(joint.system.size) * (spread * _size(joint, fit) + loaded))


def _slack(joint: Joint, fit: _Fit) -> FloatArray:
    """How far the variance of the evaluated residual may be from Q, for each column (k,).

    A misfit that is off by e moves the variance by 2 misfit e + e^2, and R by U e, which counts
    for at most e^2, since U^T (S + U U^T)^-1 U <= I: this is what makes large levels harmless.
    """
    unit = rounding(joint.system.size)
    missing = np.sqrt(_squared(fit.misfit))
    loaded = np.abs(joint.loadings).T @ np.abs(fit.weights)
    slip = np.sqrt(_squared(unit * loaded + 4 * UNIT_ROUNDOFF * np.abs(joint.secret_loadings.T)))
    missed = np.sqrt(_squared(fit.residual)) + _rounding_of_residual(joint, fit)
    missed = missed / np.sqrt(joint.system.least) + slip
    evaluated = unit * (_size(joint, fit) ** 2 + missing**2)
    return np.asarray(evaluated + slip * (2 * missing + slip) + missed**2)


def _squared(columns: FloatArray) -> FloatArray:
    return np.asarray(np.sum(columns * columns, axis=0))


def inverse_of(matrix: FloatArray) -> tuple[FloatArray, float]:
    """The inverse of a small positive definite matrix (k, k), and a bound of the norm of its error.

    Raises NumericalError where the matrix is not positive definite, or hardly. Rows are scaled to
    unit variance first, so that the error is one of correlations. Source: Higham (2002), Accuracy
    and Stability of Numerical Algorithms, 10.1 and 14.1.
    """
    size = matrix.shape[0]
    if size == 1 and matrix[0, 0] > 0:
        inverted = 1.0 / matrix
        return inverted, 2 * UNIT_ROUNDOFF * float(inverted[0, 0])
    variances = np.diagonal(matrix)
    if not np.all(variances > 0):
        raise _indefinite()
    scale = 1.0 / np.sqrt(variances)
    scaled = scale[:, None] * matrix * scale
    inverse = cholesky_solve(cholesky_factor(scaled), np.eye(size))
    inverse = (inverse + inverse.T) / 2
    norm = float(np.linalg.norm(inverse))
    error = 8 * (size + 2) * UNIT_ROUNDOFF * size * norm
    if error >= WORST_INVERSE:
        raise _indefinite()
    inverted = scale[:, None] * inverse * scale
    return np.asarray(inverted), 2 * error * norm * float(np.max(scale)) ** 2
