"""To the safe side: after any solve, more noise until the recomputed loss meets its target."""

from collections.abc import Callable

import numpy as np

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gaussian import MOST_SAFE_STEPS, SAFE_START, SAFE_STEP
from trailveil.mechanism import Mechanism


def until_met(
    make: Callable[[float], Mechanism], excess: Callable[[Mechanism], float], trace: float
) -> Mechanism:
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
