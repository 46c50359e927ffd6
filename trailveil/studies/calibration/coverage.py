"""How often the intervals of a prior hold what they promise, and how sure that is.

Predictions of one recording are not independent of each other, so intervals of the shares are from
resampling whole groups (recordings, or people) with replacement: Efron and Tibshirani (1993), An
Introduction to the Bootstrap, 13; Field and Welsh (2007), Bootstrapping clustered data, JRSS B 69.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.calibration.predicting import Predictions

LEVELS: Final = (0.5, 0.68, 0.95)
"""Of the central intervals that are judged."""

FAR: Final = 3.0
"""Promised deviations beyond which an error is far: 0.27 % of them, if the prior holds."""

CONFIDENCE: Final = 0.95
RESAMPLED: Final = 1_000
CURVE: Final = (*(round(0.05 * step, 2) for step in range(1, 20)), 0.99)
"""Levels of the curve of a plot."""

_SEED = 2021  # the same intervals every time


@dataclass(frozen=True, slots=True)
class Share:
    """A share, and its interval of CONFIDENCE; None where there is but one group."""

    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What came of the predictions of one prior; a prediction is of all d coordinates at once.

    inside: shares of coordinates inside the interval of each of LEVELS. far: share beyond FAR
    promised deviations. log_density, log_density_median: nats per coordinate; a few wild fixes can
    move the mean far. promised: median promised
    deviation; rms, median: of the errors of a coordinate. factor: what the promised deviations must
    be multiplied by for 68 % to be inside the interval of 68 %. curve: shares inside at CURVE.
    """

    predictions: int
    groups: int
    inside: dict[float, Share]
    far: Share
    log_density: float
    log_density_median: float
    promised: float
    rms: float
    median: float
    factor: float
    curve: tuple[float, ...]


def coverage(predictions: Predictions, groups: Sequence[int]) -> Coverage:
    """Judge m predictions of one prior. groups: (m,), of each the group it is resampled with.

    Raises InvalidValue for no prediction, or another number of groups.
    """
    size = np.abs(predictions.standardised)
    owners = np.asarray(groups)
    if not len(size) or owners.shape != (len(size),):
        raise InvalidValue(
            f"coverage must be of one prediction or more with a group for each, got {len(size)} "
            f"and {owners.size} groups"
        )
    hits = [size <= half_width(level) for level in LEVELS] + [size > FAR]
    shares = resampled(np.stack([hit.mean(axis=1) for hit in hits], axis=1), owners)
    shares = [_not_certain(share, len(np.unique(owners))) for share in shares]
    return Coverage(
        predictions=len(size),
        groups=len(np.unique(owners)),
        inside=dict(zip(LEVELS, shares, strict=False)),
        far=shares[-1],
        log_density=float(np.mean(predictions.log_densities)),
        log_density_median=float(np.median(predictions.log_densities)),
        promised=float(np.median(predictions.stds)),
        rms=float(np.sqrt(np.mean(predictions.errors**2))),
        median=float(np.median(np.abs(predictions.errors))),
        factor=float(np.quantile(size, 0.68)) / half_width(0.68),
        curve=tuple(float(np.mean(size <= half_width(level))) for level in CURVE),
    )


def _not_certain(share: Share, groups: int) -> Share:
    """Where all or none are inside, every resample says the same: then as for independent groups.

    All of `groups` have a chance of at least (1 - CONFIDENCE) / 2 down to this share.
    """
    least = ((1 - CONFIDENCE) / 2) ** (1 / groups)
    if share.low is None or 0 < share.share < 1:
        return share
    return Share(1.0, least, 1.0) if share.share == 1 else Share(0.0, 0.0, 1 - least)


def half_width(level: float) -> float:
    """Half of the central interval of a standard normal that holds this share."""
    return float(norm.ppf((1 + level) / 2))


def resampled(
    values: FloatArray, groups: Sequence[int] | NDArray[np.int64], draws: int = RESAMPLED
) -> list[Share]:
    """Means of the columns of values (m, k), with intervals from resampling groups (m,).

    The middle CONFIDENCE of `draws` resamples, the same ones every time.
    """
    known, rows = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.zeros((len(known), values.shape[1] + 1))
    np.add.at(sums, rows, np.column_stack([values, np.ones(len(values))]))
    total = sums.sum(axis=0)
    means = total[:-1] / total[-1]
    if len(known) < 2:
        return [Share(float(mean), None, None) for mean in means]
    random = np.random.default_rng(_SEED)
    drawn = random.multinomial(len(known), np.full(len(known), 1 / len(known)), size=draws) @ sums
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn[:, :-1] / drawn[:, -1:], [tail, 1 - tail], axis=0)
    return [
        Share(float(mean), float(a), float(b)) for mean, a, b in zip(means, low, high, strict=True)
    ]
