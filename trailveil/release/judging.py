"""What is left of a protected part to somebody who knows the prior alone, under noise for it.

A time is one secret. A stay is every value in it and their mean, since a bound for one of them says
little of the others.
"""

from collections.abc import Sequence

import numpy as np

from trailveil.errors import NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import split
from trailveil.privacy.adversary import PLAIN, exposures
from trailveil.privacy.exposure import Exposure, worst_of
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.points import value_variances
from trailveil.privacy.precision import known_variances
from trailveil.privacy.prior import observe
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop

# Values of a stay that are judged, evenly, while noise is sought; and in the end: of more, the
# worst is searched for besides.
_SAMPLED, _EVERY = 12, 150
# Relative: how far the variances of many values at once may be off those with a bounded error.
_CAUTION = 1e-6
# Seconds over which the change of the series at an edge of a crop is known. That change is not
# quite the speed: what an edge tells is counted so many times.
_MOMENT, _EDGES_TELL = 1.0, 2.0


Judged = dict[float | None, Exposure]
"""Exposures by time (seconds since the first of the recording), and under None of the mean."""


def judged(
    crop: Crop, mechanism: Mechanism, number: int, bound: float, *, quickly: bool = False
) -> Judged:
    """What is left of part `number`, recomputed from the mechanism at the rows of the crop.

    Of a stay: its ends, its mean, some values evenly and, of more, the one of which least is left.
    quickly: at few of them, and not for what is said in the end.
    """
    begin, end = crop.spans[number]
    if begin == end:
        return _at_places(crop, mechanism, [begin])
    inside = crop.inside(number)
    some = np.linspace(0, inside.size - 1, min(_SAMPLED if quickly else _EVERY, inside.size))
    sampled = inside[np.unique(some.astype(int))]
    exposures = _at_places(crop, mechanism, np.unique([begin, *sampled, end]).tolist(), inside)
    if inside.size <= sampled.size:
        return exposures
    variances = value_variances(observe(crop.prior, mechanism), inside)
    worst = int(np.argmin(variances))
    if 1.0 / variances[worst] <= worst_of(exposures.values()).loss * (1 + _CAUTION):
        return exposures
    return exposures | _at_places(crop, mechanism, [float(inside[worst])])


def judged_again(crop: Crop, mechanism: Mechanism, number: int, before: Judged) -> Judged:
    """What is left of part `number` where most was lost, and least left, with less noise."""
    worst = max(before, key=lambda place: before[place].loss)
    weakest = min(before, key=lambda place: before[place].posterior)
    places = {worst, weakest}
    moments = sorted(place - crop.start for place in places if place is not None)
    return _at_places(crop, mechanism, moments, crop.inside(number) if None in places else None)


def _at_places(
    crop: Crop,
    mechanism: Mechanism,
    moments: Sequence[float],
    mean_of: FloatArray | None = None,
) -> Judged:
    """What is left of the values at some times, and of the mean over others."""
    places = [Secret.at(time) for time in moments]
    times: list[float | None] = [time + crop.start for time in moments]
    if mean_of is not None and mean_of.size > 1:
        places.append(Secret.mean(mean_of))
        times.append(None)
    return dict(zip(times, _exposures(crop, mechanism, places), strict=True))


def _exposures(crop: Crop, mechanism: Mechanism, places: Sequence[Secret]) -> list[Exposure]:
    """What the prior alone tells with the release of places of one location each.

    Every numerical error is taken against us. What lies beyond a crop is counted in: a Markov
    series that is known at an edge, with how it changes there, makes all beyond it superfluous.
    Raises NumericalError where nothing is left.
    """
    prior, count = crop.prior, len(places)
    level = split(prior.kernel)[1]
    flat = 1.0 / level if level > 0 else 0.0
    together = _together(places, crop.edges)
    try:
        posterior = observe(prior, mechanism).posterior(together)
        told = _beyond(posterior.covariance, count)
        variances = np.diagonal(posterior.covariance)[:count] - posterior.slack[:count] - told
        if not np.all(variances > 0):
            raise NumericalError(
                "the place must not be determined to within rounding, got one that is: "
                "state a measurement noise, or withhold fewer fixes"
            )
    except NumericalError:
        if crop.edges:
            raise
        # With the digits that a hard problem needs.
        single = [exposures(prior, place, mechanism, PLAIN)[0] for place in places]
        return [_exposed(each.loss + flat, each.prior, each.posterior) for each in single]
    before = known_variances(prior, together)[:count]
    losses = np.maximum(1.0 / variances - 1.0 / before, 0.0) + flat
    return list(map(_exposed, losses, np.sqrt(before), np.sqrt(variances)))


def _exposed(loss: float, prior: float, posterior: float) -> Exposure:
    """A level of the prior counts as flat: that is in the loss alone."""
    return Exposure.of_loss(PLAIN.name, float(loss), float(prior), float(posterior))


def _together(places: Sequence[Secret], edges: Sequence[float]) -> Secret:
    """The places as one secret, and after them what is known at each edge."""
    pieces = [(place.times, place.weights) for place in places]
    for edge in edges:
        pieces.append((np.array([edge]), np.ones((1, 1))))
        pieces.append((np.array([edge, edge + _MOMENT]), np.array([[-1.0, 1.0]])))
    times = np.unique(np.concatenate([moments for moments, _ in pieces]))
    weights = np.zeros((len(pieces), times.size))
    for row, (moments, weight) in enumerate(pieces):
        weights[row, np.searchsorted(times, moments)] = weight[0]
    return Secret("places", times, weights)


def _beyond(covariance: FloatArray, count: int) -> FloatArray:
    """How much more of each place (count,) is known with the edges known."""
    if covariance.shape[0] == count:
        return np.zeros(count)
    shared = covariance[:count, count:]
    told = np.linalg.solve(covariance[count:, count:], shared.T)
    return np.asarray(_EDGES_TELL * np.sum(shared * told.T, axis=1))
