"""The posterior of an adversary who weighs regimes of movement by what was released."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray, cholesky_factor, cholesky_solve
from trailveil.gp.kernels import IntegratedOU
from trailveil.studies.comparing.cases import Clues, Sighting

SPEEDS, CONSTANTS = (0.3, 1.0, 3.0, 10.0), (20.0, 120.0)
"""Metres a second and seconds of the regimes, each with and without standing still."""

# Fixes that are looked at, nearest to the secret; metres of a fix's own error.
_LOOKED, _MEASURED = 60, 3.0


def regimes(released: Sighting, known: Clues) -> tuple[FloatArray, FloatArray]:
    """A mixture of Gaussian posteriors: speeds and time constants, moving or standing still.

    Each is weighed by the likelihood of the released fixes around the secret, where on the map all
    of it lies left open (ordinary kriging). The guess is the mean of the mixture. Source: Rasmussen
    and Williams (2006), sections 2.7 and 5.2; how well such a mixture holds: docs/validation.md.
    """
    places, deviations = np.full((len(known.spans), 2), np.nan), np.full(len(known.spans), np.nan)
    if released.seconds.size < 3:
        return places, deviations
    for number, span in enumerate(known.spans):
        places[number], deviations[number] = _of(released, span)
    return places, deviations


def _of(released: Sighting, span: tuple[float, float]) -> tuple[FloatArray, float]:
    begin, end = span
    away = np.maximum(0.0, np.maximum(begin - released.seconds, released.seconds - end))
    # Of the fixes inside, an even choice; of the others the nearest.
    order = np.argsort(away, kind="stable")[:_LOOKED]
    rows = np.sort(_even(order, away))
    gamma = released.covariance[np.ix_(rows, rows)] + _MEASURED**2 * np.eye(rows.size)
    values = released.metres[rows]
    origin = values.mean(axis=0)
    near = _regimes(released.seconds[rows].tobytes(), span, gamma.tobytes())
    guesses = [_posterior(regime, values - origin) for regime in near]
    logs = np.array([log for _, _, log in guesses])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    means = np.array([mean for mean, _, _ in guesses])
    mean = weights @ means
    spread = np.mean((means - mean) ** 2, axis=1) + [variance for _, variance, _ in guesses]
    return origin + mean, float(np.sqrt(weights @ spread))


def _even(order: NDArray[np.intp], away: FloatArray) -> NDArray[np.intp]:
    inside = np.sort(order[away[order] == 0])
    most = _LOOKED // 3
    if inside.size <= most:
        return order
    chosen = inside[np.linspace(0, inside.size - 1, most).astype(np.intp)]
    return np.concatenate([chosen, order[away[order] > 0]])


@dataclass(frozen=True, slots=True, eq=False)
class _Regime:
    """One way to move.

    factor: of the covariance (n, n) of the released fixes. across: (n,), of them and the secret.
    variance: of the secret.
    """

    factor: FloatArray
    across: FloatArray
    variance: float


# Recordings of one clock under one mechanism share theirs.
@lru_cache(maxsize=8)
def _regimes(times: bytes, span: tuple[float, float], noise: bytes) -> tuple[_Regime, ...]:
    begin, end = span
    clocks = [np.frombuffer(times)]
    if begin < end:
        stopped = np.minimum(clocks[0], begin) + np.maximum(0.0, clocks[0] - end)
        clocks.append(stopped)
    gamma = np.frombuffer(noise).reshape(clocks[0].size, -1)
    moments = ((begin + end) / 2, begin)
    return tuple(
        _Regime(
            cholesky_factor(speed**2 * unit[:-1, :-1] + gamma),
            speed**2 * unit[:-1, -1],
            float(speed**2 * unit[-1, -1]),
        )
        for clock, moment in zip(clocks, moments, strict=False)
        for unit in [_units(clock, moment, constant) for constant in CONSTANTS]
        for speed in SPEEDS
    )


def _units(clock: FloatArray, moment: float, constant: float) -> FloatArray:
    """The covariance (n + 1, n + 1) of the fixes and the secret at 1 m/s."""
    times = np.append(clock, moment)
    times = times - times.min()
    return IntegratedOU(1.0, constant)(times, times)


def _posterior(regime: _Regime, values: FloatArray) -> tuple[FloatArray, float, float]:
    """The mean (2,), the variance and the log likelihood of one regime, its level left open."""
    factor, across = regime.factor, regime.across
    ones = np.ones(len(values))
    solved = cholesky_solve(factor, np.column_stack([ones, across, values]))
    precision = float(ones @ solved[:, 0])
    level = ones @ solved[:, 2:] / precision
    residual = solved[:, 2:] - np.outer(solved[:, 0], level)
    missing = 1 - float(ones @ solved[:, 1])
    variance = regime.variance - float(across @ solved[:, 1]) + missing**2 / precision
    squares = float(np.sum((values - level) * residual))
    # Of each coordinate: log det is twice the sum of logs, and there are two of them.
    determinant = 2 * float(np.sum(np.log(np.diagonal(factor)))) + np.log(precision)
    mean = level + across @ residual
    return np.asarray(mean), max(variance, 0.0), -squares / 2 - determinant
