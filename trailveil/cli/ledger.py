"""`trailveil ledger show|import|export|verify`: what was released, and what it adds up to.

What was published by other means is imported, so that later releases reckon with it.
"""

import json
import math
import re
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import numpy as np

from trailveil.cli.parameters import FiniteRange, person, zone_named
from trailveil.errors import InvalidValue, UnreadableInput, said
from trailveil.files.output import check_output, write_atomically
from trailveil.files.source import load as bytes_of
from trailveil.files.source import named
from trailveil.ledger import Book, LedgerRow, user_ledger
from trailveil.ledger.identity import ME
from trailveil.ledger.places import load_places, places_told
from trailveil.ledger.public import PUBLIC, Imported, add_public, in_words, public_places
from trailveil.ledger.relatives import finest_of, name_in, relatives_of
from trailveil.ledger.retractions import in_utc
from trailveil.report.ledger import CANNOT_KNOW, if_there, place_words, told_of
from trailveil.report.parts import count_of

EXAMPLE = """Examples:

\b
  trailveil ledger show
  trailveil ledger import posted.gpx photo.jpg
  trailveil ledger export mine.jsonl
  trailveil ledger verify"""


@click.group(epilog=EXAMPLE)
def ledger() -> None:
    """Say what was released from this machine, and what that adds up to."""


@ledger.command(epilog="Example: trailveil ledger show --subject anna")
@click.option("--subject", callback=person, metavar="NAME", help="Of one person; default: all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def show(subject: str | None, *, as_json: bool) -> None:
    """List the releases that count: when, what was protected, epsilon alone and in total.

    And of each place with a name what they tell together, and how many visits are left.
    """
    ledger = user_ledger()
    with ledger.open() as book:
        releases = [_entry(book, row) for row in book.standing(subject)]
        places = [load_place for load_place in load_places(ledger) if not load_place.gone]
        totals = [
            (whose, told_of(account))
            for whose in dict.fromkeys(release["subject"] for release in releases)
            for account in places_told(book, places, whose)
        ]
    if as_json:
        of_places = [{"subject": whose, **total} for whose, total in totals]
        shown = {"releases": releases, "places": of_places, "cannot_know": CANNOT_KNOW}
        click.echo(json.dumps(shown))
        return
    for entry in releases:
        click.echo(_line(entry))
    for whose, total in totals:
        click.echo(f"       {named(whose)}: {place_words(total)}{if_there(total)}")
    count = sum(release["public"] is None for release in releases)
    click.echo(f"{count_of(count, 'release')}. {CANNOT_KNOW}")


@ledger.command(epilog="Example: trailveil ledger export mine.jsonl")
@click.argument("output", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def export(output: Path, *, overwrite: bool) -> None:
    """Write the releases that count as JSON lines, readable by you alone.

    Times and guarantees; there are no positions in the ledger.
    """
    check_output(output, overwrite=overwrite)
    with user_ledger().open() as book:
        releases = [_entry(book, row) for row in book.standing()]
    data = "".join(f"{json.dumps(release)}\n" for release in releases).encode()
    write_atomically(output, lambda out: out.write(data), overwrite=overwrite, private=True)
    click.echo(
        f"Wrote {count_of(len(releases), 'release')} to {named(output)}. It says "
        "when you recorded what: keep it to yourself."
    )


@ledger.command(epilog="Example: trailveil ledger verify")
def verify() -> None:
    """Check that nothing in the ledger was changed, removed or cut off; exit 1 if so."""
    standing = user_ledger().verify()
    click.echo(f"The ledger is whole: {count_of(standing, 'release')} count.")


def _entry(book: Book, ledger_row: LedgerRow) -> dict[str, Any]:
    body = book.body(ledger_row.number)
    return {
        "number": ledger_row.number,
        "output": body.get("output"),
        "made_utc": in_utc(ledger_row.recorded),
        "subject": ledger_row.subject,
        "series": ledger_row.series or None,
        "begin_utc": in_utc(ledger_row.begin),
        "end_utc": in_utc(ledger_row.end),
        "mechanism": body.get("mechanism"),
        "parts": body.get("parts", []),
        "places": body.get("places", []),
        "epsilon": ledger_row.epsilon,
        "radius_m": (body.get("stated") or (None,))[0],
        "total": body.get("total"),
        "total_radius_m": body.get("radius"),
        "public": in_words(body["positions"], body["accuracy_m"])
        if ledger_row.series == PUBLIC
        else None,
        "version": (body.get("version") or {}).get("name"),
        "finest": _finest(book, ledger_row) if body.get("version") else None,
    }


def _finest(book: Book, row: LedgerRow) -> str | None:
    """The version that tells what all versions of a recording tell; None for one alone."""
    standing = book.overlapping(row.subject, row.series, row.begin, row.end)
    related = relatives_of(book, row.number, [other.number for other in standing])
    finest = finest_of(book, related) if len(related) > 1 else None
    return None if finest is None else name_in(book, finest)


def _line(release: dict[str, Any]) -> str:
    if release["public"] is not None:
        return (
            f"{release['number']:>5}  {release['made_utc'][:16]}  {named(release['subject'])}: "
            f"{release['begin_utc']} to {release['end_utc']}, public already: {release['public']}"
        )
    what = ", ".join(dict.fromkeys([*release["parts"], *release["places"]])) or release["mechanism"]
    of = "" if release["series"] is None else f" ({named(release['series'])})"
    alone, whole = (
        f" at {said(release[name])} m" if release["version"] and release[name] else ""
        for name in ("radius_m", "total_radius_m")
    )
    total = (
        "" if release["total"] is None else f", {_epsilon(release['total'])}{whole} in total then"
    )
    whose = f"{named(release['subject'])}{of}"
    begin, end = release["begin_utc"], release["end_utc"]
    end = end[11:] if end[:11] == begin[:11] else end
    if release["version"] is not None:
        what += f" (version {release['version']}"
        what += f"; all versions tell what {release['finest']} tells)" if release["finest"] else ")"
    return (
        f"{release['number']:>5}  {release['made_utc'][:16]}  {whose}: {begin} to "
        f"{end}, {what}: {_epsilon(release['epsilon'])}{alone}{total}"
    )


def _epsilon(value: float) -> str:
    return "all that can be told" if value > 1e9 else f"epsilon {said(value, 3)}"


_PLACE = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*,\s*([+-]?\d+(?:\.\d+)?)\s*")


@ledger.command(
    "import",
    epilog="Example: trailveil ledger import posted.gpx photo.jpg, or --at 46.5,-33.25 "
    "--time 2024-05-14T08:50:00Z --accuracy 50",
)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--at", "place", metavar="LAT,LON", help="A position that is public.")
@click.option("--time", "time", metavar="TIME", help="When you were there.")
@click.option(
    "--accuracy",
    type=FiniteRange(0, 1e6),
    metavar="METRES",
    help="You are within so far of each position 68 times in 100. Default: exact.",
)
@click.option("--subject", default=ME, callback=person, metavar="NAME", help="Whose they are.")
@click.option(
    "--tz", "zone", metavar="ZONE", callback=zone_named, help="Zone of times that state none."
)
def import_public(files: tuple[Path, ...], **options: Any) -> None:
    """Count positions that are public already: of tracks, of photos, or one that you state.

    The next releases reckon with them: they cut longer, or say that nothing can be hidden.
    """
    from trailveil.traces.stated_times import in_words as time_in_words

    single = options["place"] is not None
    if single != (options["time"] is not None) or single == bool(files):
        raise click.UsageError("state files, or --at LAT,LON with --time TIME")
    zone, accuracy = options["zone"], options["accuracy"] or 0.0
    imported = (
        [("the position", _stated(options["place"], options["time"], zone, accuracy))]
        if single
        else [(named(file), _read(file, zone, accuracy)) for file in files]
    )
    ledger = user_ledger()
    for name, public in imported:
        places = public_places(load_places(ledger), public)
        fresh = add_public(ledger, public, subject=options["subject"], places=places)
        begin, end = (time_in_words(int(when)) for when in (public.times.min(), public.times.max()))
        span = begin if begin == end else f"{begin} to {end}"
        state = "is counted as public now" if fresh else "was counted before"
        click.echo(f"{name} {state}: {in_words(len(public.times), accuracy)}, {span}.")
        for place in places:
            click.echo(f"It shows {named(place.name)}: that counts as told, for all visits.")
    click.echo("Later releases reckon with it. Those that are out are as they were.")


def _stated(place: str, time: str, zone: ZoneInfo | None, accuracy: float) -> Imported:
    from trailveil.traces.stated_times import time_of

    numbers = _PLACE.fullmatch(place)
    degrees = [float(number) for number in numbers.groups()] if numbers else [math.inf]
    if len(degrees) < 2 or abs(degrees[0]) > 90 or abs(degrees[1]) > 180:
        raise InvalidValue("--at must be LAT,LON such as 46.5,-33.25, got something else")
    when = np.array([time_of(time, zone)], dtype=np.int64)
    return Imported(when, np.array([degrees]), accuracy)


def _read(file: Path, zone: ZoneInfo | None, accuracy: float) -> Imported:
    """The positions of a photo or of a track."""
    from trailveil.traces.formats import (  # the ledger is shown without any format
        MOST_POINTS,
        size_of,
    )
    from trailveil.traces.formats.exif import JPEG, read_photo
    from trailveil.traces.loading import load

    with_head = bytes_of(file, size_of(MOST_POINTS))
    if not with_head.startswith(JPEG):
        trace = load(file, zone=zone)[0]
        return Imported(trace.times, trace.positions, accuracy)
    try:
        photo = read_photo(with_head, zone)
    except UnreadableInput as error:
        raise UnreadableInput(f"{named(file)}: {error}") from error
    return Imported(np.array([photo.when]), np.array([photo[1:]]), accuracy)
