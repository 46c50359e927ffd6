"""What `protect` prints: at most 15 lines of at most 98 characters, with what matters in them."""

import json
import re
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tests.readings import readings_request
from tests.report.test_report import REQUESTS, TRACE, plan_of, stretch
from tests.rides import route
from trailveil.gp.kernels import RBF, White
from trailveil.ledger.retractions import Retraction
from trailveil.release.drawing import draw
from trailveil.release.everywhere import plan_everywhere
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.readings_release import plan_readings
from trailveil.release.request import Method, Request
from trailveil.report.brief import (
    COLUMNS,
    HIDDEN,
    LEGEND,
    MOST_LINES,
    ROWS,
    brief,
    sketch,
)
from trailveil.report.record import record
from trailveil.report.text import text
from trailveil.traces.readings import Readings
from trailveil.traces.retiming import Retiming
from trailveil.traces.selection import RETURN, Chosen, Stretch
from trailveil.traces.trace import NANOSECONDS

AUDIT = "trailveil audit ride.gpx ride.private.gpx"
ENDS = tuple(Chosen(returns=False).stretches(TRACE))
SHORT: dict[str, Any] = {"floor": 10.0, "middle": 10.0, "uncertain": 5, "radius": 10.0}


def of(planned: Any, **more: Any) -> str:
    report: Any = record(planned, None, output="ride.private.gpx")
    return brief(report | more, AUDIT)


@pytest.mark.parametrize("name", REQUESTS)
def test_it_is_short_and_says_what_matters(name: str) -> None:
    shown = of(plan_of(name))
    lines = shown.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(len(line) for line in lines) <= 98
    assert "hidden in ride.private.gpx" in lines[0]
    assert re.search(r"A stranger.*circle of [\d,]+ m", shown)
    assert "Not protected: the rest of the track" in shown
    assert AUDIT in " ".join(shown.split())
    noise = plan_of(name).request.method is Method.NOISE
    assert ("which a street map can undo" in lines[0]) == noise
    assert ("within" in shown) == (plan_of(name).request.method is not Method.CUT)


@pytest.mark.parametrize("count", [0, 1, 12])
def test_readings_are_told_as_shortly(count: int) -> None:
    times = np.arange(200) * 1_800 * NANOSECONDS
    readings = Readings(times, np.sin(np.arange(200) / 8.0), "degC")
    parts = tuple(
        Stretch("at a stated time", int(when), int(when), by_place=False)
        for when in times[5 : 5 + 12 * count : 12]
    )
    kernel = RBF(10_800.0, 2.0) + White(0.3)
    readings_plan = plan_readings(readings, readings_request(parts, 1.0, kernel))
    report = record(readings_plan, None, output="room.private.csv")
    shown = brief(report, "", further=True)
    lines = shown.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(len(line) for line in lines) <= 98
    title = {0: "Every reading", 1: "A stated time", 12: "12 stated times"}[count]
    more = re.search(r"(\d+) more, which --explain lists", shown)
    assert (int(more[1]) if more else 0) + shown.count("1 reading\n") == count
    assert lines[0] == f"{title}: hidden in room.private.csv"
    assert re.search(r"Moved: by [\d.]+ degC on average", shown)
    assert "Of two values up to 1 degC apart" in shown
    others = "how values differ" if count == 0 else "every other reading"
    assert f"Not protected: {others} and the times." in shown
    assert "released before" in shown
    assert "released before" not in brief(report, "")
    assert "audit" not in shown
    taken = Retraction(
        number=1, output="x.csv", version=None, made_utc="2024-05-14 08:00:00", hidden=[], epsilon=1
    )
    last = brief(report, "", stray=[taken]).split("Next: ")[1]
    assert " ".join(last.split()).startswith(
        "delete x.csv (made 2024-05-14 08:00 UTC). With --overwrite"
    )


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("count", [0, 2])
def test_what_is_said_of_readings_is_of_readings_in_their_unit(count: int, private: bool) -> None:
    """It has the sentences of a track, under whose names its lengths are for a while."""
    times = np.arange(60) * 1_800 * NANOSECONDS
    readings = Readings(times, np.sin(np.arange(60) / 8.0), "degC")
    ends = [(times[5], times[9]), (times[30], times[30])][:count]
    parts = tuple(Stretch("between stated times", int(a), int(b)) for a, b in ends)
    kernel = RBF(10_800.0, 2.0) + White(0.3)
    planned = plan_readings(readings, readings_request(parts, 1.0, kernel))
    report: Any = record(planned, None, output="room.private.csv", private=private)
    shown = " ".join(text(report).split())
    assert not re.search(r"\b(fix|fixes|circle|tracks?|places?|you were|pace|map)\b", shown)
    assert not re.search(r"\d k?m\b", shown)
    assert re.search(r"right to [\d.]+ degC either way 68 times in 100", shown)
    assert ("5 readings: every value in it and their mean" in shown) == (private and count > 0)
    assert "circle_68_m" not in json.dumps(report)


def test_many_parts_are_not_all_listed() -> None:
    parts = tuple(stretch(row, row, label="at a stated time") for row in range(5, 55, 5))
    shown = of(protect(TRACE, Request(parts, **SHORT)))
    assert shown.startswith("10 stated times: hidden in")
    assert "6 more, which --explain lists" in shown
    assert len(shown.splitlines()) <= MOST_LINES


def test_a_stop_that_is_not_protected_is_named_in_one_line() -> None:
    """The ride stands still for 7.5 minutes in its middle."""
    planned = protect(TRACE, Request(ENDS, **SHORT))
    assert "You also stopped 8 min at one place: add --stops auto --replace, unless" in " ".join(
        of(planned).split()
    )
    stop = stretch(22, 24, label="between stated times")
    shown = of(protect(TRACE, Request((*ENDS, stop), **SHORT)))
    assert shown.startswith("Both ends, a stated stay: hidden in")
    assert "You also stopped" not in shown


LEGS = ((900, 5000, 0), (2100, 5000, 0), (3000, 0, 0), (4200, 5000, 0), (5400, 5000, 0))


def test_stops_are_counted_as_stops_and_not_as_places() -> None:
    trace = route("back and forth", [(0, 0, 0), *LEGS, (9000, 9000, 0)], [], step=20.0).trace
    parts = tuple(Chosen(returns=False).stretches(trace))
    shown = " ".join(of(protect(trace, Request(parts, **SHORT))).split())
    assert "You also stopped 2 times, for 20 to 22 min: add --stops auto" in shown


def test_a_return_refers_to_no_part_before_it() -> None:
    parts = [stretch(row, row, label=RETURN) for row in (10, 20)]
    time = stretch(30, 30, label="at a stated time")
    shown = of(protect(TRACE, Request((parts[0], time), **SHORT)))
    assert shown.startswith("A return to a protected place, a stated time: hidden in")
    shown = of(protect(TRACE, Request((*parts, time), **SHORT)))
    assert shown.startswith("2 returns to protected places, a stated time: hidden in")


def test_the_best_informed_is_told_of_in_a_sentence() -> None:
    part = stretch(30, 30, label="at a stated time")
    shown = of(protect(TRACE, Request((part,), method=Method.NOISE)))
    assert re.search(
        r"reckoned with \([^)]*\): they could already place you within [\d,]+ m; with your track, "
        r"within [\d,]+ m\.$",
        " ".join(shown.split()).partition(" Not protected")[0],
    )


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ("2026-10-25T00:50Z", "2026-10-25T01:05Z", "2026-10-25 02:50 CEST to 02:05 CET"),
        ("2026-03-29T00:50Z", "2026-03-29T01:10Z", "2026-03-29 01:50 CET to 03:10 CEST"),
        ("2026-10-24T21:50Z", "2026-10-25T01:05Z", "2026-10-24 23:50 CEST to 2026-10-25 02:05 CET"),
        ("2026-10-25T02:50Z", "2026-10-25T03:05Z", "2026-10-25 03:50 to 04:05 CET"),
    ],
)
def test_a_change_of_clocks_is_told(begin: str, end: str, said: str) -> None:
    first, last = (
        round(datetime.fromisoformat(at).timestamp()) * NANOSECONDS for at in (begin, end)
    )
    trace = replace(TRACE, times=TRACE.times - TRACE.times[20] + first)
    part = Stretch("between stated times", first, last)
    report: Any = record(
        protect(trace, Request((part,), **SHORT)),
        None,
        output="ride.private.gpx",
        zone=ZoneInfo("Europe/Zurich"),
    )
    assert f"  {said}: between stated times" in brief(report, AUDIT)


def test_files_of_replaced_versions_are_to_be_deleted() -> None:
    report = record(protect(TRACE, Request(ENDS, **SHORT)), None, output="ride.private.gpx")
    stray = [
        Retraction(
            number=number,
            output=f"{number}.gpx",
            version=None,
            made_utc="2024-05-14 08:00:00",
            hidden=["the start"],
            epsilon=1.0,
        )
        for number in range(6)
    ]
    words = "3.gpx (made 2024-05-14 08:00 UTC), 2 more (trailveil ledger show). Then trailveil"
    shown = brief(report, "trailveil audit", stray=stray)
    assert words in " ".join(shown.split())
    assert len(shown.splitlines()) <= MOST_LINES
    assert "delete" not in brief(report, "trailveil audit")


def test_a_place_for_everybody_is_told_as_it_is() -> None:
    plan = plan_everywhere(TRACE, Request((), method=Method.EVERYWHERE))
    shown = of(plan)
    assert shown.startswith("Every place at any time: hidden in")
    assert "even with a map" not in shown
    assert "Not protected: the times." in shown
    assert len(shown.splitlines()) <= MOST_LINES


def test_less_than_half_names_what_leaves_half() -> None:
    planned = protect(TRACE, replace(plan_of("cut").request, radius=400.0, floor=5.0, middle=5.0))
    assert re.search(r"Half is left with --radius \d+", " ".join(of(planned).split()))


def drawn(plan: Plan) -> list[str]:
    return sketch(plan, draw(plan, bytes(32))[0])


@pytest.mark.parametrize("name", REQUESTS)
def test_it_is_small_and_has_both(name: str) -> None:
    lines = drawn(plan_of(name))
    assert 2 <= len(lines) <= ROWS + 1 == 8
    assert lines[-1] == f"  {LEGEND}"
    assert max(len(line) for line in lines) <= COLUMNS + 2
    shown = "".join(lines[:-1]).replace(" ", "")
    assert HIDDEN in shown
    assert {*shown} - {HIDDEN, "\u2800"}
    assert all(mark == HIDDEN or "\u2800" <= mark <= "\u28ff" for mark in shown)


def test_a_straight_way_east_is_a_line_that_begins_and_ends_in_blocks() -> None:
    east = np.column_stack([np.full(60, 48.1), 11.5 + np.arange(60) * 1e-3])
    planned = protect(replace(TRACE, positions=east), plan_of("cut").request)
    line, legend = drawn(planned)
    assert legend == f"  {LEGEND}"
    assert len(line) == COLUMNS + 2
    hidden = ~np.asarray(planned.mechanism.released)
    # The fixes are evenly spread: a block stands where one of those in its cell is hidden.
    cells = (planned.lattice[:, 0] - planned.lattice[:, 0].min()) / np.ptp(planned.lattice[:, 0])
    columns = np.minimum((cells * (2 * COLUMNS - 1)).astype(int) // 2, COLUMNS - 1)
    for column in columns[hidden]:
        assert line[2 + column] == HIDDEN
    clear = set(range(COLUMNS)) - {*columns[hidden]} - {*(columns[hidden] - 1)}
    assert all(line[2 + column] != HIDDEN for column in clear - {*(columns[hidden] + 1)})
    assert line[2 + COLUMNS // 2] != "\u2800"


def test_one_place_has_no_sketch() -> None:
    still = np.tile([[48.1, 11.5]], (60, 1))
    assert drawn(protect(replace(TRACE, positions=still), plan_of("cut").request)) == []


@pytest.mark.parametrize(
    ("retiming", "changed"),
    [
        (Retiming(), ""),
        (Retiming(step=60), "Times are rounded to 1 min."),
        (Retiming(shift=True), "Times count from the beginning of 2000."),
        (
            Retiming(step=60, shift=True),
            "Times count from the beginning of 2000. Times are rounded to 1 min.",
        ),
        (Retiming(drop=True), "No times leave: the order of each fix does."),
    ],
)
@pytest.mark.parametrize("name", REQUESTS)
def test_times_that_are_changed_are_not_said_to_be_as_recorded(
    retiming: Retiming, changed: str, name: str
) -> None:
    report = record(plan_of(name), None, output="ride.private.gpx", retiming=retiming)
    shown = " ".join(brief(report, AUDIT).split())
    exact = plan_of(name).request.method is Method.CUT
    assert changed in shown
    assert ("All else is exactly as recorded." in shown) == (exact and not changed)
    expected = f"All other places are exactly as recorded. {changed}"
    assert (expected in shown) == (exact and bool(changed))
