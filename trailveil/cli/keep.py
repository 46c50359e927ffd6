"""`--keep FIELD` of `trailveil protect`: fields of fixes that leave unprotected."""

from collections.abc import Sequence

import click

from trailveil.errors import InvalidValue
from trailveil.fields import FIELDS, check_fields


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
    help=f"Release this as well, unprotected; may be repeated: {', '.join(FIELDS)}.",
)
