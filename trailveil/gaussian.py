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
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from trailveil.errors import InvalidValue, NumericalError

FloatArray: TypeAlias = NDArray[np.float64]

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2
# Relative; how far a covariance given by a user may be from symmetric or from non-negative.
SYMMETRY_TOLERANCE = 1e-12
NEGATIVE_EIGENVALUE_TOLERANCE = 1e-12
# Relative slack on a loss above which double precision is given up for extended precision ...
LOSS_SLACK = 1e-8
# ... and above which, where extended precision is out of reach, no figure is given at all.
LARGEST_LOSS_SLACK = 1e-3
# Steps of iterative refinement, as long as each makes the squared residual smaller by this factor.
MOST_REFINEMENTS = 6
REFINEMENT_GAIN = 0.1
# Relative: a Newton step of this size is the last, since the next would be of its square.
LAST_NEWTON_STEP = 1e-6
# Relative to where a search begins: what is below this is nothing.
NEGLIGIBLE = 1e-12
# Relative: the least step to the safe side after a solve; the loss is recomputed at each.
SAFE_STEP = 1e-11
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
        return np.asarray(cho_solve((self.factor, True), rhs, check_finite=False))

    def apply(self, x: FloatArray) -> FloatArray:
        """S x."""
        return self.matrix @ x


def dense_system(matrix: FloatArray, least: float) -> DenseSystem:
    """A DenseSystem of a symmetric positive definite matrix (n, n).

    least: a lower bound (> 0) of its eigenvalues, such as the variance of independent noise in it.
    Raises NumericalError where double precision cannot factorise it.
    """
    return DenseSystem(matrix, cholesky_factor(matrix), least)


def cholesky_factor(matrix: FloatArray) -> FloatArray:
    """The lower Cholesky factor; NumericalError where the matrix is not positive definite."""
    try:
        return np.asarray(cholesky(matrix, lower=True, check_finite=False))
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            "the covariance must be positive definite to double precision, got one that is not; "
            "state a measurement noise (--noise-std) or an independent noise floor (--floor)"
        ) from error


def triangular_solve(factor: FloatArray, rhs: FloatArray) -> FloatArray:
    """factor^-1 rhs for a lower triangular factor (n, n)."""
    return np.asarray(solve_triangular(factor, rhs, lower=True, check_finite=False))


def check_covariance(matrix: FloatArray, what: str) -> FloatArray:
    """The same matrix; InvalidValue where it is not square, finite, symmetric and PSD."""
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValue(f"{what} must be a square matrix, got shape {matrix.shape}")
    if not np.all(np.isfinite(matrix)):
        raise InvalidValue(f"{what} must be finite, got infinite or missing entries")
    scale = float(np.max(np.abs(matrix), initial=0.0))
    skew = float(np.max(np.abs(matrix - matrix.T), initial=0.0))
    if skew > SYMMETRY_TOLERANCE * scale:
        raise InvalidValue(f"{what} must be symmetric, got entries that differ by {skew:.3g}")
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
    """

    system: System
    cross: FloatArray
    variance: FloatArray
    loadings: FloatArray
    secret_loadings: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Q (k, k) = Var(s | Z) as computed, and the per-column slack (k,) of what rounding may hide.

    For each column i the true Q_ii lies in [covariance_ii - slack_i, covariance_ii + slack_i];
    the true Q is at least covariance - sum(slack) I. weights: W (n, k), the regression of s on Z.
    """

    covariance: FloatArray
    slack: FloatArray
    weights: FloatArray


def posterior(joint: Joint) -> Posterior:
    """Var(s | Z), with a bound of its own numerical error.

    The error bound does not trust the solve. For *any* weights W,
        Var(s - W^T Z) = Q + R^T (S + U U^T)^-1 R,     R = Cov(Z, s) - (S + U U^T) W,
    so Q is the variance of the actual residual less at most |R|^2 / least; what is left is the
    rounding of evaluating these sums, which is bounded by their sizes.
    """
    system = joint.system
    solve = _regression(joint)
    weights = solve(joint.cross, joint.secret_loadings.T)
    applied, misfit, residual = _residual(joint, weights)
    # Iterative refinement: eliminating a large level costs each solve digits, but not all of them.
    for _ in range(MOST_REFINEMENTS):
        finer = weights + solve(residual, np.zeros_like(misfit))
        trial = _residual(joint, finer)
        if not np.sum(trial[2] ** 2) < REFINEMENT_GAIN * np.sum(residual**2):
            break
        weights, (applied, misfit, residual) = finer, trial
    base = joint.variance - joint.cross.T @ weights
    base = base - weights.T @ (joint.cross - applied)
    covariance = base + misfit.T @ misfit
    covariance = (covariance + covariance.T) / 2  # both halves are the same sum, rounded apart
    slack = _rounding(joint, weights, misfit) + _squared(residual) / system.least
    return Posterior(covariance, slack, weights)


def _residual(joint: Joint, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """S W, V^T - U^T W, and Cov(Z, s) - (S + U U^T) W."""
    applied = joint.system.apply(weights)
    misfit = joint.secret_loadings.T - joint.loadings.T @ weights
    return applied, misfit, joint.cross + joint.loadings @ misfit - applied


def _regression(joint: Joint) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """(C, Y) -> (S + U U^T)^-1 (C + U Y), by Woodbury around S."""
    loadings, system = joint.loadings, joint.system
    directions = system.solve(loadings) if loadings.shape[1] else loadings
    capacity = cholesky_factor(np.eye(loadings.shape[1]) + loadings.T @ directions)

    def solve(cross: FloatArray, loaded: FloatArray) -> FloatArray:
        base = system.solve(cross)
        if loadings.shape[1] == 0:
            return base
        pulled = cho_solve((capacity, True), loaded - loadings.T @ base)
        return np.asarray(base + directions @ pulled)

    return solve


def _rounding(joint: Joint, weights: FloatArray, misfit: FloatArray) -> FloatArray:
    """What rounding can do to the evaluated variances: n u times the sizes of their terms."""
    unit = (joint.system.size + 4) * UNIT_ROUNDOFF
    spread = np.sqrt(joint.system.diagonal) @ np.abs(weights)
    own = np.sqrt(np.diagonal(joint.variance))
    level = np.sum(np.abs(joint.secret_loadings), axis=1) + np.sum(
        np.abs(joint.loadings).T @ np.abs(weights), axis=0
    )
    # A misfit is a difference of level-sized sums: its own rounding, then that of its square.
    slip = unit * level
    return np.asarray(unit * (spread + own) ** 2 + 2 * np.sqrt(_squared(misfit)) * slip + slip**2)


def _squared(columns: FloatArray) -> FloatArray:
    return np.asarray(np.sum(columns * columns, axis=0))


def renyi_divergence(
    mean: FloatArray, cov: FloatArray, other_mean: FloatArray, other_cov: FloatArray, order: float
) -> float:
    """D_order( N(mean, cov) || N(other_mean, other_cov) ) in nats; infinite where the integral is.

    order: > 0, not 1. Source: Gil, Alajaji and Linder (2013), table 2: finite if and only if
    order * other_cov + (1 - order) * cov is positive definite.
    """
    mixed = order * other_cov + (1 - order) * cov
    shift = np.asarray(mean - other_mean, dtype=np.float64)
    try:
        factor = np.linalg.cholesky(mixed)
    except np.linalg.LinAlgError:
        return float("inf")
    pulled = triangular_solve(np.asarray(factor), shift)
    log_mixed = 2 * float(np.sum(np.log(np.diagonal(factor))))
    log_cov, log_other = (float(np.linalg.slogdet(c)[1]) for c in (cov, other_cov))
    tilt = (log_mixed - (1 - order) * log_cov - order * log_other) / (2 * (1 - order))
    return order / 2 * float(pulled @ pulled) + tilt


def increasing_root(
    value: Callable[[float], tuple[float, float]], start: float, name: str
) -> float:
    """The x > 0 at which an increasing function of log x is zero, by guarded Newton steps in log x.

    value(x) gives the function and its derivative by x. NumericalError where no root is found.
    """
    low, high = 0.0, np.inf
    x = start
    for _ in range(200):
        level, slope = value(x)
        if level >= 0 and x <= NEGLIGIBLE * start:
            return x  # met already, but for rounding
        low, high = (x, high) if level < 0 else (low, x)
        step = float(np.clip(-level / (slope * x), -12.0, 12.0)) if slope > 0 else 1.0
        proposal = x * float(np.exp(step))
        if abs(step) <= LAST_NEWTON_STEP:
            return proposal
        if not low < proposal < high:
            proposal = float(np.sqrt(low * high)) if low > 0 and high < np.inf else x * 16.0
        if proposal in (low, high):
            return proposal
        x = proposal
    raise NumericalError(
        f"no {name} was found that meets the target; try a larger epsilon or radius"
    )
