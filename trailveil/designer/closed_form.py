"""Closed-form optima: one one-dimensional secret; every basic secret at once; the paper's block.

One secret s, b = Cov(X, s). Over all Gamma >= 0 with trace(Gamma) <= T the least loss is that of
white noise of variance T at *every* point, and one random direction reaches it:

    loss(T) = 1 / (P - b^T (Sigma + T I)^-1 b) - 1 / P
    Gamma = T v v^T / v^T v,     v = (Sigma + T I)^-1 b

since Gamma <= T I, and both give the same b^T (Sigma + Gamma)^-1 b. Noise that is there already (a
floor, other mechanisms) counts into Sigma.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from trailveil.designer.refine import canonical, refined, shifted_direction, undone_by_rounding
from trailveil.designer.stepping import increasing_root, positive, until_met
from trailveil.errors import InvalidValue, NumericalError, Refused
from trailveil.gp.gaussian import (
    LARGEST_LOSS_SLACK,
    LOWER_STEPS,
    UNIT_ROUNDOFF,
    Joint,
    conditioned,
)
from trailveil.gp.kernels import Scaled
from trailveil.privacy.loss import loss_given, loss_matrix
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.precision import known_precision
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, conditioned_posterior, observe
from trailveil.privacy.secrets import Secret

# Relative: variances that differ by no more are one.
CONSTANT = 1e-12


def least_noise(
    prior: Prior,
    secret: Secret,
    bound: float,
    *,
    existing: Mechanism | None = None,
    flat: bool = False,
) -> Mechanism:
    """The mechanism of least trace that holds the loss of one one-dimensional secret to `bound`.

    existing: noise and withheld rows that are there already; the result includes them.
    bound: of the loss, in 1 / unit^2. flat: see trailveil.privacy.loss.
    Raises InvalidValue for a secret of several locations or without prior variance.
    """
    base = no_noise(prior.times) if existing is None else existing
    problem = _posed(prior, secret, base)
    if _meets(prior, secret, base, bound, flat=flat):
        return base
    trace = problem.least_trace(bound, flat=flat)
    if trace == 0.0:  # what is released tells nothing of the secret
        return base
    return until_met(
        lambda added: _one_direction(prior, problem, added),
        lambda mechanism: loss_matrix(prior, secret, mechanism, flat=flat).largest / bound - 1.0,
        trace,
    )


def least_loss(
    prior: Prior, secret: Secret, trace: float, *, existing: Mechanism | None = None
) -> Mechanism:
    """The mechanism of least loss for one one-dimensional secret with trace(Gamma) <= `trace`.

    trace: the paper's budget T = n o_t, noise of `existing` included. Raises InvalidValue where it
    is not positive or is less than what is there already.
    """
    base = no_noise(prior.times) if existing is None else existing
    problem = _posed(prior, secret, base)
    added = positive(trace, "the noise budget") - base.noise_trace
    if added <= 0:
        raise InvalidValue(
            f"the noise budget must be above the {base.noise_trace:.6g} that is there already, "
            f"got {trace:.6g}"
        )
    return _one_direction(prior, problem, added)


def least_possible_loss(
    prior: Prior, secret: Secret, trace: float, *, existing: Mechanism | None = None
) -> float:
    """loss(T), from below: no mechanism of this trace (beside `existing`) has a smaller one."""
    base = no_noise(prior.times) if existing is None else existing
    return _posed(prior, secret, base).least_loss(trace)


def least_possible_noise(
    prior: Prior, secret: Secret, bound: float, *, existing: Mechanism | None = None
) -> float:
    """The trace, `existing` included, below which no mechanism holds the loss to `bound`.

    From below: at this trace the loss is above the bound even at the favourable end of rounding.
    """
    base = no_noise(prior.times) if existing is None else existing
    problem = _posed(prior, secret, base)
    if _meets(prior, secret, base, bound, flat=False):
        return base.noise_trace
    trace = problem.least_trace(bound, flat=False)
    for step in LOWER_STEPS:
        below = trace * (1.0 - step)
        if problem.least_loss(below) >= bound:
            return base.noise_trace + below
    return base.noise_trace


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """One one-dimensional secret, and what is released of the series but for the noise sought.

    judge: the prior that judges the secret. joint: data and secret, by the variance of white noise
    on every released row.
    """

    judge: Prior
    secret: Secret
    existing: Mechanism
    joint: Callable[[float], Joint]

    def least_trace(self, bound: float, *, flat: bool) -> float:
        """The T with loss(T) = bound: a root, as exact as the posterior variance is."""
        precision, _ = known_precision(self.judge, self.secret, NOTHING_KNOWN, flat=flat)
        target = 1.0 / (float(precision[0, 0]) + bound)

        def excess(trace: float) -> tuple[float, float]:
            covariance, weights = conditioned(self.joint(trace))
            variance = float(covariance[0, 0])
            return float(np.log(variance / target)), float(np.sum(weights**2)) / variance

        return increasing_root(excess, target, "noise")

    def least_loss(self, trace: float) -> float:
        """loss(T), from below."""
        posterior = conditioned_posterior(self.joint(trace), self.secret)
        precision, doubt = known_precision(self.judge, self.secret, NOTHING_KNOWN)
        highest = float(posterior.covariance[0, 0] + posterior.slack[0]) * (1 + 4 * UNIT_ROUNDOFF)
        return 1.0 / highest - float(precision[0, 0]) - doubt


def _posed(prior: Prior, secret: Secret, existing: Mechanism) -> _Problem:
    if secret.size != 1:
        raise InvalidValue(f"the secret must be one location here, got {secret.size}")
    judge = prior.for_secret(secret)
    systems = judge.systems(existing, NOTHING_KNOWN)
    loadings, scale = judge.loadings(existing, NOTHING_KNOWN), judge.scale(secret)
    cross, variance, loading = judge.secret_parts(secret, existing, NOTHING_KNOWN)

    def joint(trace: float) -> Joint:
        return Joint(systems(trace), cross, variance, loadings, loading, scale)

    return _Problem(judge, secret, existing, joint)


def _one_direction(prior: Prior, problem: _Problem, trace: float) -> Mechanism:
    """Gamma = trace v v^T / v^T v beside what exists, in as many digits as its privacy needs."""
    existing = problem.existing
    covariance, regression = conditioned(problem.joint(trace))
    weights = regression[:, 0]
    column = np.zeros(prior.times.size)
    column[existing.rows] = canonical(weights) * np.sqrt(trace / float(weights @ weights))
    rough = existing.with_column(column)
    if not undone_by_rounding(problem.judge, existing, trace):
        return rough
    precision, _ = known_precision(problem.judge, problem.secret, NOTHING_KNOWN)
    ideal = 1.0 / float(covariance[0, 0]) - float(precision[0, 0])
    direction = shifted_direction(problem.judge, problem.secret, existing, trace)
    return refined(prior, problem.secret, rough, direction, trace, ideal)


def everywhere(prior: Prior, per_point: float) -> Mechanism:
    """Every basic secret at once, for constant prior variance: noise shaped like the prior.

    Gamma = (per_point / sigma^2) Sigma, loss 1 / per_point at every recorded value. No Gamma of
    equal trace does better: the loss of X_i is at least 1 / Gamma_ii, and the least Gamma_ii is at
    most the mean.
    Raises Refused where the prior variance is not constant or holds a level.
    """
    variances = prior.kernel.diagonal(prior.times)
    if float(np.ptp(variances)) > CONSTANT * float(variances.max()):
        raise Refused(
            "everywhere-noise must have a prior of constant variance, got one that grows with "
            "time or holds a level; choose secrets (--secret) or a stationary kernel (matern32)"
        )
    ratio = positive(per_point, "the noise variance per point") / float(variances[0])
    return Mechanism(
        prior.times, np.empty((prior.times.size, 0)), process=Scaled(prior.kernel, ratio)
    )


def _meets(prior: Prior, secret: Secret, mechanism: Mechanism, bound: float, *, flat: bool) -> bool:
    """Whether the loss is within the bound already; where it cannot be computed, it is not."""
    if not (np.isfinite(bound) and bound > 0):
        raise InvalidValue(f"the bound of the loss must be a positive number, got {bound}")
    silent = not mechanism.factor.shape[1] and not mechanism.floor and mechanism.process is None
    if silent and np.all(mechanism.released):
        return False
    if mechanism.refinement is None:
        # Extended precision takes seconds, and what is far above the bound needs none.
        with suppress(NumericalError):
            rough = loss_given(observe(prior.for_secret(secret), mechanism), secret, flat=flat)
            if rough.largest > bound * (1 + 2 * LARGEST_LOSS_SLACK):
                return False
    try:
        return loss_matrix(prior, secret, mechanism, flat=flat).largest <= bound
    except NumericalError:
        return False
