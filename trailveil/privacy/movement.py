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
from trailveil.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots


@dataclass(frozen=True, slots=True)
class Movement:
    """How a person moves outside a window. speed: m/s, time_constant: seconds.

    A bound for one speed holds for every mixture of movements that are nowhere slower, in the
    sense of 2 s^2 / tau, and whose time constants are no shorter.
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
        tau, gone = self.time_constant, -math.expm1(-seconds / self.time_constant)
        return self.speed**2 * (2 * tau * (seconds - tau * gone) - (tau * gone) ** 2)

    def bridged(self, seconds: float) -> float:
        """The same, given the velocities before and after it."""
        tau, gone = self.time_constant, -math.expm1(-seconds / self.time_constant)
        told = 2 * (tau * gone) ** 2 / (2 - gone)
        return self.speed**2 * (2 * tau * (seconds - tau * gone) - told)
