"""The prior: a Gaussian process of one kernel and any mean, at the times of a series.

A conditional prior class (the paper, definition 3.1) is all means with one kernel: the mean appears
nowhere. `observe` joins a prior with what is released and what an adversary knows besides, in the
form that trailveil.gp.gaussian conditions on: with full matrices, or in O(n) where there are many
rows and the kernel is Markov (trailveil.privacy.markov).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue, NumericalError, Unavailable, check_kind, check_number
from trailveil.gp.arrays import increasing_times, numbers_in, read_only, seconds_in
from trailveil.gp.gaussian import (
    KERNEL_ROUNDING,
    UNIT_ROUNDOFF,
    FloatArray,
    Joint,
    Posterior,
    System,
    check_covariance,
    dense_system,
    posterior,
)
from trailveil.gp.kernels import (
    Clock,
    Kernel,
    StoppedClock,
    Tabulated,
    White,
    latent,
    noise_variance,
    split,
)
from trailveil.gp.statespace import is_markov
from trailveil.privacy.markov import MarkovSystem, covariance_product, markov_rows
from trailveil.privacy.mechanism import Mechanism, Process
from trailveil.privacy.residual import markov_posterior
from trailveil.privacy.secrets import Secret

# What rounding may have added to a lower bound is taken off it.
_LOWER = 1 - 1e-14
# Rows from which on full matrices would fill the memory of a common machine (3 GB each).
LARGEST_FULL = 20_000
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
        """Check the values and make the times read-only."""
        times = read_only(seconds_in(self.times))
        if times.ndim != 1 or not np.all(np.isfinite(times)):
            raise InvalidValue(f"known times must be finite numbers, got shape {times.shape}")
        if not 0 < self.accuracy < np.inf:
            raise InvalidValue(f"accuracy must be positive and finite, got {self.accuracy}")
        object.__setattr__(self, "times", times)


NOTHING_KNOWN = SideInformation(np.empty(0), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """A Gaussian process prior of one coordinate.

    kernel: covariance, measurement noise included. times: (n,) seconds, strictly increasing. mean:
    (n,), or a function of the times, or None for 0: no loss depends on it.
    """

    kernel: Kernel
    times: FloatArray
    mean: FloatArray | Callable[[FloatArray], FloatArray] | None = None

    def __post_init__(self) -> None:
        """Check the kernel, the times and the mean, and make arrays read-only."""
        if not isinstance(self.kernel, Kernel):
            raise InvalidValue(
                f"a prior must have a kernel, got {type(self.kernel).__name__}: "
                "Prior.from_covariance takes a matrix, kernels.Function any function"
            )
        times = increasing_times(self.times)
        object.__setattr__(self, "times", times)
        if self.mean is not None:
            stated = self.mean(times) if callable(self.mean) else self.mean
            mean = read_only(numbers_in("a mean must be numbers", stated))
            if mean.shape != times.shape or not np.all(np.isfinite(mean)):
                raise InvalidValue(
                    f"a mean must be one finite number for each time, got shape {mean.shape}"
                )
            object.__setattr__(self, "mean", mean)

    @classmethod
    def from_covariance(
        cls,
        covariance: ArrayLike,
        times: ArrayLike | None = None,
        *,
        noise: float | None = None,
        mean: FloatArray | Callable[[FloatArray], FloatArray] | None = None,
    ) -> "Prior":
        """The prior of a covariance matrix (n, n) of recorded values.

        times: (n,) strictly increasing, 0 to n - 1 where none are stated. noise: the deviation of
        the measurement noise that the matrix includes; by default that whose variance is half of
        the smallest eigenvalue. It matters to secrets that are not of recorded values alone. mean:
        as of a prior. Raises InvalidValue for a matrix that is no covariance, a noise that is not
        in it, or a matrix that is singular, where some values determine others.
        """
        matrix = check_covariance(covariance, "a covariance")
        moments = np.arange(float(len(matrix))) if times is None else increasing_times(times)
        least = float(np.linalg.eigvalsh(Tabulated(moments, matrix).matrix)[0])
        if least <= len(matrix) * UNIT_ROUNDOFF * np.trace(matrix):
            raise InvalidValue(
                "a covariance must be positive definite, got one in which some values determine "
                "others: add the variance of the measurement noise to its diagonal"
            )
        if noise is not None:
            check_number("noise", noise)
        variance = least / 2 if noise is None else math.copysign(noise * noise, noise)
        if not 0 < variance <= least:
            raise InvalidValue(
                f"noise must be above 0 and at most {least**0.5:.3g}, of which the covariance "
                f"has as much, got {noise}"
            )
        latent_part = Tabulated(moments, matrix - variance * np.eye(moments.size))
        return cls(latent_part + White(variance**0.5), moments, mean)

    def draw(self, seed: int | np.random.Generator) -> FloatArray:
        """A series (n,) of this prior, its mean included; O(n^3).

        Raises InvalidValue for a kernel that is no covariance.
        """
        check_kind("seed", seed, int | np.integer | np.random.Generator)
        values, vectors = np.linalg.eigh(self.covariance)
        rounding = KERNEL_ROUNDING * UNIT_ROUNDOFF * self.times.size * float(np.max(np.abs(values)))
        if values[0] < -rounding:
            raise InvalidValue("a covariance must have no eigenvalue below 0, got one that has")
        # Those of a smooth kernel that rounding made negative are 0.
        spread = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = np.random.default_rng(seed).standard_normal(self.times.size)
        level = 0.0 if self.mean is None else self.mean
        return np.asarray(spread @ noise + level)

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

    def systems(
        self, mechanism: Mechanism, known: SideInformation
    ) -> Callable[[float | FloatArray], System]:
        """T -> the system of observed rows with independent noise T more on released ones.

        T: one variance for all of them, or one for each.
        """
        rows = mechanism.rows
        times = np.concatenate([self.times[rows], known.times])
        base, _ = split(self.kernel)
        shifted = _shifted_systems(base, times, mechanism.process, rows.size)
        white = noise_variance(self.kernel, times) if times.size else 0.0

        def system(independent: float | FloatArray) -> System:
            extra = np.full(times.size, known.accuracy**2)
            extra[: rows.size] = mechanism.floor + independent
            added = mechanism.floor + float(np.min(independent)) if rows.size else None
            least = least_eigenvalue(white, added, known)
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
        """C, P0 and V of a secret against the observed rows, as gp.gaussian names them."""
        times = np.concatenate([self.times[mechanism.rows], known.times])
        return secret_parts(self.kernel, self.times, times, secret, mechanism.factor.shape[1])

    def spread(self, secret: Secret) -> tuple[FloatArray, FloatArray]:
        """P0 (k, k) and v (k,) with P = Var(s) = P0 + v v^T, v of the common level."""
        _, base, loading = secret_parts(self.kernel, self.times, np.empty(0), secret, 0)
        return base, np.sum(loading, axis=1)

    def variance(self, secret: Secret) -> FloatArray:
        """P (k, k) = Var(s) under the prior, its level included."""
        base, loading = self.spread(secret)
        return np.asarray(base + np.outer(loading, loading))

    def variances(self, secret: Secret) -> FloatArray:
        """The diagonal of P (k,), without the rest of it where each location is one value."""
        if not secret.is_of_values:
            return np.diagonal(self.variance(secret))
        kernel = self.kernel if secret.recorded else latent(self.kernel)
        return np.zeros(secret.size) if kernel is None else kernel.diagonal(secret.times)

    def scale(self, secret: Secret) -> FloatArray | None:
        """The deviations that each location weighs up, added up, its level aside (k,).

        None where each location is one value, and so of its own deviation.
        """
        if secret.is_of_values:
            return None
        kernel = self.kernel if secret.recorded else latent(self.kernel)
        base = None if kernel is None else split(kernel)[0]
        if base is None:
            return np.zeros(secret.size)
        return np.asarray(np.abs(secret.weights) @ np.sqrt(base.diagonal(secret.times)))


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
        scale = self.prior.scale(secret)
        return Joint(self.system, parts[0], parts[1], self.loadings, parts[2], scale)

    def posterior(self, secret: Secret) -> Posterior:
        """Var(secret | all that is observed)."""
        return conditioned_posterior(self.joint(secret), secret)


def conditioned_posterior(joint: Joint, secret: Secret) -> Posterior:
    """Var(secret | data), by the sharper sums of a Markov prior where the data are observed so."""
    sharp = isinstance(joint.system, MarkovSystem)
    return markov_posterior(joint, secret) if sharp else posterior(joint)


def observe(
    prior: Prior,
    mechanism: Mechanism,
    known: SideInformation = NOTHING_KNOWN,
    *,
    independent: bool = False,
) -> Observation:
    """Join a prior, a mechanism and side information, once for any number of secrets.

    independent: whether the further independent noise of the mechanism is counted, as the best
    attack does; no promise counts on it. O(n^3), or O(n) for a Markov kernel and many rows.
    """
    check_times(prior, mechanism)
    more = mechanism.independent_variances[mechanism.rows] if independent else 0.0
    system = prior.systems(mechanism, known)(more)
    return Observation(prior, mechanism, known, system, prior.loadings(mechanism, known))


def check_times(prior: Prior, mechanism: Mechanism) -> None:
    """Raise InvalidValue for a mechanism of other times than those of the prior."""
    if mechanism.times.size != prior.times.size:
        raise InvalidValue(
            f"the mechanism must have {prior.times.size} rows, got {mechanism.times.size}"
        )
    if not np.array_equal(mechanism.times, prior.times):
        raise InvalidValue(
            "the mechanism must have the times of the prior, got others: state both in seconds "
            "from the same moment"
        )


def _shifted_systems(
    base: Kernel | None, times: FloatArray, process: Process | None, released: int
) -> Callable[[FloatArray, float], System]:
    """(variances (n,), least) -> the system of rows with that independent noise: dense, or in O(n).

    The first `released` rows are the ones on which the process is heard.
    """
    parts = [part for part in (base, process) if part is not None]
    if times.size > LARGEST_DENSE and all(is_markov(part, times) for part in parts):
        return markov_rows(base, times, process, np.arange(times.size) < released).system
    if times.size > LARGEST_FULL:
        raise Unavailable(
            f"a prior that is not Markov must have at most {LARGEST_FULL} points, got "
            f"{times.size}: take a shorter series, or a Matern or integrated-ou kernel"
        )
    matrix = np.zeros((times.size, times.size)) if base is None else base(times, times)
    if process is not None:
        matrix[:released, :released] += process(times[:released], times[:released])

    def dense(variances: FloatArray, least: float) -> System:
        shifted = matrix.copy()
        shifted[np.diag_indices_from(shifted)] += variances
        return dense_system(shifted, least)

    return dense


def least_eigenvalue(white: float, added: float | None, known: SideInformation) -> float:
    """A lower bound of the eigenvalues of the observed rows; added: None where none is released.

    A released value and m known ones of the same fix share its measurement noise w. For an x of
    them, (sum x)^2 is least where the known ones are equal: [[w + added, r], [r, m w + q]] with
    r = sqrt(m) w and q = accuracy^2, whose least eigenvalue is at least its determinant over its
    trace. Known ones alone have at least q.
    """
    accurate = known.accuracy**2
    if added is None:
        return accurate * _LOWER
    if known.times.size == 0:
        return (white + added) * _LOWER
    most = int(np.max(np.unique(known.times, return_counts=True)[1]))
    second = most * white + accurate
    determinant = white * accurate + added * second
    return min(determinant / (white + added + second), accurate, white + added) * _LOWER


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
    shared = kernel if secret.recorded else latent(kernel)
    base, level = (None, 0.0) if shared is None else split(shared)
    weights = secret.weights.T
    cross, variance = np.zeros((observed.size, secret.size)), np.zeros((secret.size,) * 2)
    if base is not None:
        if observed.size:
            cross = covariance_product(base, observed, secret.times, weights)
        variance = weights.T @ covariance_product(base, secret.times, secret.times, weights)
    loading = np.zeros((secret.size, rank + (level > 0)))
    if level > 0:
        loading[:, 0] = np.sqrt(level) * secret.level
    return cross, variance, loading
