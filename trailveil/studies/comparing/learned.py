"""Reconstruction by a model that is trained on pairs of releases and recordings of other people.

A small model: a linear filter of what was released before and after, the same in all directions
and at all places, by ridge regression. What such attacks do with a recurrent network: Buchholz,
Abuadbba, Wang, Nepal and Kanhere (2022), Reconstruction attack on differential private trajectory
protection mechanisms (RAoPT), ACSAC. What this one finds, a larger model finds as well.
"""

from collections.abc import Sequence

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.studies.comparing.cases import Case, Clues, Sighting

# Seconds before and after a moment at which the release is looked at; and for how long, at most,
# somebody goes on from an edge as before.
_LAGS = (15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0)
_GOES_ON = (30.0, 120.0, 600.0)
# Relative ridges that are tried, and the share of pairs that choose among them.
_RIDGES, _CHOOSING = (1e-6, 1e-3, 1e-2, 1e-1, 1.0, 10.0), 0.25


def learned(released: Sighting, known: Clues) -> FloatArray:
    """The place in the middle of each secret, by a filter trained on the secrets of other people.

    Each kind of secret, by whether it is at an end, has a filter of its own.
    """
    places = np.full((len(known.spans), 2), np.nan)
    if not released.seconds.size:
        return places
    filters: dict[bool, FloatArray] = known.remembered("filters", lambda: trained(known.training()))
    for number, span in enumerate(known.spans):
        weights = filters.get(at_end(known.case, span))
        if weights is not None:
            anchor, features = looked_at(released, span)
            places[number] = anchor + weights @ features
    return places


def at_end(case: Case, span: tuple[float, float]) -> bool:
    """Whether a secret is at either end of its recording."""
    return span[0] <= 0 or span[1] >= case.seconds[-1]


def looked_at(released: Sighting, span: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """The anchor (2,) and the features (f, 2) of a release around a secret, relative to it.

    Places at the lags before and after the secret, and how far somebody would go on from the last
    fix before it and the first after it.
    """
    seconds, metres = released.seconds, released.metres
    begin, end = span
    inside = (seconds >= begin) & (seconds <= end)
    times = [(begin + end) / 2]
    times += [t for lag in _LAGS for t in (begin - lag, end + lag)]
    places = np.transpose([np.interp(times, seconds, axis) for axis in metres.T])
    if inside.any():
        places[0] = metres[inside].mean(axis=0)
    features = [places[1:] - places[0]]
    middle = times[0]
    for side in (np.flatnonzero(seconds < begin)[-6:], np.flatnonzero(seconds > end)[:6]):
        ways = np.zeros((len(_GOES_ON), 2))
        if side.size > 1:
            edge = side[-1] if seconds[side[-1]] < middle else side[0]
            velocity = (metres[side[-1]] - metres[side[0]]) / np.ptp(seconds[side])
            gone = middle - seconds[edge]
            ways = np.array(
                [np.sign(gone) * c * -np.expm1(-abs(gone) / c) * velocity for c in _GOES_ON]
            )
            ways += metres[edge] - places[0]
        features.append(ways)
    return places[0], np.concatenate(features)


def trained(pairs: Sequence[tuple[Sighting, Case]]) -> dict[bool, FloatArray]:
    """The weights (f,) of each kind of secret that the pairs have.

    Both coordinates are examples, since no direction is special. The ridge is the one that does
    best on the last quarter of the pairs when it is trained on the others.
    """
    examples: dict[bool, list[tuple[FloatArray, FloatArray]]] = {}
    for released, case in pairs:
        if not released.seconds.size:
            continue
        for span, truth in zip(case.spans, case.truths, strict=True):
            anchor, features = looked_at(released, span)
            kind = examples.setdefault(at_end(case, span), [])
            kind += [(features[:, axis], truth[axis] - anchor[axis]) for axis in range(2)]
    return {kind: _fitted(each) for kind, each in examples.items()}


def _fitted(examples: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    features = np.array([feature for feature, _ in examples])
    targets = np.array([target for _, target in examples])
    first = max(1, int(len(targets) * (1 - _CHOOSING)))
    if first == len(targets):
        return np.zeros(features.shape[1])

    def error(ridge: float) -> float:
        weights = _ridge(features[:first], targets[:first], ridge)
        return float(np.median(np.abs(targets[first:] - features[first:] @ weights)))

    return _ridge(features, targets, min(_RIDGES, key=error))


def _ridge(features: FloatArray, targets: FloatArray, ridge: float) -> FloatArray:
    scale = np.sqrt(np.mean(features**2, axis=0)) + 1e-9
    unit = features / scale
    gram = unit.T @ unit + ridge * len(unit) * np.eye(unit.shape[1])
    return np.asarray(np.linalg.solve(gram, unit.T @ targets) / scale)
