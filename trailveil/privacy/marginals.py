"""What one adversary learns of many places, each by itself, for the price of a few.

As trailveil.privacy.adversary has it for one secret, with every numerical error against us. Of a
crop of a longer recording, what lies beyond is counted in as well: a series that is Markov and
known at an edge, with how it changes there, makes all that is beyond superfluous.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, split
from trailveil.privacy.adversary import (
    Adversary,
    exposures,
    far_from,
    known_path,
    span_of,
)
from trailveil.privacy.adversary import value_losses as losses_of_one
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.precision import known_variances, variances_given_one_value
from trailveil.privacy.prior import Observation, Prior, SideInformation, observe
from trailveil.privacy.secrets import Secret
from trailveil.privacy.values_beside import beside_values

# Seconds over which the change of the series at an edge of a crop is known.
_MOMENT = 1.0
# Metres, or the unit of the series: a level that tells nothing, whatever is known besides.
_NO_IDEA = 1e12
# That change is not quite the speed: what an edge tells is counted so many times.
_EDGES_TELL = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class MarginalExposure:
    """Of k places: losses (k,), and the deviations (k,) that are left with the release and without.

    The worst over what the adversary may know; at: the time of the value it knew then, or None. A
    common level of the prior counts as flat: of a place, all that is lost is at least what is said.
    known, least: the least deviations (k,) without the release and with it, whatever it knew then.
    """

    losses: FloatArray
    before: FloatArray
    after: FloatArray
    at: tuple[float | None, ...]
    known: FloatArray
    least: FloatArray


def seen(
    prior: Prior,
    places: Sequence[Secret],
    mechanism: Mechanism,
    adversary: Adversary,
    *,
    edges: Sequence[float] = (),
) -> MarginalExposure:
    """What an adversary learns of places of one location each, all within one span.

    edges: times at which a longer recording was cut. Raises InvalidValue for places that are apart,
    or an adversary who knows a value and the path; NumericalError where a place is left with
    nothing.
    """
    try:
        return _seen(prior, places, mechanism, adversary, edges)
    except NumericalError:
        if edges:
            raise
        return _one_by_one(prior, places, mechanism, adversary)


def _seen(
    prior: Prior,
    places: Sequence[Secret],
    mechanism: Mechanism,
    adversary: Adversary,
    edges: Sequence[float],
) -> MarginalExposure:
    judge, span, known = _judge(prior, places, adversary)
    together, count = _together(places, edges), len(places)
    observation = observe(judge, mechanism, known)
    found = observation.posterior(together)
    told = _beyond(found.covariance, count)
    left = np.diagonal(found.covariance)[:count] - found.slack[:count] - told
    before = known_variances(judge, together, known)[:count]
    losses, (known, least) = _losses(left, before), np.sqrt([before, left])
    if adversary.path is not None and adversary.path.surely < np.inf:
        surely = known_path(judge, span, adversary, surely=True)
        losses = _losses(left, known_variances(judge, together, surely)[:count])
    level = split(judge.kernel)[1]
    losses = losses + (1.0 / level if level > 0 else 0.0)
    alone = MarginalExposure(losses, known, least, (None,) * count, known, least)
    points = far_from(judge, span, adversary.point.away) if adversary.point else np.empty(0)
    if adversary.point is None or not points.size:
        return alone
    known_values = points, adversary.point.accuracy
    left, before = _each(observation, places, *known_values, told)
    lost = _flat_losses(judge, places, known_values, left, before)
    return _worst(alone, points, left, before, lost)


def _one_by_one(
    prior: Prior, places: Sequence[Secret], mechanism: Mechanism, adversary: Adversary
) -> MarginalExposure:
    """The same with the digits that a hard problem needs."""
    found = [exposures(prior, place, mechanism, adversary)[0] for place in places]
    level = split(prior.kernel)[1]
    known, least = np.array([[one.before, one.after] for one in found]).T
    losses = np.array([one.loss for one in found]) + (1.0 / level if level > 0 else 0.0)
    alone = MarginalExposure(losses, known, least, (None,) * len(places), known, least)
    judge, span, _ = _judge(prior, places, adversary)
    points = far_from(judge, span, adversary.point.away) if adversary.point else np.empty(0)
    if adversary.point is None or not points.size:
        return alone
    together, accuracy = _together(places, ()), adversary.point.accuracy
    before = variances_given_one_value(judge, together, points, accuracy).T
    learnt = [losses_of_one(prior, place, mechanism, adversary)[1] for place in places]
    left = 1.0 / (1.0 / before + learnt)
    lost = _flat_losses(judge, places, (points, accuracy), left, before)
    return _worst(alone, points, left, before, lost)


def value_losses(
    prior: Prior, places: Sequence[Secret], mechanism: Mechanism, adversary: Adversary
) -> tuple[FloatArray, FloatArray]:
    """The times (p,) of the values an adversary may know one of, and the losses (k, p) with each.

    Raises as `seen` does.
    """
    judge, span, known = _judge(prior, places, adversary)
    points = far_from(judge, span, adversary.point.away) if adversary.point else np.empty(0)
    if adversary.point is None or not points.size:
        return np.empty(0), np.empty((len(places), 0))
    observation = observe(judge, mechanism, known)
    nothing = np.zeros(len(places))
    left, before = _each(observation, places, points, adversary.point.accuracy, nothing)
    return points, _losses(left, before)


def _judge(
    prior: Prior, places: Sequence[Secret], adversary: Adversary
) -> tuple[Prior, tuple[float, float], SideInformation]:
    """The adversary's prior, the span of the places, and what is known of the path."""
    spans = {span_of(place, adversary) for place in places}
    if len(spans) != 1 or any(place.size != 1 for place in places):
        raise InvalidValue("places that are judged together must be single and in one span")
    if adversary.point is not None and adversary.path is not None:
        raise InvalidValue("an adversary must not know a value and the path here, got both")
    span, judge = next(iter(spans)), adversary.judging(prior, places[0])
    return judge, span, known_path(judge, span, adversary)


def _together(places: Sequence[Secret], edges: Sequence[float]) -> Secret:
    """The places as one secret, and after them what is known at each edge."""
    pieces = [(place.times, place.weights) for place in places]
    for edge in edges:
        pieces.append((np.array([edge]), np.ones((1, 1))))
        pieces.append((np.array([edge, edge + _MOMENT]), np.array([[-1.0, 1.0]])))
    times = np.unique(np.concatenate([one for one, _ in pieces]))
    weights = np.zeros((len(pieces), times.size))
    for row, (one, weight) in enumerate(pieces):
        weights[row, np.searchsorted(times, one)] = weight[0]
    return Secret("places", times, weights, places[0].recorded)


def _beyond(covariance: FloatArray, count: int) -> FloatArray:
    """How much more of each place (count,) is known with the edges known."""
    if covariance.shape[0] == count:
        return np.zeros(count)
    shared = covariance[:count, count:]
    told = np.linalg.solve(covariance[count:, count:], shared.T)
    return np.asarray(_EDGES_TELL * np.sum(shared * told.T, axis=1))


def _losses(left: FloatArray, before: FloatArray) -> FloatArray:
    if not np.all(left > 0):
        raise _determined()
    return np.asarray(np.maximum(1.0 / left - 1.0 / before, 0.0))


def _determined() -> NumericalError:
    return NumericalError(
        "the place must not be determined to within rounding, got one that is: "
        "state a measurement noise, or withhold fewer fixes"
    )


def _each(
    observation: Observation,
    places: Sequence[Secret],
    points: FloatArray,
    accuracy: float,
    beyond: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """What is left and what was there (k, p) with each of the values known to an accuracy.

    Q - q^2 / (Q_pp + accuracy^2), from below: see trailveil.privacy.adversary.
    """
    together, count = _together(places, ()), len(places)
    beside = beside_values(observation, together, points)
    own, spread = np.diagonal(beside.own)[:, None], np.maximum(beside.variances[count:], 0.0)
    doubts = _doubts(own, spread, beside.slack[:count, None], beside.slack[count:])
    # From below: a variance is never negative, whatever it was computed as; but with more doubt
    # than that, nothing can be said.
    divisor = spread - doubts + accuracy**2
    if not np.all(divisor > 0):
        raise _determined()
    told = beside.shared**2 / divisor
    before = variances_given_one_value(observation.prior, together, points, accuracy)
    return own - doubts - told - beyond[:, None], before.T


def _flat_losses(
    judge: Prior,
    places: Sequence[Secret],
    known: tuple[FloatArray, float],
    left: FloatArray,
    before: FloatArray,
) -> FloatArray:
    """The losses (k, p) with each of the values known, where a level counts as flat.

    That one place is known does not make a level of the prior tell nothing: with how the series
    moves it tells of every other place, and of one that is near more than it would alone.
    """
    level = split(judge.kernel)[1]
    if level <= 0:
        return _losses(left, before)
    flat = replace(judge, kernel=judge.kernel + Constant(_NO_IDEA))
    nothing_else = variances_given_one_value(flat, _together(places, ()), *known).T
    return np.maximum(_losses(left, before) + 1.0 / level, _losses(left, nothing_else))


def _worst(
    alone: MarginalExposure,
    points: FloatArray,
    left: FloatArray,
    before: FloatArray,
    losses: FloatArray,
) -> MarginalExposure:
    """The worst of nothing known, and each of the values (p,) known: left, before (k, p)."""
    worst, rows = np.argmax(losses, axis=1), np.arange(left.shape[0])
    more = losses[rows, worst] > alone.losses
    return MarginalExposure(
        np.where(more, losses[rows, worst], alone.losses),
        np.where(more, np.sqrt(before[rows, worst]), alone.before),
        np.where(more, np.sqrt(left[rows, worst]), alone.after),
        tuple(float(points[at]) if one else None for one, at in zip(more, worst, strict=True)),
        np.minimum(alone.known, np.sqrt(before.min(axis=1))),
        np.minimum(alone.least, np.sqrt(left.min(axis=1))),
    )


def _doubts(
    own: FloatArray, other: FloatArray, own_slack: FloatArray, other_slack: FloatArray
) -> FloatArray:
    """trailveil.gp.gaussian.spectral_doubt of each pair (k, p) of a place and a point."""
    sizes = np.sqrt(own + other)

    def moved(variance: FloatArray, slack: FloatArray) -> FloatArray:
        deviation = np.sqrt(variance)
        least = np.finfo(np.float64).tiny
        return np.asarray(slack / np.maximum(np.sqrt(variance + slack) + deviation, least))

    error = np.sqrt(moved(own, own_slack) ** 2 + moved(other, other_slack) ** 2)
    return np.asarray(own_slack + other_slack + 2 * sizes * error + error**2)
