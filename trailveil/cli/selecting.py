"""What to protect, as the command line states it."""

from typing import Any

import click

from trailveil.protecting import Chosen
from trailveil.stops import LASTS, WITHIN
from trailveil.visits import circle

SELECTING = ("at", "between", "near", "stops")
"""The options that state what to protect; they add up."""


def selected(options: dict[str, Any]) -> Chosen:
    """What was chosen. Raises InvalidValue for a place that cannot be read, without the place."""
    size = {name: options[name] for name in ("stops_within", "stops_for")}
    stops = (size["stops_within"] or WITHIN, size["stops_for"] or LASTS)
    if options["stops"] is None and any(size.values()):
        raise click.UsageError("--stops-within and --stops-for must come with --stops auto")
    return Chosen(
        tuple(options["at"]),
        tuple(options["between"]),
        options["zone"],
        tuple(circle(text) for text in options["near"]),
        None if options["stops"] is None else stops,
    )


class WithPlaces(click.Command):
    """A command that takes places, and repeats no part of one that was written with spaces."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as ever; wrong usage, without what they are, for arguments that are too many."""
        try:
            further = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.option_name[1:2].isdigit():
                raise
            further = args  # a number below 0
        if further and not ctx.resilient_parsing:
            raise click.UsageError(
                "IN must be one file, got further arguments: write LAT,LON,METRES without spaces, "
                "and quote names that have any",
                ctx,
            )
        return further
