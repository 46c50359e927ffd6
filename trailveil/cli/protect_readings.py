"""`trailveil protect IN --column NAME`: the main job, for a plain series of readings."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import click

from trailveil.cli.reporting import Reports, reports_of
from trailveil.cli.waiting import waiting
from trailveil.errors import InvalidValue
from trailveil.files.keys import load_key
from trailveil.files.output import Put
from trailveil.files.source import named as file_named
from trailveil.ledger import user_ledger
from trailveil.ledger.protecting import (
    check_released_readings,
    commit_readings,
)
from trailveil.ledger.published import Published
from trailveil.release.readings_release import ReadingsPlan, ReadingsRequest, plan_readings
from trailveil.report import brief_readings
from trailveil.report.readings import record_readings, text_readings
from trailveil.traces.loading import load_readings
from trailveil.traces.prior_file import prior_in
from trailveil.traces.readings import Readings
from trailveil.traces.retiming import Retiming
from trailveil.traces.selection import Chosen, merged

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
    ledger, again = user_ledger(), options["again"]
    whose = {"series": readings.column, "subject": options["subject"], "key": key}
    check_released_readings(ledger, readings, request, again=again, **whose)
    with waiting(f"designing noise for {len(readings)} readings"):
        readings_plan = plan_readings(readings, request)
    told = partial(record_readings, readings_plan, cleaning, retiming=retiming)

    reports, zone = reports_of(options), options["zone"]

    def whole(done: Published, called: str = file_named(output)) -> dict[str, Any]:
        return told(output=called, further=done.further, zone=zone)

    with commit_readings(readings_plan, ledger, again=again, retiming=retiming, **whose) as receipt:
        done = receipt.published
        public = partial(told, output=output.name, further=done.further, private=False)
        beside = _staged(reports, readings_plan, done, public, partial(whole, done, output.name))
        with receipt.staged(output, overwrite=options["overwrite"]) as put, beside as put_beside:
            receipt.put(put, put_beside)
    found = whole(done)
    if options["as_json"]:
        click.echo(json.dumps(found))
    else:
        short = brief_readings(found, further=done.further)
        click.echo(text_readings(found) if options["explain"] else short)


def _staged(
    reports: Reports,
    readings_plan: ReadingsPlan,
    done: Published,
    public: Callable[[], dict[str, Any]],
    whole: Callable[[], dict[str, Any]],
) -> AbstractContextManager[Put]:
    """The reports that were asked for, as they appear with the release."""

    def for_others() -> tuple[dict[str, Any], str]:
        found = public()
        return found, text_readings(found)

    def page(found: dict[str, Any]) -> bytes:
        from trailveil.report.pages_readings import public_page_readings

        return public_page_readings(found, done.readings[1])

    def private(found: dict[str, Any]) -> bytes:
        from trailveil.report.pages_readings import private_page_readings

        return private_page_readings(found, readings_plan, done.readings[0])

    return reports.staged(for_others, page, whole, private)


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


def _request(readings: Readings, options: dict[str, Any], given: set[str]) -> ReadingsRequest:
    chosen = Chosen(tuple(options["at"]), tuple(options["between"]), options["zone"])
    stretches = tuple(merged(chosen.stated(readings)))
    if bool(stretches) == options["everywhere"]:
        raise click.UsageError(
            "readings must be protected at times that are stated (--at, --between), or all of them "
            "(--everywhere), got neither or both"
        )
    return ReadingsRequest(
        stretches,
        options["radius"],
        readings.unit,
        prior_in(readings.unit, options["prior"]).kernel,
        options["epsilon"],
        options["order"],
        options["withhold"],
        options["mechanism"] == "noise" or "mechanism" not in given,
    )
