"""How long to withhold around what is protected, and what noise the rest then needs.

A minute of which nothing is released is as bad as a minute moved by a stated number of metres: so
noise, withholding, and some of each have prices that can be compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.crops import Crop
from trailveil.demands import Target
from trailveil.designing import estimated, only_withheld
from trailveil.errors import BeyondPrior, InvalidValue, NumericalError, Refused
from trailveil.gaussian import FloatArray
from trailveil.mechanism import Mechanism

# Seconds around a protected part that are tried.
_TRIED = (0.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0)
# The least seconds of withholding alone are found to so many.
_NEAR = 10.0
# Seconds that one fix stands for, at most: a gap costs nothing, there was nothing to release.
_LONGEST = 60.0

Withheld = Callable[[float], NDArray[np.bool_]]
"""Seconds -> the fixes within so many of any protected part (n,)."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one way of meeting a target costs.

    kind: noise, withholding or both. seconds: withheld around each protected part, or None.
    withheld: minutes that are not released. moved: minutes times metres by which the rest is moved,
    root mean square in the plane, over the exchange rate. total: the two together, in minutes.
    """

    kind: str
    seconds: float | None
    withheld: float
    moved: float

    @property
    def total(self) -> float:
        """Minutes withheld that are as bad."""
        return self.withheld + self.moved


def price(kind: str, seconds: float | None, mechanism: Mechanism, rate: float) -> Price:
    """The price of a mechanism; rate: metres that a minute may be moved by to be as bad as none."""
    minutes = _minutes(mechanism.times)
    released = np.asarray(mechanism.released)
    moved = np.sqrt(2 * mechanism.variances)
    silent = float(np.sum(minutes[~released]))
    return Price(kind, seconds, silent, float(np.sum((minutes * moved)[released])) / rate)


def cheapest(
    found: Sequence[Crop], base: Mechanism, target: Target, withheld: Withheld, rate: float
) -> tuple[Price, ...]:
    """The prices of noise alone, withholding alone, and both, as far as each can be had.

    That of both is the least of all that were tried; noise is estimated within some percent. Raises
    Refused where there is no way.
    """
    prices = _noise(found, base, target, rate)
    both: list[Price] = []
    for seconds in _TRIED:
        left = base.withholding(withheld(seconds))
        if left.rows.size < 2 or (both and _silent(left) > min(one.total for one in both)):
            break
        try:
            made = estimated(found, left, target)
        except BeyondPrior:
            raise
        except (Refused, NumericalError, InvalidValue):
            continue
        both.append(price("both", seconds, made, rate))
        if made.noise_trace == 0.0:
            break
    alone = _alone(found, base, target, withheld)
    prices += (
        [price("withholding", alone, base.withholding(withheld(alone)), rate)]
        if alone is not None
        else []
    )
    prices += sorted(both, key=lambda one: one.total)[:1]
    if not prices:
        raise Refused("no noise and no withholding meets the target: ask for less")
    return tuple(prices)


def _noise(found: Sequence[Crop], base: Mechanism, target: Target, rate: float) -> list[Price]:
    try:
        return [price("noise", None, estimated(found, base, target), rate)]
    except BeyondPrior:
        raise
    except (Refused, NumericalError):
        return []


def _alone(
    found: Sequence[Crop], base: Mechanism, target: Target, withheld: Withheld
) -> float | None:
    """The least seconds at which nothing else is needed, or None."""

    def enough(seconds: float) -> bool:
        left = base.withholding(withheld(seconds))
        if left.rows.size < 2:
            return False
        try:
            only_withheld(found, left, target)
        except BeyondPrior:
            raise
        except Refused:
            return False
        return True

    low, high = 0.0, None
    for seconds in _TRIED:
        if enough(seconds):
            high = seconds
            break
        low = seconds
    if high is None:
        return None
    while high - low > _NEAR:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _silent(mechanism: Mechanism) -> float:
    return float(np.sum(_minutes(mechanism.times)[~np.asarray(mechanism.released)]))


def _minutes(times: FloatArray) -> FloatArray:
    """The minutes that each fix stands for (n,)."""
    gaps = np.minimum(np.diff(times), _LONGEST)
    return np.asarray((np.append(gaps, 0.0) + np.append(0.0, gaps)) / 120.0)
