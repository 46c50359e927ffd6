"""What the original says: its names, texts and numbers, to tell what a stray token comes from.

A number of the release is known where the original has it to the precision that it is written
with, cut off or rounded: 12.50 is 12.5, and 46.1235 is 46.123456. Coordinates are also known as
whole numbers (1e-7 or 1e-6 degree, semicircles) and with decimal commas. Numbers of less than three
digits, and coordinates of less than four decimals, prove nothing: so many match by chance.
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.scan.tokens import NAME, Place
from trailveil.traces.formats.moments import Moment, parse_moment

_NUMBER: Final = re.compile(r"[+-]?\d{1,30}(?:[.,]\d{1,30})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_MOST_TEXTS = 1_000_000  # distinct ones; what comes after is not told apart from what is unknown
_CHUNK = 1_000_000
_LONGEST = 200
_SHORT = 32
_DIGITS, _DECIMALS = 3, 4
_SCALES: Final = ((10_000_000, 1e7), (1_000_000, 1e6), (1_000_000, 2**31 / 180))
"""Whole numbers from so many on, and how many of them make a degree."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text: its value, a unit of its last digit, and its digits without zeros."""

    value: float
    unit: float
    digits: int

    def degrees(self) -> Iterator[tuple[float, float]]:
        """What coordinates it could be, each with its unit; none where it is too coarse to tell."""
        if self.unit <= 10.0**-_DECIMALS:
            yield self.value, self.unit
        elif self.unit == 1:
            for least, per_degree in _SCALES:
                if abs(self.value) >= least:
                    yield self.value / per_degree, 1 / per_degree


def numbers(text: str) -> tuple[Number, ...]:
    """The numbers in a text; a time has none."""
    return _numbers_of_short(text) if len(text) <= _SHORT else tuple(_numbers(text))


@lru_cache(maxsize=100_000)  # heart rates and the like come again and again
def _numbers_of_short(text: str) -> tuple[Number, ...]:
    return tuple(_numbers(text))


def _numbers(text: str) -> Iterator[Number]:
    if ":" in text and isinstance(parse_moment(text[:100]), Moment):
        return
    for match in _NUMBER.findall(text):
        exact = Decimal(match.replace(",", "."))
        _, digits, exponent = exact.as_tuple()
        if isinstance(exponent, int):
            shorter = len("".join(map(str, digits)).strip("0"))
            yield Number(float(exact), 10.0 ** min(exponent, 0), shorter)


class Tokens:
    """Collects the tokens of an original, as an `Emit`, and then tells which of them it has."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._texts: set[str] = set()
        self._pending = array("d")
        self._numbers: NDArray[np.float64] = np.empty(0)

    def __call__(self, place: Place, text: str, part: str, count: int = 1) -> None:
        """A token of the original."""
        short = text.strip().casefold()[:_LONGEST]
        if part == NAME:
            if len(self.names) < _MOST_TEXTS:
                self.names.add(short.rpartition(":")[2])
            return
        self._pending.extend(number.value for number in numbers(text))
        if len(self._pending) > _CHUNK:
            self._merge()
        if len(self._texts) < _MOST_TEXTS and _WORD.search(short):
            self._texts |= {short, *_WORD.findall(short)}

    def has_text(self, text: str) -> bool:
        """Whether the original has the text, or a word of it, in any case."""
        short = text.strip().casefold()[:_LONGEST]
        return short in self._texts or any(
            word in self._texts for word in _WORD.findall(short) if len(word) > 3
        )

    def has_number(self, number: Number, *, named: bool) -> bool:
        """Whether the original has a number. named: its name is known, so a short one counts."""
        self._merge()
        short = number.digits < _DIGITS
        return (named or not short) and _near(
            self._numbers, number.value, 0.0 if short else number.unit
        )

    def _merge(self) -> None:
        if self._pending:
            self._numbers = np.union1d(self._numbers, np.array(self._pending))
            self._pending = array("d")


class Coordinates:
    """Tells which numbers are coordinates of some fixes: positions (n, 2) in degrees."""

    def __init__(self, positions: NDArray[np.float64]) -> None:
        self._ordered = positions[np.argsort(positions[:, 0], kind="stable")]
        self._latitudes = self._ordered[:, 0]
        self._longitudes = np.sort(positions[:, 1])

    def has_one(self, number: Number) -> bool:
        """Whether a number is a latitude or a longitude of any of them."""
        return any(
            _near(axis, degrees, unit)
            for degrees, unit in number.degrees()
            for axis in (self._latitudes, self._longitudes)
        )

    def has_pair(self, first: Number, second: Number) -> bool:
        """Whether two numbers are latitude and longitude of one of them, in either order."""
        return self._pair(first, second) or self._pair(second, first)

    def _pair(self, latitude: Number, longitude: Number) -> bool:
        for degrees, unit in latitude.degrees():
            begin, end = np.searchsorted(self._latitudes, _around(degrees, unit))
            longitudes = self._ordered[begin:end, 1]
            if any(_near(np.sort(longitudes), east, per) for east, per in longitude.degrees()):
                return True
        return False


def _near(ordered: NDArray[np.float64], value: float, unit: float) -> bool:
    """Whether a sorted array has a value that is written so, cut off or rounded."""
    begin, end = np.searchsorted(ordered, _around(value, unit))
    return bool(begin < end)


def _around(value: float, unit: float) -> tuple[float, float]:
    """Less than a unit to both sides, with room for rounding in binary."""
    reach = unit * (1 - 1e-6) + 1e-12 * abs(value)
    return value - reach, value + reach
