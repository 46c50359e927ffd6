"""What releases tell of a window in which all movement is known, by exact conditioning.

Beyond the window a person moves as an integrated Ornstein-Uhlenbeck process does, from a velocity
that is known at each edge. So what is observed on one side is the place, what was moved since, and
noise; the two sides have nothing else in common. Source: docs/paper.md, 10.
"""

import math

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.movement import Movement

# Relative: more than rounding takes off the sums here (tested by orthogonal projection).
_CAUTION = 1e-6


def window_loss(
    movement: Movement,
    window: tuple[float, float],
    times: FloatArray,
    factor: FloatArray,
    variances: FloatArray,
    known: tuple[float, float] = (-math.inf, math.inf),
) -> float:
    """The precision (1 / m^2) to which the window's place is known, from above.

    times: (n,) seconds of what is released. factor (n, r), variances (n,): of its noise, F F^T and
    what is independent. known: the times before and after the window at which place and velocity
    are known, infinite for none: what is released beyond them tells no more. Infinite where nothing
    is left.
    """
    away = np.maximum(np.maximum(window[0] - times, times - window[1]), 0.0)
    factor = factor[:, np.any(factor != 0, axis=0)]
    inside = away == 0
    if np.any(variances[inside] <= 0):
        return math.inf
    # The precision is the least of |L^-1 (1 - F z)|^2 + |z|^2 over z.
    sight = np.column_stack([np.ones(away.size), factor])
    sides = [sight[inside] / np.sqrt(variances[inside])[:, None]]
    for sign, seconds in ((-1, window[0] - known[0]), (1, known[1] - window[1])):
        rows = (times - window[0]) * sign > 0
        rows &= ~inside & (away < seconds)
        if seconds <= 0:
            return math.inf
        sides.append(_side(movement, away[rows], sight[rows], variances[rows], seconds))
    size = factor.shape[1]
    whole = np.vstack([*(np.roll(side, -1, axis=1) for side in sides), np.eye(size, size + 1)])
    if whole.shape[0] <= size:  # nothing is observed
        return 0.0
    triangle = np.asarray(np.linalg.qr(whole, mode="r"))
    return float(triangle[size, size]) ** 2 * (1 + _CAUTION)


def _side(
    movement: Movement, away: FloatArray, sight: FloatArray, variances: FloatArray, seconds: float
) -> FloatArray:
    """L^-1 (1, F) of one side, L L^T the covariance of what was moved and independent noise.

    By a Kalman filter from the window's edge outward, on all columns at once; O(n r). away: (n,)
    seconds from there. sight: (1, F) (n, 1 + r). seconds: from where on all is known.
    """
    order = np.argsort(away, kind="stable")
    near = away[order]
    steps = np.diff(near, prepend=0.0)
    place, velocity = np.zeros(sight.shape[1]), np.zeros(sight.shape[1])
    whitened, state = np.empty_like(sight), (0.0, 0.0, 0.0)
    for i, row in enumerate(order.tolist()):
        carried, kept, state = _moved(movement, state, float(steps[i]))
        place, velocity = place + carried * velocity, kept * velocity
        unsure = state[0] + float(variances[row])
        innovation = sight[row] - place
        whitened[i] = innovation / math.sqrt(unsure)
        place = place + state[0] / unsure * innovation
        velocity = velocity + state[1] / unsure * innovation
        state = _observed(state, unsure)
    if seconds == math.inf:
        return whitened
    carried, kept, state = _moved(movement, state, seconds - float(near[-1] if near.size else 0.0))
    place, velocity = place + carried * velocity, kept * velocity
    there = np.zeros(sight.shape[1])
    there[0] = 1.0
    missed = there - place
    velocity = velocity + state[1] / state[0] * missed
    at_end = [missed / math.sqrt(state[0]), -velocity / math.sqrt(_observed(state, state[0])[2])]
    return np.vstack([whitened, *at_end])


State = tuple[float, float, float]
"""The variance of the displacement, its covariance with the velocity, the velocity's variance."""


def _moved(movement: Movement, state: State, seconds: float) -> tuple[float, float, State]:
    """How far a velocity carries in so many seconds, what is left of it, and the state then."""
    tau, speed = movement.time_constant, movement.speed
    gone = -math.expm1(-seconds / tau)
    carried, kept = tau * gone, 1 - gone
    place, both, velocity = state
    bridged = movement.bridged(seconds) + (speed * tau) ** 2 * gone**3 / (2 - gone)
    return (
        carried,
        kept,
        (
            place + 2 * carried * both + carried**2 * velocity + bridged,
            kept * (both + carried * velocity) + speed**2 * tau * gone**2,
            kept**2 * velocity + speed**2 * gone * (2 - gone),
        ),
    )


def _observed(state: State, unsure: float) -> State:
    """The state once a place was observed, that varies by so much about it."""
    place, both, velocity = state
    share = 1 - place / unsure
    return place * share, both * share, velocity - both**2 / unsure
