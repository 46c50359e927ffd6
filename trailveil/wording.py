"""Numbers as people read them, and the refusal of those that are out of bounds."""

from decimal import Decimal
from math import copysign, inf, isfinite

from trailveil.errors import InvalidValue

_LARGEST, _SMALLEST = 1e15, 1e-9


def said(number: float, digits: int = 6) -> str:
    """A number to so many significant digits, without an exponent: 1,330 and 0.00002.

    Beyond 1e15, and below 1e-9, nobody counts zeros: there it has one.
    """
    try:
        text = f"{number:.{digits}g}"
    except OverflowError:  # a whole number that is no float
        text = f"{copysign(inf, number > 0 or -1)}"
        number = inf
    plain = isfinite(number) and (not number or _SMALLEST <= abs(number) < _LARGEST)
    return f"{Decimal(text):,f}" if plain else text


def number_between(name: str, number: float, least: float, most: float) -> float:
    """A number above the least and below the most that it may be. Raises InvalidValue."""
    if not least < number < most:  # as it is: one of 400 digits is no float
        raise InvalidValue(
            f"{name} must be a number above {said(least)} and below {said(most)}, got "
            f"{said(number)}"
        )
    return float(number)
