"""The report of a release of readings as one object. It holds no reading.

Entries mean what those of trailveil.report.record do, in the unit of the readings.
"""

from datetime import tzinfo
from typing import Any

import numpy as np

from trailveil.privacy.guarantee import Guarantee
from trailveil.release.readings_release import ReadingsFinding, ReadingsPlan
from trailveil.report.parts import guaranteed, prior_in_full, rounded_down, times_of
from trailveil.report.schema import READER
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.retiming import Retiming
from trailveil.traces.stated_times import in_words
from trailveil.version import __version__

# Standard deviations within which 99 % of draws are.
_DRAWS_99 = 2.5758293035489004


def record_readings(
    plan: ReadingsPlan,
    cleaning: Cleaning | None,
    *,
    output: str,
    further: bool,
    zone: tzinfo | None,
    private: bool,
    retiming: Retiming,
) -> dict[str, Any]:
    """Everything that is said of a release: see trailveil.report.record.

    Its names are those of JSON; for words see `trailveil.report.schema.of_any`.
    """
    request, mechanism = plan.request, plan.mechanism
    released = int(mechanism.rows.size)
    told = private or not request.stretches
    found: dict[str, Any] = {
        "trailveil": __version__,
        "output": output,
        "private": private,
        "recording": {
            "readings": len(plan.trace),
            "cleaning": cleaning.counts() if cleaning else {},
            "cleaning_in_words": list(cleaning.sentences(readings=True)) if cleaning else [],
        },
        "target": {
            "unit": request.unit,
            "radius": request.radius,
            "epsilon": request.epsilon,
            "order": request.order,
            "withhold": request.withhold,
            "every_reading": not request.stretches,
        },
        "prior": prior_in_full(request.kernel),
        "times": times_of(plan.trace.times[mechanism.rows], retiming),
        "adversaries": [
            f"{READER} (the prior, around any mean) and how the noise was made, but knows no true "
            "reading"
        ],
        "mechanism": {
            "released_readings": released,
            "withheld_readings": len(plan.trace) - released,
            "rms": mechanism.rms if told else None,
            "largest_std": mechanism.max_std if told else None,
            "largest_99": _DRAWS_99 * mechanism.max_std if told else None,
        },
        "worst": _meaning(plan, told=told),
        "warnings": _warnings(plan, cleaning, further=further),
        "not_protected": _not_protected(plan),
    }
    if private and plan.findings:
        found["mechanism"]["gap_where_sought"] = plan.gap
        found["secrets"] = [_secret(finding, zone) for finding in plan.findings]
    return found


def _meaning(plan: ReadingsPlan, *, told: bool) -> dict[str, Any]:
    """Of the worst part; for others what was asked for: more would tell when."""
    if not told:
        mu = plan.request.radius * float(np.sqrt(plan.request.bound))
        left = {"interval_68": rounded_down(min(plan.deviation, plan.request.bound**-0.5))}
        return guaranteed(Guarantee(mu, plan.request.order)) | left
    return {**guaranteed(plan.guarantee), "interval_68": _interval(plan.deviation)}


def _interval(deviation: float) -> float | None:
    """Half of it; None where nothing is learnt: JSON has no infinity."""
    return deviation if np.isfinite(deviation) else None


def _secret(finding: ReadingsFinding, zone: tzinfo | None) -> dict[str, Any]:
    stretch = finding.stretch
    return {
        "kind": "stay" if stretch.is_stay else "time",
        "label": stretch.label,
        "begin_utc": in_words(stretch.begin),
        "end_utc": in_words(stretch.end),
        "begin_local": in_words(stretch.begin, zone),
        "end_local": in_words(stretch.end, zone),
        "readings": finding.readings,
        "withheld": finding.withheld,
        **guaranteed(finding.guarantee),
        "interval_68": _interval(finding.deviation),
    }


def _warnings(plan: ReadingsPlan, cleaning: Cleaning | None, *, further: bool) -> list[str]:
    found = []
    if further:
        found.append(
            "These readings were released before with other noise: nothing said here holds for "
            "both releases together, and together they can give protected readings away."
        )
    found += [
        "Someone who learns a true reading near a protected one, or has a second instrument there, "
        "can undo most of the noise: it is not made against them.",
        "The promise is for a series that varies as the prior says. Never fit a prior on the "
        "readings that it is to protect.",
    ]
    if plan.findings and plan.gap is None:
        found.append("The noise is not proved to be the least that protects.")
    if cleaning and (cleaning.untimed or cleaning.unset_clock or cleaning.bad_values):
        found.append(
            "Readings without a usable time or value were left out: what is missing is seen."
        )
    return found


def _not_protected(plan: ReadingsPlan) -> list[str]:
    exact = (
        "Exact structure: the promise assumes that no value was filled in or repeated while it "
        "changed. Independent noise hides rounding and smoothing."
    )
    if not plan.findings:
        return [
            exact,
            "Means of many readings, and how values differ: the noise was made for each by itself.",
            "The times of the readings, their unit, and that there were readings.",
        ]
    return [
        "Every other reading: the further from a protected time, the less it is moved.",
        "The times of the readings, their unit, and that there were readings.",
        "Differences between two protected readings: how a value changed within a stretch.",
        exact,
    ]
