"""What `protect` prints of a release: at most 15 lines. All else is in `trailveil.report.text`."""

from collections import Counter
from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import said
from trailveil.gp.gaussian import FloatArray
from trailveil.ledger.retractions import Retraction, listed_files
from trailveil.release.plan import Plan
from trailveil.report.ledger import all_versions, place_words, used_up
from trailveil.report.parts import (
    BOLD,
    YELLOW,
    Section,
    changed_times,
    count_of,
    laid_out,
    listed,
    paragraph,
    styled,
)
from trailveil.report.schema import (
    METRES,
    READER,
    LedgerReport,
    ReleaseReport,
    Times,
    of_any,
    unit_of,
)
from trailveil.report.text import best_guess, left_out, length, metres, public_already, things
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Trace

MOST_LINES = 15
_MOST_PARTS = 4
# Times as much as was asked for: less is told by all releases together as by each.
_MORE = 1.02
_BEFORE = (
    "These readings were released before with other noise: both together can give protected "
    "values away."
)
_SHOWN = (
    "You published another version of this recording. Whoever has both may know everything that "
    "either hides. If nobody has the earlier file, delete it and add --replace."
)

_CALLED = {
    "at a stated time": ("a stated time", "stated times"),
    "between stated times": ("a stated stay", "stated stays"),
    "a stay that was found": ("a stop", "stops"),
    "a return to a protected place": (
        "a return to a protected place",
        "returns to protected places",
    ),
}


def brief(
    report: ReleaseReport,
    audit: str,
    *,
    coloured: bool = False,
    stray: Sequence[Retraction] = (),
    further: bool = False,
) -> str:
    """The object of `record`, private, in a few lines. audit: the command that checks the file.

    coloured: for a terminal: what is hidden bold, warnings yellow. stray: the releases that it
    stands for, of which files may still lie about. further: whether readings, of which the ledger
    keeps no account, were released before with other noise.
    """
    report = of_any(report)
    steps = [f"delete {listed_files(stray, _MOST_PARTS)}"] if stray else []
    steps += [f"{audit} looks for leaks"] if unit_of(report) == METRES else []
    after = f"Next: {'. Then '.join(steps)}. " if steps else ""
    after += "With --overwrite --explain, protect says what it assumes."
    shown = range(min(_MOST_PARTS, len(report.get("secrets", []))), -1, -1)
    bold, yellow = (BOLD, YELLOW) if coloured else ("", "")
    before = [_BEFORE] if further and unit_of(report) != METRES else []
    before += _before(report.get("ledger"), report)
    texts = [laid_out([_lines(report, before, after, parts, bold, yellow)]) for parts in shown]
    return next((text for text in texts if text.count("\n") < MOST_LINES), texts[-1])


def in_short(report: ReleaseReport) -> list[str]:
    """What can still be found out, what it cost and what is open, a sentence or two each.

    report: of `record`, private or for others.
    """
    learnt = f"{_learnt(report)} {_told_apart(report)}"
    cost = [_cost(report)] if report["private"] else []
    return [*used_up(report.get("ledger")), learnt, *cost, _open(report)]


def _lines(
    report: ReleaseReport, before: list[str], after: str, parts: int, bold: str, yellow: str
) -> Section:
    title = styled(f"{_hidden(report)}: hidden in {report['output']}", bold)
    if report["mechanism"]["name"] in ("noise", "everywhere"):
        title += styled(" by noise, which a street map can undo", yellow)
    first = [styled(line, yellow) for line in used_up(report.get("ledger"))]
    return Section(
        "\n".join([*first, title]),
        [
            *listed("", _parts(report, parts), bold),
            *paragraph(_cost(report)),
            *paragraph(f"{_learnt(report)} {_told_apart(report)}{_best_informed(report)}"),
            *paragraph(_open(report), yellow),
            *listed("", public_already(report)),
            *listed("", before),
            *listed("", [after]),
        ],
    )


def _hidden(report: ReleaseReport) -> str:
    """What is protected, in a few words."""
    if "everywhere" in report:
        return "Every place at any time"
    if report["target"].get("every_reading"):
        return "Every reading"
    labels = Counter(_label(secret["label"]) for secret in report.get("secrets", []))
    words = []
    if labels["the start"] and labels["the end"]:
        words = ["both ends"]
        del labels["the start"], labels["the end"]
    for place in report["places"]:
        words.append(f"{place['name']} ({count_of(place['visits'], 'visit')})")
        del labels[place["name"]]
    for label, count in labels.items():
        single, several = _CALLED.get(label, (label, f"x {label}"))
        words.append(single if count == 1 else f"{count} {several}")
    whole = ", ".join(words)
    return whole if report["places"] else whole[:1].upper() + whole[1:]


def _label(label: str) -> str:
    """The first thing that asked for a part: an end, if one did."""
    names = label.split(", ")
    return next((name for name in names if name.startswith("the ")), names[0])


def _parts(report: ReleaseReport, count: int) -> list[str]:
    """When the first of the protected parts are, for their owner alone."""
    secrets, readings = report.get("secrets", []), unit_of(report) != METRES
    lines = [
        f"{_when(secret['begin_local'], secret['end_local'])}: {_label(secret['label'])}"
        + ("" if secret["cut_s"] is None else f", and {secret['cut_s'] / 60:.0f} min around it")
        + (f", {count_of(secret['fixes'], 'reading')}" if readings else "")
        for secret in secrets[:count]
    ]
    more = len(secrets) - count
    return [*lines, *([f"{more} more, which --explain lists"] if more and count else [])]


def _when(begin: str, end: str) -> str:
    """Times of a part to the minute, the day once, and the zone where the clocks do not change."""
    day, clock, zone = begin.split(" ", 2)
    until, until_clock, until_zone = end.split(" ", 2)
    if begin == end:
        return f"{day} {clock} {zone}"
    until = "" if until == day else f"{until} "
    zone = "" if zone == until_zone else f" {zone}"
    return f"{day} {clock[:5]}{zone} to {until}{until_clock[:5]} {until_zone}"


def _cost(report: ReleaseReport) -> str:
    """What is cut, what is moved, and what would leave more."""
    mechanism, shared = report["mechanism"], report["times"]["left_out"]
    recording, unit = report["recording"], unit_of(report)
    many = "fixes" if unit == METRES else "readings"
    unusable = recording["cleaning"].get("recorded", 0) - recording["cleaning"].get("kept", 0)
    words = ""
    if mechanism["withheld_fixes"]:
        words = f"Left out: {left_out(mechanism)}. "
    if shared:
        words += f"Left out besides: {shared} {many} that share a rounded time with another. "
    if unusable:
        usable = f"without a usable time or {things(unit)[:-1]} of their own"
        words += f"Not used: {unusable} {many} {usable}. "
    if recording["cleaning"].get("assigned_times"):
        words += "The times are made up: --drop-times leaves them out. "
    if mechanism["rms_m"]:
        words += f"Moved: by {length(mechanism['rms_m'], unit)} on average. "
    words += _exact(report["times"], things(unit), moved=bool(mechanism["rms_m"]))
    if instead := mechanism.get("half_with"):
        words += f"Half is left with {' or '.join(instead)}."
    return words.strip()


def _exact(times: Times, what: str, *, moved: bool) -> str:
    """What is released as it was recorded, and what becomes of the times if they are not."""
    changed = changed_times(times, "fix" if what == "places" else "reading")
    if not changed:
        return "" if moved else "All else is exactly as recorded. "
    return f"{changed}. " if moved else f"All other {what} are exactly as recorded. {changed}. "


def _learnt(report: ReleaseReport) -> str:
    """What a stranger can still find out."""
    unit = unit_of(report)
    stranger = best_guess(report["worst"]["circle_68_m"], unit)
    if unit != METRES:
        return f"{READER[0].upper()}{READER[1:]}: {stranger}"
    if report["mechanism"]["name"] == "cut":
        return f"A stranger, even with a map: {stranger}"
    return f"A stranger: {stranger}"


def _best_informed(report: ReleaseReport) -> str:
    """What the best informed of those listed can still find out; of a cut it is the stranger."""
    if unit_of(report) != METRES or report["mechanism"]["name"] == "cut":
        return ""
    facing = [exposure for part in report.get("secrets", []) for exposure in part["exposures"]]
    facing = facing or [
        exposure for place in report.get("places", []) for exposure in place["left"]
    ]
    facing += report.get("everywhere", {}).get("left", [])
    worst = min(facing, key=lambda exposure: exposure["circle_68_m"] or inf, default=None)
    if worst is None or worst["circle_68_m"] is None:
        return ""
    known = f"someone who {worst['knows']}" if "knows" in worst else worst["adversary"]
    before = worst.get("circle_68_before_m")
    guess = f"within {metres(worst['circle_68_m'])}"
    if before:
        guess = f"they could already place you within {metres(before)}; with your track, {guess}"
    return f" The best informed of those reckoned with ({known}): {guess}."


def _told_apart(report: ReleaseReport) -> str:
    right, unit = 100 * (0.5 + report["worst"]["advantage"] / 2), unit_of(report)
    return (
        f"Of two {things(unit)} up to {said(report['target']['radius_m'])} {unit} apart they guess "
        f"the right one {right:.0f} times in 100; a coin gets 50."
    )


def _open(report: ReleaseReport) -> str:
    """What is not protected."""
    others = [] if "everywhere" in report else ["the rest of the track"]
    if unit_of(report) != METRES:
        every = report["target"].get("every_reading")
        others = ["how values differ" if every else "every other reading"]
    of_track = others and unit_of(report) == METRES
    times = [] if report["times"]["dropped"] else ["its times" if of_track else "the times"]
    words = f"Not protected: {' and '.join([*others, *times]) or 'the order of fixes'}"
    fields = [field["field"].replace("_", " ") for field in report["kept"] if field["fixes"]]
    words += f", {', '.join(fields)}." if fields else "."
    return " ".join([words, *report.get("heed", [])])


def _before(ledger: LedgerReport | None, report: ReleaseReport) -> list[str]:
    """What the release tells together with others, and how many visits a place has left."""
    if ledger is None:
        return []
    asked, alone = report["target"]["epsilon"], report["worst"]["circle_68_m"]
    places = [place_words(place) for place in ledger["places"]]
    if ledger["releases"] == 1:
        return places
    count, total = ledger["releases"], ledger["known"]
    if ledger["times"] is None and ledger["overlapping"]:
        return [_SHOWN, *places]
    sentences = []
    if ledger["finest"] is not None:
        words, alone = all_versions(ledger), ledger["finest_circle_68_m"]
        sentences = [f"{words[:1].upper()}{words[1:]}."]
    elif total is None:
        sentences = ["An earlier release shows everything of one time."]
    elif total > max(asked * _MORE, *(place["total"] or 0.0 for place in ledger["places"]), 0.0):
        sentences = [
            f"All {count} releases together tell more of one time: epsilon {said(total, 3)}."
        ]
    of_one, circle_68 = ledger["if_one_place"], ledger["if_one_place_circle_68_m"]
    if circle_68 is not None and (of_one or 0.0) > max(total or 0.0, asked) * _MORE:
        instead = f", not of {metres(alone)}" if alone and alone > circle_68 else ""
        sentences.append(
            f"Of all {count} releases, the hidden parts without a name may be at one place, such "
            "as home. Then a stranger's best guess of it is a circle of "
            f"{metres(circle_68)}{instead}: name that place (trailveil place add)."
        )
    return [*([" ".join(sentences)] if sentences else []), *places]


ROWS, COLUMNS = 7, 48
"""Of characters, besides the legend."""

HIDDEN = "\u2588"
LEGEND = f"\u28ff published   {HIDDEN} hidden"

# Dots of a braille character, down and across, and the bit of each in it.
_DOWN, _ACROSS = 4, 2
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BLANK = 0x2800
# Points that are drawn of a line, at most.
_MOST = 20_000


def sketch(plan: Plan, released: Trace) -> list[str]:
    """Lines of a sketch, north up: at most ROWS and the legend; none where all is at one place.

    released: the fixes as they are drawn, at their recorded times. Braille dots are the published
    track. A block stands where a recorded fix is left out, or protected by noise.
    """
    recorded = plan.lattice / MICRO
    hidden = ~np.asarray(plan.mechanism.released)
    if plan.mechanism.noise_trace:
        for finding in plan.findings:
            hidden |= finding.stretch.rows(plan.trace)
    published = plan.frame.to_lattice(released.positions) / MICRO
    low = np.minimum(recorded.min(axis=0), published.min(axis=0))
    size = np.maximum(recorded.max(axis=0), published.max(axis=0)) - low
    dots = np.array([COLUMNS * _ACROSS, ROWS * _DOWN]) - 1.0
    if not size.max() > 0:
        return []
    scale = float(np.min(dots / np.maximum(size, 1e-9)))
    shape = np.floor(size * scale / [_ACROSS, _DOWN]).astype(int) + 1

    def cells(points: FloatArray, shown: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Braille bits (rows, columns) of lines between points (n, 2) of which both are shown."""
        across, up = _along((points - low) * scale, shown).T
        down = shape[1] * _DOWN - 1 - up
        bits = np.zeros((shape[1], shape[0]), dtype=np.intp)
        at = down // _DOWN, across // _ACROSS
        np.bitwise_or.at(bits, at, _BITS[down % _DOWN, across % _ACROSS])
        return bits

    rows = plan.mechanism.rows
    apart = np.zeros(rows.size, dtype=np.bool_)
    apart[1:] = np.diff(rows) > 1
    lines = cells(published, ~apart) + _BLANK
    covered = cells(recorded, hidden) > 0
    texts = ["".join(map(chr, line)) for line in lines.tolist()]
    whole = [
        "".join(HIDDEN if block else dot for dot, block in zip(text, row, strict=True))
        for text, row in zip(texts, covered.tolist(), strict=True)
    ]
    return [*(f"  {line}".rstrip(f" {chr(_BLANK)}") for line in whole), f"  {LEGEND}"]


def _along(points: FloatArray, joined: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Whole dots (k, 2) of points (n, 2) that are joined to the one before them, and of the lines.

    A point that is not joined is drawn only as the beginning of a line.
    """
    steps = np.max(np.abs(np.diff(points, axis=0)), axis=1, initial=0.0)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    count = min(int(2 * length[-1]) + 2, _MOST)
    at = np.union1d(np.linspace(0.0, length[-1], count), length)
    after = np.minimum(np.searchsorted(length, at), len(points) - 1)
    at = at[joined[after]]
    return np.column_stack([np.interp(at, length, axis) for axis in points.T]).astype(np.intp)
