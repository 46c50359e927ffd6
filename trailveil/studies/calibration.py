"""Does a prior predict what is left out as well as it says? Takes arrays, and knows no traces.

Of a fix that was left out a kernel says this. With S = K(t, t) + noise over the kept fixes and k =
Cov(kept, left out), the value has mean k^T S^-1 y and variance K(t*, t*) - k^T S^-1 k. A level of
deviation c that all have in common is never added into S, where it would drown the rest: with g =
S^-1 1, m = g^T y / (1/c^2 + 1^T g) and u = 1 - 1^T S^-1 k,

    mean = m u + k^T S^-1 y,     variance = K(t*, t*) - k^T S^-1 k + u^2 / (1/c^2 + 1^T g).

The evidence is the log density of the kept values themselves, by which one prior can be weighed
against another: that of trailveil.studies.fit.likelihood.

Source: Rasmussen and Williams (2006), eqs. 2.23 to 2.24 and 2.41 to 2.42.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.stats import norm

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray, cholesky_factor
from trailveil.gp.kernels import Kernel, split

# Fixes of a recording that are to be predicted, each with the fixes that may be looked at.
#
# A fix is left out with all others nearer in time than a gap, on both sides. What is kept is
# thinned with its distance, so that the work for one does not grow with the recording: an interval
# that is conditional on some of the fixes must hold what it promises as well as one that is
# conditional on all. For the same reason the pace is that of the kept fixes: under a Gaussian prior
# the error is independent of them, so whatever is chosen by them must be covered at the nominal
# rate, while what is chosen by the fix that is left out need not be.

PACES: Final = {"still": 0.0, "walking": 0.6, "cycling": 2.0, "driving": 6.0, "fast": 25.0}
"""Metres a second from which on a pace is called so. Still: standing or strolling; fast: trains."""

MOST_PER_SERIES: Final = 12
"""Fixes of a series that are predicted for each gap, evenly in time."""

SLACK: Final = 60.0
"""Seconds: how much further than the gap the nearest kept fix may be, on either side."""

_KEPT = 32  # fixes on each side
_REACH = 1_000  # of so many: the nearest as they are, further ones ever more thinned
_SEEN, _CHORD = 120.0, 20.0  # seconds of each side that tell the pace, and of one step of it
_LEAST_SEEN = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """One fix to be predicted.

    times: (k,) seconds of the kept fixes, increasing. values: (k, d), theirs. time, value (d,): of
    the fix itself. gap: seconds within which everything was left out, 0 for the fix alone. speed:
    metres a second of what is seen within 120 s of the gap, in steps of 20 s.
    """

    times: FloatArray
    values: FloatArray
    time: float
    value: FloatArray
    gap: float
    speed: float

    @property
    def pace(self) -> str:
        """The name of the pace: of PACES."""
        return pace_of(self.speed)


def pace_of(speed: float) -> str:
    """The name of a speed in metres a second: of PACES."""
    return [name for name, least in PACES.items() if speed >= least][-1]


def left_out(
    times: FloatArray, values: FloatArray, gaps: Sequence[float], most: int = MOST_PER_SERIES
) -> list[LeftOut]:
    """The fixes of a series to predict, at most `most` for each gap, by gap and time.

    times: (n,) seconds, increasing. values: (n, d). A fix counts for a gap where on each side the
    nearest kept one is no further than the gap and SLACK, and where a pace is seen. Raises
    InvalidValue for other shapes or a gap below 0.
    """
    if times.ndim != 1 or values.ndim != 2 or len(times) != len(values):
        raise InvalidValue(
            f"a series must have one row of values for each time, got shapes {times.shape} and "
            f"{values.shape}"
        )
    if not all(0 <= gap < np.inf for gap in gaps):
        raise InvalidValue(f"gaps must be 0 s or more, got {', '.join(f'{g:g}' for g in gaps)}")
    cases_left_out = []
    for gap in gaps:
        rows = _candidates(times, gap)
        if len(rows) > most:
            evenly = np.linspace(times[rows[0]], times[rows[-1]], most)
            nearest = np.searchsorted((times[rows][1:] + times[rows][:-1]) / 2, evenly)
            rows = rows[np.unique(nearest)]
        cases = (_left_out(times, values, int(row), gap) for row in rows)
        cases_left_out += [case for case in cases if case is not None]
    return cases_left_out


def _edges(times: FloatArray, rows: NDArray[np.intp], gap: float) -> tuple[NDArray[np.intp], ...]:
    """The last row kept before each of these rows, and the first one after; -1 and n for none."""
    before = np.searchsorted(times, times[rows] - gap, side="right") - 1
    after = np.searchsorted(times, times[rows] + gap, side="left")
    return np.minimum(before, rows - 1), np.maximum(after, rows + 1)


def _candidates(times: FloatArray, gap: float) -> NDArray[np.intp]:
    rows = np.arange(len(times))
    before, after = _edges(times, rows, gap)
    inside = (before >= 0) & (after < len(times))
    rows, before, after = rows[inside], before[inside], after[inside]
    near = times[rows] - times[before] <= gap + SLACK
    return rows[near & (times[after] - times[rows] <= gap + SLACK)]


def _left_out(times: FloatArray, values: FloatArray, row: int, gap: float) -> LeftOut | None:
    before, after = (int(edge[0]) for edge in _edges(times, np.array([row]), gap))
    before_row = np.arange(before, max(before - _REACH, -1), -1)
    right = np.arange(after, min(after + _REACH, len(times)))
    length, seconds = np.sum([_seen(times, values, side) for side in (before_row, right)], axis=0)
    if seconds < _LEAST_SEEN:
        return None
    rows_around = np.concatenate(
        [before_row[_ranks(before_row.size)][::-1], right[_ranks(right.size)]]
    )
    speed = float(length / seconds)
    return LeftOut(
        times[rows_around], values[rows_around], float(times[row]), values[row], gap, speed
    )


def _ranks(count: int) -> NDArray[np.intp]:
    """Ranks of the kept ones of `count` fixes on one side, from the nearest (0) outwards."""
    if count <= _KEPT:
        return np.arange(count)
    spread = np.round(np.geomspace(1, count, _KEPT)).astype(np.intp)
    return np.maximum(spread, np.arange(1, _KEPT + 1)) - 1


def _seen(times: FloatArray, values: FloatArray, side: NDArray[np.intp]) -> tuple[float, float]:
    """Metres and seconds of the chords seen on one side: its rows, from the nearest outwards."""
    apart = np.abs(times[side] - times[side[0]])
    steps = np.searchsorted(apart, np.arange(0, _SEEN + _CHORD / 2, _CHORD))
    steps = np.unique(steps[steps < np.count_nonzero(apart <= _SEEN)])
    chords = np.diff(values[side[steps]], axis=0)
    return float(np.sum(np.linalg.norm(chords, axis=1))), float(apart[steps[-1]])


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """One prediction. mean: (d,). std: of each coordinate. evidence: nats, of the kept values."""

    mean: FloatArray
    std: float
    evidence: float


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Of m fixes. errors: (m, d), value less mean. stds: (m,), the deviation that was promised.

    evidence: (m,) nats, of the values that were kept for each.
    """

    errors: FloatArray
    stds: FloatArray
    evidence: FloatArray

    def only(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Predictions":
        """Those of some fixes, or in another order."""
        return Predictions(self.errors[rows], self.stds[rows], self.evidence[rows])

    @property
    def standardised(self) -> FloatArray:
        """Errors in units of the promised deviation (m, d): standard normal if the prior holds."""
        return self.errors / self.stds[:, None]

    @property
    def log_densities(self) -> FloatArray:
        """Of each coordinate, in nats (m, d)."""
        spread = np.log(2 * np.pi * self.stds**2)[:, None]
        return np.asarray(-(self.standardised**2 + spread) / 2)


def predicted(kernel: Kernel, times: FloatArray, values: FloatArray, time: float) -> Predicted:
    """The recorded value at `time`, from values (k, d) at times (k,), without any but these.

    Values are looked at from their mean: a prior without a level is about it. A kernel that starts
    at an origin starts at the first of all the times. Raises InvalidValue for no kept fix or a
    kernel of nothing but a level, and NumericalError where double precision cannot compute it.
    """
    if not len(times):
        raise InvalidValue("a prediction must have one kept fix or more, got none")
    varying, level = split(kernel)
    if varying is None:
        raise InvalidValue("a prior must have more than a level for a prediction, got none")
    begin = min(float(times[0]), time)
    relative, at = times - begin, np.array([time - begin])
    factor = cholesky_factor(varying(relative, relative))
    across = varying(relative, at)[:, 0]
    middle = values.mean(axis=0)
    apart = values - middle
    columns = np.column_stack([across, np.ones(len(relative)), apart])
    solved = np.asarray(cho_solve((factor, True), columns, check_finite=False))
    weights, ones, pulled = solved[:, 0], solved[:, 1], solved[:, 2:]
    mean = across @ pulled
    variance = float(varying.diagonal(at)[0] - across @ weights)
    fit = float(np.sum(apart * pulled))
    volume = 2 * float(np.sum(np.log(np.diagonal(factor)))) + len(relative) * math.log(2 * math.pi)
    if level > 0:
        precision = 1 / level + float(np.sum(ones))
        missing = 1.0 - float(np.sum(weights))
        total = np.sum(pulled, axis=0)
        mean = mean + missing * total / precision
        variance += missing**2 / precision
        fit -= float(total @ total) / precision
        volume += math.log(precision * level)
    evidence = -(fit + values.shape[1] * volume) / 2
    return Predicted(np.asarray(middle + mean), math.sqrt(max(variance, 0.0)), evidence)


def predictions(kernel: Kernel, cases: Sequence[LeftOut]) -> Predictions:
    """What a kernel says of each of m fixes. Raises as `predicted`; InvalidValue for none."""
    if not cases:
        raise InvalidValue("predictions must be of one fix or more, got none")
    outcomes = [predicted(kernel, case.times, case.values, case.time) for case in cases]
    return Predictions(
        np.stack(
            [case.value - prediction.mean for case, prediction in zip(cases, outcomes, strict=True)]
        ),
        np.array([prediction.std for prediction in outcomes]),
        np.array([prediction.evidence for prediction in outcomes]),
    )


# How often the intervals of a prior hold what they promise, and how sure that is.
#
# Predictions of one recording are not independent of each other, so intervals of the shares are
# from resampling whole groups (recordings, or people) with replacement: Efron and Tibshirani
# (1993), An Introduction to the Bootstrap, 13; Field and Welsh (2007), Bootstrapping clustered
# data, JRSS B 69.

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
