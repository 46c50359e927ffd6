"""A Kalman smoother: what anybody does who takes the noise for that of a bad receiver."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks.contract import Background, Estimate, Evidence, when
from trailveil.checks.attacks.posterior import posterior_mean
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism

# Seconds around a secret within which noise is looked at, and smoothed; fixes that are looked at
# at most; and the metres that it may be, in steps of a half.
_LOOKED, _SMOOTHED, _MOST = 300.0, 1800.0, 2000
_LEVELS = 1.5 ** np.arange(-2, 28)
# The median of |x| for a standard normal x.
_MEDIAN = 0.6744897501960817


def kalman_smoother(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """The smoothed place of each secret, with white noise of the size that it seems to have.

    The size is that of the second differences around the secret, robustly, for each draw by itself;
    how people move is taken from `known`, how the noise varies is not. In O(n) for a Markov prior.
    """
    if not view.times.size:
        return (None,) * len(known.secrets)
    estimates: list[Estimate | None] = []
    for secret in known.secrets:
        begin, end = when(secret)
        sizes = noise_size(view, begin, end)
        near = _nearest(view.times, begin, end)
        times, places = view.times[near], np.empty((view.draws, 2))
        levels = np.argmin(np.abs(np.log(sizes[:, None] / _LEVELS)), axis=1)
        for level in np.unique(levels):
            which = levels == level
            white = Mechanism(times, np.empty((times.size, 0)), float(_LEVELS[level]) ** 2)
            background = replace(known, secrets=(secret,), mechanism=white, true=None, others=None)
            estimate = posterior_mean(Evidence(times, view.places[which][:, near]), background)[0]
            if estimate is not None:
                places[which] = estimate.places
        estimates.append(Estimate(places))
    return tuple(estimates)


def noise_size(view: Evidence, begin: float, end: float) -> FloatArray:
    """The deviation (draws,) of white noise in the fixes around a time, at least 1 mm.

    From how far each fix is off the line between those before and after it: their median.
    """
    near: NDArray[np.intp] = np.flatnonzero(
        (view.times >= begin - _LOOKED) & (view.times <= end + _LOOKED)
    )
    if near.size < 3:
        near = _nearest(view.times, begin, end)[:3]
    if near.size < 3:
        return np.ones(view.draws)
    times, places = view.times[near], view.places[:, near]
    share = (times[1:-1] - times[:-2]) / (times[2:] - times[:-2])
    between = (1 - share)[:, None] * places[:, :-2] + share[:, None] * places[:, 2:]
    off = np.abs(places[:, 1:-1] - between) / np.sqrt(1 + share**2 + (1 - share) ** 2)[:, None]
    return np.maximum(np.median(off, axis=(1, 2)) / _MEDIAN, 1e-3)


def _nearest(times: FloatArray, begin: float, end: float) -> NDArray[np.intp]:
    """The fixes within half an hour; of too many, those nearest to the secret; of too few, all."""
    away = np.maximum(0.0, np.maximum(begin - times, times - end))
    near: NDArray[np.intp] = np.flatnonzero(
        away <= max(_SMOOTHED, float(np.sort(away)[min(9, away.size - 1)]))
    )
    if near.size > _MOST:
        near = np.sort(near[np.argsort(away[near], kind="stable")[:_MOST]])
    return near
