"""Options that commands share which release recordings: how they are read, and how counted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from trailveil.cli.keep import keep_option
from trailveil.cli.parameters import POSITIVE, most_option, person, zone_named
from trailveil.ledger.identity import ME
from trailveil.traces.formats.table import check_untimed
from trailveil.traces.retiming import Retiming

_READING = (
    click.option(
        "--tz",
        "zone",
        metavar="ZONE",
        callback=zone_named,
        help="Zone of clock times, and of times without one.",
    ),
    click.option(
        "--every",
        type=POSITIVE,
        metavar="SECONDS",
        help="The fixes have no times: they are this far apart.",
    ),
    most_option,
    click.option("--assume-utc", is_flag=True, help="Read times without a zone as UTC."),
    click.option(
        "--round-times",
        "step",
        type=POSITIVE,
        metavar="SECONDS",
        help="Release times rounded to multiples of this.",
    ),
    click.option(
        "--drop-times", "drop", is_flag=True, help="Release no times: only the order of fixes."
    ),
    click.option("--shift-times", "shift", is_flag=True, help="Release times that begin in 2000."),
)
_COUNTING = (
    click.option(
        "--key",
        type=click.Path(path_type=Path),
        help="Of trailveil key new: makes the release the same wherever it is made.",
    ),
    click.option(
        "--subject",
        default=ME,
        show_default=True,
        callback=person,
        metavar="NAME",
        help="Whose recording it is: releases of one person are counted together.",
    ),
    click.option(
        "--total-epsilon",
        "limit",
        type=POSITIVE,
        metavar="EPSILON",
        help="Refuse a release that makes more, with all before it, of any one place or time.",
    ),
    keep_option,
)


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how a recording is read, and what becomes of its times."""
    for option in reversed(_READING):
        command = option(command)
    return command


def counting(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say under which key, of whom, and how far a release is counted."""
    for option in reversed(_COUNTING):
        command = option(command)
    return command


def retiming_of(options: dict[str, Any], output: Path | None) -> Retiming:
    """What becomes of times. output: the file that is written, where there is one.

    Raises UnwritableOutput for a format that cannot do without them, and wrong usage for cut and
    noise together, of which `audit` could not tell which fix is which.
    """
    retiming = Retiming(options["step"], options["shift"], options["drop"])
    if retiming.drop and (
        options["mechanism"] == "both" or (options["mechanism"] == "noise" and options["withhold"])
    ):
        raise click.UsageError(
            "--drop-times must come with --mechanism cut, or noise that cuts nothing"
        )
    if retiming.drop and output is not None:
        check_untimed(output.suffix)
    return retiming


def naive_zone(options: dict[str, Any]) -> ZoneInfo | None:
    """The zone for times that have none: --assume-utc says UTC whatever --tz is for clock times."""
    return None if options["assume_utc"] else options["zone"]
