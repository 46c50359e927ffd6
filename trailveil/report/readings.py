"""The report of a release of readings, as one object and in words. It holds no reading.

Entries mean what those of trailveil.report.record do, in the unit of the readings.
"""

from datetime import tzinfo
from typing import Any

import numpy as np

from trailveil.errors import said
from trailveil.privacy.guarantee import Guarantee
from trailveil.release.readings_release import ReadingsFinding, ReadingsPlan
from trailveil.report.parts import (
    Item,
    Section,
    ending,
    guaranteed,
    laid_out,
    listed,
    paragraph,
    prior_in_full,
    rounded_down,
    times_in_words,
    times_of,
)
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.retiming import AS_RECORDED, Retiming
from trailveil.traces.stated_times import in_words
from trailveil.version import __version__

# Standard deviations within which 99 % of draws are.
_DRAWS_99 = 2.5758293035489004


def record_readings(
    plan: ReadingsPlan,
    cleaning: Cleaning | None,
    *,
    output: str,
    further: bool = False,
    zone: tzinfo | None = None,
    private: bool = True,
    retiming: Retiming = AS_RECORDED,
) -> dict[str, Any]:
    """Everything that is said of a release: see trailveil.report.record."""
    request, mechanism = plan.request, plan.mechanism
    released = int(mechanism.rows.size)
    told = private or not request.stretches
    found: dict[str, Any] = {
        "trailveil": __version__,
        "output": output,
        "private": private,
        "recording": {
            "readings": len(plan.readings),
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
        "times": times_of(plan.readings.times[mechanism.rows], retiming),
        "adversaries": [
            "knows how such readings vary (the prior, around any mean) and how the "
            "noise was made, but no true reading"
        ],
        "mechanism": {
            "released_readings": released,
            "withheld_readings": len(plan.readings) - released,
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


def text_readings(found: dict[str, Any]) -> str:
    """The object of `record_readings` as lines."""
    return laid_out(in_sentences_readings(found))


def in_sentences_readings(found: dict[str, Any]) -> list[Section]:
    """The object of `record_readings` in titles and sentences."""
    cleaning = listed("", found["recording"]["cleaning_in_words"])
    return [
        Section(f"Protected: {found['output']}", cleaning),
        _promise(found),
        _secrets(found),
        _cost(found),
        *ending(found["not_protected"], found["warnings"]),
    ]


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


def _promise(found: dict[str, Any]) -> Section:
    target, worst = found["target"], found["worst"]
    right = 100 * (0.5 + worst["advantage"] / 2)
    when = "any time" if target["every_reading"] else "a protected time"
    words = (
        f"Of two values up to {said(target['radius'])} {target['unit']} apart, nobody of those "
        f"below can tell well which one it was at {when}: epsilon {said(target['epsilon'])} "
        "(Renyi "
        f"order {said(target['order'])}). What they thought the odds were, the release changes "
        "by "
        f"less than a factor of {said(worst['odds_factor_99'], 2)} in 99 of 100 cases; their "
        "best "
        f"guess between the two is right {right:.0f} times in 100, where tossing a coin is "
        "right 50 times. Cases are over the ways such a series varies and the noise drawn. "
        "Against who"
    )
    return Section("The promise", [*paragraph(words), *listed("- ", found["adversaries"])])


def _secrets(found: dict[str, Any]) -> Section:
    unit = found["target"]["unit"]

    def left(one: dict[str, Any]) -> str:
        if one["interval_68"] is None:
            return "someone who knows how such readings vary learns nothing at all"
        return (
            "someone who knows how such readings vary can narrow it down to "
            f"{said(one['interval_68'], 3)} {unit} either way, and is right with that in 68 of 100 "
            "cases"
        )

    if "secrets" not in found:
        words = f"At {_any(found)}, {left(found['worst'])}."
        return Section("What is left to learn", listed("", [words]))
    lines: list[Item] = []
    for number, secret in enumerate(found["secrets"], start=1):
        lines += listed(f"{number}. ", [_title(secret)])
        lines += listed("   - ", [left(secret)])
    title = "What is protected, and what is left to learn (these times are for you alone)"
    return Section(title, lines)


def _title(secret: dict[str, Any]) -> str:
    stay = secret["kind"] == "stay"
    what = "every value in it and their mean" if stay else "the value at one time"
    begin, end = secret["begin_utc"], secret["end_utc"]
    when = f"{begin} to {end}" if stay else begin
    count = f"{secret['readings']} readings"
    held = f", {secret['withheld']} of them withheld" if secret["withheld"] else ""
    return f"{secret['label']}: {what}, {when}, {count}{held}"


def _any(found: dict[str, Any]) -> str:
    return "any time" if found["target"]["every_reading"] else "each protected time"


def _cost(found: dict[str, Any]) -> Section:
    noise, unit = found["mechanism"], found["target"]["unit"]
    counts = (
        f"{noise['released_readings']} readings released, {noise['withheld_readings']} withheld."
    )
    moved = ""
    if noise["rms"] is not None:
        moved = (
            f" They are moved by {said(noise['rms'], 3)} {unit} on average (root mean square), by "
            f"{said(noise['largest_std'], 3)} {unit} where most, and there by no more than "
            f"{said(noise['largest_99'], 3)} {unit} in 99 of 100 draws."
        )
    times = times_in_words(found["times"], "reading")
    return Section("What it costs", paragraph(f"{counts}{moved}{times}"))
