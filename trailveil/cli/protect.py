"""`trailveil protect IN`: the main job."""

import contextlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trailveil.cli.options import (
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
from trailveil.cli.versions import StatedVersion, WithVersions, stated_versions
from trailveil.cli.waiting import on_terminal, waiting
from trailveil.files.keys import load_key
from trailveil.files.output import Put
from trailveil.files.source import named as file_named
from trailveil.files.source import quoted
from trailveil.ledger import Ledger, user_ledger
from trailveil.ledger.commit import (
    AnyPlan,
    Receipt,
    check_released,
    commit,
    known_places,
    known_public,
)
from trailveil.ledger.planning import protect_versions
from trailveil.privacy.priors import BUILT_IN
from trailveil.release.design_cache import DesignCache
from trailveil.release.plan import Plan
from trailveil.release.protect import protect as protect_parts
from trailveil.release.protect import requested
from trailveil.release.versions import Version, in_order
from trailveil.report.brief import brief, sketch
from trailveil.report.record import record
from trailveil.report.schema import ReleaseReport
from trailveil.report.text import text
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.formats.table import TABLES, check_writable
from trailveil.traces.loading import load
from trailveil.traces.retiming import Retiming
from trailveil.traces.stated_times import zone_of

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


@click.command(cls=WithVersions, epilog=EXAMPLE)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: IN.private.SUFFIX.")
@click.option("--column", metavar="NAME", help="IN is a table of readings: the column of values.")
@click.option("--unit", metavar="UNIT", help="IN is a table of readings: their unit, such as degC.")
@selecting
@click.option(
    "--version",
    "versions",
    multiple=True,
    metavar="NAME",
    help="A version, by the --radius, --epsilon, --leave, --order, --mechanism and -o that follow. "
    "May be repeated: all versions tell together what the finest tells.",
)
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
    options["overwrite"] |= options["instead"]
    versions = stated_versions(options)
    key = None if options["key"] is None else load_key(options["key"])
    ledger = user_ledger()
    plans: Mapping[str, AnyPlan]
    if options["column"] or options["unit"]:
        from trailveil.cli.protect_readings import check_options, planned_readings

        check_options(versions[0])
        retimings = [retiming_of(options, versions[0].output)]
        _check_files(versions, options["zone"])
        plan, cleaning = planned_readings(versions[0], ledger, key)
        plans = {"": plan}
    else:
        plans, cleaning, retimings = _planned(options, versions, ledger, key)
    stated = {version.name: version for version in versions}
    jobs = [_Job(plan, stated[name], retimings[0]) for name, plan in plans.items()]
    _say(_publish(jobs, cleaning, ledger, key), options)


def _planned(
    options: dict[str, Any], versions: Sequence[StatedVersion], ledger: Ledger, key: bytes | None
) -> tuple[dict[str, Plan], Cleaning, list[Retiming]]:
    """The versions of a trace, designed, the finest first; and what becomes of their times."""
    chosen, asked = selected(options), [requested_of(version.options) for version in versions]
    named = [Version(each.name, what) for each, what in zip(versions, asked, strict=True)]
    if options["versions"]:
        in_order(named)
    retimings = [retiming_of(version.options, version.output) for version in versions]
    trace, cleaning = load(
        options["source"],
        assume_utc=options["assume_utc"],
        zone=naive_zone(options),
        every=options["every"],
        keep=options["keep"],
        most=options["most"],
    )
    _check_files(versions, options["zone"] or zone_of(trace))
    whose = {"subject": options["subject"], "key": key}
    places = known_places(ledger, trace, **whose)
    again = options["again"] or options["instead"]
    with waiting(f"designing noise for {len(trace)} fixes"):
        if options["versions"]:
            how: dict[str, Any] = {**whose, "cache": _cache(ledger), "alone": again}
            plans = protect_versions(ledger, trace, chosen, named, places=places, **how)
            return {plan.version: plan for plan in plans}, cleaning, retimings
        public = known_public(ledger, trace, options["subject"])
        request = requested(trace, chosen, asked[0], places, public)
        plan = protect_parts(trace, request, places=places, cache=_cache(ledger))
        check_released(ledger, plan, again=again, **whose)
        return {"": plan}, cleaning, retimings


def _audit(output: Path, options: dict[str, Any]) -> str:
    """The command that looks for leaks in the release. It repeats no place that was stated."""
    words = [f"trailveil audit {quoted(options['source'])} {quoted(output)}"]
    words += [f"--{name.replace('_', '-')}" for name in _FLAGS if options[name]]
    words += [f"--at {shlex.quote(time)}" for time in options["at"]]
    words += [f"--between {shlex.join(both)}" for both in options["between"]]
    for name, option in (*_SAME, ("zone", "--tz")):
        if was_given(name):
            words.append(f"{option} {options[name]}")
    words += [f"--keep {field}" for field in options["keep"]]
    return " ".join(words) + (" and the same --near" if options["near"] else "")


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A version that is about to be published."""

    plan: AnyPlan
    version: StatedVersion
    retiming: Retiming


def _publish(
    jobs: Sequence[_Job], cleaning: Cleaning, ledger: Ledger, key: bytes | None
) -> list[tuple[_Job, ReleaseReport, Receipt[Any]]]:
    """Count releases and write them, with their reports; what their owner is shown of each.

    All are counted before any file appears. Only the first replaces what was released before.
    """
    published, waiting_puts = [], []
    with contextlib.ExitStack() as stack:
        for number, job in enumerate(jobs):
            options, first = job.version.options, number == 0
            how = {name: options[name] for name in ("again", "subject", "limit")}
            how |= {"instead": options["instead"] and first, "output": job.version.output.name}
            receipt = stack.enter_context(
                commit(job.plan, ledger, key=key, retiming=job.retiming, **how)
            )
            whole, files = _reported(job, cleaning, ledger, receipt)
            put = receipt.staged(job.version.output, overwrite=options["overwrite"])
            puts = (stack.enter_context(put), stack.enter_context(files))
            waiting_puts.append((receipt, puts))
            shown: ReleaseReport = {**whole, "output": file_named(job.version.output)}
            published.append((job, shown, receipt))
        for receipt, (put_file, put_reports) in waiting_puts:
            receipt.put(put_file, *put_reports)
    return published


def _reported(
    job: _Job, cleaning: Cleaning, ledger: Ledger, receipt: Receipt[Any]
) -> tuple[ReleaseReport, contextlib.AbstractContextManager[Sequence[Put]]]:
    """What the owner is shown of a release, and its reports, to be staged."""
    plan, options, output = job.plan, job.version.options, job.version.output
    reports = reports_of(options)
    in_full = options["explain"] or options["as_json"] or reports.private
    prices: Any = ()
    if in_full and isinstance(plan, Plan):
        from trailveil.release.prices import other_prices

        prices = other_prices(plan, _cache(ledger))
    about: dict[str, Any] = {"retiming": job.retiming, "keep": options["keep"]}
    about["further"] = receipt.further
    for_others = None
    if reports.public is not None:
        public = record(plan, cleaning, output=output.name, private=False, **about)
        for_others = _public(reports.public, public, receipt)
    about |= {"zone": options["zone"], "account": receipt.account, "instead": prices}
    about["retracted"] = receipt.retracted
    if isinstance(plan, Plan):
        about["public"] = known_public(ledger, plan.trace, options["subject"])
    whole = record(plan, cleaning, output=output.name, **about)
    for_owner = _private(reports, whole, plan, receipt)
    return whole, reports.staged(for_others, for_owner)


def _say(
    published: Sequence[tuple[_Job, ReleaseReport, Receipt[Any]]], options: dict[str, Any]
) -> None:
    """Print what the owner is to know."""
    source: Path = options["source"]
    output = published[0][0].version.output
    if options["output"] is None and output.suffix.lower() not in (source.suffix.lower(), ".csv"):
        click.echo(
            f"Written as GPX: files such as {file_named(source.name)} are only read.", err=True
        )
    if not was_given("subject") and (column := _column_of_people(source)):
        click.echo(
            f"Counted for {options['subject']!r}, whatever the column {file_named(column)} says, "
            "by which a batch counts: state --subject in both.",
            err=True,
        )
    if options["as_json"]:
        reports = [report for _, report, _ in published]
        click.echo(json.dumps({"versions": reports} if options["versions"] else reports[0]))
        return
    written = {job.version.output.name for job, _, _ in published}
    for job, report, receipt in published:
        if options["versions"]:
            click.echo(f"Version {job.version.name}")
        if options["explain"]:
            click.echo(text(report))
            continue
        drawn = sketch(job.plan, receipt.drawn) if isinstance(job.plan, Plan) else ()
        for line in drawn if on_terminal() else ():
            click.echo(line)
        stray = [each for each in receipt.retracted if each["output"] not in written]
        how: dict[str, Any] = {"coloured": on_terminal(colours=True), "stray": stray}
        how["further"] = receipt.further
        click.echo(brief(report, _audit(job.version.output, job.version.options), **how))


def _check_files(versions: Sequence[StatedVersion], zone: Any) -> None:
    """Refuse files that cannot be written before any work is done, and complete the options."""
    others: list[Path] = []
    for version in versions:
        read = files_read(version.options["source"], version.options)
        check_writable(version.output, *read, *others, overwrite=version.options["overwrite"])
        version.options["zone"] = zone
        version.options["keep"] = check_keep(version.output, version.options["keep"])
        reports_of(version.options).check(*read, *others, version.output)
        others.append(version.output)


def _public(path: Path, report: ReleaseReport, receipt: Receipt[Any]) -> bytes:
    """The report for others, as it is written."""
    if not is_page(path):
        return plain(path, report, text(report))
    from trailveil.report.pages import public_page

    return public_page(report, receipt.released)


def _private(
    reports: Reports, report: ReleaseReport, plan: AnyPlan, receipt: Receipt[Any]
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


def _column_of_people(source: Path) -> str:
    """The column of a table by which a batch knows whose its traces are; "" for none."""
    if source.suffix.lower() not in TABLES:
        return ""
    from trailveil.batch.tables import column_of_people

    return column_of_people(source)


def files_read(source: Path, options: dict[str, Any]) -> list[Path]:
    """The files that a run reads, none of which it may write: recording, key, prior."""
    prior = [] if options["prior"] in BUILT_IN else [Path(options["prior"])]
    return [source, *prior, *([] if options["key"] is None else [options["key"]])]
