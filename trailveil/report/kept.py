"""What a report says of the fields that were kept: they are not protected, and what each tells."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.release.cutting import AROUND
from trailveil.release.plan import Plan
from trailveil.report.parts import duration
from trailveil.traces.fields import FIELDS, NAME, TYPE
from trailveil.traces.retiming import Retiming

# What is of a track and not of its fixes, and what it tells.
_OF_TRACKS = {
    NAME: "it is what somebody wrote, and can name a place, a person or a day",
    TYPE: "it tells how you moved, in one word",
}


def kept(plan: Plan, asked: Sequence[str], retiming: Retiming) -> list[dict[str, Any]]:
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


def left_to_readers(plan: Plan) -> float | None:
    """Metres: the 68 % circle that who knows the path is left with, of the worst protected part.

    None where all that is protected are places with names.
    """
    others = {adversary.name for adversary in plan.request.adversaries if adversary.path is None}
    exposures = [
        exposure
        for part in plan.findings
        for exposure in part.exposures
        if exposure.adversary not in others
    ]
    return CIRCLE_68 * min(exposure.posterior for exposure in exposures) if exposures else None


def not_protected(fields: Sequence[dict[str, Any]]) -> list[str]:
    """The fields that leave, one sentence each."""
    return [
        f"{_subject(field)} of {field['fixes']} fixes, kept as it was recorded: {field['tells']}."
        for field in fields
        if field["fixes"]
    ]


def _subject(field: dict[str, Any]) -> str:
    if field["field"] in _OF_TRACKS:
        return f"The {field['field']} of the track"
    return f"{_spoken(field['field']).capitalize()} ({field['unit']})"


def warnings(plan: Plan, fields: Sequence[dict[str, Any]]) -> list[str]:
    """What to know of the fields that leave, the worst first, and of those that do not."""
    leave = [each["field"] for each in fields if each["fixes"] and each["field"] != TYPE]
    said = []
    if {"speed", "course"} <= {*leave}:
        said.append(
            "SPEED AND COURSE ARE BOTH KEPT. Added up from any true place on, they give the whole "
            "true path back wherever they are kept: the noise there hides nothing. Keep one of "
            "them, or neither."
        )
    if "elevation" in leave and plan.mechanism.noise_trace:
        said.append(
            "Elevation is kept: in hills its profile, found on a map, gives the true path back "
            "wherever it is kept."
        )
    if NAME in leave:
        leave.remove(NAME)
        said.append(
            "The name of the track is kept: read it before you publish, it can name a place, a "
            "person or a day."
        )
    if leave and not plan.mechanism.noise_trace:
        said.append(
            f"What is kept ({', '.join(map(_spoken, leave))}) leaves with each released fix, whose "
            "place is released as it is; speed, course, cadence and power only from "
            f"{duration(AROUND)} beyond each protected part on. A field can still tell what came "
            "before: a heart rate, of a climb. Epsilon and odds are not said of that."
        )
    elif leave:
        worst = left_to_readers(plan)
        said.append(
            f"What is kept ({', '.join(map(_spoken, leave))}) is not protected, and reckoned to "
            f"tell the true path. It is left out within {duration(AROUND)} of each protected part, "
            "and a little more: where it is missing tells when that is, to some minutes. Who reads "
            "the path from the rest is left with about what is left to who knows the path"
            + (f" ({worst:,.0f} m at worst, right in 68 of 100 cases)" if worst else "")
            + ". Epsilon and odds are not said of them."
        )
    for field in fields:
        name = _spoken(field["field"])
        if not field["recorded"]:
            stating = (
                "the recording states none that is known" if name == TYPE else "no fix states it"
            )
            said.append(f"No {name} is released: it was to be kept, but {stating}.")
        elif not field["fixes"]:
            said.append(
                f"No {name} is released: it was to be kept, but every fix that states it is "
                f"withheld, or within {duration(AROUND)} or a little more of a protected part."
            )
    return said


def _spoken(name: str) -> str:
    return name.replace("_", " ")
