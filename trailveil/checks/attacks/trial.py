"""Trying an attack many times: how near it comes, how sure that is, and whether that was promised.

A promise is a deviation that somebody is left with, over recordings as their prior has them and
over the noise. Whatever an attack does, then, its estimate is within c deviations of the truth with
probability 1 - exp(-c^2 / 2) at most (Anderson (1955), Proc. AMS 6: no estimate is better than the
middle of what is left). An attack that is there more often has beaten the promise.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import bdtr, bdtrc

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import CIRCLE_68

# An attack is looked for within so many promised deviations of the truth.
_WITHIN = (0.1, 0.25, 0.5, 1.0, CIRCLE_68)
LEVEL = 1e-4
"""The chance, of each attack and part, of a false alarm on simulated recordings."""

# Of the interval around the circle that is found.
_CONFIDENCE = 0.95


class Verdict(StrEnum):
    """What became of a promise."""

    HOLDS = "holds"
    BEATEN = "BEATEN"
    CLOSER = "CLOSER than promised on this recording"
    NOT_PROMISED = "not promised"
    NOTHING = "nothing to go by"


@dataclass(frozen=True, slots=True)
class Circle68:
    """The circle around the truth that holds 68 % of the estimates of an attack: its radius.

    low, high: metres, a 95 % interval for it that assumes nothing of how errors are distributed.
    count: independent estimates.
    """

    radius: float
    low: float
    high: float
    count: int


def circle_68(errors: FloatArray) -> Circle68:
    """The circle of independent errors (count,) in metres."""
    ordered, count = np.sort(errors), errors.size
    outside = (1 - _CONFIDENCE) / 2
    inside = bdtr(np.arange(count + 1), count, 0.68)
    low = int(np.searchsorted(inside, outside)) - 1
    high = int(np.searchsorted(inside, 1 - outside))
    return Circle68(
        float(np.quantile(ordered, 0.68)),
        float(ordered[low]) if low >= 0 else 0.0,
        float(ordered[high]) if high < count else np.inf,
        count,
    )


def beaten(errors: FloatArray, deviation: float) -> bool:
    """Whether independent errors (count,) are too often too near for a promised deviation.

    Metres both, the deviation per coordinate. False alarms: LEVEL at most.
    """
    for share in _WITHIN:
        near = int(np.sum(errors <= share * deviation))
        chance = -np.expm1(-(share**2) / 2)
        if near and bdtrc(near - 1, errors.size, chance) < LEVEL / len(_WITHIN):
            return True
    return False


def easier(errors: FloatArray, simulated: FloatArray) -> float:
    """The chance that a recording drawn from the prior is as easy as this one, or easier.

    errors: (draws,) on this recording. simulated: (count, draws) on recordings that were drawn. The
    root mean square over the draws is compared; it is at least 1 / (count + 1).
    """
    squared = float(np.mean(errors**2))
    below = int(np.sum(np.mean(simulated**2, axis=1) <= squared))
    return float((1 + below) / (len(simulated) + 1))
