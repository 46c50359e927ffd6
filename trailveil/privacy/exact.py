"""Movement in exact arithmetic: what a false track costs, and how well movement tells a place.

It serves trailveil.privacy.checker and trailveil.privacy.promises, and needs the standard library
alone. Numbers that are no fractions, exponentials and the root of 3, are bounded on the side that
is safe (docs/paper.md, "Noise in continuous time"). A movement is stated by its speed and
time_constant where it is integrated Ornstein-Uhlenbeck; where it is a Matern process, by its
smoothness (twice that: 1 or 3), std, length_scale, levels (1 where the mean is not known, else 0)
and seconds (the longest window that is reckoned with).
"""

import decimal
from fractions import Fraction
from math import isqrt
from typing import Any

_DIGITS, _MORE = decimal.Context(prec=50), Fraction(1, 10**40)
# What the squares of phi, phi' and phi'' count, and the root of twice the smoothness: integrated
# Ornstein-Uhlenbeck, Matern 1/2 and Matern 3/2.
_COUNTS: tuple[tuple[Fraction | int, ...], ...] = (
    (0, 1, 1),
    (1, 1, 0),
    (Fraction(1, 2), 1, Fraction(1, 2)),
)
_ROOTS = (1, 1, Fraction(isqrt(3 * 10**80), 10**40))


class ExactMovement:
    """A movement as it is stated, around a window with 1 or 2 sides.

    A false track that is 1 on the window costs `inside` and, on each side, the integral of
    c0 phi^2 + c1 phi'^2 + c2 phi''^2, with `costs` for the c. convex: whether P is, of a place.
    known: 1 / P of an adversary who knows no place. Raises LookupError, TypeError or ValueError
    for what is none.
    """

    def __init__(self, stated: dict[str, Any], sides: int) -> None:
        smooth = stated.get("smoothness", 0)
        if smooth not in (0, 1, 3) or sides not in (1, 2):
            raise ValueError("smoothness must be 1 or 3, and sides 1 or 2")
        names = ("std", "length_scale", "levels", "seconds")
        numbers = (stated[name] for name in (names if smooth else ("speed", "time_constant")))
        size, tau, *more = map(Fraction, numbers)
        self._flat, seconds = more or (Fraction(1), Fraction(0))
        if min(size, tau) <= 0 or seconds < 0 or self._flat not in (0, 1):
            raise ValueError("sizes must be above 0, seconds 0 or more, levels 0 or 1")
        self._kind, self._sides, self.convex = (smooth + 1) // 2, sides, not smooth
        # The rate of the movement, 1 / s, from below and above; square metres that P is counted in.
        self._less = _ROOTS[self._kind] / tau
        self._rate, self._unit = self._less * (1 + _MORE), size**2 * (1 if smooth else tau**2)
        powers = zip(
            _COUNTS[self._kind], (self._rate, 1 / self._less, 1 / self._less**3), strict=True
        )
        self.costs = [count * power / (2 * self._unit) for count, power in powers]
        # A Matern shift costs in the window, too, and where the window begins a recording.
        self._begun = (2 - sides) / (2 * self._unit) if smooth else Fraction(0)
        self.inside = self.costs[0] * seconds + self._begun
        self.known = Fraction(0) if self._flat else 1 / self._unit

    def given_place(self, seconds: Fraction, accuracy: Fraction, *, above: bool = True) -> Fraction:
        """P (m^2), or a little more, given a place so many seconds away to an accuracy (m).

        above: or a little less. It grows with the seconds.
        """
        _, drift, apart = self._moved(seconds, above)
        error = accuracy**2 / self._unit
        if self._flat:
            return self._unit * (2 * apart - drift**2 + error)
        return self._unit * (1 - (1 - apart) ** 2 / (1 - drift**2 + error))

    def given_path(self, seconds: Fraction, *, above: bool = True) -> Fraction:
        """P (m^2), or a little more, given the path beyond so many seconds on every side."""
        fade, drift, apart = self._moved(seconds, above)
        if self._kind:
            both = ((1 - fade**2) ** 2 - 4 * drift**2) / (1 - fade**4 + 4 * drift * fade)
        else:
            both = apart - drift**2 / (1 + fade)
        if both <= 0:
            return Fraction(0)
        return 1 / (self._sides / (2 * self._unit * both) + self._begun)

    def _moved(self, seconds: Fraction, above: bool) -> tuple[Fraction, Fraction, Fraction]:
        """What fades, the covariance with the velocity, and half of a displacement's variance.

        So that P, which grows with the rate, is a little more, or less. With what fades it grows
        where movement is integrated; else it falls.
        """
        if seconds <= 0:
            raise ValueError("seconds must be above 0")
        ahead = seconds * (self._rate if above else self._less)
        exact = _DIGITS.exp(_DIGITS.divide(*map(decimal.Decimal, (-ahead).as_integer_ratio())))
        more = above == (self._kind == 0)
        fade = max(Fraction(exact) + (_MORE if more else -_MORE), Fraction(0))
        drift = (1 - fade, Fraction(0), ahead * fade)[self._kind]
        return fade, drift, (ahead if self._kind == 0 else 1 - fade) - drift
