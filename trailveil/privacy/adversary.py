"""Adversaries: what somebody knows besides the release, and what it leaves them with.

An adversary is a frozen value that composes (`plain & still & point`). Each is one more prior of
the same secret, conditioned on what it knows; its loss is counted against what it knew already.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue, NumericalError, check_kind, check_number
from trailveil.gp.arrays import numbers_in, seconds_in
from trailveil.gp.gaussian import FloatArray, largest_eigenvalue, spectral_doubt
from trailveil.gp.kernels import Conditioned, Kernel, White, latent, stopped
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism, no_release
from trailveil.privacy.points import Beside, beside_values
from trailveil.privacy.precision import given_one_value, known_precision
from trailveil.privacy.prior import (
    NOTHING_KNOWN,
    Observation,
    Prior,
    SideInformation,
    observe,
)
from trailveil.privacy.secrets import Secret

PATH_AWAY = 300.0
"""Seconds around a secret within which nobody knows the path."""
SEES_STILLNESS = "sees standing still"


@dataclass(frozen=True, slots=True)
class Known:
    """Recorded values known to an accuracy (deviation), at least `away` seconds from a secret."""

    away: float
    accuracy: float

    def __post_init__(self) -> None:
        """Check the values."""
        check_number("away", self.away)
        check_number("accuracy", self.accuracy)
        if not (0 <= self.away < np.inf and 0 < self.accuracy < np.inf):
            raise InvalidValue(
                f"a known place must be some time away and of positive accuracy, got {self.away} s "
                f"and {self.accuracy}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class KnownSums:
    """Sums H f(times) of the true series, known to a covariance V.

    times: (m,). weights: H (k, m). covariance: V (k, k).
    """

    times: FloatArray
    weights: FloatArray
    covariance: FloatArray


@dataclass(frozen=True, slots=True)
class Adversary:
    """What an adversary knows besides the release.

    still: windows (start, end) in seconds in which the person is known to have stood still. point:
    knows any one true fix. path: knows the whole recorded path. kernel: believes in another kernel.
    observed: what is known besides, whatever the secret.
    """

    name: str
    still: tuple[tuple[float, float], ...] = ()
    point: Known | None = None
    path: Known | None = None
    kernel: Kernel | None = None
    observed: tuple[KnownSums, ...] = ()

    @classmethod
    def knows(
        cls, weights: ArrayLike, times: ArrayLike, variance: ArrayLike, *, name: str = "observes"
    ) -> "Adversary":
        """Knows k sums H f(times) of the true series, with independent Gaussian errors.

        weights: H (k, m), or (m,) for one sum. times: (m,) seconds. variance: of the errors, a
        number or (k,), above 0. Raises InvalidValue where they do not fit together.
        """
        rows = np.atleast_2d(numbers_in("weights must be finite numbers", weights))
        when = np.atleast_1d(seconds_in(times))
        errors = numbers_in("variance must be a number, or one a sum", variance)
        if errors.shape not in ((), rows.shape[:1]):
            raise InvalidValue(f"variance must be of {len(rows)} sums, got shape {errors.shape}")
        errors = np.broadcast_to(errors, rows.shape[:1])
        Conditioned(White(1.0), when, rows, np.diag(errors))  # raises where they do not fit
        return cls(name, observed=(KnownSums(when, rows, np.diag(errors)),))

    @classmethod
    def sees_stillness(cls, windows: Sequence[tuple[float, float]]) -> "Adversary":
        """Sees that the person stood still in each window (seconds)."""
        must, write = "windows must be a list of (start, end) in seconds", "write [(60, 120)]"
        still = numbers_in(must, windows, write)
        if still.size and (still.ndim != 2 or still.shape[1] != 2):
            raise InvalidValue(f"{must}, got shape {still.shape}: {write}")
        return cls(SEES_STILLNESS, still=tuple((begin, end) for begin, end in still.tolist()))

    @classmethod
    def knows_point(cls, away: float = 60.0, accuracy: float = 10.0) -> "Adversary":
        """Knows any one true fix at least `away` seconds from the secret."""
        known = Known(away, accuracy)
        return cls(f"knows one true place {away:g} s or more away", point=known)

    @classmethod
    def knows_path(cls, away: float = PATH_AWAY, accuracy: float = 10.0) -> "Adversary":
        """Knows the whole path except within `away` seconds of the secret."""
        known = Known(away, accuracy)
        return cls(f"knows the path {away:g} s or more away", path=known)

    @classmethod
    def believes(cls, name: str, kernel: Kernel) -> "Adversary":
        """Holds a prior of another kernel: another speed, another smoothness."""
        check_kind("kernel", kernel, Kernel, "tv.kernels has them")
        return cls(name, kernel=kernel)

    def __and__(self, other: "Adversary") -> "Adversary":
        """Both at once; where both say something of one kind, InvalidValue."""
        check_kind("what is joined to an adversary", other, Adversary)
        for field in ("point", "path", "kernel"):
            if getattr(self, field) is not None and getattr(other, field) is not None:
                raise InvalidValue(f"two adversaries must not both state a {field}")
        return Adversary(
            other.name if self.name == PLAIN.name else f"{self.name}, {other.name}",
            tuple(sorted({*self.still, *other.still})),
            self.point or other.point,
            self.path or other.path,
            self.kernel or other.kernel,
            (*self.observed, *other.observed),
        )

    def prior(self, prior: Prior) -> Prior:
        """The prior this adversary holds before learning any place."""
        believed = prior if self.kernel is None else replace(prior, kernel=self.kernel)
        if self.still:
            believed = believed.on_clock(stopped(self.still))
        for known in self.observed:
            believed = _given(believed, known)
        return believed

    def judging(self, prior: Prior, secret: Secret) -> Prior:
        """The same prior, for a secret: its clock stops, besides, while a stay lasts."""
        if secret.window is None or secret.window in self.still:
            return self.prior(prior)
        return replace(self, still=tuple(sorted({*self.still, secret.window}))).prior(prior)


def _given(prior: Prior, known: KnownSums) -> Prior:
    """The prior given what is known of the true series; measurement noise stays with each fix."""
    true = latent(prior.kernel)
    if true is None:
        raise InvalidValue("a prior must be more than measurement noise, got nothing else to know")
    kernel: Kernel = Conditioned(true, known.times, known.weights, known.covariance)
    for term in prior.kernel.terms():
        kernel = kernel + term if term.is_white() else kernel
    return replace(prior, kernel=kernel)


PLAIN = Adversary("plain")


def exposure(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary = PLAIN
) -> Exposure:
    """What an adversary learns of a secret and is left with, judged by the adversary's own prior.

    The worst over what it may know. Noise in Mechanism(independent=) is not counted: the figures
    hold with it. State noise that is to count as floor= or factor=np.diag(deviations). Raises
    NumericalError where no trustworthy figure can be computed.

    >>> prior = tv.Prior(tv.kernels.RBF(6.1) + tv.kernels.White(0.1), np.arange(50.0))
    >>> secret = tv.Secret.at(24.0)
    >>> mechanism, _ = tv.design(prior, [secret], budget=1.0)
    >>> exposed = tv.exposure(prior, secret, mechanism, tv.Adversary.knows_point(away=5.0))
    >>> exposed.posterior < exposed.prior
    True
    """
    check_kind("prior", prior, Prior)
    check_kind("secret", secret, Secret, "one at a time")
    check_kind("mechanism", mechanism, Mechanism, "the first of what tv.design returns")
    check_kind("adversary", adversary, Adversary, "one at a time")
    return max(exposures(prior, secret, mechanism, adversary), key=lambda exposed: exposed.loss)


def span_of(secret: Secret, adversary: Adversary) -> tuple[float, float]:
    """The time of the secret; one in a window of standing still is as long as that."""
    start, end = secret.window or (float(secret.times.min()), float(secret.times.max()))
    for window in adversary.still:
        if window[0] <= end and start <= window[1]:
            start, end = min(start, window[0]), max(end, window[1])
    return start, end


def far_from(prior: Prior, span: tuple[float, float], away: float) -> FloatArray:
    """The times of fixes at least `away` seconds from the secret."""
    times = prior.times
    return times[(times <= span[0] - away) | (times >= span[1] + away)]


def known_path(prior: Prior, span: tuple[float, float], adversary: Adversary) -> SideInformation:
    """All that an adversary knows of the path, for a secret of this span."""
    if adversary.path is None:
        return NOTHING_KNOWN
    far = far_from(prior, span, adversary.path.away)
    return SideInformation(far, adversary.path.accuracy) if far.size else NOTHING_KNOWN


def exposures(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary
) -> list[Exposure]:
    """What an adversary learns and is left with, for each thing that it may know.

    Without any single known value first. Then with each; for a secret of one location, with the
    value of which the loss is largest. Raises as `exposure` does.
    """
    judged = judge_of(prior, secret, adversary)
    learnt = loss_matrix(judged.prior, judged.place, mechanism, known=judged.known).matrix
    before = known_precision(judged.prior, judged.place, judged.known)[0]
    exposed_each = [Exposure.of_matrices(adversary.name, before, learnt)]
    each = _each_value(judged, mechanism, adversary)
    if each is None:
        return exposed_each
    which = range(each.times.size)
    if secret.size == 1:
        which = range((at := int(np.argmax(each.learnt))), at + 1)
    least = min(exposed_each[0].posterior, each.least)
    exposed_each += [
        Exposure.of_matrices(adversary.name, each.known[i], each.learnt[i], float(each.times[i]))
        for i in which
    ]
    return [replace(exposed, least=least) for exposed in exposed_each]


def value_losses(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary
) -> tuple[FloatArray, FloatArray]:
    """The times (p,) of the values an adversary may know one of, and the largest loss with each."""
    each = _each_value(judge_of(prior, secret, adversary), mechanism, adversary)
    if each is None:
        return np.empty(0), np.empty(0)
    return each.times, np.array([largest_eigenvalue(matrix) for matrix in each.learnt])


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Who judges: the adversary's prior, the place with no window of its own, what is known."""

    prior: Prior
    place: Secret
    span: tuple[float, float]
    known: SideInformation


def judge_of(prior: Prior, secret: Secret, adversary: Adversary) -> Judge:
    """Who judges a secret under a prior: an adversary, by what it knows."""
    judge = adversary.judging(prior, secret)
    span = span_of(secret, adversary)
    # The clock of a stay is stopped in the judge: once is enough.
    place = replace(secret, window=None)
    return Judge(judge, place, span, known_path(judge, span, adversary))


@dataclass(frozen=True, slots=True, eq=False)
class _EachValue:
    """What is known (p, k, k) and learnt (p, k, k) with each of p values known besides."""

    times: FloatArray
    known: FloatArray
    learnt: FloatArray

    @property
    def least(self) -> float:
        """The least deviation left with any of them, in any direction."""
        precisions = np.linalg.eigvalsh(self.known + self.learnt)
        return 1.0 / math.sqrt(float(np.max(precisions)))


def _each_value(judged: Judge, mechanism: Mechanism, adversary: Adversary) -> _EachValue | None:
    """None for an adversary who knows no single value, or where there is none to know."""
    if adversary.point is None:
        return None
    judge, place, known = judged.prior, judged.place, judged.known
    points = far_from(judge, judged.span, adversary.point.away)
    if not points.size:
        return None
    accuracy = adversary.point.accuracy
    after = _with_each(observe(judge, mechanism, known), place, points, accuracy, -1.0)
    precision = np.asarray(np.linalg.inv(known_with_each(judge, place, known, points, accuracy)))
    return _EachValue(points, precision, np.asarray(np.linalg.inv(after)) - precision)


def known_with_each(
    judge: Prior, secret: Secret, known: SideInformation, times: FloatArray, accuracy: float
) -> FloatArray:
    """Var(secret | what is known, one more recorded value to an accuracy) (p, k, k), from above.

    For each of the values at times (p,). judge: the prior that judges the secret.
    """
    if not known.times.size:
        return given_one_value(judge, secret, times, accuracy)
    observation = observe(judge, no_release(judge.times), known)
    return _with_each(observation, secret, times, accuracy, 1.0)


def _with_each(
    observation: Observation, secret: Secret, points: FloatArray, accuracy: float, side: float
) -> FloatArray:
    """Var(secret | observed, one more recorded value known to an accuracy) (p, k, k), for each.

    Q - q q^T / (Q_kk + accuracy^2), q the posterior covariance of secret and point. It grows with
    the joint covariance of the two, so that one is moved by its numerical doubt to one side first:
    -1 for a result from below, 1 for one from above.
    """
    size, values = secret.size, beside_values(observation, secret, points)
    doubts = side * _doubts(values, size)
    spread = values.variances[size:] + doubts + accuracy**2
    shared = values.shared.T
    gained = shared[:, :, None] * shared[:, None, :] / spread[:, None, None]
    results = values.own + doubts[:, None, None] * np.eye(size) - gained
    if np.any(spread <= 0) or np.any(np.linalg.eigvalsh(results)[:, 0] <= 0):
        raise NumericalError(
            "the place must not be determined to within rounding, got one that is: "
            "state a measurement noise, or withhold fewer fixes"
        )
    return np.asarray(results)


def _doubts(values: Beside, size: int) -> FloatArray:
    """The spectral doubt of secret and one point together (p,), for each of the points."""
    places = slice(0, size)
    return np.array(
        [
            spectral_doubt(
                np.append(values.variances[places], values.variances[size + i]),
                np.append(values.slack[places], values.slack[size + i]),
            )
            for i in range(values.variances.size - size)
        ]
    )
