"""What the page shows of a release before it is made, and how it is made: as `protect` does."""

import re
import shlex
import threading
from collections import OrderedDict
from secrets import token_bytes, token_hex
from typing import Any

import numpy as np

from trailveil.checks.utility import compare
from trailveil.errors import InvalidValue, TrailveilError, said
from trailveil.files.source import load
from trailveil.gp.randomness import SEED_BYTES
from trailveil.ledger.commit import check_released, known_public, publish
from trailveil.page.opened import DRAWN, Opened, PageRequest, arguments, middle_of, request_of
from trailveil.plots.drawing import to_degrees
from trailveil.release.cutting import withheld
from trailveil.release.design_cache import DesignCache
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.prices import other_prices
from trailveil.release.protect import protect
from trailveil.release.request import Request
from trailveil.report.audit import utility_record, utility_text
from trailveil.report.guesses import guesses
from trailveil.report.ledger import used_up
from trailveil.report.record import record
from trailveil.report.schema import ReleaseReport
from trailveil.report.text import metres, promise, text
from trailveil.traces.formats.table import check_writable
from trailveil.traces.trace import Trace

_WORDS = (
    (r",? (or )?(leave|state|name|add) [^,;(]*\((--no-returns|--subject)\)[^,;]*", ""),
    (r", or state fewer --ways of a place", ""),
    (r" \((--no-ends with --between|--between|--activity, --floor|say the same --tz.*?)\)", ""),
    (r"--mechanism (\w+)", r"\1"),
    (r"--radius (\d[\d,.]*)", r"\1 m"),
    (r"--radius", "distance"),
    (r"--activity or --floor", "way to move"),
    (r"--activity (\w+)", r"a \1"),
    (r"--epsilon", "epsilon"),
    (r"add --stops auto", "choose it in the list"),
    (r"add --replace", "tick “replace it”"),
    (r"add --again", "tick “both versions count”"),
    (r"add --overwrite", "tick “Replace the file”"),
)


def on_the_page(words: str) -> str:
    """The same words without the options that the page has its own names for."""
    for option, name in _WORDS:
        words = re.sub(option, name, words)
    return words


# Designs that are kept, so that going back to one is immediate.
_KEPT = 8


class Planner:
    """Designs for one recording, by name."""

    def __init__(self, source: Opened) -> None:
        self.source = source
        self._cache = DesignCache.of(source.ledger.folder, source.ledger.key)
        self._lock = threading.Lock()
        self._names: OrderedDict[str, str] = OrderedDict()
        self._plans: dict[str, Plan] = {}
        self.saved = False

    def planned(self, asked: PageRequest, *, at_once: bool = False) -> dict[str, Any]:
        """What a release would promise and cost, as JSON. Raises as `protect` does.

        at_once: design nothing now. Then the plan may have no name, so that it cannot be saved: its
        noise is more than that of the release, whose promise it shows. Raises Unavailable where
        nothing can be shown so.
        """
        source = self.source
        name, planned = self._plan_of(request_of(source, asked), at_once)
        report = record(
            *(planned, source.cleaning),
            output=source.output.name,
            zone=source.zone,
            instead=other_prices(planned, self._cache) if name else (),
        )
        del report["designs"]  # long, and not shown
        # Noise of another draw than what is saved: else one could choose by the noise.
        example = draw(planned, token_bytes(SEED_BYTES))[0]
        # What the command line says of stops stands on the page as boxes.
        words = [on_the_page(words) for words in report["heed"] if "--stops" not in words]
        shown = {
            "plan": name,
            "report": report,
            "heed": words,
            "command": shlex.join(arguments(source, asked)),
            "promise": promise(report).items[0].words,
            "minutes_withheld": withheld(planned.trace.seconds, planned.mechanism.rows) / 60,
            "circles": _circles(planned, report, example),
            "published": runs(planned, example),
            "verdict": on_the_page(verdict(report)),
        }
        if name is None:
            report["mechanism"]["gap"] = None
            return shown
        return {**shown, "words": text(report), **self._in_the_way(planned)}

    def save(self, name: str, *, again: bool, instead: bool, overwrite: bool) -> dict[str, Any]:
        """Count a planned release and write it. Raises as `protect` does."""
        source = self.source
        with self._lock:
            planned = self._plans.get(name)
            if planned is None:
                raise InvalidValue(
                    "what is saved must be the last that was shown, got another: choose once more"
                )
            check_writable(source.output, *source.read, overwrite=overwrite or instead)
            receipt = publish(
                *(planned, source.ledger, source.output),
                again=again,
                instead=instead,
                overwrite=overwrite or instead,
                key=source.key,
                subject=source.subject,
                limit=source.limit,
            )
        report = record(
            *(planned, source.cleaning),
            output=source.output.name,
            further=receipt.further,
            zone=source.zone,
            account=receipt.account,
            retracted=receipt.retracted,
            public=known_public(source.ledger, source.trace, source.subject),
            instead=other_prices(planned, self._cache),
        )
        utility = utility_record(compare(source.trace, receipt.drawn))
        words = f"{text(report)}\n\n{utility_text(utility)}"
        self.saved = True
        return {
            "saved": source.output.name,
            "report": report,
            "words": words,
            "utility": utility,
            "circles": _circles(planned, report, receipt.drawn),
            "published": runs(planned, receipt.released),
            "verdict": on_the_page(verdict(report)),
        }

    def released(self) -> bytes:
        """The file that was saved here. Raises InvalidValue where none was."""
        if not self.saved:
            raise InvalidValue("a release must be saved before it is fetched, got none: save it")
        return load(self.source.output)

    def _plan_of(self, request: Request, at_once: bool) -> tuple[str | None, Plan]:
        """The plan of a request and its name, which none has that must never be saved."""
        with self._lock:
            if name := self._names.get(request.design):
                self._names.move_to_end(request.design)
                return name, self._plans[name]
        # Nothing is released by a look: whether it may be is asked by `save`. Without the lock: a
        # look at once waits for no design.
        source, cache = self.source, self._cache
        plan = protect(source.trace, request, places=source.visits, cache=cache, at_once=at_once)
        if not all(design.proof for design in plan.designs):
            return None, plan
        with self._lock:
            name = self._names.setdefault(request.design, token_hex(8))
            plan = self._plans.setdefault(name, plan)
            while len(self._names) > _KEPT:
                _, oldest = self._names.popitem(last=False)
                del self._plans[oldest]
        return name, plan

    def _in_the_way(self, plan: Plan) -> dict[str, Any]:
        """What saving would be refused for, one line each, unless it is confirmed."""
        source = self.source
        obstacles: dict[str, Any] = {"before": None, "exists": source.output.exists()}
        try:
            whose: dict[str, Any] = {"key": source.key, "subject": source.subject}
            check_released(source.ledger, plan, again=False, **whose)
        except TrailveilError as error:
            obstacles["before"] = on_the_page(f"{error}")
        return obstacles


def runs(plan: Plan, released: Trace) -> list[list[list[float]]]:
    """What leaves, as lines of degrees: each ends where recorded fixes are left out."""
    rows = plan.mechanism.rows
    breaks = np.flatnonzero((np.diff(rows) > 1) | (np.diff(released.segments) != 0)) + 1
    step = max(1, -(-len(released) // DRAWN))
    lines = [
        part if len(part) < 3 * step else np.append(part[:-1:step], part[-1])
        for part in np.split(np.arange(len(released)), breaks)
    ]
    return [released.positions[part].tolist() for part in lines]


def _circles(plan: Plan, report: ReleaseReport, drawn: Trace) -> list[dict[str, Any]]:
    """Of each hidden part where it is, where a stranger would look, and within how many metres.

    drawn: what is released, at its recorded times: a stranger has nothing else. Radii are those of
    the report.
    """
    guessed = {guess.number: guess.place for guess in guesses(plan, drawn)}
    return [
        {
            "at": middle_of(plan.trace, finding.stretch),
            "guess": to_degrees(plan.frame, *guessed[number]).tolist()
            if number in guessed
            else None,
            "radius_m": secret["circle_68_joint_m"],
        }
        for number, (finding, secret) in enumerate(
            zip(plan.findings, report["secrets"], strict=True), start=1
        )
    ]


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
