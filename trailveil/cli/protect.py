"""`trailveil protect IN`: the main job."""

import json
import shlex
from pathlib import Path
from typing import Any

import click

from trailveil.cli.options import (
    WithPlaces,
    check_keep,
    counting,
    naive_zone,
    reading,
    requested_of,
    requesting,
    retiming_of,
    selected,
    selecting,
    was_given,
)
from trailveil.cli.reporting import Reports, is_page, plain, report_options, reports_of
from trailveil.cli.waiting import on_terminal, waiting
from trailveil.files.keys import load_key
from trailveil.files.output import check_output
from trailveil.files.source import named as file_named
from trailveil.ledger import Ledger, user_ledger
from trailveil.ledger.commit import Receipt, check_released, commit, known_places
from trailveil.privacy.priors import BUILT_IN
from trailveil.release.design_cache import DesignCache
from trailveil.release.plan import Plan
from trailveil.release.protect import protect as protect_parts
from trailveil.release.protect import requested
from trailveil.report.brief import brief, sketch
from trailveil.report.record import record
from trailveil.report.schema import ReleaseReport
from trailveil.report.text import text
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.formats.table import check_writable, default_output
from trailveil.traces.loading import load
from trailveil.traces.retiming import Retiming
from trailveil.traces.stated_times import zone_of
from trailveil.traces.trace import Trace

# What `audit` must be told, too.
_FLAGS = ("no_ends", "no_returns", "everywhere", "assume_utc")
_SAME = (
    ("stops", "--stops"),
    ("stops_within", "--stops-within"),
    ("stops_for", "--stops-for"),
    ("every", "--every"),
)

EXAMPLE = """Examples:

\b
  trailveil protect ride.gpx
  trailveil protect ride.gpx --between 08:10 08:45 --tz Europe/Berlin
  trailveil protect ride.gpx --at start+5m --radius 300 --mechanism noise
  trailveil protect ride.gpx --near 45.7399,-32.9167,150 --stops auto

TIME is ISO 8601 with a zone (2024-05-14T08:30:00Z), start+5m, end-1h30m, or HH:MM in the zone of
the recording, or of --tz."""


@click.command(cls=WithPlaces, epilog=EXAMPLE)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: IN.private.SUFFIX.")
@click.option("--column", metavar="NAME", help="IN is a table of readings: the column of values.")
@click.option("--unit", metavar="UNIT", help="IN is a table of readings: their unit, such as degC.")
@selecting
@requesting
@reading
@counting
@click.option(
    "--replace",
    "instead",
    is_flag=True,
    help="Nobody has the earlier version of this recording: it counts no more.",
)
@click.option("--again", is_flag=True, help="Count this version besides the earlier one.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@report_options
@click.option("--explain", is_flag=True, help="Print the whole report.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, times included.")
def protect(**options: Any) -> None:
    """Protect a recording and say what can still be learnt from it.

    Both ends of the recording are protected, unless you say --no-ends: share a ride, not a home.
    --at, --between, --near and --stops add to them. Places that have names (trailveil place) are
    protected wherever a recording visits one of them, so that many visits together hold.
    """
    source: Path = options["source"]
    output: Path = options["output"] or default_output(source)
    options["overwrite"] |= options["instead"]
    overwrite, keep = options["overwrite"], options["keep"]
    if options["column"] or options["unit"]:
        _protect_readings(source, options)
        return
    chosen, asked = selected(options), requested_of(options)
    key = None if options["key"] is None else load_key(options["key"])
    retiming = retiming_of(options, output)
    trace, cleaning = load(
        source,
        assume_utc=options["assume_utc"],
        zone=naive_zone(options),
        every=options["every"],
        keep=keep,
        most=options["most"],
    )
    options["zone"] = options["zone"] or zone_of(trace)
    read = files_read(source, options)
    check_writable(output, *read, overwrite=overwrite)
    options["keep"] = check_keep(output, keep)
    reports_of(options).check(*read, output)
    ledger = user_ledger()
    whose = {"subject": options["subject"], "key": key}
    places = known_places(ledger, trace, **whose)
    request = requested(trace, chosen, asked, places)
    with waiting(f"designing noise for {len(trace)} fixes"):
        again = options["again"] or options["instead"]
        check_released(ledger, trace, request, again=again, places=places, **whose)
        plan = protect_parts(trace, request, places=places, cache=_cache(ledger))
    report, receipt = _publish(plan, cleaning, ledger, output, retiming, options, key)
    if options["as_json"]:
        click.echo(json.dumps(report))
    elif options["explain"]:
        click.echo(text(report))
    else:
        for line in sketch(plan, receipt.drawn) if on_terminal() else ():
            click.echo(line)
        how = {"coloured": on_terminal(colours=True), "replaced": options["instead"]}
        click.echo(brief(report, _audit(output, options), **how))
    if options["output"] is None and output.suffix.lower() != source.suffix.lower():
        click.echo(
            f"Written as GPX: files such as {file_named(source.name)} are only read.", err=True
        )


def _audit(output: Path, options: dict[str, Any]) -> str:
    """The command that looks for leaks in the release. It repeats no place that was stated."""
    words = [f"trailveil audit {file_named(options['source'])} {file_named(output)}"]
    words += [f"--{name.replace('_', '-')}" for name in _FLAGS if options[name]]
    words += [f"--at {shlex.quote(time)}" for time in options["at"]]
    words += [f"--between {shlex.join(both)}" for both in options["between"]]
    for name, option in (*_SAME, ("zone", "--tz")):
        if was_given(name):
            words.append(f"{option} {options[name]}")
    words += [f"--keep {field}" for field in options["keep"]]
    return " ".join(words) + (" and the same --near" if options["near"] else "")


def _publish(
    plan: Plan,
    cleaning: Cleaning,
    ledger: Ledger,
    output: Path,
    retiming: Retiming,
    options: dict[str, Any],
    key: bytes | None,
) -> tuple[ReleaseReport, Receipt[Trace]]:
    """Count the release and write it, with its reports; what its owner is shown of it."""
    reports = reports_of(options)
    in_full = options["explain"] or options["as_json"] or reports.private
    prices: Any = ()
    if in_full:
        from trailveil.release.prices import other_prices

        prices = other_prices(plan, _cache(ledger))
    about: dict[str, Any] = {"retiming": retiming, "keep": options["keep"]}
    how = {name: options[name] for name in ("again", "instead", "subject", "limit")}
    with commit(plan, ledger, key=key, retiming=retiming, **how) as receipt:
        about["further"] = receipt.further
        for_others = None
        if reports.public is not None:
            public = record(plan, cleaning, output=output.name, private=False, **about)
            for_others = _public(reports.public, public, receipt)
        about |= {"zone": options["zone"], "account": receipt.account, "instead": prices}
        whole = record(plan, cleaning, output=output.name, **about)
        for_owner = _private(reports, whole, plan, receipt)
        with (
            receipt.staged(output, overwrite=options["overwrite"]) as put,
            reports.staged(for_others, for_owner) as puts,
        ):
            receipt.put(put, *puts)
    return {**whole, "output": file_named(output)}, receipt


def _public(path: Path, report: ReleaseReport, receipt: Receipt[Trace]) -> bytes:
    """The report for others, as it is written."""
    if not is_page(path):
        return plain(path, report, text(report))
    from trailveil.report.pages import public_page

    return public_page(report, receipt.released)


def _private(
    reports: Reports, report: ReleaseReport, plan: Plan, receipt: Receipt[Trace]
) -> bytes | None:
    """The report for the owner, as it is written."""
    if reports.private is None:
        return None
    if not is_page(reports.private):
        return plain(reports.private, report, "")
    from trailveil.report.pages import private_page

    return private_page(report, plan, receipt.drawn)


def _cache(ledger: Ledger) -> DesignCache:
    return DesignCache.of(ledger.folder, ledger.key)


def _protect_readings(source: Path, options: dict[str, Any]) -> None:
    from trailveil.cli.protect_readings import protect_readings

    output: Path = options["output"] or source.with_name(f"{source.stem}.private.csv")
    read = files_read(source, options)
    check_output(output, *read, overwrite=options["overwrite"])
    reports_of(options).check(*read, output)
    protect_readings(source, output, options, {name for name in options if was_given(name)})


def files_read(source: Path, options: dict[str, Any]) -> list[Path]:
    """The files that a run reads, none of which it may write: recording, key, prior."""
    prior = [] if options["prior"] in BUILT_IN else [Path(options["prior"])]
    return [source, *prior, *([] if options["key"] is None else [options["key"]])]
