"""`trailveil protect` by place: what is refused, what is said, and that no place is repeated."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.rides import ride, written
from trailveil.traces.visits import Circle, visits

Run = Callable[..., tuple[int, str, str]]
TRACE = ride(60, 30.0, still=(20, 35))  # a stay of 7.5 minutes, 10 minutes after the start
LATITUDE, LONGITUDE = (round(float(value), 4) for value in TRACE.positions[27])
PLACE = f"{LATITUDE},{LONGITUDE},60"
SWAPPED = f"{LONGITUDE},{LATITUDE},60"


SHORT = ("--activity", "drive")
ALONE = ("--no-ends", "--stops", "auto")


@pytest.fixture
def run(program: Run, tmp_path: Path) -> Run:
    written(tmp_path / "ride.gpx", TRACE)
    return partial(program, "protect")


def tells_the_place(text: str) -> bool:
    """Whether more than two digits of either coordinate stand in it."""
    return bool(re.search(rf"{str(LATITUDE)[:4]}|{str(LONGITUDE)[:4]}", text))


REFUSED: dict[str, tuple[int, tuple[str, ...], str]] = {
    "nobody was there": (1, ("--near", "48.9,11.575,60"), "no visit to place 1: check"),
    "one of two": (1, ("--near", PLACE, "--near", "48.9,11.575,60"), "no visit to place 2: check"),
    "stated besides": (1, ("--at", "start", "--near", "48.9,11.575,60"), "no visit to place 1"),
    "swapped": (1, ("--near", SWAPPED), "the other way round there are"),
    "swapped, off the globe": (1, ("--near", "151.5,-33.9,60"), "seem to be swapped"),
    "latitude": (1, ("--near", f"95.{LATITUDE},{LONGITUDE},60"), "LAT,LON,METRES such as"),
    "latitude 95": (1, ("--near", "95,100,60"), "a latitude within"),
    "longitude": (1, ("--near", "48.1,181,60"), "a longitude within"),
    "no metres": (1, ("--near", f"{LATITUDE},{LONGITUDE}"), "LAT,LON,METRES such as"),
    "metres of 0": (1, ("--near", f"{LATITUDE},{LONGITUDE},0"), "metres above 0"),
    "not a number": (1, ("--near", f"{LATITUDE},{LONGITUDE},nan"), "LAT,LON,METRES such as"),
    "unit": (1, ("--near", f"{PLACE}m"), "no unit"),
    "spaces": (2, ("--near", f"{LATITUDE},", f"{LONGITUDE},", "60"), "without spaces"),
    "spaces, negative": (2, ("--near", f"{LATITUDE},", f"-{LONGITUDE},", "60"), "without spaces"),
    "nothing": (2, ("--near",), "requires an argument"),
    "everywhere near": (2, ("--near", PLACE, "--everywhere"), "got --near as well"),
    "everywhere stops": (2, ("--stops", "auto", "--everywhere"), "got --stops as well"),
    "stops within, alone": (2, ("--stops-within", "50"), "must come with --stops auto"),
    "stops for, alone": (2, ("--stops-for", "50", "--near", PLACE), "must come with --stops auto"),
    "stops for nothing": (2, ("--stops", "auto", "--stops-for", "0"), "--stops-for"),
    "stops within nan": (2, ("--stops", "auto", "--stops-within", "nan"), "--stops-within"),
    "longer stops": (1, (*ALONE, "--stops-for", "900"), "15 min within 100 m"),
    "smaller stops": (1, (*ALONE, "--stops-within", "0.5"), "5 min within 0.5 m"),
    "no ends": (1, ("--no-ends",), "got --no-ends and nothing else: state times"),
    "everywhere, no ends": (2, ("--no-ends", "--everywhere"), "got --no-ends as well"),
    "no ends of readings": (2, ("--column", "v", "--no-ends"), "--no-ends must be for"),
    "readings": (2, ("--column", "v", "--near", PLACE), "--near must be for traces"),
    "stops of readings": (2, ("--column", "v", "--stops-for", "9"), "--stops-for must be for"),
    "other stops": (2, ("--stops", "home"), "--stops"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_one_line_without_the_place(name: str, run: Run, tmp_path: Path) -> None:
    status, words, hint = REFUSED[name]
    exit_status, out, err = run("ride.gpx", *words)
    assert exit_status == status
    assert hint in err
    assert out == ""
    assert not tells_the_place(err)
    assert len(err.splitlines()) == 1 or status == 2
    assert not (tmp_path / "ride.private.gpx").exists()


def test_no_stay_is_refused_with_advice(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "moving.gpx", ride(40, 20.0, seed=3))
    status, out, err = run("moving.gpx", *ALONE)
    assert (status, out) == (1, "")
    assert "no stay that --stops auto finds (5 min within 100 m): state times" in err
    status, out, _ = run(
        "moving.gpx", *SHORT, "--radius", "10", "--stops", "auto", "--no-returns", "--json"
    )
    assert status == 0
    assert described(json.loads(out)) == [("time", "the start", True), ("time", "the end", True)]


def test_an_option_that_does_not_exist_is_still_named(run: Run) -> None:
    status, _, err = run("ride.gpx", "--neer", "1")
    assert status == 2
    assert "No such option" in err
    assert "--neer" in err
    assert run()[0] == 2


def described(report: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [
        (secret["kind"], secret["label"], secret["chosen_by_place"]) for secret in report["secrets"]
    ]


def test_places_and_stays_are_protected_and_told_of(run: Run, tmp_path: Path) -> None:
    near = ("--near", PLACE, "--no-returns", "--no-ends")
    status, out, err = run("ride.gpx", *SHORT, *near, "--json", "--report", "r.json")
    assert (status, err) == (0, "")
    printed, public = json.loads(out), json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert described(printed) == [("stay", "near stated place 1", True)]
    ((begin, end),) = visits(TRACE, Circle(LATITUDE, LONGITUDE, 60.0))
    inside = (TRACE.times >= begin) & (TRACE.times <= end)
    assert printed["secrets"][0]["fixes"] == inside.sum() >= 15
    for report in (printed, public):
        (warning,) = (sentence for sentence in report["warnings"] if "chosen by where" in sentence)
        assert "a figure there and not a guarantee" in warning
        assert "at the edge of a protected place" in warning
        assert "how many such visits" in warning
        assert "--everywhere tells none of that" in warning
    assert "leave --no-ends out" in " ".join(printed["not_protected"])
    assert "leave --no-ends out" not in " ".join(public["not_protected"])
    words = json.dumps(public)
    assert "near stated" not in words
    assert not re.search(r"\d\d:\d\d", words)
    numbers = re.findall(r"-?\d+\.\d+", out + words)
    for value in (LATITUDE, LONGITUDE):
        assert min(abs(float(number) - value) for number in numbers) > 1e-3
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        if path.suffix != ".gpx":  # what is remembered of the release, and its lock
            assert str(LATITUDE).encode() not in path.read_bytes(), path


def test_all_that_is_stated_adds_up(run: Run) -> None:
    ends = ("--at", "start", "--at", "end")
    words = (*SHORT, "--radius", "30", *ends, "--near", PLACE, "--stops", "auto", "--json")
    status, out, _ = run("ride.gpx", *words)
    assert status == 0
    report = json.loads(out)
    assert described(report) == [
        ("time", "at a stated time, the start", True),
        ("stay", "near stated place 1, a stay that was found", True),
        ("time", "at a stated time, the end", True),
    ]
    assert "leave --no-ends out" not in " ".join(report["not_protected"])


def test_both_ends_are_chosen_by_place_whether_widened_or_not(run: Run) -> None:
    status, out, _ = run("ride.gpx", "--no-returns", "--json")
    assert status == 0
    report = json.loads(out)
    assert described(report) == [("time", "the start", True), ("time", "the end", True)]
    assert "(--no-returns), and leave as recorded" in " ".join(report["not_protected"])
    assert "chosen by where you were" in " ".join(report["warnings"])
    assert "leave --no-ends out" not in " ".join(report["not_protected"])
    anew = ("--no-ends", "--at", "start", "--json", "--again", "--overwrite")
    status, out, _ = run("ride.gpx", *anew, "--no-returns")
    assert "chosen by where" not in " ".join(json.loads(out)["warnings"])
