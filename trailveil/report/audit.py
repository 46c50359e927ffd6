"""What `audit` says, as objects and in words: leaks, what a release is good for, attacks.

Leaked values stand there only on request; of attacks distances, never places.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trailveil.checks.attacks.files import Drawn
from trailveil.checks.attacks.hypotheses import Audited
from trailveil.checks.attacks.suite import AttackOutcome, Circle68, Verdict
from trailveil.checks.scan import Leak, Scan
from trailveil.checks.utility import Summary, Together, Utility
from trailveil.errors import said

_NOT_SEEN = (
    "Not looked at: times of files and names of folders, what is coded or hidden in the order of "
    "fixes. A file without leaks is no guarantee: that is in the report of protect."
)


def audit_record(scan: Scan, *, show: bool = False) -> dict[str, Any]:
    """A scan as an object of JSON. show: with some of the leaked values, for the owner alone."""
    return {
        "clean": scan.clean,
        "findings": [_finding(leak, show=show) for leak in scan.leaks],
        "notes": list(scan.notes),
        "fixes": {
            "original": scan.recorded,
            "released": scan.released,
            "protected": scan.protected,
        },
        "moved": {"all": asdict(scan.every), "protected": asdict(scan.of_protected)},
    }


def audit_text(audit: dict[str, Any]) -> str:
    """The object of `audit_record` as lines: a leak, a count or a note in each."""
    fixes, moved = audit["fixes"], audit["moved"]
    leaks = [_line(leak) for leak in audit["findings"]]
    return "\n".join(
        [
            *(leaks or ["No leak found."]),
            f"Fixes: {fixes['original']} recorded, {fixes['protected']} of them protected; "
            f"{fixes['released']} released.",
            _counts("Protected fixes", moved["protected"]),
            _counts("All fixes", moved["all"]),
            *(f"Note: {note}" for note in audit["notes"]),
            _NOT_SEEN,
        ]
    )


def _finding(leak: Leak, *, show: bool) -> dict[str, Any]:
    finding = {
        "kind": leak.kind.name.lower().replace("_", "-"),
        "what": leak.kind.value,
        "where": leak.where,
        "count": leak.count,
    }
    return finding | ({"leaked": list(leak.leaked)} if show else {})


def _line(leak: dict[str, Any]) -> str:
    values = "".join(f" {value!r}" for value in leak.get("leaked", ()))
    return f"LEAK {leak['what']}: {leak['where']}, {leak['count']}{values and ' such as' + values}"


def _counts(which: str, moved: dict[str, int]) -> str:
    return (
        f"{which} compared: {moved['compared']}; unmoved {moved['unmoved']}, by less than 1 m "
        f"{moved['below_1']}, by less than 10 m {moved['below_10']}."
    )


def utility_record(utility: Utility) -> dict[str, Any]:
    """A trace before and after, as an object of JSON; units are in the names."""
    return {
        "before": _summary(utility.before),
        "after": _summary(utility.after),
        "moved_rms_m": utility.rms,
        "moved_median_m": utility.median,
        "moved_largest_m": utility.largest,
        "withheld_fixes": utility.withheld,
        "stops_kept": utility.stops_kept,
    }


def together_record(together: Together, cell: float) -> dict[str, Any]:
    """Many traces before and after, as an object of JSON. cell: metres."""
    return {
        "traces": together.traces,
        "cell_m": cell,
        "density": asdict(together.density),
        "flows": {**asdict(together.flows), "same_trip": together.same_trip},
    }


def utility_text(utility: dict[str, Any]) -> str:
    """The object of `utility_record` as lines."""
    before, after = utility["before"], utility["after"]
    rows = [
        ("fixes", "fixes", "", 0),
        ("duration", "duration_s", " s", 0),
        ("length", "length_m", " m", 0),
        ("median speed", "median_speed_m_s", " m/s", 2),
        ("speed that 95 % of the time is below", "fast_speed_m_s", " m/s", 2),
        ("stops of 5 min or more", "stops", "", 0),
        ("time in stops", "stopped_s", " s", 0),
    ]
    table = [
        f"  {what:<37} {_number(before[key], unit, digits):>14} "
        f"{_number(after[key], unit, digits):>14}"
        for what, key, unit, digits in rows
    ]
    return "\n".join(
        [
            "What it is still good for" + " " * 14 + f"{'before':>14} {'after':>14}",
            *table,
            f"  Fixes are moved by {utility['moved_rms_m']:,.0f} m (root mean square), "
            f"{utility['moved_median_m']:,.0f} m in the median, {utility['moved_largest_m']:,.0f} "
            "m at most.",
            f"  {utility['withheld_fixes']} fixes are not in it; {utility['stops_kept']} of "
            f"{before['stops']} stops are where and when they were (to 100 m).",
            "  These figures are for you alone: with the release they tell where it is not true.",
        ]
    )


def together_text(utility: dict[str, Any]) -> str:
    """The object of `together_record` as lines."""
    density, flows = utility["density"], utility["flows"]
    return "\n".join(
        [
            f"{utility['traces']} traces together, in cells of {said(utility['cell_m'])} m",
            f"  Time spent where: {_common(density)}.",
            f"  From where to where: {_common(flows)}; {100 * flows['same_trip']:.0f} % of trips "
            "begin and end in the cells where they did.",
        ]
    )


def _common(overlap: dict[str, Any]) -> str:
    return (
        f"{100 * overlap['overlap']:.0f} % in common ({overlap['cells_before']} before, "
        f"{overlap['cells_after']} after; divergence {overlap['divergence']:.2f} bit)"
    )


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "fixes": summary.fixes,
        "duration_s": summary.duration,
        "length_m": summary.length,
        "median_speed_m_s": _or_none(summary.median_speed),
        "fast_speed_m_s": _or_none(summary.fast_speed),
        "stops": summary.stops,
        "stopped_s": summary.stopped,
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _number(value: float | None, unit: str, digits: int) -> str:
    return "none" if value is None else f"{value:,.{digits}f}{unit}"


_HEAD = (
    "attack",
    "who",
    "promised",
    "simulated (95 %)",
    "this recording (95 %)",
    "this file",
    "verdict",
)
_EXPLAINED = (
    "Promised: the 68 % circle around the true place that somebody is left with. Simulated: the "
    "circle that the attack comes to on recordings that move as the prior says. This recording: "
    "the same over fresh draws of the noise. This file: how far off the released file leaves it, "
    "once; no average of anything."
)


def attacks_record(
    outcomes: Sequence[AttackOutcome], audits: Sequence[Audited], noise: Sequence[Drawn]
) -> dict[str, Any]:
    """All of it as an object of JSON: metres, and mu as it was claimed and as it was proved.

    noise: whether that of the file is as designed, around each part; none where that is not known.
    """
    return {
        "beaten": failed(outcomes, audits),
        "attacks": [_outcome(outcome) for outcome in outcomes],
        "hypotheses": [_audited(audit) for audit in audits],
        "noise": [_drawn(draw) for draw in noise],
    }


def failed(outcomes: Sequence[AttackOutcome], audits: Sequence[Audited]) -> int:
    """How many attacks beat what was promised, and how many claims of mu were proved wrong."""
    wrong = (Verdict.BEATEN, Verdict.CLOSER)
    return sum(outcome.verdict in wrong for outcome in outcomes) + sum(
        audit.caught for audit in audits
    )


def attacks_text(tried: dict[str, Any]) -> str:
    """The object of `attacks_record` as a table, and what its columns mean."""
    lines = []
    parts = sorted({attack["part"] for attack in tried["attacks"]})
    for part in parts:
        rows = [_HEAD, *(_row(attack) for attack in tried["attacks"] if attack["part"] == part)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        lines += [f"Attacks on protected part {part}:"]
        lines += [
            "  "
            + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
    lines += [_EXPLAINED] if parts else []
    lines += [_told(claim) for claim in tried["hypotheses"]]
    lines += [_of_noise(noise) for noise in tried["noise"]]
    return "\n".join(lines)


def _outcome(outcome: AttackOutcome) -> dict[str, Any]:
    fields = asdict(outcome)
    return fields | {"part": outcome.part + 1, "verdict": outcome.verdict.value}


def _audited(audited: Audited) -> dict[str, Any]:
    return {
        "part": audited.part + 1,
        "adversary": audited.adversary,
        "way": audited.way,
        "metres": audited.metres,
        "mu_claimed": audited.claimed,
        "mu_least": audited.distinction.least,
        "mu_likely": audited.distinction.likely,
        "confidence": audited.distinction.confidence,
        "draws": audited.distinction.draws,
        "caught": audited.caught,
    }


def _drawn(drawn: Drawn) -> dict[str, Any]:
    fields = {"part": drawn.part + 1, "as_designed": drawn.as_designed}
    return fields | {"off_m": drawn.off, "chance": drawn.chance}


def _of_noise(noise: dict[str, Any]) -> str:
    if noise["as_designed"]:
        return (
            f"The noise of this file is as designed around part {noise['part']}, as far as one "
            f"draw tells (chance {said(noise['chance'], 2)})."
        )
    return (
        f"The noise of this file is NOT that of the design around part {noise['part']}: fixes are "
        f"up to {said(noise['off_m'], 2)} m from where it could have put them, and its size has a "
        f"chance of {said(noise['chance'], 1)}. What is promised above is not promised of this "
        "file."
    )


def _row(attack: dict[str, Any]) -> tuple[str, ...]:
    return (
        attack["attack"],
        attack["adversary"],
        _metres(attack["promised"]),
        _circle(attack["simulated"]),
        _circle(attack["recorded"]),
        _metres(attack["file"]),
        attack["verdict"],
    )


def _told(claim: dict[str, Any]) -> str:
    verdict = "PROVED WRONG" if claim["caught"] else "holds"
    return (
        f"Two places {claim['metres']:.0f} m apart ({claim['way']}; part {claim['part']}; "
        f"{claim['adversary']}), {claim['draws']} releases of each told apart: mu is at least "
        f"{claim['mu_least']:.2f}, likely {claim['mu_likely']:.2f}, claimed "
        f"{claim['mu_claimed']:.2f}: {verdict}"
    )


def _circle(circle: dict[str, Any] | Circle68 | None) -> str:
    if circle is None:
        return "-"
    values = circle if isinstance(circle, dict) else asdict(circle)
    return f"{values['radius']:.0f} m ({values['low']:.0f} to {values['high']:.0f})"


def _metres(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} m"
