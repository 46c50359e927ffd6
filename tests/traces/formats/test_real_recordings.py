"""Real recordings, sound and defective: each is read or refused in one clear line."""

import re
from datetime import UTC
from pathlib import Path

import gpxpy
import numpy as np
import pytest

from trailveil.errors import TrailveilError, UnreadableInput
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.projection import frame_for

COORDINATE = re.compile(r"""\b(?:lat|lon|minlat|minlon|maxlat|maxlon)=["']([^"']{4,})["']""")

# Judged one by one: refusing these is what a person would want.
NO_TRACK = "must hold a recorded track"
NO_TIMES = "must have a usable time"
REFUSED = {
    "VTTrack_1.gpx": NO_TIMES,
    "alltrails_1.gpx": NO_TIMES,
    "basecamp.gpx": NO_TIMES,
    "bigtime.gpx": NO_TRACK,
    "track__segmented_tracks.gpx": NO_TIMES,
    "cerknicko-without-times.gpx": NO_TIMES,
    "track__garmin-vivosmart-hr.gpx": "must have a position",
    "bad.gpx": "must have a position",
    "missing_trkpt_lat.gpx": "must have a position",
    "track__trackfilter_discard_err.gpx": "must be XML",
    "empty_file.gpx": "got an empty file",
    "track_single_point.gpx": "two fixes or more",
    "gpx_timezone.gpx": "two fixes or more",
    "Mojstrovka.gpx": "got 183 of 184 at one instant",
    "empty_trk.gpx": "got empty segments: 1",
}
# What is kept of files that hold a trace, with something the matter.
KEPT = {
    "gpx_track_multiple_tracks.gpx": 34,  # blank line before the XML declaration
    "strava_run_1.gpx": 939,
    "korita-zbevnica.gpx": 513,  # 358 without a time
    "legacy_gpx_pause_resume.gpx": 4,  # latitudes 100 and 200 are pause markers
    "track__interptrack.gpx": 35,  # around the globe
    "track__kalman_dt_zero_in.gpx": 3,
    "track__24173415.gpx": 684,
    "track__trackfilter_merge.gpx": 11,
    "first_and_last_elevation.gpx": 10,
    "arc_example.gpx": 6,
}


@pytest.fixture(scope="module")
def files(shared: Path) -> dict[str, Path]:
    """The GPX files by name; of the few that share a name any will do."""
    paths = {path.name: path for path in sorted((shared / "traces").rglob("*.gpx"))}
    assert len(paths) > 90
    return paths


def outcome(path: Path) -> tuple[int, str]:
    """Fixes kept and no message, or none and the refusal."""
    try:
        trace, _ = clean(read(path))
        frame_for(trace.positions)
    except TrailveilError as error:
        return 0, str(error)
    return len(trace), ""


def test_every_file_is_read_or_refused_in_one_line(files: dict[str, Path]) -> None:
    for path in files.values():
        count, message = outcome(path)
        assert (count >= 2) != bool(message), path.name
        assert "\n" not in message
        assert len(message.replace(str(path), path.name)) < 300
        assert message.split(":")[0].count(" must ") == bool(message), message
        text = path.read_text(encoding="utf-8", errors="replace")
        shown = [value for value in COORDINATE.findall(text) if value in message]
        assert shown == [], path.name


def test_each_refusal_is_the_one_a_person_would_expect(files: dict[str, Path]) -> None:
    outcomes = {name: outcome(files[name]) for name in REFUSED}
    assert [name for name, reason in REFUSED.items() if reason not in outcomes[name][1]] == []


def test_no_file_with_a_sound_trace_is_refused(files: dict[str, Path]) -> None:
    assert {name: outcome(files[name])[0] for name in KEPT} == KEPT


def test_agrees_with_gpxpy_wherever_that_can_read(files: dict[str, Path]) -> None:
    compared = 0
    for path in files.values():
        try:
            oracle = gpxpy.parse(path.read_text(encoding="utf-8-sig").lstrip())
            recording = read(path)
        except (gpxpy.gpx.GPXException, UnreadableInput):
            continue
        points = [
            (track_number, point)
            for track_number, track in enumerate(t for t in oracle.tracks if t.get_points_no())
            for part in track.segments
            for point in part.points
        ]
        compared += 1
        places = [[point.latitude, point.longitude] for _, point in points]
        assert recording.positions.tolist() == places, path.name
        tracks = [recording.tracks[number] for number in recording.segments]
        assert tracks == [number for number, _ in points], path.name
        assert recording.times.astype("datetime64[us]").tolist() == [
            point.time and point.time.astimezone(UTC).replace(tzinfo=None) for _, point in points
        ], path.name
    assert compared > 40


@pytest.mark.parametrize("name", ["dtd.xml", "quadratic.xml", "xmlbomb.xml"])
def test_entity_bombs_are_refused_at_once(shared: Path, tmp_path: Path, name: str) -> None:
    bomb = (shared / "traces" / "xmlbombs" / "defusedxml" / name).read_bytes()
    (tmp_path / "ride.gpx").write_bytes(bomb)
    with pytest.raises(UnreadableInput, match="got a document type or entities"):
        read(tmp_path / "ride.gpx")


def test_nine_decimals_of_a_real_file_survive(files: dict[str, Path]) -> None:
    times = read(files["Mojstrovka.gpx"]).times
    assert np.datetime64("1901-12-13T20:45:52.207343700") in times
