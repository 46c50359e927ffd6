"""`trailveil audit --attack`: what adversaries make of a release, against what was promised."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trailveil.checks.attacks.contract import Evidence
from trailveil.checks.attacks.files import Aligned, aligned, line_of
from trailveil.checks.attacks.hypotheses import audited
from trailveil.checks.attacks.suite import (
    AttackOutcome,
    Effort,
    attacked,
    attacked_alone,
    file_as_designed,
)
from trailveil.checks.attacks.trial import Verdict
from trailveil.checks.attacks.trials import ATTACKS, MAP
from trailveil.cli.options import requested_of, selected
from trailveil.cli.waiting import waiting
from trailveil.errors import Refused
from trailveil.files.source import named
from trailveil.ledger import user_ledger
from trailveil.ledger.commit import known_places
from trailveil.release.places import Visited, shared_noise
from trailveil.release.plan import released_rows
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.report.attacks import attacks_record
from trailveil.traces.formats import read
from trailveil.traces.loading import load
from trailveil.traces.projection import MICRO
from trailveil.traces.streets.reading import streets_near
from trailveil.traces.trace import Trace

ALL, HYPOTHESES = "all", "hypotheses"
NAMES = (ALL, *ATTACKS, HYPOTHESES)


def attack(original: Path, released: Path, options: dict[str, Any]) -> dict[str, Any]:
    """What attacks make of a release, as an object of JSON. Raises Refused, as reading does."""
    names = None if ALL in options["attack"] else [n for n in options["attack"] if n != HYPOTHESES]
    hypotheses = ALL in options["attack"] or HYPOTHESES in options["attack"]
    asked = {name: options[name] for name in ("assume_utc", "every", "most")}
    trace, _ = load(original, zone=None if options["assume_utc"] else options["zone"], **asked)
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
    file = aligned(trace, read(released, most=options["most"]))
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
            "name posterior or kalman (--attack)"
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
    trace: Trace,
    request: Request,
    file: Aligned,
    names: list[str] | None,
    evidence: dict[str, Any],
) -> list[AttackOutcome]:
    fixes = file.frame.to_lattice(trace.positions) / MICRO
    view = Evidence(trace.seconds[file.rows], file.places[None])
    spans = [stretch.seconds(trace) for stretch in request.stretches]
    recorded = (trace.seconds, fixes)
    return list(attacked_alone(view, recorded, spans, request.kernel, names, **evidence))


def check_names(names: Sequence[str], *, mapped: bool) -> None:
    """Refuse, as wrong usage, an attack that is none, or one with a map where there is none."""
    if mapped and not {ALL, MAP} & set(names):
        raise click.UsageError("--streets must come with --attack map")
    if MAP in names and not mapped:
        raise click.UsageError(
            "--attack map must come with --streets FILE, got none: name a file of the streets "
            "around it, of OpenStreetMap (XML or PBF) or GeoJSON"
        )
    for name in names:
        if name not in NAMES:
            raise click.UsageError(f"--attack must be one of {', '.join(NAMES)}, got {name!r}")


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
    advice += "docs/realism.md)"
    if by == {MAP}:
        advice = "a map undoes noise: release nothing around it (--mechanism cut)"
    return Refused(
        f"no attack must come nearer than was promised, got {tried['beaten']} that did: "
        f"{named(released)}; do not publish it: {advice}"
    )
