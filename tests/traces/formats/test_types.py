"""The type of a track leaves as one known word, where that was asked for, and reads back."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rides import ride
from trailveil.traces.activities import ACTIVITIES, activity_of
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read, write
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.trace import Recording, Trace

TRACE = ride(60, 5.0)
TYPED = {row.name: row for row in FORMATS if row.write and "type" in row.fields}


def written(trace: Trace, suffix: str) -> bytes:
    out = io.BytesIO()
    write(trace, out, suffix)
    return out.getvalue()


def read_back(data: bytes, name: str, field_names: tuple[str, ...] = ("type",)) -> Recording:
    return TYPED[name].read(data, "x", field_names)


@pytest.mark.parametrize("activity", ACTIVITIES)
@pytest.mark.parametrize("name", ["GPX", "FIT", "TCX"])
def test_what_is_written_reads_back(name: str, activity: str) -> None:
    data = written(replace(TRACE, types=(activity,)), TYPED[name].suffixes[0])
    known = name != "TCX" or activity in {"run", "ride"}
    recording = read_back(data, name)
    assert (recording.types, recording.activity) == (((activity,), activity) if known else ((), ""))
    again, _ = clean(recording)
    assert written(again, TYPED[name].suffixes[0]) == data
    assert read_back(data, name, ()).types == ()


@pytest.mark.parametrize("name", TYPED)
def test_without_a_type_none_is_written(name: str) -> None:
    """Of what it is the pace is reckoned with, whether it leaves or not."""
    suffix = TYPED[name].suffixes[0]
    bare = written(TRACE, suffix)
    assert written(replace(TRACE, activity="ride"), suffix) == bare
    assert written(replace(TRACE, types=("",)), suffix) == bare
    assert written(replace(TRACE, types=("ride",)), suffix) != bare


def test_each_track_has_its_own() -> None:
    segments = (TRACE.seconds > 100).astype(int)
    trace = replace(TRACE, segments=segments, tracks=(0, 1), types=("ride", "walk"))
    for name in ("GPX", "FIT"):
        recording = read_back(written(trace, TYPED[name].suffixes[0]), name)
        assert (recording.types, recording.activity) == (("ride", "walk"), "walk")
    assert b'"activity":"cycling"' in written(trace, ".geojson")
    assert activity_of("cycling") == "ride"


def test_a_type_in_words_of_its_own_is_not_kept(tmp_path: Path) -> None:
    data = written(replace(TRACE, types=("run",)), ".gpx")
    path = tmp_path / "x.gpx"
    path.write_bytes(data.replace(b"running", b"running to Aunt Ida"))
    assert read(path, ["type"]).types == ()
