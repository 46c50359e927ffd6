"""audit --utility: one recording, and folders of many."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import done, refused, run
from trailveil.checks.utility import compare, together
from trailveil.traces.formats import write
from trailveil.traces.projection import MICRO, microdegrees
from trailveil.traces.trace import NANOSECONDS, Trace

START = 1_714_548_600 * NANOSECONDS


def ride(number: int = 0) -> Trace:
    """Twenty minutes of which six are a stop."""
    metres = np.concatenate(
        [np.arange(42) * 200.0, np.full(36, 8_200.0), 8_200 + np.arange(42) * 200]
    )
    positions = np.stack([46.2 + metres / 111_150, np.full(120, -33.0 + number)], axis=1)
    positions = microdegrees(positions) / MICRO
    times = START + np.arange(120) * 10 * NANOSECONDS
    return Trace(times, positions, np.zeros(120, np.intp), (0,))


def moved(trace: Trace, metres: float = 300.0) -> Trace:
    positions = (
        microdegrees(trace.positions + metres * np.array([0.6 / 111_150, 0.8 / 77_150])) / MICRO
    )
    return Trace(trace.times, positions, trace.segments, trace.tracks)


def save(trace: Trace, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        write(trace, out, path.suffix)
    return path


def test_one_recording_in_numbers_and_in_words(tmp_path: Path) -> None:
    trace, released = ride(), moved(ride()).only(np.arange(120) != 5)
    files = save(trace, tmp_path / "a.gpx"), save(released, tmp_path / "a.private.gpx")
    utility = json.loads(done("audit", *files, "--utility", "--json"))["utility"]
    expected = compare(trace, released)
    assert utility["moved_rms_m"] == pytest.approx(expected.rms, abs=1e-3)
    assert utility["moved_rms_m"] == pytest.approx(300, rel=1e-2)
    assert utility["before"]["length_m"] == pytest.approx(expected.before.length, abs=0.01)
    assert utility["after"]["stops"] == expected.after.stops == 1
    assert (utility["withheld_fixes"], utility["stops_kept"]) == (1, 0)
    words = done("audit", *files, "--utility")
    assert "No leak found." in words
    assert "moved by 300 m (root mean square)" in words
    assert "0 of 1 stops are where and when they were" in words
    assert "for you alone" in words
    assert "utility" not in json.loads(done("audit", *files, "--json"))


def test_shifted_times_are_those_of_the_original(tmp_path: Path) -> None:
    released = moved(ride())
    shift = np.datetime64("2000-01-01", "ns").astype(np.int64) - START
    later = Trace(released.times + shift, released.positions, released.segments, (0,))
    files = save(ride(), tmp_path / "a.gpx"), save(later, tmp_path / "b.gpx")
    utility = json.loads(done("audit", *files, "--utility", "--json"))["utility"]
    assert utility["moved_rms_m"] == pytest.approx(300, rel=1e-2)


def test_folders_are_compared_together(tmp_path: Path) -> None:
    pairs = []
    for number in range(4):
        trace = ride(number)
        pairs.append((trace, moved(trace, 900.0 * number)))
        save(trace, tmp_path / "rides" / f"{number % 2}" / f"ride {number}.gpx")
        name = f"ride {number}.private.csv" if number else f"ride {number}.gpx"
        save(pairs[-1][1], tmp_path / "out" / f"{number % 2}" / name)
    save(ride(7), tmp_path / "rides" / "unreleased.gpx")
    folders = tmp_path / "rides", tmp_path / "out"
    utility = json.loads(done("audit", *folders, "--utility", "--json", "--cell", 800))["utility"]
    expected = together(pairs, 800.0)
    assert utility["traces"] == 4
    assert utility["density"]["overlap"] == pytest.approx(expected.density.overlap, abs=1e-9)
    assert 0 < utility["density"]["overlap"] < 1
    assert utility["flows"]["same_trip"] == expected.same_trip
    words = done("audit", *folders, "--utility")
    assert "4 traces together, in cells of 500 m" in words
    # Releases beside their originals are found, too.
    folder = save(moved(ride()), tmp_path / "one" / "a.private.gpx").parent
    save(ride(), folder / "a.gpx")
    assert (
        json.loads(done("audit", folder, folder, "--utility", "--json"))["utility"]["traces"] == 1
    )


def test_wrong_usage(tmp_path: Path) -> None:
    file = save(ride(), tmp_path / "a.gpx")
    assert "got a directory" in refused("audit", tmp_path, file, "--utility")
    for words, message in (
        ((), "must come with --utility"),
        (("--utility", "--attack", "all"), "not on folders"),
        (("--utility", "--cell", "0"), "1<=x<=100000"),
    ):
        assert message in run("audit", tmp_path, tmp_path, *words, status=2).output
    (tmp_path / "empty").mkdir()
    none = refused("audit", tmp_path, tmp_path / "empty", "--utility")
    assert "called as their originals" in none
