"""The reduced problem and its interior-point solver: second-order steps on a p x p matrix.

With Gamma = E K E^T, E (n, p) orthonormal, everything a prior j says about a secret is in a few
small matrices: N_j = E^T Sigma_j^-1 E, G = E^T Sigma_j^-1 B, and Q0, the posterior covariance
without noise:

    Q(K) = Q0 + G^T (K^-1 + N_j)^-1 G,        concave in K
    min trace(K)   s.t.   Q_i(K) >= C_i for all i,   K >= 0

solved by Newton steps on t trace(K) - log det K - sum_i log det(Q_i(K) - C_i) for growing t. At
its minimum the weights W_i = (Q_i - C_i)^-1 / t are feasible for the dual, and (rows of all
constraints and of K together) / t is the gap. Source: Boyd and Vandenberghe, Convex Optimization,
chapter 11.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from trailveil.errors import NumericalError
from trailveil.gaussian import FloatArray, cholesky_factor

# The barrier grows by this factor once half the squared Newton decrement is below the second; where
# it ends, weights are read off, which asks for the third.
_GROWTH, _CENTRED, _EXACTLY = 50.0, 0.1, 1e-6
_MOST_STEPS, _SUFFICIENT, _SHORTEST = 100, 0.1, 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """Q0 + G^T (K^-1 + N)^-1 G >= C for the prior number `prior`: G (p, k), Q0 and C (k, k)."""

    prior: int
    pull: FloatArray
    without: FloatArray
    floor: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """informations: N_j (p, p) of each prior. constraints: one for each secret and prior."""

    informations: tuple[FloatArray, ...]
    constraints: tuple[Constraint, ...]

    @property
    def rows(self) -> int:
        """Rows of all matrices that must stay positive: the gap is this over t."""
        return len(self.informations[0]) + sum(len(c.floor) for c in self.constraints)


@dataclass(frozen=True, slots=True, eq=False)
class Interior:
    """Where the solver stopped: K (p, p), strictly feasible; W_i (k, k) for each constraint."""

    noise: FloatArray
    weights: tuple[FloatArray, ...]
    steps: int


def minimise(problem: Reduced, start: FloatArray, begin: float, gap: float) -> Interior:
    """The K of least trace to a relative gap.

    From a strictly feasible one whose gap is `begin` or so.

    Raises NumericalError where the start is not feasible or the steps do not settle.
    """
    noise, steps = start, 0
    t = problem.rows / (begin * float(np.trace(noise)))
    while True:
        last = problem.rows / t <= gap * float(np.trace(noise))
        noise, taken = _centre(problem, noise, t, _EXACTLY if last else _CENTRED)
        steps += taken
        if last:
            weights = tuple(inverse / t for inverse in _evaluate(problem, noise).slacks)
            return Interior(noise, weights, steps)
        t *= _GROWTH


def slack(problem: Reduced, noise: FloatArray) -> list[FloatArray]:
    """Q_i(K) - C_i for each constraint."""
    hidden = [hidden_part(noise, information) for information in problem.informations]
    return [c.without + c.pull.T @ hidden[c.prior] @ c.pull - c.floor for c in problem.constraints]


def hidden_part(noise: FloatArray, information: FloatArray) -> FloatArray:
    """(K^-1 + N)^-1 (p, p), for a K that may be singular."""
    found = np.linalg.solve(np.eye(noise.shape[0]) + noise @ information, noise)
    return np.asarray(found + found.T) / 2


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """The barrier at K less t trace(K), (Q_i - C_i)^-1, and (I + K N_j)^-1."""

    value: float
    slacks: list[FloatArray]
    damped: list[FloatArray]
    inverse: FloatArray


def _evaluate(problem: Reduced, noise: FloatArray) -> _Point:
    """Raises NumericalError where K or any slack is not positive definite."""
    eye = np.eye(noise.shape[0])
    damped = [np.asarray(np.linalg.solve(eye + noise @ n, eye)) for n in problem.informations]
    hidden = [(z @ noise + (z @ noise).T) / 2 for z in damped]
    factor = cholesky_factor(noise)
    value = -2 * float(np.sum(np.log(np.diagonal(factor))))
    slacks: list[FloatArray] = []
    for c in problem.constraints:
        left = c.without + c.pull.T @ hidden[c.prior] @ c.pull - c.floor
        root = cholesky_factor((left + left.T) / 2)
        value -= 2 * float(np.sum(np.log(np.diagonal(root))))
        slacks.append(np.asarray(cho_solve((root, True), np.eye(left.shape[0]))))
    return _Point(value, slacks, damped, np.asarray(cho_solve((factor, True), eye)))


def _centre(
    problem: Reduced, noise: FloatArray, t: float, centred: float
) -> tuple[FloatArray, int]:
    point = _evaluate(problem, noise)
    for taken in range(1, _MOST_STEPS + 1):
        gradient, hessian = _derivatives(problem, point, t)
        step, decrement = _newton(gradient, hessian, noise.shape[0])
        if decrement / 2 <= (centred if taken < _MOST_STEPS else _CENTRED):
            return noise, taken
        moved = _line_search(problem, noise, step, t, (point.value, decrement))
        if moved is None:
            return noise, taken
        noise, point = moved
    raise NumericalError("the design must settle, got Newton steps that do not; loosen a target")


def _line_search(
    problem: Reduced,
    noise: FloatArray,
    step: FloatArray,
    t: float,
    now: tuple[float, float],
) -> tuple[FloatArray, _Point] | None:
    """The first of K + step, K + step / 2, ... that is feasible and low enough; None for none."""
    value, decrement = now
    size = 1.0
    while size >= _SHORTEST:
        trial = noise + size * step
        try:
            point = _evaluate(problem, trial)
        except NumericalError:
            size /= 2
            continue
        change = t * size * float(np.trace(step)) + point.value - value
        if change <= -_SUFFICIENT * size * decrement:
            return trial, point
        size /= 2
    return None


def _derivatives(problem: Reduced, point: _Point, t: float) -> tuple[FloatArray, FloatArray]:
    """Gradient (p, p) and Hessian over the lower triangle of K."""
    size = point.inverse.shape[0]
    gradient = t * np.eye(size) - point.inverse
    pulls = [np.zeros((size, size)) for _ in problem.informations]
    forms = []
    for c, inverse in zip(problem.constraints, point.slacks, strict=True):
        seen = point.damped[c.prior].T @ c.pull @ np.linalg.cholesky(inverse)
        pulls[c.prior] += seen @ seen.T
        forms.append(_products(seen))
    flat = np.concatenate(forms)
    hessian = _quadratic(point.inverse, point.inverse) + flat.T @ flat
    for pull, n, z in zip(pulls, problem.informations, point.damped, strict=True):
        bent = n @ z
        hessian += 2 * _quadratic(pull, (bent + bent.T) / 2)
    return gradient - sum(pulls), hessian


def _products(seen: FloatArray) -> FloatArray:
    """Rows that map the lower triangle of D to r_a^T D r_b, for all columns r of `seen` (p, k)."""
    rows, columns, weights = _triangle(seen.shape[0])
    first, second = seen[rows], seen[columns]
    both = first[:, :, None] * second[:, None, :] + second[:, :, None] * first[:, None, :]
    return np.asarray((both * weights[:, None, None]).reshape(rows.size, -1).T)


def _quadratic(p: FloatArray, q: FloatArray) -> FloatArray:
    """The form trace(D P D Q) over the lower triangle of a symmetric D, symmetric in P and Q."""
    rows, columns, weights = _triangle(p.shape[0])
    near = p[np.ix_(columns, rows)] * q[np.ix_(rows, columns)]
    far = p[np.ix_(columns, columns)] * q[np.ix_(rows, rows)]
    if p is not q:
        near = (near + q[np.ix_(columns, rows)] * p[np.ix_(rows, columns)]) / 2
        far = (far + q[np.ix_(columns, columns)] * p[np.ix_(rows, rows)]) / 2
    return np.asarray((near + near.T + far + far.T) * (weights[:, None] * weights))


def _newton(gradient: FloatArray, hessian: FloatArray, size: int) -> tuple[FloatArray, float]:
    """The Newton step (p, p) and its squared decrement."""
    rows, columns, weights = _triangle(size)
    flat = 2 * weights * gradient[rows, columns]
    scale = 1.0 / np.sqrt(np.diagonal(hessian))
    factor = cho_factor(hessian * np.outer(scale, scale), lower=True, check_finite=False)
    flat_step = -scale * cho_solve(factor, scale * flat, check_finite=False)
    step = np.zeros((size, size))
    step[rows, columns] = flat_step
    step[columns, rows] = flat_step
    return step, float(-flat @ flat_step)


@lru_cache(maxsize=64)
def _triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Rows and columns of the lower triangle; 1/2 on the diagonal.

    Which occurs once and not twice.
    """
    rows, columns = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 0.5, 1.0)
