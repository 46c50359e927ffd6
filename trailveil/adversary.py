"""Adversaries: what somebody knows besides the release, and what it leaves them with.

An adversary is a frozen value that composes (`plain & still & point`). Each is one more prior of
the same secret, conditioned on what it knows; its loss is counted against what it knew already.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gaussian import POINT_SLACK, FloatArray, Joint, posterior, spectral_doubt
from trailveil.kernels import Kernel, latent, split, stopped
from trailveil.loss import largest_eigenvalue, loss_matrix
from trailveil.markov import MarkovSystem
from trailveil.mechanism import Mechanism, no_noise
from trailveil.points import points_posterior
from trailveil.precision import known_precision
from trailveil.prior import (
    NOTHING_KNOWN,
    Observation,
    Prior,
    SideInformation,
    observe,
)
from trailveil.residual import Points
from trailveil.secrets import Secret, basic


@dataclass(frozen=True, slots=True)
class Known:
    """Recorded values known to an accuracy (deviation), at least `away` seconds from a secret."""

    away: float
    accuracy: float

    def __post_init__(self) -> None:
        """Check the values."""
        if not (0 <= self.away < np.inf and 0 < self.accuracy < np.inf):
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
        return believed.on_clock(stopped(self.still)) if self.still else believed


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


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """What one adversary is left with at a secret: the worst case over what it may know.

    loss: maxeig of L against what it knew. before, after: the smallest standard deviation in any
    direction of the secret, without and with the release, in the unit of the series. known: P^-1
    (k, k), what it knew. learnt: L (k, k).
    """

    adversary: str
    loss: float
    before: float
    after: float
    known: FloatArray
    learnt: FloatArray

    def required(self, bound: float) -> float:
        """The deviation this adversary must be left with for the loss to be at most `bound`."""
        return 1.0 / math.sqrt(1.0 / self.before**2 + bound)

    def share(self, bound: float) -> float:
        """The deviation left over the one required, in the direction where it is least."""
        required = self.known + bound * np.eye(self.known.shape[0])
        left = eigh(self.known + self.learnt, required, eigvals_only=True)
        return 1.0 / math.sqrt(float(left[-1]))


def exposure(prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary) -> Exposure:
    """What an adversary learns of a secret and is left with, judged by the adversary's own prior.

    The worst over what it may know. Raises NumericalError where no trustworthy figure can be
    computed.
    """
    return max(_exposures(prior, secret, mechanism, adversary), key=lambda one: one.loss)


def left(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary, bound: float
) -> float:
    """What this adversary is left with over what it must be left with: at least 1 is safe.

    The least over what it may know, and over directions of the secret.
    """
    found = _exposures(prior, secret, mechanism, adversary)
    return min(one.share(bound) for one in found)


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


def _exposures(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary
) -> list[Exposure]:
    """The exposure without any single known point, and with each."""
    judge = adversary.prior(prior).for_secret(secret)
    span = _span(secret, adversary)
    place = replace(secret, window=None)  # its clock is stopped in the judge: once is enough
    known = _known_path(judge, span, adversary)
    learnt = loss_matrix(judge, place, mechanism, known=known).matrix
    found = [_exposed(adversary, known_precision(judge, place, known)[0], learnt)]
    if adversary.point is None:
        return found
    points = _far(judge, span, adversary.point.away)
    if points.size:
        accuracy = adversary.point.accuracy
        after = _with_each(observe(judge, mechanism, known), place, points, accuracy, -1.0)
        nothing = no_noise(judge.times).withholding(np.ones(judge.times.size, bool))
        before = _with_each(observe(judge, nothing, known), place, points, accuracy, 1.0)
        for one, other in zip(after, before, strict=True):
            precision = np.asarray(np.linalg.inv(other))
            found.append(_exposed(adversary, precision, np.asarray(np.linalg.inv(one)) - precision))
    return found


def _exposed(adversary: Adversary, known: FloatArray, learnt: FloatArray) -> Exposure:
    known, learnt = (known + known.T) / 2, (learnt + learnt.T) / 2
    return Exposure(
        adversary.name,
        max(0.0, largest_eigenvalue(learnt)),
        1.0 / math.sqrt(largest_eigenvalue(known)),
        1.0 / math.sqrt(largest_eigenvalue(known + learnt)),
        known,
        learnt,
    )


def _with_each(
    observation: Observation, secret: Secret, points: FloatArray, accuracy: float, side: float
) -> list[FloatArray]:
    """Var(secret | observed, one more recorded value known to an accuracy), for each of the points.

    Q - q q^T / (Q_kk + accuracy^2), q the posterior covariance of secret and point. It grows with
    the joint covariance of the two, so that one is moved by its numerical doubt to one side first:
    -1 for a result from below, 1 for one from above.
    """
    size, found = secret.size, _with_points(observation, secret, points)
    results = []
    for index, q in enumerate(found.shared.T):
        both = np.r_[0:size, size + index]
        doubt = side * spectral_doubt(found.variances[both], found.slack[both])
        spread = found.variances[size + index] + doubt + accuracy**2
        result = found.own + doubt * np.eye(size) - np.outer(q, q) / spread
        if spread <= 0 or np.linalg.eigvalsh(result)[0] <= 0:
            raise NumericalError(
                "the place must not be determined to within rounding, got one that is: "
                "state a measurement noise, or withhold fewer fixes"
            )
        results.append(result)
    return results


@dataclass(frozen=True, slots=True, eq=False)
class _Beside:
    """A secret of k locations beside p recorded values, given what is observed.

    own: Q (k, k). shared: (k, p). variances, slack: (k + p,), of secret and values.
    """

    own: FloatArray
    shared: FloatArray
    variances: FloatArray
    slack: FloatArray


def _with_points(observation: Observation, secret: Secret, points: FloatArray) -> _Beside:
    if not isinstance(observation.system, MarkovSystem):
        return _side_by_side(observation, secret, points)
    loading = observation.joint(basic(float(points[0]), recorded=True)).secret_loadings[0]
    found = points_posterior(observation.joint(secret), secret, Points(points, True, loading))
    own = np.diagonal(found.secret.covariance)
    # The values are known to rounding, with no bound of it: to what the secret is, and at least so.
    relative = max(float(np.max(found.secret.slack / own)), POINT_SLACK)
    return _Beside(
        found.secret.covariance,
        found.covariances.T,
        np.concatenate([own, found.variances]),
        np.concatenate([found.secret.slack, relative * found.variances]),
    )


def _side_by_side(observation: Observation, secret: Secret, points: FloatArray) -> _Beside:
    """With full matrices: secret and values are one secret of two kinds."""
    known = Secret("points", points, np.eye(points.size), recorded=True)
    first, second = observation.joint(secret), observation.joint(known)
    kernel, size = observation.prior.kernel, secret.size
    seen = kernel if secret.recorded else latent(kernel)
    base = None if seen is None else split(seen)[0]
    between = np.zeros((size, points.size))
    if base is not None:
        between = secret.weights @ base(secret.times, points)
    joint = Joint(
        observation.system,
        np.hstack([first.cross, second.cross]),
        np.block([[first.variance, between], [between.T, second.variance]]),
        observation.loadings,
        np.vstack([first.secret_loadings, second.secret_loadings]),
        np.concatenate([first.size, second.size]),
    )
    found = posterior(joint)
    own, shared = found.covariance[:size, :size], found.covariance[:size, size:]
    return _Beside(own, shared, np.diagonal(found.covariance), found.slack)


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
