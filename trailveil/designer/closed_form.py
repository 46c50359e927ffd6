"""Closed-form optima, and what they are measured against.

One one-dimensional secret; the paper's structure; independent noise; a
cut.

One secret s, b = Cov(X, s). Over all Gamma >= 0 with trace(Gamma) <= T the least loss is that of
white noise of variance T at *every* point, and one random direction reaches it:

    loss(T) = 1 / (P - b^T (Sigma + T I)^-1 b) - 1 / P
    Gamma = T v v^T / v^T v,     v = (Sigma + T I)^-1 b

since Gamma <= T I, and both give the same b^T (Sigma + Gamma)^-1 b. Noise that is there already (a
floor, other mechanisms) counts into Sigma.

The paper's structure, noise on one recorded value that is independent of the others: with a =
Sigma_us / Sigma_ss, C = Sigma_{u|s} and v = (C + tau I)^-1 a, the loss is

    1 / Gamma_ss + a^T (C + Gamma_uu)^-1 a  >=  1 / (T - tau) + a^T v

reached by Gamma_uu = tau v v^T / v^T v, and least where T - tau = 1 / |v|.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import brentq

from trailveil.designer.columns import canonical, needs_digits, refined, shifted_direction
from trailveil.designer.stepping import increasing_root, positive, until_met
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.extended import Extended, Objects, solve
from trailveil.gp.gaussian import (
    LARGEST_LOSS_SLACK,
    LOWER_STEPS,
    UNIT_ROUNDOFF,
    FloatArray,
    Joint,
    conditioned,
)
from trailveil.privacy.extended_loss import joint_covariance
from trailveil.privacy.loss import loss_given, loss_matrix
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.precision import known_precision
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, conditioned_posterior, observe
from trailveil.privacy.secrets import Secret


def least_noise(
    prior: Prior,
    secret: Secret,
    bound: float,
    *,
    existing: Mechanism | None = None,
) -> Mechanism:
    """The mechanism of least trace that holds the loss of one one-dimensional secret to `bound`.

    existing: noise and withheld rows that are there already; the result includes them.
    bound: of the loss, in 1 / unit^2.
    Raises InvalidValue for a secret of several locations or without prior variance.
    """
    base = no_noise(prior.times) if existing is None else existing
    problem = _posed(prior, secret, base)
    if _meets(prior, secret, base, bound):
        return base
    trace = problem.least_trace(bound)
    if trace == 0.0:  # what is released tells nothing of the secret
        return base
    return until_met(
        lambda added: _one_direction(prior, problem, added),
        lambda mechanism: loss_matrix(prior, secret, mechanism).largest / bound - 1.0,
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
    check_told(prior, secret, base)
    added = positive(trace, "the noise budget") - base.noise_trace
    if added <= 0:
        raise InvalidValue(
            "the noise budget of all points together must be above the "
            f"{base.noise_trace:.6g} that is there already, got {trace:.6g}"
        )
    return _one_direction(prior, problem, added)


def check_told(prior: Prior, secret: Secret, existing: Mechanism) -> None:
    """Raise InvalidValue for a secret that no release tells of: no budget could serve it."""
    judge = prior.for_secret(secret)
    cross, _, loading = judge.secret_parts(secret, existing, NOTHING_KNOWN)
    if not np.all(np.any(cross**2, axis=0) | np.any(loading, axis=1)):
        raise InvalidValue(
            "a secret must vary with what is released, got one that nothing tells of: leave it "
            "out, or state its times in the seconds of the prior"
        )


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
    if _meets(prior, secret, base, bound):
        return base.noise_trace
    trace = problem.least_trace(bound)
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

    def least_trace(self, bound: float) -> float:
        """The T with loss(T) = bound: a root, as exact as the posterior variance is."""
        precision, _ = known_precision(self.judge, self.secret)
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
    if not needs_digits(problem.judge, trace, existing):
        return rough
    precision, _ = known_precision(problem.judge, problem.secret, NOTHING_KNOWN)
    ideal = 1.0 / float(covariance[0, 0]) - float(precision[0, 0])
    direction = shifted_direction(problem.judge, problem.secret, existing, trace)
    return refined(prior, problem.secret, rough, direction, trace, ideal)


def _meets(prior: Prior, secret: Secret, mechanism: Mechanism, bound: float) -> bool:
    """Whether the loss is within the bound already; where it cannot be computed, it is not."""
    if not (np.isfinite(bound) and bound > 0):
        raise InvalidValue(f"the bound of the loss must be a positive number, got {bound}")
    silent = not mechanism.factor.shape[1] and not mechanism.floor and mechanism.process is None
    if silent and np.all(mechanism.released):
        return False
    if mechanism.refinement is None:
        # Extended precision takes seconds, and what is far above the bound needs none.
        with suppress(NumericalError):
            rough = loss_given(observe(prior.for_secret(secret), mechanism), secret)
            if rough.largest > bound * (1 + 2 * LARGEST_LOSS_SLACK):
                return False
    try:
        return loss_matrix(prior, secret, mechanism).largest <= bound
    except NumericalError:
        return False


def exact_block(prior: Prior, secret: Secret, trace: float) -> Mechanism:
    """The least loss when the noise on one recorded value must be independent of the rest.

    Raises InvalidValue unless the secret is one recorded fix.
    """
    total = positive(trace, "the noise budget")
    block = _block(prior, secret)
    return block.mechanism(prior, secret, total, block.share_for(total))


def exact_block_noise(prior: Prior, secret: Secret, bound: float) -> Mechanism:
    """The least noise of that structure that holds the loss to `bound`."""
    bound, block = positive(bound, "the bound of the loss"), _block(prior, secret)
    return until_met(
        lambda trace: exact_block(prior, secret, trace),
        lambda mechanism: loss_matrix(prior, secret, mechanism).largest / bound - 1.0,
        block.trace_for(bound),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """a and C of `exact_block` in the eigenvectors of C.

    index: of the secret. spectrum: of C. basis: its eigenvectors. pull: a in them.
    """

    index: int
    spectrum: FloatArray
    basis: FloatArray
    pull: FloatArray

    def direction(self, tau: float) -> FloatArray:
        """v in the eigenvectors of C."""
        return self.pull / (self.spectrum + tau)

    @property
    def least(self) -> float:
        """What is above the rounding of the spectrum: a smaller tau has no meaning."""
        size = max(1, self.spectrum.size)
        return 4 * size * UNIT_ROUNDOFF * float(np.max(np.abs(self.spectrum), initial=1e-300))

    def trace(self, tau: float) -> float:
        """The T of which tau is the best share."""
        length = float(np.linalg.norm(self.direction(tau)))
        return tau + 1.0 / length if length > 0 else np.inf

    def loss(self, tau: float) -> float:
        """The loss at that T."""
        direction = self.direction(tau)
        return float(np.linalg.norm(direction) + self.pull @ direction)

    def share_for(self, total: float) -> float:
        """tau for a trace; 0 where all of it is best put on the secret."""
        if self.least >= total or self.trace(self.least) >= total:
            return 0.0
        return _log_root(lambda tau: self.trace(tau) / total, self.least, total)

    def trace_for(self, bound: float) -> float:
        """The T whose least loss is `bound`."""
        tau = self.least
        if self.loss(tau) <= bound:
            return 1.0 / (bound - float(self.pull @ self.direction(tau)))
        highest = tau
        while self.loss(highest) > bound:
            highest *= 1e3
        return self.trace(_log_root(lambda tau: bound / self.loss(tau), tau, highest))

    def mechanism(self, prior: Prior, secret: Secret, total: float, tau: float) -> Mechanism:
        """Gamma for a trace and a share of it."""
        factor = np.zeros((prior.times.size, 2))
        factor[self.index, 0] = np.sqrt(total - tau)
        if tau == 0.0:
            return Mechanism(prior.times, factor[:, :1])
        others = np.arange(prior.times.size) != self.index
        v = canonical(self.basis @ self.direction(tau))
        factor[others, 1] = v * np.sqrt(tau / float(v @ v))
        rough = Mechanism(prior.times, factor)
        if not needs_digits(prior, tau):
            return rough
        direction = _block_direction(prior, secret, self.index, tau)
        inferential = float(self.pull @ self.direction(tau))
        return refined(prior, secret, rough, direction, tau, 1.0 / (total - tau) + inferential)


def _block(prior: Prior, secret: Secret) -> _Block:
    index = recorded_index(prior, secret)
    others = np.arange(prior.times.size) != index
    sigma = prior.covariance
    a = sigma[others, index] / sigma[index, index]
    spectrum, basis = np.empty(0), np.empty((0, 0))
    if a.size:
        conditional = sigma[np.ix_(others, others)] - np.outer(a, sigma[others, index])
        spectrum, basis = eigh((conditional + conditional.T) / 2)
    return _Block(index, np.maximum(spectrum, 0.0), basis, basis.T @ a)


def _log_root(ratio: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing ratio is 1, between two positive numbers."""
    root = brentq(lambda x: float(np.log(ratio(float(np.exp(x))))), np.log(low), np.log(high))
    return float(np.exp(root))


def recorded_index(prior: Prior, secret: Secret) -> int:
    """The index of a secret that is one recorded fix; InvalidValue for any other."""
    at = np.flatnonzero(prior.times == secret.times[0])
    if not secret.recorded or secret.times.size != 1 or at.size != 1:
        raise InvalidValue(f"the secret must be one recorded fix here, got a {secret.kind}")
    return int(at[0])


def _block_direction(
    prior: Prior, secret: Secret, index: int, tau: float
) -> Callable[[Extended], Objects]:
    """(Sigma_{u|s} + tau I)^-1 a over all rows, 0 at the secret, in fixed point."""

    def direction(m: Extended) -> Objects:
        nothing = no_noise(prior.times)
        sigma = joint_covariance(m, prior, secret, nothing, NOTHING_KNOWN)[:-1, :-1]
        others = np.arange(prior.times.size) != index
        variance, cross = sigma[index, index], sigma[others, index]
        conditional = sigma[np.ix_(others, others)] - np.outer(cross, cross) / variance
        for i in range(conditional.shape[0]):
            conditional[i, i] += m.number(tau)
        solved = solve(m.fixed(conditional), m.fixed(cross / variance), m.bits)
        return np.asarray(np.insert(solved, index, 0), dtype=object)

    return direction


def uniform(prior: Prior, trace: float) -> Mechanism:
    """Independent noise of one variance at every point, trace(Gamma) = `trace`."""
    share = positive(trace, "the noise budget") / prior.times.size
    return Mechanism(prior.times, np.empty((prior.times.size, 0)), floor=share)


def concentrated(prior: Prior, indices: NDArray[np.intp], trace: float) -> Mechanism:
    """Independent noise of one variance on the given fixes alone, trace(Gamma) = `trace`."""
    if not indices.size:
        raise InvalidValue("a secret must be at a point of the prior, got none: move it to one")
    factor = np.zeros((prior.times.size, indices.size))
    factor[indices, np.arange(indices.size)] = np.sqrt(
        positive(trace, "the noise budget") / indices.size
    )
    return Mechanism(prior.times, factor)
