"""`trailveil demo`: the main job, end to end, on a day that the program makes up."""

import json
import tempfile
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from trailveil.cli.waiting import waiting
from trailveil.errors import UnwritableOutput
from trailveil.files.output import check_not_state, write_atomically
from trailveil.files.source import named
from trailveil.ledger import open_ledger
from trailveil.ledger.commit import publish
from trailveil.release.prices import other_prices
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.report.brief import brief
from trailveil.report.record import record
from trailveil.studies.datasets.day import day_plan, simulated_day
from trailveil.traces.formats import write
from trailveil.traces.loading import load
from trailveil.traces.selection import Chosen
from trailveil.traces.stated_times import in_words

DAY = "home 35 min, ride 24 min, clinic 42 min, ride 27 min, home 30 min; one pause, one gap"


@click.command(epilog="Example: trailveil demo -o demo-folder")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for day.gpx and day.private.gpx; default: a new temporary one.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def demo(output: Path | None, *, as_json: bool) -> None:
    """Make up a day (home, ride, clinic, ride, home), protect the clinic, say what is still told.

    Nothing is read and nothing is remembered: the day is invented, at an invented place in the
    Atlantic.
    """
    folder = _folder(output)
    source, released = folder / "day.gpx", folder / "day.private.gpx"
    day = simulated_day()
    write_atomically(source, lambda out: write(day, out, ".gpx"), overwrite=True)
    clinic = day_plan().stays[1]
    first, last = (in_words(when)[11:16] for when in (clinic.begin, clinic.end))
    stays = ((first, last),)
    trace, cleaning = load(source)
    request = requested(trace, Chosen((), stays, ZoneInfo("UTC"), ends=False), Request(()))
    with waiting(f"designing noise for {len(trace)} fixes"):
        plan = protect(trace, request)
    with tempfile.TemporaryDirectory(prefix="trailveil-") as state:
        publish(plan, open_ledger(Path(state)), released, overwrite=True)
    utc, instead = ZoneInfo("UTC"), other_prices(plan)
    report = record(plan, cleaning, output=named(released), zone=utc, instead=instead)
    if as_json:
        click.echo(json.dumps(report))
        return
    options = " ".join(["--no-ends", *(f"--between {begin} {end}" for begin, end in stays)])
    click.echo(
        f"A made-up day: {named(source)}\n{DAY}.\n$ trailveil protect day.gpx {options} --tz UTC\n"
    )
    audit = f"trailveil audit {named(source)} {named(released)} {options} --tz UTC"
    click.echo(brief(report, audit))


def _folder(output: Path | None) -> Path:
    if output is None:
        return Path(tempfile.mkdtemp(prefix="trailveil-demo-"))
    check_not_state(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableOutput(
            f"the folder must be usable, got the error '{error.strerror}': {named(output)}; choose "
            "another"
        ) from error
    return output
