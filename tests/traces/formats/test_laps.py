"""Laps are neither read nor released: every kilometre of them tells how long a hidden way is."""

import io
from dataclasses import replace
from pathlib import Path

import fitdecode
import numpy as np
import pytest

from tests.rides import ride
from trailveil.checks.scan import scan
from trailveil.release.drawing import draw
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read, write
from trailveil.traces.formats.fit import read as read_fit
from trailveil.traces.formats.grid import rows_of, way_lengths
from trailveil.traces.formats.tcx import read as read_tcx
from trailveil.traces.projection import MICRO
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

READERS = {".fit": read_fit, ".tcx": read_tcx}
NUMBERS = np.arange(60)
# A pause at row 30, in the first of two tracks.
TRACE = replace(
    ride(60, 5.0), segments=(NUMBERS >= 30).astype(int) + (NUMBERS >= 50), tracks=(0, 0, 1)
)


def written(trace: Trace, suffix: str) -> bytes:
    out = io.BytesIO()
    write(trace, out, suffix)
    return out.getvalue()


@pytest.mark.parametrize("suffix", READERS)
def test_a_track_is_one_lap_and_its_segments_read_back(suffix: str) -> None:
    data = written(TRACE, suffix)
    recording = READERS[suffix](data, "x")
    assert np.flatnonzero(np.diff(recording.segments)).tolist() == [29, 49]
    assert recording.tracks == (0, 0, 1)
    again, _ = clean(recording)
    assert written(again, suffix) == data


def test_a_lap_of_fit_has_the_times_and_the_length_of_its_track() -> None:
    whole = replace(TRACE, segments=(NUMBERS >= 30).astype(int), tracks=(0, 0))
    with fitdecode.FitReader(io.BytesIO(written(whole, ".fit"))) as reader:
        frames = [frame for frame in reader if frame.frame_type == fitdecode.FIT_FRAME_DATA]
    (lap,) = (frame for frame in frames if frame.name == "lap")
    assert int(lap.get_value("start_time").timestamp()) == int(TRACE.times[0]) // 10**9
    assert lap.get_value("total_elapsed_time") == 295.0
    lengths = way_lengths(rows_of(whole, np.round(TRACE.positions * MICRO).astype(np.int64)))
    assert [lap.get_value("total_distance")] == pytest.approx(lengths, abs=0.3)
    session = next(frame for frame in frames if frame.name == "session")
    assert session.get_value("num_laps") == 1
    timer = [frame for frame in frames if frame.name == "event"]
    assert [frame.get_value("event_type") for frame in timer] == ["start", "stop_all"] * 2


# A lap for each kilometre (or mile), by the recorder: laps begin at 0, 1, 2, ... of them.
RECORDED = (
    "fit/fitdecode/sample-activity.fit",
    "fit/ezgpx/garmin_forerunner45_run_error_1.fit",
    "tcx/tcxreader/sup_activity_1.tcx",
)


@pytest.mark.parametrize("suffix", [".fit", ".tcx", ".gpx"])
@pytest.mark.parametrize("name", RECORDED)
def test_no_lap_of_a_recording_leaves(shared: Path, name: str, suffix: str) -> None:
    """Where one began would tell how far it was from the start, which is hidden, to that fix."""
    path = shared / "traces" / name
    trace, _ = clean(read(path))
    asked = Request((), radius=5.0, floor=10.0, middle=10.0, uncertain=1)
    plan = protect(trace, requested(trace, Chosen(returns=False), asked))
    released = draw(plan, bytes(32))[0]
    data = written(released, suffix)
    if suffix == ".fit":
        with fitdecode.FitReader(io.BytesIO(data)) as reader:
            frames = [frame for frame in reader if frame.frame_type == fitdecode.FIT_FRAME_DATA]
        assert sum(frame.name == "lap" for frame in frames) == 1
    else:
        assert data.count(b"<Lap ") == (suffix == ".tcx")
        pieces = data.count(b"<Track>") + data.count(b"<trkseg>")
        assert pieces == len(np.unique(released.segments))
    scanned = scan((path.name, path.read_bytes()), (f"x{suffix}", data), Chosen(returns=False))
    assert [leak for leak in scanned.leaks if "Lap" in leak.where or leak.where == "the file"] == []


def test_a_lap_is_no_segment_of_tcx(shared: Path) -> None:
    """Garmin writes a Track in each Lap: only a second one in a Lap is a pause."""
    path = shared / "traces" / "tcx/tcxreader/sup_activity_1.tcx"
    data = path.read_bytes()
    assert data.count(b"<Lap ") > 1
    recording = read_tcx(data, "x")
    assert len(recording.tracks) == 1 + data.count(b"<Track>") - data.count(b"<Lap ")
