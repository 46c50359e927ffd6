"""`trailveil ledger show|export|verify`: what was released, and what it adds up to."""

import json
from pathlib import Path
from typing import Any

import click

from trailveil.cli.ledger_import import import_public
from trailveil.cli.parameters import person
from trailveil.errors import said
from trailveil.files.output import check_output, write_atomically
from trailveil.files.source import named
from trailveil.ledger import Book, LedgerRow, user_ledger
from trailveil.ledger.places import load_places, places_told
from trailveil.ledger.public import PUBLIC, in_words
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


ledger.add_command(import_public)


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
