"""Adversaries: what somebody knows besides the release, and what it leaves them with.

An adversary is a frozen value that composes (`plain & still & point`). Each is one more prior of
the same secret, conditioned on what it knows; its loss is counted against what it knew already.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gaussian import FloatArray, Joint, posterior
from trailveil.kernels import Kernel, StoppedClock, latent, split
from trailveil.loss import Loss, loss_matrix
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import (
    NOTHING_KNOWN,
    Observation,
    Prior,
    SideInformation,
    observe,
)
from trailveil.secrets import Secret


@dataclass(frozen=True, slots=True)
class Known:
    """Recorded values known to an accuracy (deviation), at least `away` seconds from a secret."""

    away: float
    accuracy: float

    def __post_init__(self) -> None:
        """Check the values."""
        if not (self.away >= 0 and self.accuracy > 0):
            raise InvalidValue(
                f"a known place must be some time away and of positive accuracy, got {self.away} s "
                f"and {self.accuracy}"
            )


@dataclass(frozen=True, slots=True)
class Adversary:
    """What an adversary knows besides the release.

    still: windows (start, end) in seconds in which the person is known to have stood still. point:
    knows any one true fix. path: knows the whole recorded path. kernel: believes in another kernel.
    """

    name: str
    still: tuple[tuple[float, float], ...] = ()
    point: Known | None = None
    path: Known | None = None
    kernel: Kernel | None = None

    def __and__(self, other: "Adversary") -> "Adversary":
        """Both at once; where both say something of one kind, InvalidValue."""
        for field in ("point", "path", "kernel"):
            if getattr(self, field) is not None and getattr(other, field) is not None:
                raise InvalidValue(f"two adversaries must not both state a {field}")
        return Adversary(
            other.name if self.name == PLAIN.name else f"{self.name}, {other.name}",
            tuple(sorted({*self.still, *other.still})),
            self.point or other.point,
            self.path or other.path,
            self.kernel or other.kernel,
        )

    def prior(self, prior: Prior) -> Prior:
        """The prior this adversary holds before learning any place."""
        believed = prior if self.kernel is None else replace(prior, kernel=self.kernel)
        return believed.on_clock(StoppedClock(self.still)) if self.still else believed


PLAIN = Adversary("plain")


def stood_still(windows: Sequence[tuple[float, float]]) -> Adversary:
    """Sees that the person stood still in each window."""
    return Adversary("sees standing still", still=tuple(windows))


def knows_a_point(away: float = 60.0, accuracy: float = 10.0) -> Adversary:
    """Knows any one true fix at least `away` seconds from the secret."""
    return Adversary(f"knows one true place {away:g} s or more away", point=Known(away, accuracy))


def knows_the_path(away: float = 300.0, accuracy: float = 10.0) -> Adversary:
    """Knows the whole path except within `away` seconds of the secret."""
    return Adversary(f"knows the path {away:g} s or more away", path=Known(away, accuracy))


def believes(name: str, kernel: Kernel) -> Adversary:
    """Holds a prior of another kernel: another speed, another smoothness."""
    return Adversary(name, kernel=kernel)


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one adversary is left with at a secret: the worst case over what it may know.

    loss: maxeig of L against what it knew. before, after: the smallest standard deviation in any
    direction of the secret, without and with the release, in the unit of the series.
    """

    adversary: str
    loss: float
    before: float
    after: float

    def required(self, bound: float) -> float:
        """The deviation this adversary must be left with for the loss to be at most `bound`."""
        return float((1.0 / self.before**2 + bound) ** -0.5)


def exposure(prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary) -> Exposure:
    """What an adversary learns of a secret and is left with, judged by the adversary's own prior.

    Raises NumericalError where no trustworthy figure can be computed.
    """
    believed = adversary.prior(prior)
    judge = believed if _inside(secret, adversary) else believed.for_secret(secret)
    span = _span(secret, adversary)
    place = replace(secret, window=None)  # its clock is stopped in the judge: once is enough
    known = _known_path(judge, span, adversary)
    plain = _exposure_to(judge, place, mechanism, adversary, known)
    if adversary.point is None:
        return plain
    far = _far(judge, span, adversary.point.away)
    found = _exposures_to_points(judge, place, mechanism, adversary, known, far)
    return max([plain, *found], key=lambda one: one.loss)


def left(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary, bound: float
) -> float:
    """What this adversary is left with over what it must be left with: at least 1 is safe."""
    found = exposure(prior, secret, mechanism, adversary)
    return found.after / found.required(bound)


def _inside(secret: Secret, adversary: Adversary) -> bool:
    """Whether the adversary's stopped clock covers the secret's own window already."""
    return secret.window is not None and any(
        start <= secret.window[0] and secret.window[1] <= end for start, end in adversary.still
    )


def _span(secret: Secret, adversary: Adversary) -> tuple[float, float]:
    """The time of the secret; a place inside a window of standing still extends over all of it."""
    start, end = secret.window or (float(secret.times.min()), float(secret.times.max()))
    for window in adversary.still:
        if window[0] <= end and start <= window[1]:
            start, end = min(start, window[0]), max(end, window[1])
    return start, end


def _far(prior: Prior, span: tuple[float, float], away: float) -> FloatArray:
    """The times of fixes at least `away` seconds from the secret."""
    times = prior.times
    return times[(times <= span[0] - away) | (times >= span[1] + away)]


def _known_path(prior: Prior, span: tuple[float, float], adversary: Adversary) -> SideInformation:
    if adversary.path is None:
        return NOTHING_KNOWN
    far = _far(prior, span, adversary.path.away)
    return SideInformation(far, adversary.path.accuracy) if far.size else NOTHING_KNOWN


def _exposure_to(
    judge: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary, known: SideInformation
) -> Exposure:
    loss = loss_matrix(judge, secret, mechanism, known=known)
    before = judge.variance(secret)
    if known.times.size:
        nothing = no_noise(judge.times).withholding(np.ones(judge.times.size, bool))
        before = observe(judge, nothing, known).posterior(secret).covariance
    precision = np.linalg.inv(before)
    after = float(eigh(precision + loss.matrix, eigvals_only=True)[-1]) ** -0.5
    return Exposure(adversary.name, loss.largest, _least_deviation(before), after)


def _exposures_to_points(
    judge: Prior,
    secret: Secret,
    mechanism: Mechanism,
    adversary: Adversary,
    known: SideInformation,
    points: FloatArray,
) -> list[Exposure]:
    """What is learnt by who knows one of the points besides, for each of them."""
    if adversary.point is None or points.size == 0:
        return []
    accuracy = adversary.point.accuracy
    nothing = no_noise(judge.times).withholding(np.ones(judge.times.size, bool))
    after = _with_each(observe(judge, mechanism, known), secret, points, accuracy)
    before = _with_each(observe(judge, nothing, known), secret, points, accuracy)
    found = []
    for one, other in zip(after, before, strict=True):
        matrix = np.linalg.inv(one) - np.linalg.inv(other)
        loss = Loss((matrix + matrix.T) / 2, 0.0).largest
        found.append(Exposure(adversary.name, loss, _least_deviation(other), _least_deviation(one)))
    return found


def _with_each(
    observation: Observation, secret: Secret, points: FloatArray, accuracy: float
) -> list[FloatArray]:
    """Var(secret | observed, one more recorded value known to an accuracy), for each of the points.

    Q - q q^T / (Q_kk + accuracy^2), q the posterior covariance of secret and point, made smaller by
    the numerical slack of all three.
    """
    size = secret.size
    known = Secret("points", points, np.eye(points.size), recorded=True)
    parts = [
        observation.prior.secret_parts(one, observation.mechanism, observation.known)
        for one in (secret, known)
    ]
    joint = _side_by_side(observation, secret, points, parts)
    found = posterior(joint)
    if np.any(np.diagonal(found.covariance)[:size] - found.slack[:size] <= 0):
        raise NumericalError(
            "the place must not be determined to within rounding, got one that is: "
            "state a measurement noise, or withhold fewer fixes"
        )
    own, shared = found.covariance[:size, :size], found.covariance[:size, size:]
    spread = np.diagonal(found.covariance)[size:] + accuracy**2
    caution = float(np.sum(found.slack[:size])) * np.eye(size)
    return [
        own - caution - np.outer(q, q) / variance
        for q, variance in zip(shared.T, spread, strict=True)
    ]


def _side_by_side(
    observation: Observation,
    secret: Secret,
    points: FloatArray,
    parts: list[tuple[FloatArray, FloatArray, FloatArray]],
) -> Joint:
    """Secret and points as one secret: their own covariances, and the one between them."""
    (cross, variance, loading), (other_cross, other_variance, other_loading) = parts
    seen = latent(observation.prior.kernel)
    base = None if seen is None else split(seen)[0]
    between = np.zeros((secret.size, points.size))
    if base is not None:
        between = secret.weights @ base(secret.times, points)
    return Joint(
        observation.system,
        np.hstack([cross, other_cross]),
        np.block([[variance, between], [between.T, other_variance]]),
        observation.loadings,
        np.vstack([loading, other_loading]),
    )


def _least_deviation(covariance: FloatArray) -> float:
    return float(np.sqrt(max(0.0, float(eigh(covariance, eigvals_only=True)[0]))))


def first_four(
    windows: Sequence[tuple[float, float]] = (),
    *,
    point: Adversary | None = None,
    path: Adversary | None = None,
) -> list[Adversary]:
    """Plain and standing still, each alone, with one known place, and with the known path."""
    knows = [point or knows_a_point(), path or knows_the_path()]
    bases = [PLAIN, *([stood_still(windows)] if windows else [])]
    return [adversary for base in bases for adversary in (base, *(base & other for other in knows))]


__all__ = [
    "PLAIN",
    "Adversary",
    "Exposure",
    "Known",
    "believes",
    "exposure",
    "first_four",
    "knows_a_point",
    "knows_the_path",
    "left",
    "stood_still",
]
