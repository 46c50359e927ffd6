"""What a leak scan found, as one object and in words. Leaked values stand there only on request."""

from dataclasses import asdict
from typing import Any

from trailveil.checks.scan import Leak, Scan

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
