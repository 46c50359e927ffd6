"""What releases tell of a window in which all movement is known, by exact conditioning.

Beyond the window a person moves as an integrated Ornstein-Uhlenbeck process does, from a velocity
that is known at each edge. So what is observed on one side is the place, what was moved since, and
noise; the two sides have nothing else in common. Source: docs/paper.md, 10.
"""

import math

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.movement import Movement

# Relative: more than rounding takes off the sums here (tested against 50 digits).
_CAUTION = 1e-6


def window_loss(
    movement: Movement,
    window: tuple[float, float],
    times: FloatArray,
    covariance: FloatArray,
    known: tuple[float, float] = (-math.inf, math.inf),
) -> float:
    """The precision (1 / m^2) to which the window's place is known, from above.

    times: (n,) seconds of what is released. covariance: of its noise (n, n). known: the times
    before and after the window at which place and velocity are known, infinite for none: what is
    released beyond them tells no more. Infinite where nothing is left.
    """
    away = np.maximum(np.maximum(window[0] - times, times - window[1]), 0.0)
    side = np.where(times > window[1], 1, np.where(times < window[0], -1, 0))
    joint = np.where(side[:, None] == side, displaced(movement, away), 0.0) + covariance
    sight = np.ones(times.size)
    for sign, seconds in ((-1, window[0] - known[0]), (1, known[1] - window[1])):
        if seconds == math.inf:
            continue
        if seconds <= 0:
            return math.inf
        state, shared = _arrival(movement, seconds, away)
        shared = np.where((side == sign)[:, None], shared, 0.0)
        shared = np.vstack([shared, np.zeros((sight.size - times.size, 2))])
        joint = np.block([[joint, shared], [shared.T, state]])
        sight = np.append(sight, [1.0, 0.0])
    if not sight.size:
        return 0.0
    try:
        lower = np.linalg.cholesky(joint)
    except np.linalg.LinAlgError:
        return math.inf
    part = np.linalg.solve(lower, sight)
    return float(part @ part) * (1 + _CAUTION)


def displaced(movement: Movement, seconds: FloatArray) -> FloatArray:
    """The covariance (m^2) of displacements in so many seconds (n,), given the first velocity."""
    steps = seconds / movement.time_constant
    less, gone = np.minimum.outer(steps, steps), -np.expm1(-steps)
    apart = -np.expm1(-np.abs(np.subtract.outer(steps, steps)))
    both = 2 * less - np.add.outer(gone, gone) + apart - np.outer(gone, gone)
    return np.asarray((movement.speed * movement.time_constant) ** 2 * both)


def _arrival(movement: Movement, seconds: float, away: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The covariance of displacement and velocity after some seconds (2, 2), and with those (n, 2).

    away: seconds to other displacements, no more.
    """
    tau = movement.time_constant
    within = np.minimum(away, seconds)
    shared = displaced(movement, np.append(within, seconds))
    left, gone = np.exp(-(seconds - within) / tau), -np.expm1(-within / tau)
    arriving = movement.speed**2 * tau * (left - np.exp(-seconds / tau)) * gone
    at_end = movement.speed**2 * tau * math.expm1(-seconds / tau) ** 2
    state = np.array(
        [
            [shared[-1, -1], at_end],
            [at_end, -(movement.speed**2) * math.expm1(-2 * seconds / tau)],
        ]
    )
    return state, np.column_stack([shared[:-1, -1], arriving])
