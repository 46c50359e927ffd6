"""The report of a release as one JSON-able object. It holds no true position and no drawn noise.

What a draw really moved is not in it: the size of the noise at a secret, known afterwards, would
narrow the secret down. Distances are those of the design, the same for every draw. Each entry is
described in docs/report.md.
"""

import math
from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trailveil.ledger.accounting import Account
from trailveil.ledger.retractions import Retraction, listed_files
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.guarantee import CIRCLE_68, Guarantee, mu_for
from trailveil.release.cutting import way, withheld
from trailveil.release.places import Place
from trailveil.release.plan import Finding, Plan
from trailveil.release.prices import Price
from trailveil.release.protect import leaving_half
from trailveil.release.public import Position
from trailveil.release.request import Method, Request
from trailveil.report import everywhere, schema
from trailveil.report.ledger import counted, past_what_was_stated, place_of
from trailveil.report.owner_warnings import heed, slowest_way
from trailveil.report.parts import guaranteed, prior_in_full, rounded_down, rounded_up, times_of
from trailveil.report.warnings import not_protected, warnings
from trailveil.traces.activities import called
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.fields import FIELDS, NAME, TYPE
from trailveil.traces.retiming import AS_RECORDED, Retiming
from trailveil.traces.stated_times import in_words
from trailveil.version import __version__

if TYPE_CHECKING:  # traces are released without it
    from trailveil.release.readings_release import ReadingsPlan

# Metres: who knew a place no better than this had no idea of it.
NO_IDEA = 50_000.0
# Standard deviations per coordinate within which 99 % of planar displacements are.
_PLANAR_99 = float(np.sqrt(-2 * np.log(0.01)))

# What is of a track and not of its fixes, and what it tells.
_OF_TRACKS = {
    NAME: "it is what somebody wrote, and can name a place, a person or a day",
    TYPE: "it tells how you moved, in one word",
}


def record(
    plan: "Plan | ReadingsPlan",
    cleaning: Cleaning | None,
    *,
    output: str,
    further: bool = False,
    zone: tzinfo | None = None,
    private: bool = True,
    retiming: Retiming = AS_RECORDED,
    keep: Sequence[str] = (),
    account: Account | None = None,
    retracted: Sequence[Retraction] = (),
    public: Sequence[Position] = (),
    instead: Sequence[Price] = (),
) -> schema.ReleaseReport:
    """Everything that is said of a release; of readings under names of their own.

    further: whether the recording was released before. zone: for local times (the computer's own
    for None). private: whether protected times, and what could tell them, are listed; a report for
    others holds the worst of all protected parts instead. retiming: what becomes of the times.
    keep: the fields that were asked for. account: with all releases before, as the ledger counts
    it. retracted: the releases that it stands for, which count no more. public: what is
    public already around it. instead: what other mechanisms would cost, for the owner.
    """
    if not isinstance(plan, Plan):
        from trailveil.report.readings import record_readings

        how: dict[str, Any] = {"further": further, "zone": zone, "private": private}
        about = record_readings(plan, cleaning, output=output, retiming=retiming, **how)
        taken = {"retracted": list(retracted)} if private else {}
        return cast(schema.ReleaseReport, {**about, **taken})
    fields = _kept_fields(plan, keep, retiming)
    report: schema.ReleaseReport = {
        "trailveil": __version__,
        "output": output,
        "private": private,
        "recording": _recording(plan, cleaning, private=private),
        "target": _target(plan),
        "prior": prior_in_full(plan.request.kernel),
        "frame": {
            "latitude": plan.frame.latitude,
            "longitude": plan.frame.longitude,
            "scale_error": plan.frame.scale_error,
        },
        "times": times_of(plan.trace.times[plan.mechanism.rows], retiming),
        "adversaries": _adversaries(plan),
        "mechanism": _mechanism(plan, private=private),
        "worst": _worst(plan, private=private),
        "kept": fields,
        "warnings": warnings(plan, cleaning, fields, further=further, private=private),
        "not_protected": not_protected(plan, fields, private=private, retiming=retiming),
    }
    if plan.everywhere:
        report["everywhere"] = everywhere.left(plan)
        report["mechanism"]["grid_deg"] = plan.grid.released_step
    elif private:
        report["mechanism"] = {**report["mechanism"], **_of_design(plan)}
        report["secrets"] = [_secret(plan, finding, zone) for finding in plan.findings]
        report["designs"] = [design.proof for design in plan.designs]
        report["instead"] = [_price(price) for price in instead]
    if private:
        report["warnings"] += [] if account is None else past_what_was_stated(account.places)
        report["heed"] = heed(plan)
        report["places"] = [place_of(plan, visited) for visited in plan.visited]
        report["ledger"] = None if account is None else counted(account)
        report["public"] = _public(plan, public, zone)
        report["retracted"] = list(retracted)
        if retracted:
            report["warnings"].append(
                f"You took back {listed_files(retracted, len(retracted))}: delete each file that "
                "this run did not replace."
            )
    return report


def _kept_fields(plan: Plan, asked: Sequence[str], retiming: Retiming) -> list[schema.KeptField]:
    """The fields that were asked for: whether any fix states them, how many released ones do."""
    rows = plan.mechanism.rows
    rows = rows[retiming.kept(plan.trace.times[rows])]
    stated = {name: np.isfinite(values) for name, values in plan.trace.fields}
    for name, texts in ((NAME, plan.trace.names), (TYPE, plan.trace.types)):
        if texts:
            owners = np.array(plan.trace.tracks)[plan.trace.segments]
            stated[name] = np.array([bool(text) for text in texts])[owners]
    return [
        {
            "field": name,
            "unit": None if name in _OF_TRACKS else FIELDS[name].unit,
            "recorded": name in stated,
            "fixes": int(stated[name][rows].sum()) if name in stated else 0,
            "tells": _OF_TRACKS.get(name) or FIELDS[name].tells,
        }
        for name in asked
    ]


def _of_design(plan: Plan) -> schema.OfDesign:
    """What depends on which parts are protected."""
    gaps = [design.gap for design in plan.designs]
    return {
        "parts": len(plan.findings),
        "components": plan.components,
        "gap": max(gaps) if gaps else None,
        "half_with": list(leaving_half(plan.trace, plan.request, plan.common, slowest_way(plan))),
        "grid_deg": plan.grid.released_step,
    }


def _price(price: Price) -> schema.PriceReport:
    return {
        "mechanism": price.method.value,
        "released_fixes": price.released_fixes,
        "withheld_fixes": price.withheld_fixes,
        "withheld_min": price.minutes,
        "withheld_km": price.kilometres,
        "rms_m": price.moved,
        "within_min": price.within / 60,
    }


def _target(plan: Plan) -> schema.TargetReport:
    """What was asked for, and whether the recording states the activity it is of."""
    asked, request, stated = _asked(plan), plan.request, plan.trace.activity
    end, middle = request.paces.end.speed, request.paces.middle.speed
    activity = called(end, middle, stated)
    return {
        "radius_m": asked.radius,
        "epsilon": asked.epsilon,
        "order": asked.order,
        "ways": asked.ways if isinstance(asked, Place) else None,
        "leave_m": request.leave if asked is request else None,
        "withhold": request.withhold,
        "floor_m_s": end,
        "floor_middle_m_s": middle,
        "activity": activity or None,
        "activity_in_file": bool(activity) and activity == stated,
        "uncertain_s": request.uncertain,
        "steady_s": request.steady,
        "time_constant_s": request.slowest.time_constant,
    }


def _recording(plan: Plan, cleaning: Cleaning | None, *, private: bool) -> schema.RecordingReport:
    """How much was recorded. How much is hidden of it would tell others how long a stay was."""
    if _hidden_count(plan, private=private):
        released = int(plan.mechanism.rows.size)
        return {"fixes": released, "cleaning": {}, "cleaning_in_words": []}
    return {
        "fixes": len(plan.trace),
        "cleaning": cleaning.counts() if cleaning else {},
        "cleaning_in_words": list(cleaning.sentences()) if cleaning else [],
    }


def _asked(plan: Plan) -> Request | Place:
    """What was asked for: of the weakest of the places where nothing else is protected."""
    if plan.findings or plan.everywhere or not plan.visited:
        return plan.request
    places: list[Place] = [visited.place for visited in plan.visited]
    return max(places, key=lambda place: place.epsilon / place.radius**2)


def _adversaries(plan: Plan) -> list[str]:
    if plan.everywhere:
        return everywhere.adversaries(plan)
    groups = [part.exposures for part in plan.findings]
    groups = groups or [visited.place.noise.exposures for visited in plan.visited]
    return list(dict.fromkeys(exposure.adversary for group in groups for exposure in group))


def _hidden_count(plan: Plan, *, private: bool) -> bool:
    """Whether the number of fixes that are left out is for the owner alone."""
    return not private and not plan.everywhere and plan.mechanism.rows.size < len(plan.trace)


def _mechanism(plan: Plan, *, private: bool) -> schema.NoiseReport:
    """The noise of the design. How much it is tells when, to who can design it, too."""
    mechanism = plan.mechanism
    released = int(mechanism.rows.size)
    stated = private or bool(plan.everywhere)
    hidden = _hidden_count(plan, private=private)
    return {
        "name": plan.request.method.value,
        "withheld_min": withheld(plan.trace.seconds, mechanism.rows) / 60 if stated else None,
        "withheld_km": withheld(way(plan.lattice), mechanism.rows) / 1000 if private else None,
        "released_fixes": released,
        "withheld_fixes": None if hidden else len(plan.trace) - released,
        "rms_m": float(np.sqrt(2) * mechanism.rms) if stated else None,
        "largest_rms_m": float(np.sqrt(2) * mechanism.max_std) if stated else None,
        "largest_99_m": _PLANAR_99 * mechanism.max_std if stated else None,
        "independent_m": float(np.sqrt(np.max(mechanism.independent_variances, initial=0.0))),
    }


def _worst(plan: Plan, *, private: bool) -> schema.Meaning:
    """The part that loses most; for others what was asked for, which is at least as bad."""
    if plan.everywhere:
        return _meaning(*everywhere.promise(plan))
    if not plan.findings:
        asked = _asked(plan)
        mu = mu_for(asked.epsilon, asked.order)
        return _meaning(Guarantee(mu, asked.order), asked.radius / mu)
    guarantee, deviation = plan.worst
    if private:
        return _meaning(guarantee, deviation)
    request = plan.request
    if request.leave is not None:
        mu = rounded_up(guarantee.mu)
        return _meaning(Guarantee(mu, request.order), request.leave / CIRCLE_68)
    mu = request.radius * request.scale * float(np.sqrt(request.bound))
    # What was asked for tells nothing of the parts; less than that would.
    asked = request.bound**-0.5 / request.wide
    least = asked if deviation >= asked else rounded_down(deviation)
    return _meaning(Guarantee(mu, request.order), least)


def _meaning(guarantee: Guarantee, deviation: float) -> schema.Meaning:
    return {**guaranteed(guarantee), "circle_68_m": _circle(deviation)}


def _secret(plan: Plan, finding: Finding, zone: tzinfo | None) -> schema.PartReport:
    stretch = finding.stretch
    return {
        "kind": "stay" if stretch.is_stay else "time",
        "label": stretch.label,
        "chosen_by_place": stretch.by_place,
        "begin_utc": in_words(stretch.begin),
        "end_utc": in_words(stretch.end),
        "begin_local": in_words(stretch.begin, zone),
        "end_local": in_words(stretch.end, zone),
        "begin_ns": stretch.begin,
        "end_ns": stretch.end,
        "sides": finding.sides,
        "fixes": finding.fixes,
        "withheld": finding.withheld,
        **_meaning(finding.guarantee, finding.deviation),
        "circle_68_joint_m": _circle(_joint(plan, finding)),
        "cut_s": finding.cut,
        "reckoned_with": finding.together,
        "exposures": [_exposure(finding, exposure) for exposure in finding.exposures],
    }


def _public(plan: Plan, public: Sequence[Position], zone: tzinfo | None) -> schema.PublicReport:
    """What is public already: what makes a cut longer, and how much tells nothing more."""
    return {
        "counted": [
            {"when_local": in_words(when, zone), "known_to_m": CIRCLE_68 * deviation}
            for when, deviation in plan.request.public
        ],
        "besides": len({*public} - {*plan.request.public}),
    }


def _joint(plan: Plan, finding: Finding) -> float:
    """Metres per coordinate that a stranger is left with of the place that a part may be at.

    All cuts of what may be the place of both ends tell of it together: as `Plan.worst` adds up.
    """
    if plan.request.method is not Method.CUT or finding.together == 1:
        return finding.deviation
    alike = [part for part in plan.findings if part.together > 1]
    return math.hypot(*(1 / part.deviation for part in alike)) ** -1


def _exposure(finding: Finding, exposure: Exposure) -> schema.AdversaryReport:
    """What one adversary loses at most, and the least it is left with and knew before."""
    share = (exposure.loss / max(each.loss for each in finding.exposures)) ** 0.5
    before = CIRCLE_68 * exposure.prior
    return {
        "adversary": exposure.adversary,
        "epsilon": Guarantee(finding.guarantee.mu * share, finding.guarantee.order).epsilon,
        "circle_68_m": _circle(exposure.posterior),
        "circle_68_before_m": before if before < NO_IDEA else None,
    }


def _circle(deviation: float | None) -> float | None:
    """The radius that holds 68 %; None for none, and for no end of it: JSON has no infinity."""
    return None if deviation is None or not np.isfinite(deviation) else CIRCLE_68 * deviation
