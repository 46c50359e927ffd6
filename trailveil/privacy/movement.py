"""What a false track costs under a prior of movement, and how well movement alone tells a place.

Movement is an integrated Ornstein-Uhlenbeck process with a flat level: its velocity has a standard
deviation s (speed) and a time constant tau. A false track phi that is at rest where it begins and
ends costs

    |phi|^2 = tau / (2 s^2) * integral of phi''^2 + phi'^2 / tau^2

(docs/paper.md, "Noise in continuous time"). Nothing is assumed of the movement inside a window: an
adversary may know all of it, the velocity at the edges included, but not where the window lies.
So phi keeps its slope of 0 at the edges, and the variances below are given that velocity.
"""

import math
from dataclasses import dataclass

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots


@dataclass(frozen=True, slots=True)
class Movement:
    """How a person moves outside a window. speed: m/s, time_constant: seconds.

    A bound for one speed holds for every mixture of movements that are nowhere slower, in the
    sense of 2 s^2 / tau, and each of which keeps to one time constant that is no shorter. It does
    not hold for a time constant that grows on the way: that may lose some 0.5 % more.
    """

    speed: float
    time_constant: float

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("speed", "time_constant"):
            value = getattr(self, name)
            if not 0 < value < 1e9:
                raise InvalidValue(f"{name} must be a number above 0, got {value:g}")

    def cost(self, knots: Knots) -> FloatArray:
        """|phi|^2 of one side, as a quadratic form of its coefficients (size, size), 1 / m^2."""
        _, slope, bend = knots.forms()
        tau = self.time_constant
        return tau / (2 * self.speed**2) * (bend + slope / tau**2)

    def wandered(self, seconds: float) -> float:
        """The variance (m^2) of a displacement in so many seconds, given the velocity before it."""
        gone = -math.expm1(-seconds / self.time_constant)
        unsure = (self.speed * self.time_constant) ** 2 * gone**3 / (2 - gone)
        return self.bridged(seconds) + unsure

    def bridged(self, seconds: float) -> float:
        """The same, given the velocities before and after it."""
        half = seconds / self.time_constant / 2
        return (2 * self.speed * self.time_constant) ** 2 * _less_tanh(half)


def _less_tanh(x: float) -> float:
    """x - tanh x, without cancellation: the continued fraction of tanh, x / (1 + part)."""
    if x > 1:
        return x - math.tanh(x)
    part = 0.0
    for odd in range(21, 1, -2):
        part = x**2 / (odd + part)
    return x * part / (1 + part)
