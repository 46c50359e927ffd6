"""Closed-form optima: one one-dimensional secret; every basic secret at once; the paper's block.

One secret s, b = Cov(X, s). Over all Gamma >= 0 with trace(Gamma) <= T the least loss is that of
white noise of variance T at *every* point, and one random direction reaches it:

    loss(T) = 1 / (P - b^T (Sigma + T I)^-1 b) - 1 / P,    Gamma = T v v^T / v^T v,    v = (Sigma +
    T I)^-1 b

since Gamma <= T I, and both give the same b^T (Sigma + Gamma)^-1 b. Noise that is there already (a
floor, other mechanisms) counts into Sigma.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from trailveil.design.refine import refined, shifted_direction
from trailveil.errors import InvalidValue, NumericalError, Refused
from trailveil.extended import Extended, Objects, solve
from trailveil.extended_loss import joint_covariance
from trailveil.gaussian import (
    SAFE_STEP,
    FloatArray,
    Joint,
    Posterior,
    increasing_root,
    posterior,
)
from trailveil.kernels import Scaled
from trailveil.loss import loss_matrix, prior_precision
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import NOTHING_KNOWN, Prior
from trailveil.secrets import Secret


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
    bound: of the loss, in 1 / unit^2. flat: see trailveil.loss.
    Raises InvalidValue for a secret of several locations or without prior variance; Refused where
    the release must withhold everything to meet it.
    """
    _one_dimensional(secret)
    base = no_noise(prior.times) if existing is None else existing
    if _meets(prior, secret, base, bound, flat=flat):
        return base
    trace = _least_trace(prior, secret, bound, base, flat=flat)
    for attempt in range(60):
        mechanism = one_direction(prior, secret, trace, existing=base)
        found = loss_matrix(prior, secret, mechanism, flat=flat).largest
        if found <= bound:
            return mechanism
        # To the safe side, in steps that double, and check again.
        trace *= 1.0 + 4.0**attempt * max(found / bound - 1.0, SAFE_STEP)
    raise NumericalError("no noise was found whose recomputed loss meets the target")


def least_loss(
    prior: Prior, secret: Secret, trace: float, *, existing: Mechanism | None = None
) -> Mechanism:
    """The mechanism of least loss for one one-dimensional secret with trace(Gamma) <= `trace`.

    trace: the paper's budget T = n o_t, noise of `existing` included. Raises InvalidValue where it
    is not positive or is less than what is there already.
    """
    _one_dimensional(secret)
    base = no_noise(prior.times) if existing is None else existing
    rest = _positive(trace, "the noise budget") - base.noise_trace
    if rest <= 0:
        raise InvalidValue(
            f"the noise budget must be above the {base.noise_trace:.6g} that is there already, "
            f"got {trace:.6g}"
        )
    return one_direction(prior, secret, rest, existing=base)


def least_possible_loss(
    prior: Prior, secret: Secret, trace: float, *, existing: Mechanism | None = None
) -> float:
    """loss(T): what no mechanism of this trace (beside `existing`) can go below."""
    base = no_noise(prior.times) if existing is None else existing
    judge = prior.for_secret(secret)
    found = _conditioned(judge, secret, base)(trace)
    return float(
        1.0 / (found.covariance[0, 0] + found.slack[0]) - 1.0 / judge.variance(secret)[0, 0]
    )


def least_possible_noise(
    prior: Prior, secret: Secret, bound: float, *, existing: Mechanism | None = None
) -> float:
    """The trace, `existing` included, below which no mechanism holds the loss to `bound`.

    From below: at this trace even the posterior variance at its most favourable end misses the
    target.
    """
    base = no_noise(prior.times) if existing is None else existing
    if _meets(prior, secret, base, bound, flat=False):
        return base.noise_trace
    return base.noise_trace + _least_trace(prior, secret, bound, base, flat=False)


def _least_trace(
    prior: Prior, secret: Secret, bound: float, base: Mechanism, *, flat: bool
) -> float:
    """The T with loss(T) = bound, beside what exists: a root, as exact as the variance is."""
    judge = prior.for_secret(secret)
    precision = float(prior_precision(judge.variance(secret), secret.level, flat=flat)[0, 0])
    target = 1.0 / (precision + bound)
    conditioned = _conditioned(judge, secret, base)

    def excess(trace: float) -> tuple[float, float]:
        found = conditioned(trace)
        variance = float(found.covariance[0, 0])
        return float(np.log(variance / target)), float(np.sum(found.weights**2)) / variance

    return increasing_root(excess, target, "noise")


def one_direction(
    prior: Prior,
    secret: Secret,
    trace: float,
    *,
    existing: Mechanism,
) -> Mechanism:
    """Gamma = trace v v^T / v^T v beside what exists, in as many digits as its privacy needs."""
    judge = prior.for_secret(secret)
    found = _conditioned(judge, secret, existing)(trace)
    weights = found.weights[:, 0]
    column = np.zeros(prior.times.size)
    column[existing.rows] = _canonical(weights) * np.sqrt(trace / float(weights @ weights))
    rough = replace(existing, factor=np.column_stack([existing.factor, column]))
    if prior.noise_variance + existing.floor > 0.0 or existing.process is not None:
        return rough
    ideal = 1.0 / found.covariance[0, 0] - 1.0 / judge.variance(secret)[0, 0]
    direction = shifted_direction(judge, secret, existing, trace)
    return refined(judge, secret, rough, direction, trace, float(ideal))


def everywhere(prior: Prior, per_point: float) -> Mechanism:
    """Every basic secret at once, for constant prior variance: noise shaped like the prior.

    Gamma = (per_point / sigma^2) Sigma, loss 1 / per_point at every recorded value. No Gamma of
    equal trace does better: the loss of X_i is at least 1 / Gamma_ii, and the least Gamma_ii is at
    most the mean.
    Raises Refused where the prior variance is not constant or holds a level.
    """
    variances = prior.kernel.diagonal(prior.times)
    if float(np.ptp(variances)) > 1e-12 * float(variances.max()):
        raise Refused(
            "everywhere-noise must have a prior of constant variance, got one that grows with "
            "time or holds a level; choose secrets (--secret) or a stationary kernel (matern32)"
        )
    ratio = _positive(per_point, "the noise variance per point") / float(variances[0])
    return Mechanism(
        prior.times, np.empty((prior.times.size, 0)), process=Scaled(prior.kernel, ratio)
    )


def exact_block(prior: Prior, secret: Secret, trace: float) -> Mechanism:
    """The least loss when the noise on one recorded value must be independent of the rest.

    The paper's structure. With a = Sigma_us / Sigma_ss and C = Sigma_{u|s}: the minimum over tau of
    1/(T - tau) + a^T (C + tau I)^-1 a; then Gamma_ss = T - tau and Gamma_uu = tau v v^T / v^T v
    with v = (C + tau I)^-1 a. Raises InvalidValue unless the secret is one recorded fix.
    """
    index = recorded_index(prior, secret)
    total = _positive(trace, "the noise budget")
    others = np.arange(prior.times.size) != index
    sigma = prior.covariance
    a = sigma[others, index] / sigma[index, index]
    rest = sigma[np.ix_(others, others)] - np.outer(a, sigma[others, index])
    spectrum, basis = eigh(rest)
    told = (basis.T @ a) ** 2

    def loss(share: float) -> float:
        return float(1 / (total * (1 - share)) + np.sum(told / (spectrum + total * share)))

    # Below the rounding of the spectrum a share has no meaning; the minimum is far above it.
    least = 4 * abs(float(spectrum[0])) / total + 1e-12
    best = minimize_scalar(
        loss, bounds=(least, 1 - 1e-12), method="bounded", options={"xatol": 1e-10}
    )
    tau = total * float(best.x)
    v = _canonical(basis @ ((basis.T @ a) / (spectrum + tau)))
    factor = np.zeros((prior.times.size, 2))
    factor[index, 0] = np.sqrt(total - tau)
    factor[others, 1] = v * np.sqrt(tau / float(v @ v))
    rough = Mechanism(prior.times, factor)
    if prior.noise_variance > 0:
        return rough
    direction = _block_direction(prior, secret, index, tau)
    return refined(prior, secret, rough, direction, tau, float(best.fun))


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
        own, cross = sigma[index, index], sigma[others, index]
        rest = sigma[np.ix_(others, others)] - np.outer(cross, cross) / own
        for i in range(rest.shape[0]):
            rest[i, i] += m.number(tau)
        solved = solve(m.fixed(rest), m.fixed(cross / own), m.bits)
        return np.asarray(np.insert(solved, index, 0), dtype=object)

    return direction


def _conditioned(judge: Prior, secret: Secret, existing: Mechanism) -> Callable[[float], Posterior]:
    """T -> the posterior of the secret under white noise of variance T beside what exists."""
    systems = judge.systems(existing, NOTHING_KNOWN)
    loadings = judge.loadings(existing, NOTHING_KNOWN)
    cross, variance, loading = judge.secret_parts(secret, existing, NOTHING_KNOWN)
    return lambda trace: posterior(Joint(systems(trace), cross, variance, loadings, loading))


def _meets(prior: Prior, secret: Secret, mechanism: Mechanism, bound: float, *, flat: bool) -> bool:
    """Whether the loss is within the bound already; where it cannot be computed, it is not."""
    if not (np.isfinite(bound) and bound > 0):
        raise InvalidValue(f"the bound of the loss must be a positive number, got {bound}")
    silent = not mechanism.factor.shape[1] and not mechanism.floor and mechanism.process is None
    if silent and np.all(mechanism.released):
        return False
    try:
        return loss_matrix(prior, secret, mechanism, flat=flat).largest <= bound
    except NumericalError:
        return False


def _canonical(direction: FloatArray) -> FloatArray:
    """The direction with its sign fixed: the sum positive, or the largest entry if that is about 0.

    Two computers must draw the same noise from the same key.
    """
    total, size = float(direction.sum()), float(np.abs(direction).sum())
    sign = total if abs(total) > 1e-6 * size else float(direction[np.argmax(np.abs(direction))])
    return direction if sign > 0 else -direction


def _one_dimensional(secret: Secret) -> None:
    if secret.size != 1:
        raise InvalidValue(f"the secret must be one location here, got {secret.size}")


def _positive(value: float, name: str) -> float:
    if not (np.isfinite(value) and value > 0):
        raise InvalidValue(f"{name} must be a positive number, got {value}")
    return float(value)
