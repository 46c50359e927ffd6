"""`--keep FIELD` of `trailveil protect`: fields of fixes that leave unprotected."""

from collections.abc import Sequence
from pathlib import Path

import click

from trailveil.errors import InvalidValue, UnwritableOutput
from trailveil.fields import KEEPABLE, NAME, check_fields
from trailveil.formats.source import named
from trailveil.formats.table import format_to_write


def fields_named(
    context: click.Context, option: click.Parameter, names: Sequence[str]
) -> tuple[str, ...]:
    """The fields of these names; wrong usage for one that there is not.

    Raises Refused for what is never released.
    """
    try:
        return check_fields(names)
    except InvalidValue as error:
        raise click.BadParameter(f"{error}", context, option) from error


keep_option = click.option(
    "--keep",
    metavar="FIELD",
    multiple=True,
    callback=fields_named,
    help=f"Release this as well, unprotected; may be repeated: {', '.join(KEEPABLE)}.",
)


def check_keep(output: Path, keep: Sequence[str]) -> None:
    """Refuse a format that has no place for what is kept, before any work is done."""
    if NAME in keep and not format_to_write(output.suffix).names:
        raise UnwritableOutput(
            "the output must be GPX, KML, KMZ or GeoJSON to hold the name of a track, got "
            f"{named(output)}: choose such a format (-o, or --suffix of a batch), or leave --keep "
            "name out"
        )
