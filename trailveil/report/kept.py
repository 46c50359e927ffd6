"""What a report says of the fields that were kept: they are not protected, and what each tells."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trailveil.fields import FIELDS
from trailveil.kept import AROUND
from trailveil.release import Plan
from trailveil.report.parts import duration
from trailveil.retiming import Retiming


def kept(plan: Plan, asked: Sequence[str], retiming: Retiming) -> list[dict[str, Any]]:
    """The fields that were asked for: whether any fix states them, how many released ones do."""
    rows = plan.mechanism.rows
    rows = rows[retiming.kept(plan.trace.times[rows])]
    stated = dict(plan.trace.fields)
    return [
        {
            "field": name,
            "unit": FIELDS[name].unit,
            "recorded": name in stated,
            "fixes": int(np.isfinite(stated[name][rows]).sum()) if name in stated else 0,
            "tells": FIELDS[name].tells,
        }
        for name in asked
    ]


def not_protected(found: Sequence[dict[str, Any]]) -> list[str]:
    """The fields that leave, one sentence each."""
    return [
        f"{_spoken(one['field']).capitalize()}, which was to be kept, of {one['fixes']} fixes as "
        f"it was recorded ({one['unit']}): {one['tells']}."
        for one in found
        if one["fixes"]
    ]


def warnings(found: Sequence[dict[str, Any]]) -> list[str]:
    """What to know of the fields that leave, the worst first, and of those that do not."""
    leave = {one["field"] for one in found if one["fixes"]}
    said = []
    if {"speed", "course"} <= leave:
        said.append(
            "SPEED AND COURSE ARE BOTH KEPT. One added to the other from any true place on, they "
            "give the whole true path back wherever they are kept: the noise there protects "
            "nothing. Keep one of them, or neither."
        )
    if "elevation" in leave:
        said.append(
            "Elevation is kept: in hills its profile, found on a map, gives the true path back "
            "wherever it is kept."
        )
    if leave:
        said.append(
            f"What is kept ({_list(found, leave)}) is not protected, and reckoned to tell the true "
            f"path. So it is left out within {duration(AROUND)} of each protected part, and a "
            "little "
            "more: where it is missing tells when that is, to some minutes. The promise holds for "
            "who reads the path from it, and for nobody who learns a place in these minutes "
            "besides."
        )
    for one in found:
        name = _spoken(one["field"])
        if not one["recorded"]:
            said.append(f"No {name} is released: it was to be kept, but no fix states it.")
        elif not one["fixes"]:
            said.append(
                f"No {name} is released: it was to be kept, but every fix that states it is "
                "withheld, or near a protected part."
            )
    return said


def _list(found: Sequence[dict[str, Any]], leave: set[str]) -> str:
    return ", ".join(_spoken(one["field"]) for one in found if one["field"] in leave)


def _spoken(name: str) -> str:
    return name.replace("_", " ")
