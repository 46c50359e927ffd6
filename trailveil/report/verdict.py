"""One plain line on a release: share it or not, from what is said first of it."""

import re

from trailveil.errors import said
from trailveil.report.ledger import used_up
from trailveil.report.schema import ReleaseReport
from trailveil.report.text import metres

# Where what to do begins: it stands elsewhere.
_ADVICE = re.compile(r": add|\. If you")
# Times as much as was asked for: less is no more.
_MORE = 1.02


def verdict(report: ReleaseReport) -> str:
    """Whether to share a release, and why.

    report: of `record`, private. Before a release is counted nothing says what all releases tell
    together, so it is not called one to share.
    """
    if against := _against(report):
        return f"Do not share it: {' '.join(against)}"
    ledger = report.get("ledger")
    if ledger is None:
        return "Save it first: this line then says whether to share it."
    if only_if := _only_if(report):
        return f"Share it only if you accept this: {' '.join(only_if)}"
    radius = report["worst"]["circle_68_m"]
    if radius is None:
        return "Share it: a stranger learns nothing of what you hide."
    return f"Share it: a stranger's best guess of what you hide is a circle of {metres(radius)}."


def _against(report: ReleaseReport) -> list[str]:
    """Why not, a sentence each: what is hidden is hidden less well than was asked for."""
    ledger = report.get("ledger")
    reasons = [words.replace(": do not publish.", ".") for words in used_up(ledger)]
    if ledger is not None:
        total, asked = ledger["known"], report["target"]["epsilon"]
        stated = [place["stated"] for place in ledger["places"]]
        if ledger["times"] is None and ledger["overlapping"]:
            reasons.append("Another version of this recording shows what this one hides.")
        elif not reasons and (total is None or total > _MORE * max(asked, *stated, 0.0)):
            much = "everything" if total is None else f"epsilon {said(total, 3)}"
            reasons.append(f"All your releases together tell {much} of one time or place.")
    if report["mechanism"]["name"] in ("noise", "everywhere"):
        reasons.append("A street map can undo noise: cut instead.")
    return [*reasons, *(words for words in report.get("heed", []) if not _is_of_stops(words))]


def _only_if(report: ReleaseReport) -> list[str]:
    """What a release shows or may show besides, a sentence each."""
    ledger, alone = report.get("ledger"), report["worst"]["circle_68_m"]
    shown = [
        f"{_ADVICE.split(words)[0]}." for words in report.get("heed", []) if _is_of_stops(words)
    ]
    circle = None if ledger is None else ledger["if_one_place_circle_68_m"]
    if circle is not None and alone is not None and circle * _MORE < alone:
        shown.append(
            "If the hidden parts of all your releases are one place, a stranger's best guess of it "
            f"is a circle of {metres(circle)}."
        )
    return shown


def _is_of_stops(words: str) -> bool:
    return "--stops" in words
