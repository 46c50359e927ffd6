"""Everything that Trailveil raises on purpose, in one family, and how messages say numbers.

    TrailveilError            the base: the command line catches this and nothing else
    |-- InvalidValue          an argument is outside what it may be (also a ValueError)
    |-- UnreadableInput       a file cannot be read as what it claims to be
    |-- UnwritableOutput      a file cannot be written, or must not be
    |   `-- NoRoom            the disk, or what the user may have of it, is full
    |-- Refused               going on could cost privacy, so nothing was done
    |   `-- BeyondPrior       somebody knows more already than they are to be left with
    |-- Unavailable           a valid request that this version or installation cannot serve
    `-- NumericalError        a computation whose result cannot be trusted, so none is given
        `-- TooCoarse         the columns that noise was sought in cannot hold any that is enough

Each message is one line: what must hold, what was found, where, and what to do next.
No message holds a recorded position, a key, or any other secret, but a time that was stated to
protect it: what is kept, or told of many recordings, is `public`, without that.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from math import copysign, inf, isfinite
from numbers import Real
from types import UnionType
from typing import TypeVar, cast

T = TypeVar("T")


class TrailveilError(Exception):
    """Base of all errors raised on purpose.

    public: the message without times, where it holds any.
    """

    def __init__(self, message: str, *, public: str | None = None) -> None:
        """State what is wrong."""
        super().__init__(message)
        self.public = message if public is None else public


class InvalidValue(TrailveilError, ValueError):
    """An argument is outside what it may be."""


class UnreadableInput(TrailveilError):
    """A file cannot be read as what it claims to be."""


class UnwritableOutput(TrailveilError):
    """A file cannot be written, or must not be."""


class NoRoom(UnwritableOutput):
    """The disk, or what the user may have of it, is full."""


class Refused(TrailveilError):
    """Going on could cost privacy, so nothing was done."""


class BeyondPrior(Refused):
    """An adversary cannot be left with so much: it knows more without any release.

    most: the least deviation that any of them knows the secret to, in the unit of the series.
    """

    def __init__(self, most: float) -> None:
        """State the most that can be had."""
        super().__init__(
            f"what an adversary is left with must be below the {most:.4g} that one knows a secret "
            "to without any release, got more: ask for less, or leave that adversary out"
        )
        self.most = most


class Unavailable(TrailveilError):
    """A valid request that this version or this installation cannot serve."""


def installing(extra: str) -> str:
    """The command that installs an extra, beside an installed package and in a clone of it."""
    return f"pip install 'trailveil[{extra}]' (in a clone: pip install '.[{extra}]')"


class NumericalError(TrailveilError):
    """A computation whose result cannot be trusted, so none is given."""


class TooCoarse(NumericalError):
    """The columns that noise was sought in cannot hold any that is enough."""


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
    check_number(name, number)
    if not least < number < most:  # as it is: one of 400 digits is no float
        raise InvalidValue(
            f"{name} must be a number above {said(least)} and below {said(most)}, got "
            f"{said(number)}"
        )
    return float(number)


def check_number(name: str, value: object) -> None:
    """Raise InvalidValue for what is no number, such as text."""
    if not isinstance(value, Real):
        raise InvalidValue(f"{name} must be a number, got {type(value).__name__}")


def check_kind(name: str, value: object, kind: type | UnionType, instead: str = "") -> None:
    """Raise InvalidValue for a value that is of another kind; what to say instead."""
    if not isinstance(value, kind):
        kinds = kind.__args__ if isinstance(kind, UnionType) else (kind,)
        known = " or ".join(part.__name__ for part in kinds)
        hint = f": {instead}" if instead else ""
        raise InvalidValue(f"{name} must be {known}, got {type(value).__name__}{hint}")


def each_of_kind(name: str, values: T | Iterable[T], kind: type[T]) -> tuple[T, ...]:
    """Some values of a kind; one alone is a list of one. Raises InvalidValue for others."""
    if isinstance(values, kind):
        return (values,)
    check_kind(name, values, Iterable, f"name each {kind.__name__} in it")
    several = tuple(cast(Iterable[T], values))
    for value in several:
        check_kind(f"each of {name}", value, kind)
    return several


# A command is left as it is; of an option: whether it is denied, its name, what it is set to.
_OPTION = re.compile(
    r"(?P<command>trailveil(?: [a-z]+)+(?: --[a-z-]+)+)"
    r"|--(?P<no>no-)?(?P<name>[a-z]+(?:-[a-z]+)*)"
    r"(?: (?P<number>\d[\d.]*)"
    r"| (?P<word>cut|noise|both|optimal|multiple-secrets|path|walk|run|ride|drive)\b"
    r"| (?P<open>[A-Z][A-Z_/,]*)\b| auto\b)?"
)
_ALONE = {"stops", "everywhere", "again", "replace", "overwrite"}
_ELSEWHERE = {
    "noise-std": "tv.kernels.White",
    "adversary": "adversaries",
    "max-points": "most",
    "assume-utc": "tz='UTC'",
}
# What the command line alone can do, and what is advised without it.
_COMMANDS = (("add --round-times 1, or choose GPX (-o)", "choose GPX"),)


def in_python(message: str) -> str:
    """A message with the options of the command line as arguments of Python."""

    def argument(option: "re.Match[str]") -> str:
        if option["command"]:
            return option[0]
        name = _ELSEWHERE.get(option["name"], option["name"].replace("-", "_"))
        if option["no"]:
            return f"{name}=False"
        if option["name"] in _ALONE:
            return f"{name}=True"
        value = option["number"] or (option["word"] and repr(option["word"])) or option["open"]
        return f"{name}={value}" if value else name

    for command, instead in _COMMANDS:
        message = message.replace(command, instead)
    return _OPTION.sub(argument, message)


@contextmanager
def python_errors() -> Iterator[None]:
    """Within, errors name arguments of Python in place of options of the command line."""
    try:
        yield
    except TrailveilError as error:
        error.args = (in_python(str(error)),)
        raise
