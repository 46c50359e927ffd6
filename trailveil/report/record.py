"""The report of a release as one JSON-able object. It holds no true position and no drawn noise.

What a draw really moved is not in it: the size of the noise at a secret, known afterwards, would
narrow the secret down. Distances are those of the design, the same for every draw.
"""

from datetime import tzinfo
from typing import Any

import numpy as np

from trailveil.cleaning import Cleaning
from trailveil.guarantee import CIRCLE_68
from trailveil.release import Finding, Noise, Plan
from trailveil.selection import in_words
from trailveil.version import __version__

CONFIDENCE = 0.99
_DELTAS = (1e-2, 1e-5)
# Standard deviations per coordinate within which 99 % of planar displacements are.
_PLANAR_99 = float(np.sqrt(-2 * np.log(0.01)))


def record(
    plan: Plan,
    cleaning: Cleaning | None,
    *,
    output: str,
    again: bool = False,
    zone: tzinfo | None = None,
    private: bool = True,
) -> dict[str, Any]:
    """Everything that is said of a release.

    private: whether protected times are listed; a report for others must not. zone: for local times
    (the computer's own for None). again: whether this is a further release of a recording.
    """
    request, mechanism = plan.request, plan.mechanism
    released = int(mechanism.rows.size)
    return {
        "trailveil": __version__,
        "output": output,
        "private": private,
        "recording": {
            "fixes": len(plan.trace),
            "cleaning": cleaning.counts() if cleaning else {},
            "cleaning_in_words": list(cleaning.sentences()) if cleaning else [],
        },
        "target": {
            "radius_m": request.radius,
            "epsilon": request.epsilon,
            "order": request.order,
            "scale_error": plan.frame.SCALE_ERROR,
        },
        "prior": repr(request.kernel),
        "frame": {"latitude": plan.frame.latitude, "longitude": plan.frame.longitude},
        "adversaries": _adversaries(plan),
        "mechanism": {
            "name": request.noise.value,
            "components": plan.components,
            "released_fixes": released,
            "withheld_fixes": len(plan.trace) - released,
            "rms_m": float(np.sqrt(2) * mechanism.rms),
            "largest_rms_m": float(np.sqrt(2) * mechanism.max_std),
            "largest_99_m": _PLANAR_99 * mechanism.max_std,
        },
        "secrets": [_secret(one, zone, private=private) for one in plan.findings],
        "warnings": _warnings(plan, cleaning, again=again),
        "not_protected": _not_protected(plan),
    }


def _adversaries(plan: Plan) -> list[str]:
    kernel = "knows how people move (the prior), and the noise's design, but not the place"
    still = [f"{kernel}; sees that a protected stay stands still"]
    return [kernel, *(still if plan.request.sees_stillness else [])]


def _secret(finding: Finding, zone: tzinfo | None, *, private: bool) -> dict[str, Any]:
    guarantee = finding.guarantee
    found: dict[str, Any] = {
        "kind": "stay" if finding.stretch.is_stay else "time",
        "mu": guarantee.mu,
        "epsilon": guarantee.epsilon,
        "order": guarantee.order,
        "odds_factor_99": guarantee.odds(CONFIDENCE),
        "advantage": guarantee.advantage,
        "paper_gap": {f"{delta:g}": guarantee.paper_gap(delta) for delta in _DELTAS},
        "left_m": _finite(finding.deviation),
        "circle_68_m": _finite(CIRCLE_68 * finding.deviation),
        "after_learning_a_true_place": [
            {"seconds_away": away, "left_m": left, "circle_68_m": CIRCLE_68 * left}
            for away, left in finding.after_learning
        ],
        "displacement_epsilon": finding.displacement_epsilon,
    }
    if private:
        stretch = finding.stretch
        found |= {
            "label": stretch.label,
            "chosen_by_place": stretch.by_place,
            "begin_utc": in_words(stretch.begin),
            "end_utc": in_words(stretch.end),
            "begin_local": in_words(stretch.begin, zone),
            "end_local": in_words(stretch.end, zone),
            "fixes": finding.fixes,
            "withheld": finding.withheld,
        }
    return found


def _finite(value: float) -> float | None:
    """The value, or None where nothing at all is learnt: JSON has no infinity."""
    return value if np.isfinite(value) else None


def _warnings(plan: Plan, cleaning: Cleaning | None, *, again: bool) -> list[str]:
    found = [
        "Someone who learns one true position near a protected time can undo most of the noise: "
        "see what "
        "they are left with, above. Against them, withhold (--withhold 600) or protect longer "
        "stays.",
        "Releases are not accounted together yet: publishing this ride, this place or this person "
        "again "
        "weakens what is said here.",
    ]
    if again:
        found.insert(
            0,
            "This recording was released before with other noise. Two different releases together "
            "can give "
            "away the protected places to a few metres; nothing above holds for both together.",
        )
    if any(one.stretch.by_place for one in plan.findings):
        found.append(
            "Some protected times were chosen by where the person stood still, so that the choice "
            "itself "
            "depends on the recording: epsilon is a figure there, not a guarantee. State times "
            "(--between, --at) for a guarantee.",
        )
    if len(plan.findings) > 1:
        found.append(
            "Each protected place is counted for itself. If two of them are one place (a ride "
            "that ends at "
            "home), someone who knows that learns more than epsilon says.",
        )
    if plan.components > 1:
        found.append(
            f"The noise is the valid sum of {plan.components} single mechanisms, not the least "
            "that could do."
        )
    return found + _cleaning_warnings(cleaning)


def _cleaning_warnings(cleaning: Cleaning | None) -> list[str]:
    lost = cleaning and (cleaning.untimed or cleaning.unset_clock or cleaning.bad_positions)
    if not lost:
        return []
    return [
        "Fixes without a usable time or place were left out. If they are the first or the last of "
        "the "
        "recording, its start and end here are those of the fixes that remain.",
    ]


def _not_protected(plan: Plan) -> list[str]:
    found = [
        "all other parts of the track, where fixes are moved little or not at all",
        "the times of the fixes, and that there was a recording",
        "how the person moved within a protected stay",
    ]
    if plan.request.noise is Noise.UNIFORM:
        found[0] = (
            "anything at other times: means over long stays above all, where noise averages out"
        )
    return found
