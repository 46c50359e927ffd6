"""Roots for the noise, and from a root to the safe side: the recomputed loss meets its target."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import (
    LAST_NEWTON_STEP,
    LEAST_START,
    MOST_SAFE_STEPS,
    NEGLIGIBLE,
    SAFE_START,
    SAFE_STEP,
)

Made = TypeVar("Made")


def until_met(make: Callable[[float], Made], excess: Callable[[Made], float], trace: float) -> Made:
    """make(trace), or with a little more, so that its excess (loss / bound - 1) is not above 0.

    Steps grow, since losses may fall slowly with the trace. Raises NumericalError where none does.
    """
    trace *= 1.0 + SAFE_START
    for attempt in range(MOST_SAFE_STEPS):
        mechanism = make(trace)
        above = excess(mechanism)
        if above <= 0.0:
            return mechanism
        trace *= 1.0 + 4.0 ** (attempt + 1) * max(above, SAFE_STEP)
    raise NumericalError("no noise was found whose recomputed loss meets the target")


def positive(value: float, name: str) -> float:
    """The value; InvalidValue where it is not a positive number."""
    if not (np.isfinite(value) and value > 0):
        raise InvalidValue(f"{name} must be a positive number, got {value}")
    return float(value)


def increasing_root(
    value: Callable[[float], tuple[float, float]], start: float, name: str
) -> float:
    """The x > 0 at which an increasing function is zero, by guarded Newton steps in log x.

    value(x) gives the function and its derivative by x. 0 where it is positive however small x
    is; NumericalError where no root is found.
    """
    low, high = 0.0, np.inf
    x = start
    for _ in range(200):
        level, slope = value(x)
        if level >= 0 and x <= NEGLIGIBLE * start:
            return x  # met already, but for rounding
        if level >= 0 and (slope <= 0 or x < LEAST_START * start):
            return 0.0
        low, high = (x, high) if level < 0 else (low, x)
        step = float(np.clip(-level / (slope * x), -12.0, 12.0)) if slope > 0 else 1.0
        proposal = x * float(np.exp(step))
        if abs(step) <= LAST_NEWTON_STEP:
            return proposal
        if not low < proposal < high:
            proposal = float(np.sqrt(low * high)) if low > 0 and high < np.inf else x * 16.0
        if proposal in (low, high):
            return proposal
        x = proposal
    raise NumericalError(
        f"no {name} was found that meets the target; try a larger epsilon or radius"
    )
