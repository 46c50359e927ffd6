"""The options that commands share: what to protect, how, how a file is read, how it is counted."""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import click
from click.core import ParameterSource

from trailveil.cli.parameters import (
    ABOVE_ONE,
    POSITIVE,
    FiniteRange,
    most_option,
    person,
    zone_named,
)
from trailveil.errors import InvalidValue, UnwritableOutput
from trailveil.files.source import named
from trailveil.ledger.identity import ME
from trailveil.release.options import OF_NOISE, Options, Selection, request_of
from trailveil.release.request import NOISE_AGAINST, Method, Request
from trailveil.traces.activities import ACTIVITIES
from trailveil.traces.fields import ALL, KEEPABLE, NAME, check_fields
from trailveil.traces.formats.table import check_untimed, format_to_write
from trailveil.traces.retiming import Retiming
from trailveil.traces.selection import Chosen
from trailveil.traces.stops import LASTS, WITHIN
from trailveil.traces.visits import circle

SELECTING = ("at", "between", "near", "stops")
"""The options that state what to protect besides both ends; they add up."""

STATED = "trailveil.versions"
"""Where a context has the versions that were stated, by name, with the options of each."""

AUTO = "auto"
_SAME = {*Options.__annotations__} - {*Selection.__annotations__}
_SAME -= {"adversaries", "steady", "longest_stay"}


def options_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator that gives a command these options, in this order."""

    def decorated(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


requesting = options_of(
    click.option("--radius", type=POSITIVE, default=100.0, help="Metres."),
    click.option("--epsilon", type=POSITIVE, default=1.0, help="Privacy loss."),
    click.option("--order", type=ABOVE_ONE, default=5.0, help="Renyi order."),
    click.option(
        "--leave",
        type=POSITIVE,
        metavar="METRES",
        help="In place of --epsilon: the 68 % circle around the place that everyone is left with.",
    ),
    click.option(
        "--withhold",
        type=FiniteRange(min=0, max=1e9),
        metavar="SECONDS",
        help="Release nothing this near a protected time, at least.",
    ),
    click.option(
        "--adversary",
        "who",
        multiple=True,
        type=click.Choice(["default", *(adversary.value for adversary in NOISE_AGAINST)]),
        help="Whom the noise is made against, besides the plain one; may be repeated. "
        "Default: all.",
    ),
    click.option(
        "--prior",
        default="default",
        metavar="NAME|FILE",
        help="How people move: default, walk, bike, drive, or a file made by trailveil fit.",
    ),
    click.option(
        "--mechanism",
        type=click.Choice([kind.value for kind in Method if kind is not Method.EVERYWHERE]),
        default="cut",
        help="Leave out the time around what is protected, move the track by noise, or both.",
    ),
    click.option(
        "--activity",
        type=click.Choice([AUTO, *ACTIVITIES]),
        default=AUTO,
        help="How you moved around what is protected: the slowest pace to reckon with. "
        "auto: as the file states it, else walk.",
    ),
    click.option(
        "--floor",
        type=FiniteRange(0.01, 1000, min_open=True, max_open=True),
        metavar="M_PER_S",
        help="The same pace as a number, in place of --activity.",
    ),
    click.option(
        "--uncertain",
        type=click.IntRange(0, 86_400),
        default=60,
        metavar="SECONDS",
        help="Around each protected part, assume nothing about how you moved.",
    ),
    click.option(
        "--steady-for",
        type=FiniteRange(0, 1440),
        default=5.0,
        metavar="MINUTES",
        help="With noise: you may keep one steady pace for so long around a part.",
    ),
    click.option(
        "--slow-for",
        type=FiniteRange(0, 1440),
        default=0.0,
        metavar="MINUTES",
        help="With noise: you may hardly move for so long around a part. With --everywhere: the "
        "longest stay that is hidden (480).",
    ),
)
"""How much is to be left, to whom, and by what noise."""


def requested_of(options: dict[str, Any]) -> Request:
    """What is asked for, of no part yet. Raises InvalidValue for what cannot be."""
    _refuse_what_is_missing(options)
    for option, instead in (("leave", "epsilon"), ("floor", "activity")):
        if options[option] is not None and was_given(instead):
            raise click.UsageError(f"--{option} must come without --{instead}: state one of them")
    stated = {name: options[name] for name in _SAME if options[name] is not None}
    if "leave" in stated:
        del stated["epsilon"]
    if stated["activity"] == AUTO:
        del stated["activity"]
    if options["everywhere"] and was_given("slow_for"):
        stated["longest_stay"] = 60 * options["slow_for"]
    if options["everywhere"] or options["mechanism"] != "cut":
        # Nothing at all is assumed for so long: that holds a steady pace, and one that is slow.
        steady = round(60 * max(options["steady_for"], options["slow_for"]))
        stated["steady"] = max(steady, options["uncertain"])
        stated["adversaries"] = options["who"] or ("default",)
    else:
        _refuse_what_is_of_noise()
        stated.pop("prior", None)
    return request_of(cast(Options, stated))


def _refuse_what_is_of_noise() -> None:
    """Of a cut alone: beside a version with noise, these are of that one."""
    context = click.get_current_context()
    if any(more.get("mechanism", "cut") != "cut" for _, more in context.meta.get(STATED, [])):
        return
    for option in chain.from_iterable(OF_NOISE.values()):
        if was_given("who" if option == "adversary" else option.replace("-", "_")):
            raise click.UsageError(
                f"--{option} must come with --mechanism noise or both, got a cut: it hides whoever "
                "keeps to the pace that --activity or --floor states"
            )


def _refuse_what_is_missing(options: dict[str, Any]) -> None:
    others = [
        name for name in (*SELECTING, "no_ends", "withhold", "leave", "keep") if options[name]
    ]
    if was_given("mechanism"):
        others.append("mechanism")
    if options["everywhere"] and others:
        raise click.UsageError(
            f"--everywhere must come alone, got --{others[0].replace('_', '-')} as well: protect "
            "every place, or state what to protect"
        )


def was_given(option: str) -> bool:
    """Whether an option was stated, and is not a default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not None and source is not ParameterSource.DEFAULT


selecting = options_of(
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
"""What is protected."""


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


timing = options_of(
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
    click.option("--assume-utc", is_flag=True, help="Read times without a zone as UTC."),
)
"""What is stated of the times of a recording."""

reading = options_of(
    timing,
    most_option,
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
"""How a recording is read, and what becomes of its times."""

owning = options_of(
    click.option(
        "--key",
        type=click.Path(path_type=Path),
        help="Of trailveil key new: makes the release the same wherever it is made.",
    ),
    click.option(
        "--subject",
        default=ME,
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
)
"""Under which key, of whom, and how far a release is counted."""

counting = options_of(owning, keep_option)
"""The same, and what is kept."""


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
            f"{named(output)}; choose GPX, GeoJSON or CSV (-o, or --suffix of a batch), or leave "
            f"--keep {missing[0]} out"
        )
    if NAME in keep and not row.names:
        raise UnwritableOutput(
            "the output must be GPX, KML, KMZ or GeoJSON to hold the name of a track, got "
            f"{named(output)}: choose such a format (-o, or --suffix of a batch), or leave --keep "
            "name out"
        )
    return held
