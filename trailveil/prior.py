"""The prior: a Gaussian process of one kernel and any mean, at the times of a series.

A conditional prior class (the paper, definition 3.1) is all means with one kernel: the mean appears
nowhere. `observe` joins a prior with what is released and what an adversary knows besides, in the
form that trailveil.gaussian conditions on: with full matrices, or in O(n) where there are many rows
and the kernel is Markov (trailveil.markov).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gaussian import FloatArray, Joint, Posterior, System, dense_system, posterior
from trailveil.kernels import Clock, Kernel, StoppedClock, latent, split
from trailveil.markov import MarkovSystem, covariance_product, markov_rows
from trailveil.mechanism import Mechanism, Process
from trailveil.residual import markov_posterior
from trailveil.secrets import Secret
from trailveil.statespace import is_markov

# Rows up to which full matrices are faster than the O(n) form of a Markov prior (measured).
LARGEST_DENSE = 500


@dataclass(frozen=True, slots=True, eq=False)
class SideInformation:
    """What an adversary knows besides the release: recorded values at some times, to an accuracy.

    times: (m,) seconds. accuracy: standard deviation (> 0), in the unit of the series.
    """

    times: FloatArray
    accuracy: float

    def __post_init__(self) -> None:
        """Check the values."""
        object.__setattr__(self, "times", np.asarray(self.times, dtype=np.float64))
        if not self.accuracy > 0:
            raise InvalidValue(f"accuracy must be positive, got {self.accuracy}")


NOTHING_KNOWN = SideInformation(np.empty(0), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """A Gaussian process prior of one coordinate.

    kernel: covariance, measurement noise included. times: (n,) seconds, strictly increasing.
    """

    kernel: Kernel
    times: FloatArray

    def __post_init__(self) -> None:
        """Check the times and make them read-only."""
        times = np.array(self.times, dtype=np.float64)
        if times.ndim != 1 or times.size == 0 or not np.all(np.isfinite(times)):
            raise InvalidValue(f"times must be one finite number a fix, got shape {times.shape}")
        if np.any(np.diff(times) <= 0):
            raise InvalidValue("times must be strictly increasing, got two out of order or equal")
        times.flags.writeable = False
        object.__setattr__(self, "times", times)

    @property
    def covariance(self) -> FloatArray:
        """Sigma (n, n): how the recorded values vary under the prior."""
        return self.kernel(self.times, self.times)

    @property
    def noise_variance(self) -> float:
        """The variance of the measurement noise: the least over the fixes."""
        return noise_variance(self.kernel, self.times)

    def on_clock(self, clock: Clock) -> "Prior":
        """The same prior on another clock; measurement noise stays with each fix."""
        return replace(self, kernel=self.kernel.warp(clock))

    def for_secret(self, secret: Secret) -> "Prior":
        """The prior that judges this secret: for a stay, with the clock stopped in its window."""
        return self if secret.window is None else self.on_clock(StoppedClock((secret.window,)))

    def systems(self, mechanism: Mechanism, known: SideInformation) -> Callable[[float], System]:
        """T -> the system of observed rows with independent noise T more on released ones."""
        rows = mechanism.rows
        times = np.concatenate([self.times[rows], known.times])
        base, _ = split(self.kernel)
        shifted = _shifted_systems(base, times, mechanism.process, rows.size)
        own = self.noise_variance
        extra = np.full(times.size, known.accuracy**2)

        def system(independent: float) -> System:
            extra[: rows.size] = mechanism.floor + independent
            least = least_eigenvalue(own, mechanism.floor + independent, known)
            if least <= 0.0:
                raise NumericalError("the observed values have no independent noise of their own")
            return shifted(extra, least)

        return system

    def loadings(self, mechanism: Mechanism, known: SideInformation) -> FloatArray:
        """U of the observed rows: the common level, then the factor of the noise."""
        return observed_loadings(self.kernel, mechanism, known)

    def secret_parts(
        self, secret: Secret, mechanism: Mechanism, known: SideInformation
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """C, P0 and V of a secret against the observed rows, as trailveil.gaussian names them."""
        times = np.concatenate([self.times[mechanism.rows], known.times])
        return secret_parts(self.kernel, self.times, times, secret, mechanism.factor.shape[1])

    def variance(self, secret: Secret) -> FloatArray:
        """P (k, k) = Var(s) under the prior, its level included."""
        _, base, loading = secret_parts(self.kernel, self.times, np.empty(0), secret, 0)
        return np.asarray(base + loading @ loading.T)


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """A prior, what is released of it and what is known: ready to condition any secret on."""

    prior: Prior
    mechanism: Mechanism
    known: SideInformation
    system: System
    loadings: FloatArray

    def joint(self, secret: Secret) -> Joint:
        """Data and secret as they vary together."""
        parts = self.prior.secret_parts(secret, self.mechanism, self.known)
        return Joint(self.system, parts[0], parts[1], self.loadings, parts[2])

    def posterior(self, secret: Secret) -> Posterior:
        """Var(secret | all that is observed)."""
        joint = self.joint(secret)
        sharp = isinstance(self.system, MarkovSystem)
        return markov_posterior(joint, secret) if sharp else posterior(joint)


def observe(
    prior: Prior, mechanism: Mechanism, known: SideInformation = NOTHING_KNOWN
) -> Observation:
    """Join a prior, a mechanism and side information, once for any number of secrets.

    O(n^3), or O(n) for a Markov kernel and many rows.
    """
    if mechanism.times.size != prior.times.size:
        raise InvalidValue(
            f"the mechanism must have {prior.times.size} rows, got {mechanism.times.size}"
        )
    system = prior.systems(mechanism, known)(0.0)
    return Observation(prior, mechanism, known, system, prior.loadings(mechanism, known))


def _shifted_systems(
    base: Kernel | None, times: FloatArray, process: Process | None, released: int
) -> Callable[[FloatArray, float], System]:
    """(variances (n,), least) -> the system of rows with that independent noise: dense, or in O(n).

    The first `released` rows are the ones on which the process is heard.
    """
    parts = [part for part in (base, process) if part is not None]
    if times.size > LARGEST_DENSE and all(is_markov(part, times) for part in parts):
        return markov_rows(base, times, process, np.arange(times.size) < released).system
    matrix = np.zeros((times.size, times.size)) if base is None else base(times, times)
    if process is not None:
        matrix[:released, :released] += process(times[:released], times[:released])

    def dense(variances: FloatArray, least: float) -> System:
        shifted = matrix.copy()
        shifted[np.diag_indices_from(shifted)] += variances
        return dense_system(shifted, least)

    return dense


def noise_variance(kernel: Kernel, times: ArrayLike) -> float:
    """The least variance of the white terms of a kernel over the times."""
    white = [term for term in kernel.terms() if term.is_white()]
    return float(sum(np.min(term.diagonal(times)) for term in white))


def least_eigenvalue(own: float, added: float, known: SideInformation) -> float:
    """A lower bound of the eigenvalues of the observed rows.

    A released value and a known one of the same fix share its measurement noise `own`: the least
    eigenvalue of [[own + added, own], [own, own + accuracy^2]] is at least its determinant over its
    trace.
    """
    if known.times.size == 0:
        return own + added
    second = own + known.accuracy**2
    determinant = own * known.accuracy**2 + added * second
    return determinant / (own + added + second)


def observed_loadings(kernel: Kernel, mechanism: Mechanism, known: SideInformation) -> FloatArray:
    """U of the observed rows: a column of the level (where there is one), then the factor."""
    rows = mechanism.rows
    _, level = split(kernel)
    columns = np.zeros((rows.size + known.times.size, 1 + mechanism.factor.shape[1]))
    columns[:, 0] = np.sqrt(level)
    columns[: rows.size, 1:] = mechanism.factor[rows]
    return columns if level > 0 else columns[:, 1:]


def secret_parts(
    kernel: Kernel, fixes: FloatArray, observed: FloatArray, secret: Secret, rank: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """C (n, k), P0 (k, k) and V (k, m) of a secret against values observed at some times."""
    if secret.recorded and not np.all(np.isin(secret.times, fixes)):
        raise InvalidValue("a recorded secret must be at the times of fixes, got one between them")
    seen = kernel if secret.recorded else latent(kernel)
    base, level = (None, 0.0) if seen is None else split(seen)
    weights = secret.weights.T
    if base is None:
        cross, variance = np.zeros((observed.size, secret.size)), np.zeros((secret.size,) * 2)
    else:
        cross = covariance_product(base, observed, secret.times, weights)
        variance = weights.T @ covariance_product(base, secret.times, secret.times, weights)
    loading = np.zeros((secret.size, rank + (level > 0)))
    if level > 0:
        loading[:, 0] = np.sqrt(level) * secret.level
    return cross, variance, loading
