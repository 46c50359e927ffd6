"""design(): a request in, a mechanism and its certificate out.

What few requests need is imported when one does: noise for every value, several secrets, the
paper's programs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from trailveil.designer import closed_form
from trailveil.designer.stepping import positive, until_met
from trailveil.errors import (
    InvalidValue,
    Refused,
    Unavailable,
    check_kind,
    check_number,
    each_of_kind,
)
from trailveil.gp.arrays import numbers_in
from trailveil.gp.gaussian import FloatArray, largest_eigenvalue
from trailveil.privacy.adversary import PLAIN, Adversary, exposures
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.guarantee import tight_bound
from trailveil.privacy.loss import Loss, losses, marginal_losses
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.precision import known_precision
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

# Traces between which the least that meets a bound is sought, in units of 1 / bound; and a worst
# ratio of loss to bound that counts as none, so that its logarithm is finite.
_LEAST_TRACE, _MOST_TRACE, _HARDLY_ANY = 1e-6, 1e9, 1e-30
# Above this gap nobody should call a mechanism the best.
LARGEST_GAP = 1e-3
# The paper's programs are solved at so many times the budget and scaled down, as its authors do for
# compound secrets: at the budget itself neighbours can be left with next to no noise.
PAPER_FACTOR = 1_000.0


class Kind(StrEnum):
    """The mechanisms that can be asked for by name."""

    OPTIMAL = "optimal"
    EXACT_BLOCK = "exact-block"
    UNIFORM = "uniform"
    CONCENTRATED = "concentrated"
    SDP_A = "sdp-a"
    MULTIPLE_SECRETS = "multiple-secrets"


PAPERS = frozenset({Kind.SDP_A, Kind.MULTIPLE_SECRETS})
"""The paper's own programs, which are solved at a multiple of the budget."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one secret loses under the mechanism that is returned, recomputed from it.

    All of the adversary who learns most. loss: the loss matrix, an upper bound. effective: mu^2 /
    radius^2, the tight bound for several locations. deviation: the least posterior standard
    deviation in any direction, under that adversary's prior. exposures: what each adversary learns
    and is left with, in their order, for the worst of what it may know.
    """

    secret: Secret
    loss: Loss
    effective: float
    deviation: float
    exposures: tuple[Exposure, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What is proved of a mechanism: the recomputed losses, and how far from the best it can be.

    lower_bound: of trace(W Gamma) (least noise) or of the loss (least loss) over all mechanisms;
    None where none is claimed. gap: how far above it this mechanism is, relative.
    """

    outcomes: tuple[Outcome, ...]
    lower_bound: float | None
    gap: float | None

    @property
    def proved(self) -> bool:
        """Whether the mechanism is proved to be the best there is, but for a thousandth."""
        return self.gap is not None and self.gap <= LARGEST_GAP


def design(
    prior: Prior,
    secrets: Sequence[Secret] | None,
    *,
    budget: float | None = None,
    bounds: Sequence[float] | None = None,
    mechanism: str = Kind.OPTIMAL,
    floor: float = 0.0,
    adversaries: Sequence[Adversary] = (PLAIN,),
    weights: FloatArray | None = None,
    withheld: NDArray[np.bool_] | None = None,
    solved_at: float = PAPER_FACTOR,
) -> tuple[Mechanism, Certificate]:
    """The Gaussian mechanism for some secrets, or (None) for every recorded value at once.

    budget: trace(W Gamma), of all n points together (`--budget` of the command line and the paper's
    o_t are per point: times n), for the least loss; or bounds: of mu^2 / radius^2 for each secret
    (one for all when `secrets` is None), for the least noise. floor: variance of independent noise
    that must be there. adversaries: each bound holds against each of them, and the worst loss is
    the worst against any. weights: W (n,) > 0, the cost of a unit of noise variance at each point;
    None for 1 everywhere. withheld: (n,) booleans, points of which nothing is released. solved_at:
    at how many times the budget the paper's programs are solved (see `designer.paper.sdp_a`); 1 for
    the programs as they are printed. Raises Unavailable for what has no closed form and no
    baseline; Refused where no noise of the kind can meet the bounds; InvalidValue for anything out
    of range.

    >>> prior = tv.Prior(tv.kernels.RBF(6.1) + tv.kernels.White(0.1), np.arange(50.0))
    >>> mechanism, certificate = tv.design(prior, [tv.Secret.at(24.0)], budget=1.0)
    >>> round(mechanism.noise_trace, 6), certificate.proved
    (1.0, True)
    """
    check_kind("prior", prior, Prior)
    if secrets is not None:
        secrets = each_of_kind("secrets", secrets, Secret)
    adversaries = each_of_kind("adversaries", adversaries, Adversary)
    for name, number in (("budget", budget), ("floor", floor), ("solved_at", solved_at)):
        if number is not None:
            check_number(name, number)
    if bounds is not None:
        bounds = np.ravel(numbers_in("bounds must be numbers, one a secret", bounds)).tolist()
    stated = np.ones(prior.times.size) if weights is None else weights
    cost = numbers_in("weights must be positive numbers", stated)
    silent = np.zeros(prior.times.size, bool) if withheld is None else np.asarray(withheld, bool)
    request = _Request(
        prior, secrets, budget, bounds, floor, tuple(adversaries), cost, silent, solved_at
    )
    request.check()
    if mechanism not in list(Kind):
        raise InvalidValue(f"mechanism must be one of {', '.join(Kind)}, got {mechanism}")
    kind = Kind(mechanism)
    noise, bound = _optimal(request) if kind is Kind.OPTIMAL else (_other(kind, request), None)
    outcomes = _outcomes(prior, secrets, noise, request.adversaries)
    worst = max(outcome.loss.largest for outcome in outcomes)
    reached = float(cost @ noise.variances) if budget is None else worst
    gap = None if bound is None else _gap(reached, bound)
    return noise, Certificate(tuple(outcomes), bound, gap)


def _gap(reached: float, bound: float) -> float:
    if reached <= bound:
        return 0.0
    return reached / bound - 1.0 if bound > 0 else float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    prior: Prior
    secrets: Sequence[Secret] | None
    budget: float | None
    bounds: Sequence[float] | None
    floor: float
    adversaries: tuple[Adversary, ...]
    weights: FloatArray
    withheld: NDArray[np.bool_]
    solved_at: float

    @property
    def simple(self) -> bool:
        """Whether all points cost alike, all are released, and the adversary is the plain one."""
        alike = bool(np.all(self.weights == self.weights[0]))
        plain = self.adversaries == (PLAIN,)
        return alike and plain and not np.any(self.withheld)

    def check(self) -> None:
        """InvalidValue for what cannot be meant."""
        if (self.budget is None) == (self.bounds is None):
            got = "neither" if self.budget is None else "both"
            raise InvalidValue(f"noise must have a budget or bounds of the loss, got {got}")
        if self.budget is not None:
            positive(self.budget, "the noise budget")
        if self.secrets is not None and not self.secrets:
            raise InvalidValue("there must be at least one secret, got none")
        count = 1 if self.secrets is None else len(self.secrets)
        if self.bounds is not None and len(self.bounds) != count:
            raise InvalidValue(
                f"every secret must have a bound of its own: {count}, got {len(self.bounds)}"
            )
        for bound in self.bounds or ():
            positive(bound, "the bound of the loss")
        count = self.prior.times.size
        if self.weights.shape != (count,) or not np.all(
            (self.weights > 0) & np.isfinite(self.weights)
        ):
            raise InvalidValue(
                f"weights must be {count} positive numbers, one a point, got others; a point whose "
                "noise costs nothing is better withheld"
            )
        if self.withheld.shape != (count,) or np.all(self.withheld):
            raise InvalidValue(f"withheld must be {count} booleans, and not all true")
        if not self.adversaries:
            raise InvalidValue("there must be at least one adversary, got none")
        if not 0 <= self.floor < np.inf:
            raise InvalidValue(f"the floor must be finite and not negative, got {self.floor}")

    def worst(self, outcomes: Sequence[Outcome]) -> float:
        """The largest loss over its bound."""
        bounds = self.bounds or ()
        each = bounds if self.secrets is not None else [bounds[0]] * len(outcomes)
        return max(outcome.effective / bound for outcome, bound in zip(outcomes, each, strict=True))

    def single(self) -> Secret:
        """The one secret of one location, which closed forms are for."""
        if self.secrets is None or len(self.secrets) != 1:
            raise Unavailable(
                "this mechanism must have one secret, got several; use --mechanism optimal, or one"
            )
        if self.secrets[0].size != 1:
            raise Unavailable(
                "this mechanism must have a secret of one location, got a compound one; use "
                "--mechanism optimal, or one index"
            )
        return self.secrets[0]

    def recorded(self) -> list[NDArray[np.intp]]:
        """The indices of each secret, for the paper's programs; Unavailable for other secrets."""
        times = self.prior.times
        if self.secrets is None:
            return [np.array([index]) for index in range(times.size)]
        for secret in self.secrets:
            of_values = np.array_equal(secret.weights, np.eye(secret.times.size))
            if secret.recorded and of_values:
                continue
            what = f"the true values of a {secret.kind} secret" if of_values else secret.kind
            how = "say recorded=True, or " if of_values and secret.window is None else ""
            raise Unavailable(
                f"the paper's programs must have recorded values for secrets, got {what}; {how}use "
                "--mechanism optimal"
            )
        return [np.searchsorted(times, secret.times) for secret in self.secrets]

    def existing(self) -> Mechanism:
        """The floor, as a mechanism."""
        bare = replace(no_noise(self.prior.times), floor=self.floor)
        return bare.withholding(self.withheld)

    @property
    def bound(self) -> float:
        """The bound of the one secret, or of every value."""
        return (self.bounds or ())[0]

    def without_floor(self) -> None:
        """Unavailable where there is a floor, or anything else that baselines know nothing of."""
        if self.floor > 0 or not self.simple:
            raise Unavailable(
                "a floor, weights, withheld points and adversaries must go with the optimal "
                "mechanism for stated secrets, got them with another: leave them out, or use "
                "--mechanism optimal"
            )


def _optimal(request: _Request) -> tuple[Mechanism, float | None]:
    prior, base = request.prior, request.existing()
    if request.secrets is None:
        from trailveil.designer.everywhere import every_value

        request.without_floor()
        count = prior.times.size
        point = request.budget / count if request.budget else 1.0 / request.bound
        # The loss of X_i is at least 1 / Gamma_ii, whatever else is released: so this is the least.
        return every_value(prior, point, budget=request.budget is not None), (
            1.0 / point if request.budget else count * point
        )
    if len(request.secrets) > 1 or request.secrets[0].size > 1 or not request.simple:
        from trailveil.designer import several
        from trailveil.designer.requirements import Demand

        bounds = request.bounds or [1.0] * len(request.secrets)
        demands = tuple(Demand(*pair) for pair in zip(request.secrets, bounds, strict=True))
        whole = several.SeveralRequest(prior, demands, request.adversaries, request.weights, base)
        if request.budget is not None:
            return several.least_loss(whole, request.budget)
        return several.least_noise(whole)
    secret = request.single()
    if request.budget is not None:
        mechanism = closed_form.least_loss(prior, secret, request.budget, existing=base)
        added = request.budget - base.noise_trace
        return mechanism, closed_form.least_possible_loss(prior, secret, added, existing=base)
    mechanism = closed_form.least_noise(prior, secret, request.bound, existing=base)
    return mechanism, closed_form.least_possible_noise(prior, secret, request.bound, existing=base)


def _other(kind: Kind, request: _Request) -> Mechanism:
    """Noise of another kind: for the budget, or of the least trace that meets every bound."""
    request.without_floor()
    make = _maker(kind, request)
    if request.budget is not None:
        return make(request.budget)
    if kind is Kind.EXACT_BLOCK:
        return closed_form.exact_block_noise(request.prior, request.single(), request.bound)

    def worst(mechanism: Mechanism) -> float:
        return request.worst(_outcomes(request.prior, request.secrets, mechanism))

    def excess(log_trace: float) -> float:
        return float(np.log(max(worst(make(float(np.exp(log_trace)))), _HARDLY_ANY)))

    count, scale = request.prior.times.size, 1.0 / min(request.bounds or ())
    low, high = np.log(scale * _LEAST_TRACE), np.log(scale * count * _MOST_TRACE)
    if excess(high) > 0:
        raise Refused("noise of this kind must be able to meet the target, got one that never does")
    if excess(low) <= 0:
        return make(float(np.exp(low)))
    trace = float(np.exp(brentq(excess, low, high, xtol=1e-10, rtol=1e-12)))
    return until_met(make, lambda mechanism: worst(mechanism) - 1.0, trace)


def _maker(kind: Kind, request: _Request) -> Callable[[float], Mechanism]:
    """trace -> noise of a kind; of the paper's programs, which optimise an approximation, too."""
    prior = request.prior
    if kind is Kind.UNIFORM:
        return partial(closed_form.uniform, prior)
    if kind is Kind.EXACT_BLOCK:
        return partial(closed_form.exact_block, prior, request.single())
    if kind is Kind.CONCENTRATED:
        if request.secrets is None:
            raise InvalidValue("concentrated noise must have stated secrets, got everywhere")
        times = np.concatenate([secret.times for secret in request.secrets])
        return partial(closed_form.concentrated, prior, np.flatnonzero(np.isin(prior.times, times)))
    from trailveil.designer import paper

    indices = request.recorded()
    if kind is Kind.SDP_A:
        if len(indices) != 1:
            raise Unavailable(
                "SDP_A must have one secret, got several; use --mechanism multiple-secrets or "
                "optimal"
            )
        return partial(paper.sdp_a, prior, indices[0], factor=request.solved_at)
    several = partial(
        paper.multiple_secrets, prior, indices, factor=request.solved_at, exactly=True
    )
    return lambda trace: several(trace).mechanism


def _outcomes(
    prior: Prior,
    secrets: Sequence[Secret] | None,
    mechanism: Mechanism,
    adversaries: Sequence[Adversary] = (PLAIN,),
) -> list[Outcome]:
    if secrets is None:
        every = Secret("every", prior.times, np.eye(prior.times.size), recorded=True)
        marginals = marginal_losses(prior, every, mechanism)
        alone = [
            Secret("basic", prior.times[i : i + 1], np.eye(1), True) for i in range(marginals.size)
        ]
        return [
            _outcome(prior, secret, Loss(np.array([[loss]]), 0.0))
            for secret, loss in zip(alone, marginals, strict=True)
        ]
    if tuple(adversaries) == (PLAIN,):
        pairs = zip(secrets, losses(prior, secrets, mechanism), strict=True)
        return [_outcome(prior, secret, loss) for secret, loss in pairs]
    return [_against(prior, secret, mechanism, adversaries) for secret in secrets]


def _outcome(prior: Prior, secret: Secret, loss: Loss) -> Outcome:
    precision, _ = known_precision(prior.for_secret(secret), secret)
    deviation = 1.0 / math.sqrt(largest_eigenvalue(precision + loss.matrix))
    return Outcome(secret, loss, tight_bound([loss.matrix], 1.0), deviation)


def _against(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversaries: Sequence[Adversary]
) -> Outcome:
    """The worst of what adversaries learn of one secret, by the tight bound."""
    exposed, worst = [], []
    for adversary in adversaries:
        candidates = exposures(prior, secret, mechanism, adversary)
        bounds = [tight_bound([candidate.learnt], 1.0) for candidate in candidates]
        at = int(np.argmax(bounds))
        exposed.append(candidates[at])
        worst.append(bounds[at])
    most = int(np.argmax(worst))
    worst_exposure = exposed[most]
    return Outcome(
        secret,
        Loss(worst_exposure.learnt, 0.0),
        worst[most],
        worst_exposure.posterior,
        tuple(exposed),
    )
