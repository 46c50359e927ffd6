"""`trailveil audit ORIGINAL RELEASED`: does a released file give away what it must not?"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from trailveil.checks.attacks.files import aligned
from trailveil.checks.scan import scan
from trailveil.checks.utility import CELL, compare, together
from trailveil.cli.options import (
    EVERY,
    SELECTING,
    WithPlaces,
    requesting,
    selected,
    selecting,
    was_given,
)
from trailveil.cli.parameters import POSITIVE, FiniteRange, most_option, zone_named
from trailveil.cli.waiting import waiting
from trailveil.errors import Refused
from trailveil.files.source import load as bytes_of
from trailveil.files.source import named
from trailveil.report.audit import (
    audit_record,
    audit_text,
    together_record,
    together_text,
    utility_record,
    utility_text,
)
from trailveil.traces.fields import ALL
from trailveil.traces.formats import read, size_of
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.loading import load
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Trace

EXAMPLE = """Examples:

\b
  trailveil audit ride.gpx ride.private.gpx
  trailveil audit ride.gpx clinic.gpx --between 08:10 08:45 --tz Europe/Berlin
  trailveil audit ride.csv ride.private.csv --keep heart_rate --json
  trailveil audit ride.gpx ride.private.gpx --attack all --radius 300
  trailveil audit ride.gpx ride.private.gpx --attack map --streets town.osm.pbf
  trailveil audit ride.gpx ride.private.gpx --utility

State what was protected, and how, as protect was told it: both ends, unless you say --no-ends."""


FOR_ATTACKS = {
    "tracks": "--track",
    "streets": "--streets",
    "draws": "--draws",
    "radius": "--radius",
    "epsilon": "--epsilon",
    "order": "--order",
    "leave": "--leave",
    "withhold": "--withhold",
    "who": "--adversary",
    "prior": "--prior",
    "mechanism": "--mechanism",
}
"""The options that say how a release was made, which nothing but attacks depends on."""


@click.command(cls=WithPlaces, epilog=EXAMPLE)
@click.argument("original", type=click.Path(path_type=Path))
@click.argument("released", type=click.Path(path_type=Path))
@selecting
@click.option(
    "--keep",
    multiple=True,
    metavar="FIELD",
    help="Released on purpose: all, or a field by its name in the released file; may be repeated.",
)
@click.option(
    "--tz",
    "zone",
    metavar="ZONE",
    callback=zone_named,
    help="Zone of clock times, and of times without one.",
)
@most_option
@click.option("--assume-utc", is_flag=True, help="Read times without a zone as UTC.")
@click.option(
    "--every", type=POSITIVE, metavar="SECONDS", help="The original has no times: see protect."
)
@click.option(
    "--attack",
    multiple=True,
    metavar="NAME",
    help="Attack the release besides: all, or one of the attacks in docs; may be repeated.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=100, max=100_000),
    default=999,
    show_default=True,
    help="For --attack: recordings and releases that are tried.",
)
@click.option(
    "--track",
    "tracks",
    multiple=True,
    type=click.Path(path_type=Path),
    help="For --attack: an earlier recording of the same ways; may be repeated.",
)
@click.option(
    "--streets",
    type=click.Path(path_type=Path),
    help="For --attack map: the streets around it, of OpenStreetMap (XML, PBF) or GeoJSON.",
)
@requesting
@click.option(
    "--utility", is_flag=True, help="Say besides what the release is still good for; also folders."
)
@click.option(
    "--cell",
    type=FiniteRange(min=1, max=100_000),
    default=CELL,
    show_default=True,
    metavar="METRES",
    help="For --utility of folders: how wide cells of the map are.",
)
@click.option("--show", is_flag=True, help="Print some of the leaked values, for you alone.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def audit(**options: Any) -> None:
    """Look for anything of ORIGINAL in RELEASED that must not leave: places, names, numbers.

    One line for each leak says what, where in the released file and how many, and not which. With
    --attack, a table of how near attacks come to what is protected, against what was promised.

    Exit status: 0 nothing found, 1 a leak, a promise that was beaten, or a file that cannot be
    read.
    """
    original, released = options["original"], options["released"]
    if options["everywhere"] and any(options[name] for name in (*SELECTING, "no_ends")):
        raise click.UsageError("--everywhere must come alone: it is every fix")
    if check_folders(original, released, options):
        record = utility_of_folders(original, released, options)
        click.echo(json.dumps(record) if options["as_json"] else together_text(record["utility"]))
        return
    chosen, beaten = selected(options), None
    for name in () if options["attack"] else FOR_ATTACKS:
        if was_given(name):
            raise click.UsageError(f"{FOR_ATTACKS[name]} must come with --attack")
    if options["attack"]:
        from trailveil.cli.attacking import check_names

        check_names(options["attack"], mapped=options["streets"] is not None)
    with waiting("comparing two files"):
        scanned = scan(
            (str(original), bytes_of(original, size_of(options["most"]))),
            (str(released), bytes_of(released, size_of(options["most"]))),
            None if options["everywhere"] else chosen,
            keep=(*ALL, *options["keep"]) if EVERY in options["keep"] else options["keep"],
            assume_utc=options["assume_utc"],
            zone=None if options["assume_utc"] else options["zone"],
            every=options["every"],
            most=options["most"],
        )
    record = audit_record(scanned, show=options["show"])
    words = audit_text(record)
    if options["utility"]:
        more = utility_of(original, released, options)
        record, words = record | more, f"{words}\n{utility_text(more['utility'])}"
    if options["attack"]:
        from trailveil.cli.attacking import attack, refusal
        from trailveil.report.attacks import attacks_text

        tried = attack(original, released, options)
        beaten = refusal(tried, released)
        record, words = record | tried, f"{words}\n{attacks_text(tried)}"
    click.echo(json.dumps(record) if options["as_json"] else words)
    if not scanned.clean:
        raise Refused(
            f"a released file must hold nothing else of its original, got {len(scanned.leaks)} "
            f"kinds of leaks: {named(released)}; do not publish it, and look where each comes from"
        )
    if beaten:
        raise beaten


_PRIVATE = ".private"


def utility_of(original: Path, released: Path, options: dict[str, Any]) -> dict[str, Any]:
    """One trace before and after, as an object of JSON. Raises Refused, as reading does."""
    return {"utility": utility_record(compare(*_pair(original, released, options)))}


def utility_of_folders(original: Path, released: Path, options: dict[str, Any]) -> dict[str, Any]:
    """All traces of two folders, as an object of JSON. Raises Refused where none has a release."""
    pairs = list(_pairs(original, released))
    if not pairs:
        raise Refused(
            f"a folder of releases must have files called as their originals, got none: "
            f"{named(released)}; walk.private.gpx, or walk.gpx, is taken for a release of walk.gpx"
        )
    with waiting(f"comparing {len(pairs)} pairs of files"):
        compared = together((_pair(*pair, options) for pair in pairs), options["cell"])
    return {"utility": together_record(compared, options["cell"])}


def check_folders(original: Path, released: Path, options: dict[str, Any]) -> bool:
    """Whether both are folders, which only the figures of utility are about."""
    if not (original.is_dir() and released.is_dir()):
        return False
    if not options["utility"]:
        raise click.UsageError("two folders must come with --utility")
    if options["attack"]:
        raise click.UsageError("--attack must be on one recording, not on folders")
    return True


def _pair(original: Path, released: Path, options: dict[str, Any]) -> tuple[Trace, Trace]:
    """A trace and its release, which is told the times of the original."""
    asked = {name: options[name] for name in ("assume_utc", "every", "most")}
    trace, _ = load(original, zone=None if options["assume_utc"] else options["zone"], **asked)
    file = aligned(trace, read(released, most=options["most"]))
    lattice = (file.places * MICRO).round().astype("int64")
    positions = file.frame.to_degrees(lattice) / MICRO
    return trace, Trace(trace.times[file.rows], positions, trace.segments[file.rows], trace.tracks)


def _pairs(original: Path, released: Path) -> Iterator[tuple[Path, Path]]:
    """Files of two folders that are called alike."""
    suffixes = {suffix for row in FORMATS for suffix in row.suffixes}
    known = {
        path.relative_to(original).with_suffix(""): path
        for path in sorted(original.rglob("*"))
        if path.suffix.lower() in suffixes and not path.stem.endswith(_PRIVATE)
    }
    for path in sorted(released.rglob("*")):
        if path.suffix.lower() in suffixes:
            below = path.relative_to(released).with_suffix("")
            source = known.get(below.with_name(below.name.removesuffix(_PRIVATE)))
            if source is not None and source != path:
                yield source, path
