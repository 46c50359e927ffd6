"""Lower bounds: no noise that meets the requirements costs less, whatever found the weights.

For any W_i >= 0 (of requirement i, against a prior with Sigma_i) and any V with V V^T <= W, W the
costs of the rows,

    trace(W Gamma) - sum_i trace(W_i Q_i(Gamma)) >=
        sum_i 2 tr(V_i^T B_i W_i^1/2) - tr(V_i^T Sigma_i V_i) - tr(W_i P_i)  =: h

for every Gamma >= 0. Least noise: Q_i >= C_i(y) for some y of the allowed sum, so trace(W Gamma) >=
h + the least sum_i tr(W_i C_i(y)), which is convex in y. Least loss: trace >= h + sum_i tr(W_i
C_i(l)) where the loss l is reached; the right falls with l, so l is at least the root.

The best V are (Sigma_i + Gamma)^-1 B_i W_i^1/2, but for several priors weights that are best for
Gamma in the span of D, D^T W D = I, make them too large elsewhere. So the bound is that of another
problem: with the noise delta (W^-1 - D D^T) for nothing, a little noise does more, so what it needs
is no more than what is needed. For large delta only D^T W Z is released, in fact. Its own Gamma and
weights make V that are small outside of the span of D; the wider D, the nearer the two problems
are. W_i and V are scaled until V V^T <= W, which divides h by the square of what V is too large by.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from trailveil.designer.interior import Constraint, Interior, Reduced
from trailveil.designer.problem import Goal, Problem
from trailveil.designer.spaces import Space, root
from trailveil.gp.gaussian import FloatArray

# How near 1 / delta the eigenvalues of A = D^T (Sigma + delta W^-1)^-1 D are taken to be at most.
_LARGEST_SHARE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Pulled:
    """V_i (n, k) of each active requirement, side by side (n, m), and h before any scaling."""

    columns: FloatArray
    value: float


def pulled(
    problem: Problem,
    space: Space,
    noise: FloatArray,
    weights: Sequence[FloatArray],
    active: Sequence[int],
    delta: float,
) -> Pulled:
    """V at the noise D K D^T + delta (W^-1 - D D^T), for the K (p, p) the weights belong to.

    value: h = sum_i tr(V_i^T (D K D^T + delta ...) V_i) - tr(W_i Q_i), Q_i what that noise leaves.
    """
    more = noise - delta * np.eye(noise.shape[0])
    unit = space.columns
    solved = [
        space.spanned[j] if delta == 0 else view.at(delta).solve(unit)
        for j, view in enumerate(problem.views)
    ]
    vectors, value = [], 0.0
    for i, weight in zip(active, weights, strict=True):
        viewed = problem.viewed(i, delta)
        columns = solved[problem.requirements[i].view]
        columns = columns + viewed.extra @ (viewed.extra.T @ unit)
        pull = unit.T @ viewed.weights
        inner = np.linalg.solve(np.eye(len(more)) + more @ (unit.T @ columns), more @ pull)
        posterior = viewed.covariance + pull.T @ inner
        v = (viewed.weights - columns @ inner) @ root(weight)
        inside = unit.T @ v
        spent = delta * float(np.sum(v**2 / problem.cost[:, None]))
        value += spent + float(np.sum(inside * (more @ inside))) - float(np.sum(weight * posterior))
        vectors.append(v)
    return Pulled(np.hstack(vectors), value)


def eased(problem: Problem, space: Space, active: Sequence[int], delta: float) -> Reduced:
    """The problem with the noise delta (W^-1 - D D^T) for nothing, D the columns of the space.

    With A = D^T (Sigma + delta W^-1)^-1 D the information is A (I - delta A)^-1, and so on.
    """
    unit = space.columns
    solved = [view.at(delta).solve(unit) for view in problem.views]
    informations: dict[tuple[int, int | None], tuple[int, FloatArray]] = {}
    constraints, shares = [], problem.shares(active)
    for i, (allowed, by) in zip(active, shares, strict=True):
        requirement, viewed = problem.requirements[i], problem.viewed(i, delta)
        columns = solved[requirement.view] + viewed.extra @ (viewed.extra.T @ unit)
        # Only weights are sought here: an A that rounding has made too large may be a little less.
        spectrum, basis = eigh((unit.T @ columns + columns.T @ unit) / 2)
        spectrum = np.clip(spectrum, 0.0, (1 - _LARGEST_SHARE) / delta)
        seen_by, freed = basis.T @ (unit.T @ viewed.weights), 1 / (1 - delta * spectrum)
        pull = basis @ (freed[:, None] * seen_by)
        n = (basis * (spectrum * freed)) @ basis.T
        without = viewed.covariance - delta * seen_by.T @ (freed[:, None] * seen_by)
        key = (requirement.view, requirement.point)
        number = informations.setdefault(key, (len(informations), (n + n.T) / 2))[0]
        without = (without + without.T) / 2
        constraints.append(Constraint(number, pull, without, requirement.precision, allowed, by))
    linear, cost_of_trace, cost = problem.linear(active)
    roots = tuple(root(n) for _, n in informations.values())
    return Reduced(roots, tuple(constraints), linear, cost_of_trace, cost, np.eye(len(roots[0])))


def lower_bound(
    problem: Problem,
    interior: Interior,
    active: Sequence[int],
    pulled: Pulled,
    weights: Sequence[FloatArray],
) -> float:
    """The bound of what is minimised; 0 where it is none."""
    scaled = pulled.columns / np.sqrt(problem.cost)[:, None]
    size = float(np.linalg.norm(scaled.T @ scaled, 2))
    if problem.goal is Goal.LOSS:
        return _least_loss(problem, active, weights, pulled.value, size)
    return max(0.0, _least_noise(problem, interior, active, weights, pulled.value, size))


def dual_weights(problem: Problem, interior: Interior) -> list[FloatArray]:
    """W_i of each constraint, for a trace that costs 1."""
    price = 1.0 if problem.goal is Goal.NOISE else float(interior.prices[0])
    return [weight / price for weight in interior.weights]


def _least_noise(
    problem: Problem,
    interior: Interior,
    active: Sequence[int],
    weights: Sequence[FloatArray],
    value: float,
    size: float,
) -> float:
    total, numbers = value, problem.by_requirement(interior.z, active)
    for i, weight in zip(active, weights, strict=True):
        requirement = problem.requirements[i]
        y = numbers.get(i, np.array([requirement.bound]))
        floor = np.linalg.inv(requirement.precision + np.diag(y))
        slopes = np.diagonal(floor @ weight @ floor)
        # Convex in y: at least its tangent, least where all of the sum is at the steepest.
        total += (
            float(np.sum(weight * floor)) + float(slopes @ y) - requirement.bound * slopes.max()
        )
    return total / size


def _least_loss(
    problem: Problem,
    active: Sequence[int],
    weights: Sequence[FloatArray],
    value: float,
    size: float,
) -> float:
    parts = []
    for i, weight in zip(active, weights, strict=True):
        requirement = problem.requirements[i]
        spectrum, basis = eigh(requirement.precision)
        parts.append((np.sum((basis.T @ weight) * basis.T, axis=1), spectrum, requirement.bound))

    def excess(loss: float) -> float:
        """What losses as low as this cost at least, over the trace there is."""
        floors = sum(float(np.sum(w / (s + loss * share))) for w, s, share in parts)
        return (value + floors) / size - problem.trace

    high = 1.0
    while excess(high) > 0:
        high *= 4.0
    low = high
    while excess(low) <= 0:
        low /= 4.0
        if low < 1e-60:
            return 0.0
    return float(brentq(excess, low, high, xtol=1e-14 * low, rtol=1e-14))
