"""Activities: what a file states, the pace that is reckoned with, and what a cut costs at it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rides import ride
from tests.traces.formats.fit_files import DEFINITIONS, ENUM, definition, framed, record
from trailveil.errors import InvalidValue, Refused
from trailveil.privacy.movement import Movement
from trailveil.release.cutting import way, withheld
from trailveil.release.protect import leaving_half, protect, requested
from trailveil.release.request import Method, Request
from trailveil.report.record import record as record_of
from trailveil.report.text import text
from trailveil.traces.activities import ACTIVITIES, MIDDLE, activity_of, called, slowest
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.selection import Chosen, Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

MEANINGS = {
    "running": "run",
    "TrailRun": "run",
    "mountain_biking": "ride",
    "EBikeRide": "ride",
    "Biking": "ride",
    "9": "run",
    "Hiking": "walk",
    "Run, walk": "walk",
    "driving": "drive",
    "Other": "",
    "horseback_riding": "",
    "road": "",
    "12": "",
    "": "",
}


@pytest.mark.parametrize(("stated", "meant"), MEANINGS.items())
def test_names_mean_activities(stated: str, meant: str) -> None:
    assert activity_of(stated) == meant


def test_slower_is_never_a_wider_promise() -> None:
    floors = list(ACTIVITIES.values())
    assert floors == sorted(floors)
    assert list(MIDDLE) == list(ACTIVITIES)
    assert all(MIDDLE[name] <= floor for name, floor in ACTIVITIES.items())
    assert slowest(["drive", "run"]) == "run"
    assert slowest(["drive", ""]) == slowest([]) == ""
    assert called(ACTIVITIES["run"], MIDDLE["run"], "run") == "run"
    assert called(9.0, 9.0, "run") == ""


def gpx(*types: str | None) -> bytes:
    """A track of each type, of three fixes."""
    tracks = ""
    for number, kind in enumerate(types):
        stated = "" if kind is None else f"<type>{kind}</type>"
        fixes = "".join(
            f'<trkpt lat="1.{i}" lon="2"><time>2024-05-1{number}T08:0{i}:00Z</time></trkpt>'
            for i in range(3)
        )
        tracks += f"<trk>{stated}<trkseg>{fixes}</trkseg></trk>"
    return f'<gpx version="1.1"><trk><type>running</type></trk>{tracks}</gpx>'.encode()


TCX = b"""<TrainingCenterDatabase><Activities><Activity Sport="Biking"><Lap><Track><Trackpoint>
<Time>2024-05-14T08:00:00Z</Time><Position><LatitudeDegrees>1</LatitudeDegrees>
<LongitudeDegrees>2</LongitudeDegrees></Position></Trackpoint></Track></Lap></Activity></Activities>
</TrainingCenterDatabase>"""

STATED = {
    "a type": ("a.gpx", gpx("cycling"), "ride"),
    "no type": ("a.gpx", gpx(None), ""),
    "free text": ("a.gpx", gpx("Along the river"), ""),
    "the slower of two": ("a.gpx", gpx("cycling", "running"), "run"),
    "one of two": ("a.gpx", gpx("cycling", None), ""),
    "a sport": ("a.tcx", TCX, "ride"),
}


@pytest.mark.parametrize("case", STATED)
def test_files_state_what_they_are(tmp_path: Path, case: str) -> None:
    name, data, expected = STATED[case]
    (tmp_path / name).write_bytes(data)
    assert read(tmp_path / name).activity == expected


SPORT = definition(3, 12, [(0, 1, ENUM)])


@pytest.mark.parametrize(("sport", "expected"), [(1, "run"), (2, "ride"), (5, ""), (0xFF, "")])
def test_fit_states_a_sport(tmp_path: Path, sport: int, expected: str) -> None:
    body = DEFINITIONS + record(1_715_000_000, 2, 10) + SPORT + bytes([3, sport])
    (tmp_path / "a.fit").write_bytes(framed(body))
    assert read(tmp_path / "a.fit").activity == expected


def test_a_trace_keeps_it_and_takes_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.gpx").write_bytes(gpx("running"))
    trace, _ = clean(read(tmp_path / "a.gpx"))
    assert trace.activity == trace.only(np.ones(len(trace), dtype=bool)).activity == "run"
    with pytest.raises(InvalidValue, match="activity must be one of walk, run, ride, drive"):
        replace(trace, activity="swim")


def at(trace: Trace, index: int) -> Stretch:
    when = int(trace.times[index])
    return Stretch("at a stated time", when, when)


def bridged(speed: float, seconds: float) -> float:
    return Movement(speed, 60.0).bridged(seconds)


@pytest.mark.parametrize("index", [0, 360])
@pytest.mark.parametrize("activity", ["", *ACTIVITIES])
def test_the_cut_is_the_least_at_the_floor(activity: str, index: int) -> None:
    trace = replace(ride(720, 10.0), activity=activity)
    chosen = Chosen(("start",) if index == 0 else ("start+1h",), ends=False)
    request = requested(trace, chosen, Request((), radius=50.0))
    plan = protect(trace, request)
    cut = (plan.findings[0].cut or 0.0) - 60
    known = activity or "walk"
    speed, sides = (ACTIVITIES[known], 1) if index == 0 else (MIDDLE[known], 2)
    assert bridged(speed, cut - 1) / sides < request.variance <= bridged(speed, cut) / sides
    assert plan.findings[0].deviation == pytest.approx((bridged(speed, cut) / sides) ** 0.5)
    stated = requested(trace, chosen, Request((), radius=50.0, floor=3.0))
    assert (stated.paces.end.speed, stated.paces.middle.speed) == (3.0, 1.5)


def test_the_report_says_who_stated_the_pace_and_what_the_cut_costs() -> None:
    trace = replace(ride(720, 10.0), activity="ride")
    plan = protect(trace, requested(trace, Chosen(), Request(())))
    record = record_of(plan, None, output="x.gpx")
    assert record["target"]["activity"] == "ride"
    assert "The recording says that it is a ride, which counts as public" in text(record)
    along = way(plan.lattice)
    rows = plan.mechanism.rows
    metres = along[rows[-1]] - along[rows[0]]
    assert record["mechanism"]["withheld_km"] == pytest.approx((along[-1] - metres) / 1000)
    assert withheld(along, np.arange(len(trace))) == 0
    share = (record["mechanism"]["withheld_fixes"] or 0) / len(trace)
    assert f"({share:.0%} of all, {record['mechanism']['withheld_min']:.0f} min, " in text(record)
    for_others = record_of(plan, None, output="x.gpx", private=False)
    assert for_others["mechanism"]["withheld_km"] is None
    assert "half_with" not in for_others["mechanism"]
    by_hand = protect(trace, requested(trace, Chosen(), Request((), floor=2.0)))
    assert "at least 2 m/s (--floor)" in text(record_of(by_hand, None, output="x.gpx"))
    json.dumps(record)


def test_what_would_leave_half_is_said_and_does() -> None:
    trace = ride(300, 10.0)
    request = replace(
        requested(trace, Chosen(), Request(())), stretches=(at(trace, 0), at(trace, -1))
    )
    few = replace(request, radius=180.0)
    smaller, faster = leaving_half(trace, few)
    assert smaller.startswith("--radius ")
    assert faster == "--activity ride (if you were never slower)"
    radius = float(smaller.split()[1])
    for metres, enough in ((radius, True), (radius + 18, False)):
        rows = protect(trace, replace(request, radius=metres)).mechanism.rows
        assert (2 * rows.size >= len(trace)) is enough
    assert f"Half is left with {smaller} or {faster}" in " ".join(
        text(record_of(protect(trace, few), None, output="x.gpx")).split()
    )
    assert leaving_half(trace, request) == ()
    assert leaving_half(trace, replace(few, method=Method.NOISE)) == ()
    with pytest.raises(
        Refused, match=r"at least two fixes must remain.* half is left with --radius"
    ):
        protect(trace, replace(request, radius=400.0))


def test_half_does_not_depend_on_where_it_was() -> None:
    trace = ride(180, 10.0)
    other = Trace(trace.times, trace.positions[::-1] + 1.0, trace.segments, trace.tracks)
    assert trace.times[1] - trace.times[0] == 10 * NANOSECONDS
    few = Request((at(trace, 0),), radius=400.0)
    assert leaving_half(trace, few) == leaving_half(other, few) != ()
