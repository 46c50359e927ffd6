"""One line says whether to share, from what stands first in the report."""

from typing import Any

import pytest

from tests.report.test_brief import ENDS
from tests.report.test_report import TRACE, plan_of
from trailveil.page.planner import verdict
from trailveil.release.protect import protect
from trailveil.release.request import Request
from trailveil.report.record import record

HOME = {"name": "home", "total": 2.0, "stated": 1.0, "circle_68_m": 169.2}
ONCE: dict[str, Any] = {
    "releases": 1,
    "overlapping": 0,
    "known": 1.0,
    "times": 1.0,
    "if_one_place": 1.0,
    "if_one_place_circle_68_m": None,
    "places": [],
}
SLOW = "You moved at 0.5 m/s beside what is hidden. State how you moved."
STOPPED = "You also stopped 43 min at one place: add --stops auto --replace."
GAP = "There is no fix for 9 min. If you stopped there, add --stops auto --stops-within 200."
SAID: dict[str, tuple[dict[str, Any], str]] = {
    "not counted yet": ({}, "Save it first: this line then says whether to share it."),
    "no reason": ({"ledger": ONCE}, "Share it: a stranger's best guess of what you hide is a circ"),
    "used up": (
        {"ledger": {**ONCE, "known": 2.0, "places": [HOME]}},
        "Do not share it: home is used up. From all releases together, a stranger's best guess of "
        "it is a circle of 169 m.",
    ),
    "within what was stated": (
        {"ledger": {**ONCE, "known": 2.0, "places": [{**HOME, "stated": 2.0}]}},
        "Share it: ",
    ),
    "more of one time": (
        {"ledger": {**ONCE, "known": 1.5}},
        "Do not share it: All your releases together tell epsilon 1.5 of one time or place.",
    ),
    "everything of one time": (
        {"ledger": {**ONCE, "known": None}},
        "Do not share it: All your releases together tell everything of one time or place.",
    ),
    "another version": (
        {"ledger": {**ONCE, "overlapping": 1, "times": None, "known": None}},
        "Do not share it: Another version of this recording shows what this one hides.",
    ),
    "a slower pace": ({"heed": [SLOW]}, f"Do not share it: {SLOW}"),
    "a stop and a gap": (
        {"ledger": ONCE, "heed": [STOPPED, GAP]},
        "Share it only if you accept this: You also stopped 43 min at one place. There is no fix "
        "for 9 min.",
    ),
    "all parts at one place": (
        {"ledger": {**ONCE, "if_one_place_circle_68_m": 12.3}},
        "Share it only if you accept this: If the hidden parts of all your releases are one place, "
        "a stranger's best guess of it is a circle of 12 m.",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_a_cut_is_shared_unless_something_speaks_against_it(name: str) -> None:
    more, words = SAID[name]
    report: Any = record(plan_of("cut"), None, output="out.gpx")
    shown = verdict(report | {"heed": []} | more)
    assert shown.startswith(words)
    assert "--" not in shown


def test_it_has_the_figure_of_the_whole() -> None:
    plan = protect(TRACE, Request(ENDS, floor=10.0, middle=10.0, uncertain=5, radius=10.0))
    report: Any = record(plan, None, output="out.gpx") | {"ledger": ONCE, "heed": []}
    assert f"a circle of {report['worst']['circle_68_m']:.0f} m" in verdict(report)


def test_noise_is_not_shared_where_there_is_a_street_map() -> None:
    report: Any = record(plan_of("a time"), None, output="out.gpx") | {"ledger": ONCE}
    assert verdict(report).startswith("Do not share it: A street map can undo noise")
