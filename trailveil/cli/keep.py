"""`--keep FIELD` of `trailveil protect`: fields of fixes that leave unprotected."""

from collections.abc import Sequence
from pathlib import Path

import click

from trailveil.errors import InvalidValue, UnwritableOutput
from trailveil.files.source import named
from trailveil.traces.fields import ALL, KEEPABLE, NAME, check_fields
from trailveil.traces.formats.table import format_to_write

EVERY = "all"
"""All but names, as far as the output has a place for it."""

_ALL_ASKED = "trailveil.keep.all"


def fields_named(
    context: click.Context, option: click.Parameter, names: Sequence[str]
) -> tuple[str, ...]:
    """The fields of these names, or all; wrong usage for one that there is not.

    Raises Refused for what is never released.
    """
    context.meta[_ALL_ASKED] = EVERY in names
    stated = [name for name in names if name != EVERY]
    try:
        return check_fields([*ALL, *stated] if EVERY in names else stated)
    except InvalidValue as error:
        raise click.BadParameter(f"{error}", context, option) from error


keep_option = click.option(
    "--keep",
    metavar="FIELD",
    multiple=True,
    callback=fields_named,
    help=f"Release this as well, unprotected; may be repeated: all, {', '.join(KEEPABLE)}.",
)


def check_keep(output: Path, keep: Sequence[str]) -> tuple[str, ...]:
    """What is kept in a format; refused before any work is done where it has no place for it.

    Of all fields, those that it has a place for.
    """
    row = format_to_write(output.suffix)
    held = tuple(name for name in keep if name == NAME or name in row.fields)
    missing = [name for name in keep if name not in held]
    if missing and not click.get_current_context().meta.get(_ALL_ASKED):
        raise UnwritableOutput(
            f"the output must have a place for {missing[0]}, got {row.name}, which has none: "
            f"{named(output)}; choose GPX, GeoJSON or CSV (-o), or leave --keep {missing[0]} out"
        )
    if NAME in keep and not row.names:
        raise UnwritableOutput(
            "the output must be GPX, KML, KMZ or GeoJSON to hold the name of a track, got "
            f"{named(output)}: choose such a format (-o, or --suffix of a batch), or leave --keep "
            "name out"
        )
    return held
