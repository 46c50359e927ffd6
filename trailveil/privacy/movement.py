"""What a false track costs under a prior of movement, and how well movement alone tells a place.

A movement is a linear stochastic differential equation with steady coefficients. A false track phi
that is at rest where it begins and ends costs

    |phi|^2 = integral of c0 phi^2 + c1 phi'^2 + c2 phi''^2

(docs/paper.md, "Noise in continuous time"). Integrated Ornstein-Uhlenbeck motion has a flat level,
so c0 is 0: `Movement`. Matern movements return to a mean: `Matern`. An adversary may know all of
the movement inside a window, the velocity at the edges included, but not where the window lies.
So phi keeps its slope of 0 at the edges, and the variances below are given that velocity.

The least cut is how long nothing must be released around a window, while all else is exact. An
adversary who has all of it, and a map that turns it into the true path, knows place and velocity on
either side of the cut: what is left of the window's place is what movement alone leaves of it.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import IntegratedOU, Kernel, Matern12, Matern32
from trailveil.privacy.false_tracks import Knots

LONGEST_CUT = 86_400
"""Seconds: no cut is longer on a side."""


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

    def coefficients(self) -> tuple[float, float, float]:
        """c0, c1 and c2 of the cost, in 1 / (m^2 s), s / m^2 and s^3 / m^2."""
        unit = 2 * self.speed**2
        return 0.0, 1 / (unit * self.time_constant), self.time_constant / unit

    def at_end(self) -> FloatArray:
        """What value and slope outward cost where a recording ends, or begins, as a form (2, 2)."""
        return np.diag([0.0, 1 / (2 * self.speed**2)])

    @property
    def alone(self) -> float:
        """The variance (m^2) of a place of which nothing is known: the level is flat."""
        return math.inf

    @property
    def spread(self) -> float:
        """The variance (m^2) of a place about the level: it grows without end."""
        return math.inf

    def inside(self, seconds: float, sides: int) -> float:
        """What a shift by 1 m within a window costs: nothing."""
        return 0.0

    def given_place(self, seconds: float, accuracy: float) -> float:
        """P (m^2) of a place, given another so many seconds away to an accuracy (m)."""
        return self.wandered(seconds) + accuracy**2

    def given_path(self, seconds: float, sides: int) -> float:
        """P (m^2) of a place, given the path beyond so many seconds on 1 or 2 sides."""
        return self.bridged(seconds) / sides

    def wandered(self, seconds: float) -> float:
        """The variance (m^2) of a displacement in so many seconds, given the velocity before it."""
        gone = -math.expm1(-seconds / self.time_constant)
        unsure = (self.speed * self.time_constant) ** 2 * gone**3 / (2 - gone)
        return self.bridged(seconds) + unsure

    def bridged(self, seconds: float) -> float:
        """The same, given the velocities before and after it."""
        half = seconds / self.time_constant / 2
        return (2 * self.speed * self.time_constant) ** 2 * _less_tanh(half)


@dataclass(frozen=True, slots=True)
class Matern:
    """Movement that returns to a mean: a Matern process of smoothness 1/2 or 3/2.

    smoothness: twice that, 1 or 3. std: metres. length_scale: seconds. levels: 0 where adversaries
    know the mean, 1 where they do not. With 1, a bound holds for a mean that is known to any
    extent; of a path, the mean is known with it.
    """

    smoothness: int
    std: float
    length_scale: float
    levels: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.smoothness not in (1, 3) or self.levels not in (0, 1):
            raise InvalidValue(f"smoothness must be 1 or 3 and levels 0 or 1, got {self}")
        for name in ("std", "length_scale"):
            value = getattr(self, name)
            if not 0 < value < 1e9:
                raise InvalidValue(f"{name} must be a number above 0, got {value:g}")

    @property
    def rate(self) -> float:
        """How fast it returns to the mean, 1 / s."""
        return math.sqrt(self.smoothness) / self.length_scale

    @property
    def alone(self) -> float:
        """The variance (m^2) of a place of which nothing is known."""
        return math.inf if self.levels else self.spread

    @property
    def spread(self) -> float:
        """The variance (m^2) of a place about the mean."""
        return self.std**2

    def coefficients(self) -> tuple[float, float, float]:
        """c0, c1 and c2 of the cost, in 1 / (m^2 s), s / m^2 and s^3 / m^2."""
        rate, unit = self.rate, 2 * self.spread
        if self.smoothness == 1:
            return rate / unit, 1 / (rate * unit), 0.0
        return rate / (2 * unit), 1 / (rate * unit), 1 / (2 * rate**3 * unit)

    def at_end(self) -> FloatArray:
        """What value and slope outward cost where a recording ends, or begins, as a form (2, 2)."""
        if self.smoothness == 1:
            return np.diag([1 / (2 * self.spread), 0.0])
        both = np.array([[1.0, 0.5 / self.rate], [0.5 / self.rate, self.rate**-2]])
        return both / (2 * self.spread)

    def cost(self, knots: Knots) -> FloatArray:
        """|phi|^2 of one side, as a quadratic form of its coefficients (size, size), 1 / m^2."""
        parts = zip(self.coefficients(), knots.forms(), strict=True)
        return np.asarray(sum(c * form for c, form in parts))

    def inside(self, seconds: float, sides: int) -> float:
        """What a shift by 1 m within a window costs, 1 / m^2: one that is far off is unlikely."""
        return self.coefficients()[0] * seconds + (2 - sides) / (2 * self.spread)

    def given_place(self, seconds: float, accuracy: float) -> float:
        """P (m^2) of a place, given another so many seconds away to an accuracy (m)."""
        ahead = self.rate * seconds
        fade, drift = math.exp(-ahead), 0.0
        less = -math.expm1(-ahead)
        if self.smoothness == 3:
            drift = ahead * fade
            less -= drift
        # Of unit variance: less is 1 - k, k the correlation of the places, and drift that of the
        # other place with the velocity.
        error = (accuracy / self.std) ** 2
        if self.levels:
            return self.spread * (2 * less - drift**2 + error)
        unsure = less * (2 - less) - drift**2
        return self.spread * (unsure + error) / (1 - drift**2 + error)

    def given_path(self, seconds: float, sides: int) -> float:
        """P (m^2) of a place, given the path beyond so many seconds on 1 or 2 sides, and the mean.

        By its precision: that of both sides, or half of it and half of the mean's.
        """
        ahead = self.rate * seconds
        both = math.tanh(ahead) if self.smoothness == 1 else _bridge(ahead)
        return self.spread / (sides / (2 * both) + (2 - sides) / 2)


def slowest_of(movements: Sequence[Movement]) -> Movement:
    """The movement under which every false track costs at least as much as under any of some."""
    slope, bend = (max(each.coefficients()[i] for each in movements) for i in (1, 2))
    return Movement((4 * slope * bend) ** -0.25, math.sqrt(bend / slope))


def movement_of(kernel: Kernel) -> Movement | Matern:
    """The movement of a prior of noise for a track; Refused where it is another."""
    terms = kernel.terms()
    level = sum(term.level_variance() for term in terms)
    moving = [term for term in terms if not (term.is_white() or term.level_variance())]
    match moving:
        case [IntegratedOU(std=std, time_constant=tau)] if level:
            return Movement(std, tau)
        case [Matern12(std=std, length_scale=length)]:
            return Matern(1, std, length, int(level > 0))
        case [Matern32(std=std, length_scale=length)]:
            return Matern(3, std, length, int(level > 0))
    raise Refused(
        "the prior of noise for a track must be one integrated-ou with a level, or one matern12 or "
        "matern32, got another: its proof knows no other movement; fit such a prior (trailveil "
        "fit), or use --mechanism cut, which assumes a pace and no prior"
    )


@lru_cache(maxsize=1024)  # most parts of most recordings ask for the same few
def least_cut(floor: Movement, variance: float, sides: int) -> float:
    """Whole seconds outward from a window within which nothing may be released.

    floor: at least how fast the person moves there. variance: square metres per coordinate that
    must be left of the window's place. sides: how many the recording goes on beyond, 1 or 2.
    Raises Refused for a cut of more than a day.
    """
    if floor.bridged(LONGEST_CUT) / sides < variance:
        raise Refused(
            "a cut must be shorter than a day on each side, got a longer one: ask for a smaller "
            "radius, a larger epsilon, or a faster --activity or --floor"
        )
    whole = range(1, LONGEST_CUT + 1)
    return float(whole[bisect_left(whole, variance, key=lambda h: floor.bridged(h) / sides)])


def _bridge(z: float) -> float:
    """(sinh^2 z - z^2) / (sinh z cosh z + z), without cancellation or overflow."""
    if z > 1:
        fade = math.exp(-2 * z)
        return ((1 - fade) ** 2 - 4 * z**2 * fade) / (1 - fade**2 + 4 * z * fade)
    # sinh z - z by its series: the factor of the numerator that cancels.
    term, less = z, 0.0
    for k in range(1, 12):
        term *= z**2 / (2 * k * (2 * k + 1))
        less += term
    sinh = math.sinh(z)
    return less * (sinh + z) / (sinh * math.cosh(z) + z)


def _less_tanh(x: float) -> float:
    """x - tanh x, without cancellation: the continued fraction of tanh, x / (1 + part)."""
    if x > 1:
        return x - math.tanh(x)
    part = 0.0
    for odd in range(21, 1, -2):
        part = x**2 / (odd + part)
    return x * part / (1 + part)
