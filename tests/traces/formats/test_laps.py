"""Laps of FIT and TCX: read, written with totals of what is released, and kept outside of cuts."""

import io
import struct
from dataclasses import replace
from pathlib import Path

import fitdecode
import numpy as np
import pytest

from tests.rides import ride
from tests.traces.formats.fit_files import DEFINITIONS, EPOCH, UINT32, definition, framed, record
from trailveil.checks.scan import scan
from trailveil.release.drawing import draw
from trailveil.release.protect import protect
from trailveil.release.request import Request
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read, write
from trailveil.traces.formats.fit import read as read_fit
from trailveil.traces.formats.grid import WrittenRows, rows_of, way_lengths
from trailveil.traces.formats.tcx import read as read_tcx
from trailveil.traces.projection import MICRO
from trailveil.traces.selection import Chosen, Stretch
from trailveil.traces.trace import Trace, no_laps

READERS = {".fit": read_fit, ".tcx": read_tcx}
NUMBERS = np.arange(60)
# A pause within the second lap: at row 30.
TRACE = replace(
    ride(60, 5.0), segments=(NUMBERS >= 30).astype(int), tracks=(0, 0), laps=NUMBERS // 20
)


def written(trace: Trace, suffix: str) -> bytes:
    out = io.BytesIO()
    write(trace, out, suffix)
    return out.getvalue()


def begins(laps: np.ndarray) -> list[int]:
    return np.flatnonzero(np.diff(laps, prepend=-1)).tolist()


@pytest.mark.parametrize("suffix", READERS)
def test_laps_read_back_as_they_were_written(suffix: str) -> None:
    data = written(TRACE, suffix)
    recording = READERS[suffix](data, "x")
    assert begins(recording.laps) == [0, 20, 40]
    again, _ = clean(recording)
    assert written(again, suffix) == data
    # Without laps, each segment is one.
    assert begins(READERS[suffix](written(replace(TRACE, laps=no_laps()), suffix), "x").laps) == [
        0,
        30,
    ]


def test_a_lap_of_fit_has_the_times_and_the_length_of_its_fixes() -> None:
    with fitdecode.FitReader(io.BytesIO(written(TRACE, ".fit"))) as reader:
        frames = [frame for frame in reader if frame.frame_type == fitdecode.FIT_FRAME_DATA]
    laps = [frame for frame in frames if frame.name == "lap"]
    begin = [int(lap.get_value("start_time").timestamp()) for lap in laps]
    assert begin == [int(TRACE.times[row]) // 10**9 for row in (0, 20, 40)]
    assert [lap.get_value("total_elapsed_time") for lap in laps] == [95.0] * 3
    lengths = way_lengths(rows_of(TRACE, np.round(TRACE.positions * MICRO).astype(np.int64)))
    assert [lap.get_value("total_distance") for lap in laps] == pytest.approx(lengths, abs=0.3)
    session = next(frame for frame in frames if frame.name == "session")
    assert session.get_value("num_laps") == 3
    timer = [frame for frame in frames if frame.name == "event"]
    assert [frame.get_value("event_type") for frame in timer] == ["start", "stop_all"] * 2


def test_laps_of_fit_may_all_stand_at_the_end() -> None:
    """Some devices write them there: when they start counts."""
    start = EPOCH + 900_000_000
    lap = definition(2, 19, [(2, 4, UINT32)])
    body = DEFINITIONS + lap + b"".join(record(start + i, 10_000 + i, 20_000) for i in range(9))
    for at in (start, start + 4):
        body += struct.pack("<BI", 2, at - EPOCH)
    assert begins(read_fit(framed(body), "x").laps) == [0, 4]
    # Each file of a chain has its own.
    assert begins(read_fit(framed(body) * 2, "x").laps) in ([0, 4, 9, 13], [0, 4, 13], [0, 4])


RECORDED = {
    "fit/fitdecode/sample-activity.fit": 4,
    "fit/ezgpx/garmin_forerunner45_run_error_1.fit": 13,  # nine more have no fix
    "tcx/tcxreader/sup_activity_1.tcx": 2,
}


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_come_out_with_the_laps_outside_of_their_cuts(shared: Path, name: str) -> None:
    path = shared / "traces" / name
    trace, _ = clean(read(path))
    bounds = np.flatnonzero(np.diff(trace.laps)) + 1
    assert bounds.size + 1 == RECORDED[name]
    middle = int(trace.times[bounds[bounds.size // 2]])
    parts = (*Chosen(returns=False).stretches(trace), Stretch("x", middle, middle, by_place=False))
    plan = protect(trace, Request(parts, radius=5.0, floor=10.0, middle=10.0, uncertain=1))
    rows = plan.mechanism.rows
    assert 2 < rows.size < len(trace)
    data = written(draw(plan, bytes(32))[0], path.suffix)
    recording = READERS[path.suffix](data, "x")
    due = [0, *(np.searchsorted(rows, at) for at in bounds if {at - 1, at} <= {*rows.tolist()})]
    assert begins(recording.laps) == due
    assert len(due) <= bounds.size
    scanned = scan((path.name, path.read_bytes()), (f"x{path.suffix}", data), Chosen(returns=False))
    assert [leak for leak in scanned.leaks if "Lap" in leak.where or leak.where == "the file"] == []


def test_pieces_of_laps_are_whole() -> None:
    rows = WrittenRows(
        np.arange(6) * 10**9,
        np.zeros((6, 2)),
        np.array([0, 0, 0, 0, 1, 1]),
        np.array([0, 0, 1, 1, 2, 2]),
        np.array([0, 2, 4, 6]),
        lap_numbers=np.array([0, 0, 0, 1, 1, 1]),
    )
    assert rows.laps() == [[(0, 2), (2, 3)], [(3, 4)], [(4, 6)]]
