"""The least noise for any list of secrets, each with its own bound: reduced, solved, proved.

The range of an optimal Gamma is spanned by columns (Sigma + theta I)^-1 B c, theta an eigenvalue
of Gamma. So the n x n problem is solved in the span of such columns for a few theta, the theta are
read off its answer, and again, until nothing is gained. Few of many secrets bind: the rest are
added when they are found violated.

What is returned does not rest on any of this. Its losses are recomputed elsewhere
(trailveil.loss), and no mechanism has a smaller trace than the dual bound: for any W_i >= 0 and V
with V V^T <= I,

    trace(Gamma) >= sum_i 2 tr(V_i^T B_i W_i^1/2) - tr(V_i^T Sigma V_i) - tr(W_i (P_i - C_i))

C_i = (P_i^-1 + l_i I)^-1, since Q_i >= C_i is what loss_i <= l_i says. With V_i = (Sigma +
Gamma)^-1 B_i W_i^1/2, scaled by s = |V|_2 and with it W, this is (trace(V^T Gamma V) + sum
trace(W_i (C_i - Q_i))) / s^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from trailveil.design.interior import Constraint, Reduced, minimise, slack
from trailveil.errors import InvalidValue
from trailveil.gaussian import FloatArray, Joint, Posterior, posterior
from trailveil.mechanism import Mechanism
from trailveil.precision import known_precision
from trailveil.prior import NOTHING_KNOWN, Prior
from trailveil.secrets import Secret

# Relative gaps of the interior-point steps: in the round that only looks for theta, and afterwards.
_ROUGH, _FINE = 1e-4, 1e-8
# Rounds end at this gap between trace and bound, or after so many.
_PROVED, _ROUNDS = 1e-6, 4
# Directions with a Gram eigenvalue below this share of the largest are combinations of others.
_DEPENDENT = 1e-12
# Eigenvalues of Gamma below this share of the largest are the barrier's own, and are left out ...
_NEGLIGIBLE = 1e-8
# ... and those above this one say where new directions are to be looked for.
_TELLING = 1e-5
# How far inside the constraints a round begins, relative.
_INSIDE = 1.02
# Secrets that are taken into the problem at a time.
_ADDED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """One secret whose loss must be at most `bound` in every direction: L <= bound I."""

    secret: Secret
    bound: float


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Gamma = F F^T, and what is proved of it.

    factor: F (n, r). spanned_by: Z (n, r) with F = Sigma Z. least_trace: no noise meets the
    demands with less. steps: Newton steps in all. active: the indices of the demands that were in
    the last problem.
    """

    factor: FloatArray
    spanned_by: FloatArray
    least_trace: float
    steps: int
    active: tuple[int, ...]

    @property
    def trace(self) -> float:
        """The trace of Gamma."""
        return float(np.sum(self.factor**2))

    @property
    def gap(self) -> float:
        """How far the trace can be above the least, relative to it.

        Infinite where nothing is proved.
        """
        if self.least_trace > 0:
            return self.trace / self.least_trace - 1.0
        return 0.0 if self.trace == 0 else float("inf")


def least_noise_for(prior: Prior, demands: Sequence[Demand], existing: Mechanism) -> Solution:
    """The noise of least trace, beside what exists, that meets every demand against one prior.

    Raises InvalidValue for stays (whose prior is another one), NumericalError where it is not
    found.
    """
    if any(demand.secret.window is not None for demand in demands):
        raise InvalidValue(
            "a stay must be designed for by itself here, got one among other secrets"
        )
    parts = tuple(_part(prior, one, existing) for one in demands)
    problem = _Problem(prior, existing, tuple(part for part in parts if part.level > 0))
    if not problem.parts:
        nothing = np.empty((existing.rows.size, 0))
        return Solution(nothing, nothing, 0.0, 0, ())
    active = problem.first()
    while True:
        solution = _solve(problem, active)
        wanting = problem.violated(solution, active)
        if not wanting:
            return solution
        active = sorted({*active, *wanting})


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What the prior says of one secret.

    cross: C (n, k) and loading: V (k, m), so that B = cross + U V^T. solved: Sigma^-1 B. floor:
    C_i, the posterior covariance that must be left. without: Q0, what is left without noise.
    level: the T at which white noise of variance T everywhere would do, to begin with; else 0.
    """

    cross: FloatArray
    loading: FloatArray
    solved: FloatArray
    floor: FloatArray
    without: FloatArray
    level: float


@dataclass(frozen=True, slots=True, eq=False)
class _Space:
    """Directions E (n, p) and Z (n, p) with Sigma Z = E; the columns of E orthonormal."""

    columns: FloatArray
    spanned_by: FloatArray

    def combined(self, coefficients: FloatArray) -> "_Space":
        """E A and Z A."""
        return _Space(self.columns @ coefficients, self.spanned_by @ coefficients)

    def reduced(self, parts: Sequence[_Part]) -> Reduced:
        """The problem in this space."""
        information = self.columns.T @ self.spanned_by
        constraints = tuple(
            Constraint(0, self.columns.T @ part.solved, part.without, part.floor) for part in parts
        )
        return Reduced(((information + information.T) / 2,), constraints)

    def holding(self, columns: FloatArray) -> FloatArray:
        """A feasible K: that of Gamma = columns columns^T, a little larger.

        And a little in every direction.
        """
        inside = self.columns.T @ columns
        size = float(np.sum(inside**2))
        eye = np.eye(self.columns.shape[1])
        return _INSIDE * inside @ inside.T + (_INSIDE - 1) * size / eye.shape[0] * 1e-2 * eye


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    prior: Prior
    existing: Mechanism
    parts: tuple[_Part, ...]

    def first(self) -> list[int]:
        """The demands to begin with: the hardest for itself, and both ends."""
        levels = [part.level for part in self.parts]
        return sorted({0, len(levels) - 1, int(np.argmax(levels))})

    def directions(self, thetas: Sequence[float], chosen: Sequence[int]) -> _Space:
        """(Sigma + theta I)^-1 B_i for each theta and chosen i, not orthonormal yet."""
        parts = [self.parts[i] for i in chosen]
        cross = np.hstack([part.cross for part in parts])
        loading = np.vstack([part.loading for part in parts])
        solved = np.hstack([part.solved for part in parts])
        made = [_weights(self.prior, self.existing, theta, cross, loading) for theta in thetas]
        # Sigma E = B - theta E, so Sigma^-1 E = (Sigma^-1 B - E) / theta.
        spanned = [(solved - one) / theta for one, theta in zip(made, thetas, strict=True)]
        return _Space(np.hstack(made), np.hstack(spanned))

    def violated(self, solution: Solution, active: Sequence[int]) -> list[int]:
        """The demands outside that the solution misses most."""
        missing = []
        space = _Space(solution.factor, solution.spanned_by)
        for i, part in enumerate(self.parts):
            if i in active:
                continue
            lacking = slack(space.reduced([part]), np.eye(solution.factor.shape[1]))[0]
            lack = float(eigh(lacking, eigvals_only=True)[0]) / float(np.trace(part.floor))
            if lack < -_FINE:
                missing.append((lack, i))
        return [i for _, i in sorted(missing)[:_ADDED]]


def _solve(problem: _Problem, active: Sequence[int]) -> Solution:
    """The problem of the active demands alone, with its bound."""
    parts = [problem.parts[i] for i in active]
    most = sum(len(part.floor) for part in parts)
    space, noise = _beginning(problem, active)
    found = minimise(space.reduced(parts), noise, 1.0, _ROUGH)
    steps, rounds = found.steps, 0
    best: list[Solution] = []
    while True:
        final, spectrum = _kept(space, found.noise, most)
        least = _dual(parts, found.weights, final)
        solution = Solution(final.columns, final.spanned_by, least, steps, tuple(active))
        best = sorted([*best, solution], key=lambda one: one.gap)[:1]
        if solution.gap <= _PROVED or rounds == _ROUNDS:
            return best[0]
        telling = spectrum[spectrum > _TELLING * spectrum[-1]]
        space = _orthonormal([final, problem.directions(telling, active)])
        noise = space.holding(final.columns)
        found = minimise(space.reduced(parts), noise, 4 * (_INSIDE - 1), _FINE)
        steps, rounds = steps + found.steps, rounds + 1


def _kept(space: _Space, noise: FloatArray, most: int) -> tuple[_Space, FloatArray]:
    """Columns of Gamma, the smallest first, without those that are the barrier's.

    most: there is an optimum of at most as many columns as the secrets have locations.
    """
    spectrum, basis = eigh(noise)
    kept = spectrum > _NEGLIGIBLE * spectrum[-1]
    kept[: -most or None] = False
    return space.combined(basis[:, kept] * np.sqrt(spectrum[kept])), spectrum[kept]


def _beginning(problem: _Problem, active: Sequence[int]) -> tuple[_Space, FloatArray]:
    """Directions for a few theta around the levels of the secrets, and a feasible K in them.

    T V (V^T V)^-1 V^T, V = (Sigma + T I)^-1 B, leaves of a secret what white noise T I leaves.
    """
    levels = [problem.parts[i].level for i in active]
    alone = [problem.directions([level], [i]) for level, i in zip(levels, active, strict=True)]
    spread = np.geomspace(min(levels) / 30, max(levels), 4)
    space = _orthonormal([*alone, problem.directions(list(spread), active)])
    roots = [
        np.sqrt(level) * np.linalg.qr(one.columns)[0]
        for level, one in zip(levels, alone, strict=True)
    ]
    return space, space.holding(np.hstack(roots))


def _orthonormal(spaces: Sequence[_Space]) -> _Space:
    """One space of orthonormal directions for several.

    What depends on others to rounding is dropped.
    """
    columns = np.hstack([space.columns for space in spaces])
    spanned = np.hstack([space.spanned_by for space in spaces])
    sizes = np.linalg.norm(columns, axis=0)
    columns, spanned = columns / sizes, spanned / sizes
    gram, basis = eigh(columns.T @ columns)
    kept = gram > _DEPENDENT * gram[-1]
    return _Space(columns, spanned).combined(basis[:, kept] / np.sqrt(gram[kept]))


def _dual(parts: Sequence[_Part], weights: Sequence[FloatArray], noise: _Space) -> float:
    """The lower bound of the trace at these weights: see the head of the module."""
    problem = noise.reduced(parts)
    lacking = slack(problem, np.eye(noise.columns.shape[1]))
    root = [_root(weight) for weight in weights]
    v = np.hstack(
        [
            _pulled(part, noise, problem.informations[0]) @ r
            for part, r in zip(parts, root, strict=True)
        ]
    )
    size = float(np.linalg.norm(v, 2))
    missed = sum(float(np.sum(w * lack)) for w, lack in zip(weights, lacking, strict=True))
    return (float(np.sum((noise.columns.T @ v) ** 2)) - missed) / max(size, 1.0) ** 2


def _pulled(part: _Part, noise: _Space, information: FloatArray) -> FloatArray:
    """(Sigma + F F^T)^-1 B = Sigma^-1 B - Z (I + F^T Z)^-1 F^T Sigma^-1 B."""
    inner = np.eye(information.shape[0]) + information
    return part.solved - noise.spanned_by @ np.linalg.solve(inner, noise.columns.T @ part.solved)


def _root(matrix: FloatArray) -> FloatArray:
    spectrum, basis = eigh(matrix)
    return np.asarray((basis * np.sqrt(np.maximum(spectrum, 0.0))) @ basis.T)


def _part(prior: Prior, demand: Demand, existing: Mechanism) -> _Part:
    """Everything about one secret that the designer needs."""
    secret = demand.secret
    cross, variance, loading = prior.secret_parts(secret, existing, NOTHING_KNOWN)
    precision, _ = known_precision(prior, secret)
    floor = np.asarray(np.linalg.inv(precision + demand.bound * np.eye(secret.size)))
    bare = existing.factor.shape[1] == 0 and existing.floor == 0.0
    if secret.recorded and bare and bool(np.all(existing.released)):
        # s = H X is known exactly without noise, and Sigma^-1 B = H^T.
        solved = np.zeros((prior.times.size, secret.size))
        solved[np.searchsorted(prior.times, secret.times)] = secret.weights.T
        without = np.zeros((secret.size, secret.size))
    else:
        found = _posterior(prior, existing, 0.0, cross, variance, loading)
        solved, without = found.weights, found.covariance
    met = float(eigh(without - floor, eigvals_only=True)[0]) >= 0
    level = 0.0 if met else _level(prior, existing, (cross, variance, loading), floor)
    return _Part(cross, loading, solved, floor, without, level)


def _level(
    prior: Prior,
    existing: Mechanism,
    joint: tuple[FloatArray, FloatArray, FloatArray],
    floor: FloatArray,
) -> float:
    """A T at which white noise of variance T at every row leaves more than `floor`."""

    def excess(log_level: float) -> float:
        left = _posterior(prior, existing, float(np.exp(log_level)), *joint).covariance
        return float(eigh(left - floor, eigvals_only=True)[0]) / float(np.trace(floor))

    low = high = float(np.log(np.trace(floor)))
    while excess(high) <= 0:
        high += 3.0
        if high > low + 90:
            raise InvalidValue(
                "a bound must be one that some noise can meet, got one that none meets"
            )
    while excess(low) > 0 and low > high - 90:
        low -= 3.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-3))) * _INSIDE


def _posterior(
    prior: Prior,
    existing: Mechanism,
    theta: float,
    cross: FloatArray,
    variance: FloatArray,
    loading: FloatArray,
) -> Posterior:
    system = prior.systems(existing, NOTHING_KNOWN)(theta)
    loadings = prior.loadings(existing, NOTHING_KNOWN)
    return posterior(Joint(system, cross, variance, loadings, loading))


def _weights(
    prior: Prior, existing: Mechanism, theta: float, cross: FloatArray, loading: FloatArray
) -> FloatArray:
    """(Sigma + theta I)^-1 B (n, k)."""
    unused = np.zeros((cross.shape[1], cross.shape[1]))
    return _posterior(prior, existing, theta, cross, unused, loading).weights
