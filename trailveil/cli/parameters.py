"""Kinds of numbers that options take."""

from collections.abc import Callable
from math import isfinite
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from trailveil.formats import MOST_POINTS

F = TypeVar("F", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A number within bounds that is one: not nan, which passes any comparison, and not inf."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; wrong usage where it is not finite."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
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
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise click.BadParameter(
            f"must be a time zone such as Europe/Berlin or UTC, got {name!r}", context, option
        ) from error


def most_option(function: F) -> F:
    """`--max-points`, as `most`, for a command that reads recordings."""
    return click.option(
        "--max-points",
        "most",
        type=click.IntRange(min=1, max=10**9),
        default=MOST_POINTS,
        show_default=True,
        metavar="N",
        help="Refuse a file with more fixes: it takes some 400 bytes of memory for each.",
    )(function)


POSITIVE = FiniteRange(min=0, min_open=True)
NOT_NEGATIVE = FiniteRange(min=0)
ABOVE_ONE = FiniteRange(min=1, min_open=True)
