"""`trailveil protect IN`: the main job."""

import json
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
from click.core import ParameterSource

from trailveil.adversaries import Named
from trailveil.adversaries import named as known_as
from trailveil.certified import Certificate
from trailveil.cli.certifying import certify_option, check_certify
from trailveil.cli.keep import check_keep, keep_option
from trailveil.cli.parameters import POSITIVE, zone_named
from trailveil.cli.selecting import SELECTING, WithPlaces, selected, selecting
from trailveil.cli.waiting import waiting
from trailveil.errors import InvalidValue, Unavailable
from trailveil.everywhere import plan_everywhere
from trailveil.formats.source import named as file_named
from trailveil.formats.table import format_to_write
from trailveil.kernels import Kernel
from trailveil.keys import load_key
from trailveil.memory import user_memory
from trailveil.output import Put, check_output, staged
from trailveil.prior_file import prior_in
from trailveil.priors import BUILT_IN
from trailveil.protecting import (
    check_released,
    default_output,
    load,
    publish,
    requested,
)
from trailveil.release import AUTO, RATE, Noise, Plan, Request, plan
from trailveil.report import record, text
from trailveil.retiming import Retiming

EXAMPLE = """Examples:

\b
  trailveil protect ride.gpx
  trailveil protect ride.gpx --between 08:10 08:45 --tz Europe/Berlin
  trailveil protect ride.gpx --at start+5m --radius 300 --withhold 600
  trailveil protect ride.gpx --near 45.7399,-32.9167,150 --stops auto

TIME is ISO 8601 with a zone (2024-05-14T08:30:00Z), start+5m, end-1h30m, or HH:MM with --tz."""


@click.command(cls=WithPlaces, epilog=EXAMPLE)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: IN.private.SUFFIX.")
@click.option("--column", metavar="NAME", help="IN is a table of readings: the column of values.")
@click.option("--unit", metavar="UNIT", help="IN is a table of readings: their unit, such as degC.")
@selecting
@click.option("--radius", type=POSITIVE, default=200.0, show_default=True, help="Metres.")
@click.option("--epsilon", type=POSITIVE, default=1.0, show_default=True, help="Privacy loss.")
@click.option(
    "--order",
    type=click.FloatRange(min=1, min_open=True),
    default=5.0,
    show_default=True,
    help="Renyi order.",
)
@click.option(
    "--leave",
    type=POSITIVE,
    metavar="METRES",
    help="In place of --epsilon: the 68 % circle around the place that everyone is left with.",
)
@click.option(
    "--withhold",
    metavar="auto|SECONDS",
    help="Release nothing this near a protected time; auto: as long as is cheapest.",
)
@click.option(
    "--metres-a-minute",
    "rate",
    type=POSITIVE,
    default=RATE,
    show_default=True,
    help="For --withhold auto: a minute moved so far is as bad as a minute withheld.",
)
@click.option(
    "--adversary",
    "who",
    multiple=True,
    type=click.Choice(["default", *(one.value for one in Named)]),
    help="Whom the noise is made against, besides the plain one; may be repeated. Default: all.",
)
@click.option(
    "--prior",
    default="default",
    show_default=True,
    metavar="NAME|FILE",
    help="How people move: default, walk, bike, drive, or a file made by trailveil fit.",
)
@click.option(
    "--mechanism",
    type=click.Choice([kind.value for kind in Noise if kind is not Noise.EVERYWHERE]),
    default="optimal",
    show_default=True,
)
@click.option(
    "--tz",
    "zone",
    metavar="ZONE",
    callback=zone_named,
    help="Zone of clock times, and of times without one.",
)
@click.option(
    "--every",
    type=POSITIVE,
    metavar="SECONDS",
    help="The fixes have no times: they are this far apart.",
)
@click.option("--assume-utc", is_flag=True, help="Read times without a zone as UTC.")
@click.option(
    "--round-times",
    "step",
    type=POSITIVE,
    metavar="SECONDS",
    help="Release times rounded to multiples of this.",
)
@click.option("--shift-times", "shift", is_flag=True, help="Release times that begin in 2000.")
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help="Of trailveil key new: makes the release the same wherever it is made.",
)
@keep_option
@certify_option
@click.option("--again", is_flag=True, help="Release a recording again, with other noise.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    help="Write the report without protected times (.json or text).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, times included.")
def protect(**options: Any) -> None:
    """Protect a recording and say what can still be learnt from it.

    Without --at, --between, --near, --stops or --everywhere both ends of the recording are
    protected: share a ride, not a home.
    """
    source: Path = options["source"]
    output: Path = options["output"] or default_output(source)
    overwrite, again = options["overwrite"], options["again"]
    if options["column"] or options["unit"]:
        _protect_readings(source, options)
        return
    chosen, wanted = selected(options), _request(options)
    key = None if options["key"] is None else load_key(options["key"])
    retiming = Retiming(options["step"], options["shift"])
    trace, cleaning = load(
        source,
        assume_utc=options["assume_utc"],
        zone=_naive_zone(options),
        every=options["every"],
        keep=options["keep"],
    )
    read = files_read(source, options)
    check_target(output, *read, overwrite=overwrite)
    check_keep(output, options["keep"])
    _check_report(options["report"], *read, output, overwrite=overwrite)
    everywhere = wanted.noise is Noise.EVERYWHERE
    request = wanted if everywhere else requested(trace, chosen, wanted)
    memory = user_memory()
    check_released(memory, trace, request, again=again, key=key)
    with waiting(f"designing noise for {len(trace)} fixes"):
        made = plan_everywhere(trace, request) if everywhere else plan(trace, request)
    proved = _certified(made) if options["certify"] else []
    told = partial(record, made, cleaning, retiming=retiming, certificates=proved)

    def public(further: bool) -> AbstractContextManager[Put]:
        found = told(output=output.name, further=further, private=False, keep=options["keep"])
        return _report(options["report"], found, text(found), overwrite=overwrite)

    further = publish(
        made,
        memory,
        output,
        again=again,
        overwrite=overwrite,
        beside=public if options["report"] else None,
        key=key,
        retiming=retiming,
    )
    zone, name = options["zone"], file_named(output)
    found = told(output=name, further=further, zone=zone, keep=options["keep"])
    click.echo(json.dumps(found) if options["as_json"] else text(found))
    if options["output"] is None and output.suffix.lower() != source.suffix.lower():
        click.echo(
            f"Written as GPX: files such as {file_named(source.name)} are only read.", err=True
        )


def _certified(made: Plan) -> list[Certificate]:
    from trailveil.certifying import certify_plan

    with waiting("proving what the noise guarantees"):
        return certify_plan(made)


def _protect_readings(source: Path, options: dict[str, Any]) -> None:
    from trailveil.cli.protect_readings import protect_readings

    output: Path = options["output"] or source.with_name(f"{source.stem}.private.csv")
    report: Path | None = options["report"]
    read = files_read(source, options)
    check_output(output, *read, overwrite=options["overwrite"])
    _check_report(report, *read, output, overwrite=options["overwrite"])

    def stage(found: dict[str, Any], words: str) -> AbstractContextManager[Put]:
        return _report(report or Path(), found, words, overwrite=options["overwrite"])

    given = {name for name in options if _was_given(name)}
    protect_readings(source, output, options, given, stage)


def _request(options: dict[str, Any]) -> Request:
    _refuse_what_is_missing(options)
    check_certify(certify=options["certify"], everywhere=options["everywhere"])
    noise = Noise.EVERYWHERE if options["everywhere"] else Noise(options["mechanism"])
    withhold = _seconds(options["withhold"])
    if options["leave"] and _was_given("epsilon"):
        raise click.UsageError("--leave must come without --epsilon: state one of them")
    if noise is Noise.WITHHOLD and withhold is None:
        raise click.UsageError("--mechanism withhold must come with --withhold SECONDS")
    return Request(
        (),
        options["radius"],
        options["epsilon"],
        options["order"],
        withhold,
        known_as(options["who"] or ("default",)),
        noise,
        _prior(options["prior"]),
        options["leave"],
        options["rate"],
    )


def _prior(stated: str) -> Kernel:
    """The kernel of a built-in prior or of a prior file, in metres and with measurement noise."""
    spec = prior_in("metres", stated)
    if not any(term.is_white() for term in spec.kernel.terms()):
        raise InvalidValue(
            f"--prior must state a measurement noise (a white term), got none: {file_named(stated)}"
        )
    return spec.kernel


def _refuse_what_is_missing(options: dict[str, Any]) -> None:
    others = [name for name in (*SELECTING, "withhold", "leave", "keep") if options[name]]
    if options["mechanism"] != Noise.OPTIMAL.value:
        others.append("mechanism")
    if options["everywhere"] and others:
        raise click.UsageError(
            f"--everywhere must come alone, got --{others[0]} as well: protect every place, or "
            "state what to protect"
        )


def _was_given(option: str) -> bool:
    """Whether an option was stated, and is not a default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not None and source is not ParameterSource.DEFAULT


def _seconds(stated: str | None) -> float | str | None:
    if stated is None or stated == AUTO:
        return stated
    try:
        seconds = float(stated)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:  # 30 years
        raise click.BadParameter(
            f"must be auto, or a number of seconds of at least 0, got {stated!r}"
        )
    return seconds


def _naive_zone(options: dict[str, Any]) -> ZoneInfo | None:
    """The zone for times that have none: --assume-utc says UTC whatever --tz is for clock times."""
    return None if options["assume_utc"] else options["zone"]


def files_read(source: Path, options: dict[str, Any]) -> list[Path]:
    """The files that a run reads, none of which it may write: recording, key, prior."""
    prior = [] if options["prior"] in BUILT_IN else [Path(options["prior"])]
    return [source, *prior, *([] if options["key"] is None else [options["key"]])]


def check_target(output: Path, *others: Path, overwrite: bool) -> None:
    """Refuse an output that cannot or must not be written, before any work is done."""
    format_to_write(output.suffix)
    check_output(output, *others, overwrite=overwrite)


def _check_report(report: Path | None, *others: Path, overwrite: bool) -> None:
    if report is None:
        return
    if report.suffix.lower() in {".html", ".htm"}:
        raise Unavailable("--report must be .json or .txt in this version, got HTML")
    check_output(report, *others, overwrite=overwrite, what="report")


def _report(
    path: Path, found: dict[str, Any], words: str, *, overwrite: bool
) -> AbstractContextManager[Put]:
    """Stage the report for others, as JSON or text by its suffix."""
    as_json = path.suffix.lower() == ".json"
    body = json.dumps(found, indent=1) if as_json else words
    data = f"{body}\n".encode(errors="backslashreplace")
    return staged(path, lambda out: out.write(data), overwrite=overwrite, what="report")
