"""What to protect, as the command line states it."""

from typing import Any

import click

from trailveil.protecting import Chosen
from trailveil.visits import circle

SELECTING = ("at", "between", "near", "stops")
"""The options that state what to protect; they add up."""


def selected(options: dict[str, Any]) -> Chosen:
    """What was chosen. Raises InvalidValue for a place that cannot be read, without the place."""
    return Chosen(
        tuple(options["at"]),
        tuple(options["between"]),
        options["zone"],
        tuple(circle(text) for text in options["near"]),
        options["stops"] is not None,
    )


def refuse_further_arguments(context: click.Context) -> None:
    """Wrong usage, without the arguments: of a place with spaces in it they would be a part."""
    if context.args:
        raise click.UsageError(
            "IN must be one file, got further arguments: write LAT,LON,METRES without spaces, and "
            "quote names that have any"
        )
