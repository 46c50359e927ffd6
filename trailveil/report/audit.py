"""What a leak scan found, as one object and in words. Leaked values stand there only on request."""

import math
from dataclasses import asdict
from typing import Any

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
