"""`trailveil audit ORIGINAL RELEASED`: does a released file give away what it must not?"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trailveil.checks.attacks.contract import Evidence
from trailveil.checks.attacks.files import Aligned, aligned, line_of
from trailveil.checks.attacks.hypotheses import audited
from trailveil.checks.attacks.registry import ATTACKS, Needs, needing
from trailveil.checks.attacks.suite import (
    AttackOutcome,
    Effort,
    Verdict,
    attacked,
    attacked_alone,
    file_as_designed,
)
from trailveil.checks.scan import scan
from trailveil.checks.utility import CELL, compare, together
from trailveil.cli.options import (
    EVERY,
    SELECTING,
    WithPlaces,
    naive_zone,
    requested_of,
    requesting,
    selected,
    selecting,
    timing,
    was_given,
)
from trailveil.cli.parameters import FiniteRange, most_option
from trailveil.cli.waiting import waiting
from trailveil.errors import Refused
from trailveil.files.source import load as bytes_of
from trailveil.files.source import named
from trailveil.ledger import user_ledger
from trailveil.ledger.commit import known_places, visits_known
from trailveil.release.places import Visited, shared_noise
from trailveil.release.plan import released_rows
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.report.audit import (
    attacks_record,
    attacks_text,
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
from trailveil.traces.streets.reading import streets_near
from trailveil.traces.trace import Trace

HYPOTHESES = "hypotheses"
NAMES = (*ATTACKS, HYPOTHESES)
MAPPED = needing(Needs.STREETS)

EXAMPLE = """Examples:

\b
  trailveil audit ride.gpx ride.private.gpx
  trailveil audit ride.gpx clinic.gpx --between 08:10 08:45 --tz Europe/Berlin
  trailveil audit ride.csv ride.private.csv --keep heart_rate --json
  trailveil audit ride.gpx ride.private.gpx --attack all --radius 300
  trailveil audit ride.gpx ride.private.gpx --attack map --streets town.osm.pbf
  trailveil audit ride.gpx ride.private.gpx --utility

State what was protected, and how, as protect was told it: both ends, unless you say --no-ends."""
ATTACKERS = "\n".join(
    [
        "\b\nAttacks, and what the attacker does or knows:",
        *(f"  {row.name}: {row.attacker}" for row in ATTACKS.values()),
        f"  {HYPOTHESES}: tells two places apart, from whole releases of either",
    ]
)


FOR_ATTACKS = {
    "tracks": "--track",
    "streets": "--streets",
    "draws": "--draws",
}
"""What only attacks take. What `protect` takes may be repeated here, if it is needed or not."""


@click.command(cls=WithPlaces, epilog=f"{EXAMPLE}\n\n{ATTACKERS}")
@click.argument("original", type=click.Path(path_type=Path))
@click.argument("released", type=click.Path(path_type=Path))
@selecting
@click.option(
    "--keep",
    multiple=True,
    metavar="FIELD",
    help="Released on purpose: all, or a field by its name in the released file; may be repeated.",
)
@timing
@most_option
@click.option(
    "--attack",
    multiple=True,
    metavar="NAME",
    help=f"Attack the release besides, by {EVERY} or {', '.join(NAMES)}; may be repeated.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=100, max=100_000),
    default=999,
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
        check_names(options["attack"], mapped=options["streets"] is not None)
    with waiting("comparing two files"):
        scanned = scan(
            (str(original), bytes_of(original, size_of(options["most"]))),
            (str(released), bytes_of(released, size_of(options["most"]))),
            None if options["everywhere"] else chosen,
            keep=(*ALL, *options["keep"]) if EVERY in options["keep"] else options["keep"],
            assume_utc=options["assume_utc"],
            zone=naive_zone(options),
            every=options["every"],
            most=options["most"],
            visits=lambda trace: visits_known(user_ledger(), trace),
        )
    record = audit_record(scanned, show=options["show"])
    words = audit_text(record)
    if options["utility"]:
        more = utility_of(original, released, options)
        record, words = record | more, f"{words}\n{utility_text(more['utility'])}"
    if options["attack"]:
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


def _aligned(original: Path, released: Path, options: dict[str, Any]) -> tuple[Trace, Aligned]:
    """A trace, and the release beside it."""
    asked = {name: options[name] for name in ("assume_utc", "every", "most")}
    trace, _ = load(original, zone=naive_zone(options), **asked)
    return trace, aligned(trace, read(released, most=options["most"]))


def _pair(original: Path, released: Path, options: dict[str, Any]) -> tuple[Trace, Trace]:
    """A trace and its release, which is told the times of the original."""
    trace, file = _aligned(original, released, options)
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


def attack(original: Path, released: Path, options: dict[str, Any]) -> dict[str, Any]:
    """What attacks make of a release, as an object of JSON. Raises Refused, as reading does."""
    listed, every = options["attack"], EVERY in options["attack"]
    names = None if every else [name for name in listed if name != HYPOTHESES]
    hypotheses = every or HYPOTHESES in listed
    trace, file = _aligned(original, released, options)
    stated = requested_of(options)
    everywhere = stated.method is Method.EVERYWHERE
    visits = known_places(user_ledger(), trace)
    request = stated if everywhere else requested(trace, selected(options), stated, visits)
    if visits and not everywhere and not request.stretches:
        raise Refused(
            "an attack must be on parts that have noise of their own, got none but places with "
            "names: attacks on these are over all rides (docs/recurring-places.md); plain audit "
            "still tells what else the file gives away"
        )
    tracks = [line_of(read(path), file.frame) for path in options["tracks"]]
    streets = None
    if options["streets"] is not None:
        streets = streets_near(options["streets"], file.frame, trace.positions)
    evidence: dict[str, Any] = {"tracks": tracks, "streets": streets}
    plan, places = None, None
    if _may_be_of(request, trace, file, visits):
        with waiting(f"designing noise for {len(trace)} fixes"):
            # What it shares with other releases is drawn anew like the rest.
            plan = replace(protect(trace, request, places=visits), common=())
        places = file.as_designed(plan.mechanism.rows)
    if plan is None or places is None:
        with waiting("attacking"):
            outcomes = _alone(trace, request, file, names, evidence)
        click.echo(
            f"{named(released)} releases other fixes than this design would, so what is promised "
            "of it is not known: state the options that protect was given.",
            err=True,
        )
        if all(outcome.file is None for outcome in outcomes):
            raise Refused(
                f"an attack must have something to go by, got none that has: {named(released)}; "
                "name others (--attack), or state the options that protect was given"
            )
        return attacks_record(outcomes, [], ())
    effort = Effort(recordings=options["draws"])
    with waiting("attacking"):
        outcomes = list(attacked(plan, names, file=places, effort=effort, **evidence))
        audits = list(audited(plan, options["draws"])) if hypotheses and not everywhere else []
    if not outcomes and not audits:
        raise Refused(
            "an attack must be one that is tried on such a release, got none: with --everywhere "
            f"name {' or '.join(row.name for row in ATTACKS.values() if row.everywhere)} (--attack)"
        )
    return attacks_record(outcomes, audits, file_as_designed(plan, places))


def _may_be_of(request: Request, trace: Trace, file: Aligned, visits: Sequence[Visited]) -> bool:
    """Whether a file may be of a design, by which fixes it has: known before it is designed."""
    try:
        common = shared_noise(visits, trace, request.method)
        released = released_rows(trace, request, common)
    except Refused:
        return False
    return file.as_designed(released) is not None


def _alone(
    trace: Trace, request: Request, file: Aligned, names: list[str] | None, evidence: dict[str, Any]
) -> list[AttackOutcome]:
    fixes = file.frame.to_lattice(trace.positions) / MICRO
    view = Evidence(trace.seconds[file.rows], file.places[None])
    spans = [stretch.seconds(trace) for stretch in request.stretches]
    recorded = (trace.seconds, fixes)
    return list(attacked_alone(view, recorded, spans, request.kernel, names, **evidence))


def check_names(names: Sequence[str], *, mapped: bool) -> None:
    """Refuse, as wrong usage, an attack that is none, or one with a map where there is none."""
    if mapped and not {EVERY, *MAPPED} & {*names}:
        raise click.UsageError(f"--streets must come with --attack {' or '.join(MAPPED)}")
    for name in names:
        if name in MAPPED and not mapped:
            raise click.UsageError(
                f"--attack {name} must come with --streets FILE, got none: name a file of the "
                "streets around it, of OpenStreetMap (XML or PBF) or GeoJSON"
            )
        if name not in (EVERY, *NAMES):
            known = ", ".join((EVERY, *NAMES))
            raise click.UsageError(f"--attack must be one of {known}, got {name!r}")


def refusal(tried: dict[str, Any], released: Path) -> Refused | None:
    """What is said, loudly, where a promise was beaten; None where none was."""
    if not all(noise["as_designed"] for noise in tried["noise"]):
        return Refused(
            f"the noise of a released file must be that of its design, got other noise: "
            f"{named(released)}; nothing is promised of it: do not publish it, or state the "
            "options that protect was given"
        )
    if not tried["beaten"]:
        return None
    wrong = (Verdict.BEATEN, Verdict.CLOSER)
    by = {attack["attack"] for attack in tried["attacks"] if attack["verdict"] in wrong}
    advice = "ask for more (--radius), or for a prior of how this person moves (--prior; see "
    advice += "docs/validation.md)"
    if by and by <= {*MAPPED}:
        advice = "a map undoes noise: release nothing around it (--mechanism cut)"
    return Refused(
        f"no attack must come nearer than was promised, got {tried['beaten']} that did: "
        f"{named(released)}; do not publish it: {advice}"
    )
