"""`trailveil protect IN --column NAME`: what is planned for a plain series of readings."""

from typing import TYPE_CHECKING, Any

import click

from trailveil.cli.options import naive_zone, was_given
from trailveil.cli.versions import StatedVersion
from trailveil.cli.waiting import waiting
from trailveil.errors import InvalidValue
from trailveil.files.source import named as file_named
from trailveil.ledger import Ledger
from trailveil.ledger.commit import check_released
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.loading import load_readings, prior_in
from trailveil.traces.readings import Readings
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


def planned_readings(
    version: StatedVersion, ledger: Ledger, key: bytes | None
) -> "tuple[ReadingsPlan, Cleaning]":
    """The release of the readings in a table, designed and checked against the ledger."""
    options = version.options
    readings, cleaning = load_readings(
        options["source"],
        column=options["column"],
        unit=options["unit"],
        assume_utc=options["assume_utc"],
        zone=naive_zone(options),
        most=options["most"],
    )
    request = _request(readings, options)
    again = options["again"] or options["instead"]
    with waiting(f"designing noise for {len(readings)} readings"):
        plan = protect(readings, request)
    check_released(ledger, plan, again=again, subject=options["subject"], key=key)
    return plan, cleaning


def check_options(version: StatedVersion) -> None:
    """Refuse options that mean nothing to readings, or are missing, before any work is done."""
    options, output = version.options, version.output
    for name in _OF_TRACES:
        if options.get(name):
            stated = {"who": "adversary", "limit": "total-epsilon", "drop": "drop-times"}.get(
                name, name
            ).replace("_", "-")
            raise click.UsageError(f"--{stated} must be for traces of places, got it with readings")
    if was_given("mechanism") and options["mechanism"] == "both":
        raise click.UsageError("readings must be protected by --mechanism noise or cut, got both")
    if was_given("mechanism") and options["mechanism"] == "cut" and options["withhold"] is None:
        raise click.UsageError("--mechanism cut of readings must come with --withhold SECONDS")
    if not (was_given("radius") and was_given("prior")):
        raise click.UsageError(
            "readings must come with --radius, in their unit, and --prior FILE, how they vary "
            "(trailveil fit makes one of other readings)"
        )
    if output.suffix.lower() != ".csv":
        raise InvalidValue(
            f"the output must be CSV for readings, got {file_named(output)}: name it .csv (-o)"
        )


def _request(readings: Readings, options: dict[str, Any]) -> Request:
    chosen = Chosen(tuple(options["at"]), tuple(options["between"]), options["zone"])
    stretches = tuple(merged(chosen.stated(readings)))
    if bool(stretches) == options["everywhere"]:
        raise click.UsageError(
            "readings must be protected at times that are stated (--at, --between), or all of them "
            "(--everywhere), got neither or both"
        )
    method = Method(options["mechanism"]) if was_given("mechanism") else Method.NOISE
    return Request(
        stretches,
        method=Method.EVERYWHERE if options["everywhere"] and method is Method.NOISE else method,
        kernel=prior_in(readings.unit, options["prior"]).kernel,
        unit=readings.unit,
        **{name: options[name] for name in ("radius", "epsilon", "order", "withhold")},
    )
