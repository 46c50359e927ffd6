"""What to protect, as the command line states it."""

from collections.abc import Callable
from typing import Any

import click

from trailveil.cli.parameters import POSITIVE
from trailveil.traces.selection import Chosen
from trailveil.traces.stops import LASTS, WITHIN
from trailveil.traces.visits import circle

SELECTING = ("at", "between", "near", "stops")
"""The options that state what to protect besides both ends; they add up."""

_OPTIONS = (
    click.option("--at", "at", multiple=True, metavar="TIME", help="Protected: this time's place."),
    click.option("--between", nargs=2, multiple=True, metavar="T1 T2", help="Protected: a stay."),
    click.option(
        "--near", multiple=True, metavar="LAT,LON,METRES", help="Protected: every visit to it."
    ),
    click.option(
        "--stops", type=click.Choice(["auto"]), help="Protected: every stay that is found."
    ),
    click.option(
        "--stops-within", type=POSITIVE, metavar="METRES", help="Size of a found stay (100)."
    ),
    click.option(
        "--stops-for", type=POSITIVE, metavar="SECONDS", help="Length of a found stay (300)."
    ),
    click.option("--no-ends", is_flag=True, help="Leave both ends as recorded, unless stated."),
    click.option(
        "--no-returns", is_flag=True, help="Leave other visits to protected places as recorded."
    ),
    click.option("--everywhere", is_flag=True, help="Protected: every place, at any time."),
)


def selecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that state what is protected."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


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
        not options["no_returns"],
        not options["no_ends"],
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
            further = [error.option_name]  # a number below 0
        if further and not ctx.resilient_parsing:
            raise click.UsageError(
                "each argument must be one word, got further ones: write LAT,LON,METRES without "
                "spaces, and quote names that have any",
                ctx,
            )
        return further
