"""What the edges of a withheld stretch tell: where somebody was last seen, and how they moved."""

import numpy as np

from trailveil.checks.attacks.contract import Background, Estimate, Evidence, visible, when
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import IntegratedOU, Kernel, Scaled

# Metres per coordinate of fixes that are taken as they are; seconds of them that a speed is from;
# and how long (seconds) somebody goes on as before where the prior does not say.
_PRECISE, _SPEED_FROM, _GOES_ON = 15.0, 30.0, 60.0


def edges_of_hole(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret by the fixes before and after it that were released nearly as they were.

    Between two edges, the cubic with their places and velocities (Hermite); beyond the only one,
    the place to which somebody comes who slows down as the prior has it. None without any edge.
    """
    rows = np.flatnonzero(visible(view, known, _PRECISE))
    times, places = view.times[rows], view.places[:, rows]
    return tuple(_of(times, places, when(secret), known.kernel) for secret in known.secrets)


def _of(
    times: FloatArray, places: FloatArray, span: tuple[float, float], kernel: Kernel
) -> Estimate | None:
    before, after = times < span[0], times > span[1]
    middle = (span[0] + span[1]) / 2
    if before.any() and after.any():
        start, end = times[before][-1], times[after][0]
        here, speed = _edge(times[before], places[:, before], start)
        other, further = _edge(times[after], places[:, after], end)
        length = end - start
        u = (middle - start) / length
        return Estimate(
            (1 + 2 * u) * (1 - u) ** 2 * here
            + u * (1 - u) ** 2 * length * speed
            + u**2 * (3 - 2 * u) * other
            - u**2 * (1 - u) * length * further
        )
    if not before.any() and not after.any():
        return None
    side = before if before.any() else after
    edge = times[side][-1 if before.any() else 0]
    place, speed = _edge(times[side], places[:, side], edge)
    gone, constant = middle - edge, _time_constant(kernel)
    return Estimate(place + np.sign(gone) * constant * -np.expm1(-abs(gone) / constant) * speed)


def _edge(times: FloatArray, places: FloatArray, edge: float) -> tuple[FloatArray, FloatArray]:
    """Place and velocity (draws, 2) at an edge: the line through the fixes near it."""
    near = np.abs(times - edge) <= _SPEED_FROM
    at, values = times[near] - edge, places[:, near]
    if at.size < 2:
        return values[:, 0], np.zeros_like(values[:, 0])
    middle = at.mean()
    speed = np.einsum("i,dia->da", at - middle, values) / np.sum((at - middle) ** 2)
    return values.mean(axis=1) - middle * speed, speed


def _time_constant(kernel: Kernel) -> float:
    terms = [term.kernel if isinstance(term, Scaled) else term for term in kernel.terms()]
    constants = [term.time_constant for term in terms if isinstance(term, IntegratedOU)]
    return constants[0] if constants else _GOES_ON
