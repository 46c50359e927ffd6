"""`trailveil audit --utility`: what a release, or many, are still good for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from trailveil.checks.attacks.files import aligned
from trailveil.checks.utility import compare, together
from trailveil.cli.waiting import waiting
from trailveil.errors import Refused
from trailveil.files.source import named
from trailveil.report.utility import together_record, utility_record
from trailveil.traces.formats import read
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.loading import load
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Trace

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
