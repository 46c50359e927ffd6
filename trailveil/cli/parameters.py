"""Kinds of numbers that options take."""

from collections.abc import Callable
from math import isfinite
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click

from trailveil.errors import InvalidValue

F = TypeVar("F", bound=Callable[..., Any])

LARGEST = 1e30
"""The largest number that is taken, and its inverse the smallest above 0: their squares and fourth
powers can be reckoned with."""

LONGEST_NAME = 100
"""Characters that a name may have."""


class FiniteRange(click.FloatRange):
    """A number within bounds that is one: not nan, which passes any comparison, and not inf.

    Nor one so large, or so near to 0, that its square is infinite or nothing.
    """

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; wrong usage where it is not finite."""
        try:
            float(value)
        except ValueError:
            self.fail(f"must be a number, without a unit, got {value!r}.", param, ctx)
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        if number and not 1 / LARGEST <= abs(number) <= LARGEST:
            self.fail(f"{value} is not between {1 / LARGEST:g} and {LARGEST:g}.", param, ctx)
        return number


class OneOf(click.Choice):  # type: ignore[type-arg]  # takes an argument only from click 8.2 on
    """One of some words; a missing one is asked for in one line."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """What there is to choose from."""
        return f"Choose from {', '.join(self.choices)}."


def zone_named(
    context: click.Context, option: click.Parameter, name: str | None
) -> ZoneInfo | None:
    """The time zone of a name such as Europe/Berlin; wrong usage where there is none."""
    from trailveil.release.options import zone_named as zone_of_name  # few commands ask for it

    try:
        return zone_of_name(name)
    except InvalidValue as error:
        raise click.BadParameter(f"{error}", context, option) from error


def most_option(function: F) -> F:
    """`--max-points`, as `most`, for a command that reads recordings."""
    from trailveil.traces.formats import MOST_POINTS  # nor do others need to read any

    return click.option(
        "--max-points",
        "most",
        type=click.IntRange(min=1, max=10**9),
        default=MOST_POINTS,
        metavar="N",
        help="Refuse a file with more fixes: it takes some 500 bytes of memory for each.",
    )(function)


def printable(
    context: click.Context | None, option: click.Parameter | None, name: str | None
) -> str | None:
    """A name that can be printed on one line and kept as text; wrong usage where it cannot."""
    if name is not None and not (name.strip() and name.isprintable() and len(name) <= LONGEST_NAME):
        raise click.BadParameter(
            f"must be a name of up to {LONGEST_NAME} characters that can be printed",
            context,
            option,
        )
    return name


def person(
    context: click.Context | None, option: click.Parameter | None, name: str | None
) -> str | None:
    """The name of a person, in the one way that it is written; wrong usage for none."""
    from trailveil.ledger.identity import subject_named  # as above

    try:
        return None if name is None else subject_named(name)
    except InvalidValue as error:
        raise click.BadParameter(f"{error}", context, option) from error


POSITIVE = FiniteRange(min=0, min_open=True)
NOT_NEGATIVE = FiniteRange(min=0)
POINTS = click.IntRange(1, 1_000_000)
ABOVE_ONE = FiniteRange(min=1, min_open=True)
