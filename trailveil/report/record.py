"""The report of a release as one JSON-able object. It holds no true position and no drawn noise.

What a draw really moved is not in it: the size of the noise at a secret, known afterwards, would
narrow the secret down. Distances are those of the design, the same for every draw. Each entry is
described in docs/report.md.
"""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

import numpy as np

from trailveil.ledger.accounting import Account
from trailveil.privacy.guarantee import CIRCLE_68, Guarantee, mu_for
from trailveil.privacy.knowledge import TrackExposure
from trailveil.release.cutting import way, withheld
from trailveil.release.halving import leaving_half
from trailveil.release.places import Place, Visited
from trailveil.release.plan import Finding, Plan
from trailveil.release.prices import Price
from trailveil.release.request import Request
from trailveil.report import everywhere, kept
from trailveil.report.ledger import counted, past_what_was_stated, place_of
from trailveil.report.parts import guaranteed, prior_in_full, rounded_down, rounded_up, times_of
from trailveil.report.warnings import not_protected, stops_left, warnings
from trailveil.traces.activities import called
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.retiming import AS_RECORDED, Retiming
from trailveil.traces.stated_times import in_words
from trailveil.version import __version__

# Metres: who knew a place no better than this had no idea of it.
NO_IDEA = 50_000.0
# Standard deviations per coordinate within which 99 % of planar displacements are.
_PLANAR_99 = float(np.sqrt(-2 * np.log(0.01)))


def record(
    plan: Plan,
    cleaning: Cleaning | None,
    *,
    output: str,
    further: bool = False,
    zone: tzinfo | None = None,
    private: bool = True,
    retiming: Retiming = AS_RECORDED,
    keep: Sequence[str] = (),
    account: Account | None = None,
    visits: Sequence[Visited] = (),
    instead: Sequence[Price] = (),
) -> dict[str, Any]:
    """Everything that is said of a release.

    further: whether the recording was released before. zone: for local times (the computer's own
    for None). private: whether protected times, and what could tell them, are listed; a report for
    others holds the worst of all protected parts instead. retiming: what becomes of the times.
    keep: the fields that were asked for. account: with all releases before, as the ledger counts
    it. visits: the places with names. instead: what other mechanisms would cost, for the owner.
    """
    fields = kept.kept(plan, keep, retiming)
    asked = _asked(plan, visits)
    report: dict[str, Any] = {
        "trailveil": __version__,
        "output": output,
        "private": private,
        "recording": _recording(plan, cleaning, private=private),
        "target": {
            "radius_m": asked.radius,
            "epsilon": asked.epsilon,
            "order": asked.order,
            "ways": asked.ways if isinstance(asked, Place) else None,
            "leave_m": plan.request.leave if asked is plan.request else None,
            "withhold": plan.request.withhold,
            **_pace(plan),
            "uncertain_s": plan.request.uncertain,
            "steady_s": plan.request.steady,
            "time_constant_s": plan.request.slowest.time_constant,
        },
        "prior": prior_in_full(plan.request.kernel),
        "frame": {
            "latitude": plan.frame.latitude,
            "longitude": plan.frame.longitude,
            "scale_error": plan.frame.scale_error,
        },
        "times": times_of(plan.trace.times[plan.mechanism.rows], retiming),
        "adversaries": _adversaries(plan, visits),
        "mechanism": _mechanism(plan, private=private),
        "worst": _worst(plan, visits, private=private),
        "kept": fields,
        "warnings": [
            *kept.warnings(plan, fields),
            *warnings(plan, cleaning, further=further, private=private),
        ],
        "not_protected": [
            *kept.not_protected(fields),
            *not_protected(plan, private=private, retiming=retiming),
        ],
    }
    if plan.everywhere:
        report["everywhere"] = everywhere.left(plan)
    elif private:
        report["mechanism"] |= _of_design(plan)
        report["secrets"] = [_secret(finding, zone) for finding in plan.findings]
        report["designs"] = [design.proof for design in plan.designs]
        report["instead"] = [_price(price) for price in instead]
    if private:
        report["warnings"] += [] if account is None else past_what_was_stated(account.places)
        report |= _for_the_owner(plan, visits, account)
    return report


def _for_the_owner(
    plan: Plan, visits: Sequence[Visited], account: Account | None
) -> dict[str, Any]:
    """What is told of stops, of places with names, and of all releases together."""
    return {
        "stops": stops_left(plan),
        "places": [place_of(plan, visited) for visited in visits],
        "ledger": None
        if account is None
        else counted(account, plan.request.radius, plan.request.order),
    }


def _of_design(plan: Plan) -> dict[str, Any]:
    """What depends on which parts are protected."""
    gaps = [design.gap for design in plan.designs]
    return {
        "parts": len(plan.findings),
        "components": plan.components,
        "gap": max(gaps) if gaps else None,
        "half_with": list(leaving_half(plan.trace, plan.request, plan.common)),
        "grid_deg": plan.grid.released_step,
    }


def _price(price: Price) -> dict[str, Any]:
    return {
        "mechanism": price.method.value,
        "released_fixes": price.released_fixes,
        "withheld_fixes": price.withheld_fixes,
        "withheld_min": price.minutes,
        "withheld_km": price.kilometres,
        "rms_m": price.moved,
        "within_min": price.within / 60,
    }


def _pace(plan: Plan) -> dict[str, Any]:
    """The pace that is reckoned with, and whether the recording states the activity it is of."""
    paces = plan.request.paces
    stated = plan.trace.activity
    activity = called(paces.end.speed, paces.middle.speed, stated)
    return {
        "floor_m_s": paces.end.speed,
        "floor_middle_m_s": paces.middle.speed,
        "activity": activity or None,
        "activity_in_file": bool(activity) and activity == stated,
    }


def _recording(plan: Plan, cleaning: Cleaning | None, *, private: bool) -> dict[str, Any]:
    """How much was recorded. How much is hidden of it would tell others how long a stay was."""
    if _hidden_count(plan, private=private):
        released = int(plan.mechanism.rows.size)
        return {"fixes": released, "cleaning": {}, "cleaning_in_words": []}
    return {
        "fixes": len(plan.trace),
        "cleaning": cleaning.counts() if cleaning else {},
        "cleaning_in_words": list(cleaning.sentences()) if cleaning else [],
    }


def _asked(plan: Plan, visits: Sequence[Visited]) -> Request | Place:
    """What was asked for: of the weakest of the places where nothing else is protected."""
    if plan.findings or plan.everywhere or not visits:
        return plan.request
    return max(
        (visited.place for visited in visits),
        key=lambda visited: visited.epsilon / visited.radius**2,
    )


def _adversaries(plan: Plan, visits: Sequence[Visited]) -> list[str]:
    if plan.everywhere:
        return everywhere.adversaries(plan)
    if not plan.findings:
        return list(
            dict.fromkeys(x.adversary for visited in visits for x in visited.place.noise.exposures)
        )
    return list(
        dict.fromkeys(exposure.adversary for part in plan.findings for exposure in part.exposures)
    )


def _hidden_count(plan: Plan, *, private: bool) -> bool:
    """Whether the number of fixes that are left out is for the owner alone."""
    return not private and not plan.everywhere and plan.mechanism.rows.size < len(plan.trace)


def _mechanism(plan: Plan, *, private: bool) -> dict[str, Any]:
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


def _worst(plan: Plan, visits: Sequence[Visited], *, private: bool) -> dict[str, Any]:
    """The part that loses most; for others what was asked for, which is at least as bad."""
    if plan.everywhere:
        return _meaning(*everywhere.promise(plan))
    if not plan.findings:
        asked = _asked(plan, visits)
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


def _meaning(guarantee: Guarantee, deviation: float) -> dict[str, Any]:
    return {**guaranteed(guarantee), "circle_68_m": _circle(deviation)}


def _secret(finding: Finding, zone: tzinfo | None) -> dict[str, Any]:
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
        "cut_s": finding.cut,
        "reckoned_with": finding.together,
        "exposures": [_exposure(finding, exposure) for exposure in finding.exposures],
    }


def _exposure(finding: Finding, track_exposure: TrackExposure) -> dict[str, Any]:
    """What one adversary loses at most, and the least it is left with and knew before."""
    share = (track_exposure.loss / max(each.loss for each in finding.exposures)) ** 0.5
    before = CIRCLE_68 * track_exposure.prior
    return {
        "adversary": track_exposure.adversary,
        "epsilon": Guarantee(finding.guarantee.mu * share, finding.guarantee.order).epsilon,
        "circle_68_m": _circle(track_exposure.posterior),
        "circle_68_before_m": before if before < NO_IDEA else None,
    }


def _circle(deviation: float | None) -> float | None:
    """The radius that holds 68 %; None for none, and for no end of it: JSON has no infinity."""
    return None if deviation is None or not np.isfinite(deviation) else CIRCLE_68 * deviation
