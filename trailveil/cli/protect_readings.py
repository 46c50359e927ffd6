"""`trailveil protect IN --column NAME`: the main job, for a plain series of readings."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trailveil.cli.reporting import Reports, is_page, plain, reports_of
from trailveil.cli.waiting import waiting
from trailveil.errors import InvalidValue
from trailveil.files.keys import load_key
from trailveil.files.source import named as file_named
from trailveil.ledger import user_ledger
from trailveil.ledger.commit import Receipt, check_released_readings, commit_readings
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.report.brief import brief_readings
from trailveil.report.readings import record_readings, text_readings
from trailveil.traces.loading import load_readings
from trailveil.traces.prior_file import prior_in
from trailveil.traces.readings import Readings
from trailveil.traces.retiming import Retiming
from trailveil.traces.selection import Chosen, merged

if TYPE_CHECKING:  # it takes long to import
    from trailveil.release.readings_release import ReadingsPlan

# Of places and of people: they mean nothing to readings.
_OF_TRACES = (
    "near",
    "stops",
    "stops_within",
    "stops_for",
    "no_ends",
    "drop",
    "leave",
    "who",
    "every",
    "keep",
    "limit",
)


def protect_readings(source: Path, output: Path, options: dict[str, Any], given: set[str]) -> None:
    """Protect the readings in a table. given: the options that were stated."""
    _check(source, output, options, given)
    key = None if options["key"] is None else load_key(options["key"])
    retiming = Retiming(options["step"], options["shift"])
    readings, cleaning = load_readings(
        source,
        column=options["column"],
        unit=options["unit"],
        assume_utc=options["assume_utc"],
        zone=None if options["assume_utc"] else options["zone"],
        most=options["most"],
    )
    request = _request(readings, options, given)
    ledger, instead = user_ledger(), options["instead"]
    whose = {"series": readings.column, "subject": options["subject"], "key": key}
    again = options["again"] or instead
    check_released_readings(ledger, readings, request, again=again, **whose)
    with waiting(f"designing noise for {len(readings)} readings"):
        readings_plan = protect(readings, request)
    reports = reports_of(options)
    about: dict[str, Any] = {"output": output.name, "retiming": retiming}
    how = {"again": options["again"], "instead": instead, "retiming": retiming, **whose}
    how["output"] = output.name
    with commit_readings(readings_plan, ledger, **how) as receipt:
        about["further"] = receipt.further
        public = record_readings(readings_plan, cleaning, private=False, **about)
        whole = record_readings(readings_plan, cleaning, zone=options["zone"], **about)
        for_others = _public(reports, public, receipt)
        for_owner = _private(reports, whole, readings_plan, receipt)
        with (
            receipt.staged(output, overwrite=options["overwrite"]) as put,
            reports.staged(for_others, for_owner) as puts,
        ):
            receipt.put(put, *puts)
    whole["output"], whole["retracted"] = file_named(output), list(receipt.retracted)
    if options["as_json"]:
        click.echo(json.dumps(whole))
    else:
        stray = [each for each in receipt.retracted if each["output"] != output.name]
        short = brief_readings(whole, further=receipt.further, stray=stray)
        click.echo(text_readings(whole) if options["explain"] else short)


def _public(reports: Reports, report: dict[str, Any], receipt: Receipt[Readings]) -> bytes | None:
    """The report for others, as it is written."""
    if reports.public is None:
        return None
    if not is_page(reports.public):
        return plain(reports.public, report, text_readings(report))
    from trailveil.report.pages_readings import public_page_readings

    return public_page_readings(report, receipt.released)


def _private(
    reports: Reports, report: dict[str, Any], plan: "ReadingsPlan", receipt: Receipt[Readings]
) -> bytes | None:
    """The report for the owner, as it is written."""
    if reports.private is None:
        return None
    if not is_page(reports.private):
        return plain(reports.private, report, "")
    from trailveil.report.pages_readings import private_page_readings

    return private_page_readings(report, plan, receipt.drawn)


def _check(source: Path, output: Path, options: dict[str, Any], given: set[str]) -> None:
    for name in _OF_TRACES:
        if options.get(name):
            stated = {"who": "adversary", "limit": "total-epsilon", "drop": "drop-times"}.get(
                name, name
            ).replace("_", "-")
            raise click.UsageError(f"--{stated} must be for traces of places, got it with readings")
    if "mechanism" in given and options["mechanism"] == "both":
        raise click.UsageError("readings must be protected by --mechanism noise or cut, got both")
    if options["mechanism"] == "cut" and "mechanism" in given and options["withhold"] is None:
        raise click.UsageError("--mechanism cut of readings must come with --withhold SECONDS")
    if "radius" not in given or "prior" not in given:
        raise click.UsageError(
            "readings must come with --radius, in their unit, and --prior FILE, how they vary "
            "(trailveil fit makes one of other readings)"
        )
    if output.suffix.lower() != ".csv":
        raise InvalidValue(
            f"the output must be CSV for readings, got {file_named(output)}: name it .csv (-o)"
        )


def _request(readings: Readings, options: dict[str, Any], given: set[str]) -> Request:
    chosen = Chosen(tuple(options["at"]), tuple(options["between"]), options["zone"])
    stretches = tuple(merged(chosen.stated(readings)))
    if bool(stretches) == options["everywhere"]:
        raise click.UsageError(
            "readings must be protected at times that are stated (--at, --between), or all of them "
            "(--everywhere), got neither or both"
        )
    method = Method(options["mechanism"]) if "mechanism" in given else Method.NOISE
    return Request(
        stretches,
        method=Method.EVERYWHERE if options["everywhere"] and method is Method.NOISE else method,
        kernel=prior_in(readings.unit, options["prior"]).kernel,
        unit=readings.unit,
        **{name: options[name] for name in ("radius", "epsilon", "order", "withhold")},
    )
