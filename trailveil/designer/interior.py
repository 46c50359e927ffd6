"""The reduced problem and its interior-point solver: second-order steps on a p x p matrix.

With Gamma = D K D^T, D (n, p), everything a prior j says about a secret is in a few small matrices:
N_j = D^T Sigma_j^-1 D, G = D^T Sigma_j^-1 B, and Q0, the posterior covariance without noise:

    Q(K) = Q0 + G^T (K^-1 + N_j)^-1 G,        concave in K

What may be lost of a secret is written in a few numbers z >= 0: the loss is at most diag(a + A z),
where Q(K) >= C(z) = (P^-1 + diag(a + A z))^-1, which is convex in z. So all of this is convex:

    min  c trace(M K) + d^T z
    s.t. Q_i(K) >= C_i(z) for all i,   K >= 0,   e + E z + f trace(M K) > 0

Least noise for single locations has no z; a compound secret has one number a location, of a given
sum (the tight bound); the least loss has a single z and a given trace.

Solved by Newton steps on t objective - log det K - sum_i log det(Q_i - C_i) - sum log(linear) for
growing t, in coordinates in which each stage begins at K = I: the eigenvalues of K grow apart by
many orders, and its Hessian by their square. M = I to begin with. At its minimum the weights W_i =
(Q_i - C_i)^-1 / t are feasible for the dual, and (rows of all constraints and of K together) / t is
the gap. Source: Boyd and Vandenberghe, Convex Optimization, chapter 11.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from trailveil.errors import NumericalError
from trailveil.gp.gaussian import FloatArray, cholesky_factor, cholesky_solve, triangular_solve

# The barrier grows by this factor once half the squared Newton decrement is below the second; where
# it ends, weights are read off, which asks for the third. Where steps do not settle it grows by the
# root of the factor, down to the last: along a curved constraint a centre may be many steps away.
_GROWTH, _CENTRED, _EXACTLY, _SLOWEST = 50.0, 0.1, 1e-6, 1.5
_MOST_STEPS, _SUFFICIENT, _SHORTEST = 100, 0.1, 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """Q0 + G^T (K^-1 + N)^-1 G >= (P^-1 + diag(a + A z))^-1 for the information number `prior`.

    pull: G (p, k). without: Q0 (k, k). precision: P^-1 (k, k). allowed: a (k,). by: A (k, q).
    """

    prior: int
    pull: FloatArray
    without: FloatArray
    precision: FloatArray
    allowed: FloatArray
    by: FloatArray

    def floor(self, z: FloatArray) -> FloatArray:
        """C(z) (k, k); NumericalError where z lets a loss be negative."""
        inverse = self.precision + np.diag(self.allowed + self.by @ z)
        if inverse.size == 1:
            if not inverse[0, 0] > 0:
                raise NumericalError("a loss must not be negative, got one that is")
            return 1.0 / inverse
        return cholesky_solve(cholesky_factor(inverse), np.eye(len(inverse)))


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """e + E z + f trace(M K) > 0, one row each: e (r,), E (r, q), f (r,)."""

    base: FloatArray
    by: FloatArray
    by_trace: FloatArray

    def at(self, trace: float, z: FloatArray) -> FloatArray:
        """The values (r,), which must be positive."""
        return np.asarray(self.base + self.by @ z + self.by_trace * trace)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """roots: S_j (p, p) with N_j = S_j S_j^T. constraints: one for each secret and adversary.

    cost_of_trace: c. cost: d (q,). metric: M (p, p).
    """

    roots: tuple[FloatArray, ...]
    constraints: tuple[Constraint, ...]
    linear: Linear
    cost_of_trace: float
    cost: FloatArray
    metric: FloatArray

    def trace(self, noise: FloatArray) -> float:
        """The trace of M K."""
        return float(np.sum(self.metric * noise))

    def on(self, basis: FloatArray) -> "Reduced":
        """The same problem for K' with K = R K' R^T: R (p, p)."""
        return replace(
            self,
            roots=tuple(basis.T @ s for s in self.roots),
            constraints=tuple(replace(c, pull=basis.T @ c.pull) for c in self.constraints),
            metric=basis.T @ self.metric @ basis,
        )

    @property
    def rows(self) -> int:
        """Rows of all matrices that must stay positive: the gap is this over t."""
        count = len(self.metric) + sum(len(c.precision) for c in self.constraints)
        return count + len(self.linear.base)

    def objective(self, noise: FloatArray, z: FloatArray) -> float:
        """What is minimised."""
        return float(self.cost_of_trace * self.trace(noise) + self.cost @ z)


@dataclass(frozen=True, slots=True, eq=False)
class Interior:
    """Where the solver stopped: K (p, p) and z (q,), strictly feasible.

    weights: W_i (k, k) for each constraint. prices: (r,) of each linear one.
    """

    noise: FloatArray
    z: FloatArray
    weights: tuple[FloatArray, ...]
    prices: FloatArray


def minimise(
    problem: Reduced,
    start: FloatArray,
    z: FloatArray,
    begin: float,
    gap: float,
    least: float = 0.0,
) -> Interior:
    """The least objective to a relative gap, from a strictly feasible start of gap `begin` or so.

    least: an objective that is as good as none. Where nothing at all is needed, no gap is ever
    relative to what is reached.
    Raises NumericalError where the start is not feasible or the steps do not settle.
    """
    noise, eye, growth = start, np.eye(start.shape[0]), _GROWTH
    t = problem.rows / (begin * problem.objective(noise, z))
    while True:
        last = problem.rows / t <= gap * max(problem.objective(noise, z), least)
        basis = cholesky_factor(noise)
        here = problem.on(basis)
        try:
            scaled, z = _centre(here, (eye, z), t, _EXACTLY if last else _CENTRED)
        except NumericalError:
            growth **= 0.5
            if growth < _SLOWEST:
                raise
            t /= growth
            continue
        noise = basis @ scaled @ basis.T
        if last:
            point = _evaluate(here, scaled, z)
            weights = tuple(inverse / t for inverse in point.inverses)
            return Interior(noise, z, weights, 1.0 / (t * point.linear))
        t *= growth


def feasible(problem: Reduced, noise: FloatArray, z: FloatArray) -> bool:
    """Whether K (p, p) and z (q,) meet every constraint strictly."""
    try:
        _evaluate(problem, noise, z)
    except NumericalError:
        return False
    return True


def hidden_part(noise: FloatArray, information: FloatArray) -> FloatArray:
    """(K^-1 + N)^-1 (p, p), for a K that may be singular."""
    hidden = np.linalg.solve(np.eye(noise.shape[0]) + noise @ information, noise)
    return np.asarray(hidden + hidden.T) / 2


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """The barrier at K and z less t objective, and what its derivatives are made of.

    floors: C_i. inverses: (Q_i - C_i)^-1. pulled: (I + N_j K)^-1 G_i. linear: (r,).
    """

    value: float
    floors: list[FloatArray]
    inverses: list[FloatArray]
    pulled: list[FloatArray]
    noise: FloatArray
    factor: FloatArray
    linear: FloatArray


def _evaluate(problem: Reduced, noise: FloatArray, z: FloatArray) -> _Point:
    """Raises NumericalError where anything that must be positive (definite) is not."""
    linear = problem.linear.at(problem.trace(noise), z)
    if not np.all(linear > 0):
        raise NumericalError("a linear constraint must hold strictly, got one that does not")
    # K = C C^T and M = C^T S: (K^-1 + N)^-1 = C (I + M M^T)^-1 C^T, with nothing to cancel.
    factor, eye = cholesky_factor(noise), np.eye(noise.shape[0])
    turned = [factor.T @ root for root in problem.roots]
    damped = [cholesky_factor(eye + m @ m.T) for m in turned]
    value = -2 * float(np.sum(np.log(np.diagonal(factor)))) - float(np.sum(np.log(linear)))
    floors, inverses, pulled = [], [], _pulled(problem, factor, damped)
    for c, (pull, _) in zip(problem.constraints, pulled, strict=True):
        floor = c.floor(z)
        open_part = c.without + pull.T @ pull - floor
        if open_part.size == 1:
            if not open_part[0, 0] > 0:
                raise NumericalError("a constraint must hold strictly, got one that does not")
            value -= float(np.log(open_part[0, 0]))
            inverses.append(1.0 / open_part)
        else:
            root = cholesky_factor((open_part + open_part.T) / 2)
            value -= 2 * float(np.sum(np.log(np.diagonal(root))))
            inverses.append(np.asarray(cholesky_solve(root, np.eye(open_part.shape[0]))))
        floors.append(floor)
    return _Point(value, floors, inverses, [back for _, back in pulled], noise, factor, linear)


def _pulled(
    problem: Reduced, factor: FloatArray, damped: Sequence[FloatArray]
) -> list[tuple[FloatArray, FloatArray]]:
    """(I + M M^T)^-1/2 C^T G and (I + N K)^-1 G of each constraint."""
    pulled: dict[int, tuple[FloatArray, FloatArray]] = {}
    for number, root in enumerate(damped):
        numbers = [i for i, c in enumerate(problem.constraints) if c.prior == number]
        if not numbers:
            continue
        pulls = [problem.constraints[i].pull for i in numbers]
        forward = triangular_solve(root, factor.T @ np.hstack(pulls))
        back = _upper_solve(factor, _upper_solve(root, forward))
        ends = np.cumsum([0, *(pull.shape[1] for pull in pulls)])
        for i, a, b in zip(numbers, ends[:-1], ends[1:], strict=True):
            pulled[i] = forward[:, a:b], back[:, a:b]
    return [pulled[i] for i in range(len(problem.constraints))]


def _upper_solve(factor: FloatArray, rhs: FloatArray) -> FloatArray:
    """factor^-T rhs for a lower triangular factor."""
    return np.asarray(solve_triangular(factor, rhs, lower=True, trans=1, check_finite=False))


def _centre(
    problem: Reduced, at: tuple[FloatArray, FloatArray], t: float, centred: float
) -> tuple[FloatArray, FloatArray]:
    noise, z = at
    point = _evaluate(problem, noise, z)
    for taken in range(1, _MOST_STEPS + 1):
        step, decrement = _newton(_derivatives(problem, point, t), noise.shape[0])
        if decrement / 2 <= (centred if taken < _MOST_STEPS else _CENTRED):
            return noise, z
        moved = _line_search(problem, (noise, z), step, t, (point.value, decrement))
        if moved is None:
            return noise, z
        noise, z, point = moved
    raise NumericalError("a design must settle, got one that does not; state another target")


def _line_search(
    problem: Reduced,
    at: tuple[FloatArray, FloatArray],
    step: tuple[FloatArray, FloatArray],
    t: float,
    now: tuple[float, float],
) -> tuple[FloatArray, FloatArray, _Point] | None:
    """The first of step, step / 2, ... that is feasible and low enough; None for none."""
    value, decrement = now
    slope = problem.objective(*step)
    size = 1.0
    while size >= _SHORTEST:
        trial = at[0] + size * step[0], at[1] + size * step[1]
        try:
            point = _evaluate(problem, *trial)
        except NumericalError:
            size /= 2
            continue
        if t * size * slope + point.value - value <= -_SUFFICIENT * size * decrement:
            return *trial, point
        size /= 2
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Slopes:
    """Gradient g and Hessian H + F^T F over the lower triangle of K, then z.

    F: what constraints that nearly bind make of it, larger than the rest by many orders.
    """

    gradient: FloatArray
    hessian: FloatArray
    binding: FloatArray


def _derivatives(problem: Reduced, point: _Point, t: float) -> _Slopes:
    size, count = len(point.noise), problem.cost.size
    inverse_noise = cholesky_solve(point.factor, np.eye(size))
    slope = t * problem.cost_of_trace - float(problem.linear.by_trace @ (1 / point.linear))
    matrix = slope * problem.metric - inverse_noise
    numbers = t * problem.cost - problem.linear.by.T @ (1 / point.linear)
    pulls = [np.zeros((size, size)) for _ in problem.roots]
    curved = np.zeros((count, count))
    forms = []
    parts = zip(problem.constraints, point.floors, point.inverses, point.pulled, strict=True)
    for c, floor, inverse, pulled in parts:
        root = np.sqrt(inverse) if inverse.size == 1 else np.linalg.cholesky(inverse)
        products = pulled @ root
        pulls[c.prior] += products @ products.T
        if not count:
            forms.append(_products(products))
            continue
        scaled = floor @ root
        numbers = numbers - c.by.T @ np.sum(scaled**2, axis=1)
        forms.append(np.hstack([_products(products), _outer(scaled, c.by)]))
        curved += 2 * c.by.T @ (floor * (scaled @ scaled.T)) @ c.by
    rows, columns, weights = triangle(size)
    metric = 2 * weights * problem.metric[rows, columns]
    shares = np.hstack([np.outer(problem.linear.by_trace, metric), problem.linear.by])
    flat = np.concatenate([*forms, shares / point.linear[:, None]])
    hessian = np.zeros((flat.shape[1], flat.shape[1]))
    pairs = [(inverse_noise, inverse_noise)]
    for pull, root in zip(pulls, problem.roots, strict=True):
        # N (I + K N)^-1 = S (I + S^T K S)^-1 S^T
        damped = cholesky_factor(np.eye(root.shape[1]) + root.T @ point.noise @ root)
        bent = triangular_solve(damped, root.T)
        pairs.append((2 * pull, bent.T @ bent))
    hessian[: rows.size, : rows.size] = quadratic(pairs)
    hessian[rows.size :, rows.size :] = curved
    matrix = matrix - sum(pulls)
    gradient = np.concatenate([2 * weights * matrix[rows, columns], numbers])
    return _Slopes(gradient, hessian, flat)


def _products(vectors: FloatArray) -> FloatArray:
    """Rows that map the lower triangle of D to r_a^T D r_b, for all columns r of vectors (p, k)."""
    rows, columns, weights = triangle(vectors.shape[0])
    first, second = vectors[rows], vectors[columns]
    if vectors.shape[1] == 1:
        return np.asarray((2 * first * second * weights[:, None]).T)
    both = first[:, :, None] * second[:, None, :] + second[:, :, None] * first[:, None, :]
    return np.asarray((both * weights[:, None, None]).reshape(rows.size, -1).T)


def _outer(scaled: FloatArray, by: FloatArray) -> FloatArray:
    """Rows that map dz to the entries of R^T dC R, less its sign: told = C R (k, k), by (k, q)."""
    outer = scaled[:, :, None] * scaled[:, None, :]
    return np.tensordot(outer, by, axes=(0, 0)).reshape(scaled.shape[1] ** 2, by.shape[1])


def _newton(slopes: _Slopes, size: int) -> tuple[tuple[FloatArray, FloatArray], float]:
    """The Newton step, of K (p, p) and of z, and its squared decrement.

    x = -H^-1 (g + F^T y),  (I + F H^-1 F^T) y = -F H^-1 g: H is never drowned in F^T F.
    """
    rows, columns, _ = triangle(size)
    scale = 1.0 / np.sqrt(np.diagonal(slopes.hessian))
    factor = cholesky_factor(slopes.hessian * np.outer(scale, scale))
    both = np.column_stack([scale * slopes.gradient, scale[:, None] * slopes.binding.T])
    half = triangular_solve(factor, both)
    pulled, bound = half[:, 0], half[:, 1:]
    inner = cholesky_factor(np.eye(bound.shape[1]) + bound.T @ bound)
    y = -cholesky_solve(inner, bound.T @ pulled)
    reduced = pulled + bound @ y
    flat_step = -scale * _upper_solve(factor, reduced)
    step = np.zeros((size, size))
    step[rows, columns] = flat_step[: rows.size]
    step[columns, rows] = flat_step[: rows.size]
    return (step, flat_step[rows.size :]), float(-slopes.gradient @ flat_step)


@lru_cache(maxsize=64)
def triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Rows and columns of the lower triangle; 1/2 on the diagonal, which occurs once, else 1."""
    rows, columns = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 0.5, 1.0)


@lru_cache(maxsize=4)
def _crossings(size: int) -> tuple[NDArray[np.intp], ...]:
    """Where the four products of the form are in T[b, c, d, a], for each two of the triangle."""
    rows, columns, _ = triangle(size)
    r, c, s, d = rows[:, None], columns[:, None], rows, columns
    orders = ((c, s, r, d), (c, d, r, s), (r, d, c, s), (r, s, c, d))
    shape = (size,) * 4
    return tuple(np.ravel_multi_index(np.broadcast_arrays(*o), shape) for o in orders)


def quadratic(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """The form sum trace(D P D Q) over the lower triangle of a symmetric D, of pairs (p, p)."""
    size = pairs[0][0].shape[0]
    first = np.stack([p.ravel() for p, _ in pairs])
    second = np.stack([q.ravel() for _, q in pairs])
    table = (first.T @ second).ravel()
    weights = triangle(size)[2]
    total = sum(table[where] for where in _crossings(size))
    return np.asarray(total * (weights[:, None] * weights))
