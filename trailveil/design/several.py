"""Several secrets, or compound ones: the optimum of trailveil.design.optimal as a mechanism.

The solver's answer is only where the search begins: what is returned was scaled until the losses
that are recomputed from it meet every bound, and the dual bound says how far from the least it can
be.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq

from trailveil.design.columns import needs_digits, spanned, turn
from trailveil.design.optimal import Demand, Solution, least_noise_for
from trailveil.design.stepping import until_met
from trailveil.errors import InvalidValue
from trailveil.guarantee import tight_bound
from trailveil.loss import losses
from trailveil.mechanism import Mechanism
from trailveil.prior import NOTHING_KNOWN, Prior
from trailveil.secrets import Secret

# Relative accuracy of the common loss at which a budget is spent, and of the loss that a compound
# secret may have in each direction.
_COMMON = 1e-8
# Relative steps below a reached loss at which the bound of the trace is tried against the budget.
_BELOW = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def least_noise(
    prior: Prior, secrets: Sequence[Secret], bounds: Sequence[float], existing: Mechanism
) -> tuple[Mechanism, float | None]:
    """The least noise at which mu^2 / radius^2 of each secret is at most its bound.

    And a lower bound of it.

    For compound secrets mu^2 is the tight bound; their losses are made equal in all directions,
    which is valid and need not be the least, so that no lower bound is claimed. Raises as
    `least_noise_for` does.
    """
    single = all(secret.size == 1 for secret in secrets)
    each = [bound / secret.size for secret, bound in zip(secrets, bounds, strict=True)]
    found = _solve(prior, secrets, each, existing)
    if not single and found.trace > 0:
        each = [b * _room(prior, secrets, bounds, found, existing) for b in each]
        found = _solve(prior, secrets, each, existing)

    def excess(made: Mechanism) -> float:
        return _worst(prior, secrets, bounds, made) - 1.0

    if found.trace == 0.0:
        return existing, existing.noise_trace
    made = until_met(_maker(prior, secrets, found, existing), excess, found.trace)
    return made, existing.noise_trace + found.least_trace if single else None


def least_loss(
    prior: Prior, secrets: Sequence[Secret], budget: float, existing: Mechanism
) -> tuple[Mechanism, float | None]:
    """The least worst eigenvalue of any loss for trace(Gamma) = budget, and a lower bound of it."""
    rest = budget - existing.noise_trace
    if rest <= 0:
        raise InvalidValue(
            f"the noise budget must be above the floor's own {existing.noise_trace:.6g}, got "
            f"{budget:.6g}"
        )

    def solved(log_loss: float) -> Solution:
        return _solve(prior, secrets, [float(np.exp(log_loss))] * len(secrets), existing)

    def excess(log_loss: float) -> float:
        return float(np.log(solved(log_loss).trace / rest))

    low, high = _bracket(excess, -float(np.log(rest)))
    level = float(brentq(excess, low, high, xtol=_COMMON))
    made = _maker(prior, secrets, solved(level), existing)(rest)
    reached = max(loss.largest for loss in losses(prior, secrets, made))
    for below in _BELOW:
        if solved(float(np.log(reached * (1 - below)))).least_trace >= rest:
            return made, reached * (1 - below)
    return made, None


def _solve(
    prior: Prior, secrets: Sequence[Secret], each: Sequence[float], existing: Mechanism
) -> Solution:
    demands = [Demand(secret, bound) for secret, bound in zip(secrets, each, strict=True)]
    return least_noise_for(prior, demands, existing)


def _maker(
    prior: Prior, secrets: Sequence[Secret], found: Solution, existing: Mechanism
) -> Callable[[float], Mechanism]:
    """trace -> the mechanism with the found noise at that trace, beside what exists, canonical."""
    parts = [prior.secret_parts(secret, existing, NOTHING_KNOWN)[0] for secret in secrets]
    reference = np.hstack(parts) / np.linalg.norm(np.hstack(parts), axis=0)
    turned = turn(found.factor, reference)
    factor, combination = found.factor @ turned, found.spanned_by @ turned
    rows = existing.rows
    digits = existing.floor == 0.0 and needs_digits(prior, float(np.max(np.sum(factor**2, axis=1))))

    def make(trace: float) -> Mechanism:
        scale = np.sqrt(trace / found.trace)
        if digits:
            return spanned(prior, scale * combination, existing.factor)
        columns = np.zeros((prior.times.size, factor.shape[1]))
        columns[rows] = scale * factor
        return Mechanism(
            prior.times,
            np.hstack([existing.factor, columns]),
            existing.floor,
            existing.process,
            existing.released,
        )

    return make


def _worst(
    prior: Prior, secrets: Sequence[Secret], bounds: Sequence[float], made: Mechanism
) -> float:
    """The largest mu^2 / radius^2 over its bound."""
    found = losses(prior, secrets, made)
    return max(
        tight_bound([loss.matrix], 1.0) / bound for loss, bound in zip(found, bounds, strict=True)
    )


def _room(
    prior: Prior,
    secrets: Sequence[Secret],
    bounds: Sequence[float],
    found: Solution,
    existing: Mechanism,
) -> float:
    """How much all losses may grow before the first tight bound is met.

    The paper's bound is looser.
    """
    made = _maker(prior, secrets, found, existing)(found.trace)
    return max(1.0, 1.0 / _worst(prior, secrets, bounds, made))


def _bracket(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """Logarithms of losses: the first asks for more than the budget, the second for less."""
    low = high = start
    while excess(low) <= 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    return low, high
