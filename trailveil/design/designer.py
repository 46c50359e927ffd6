"""design(): what is wanted in, a mechanism and its certificate out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from trailveil.design import baselines, closed_form
from trailveil.errors import InvalidValue, Refused, Unavailable
from trailveil.guarantee import tight_bound
from trailveil.loss import Loss, losses, marginal_losses, prior_precision
from trailveil.mechanism import Mechanism
from trailveil.prior import Prior
from trailveil.secrets import Secret


class Kind(StrEnum):
    """The mechanisms that can be asked for by name."""

    OPTIMAL = "optimal"
    EXACT_BLOCK = "exact-block"
    UNIFORM = "uniform"
    CONCENTRATED = "concentrated"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one secret loses under the mechanism that is returned, recomputed from it.

    loss: the loss matrix, an upper bound. effective: mu^2 / radius^2, the tight bound for several
    locations.
    deviation: the least posterior standard deviation in any direction, under the prior.
    """

    secret: Secret
    loss: Loss
    effective: float
    deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What is proved of a mechanism: the recomputed losses, and how far from the optimum it can be.

    lower_bound: of the trace (least noise) or of the loss (least loss) over all mechanisms; None
    where none is claimed. gap: how far above it this mechanism is, relative.
    """

    outcomes: tuple[Outcome, ...]
    lower_bound: float | None
    gap: float | None


def design(
    prior: Prior,
    secrets: Sequence[Secret] | None,
    *,
    budget: float | None = None,
    bounds: Sequence[float] | None = None,
    mechanism: str = Kind.OPTIMAL,
    floor: float = 0.0,
) -> tuple[Mechanism, Certificate]:
    """The Gaussian mechanism for some secrets, or (None) for every recorded value at once.

    budget: trace(Gamma), for the least loss; or bounds: of mu^2 / radius^2 for each secret (one for
    all when `secrets` is None), for the least noise. floor: variance of independent noise that must
    be there.
    Raises Unavailable for what has no closed form and no baseline; Refused where no noise of the
    kind can meet the bounds; InvalidValue for anything out of range.
    """
    wanted = _Wanted(prior, secrets, _one_of(budget, bounds), bounds, floor)
    makers = {
        Kind.OPTIMAL: _optimal,
        Kind.EXACT_BLOCK: _exact_block,
        Kind.UNIFORM: _uniform,
        Kind.CONCENTRATED: _concentrated,
    }
    if mechanism not in makers:
        raise InvalidValue(f"mechanism must be one of {', '.join(makers)}, got {mechanism}")
    made, bound = makers[Kind(mechanism)](wanted)
    outcomes = _outcomes(prior, secrets, made)
    reached = made.noise_trace if budget is None else max(one.effective for one in outcomes)
    gap = None if bound is None else max(0.0, reached / bound - 1.0)
    return made, Certificate(tuple(outcomes), bound, gap)


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    prior: Prior
    secrets: Sequence[Secret] | None
    budget: float | None
    bounds: Sequence[float] | None
    floor: float

    def single(self) -> Secret:
        """The one secret of one location, which closed forms are for."""
        if self.secrets is None or len(self.secrets) != 1:
            raise Unavailable(
                "this mechanism must have one secret, got several; the optimum for several "
                "secrets has no closed form: use --mechanism uniform, or one secret"
            )
        if self.secrets[0].size != 1:
            raise Unavailable(
                "the optimum must have a secret of one location, got a compound one, which has no "
                "closed form: use --mechanism uniform or concentrated, or one index"
            )
        return self.secrets[0]

    def existing(self) -> Mechanism:
        return Mechanism(self.prior.times, np.empty((self.prior.times.size, 0)), floor=self.floor)


def _optimal(wanted: _Wanted) -> tuple[Mechanism, float | None]:
    prior, base = wanted.prior, wanted.existing()
    if wanted.secrets is None:
        if wanted.floor > 0:
            raise Unavailable("a floor must go with stated secrets, got it with everywhere-noise")
        count = prior.times.size
        point = wanted.budget / count if wanted.budget else 1.0 / _bound(wanted, 0)
        # The loss of X_i is at least 1 / Gamma_ii, whatever else is released: so this is the least.
        return closed_form.everywhere(prior, point), (
            1.0 / point if wanted.budget else count * point
        )
    secret = wanted.single()
    if wanted.budget is not None:
        made = closed_form.least_loss(prior, secret, wanted.budget, existing=base)
        rest = wanted.budget - base.noise_trace
        return made, closed_form.least_possible_loss(prior, secret, rest, existing=base)
    bound = _bound(wanted, 0)
    made = closed_form.least_noise(prior, secret, bound, existing=base)
    return made, closed_form.least_possible_noise(prior, secret, bound, existing=base)


def _exact_block(wanted: _Wanted) -> tuple[Mechanism, float | None]:
    secret = wanted.single()
    # What is released of the secret itself costs 1 / Gamma_ss, so no trace below 1 / bound can do.
    least = 1.0 / _bound(wanted, 0) if wanted.bounds else None
    return _for_budget_or_bound(
        wanted, lambda trace: closed_form.exact_block(wanted.prior, secret, trace), least
    ), None


def _uniform(wanted: _Wanted) -> tuple[Mechanism, float | None]:
    return _for_budget_or_bound(wanted, lambda t: baselines.uniform(wanted.prior, t)), None


def _concentrated(wanted: _Wanted) -> tuple[Mechanism, float | None]:
    if wanted.secrets is None:
        raise InvalidValue("concentrated noise must have stated secrets, got everywhere")
    prior = wanted.prior
    times = np.concatenate([secret.times for secret in wanted.secrets])
    indices = np.flatnonzero(np.isin(prior.times, times))
    return _for_budget_or_bound(
        wanted, lambda trace: baselines.concentrated(prior, indices, trace)
    ), None


def _for_budget_or_bound(
    wanted: _Wanted, make: Callable[[float], Mechanism], least: float | None = None
) -> Mechanism:
    """make(budget), or make at the least trace that meets every bound."""
    if wanted.floor > 0:
        raise Unavailable("a floor must go with the optimal mechanism, got it with another one")
    if wanted.budget is not None:
        return make(wanted.budget)
    scale = float(np.mean(wanted.prior.kernel.diagonal(wanted.prior.times)))

    def excess(log_trace: float) -> float:
        return float(np.log(_worst_ratio(wanted, make(float(np.exp(log_trace))))))

    low = np.log(least or scale * 1e-12)
    high = np.log(scale * 1e12 * wanted.prior.times.size)
    if excess(high) > 0:
        raise Refused("noise of this kind must be able to meet the target, got one that never does")
    trace = float(np.exp(brentq(excess, low, high, xtol=1e-10)))
    while _worst_ratio(wanted, made := make(trace)) > 1:
        trace *= 1 + 1e-9
    return made


def _worst_ratio(wanted: _Wanted, made: Mechanism) -> float:
    """The largest loss over its bound."""
    outcomes = _outcomes(wanted.prior, wanted.secrets, made)
    if wanted.secrets is None:
        return max(one.effective for one in outcomes) / _bound(wanted, 0)
    return max(one.effective / _bound(wanted, i) for i, one in enumerate(outcomes))


def _outcomes(prior: Prior, secrets: Sequence[Secret] | None, made: Mechanism) -> list[Outcome]:
    if secrets is None:
        every = Secret("every", prior.times, np.eye(prior.times.size), recorded=True)
        found = marginal_losses(prior, every, made)
        alone = [
            Secret("basic", prior.times[i : i + 1], np.eye(1), True) for i in range(found.size)
        ]
        pairs = [
            (secret, Loss(np.array([[loss]]), 0.0))
            for secret, loss in zip(alone, found, strict=True)
        ]
    else:
        pairs = list(zip(secrets, losses(prior, secrets, made), strict=True))
    return [
        Outcome(secret, loss, tight_bound([loss.matrix], 1.0), _deviation(prior, secret, loss))
        for secret, loss in pairs
    ]


def _deviation(prior: Prior, secret: Secret, loss: Loss) -> float:
    precision = prior_precision(prior.variance(secret), secret.level, flat=False)
    return 1.0 / math.sqrt(eigh(precision + loss.matrix, eigvals_only=True)[-1])


def _one_of(budget: float | None, bounds: Sequence[float] | None) -> float | None:
    if (budget is None) == (bounds is None):
        raise InvalidValue("give either a noise budget or bounds of the loss, not both")
    if budget is not None and not (np.isfinite(budget) and budget > 0):
        raise InvalidValue(f"the noise budget must be a positive number, got {budget}")
    return budget


def _bound(wanted: _Wanted, index: int) -> float:
    if wanted.bounds is None or index >= len(wanted.bounds):
        raise InvalidValue("every secret must have a bound of its own")
    return wanted.bounds[index]
