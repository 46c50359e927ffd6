"""The report of a release in plain words. It holds no true position and no drawn noise."""

from math import inf

from trailveil.errors import said
from trailveil.report.ledger import place_sections, total_sections
from trailveil.report.parts import (
    Item,
    Section,
    count_of,
    duration,
    ending,
    laid_out,
    listed,
    paragraph,
    times_in_words,
)
from trailveil.report.schema import (
    METRES,
    AdversaryReport,
    NoiseReport,
    PartReport,
    PriceReport,
    ReleaseReport,
    TargetReport,
    of_any,
    unit_of,
)

_MOST_PUBLIC = 3
"""Positions that are named at most."""


def text(report: ReleaseReport) -> str:
    """A report in plain words."""
    return laid_out(in_sections(of_any(report)))


def in_sections(report: ReleaseReport) -> list[Section]:
    """A report in titles and sentences; the first is what it is about, the second the promise.

    report: of any kind, as `trailveil.report.schema.of_any` gives it.
    """
    prices = [_instead(price) for price in report.get("instead", [])]
    public = public_already(report)
    return [
        Section(
            f"Protected: {report['output']}", listed("", report["recording"]["cleaning_in_words"])
        ),
        promise(report),
        *_left_to_learn(report),
        *([Section("What is public already", listed("- ", public))] if public else []),
        *place_sections(report.get("places", [])),
        *total_sections(report.get("ledger")),
        Section("What it costs", [*_cost(report), *listed("- ", prices)]),
        *ending(report["not_protected"], report["warnings"]),
    ]


def public_already(report: ReleaseReport) -> list[str]:
    """What was reckoned with of what is public already: a sentence; no place."""
    if "public" not in report:
        return []
    counted, besides = report["public"]["counted"], report["public"]["besides"]
    named = [
        f"{each['when_local']} ({f'to {metres(known)}' if known else 'exact'})"
        for each in counted[:_MOST_PUBLIC]
        for known in [each["known_to_m"]]
    ]
    more = len(counted) - len(named)
    named += [f"{more} more"] if more else []
    words = f"Counted: what is public already, at {', '.join(named)}. " if named else ""
    if besides:
        many = count_of(besides, "position")
        words += f"{many} that {'is' if besides == 1 else 'are'} public already tell"
        words += f"{'s' if besides == 1 else ''} nothing more of what is hidden."
    return [words.strip()] if words else []


def _left_to_learn(report: ReleaseReport) -> list[Section]:
    if "everywhere" in report:
        lines = [_everywhere(exposure) for exposure in report["everywhere"]["left"]]
        least = metres(report["everywhere"]["least_rms_m"])
        lines.append(f"no Gaussian noise that holds all this moves a track by less than {least}")
        return [Section("What is left to learn, where most can be", listed("- ", lines))]
    every = report["target"].get("every_reading", False)
    if report["private"] and not every:
        return _secrets(report)
    when = f"At {'any' if every else 'each protected'} time"
    guess = f"{when}: {best_guess(report['worst']['circle_68_m'], unit_of(report))}"
    return [Section("What can still be found out", listed("", [guess]))]


def _everywhere(exposure: AdversaryReport) -> str:
    """What one kind of adversary is left with."""
    before = exposure["circle_68_before_m"]
    known = "any idea of it" if before is None else f"and knew it to {metres(before)} before"
    without = "without " if before is None else ""
    moving = f"somebody who moves at {said(exposure['speed_m_s'])} m/s"
    if exposure["stay_s"] > 0:
        moving += f" and is seen to stand still for {duration(exposure['stay_s'])}"
    return (
        f"who {exposure['knows']}, {without}{known}: the place to "
        f"{metres(exposure['circle_68_m'])} (epsilon {said(exposure['epsilon'], 2)}), of {moving}"
    )


def promise(report: ReleaseReport) -> Section:
    """What is promised."""
    target, worst = report["target"], report["worst"]
    right = 100 * (0.5 + worst["advantage"] / 2)
    guess = f"guess right {right:.0f} times in 100; a coin gets 50"
    if target["leave_m"] is not None:
        lead = f"Nobody listed below can place you within less than {target['leave_m']:g} m. "
    elif "everywhere" in report or target.get("every_reading"):
        lead = "At any time of the recording: "
    elif target["ways"] is not None:
        ways = count_of(target["ways"], "way")
        lead = f"For each named place, however often you visit it by {ways}: "
    else:
        lead = ""
    unit = unit_of(report)
    which = "which one you were at" if unit == METRES else "which of them it was"
    words = (
        f"{lead}Take two {things(unit)} up to {said(target['radius_m'])} {unit} apart. Nobody "
        f"listed below can reliably tell {which}: they {guess}. Their odds change by less than a "
        f"factor of {said(worst['odds_factor_99'], 2)} in 99 of 100 cases (epsilon "
        f"{said(worst['epsilon'], 2)}, Renyi order {said(target['order'])})."
    )
    return Section(
        "The promise",
        [
            *paragraph(words),
            *listed("- ", [_named(adversary) for adversary in report["adversaries"]]),
            *([] if "everywhere" in report or unit != METRES else paragraph(pace(target))),
        ],
    )


def _named(adversary: str) -> str:
    return adversary[0].upper() + adversary[1:]


def _secrets(report: ReleaseReport) -> list[Section]:
    if not report["secrets"]:
        return []
    items: list[Item] = []
    for number, secret in enumerate(report["secrets"], start=1):
        unit = unit_of(report)
        items += listed(f"{number}. ", [_title(secret, unit)])
        items += listed("   - ", [_of_adversary(exposure, unit) for exposure in _jointly(secret)])
    alike = [secret for secret in report["secrets"] if secret["reckoned_with"] > 1]
    if alike and report["mechanism"]["name"] != "noise":
        words = (
            f"Both ends may be one place: they are reckoned together. The {len(alike)} cuts "
            "there together tell of it at most the epsilon that was asked for."
        )
        alone = min(secret["circle_68_m"] or inf for secret in alike)
        if (alike[0]["circle_68_joint_m"] or inf) < alone < inf:
            words += (
                f" If they are different places, each has a circle of at least {metres(alone)}."
            )
        items += paragraph(words)
    title = "What is hidden, and what can still be found out (these times are for you alone)"
    return [Section(title, items)]


def _jointly(secret: PartReport) -> list[AdversaryReport]:
    """What each adversary is left with of the place of a part, whatever else tells of it."""
    if secret["circle_68_joint_m"] == secret["circle_68_m"]:
        return secret["exposures"]
    return [
        {**exposure, "circle_68_m": secret["circle_68_joint_m"]} for exposure in secret["exposures"]
    ]


def _title(secret: PartReport, unit: str) -> str:
    stay = secret["kind"] == "stay"
    utc, local = secret["begin_utc"], secret["begin_local"]
    if stay:
        utc, local = f"{utc} to {secret['end_utc']}", f"{local} to {secret['end_local']}"
    when = utc if utc == local else f"{utc} ({local})"
    cut = ""
    if secret["cut_s"] is not None:
        cut = f"; nothing is released within {secret['cut_s'] / 60:.1f} min of it"
    if unit != METRES:
        cut = f", {secret['withheld']} of them left out" if secret["withheld"] else ""
        cut += ": every value in it and their mean" if stay else ""
    return f"{secret['label']}, {when}, {count_of(secret['fixes'], noun(unit))}{cut}"


def _of_adversary(exposure: AdversaryReport, unit: str) -> str:
    """What one adversary can still find out."""
    if exposure["circle_68_before_m"] is None:
        return f"{_named(exposure['adversary'])}: {best_guess(exposure['circle_68_m'], unit)}"
    return (
        f"{_named(exposure['adversary'])} could already place you within "
        f"{metres(exposure['circle_68_before_m'])}; with your track, within "
        f"{metres(exposure['circle_68_m'])}."
    )


def best_guess(size: float | None, unit: str = METRES) -> str:
    """What an adversary with no idea of a place, or of a value, is left with."""
    if size is None:
        return "nothing at all."
    if unit == METRES:
        return f"their best guess is a circle of {metres(size)}; you are in it 68 times in 100."
    shown = length(size, unit)
    return f"their best guess is right to {shown} either way 68 times in 100."


def _cost(report: ReleaseReport) -> list[Item]:
    noise, unit = report["mechanism"], unit_of(report)
    counts = f"{count_of(noise['released_fixes'], noun(unit))} released"
    if noise["withheld_fixes"] is not None:
        counts += f", {noise['withheld_fixes']} left out"
    counts += f" ({left_out(noise)})." if noise["withheld_min"] else "."
    moved = ""
    if noise["rms_m"]:
        moved, over = ("The track is", " over it") if unit == METRES else ("They are", "")
        most, draws = length(noise["largest_rms_m"], unit), length(noise["largest_99_m"], unit)
        moved = (
            f" {moved} moved by {length(noise['rms_m'], unit)} on average{over} (root mean square),"
            f" by {most} where most, and there by no more than {draws} in 99 of 100 draws."
        )
    lines = paragraph(f"{counts}{moved}{times_in_words(report['times'], noun(unit))}")
    if instead := noise.get("half_with"):
        lines += paragraph(f"Less than half is left. Half is left with {' or '.join(instead)}.")
    return lines


def _instead(price: PriceReport) -> str:
    """What another mechanism would cost for the same promise."""
    moved = f"moved by {metres(price['rms_m'])} on average within {price['within_min']:.0f} min"
    option = f"(--mechanism {price['mechanism']})"
    if price["mechanism"] == "noise":
        stays = f"{left_out(price)} are left out" if price["withheld_fixes"] else "every fix stays"
        return (
            f"By noise instead: {stays}, {moved} of each part, and a street map can undo it "
            f"{option}."
        )
    cut = f"{left_out(price)} are left out"
    if price["mechanism"] == "both":
        return f"By both instead: {cut}, and what remains is {moved} of each part {option}."
    return f"By a cut instead: {cut} and all else is exact; a map does not undo it {option}."


def left_out(noise: NoiseReport | PriceReport) -> str:
    """What is not released: the share of fixes, how long it took and how far it went."""
    withheld = noise["withheld_fixes"] or 0
    share = f"{withheld / (withheld + noise['released_fixes']):.0%} of all"
    how_long = "" if noise["withheld_min"] is None else f", {noise['withheld_min']:.0f} min"
    how_far = "" if noise["withheld_km"] is None else f", {noise['withheld_km']:.1f} km"
    return f"{share}{how_long}{how_far}"


def pace(target: TargetReport) -> str:
    """The pace that is reckoned with, and who said so."""
    least = f"at least {target['floor_m_s']:g} m/s"
    if target["activity_in_file"]:
        named = f"The recording says that it is a {target['activity']}, which counts as public"
        return f"{named}: the pace reckoned with is {least}."
    if target["activity"]:
        return f"The pace reckoned with is that of a {target['activity']}, {least} (--activity)."
    return f"The pace reckoned with is {least} (--floor)."


def noun(unit: str) -> str:
    """What is recorded."""
    return "fix" if unit == METRES else "reading"


def things(unit: str) -> str:
    """What is told apart."""
    return "places" if unit == METRES else "values"


def length(value: float | None, unit: str) -> str:
    """A length in its unit."""
    return metres(value) if unit == METRES or value is None else f"{said(value, 3)} {unit}"


def metres(value: float | None) -> str:
    """Metres, or kilometres where these are many; None for no end of them."""
    if value is None:
        return "any distance"
    return f"{value / 1000:,.1f} km" if value >= 10_000 else f"{value:,.0f} m"
