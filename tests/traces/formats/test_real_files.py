"""Real recordings other than GPX: each is read or refused in the one line that a person expects."""

from pathlib import Path

import numpy as np
import pytest

from trailveil.errors import TrailveilError
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.projection import frame_for

READ = {".fit", ".tcx", ".plt", ".json", ".geojson", ".csv"}

# What is kept of files that hold a trace.
KEPT = {
    "fit/ezgpx/garmin_forerunner45_run_error_1.fit": 955,  # and 474 records without a position
    "fit/fitdecode/activity-settings.fit": 14,
    "fit/fitdecode/garmin-fenix-5-walk.fit": 17,
    "fit/fitdecode/invalid/activity-activity-filecrc.fit": 14,  # each twice; a wrong checksum
    "fit/fitdecode/invalid/activity-settings-corruptheader.fit": 14,  # what comes before is whole
    "fit/fitdecode/invalid/activity-settings-nodata.fit": 14,
    "fit/fitdecode/sample-activity.fit": 2962,
    "fit/gpsbabel/track__fitwrite-track.fit": 64,
    "fit/gpsbabel/track__garmin-edge-200-output.fit": 22,
    "tcx/gpsbabel/track__kona2013.tcx": 5,
    "tcx/tcxreader/sup_activity_1.tcx": 111,
    "tcx/togeojson/sample.tcx": 17,
    "geojson/dawarich/geojson/export.json": 10,
    "geojson/dawarich/geojson/export_same_points.json": 10,
    "geojson/dawarich/points/geojson_example.json": 6,
    "geojson/trackintel/positionfixes.geojson": 6,
    "geojson/movingpandas/movingfeatures.json": 19,  # from one continent to another
    "csv/dawarich/csv/semicolon_eu.csv": 3,
    "csv/gpsbabel/track__kona2013~tcx.csv": 5,
    "csv/gpsbabel/track__sim.csv": 48,  # a clock of 12 hours; across the date line
    "csv/gpsbabel/track__simint.csv": 95,
    "csv/gpsbabel/track__simint1000m.csv": 95,
    "csv/gpsbabel/track__simint250m.csv": 95,
    "csv/gpsbabel/track__subrip.csv": 5,
    "csv/gpsbabel/unicsv_subsec.csv": 11,
    "csv/opentracks/csv_export.csv": 5,
    "csv/trackintel/google_trajectory.csv": 416,  # backwards
    "csv/trackintel/positionfixes.csv": 6,
    "csv/trackintel/posmo_trajectory.csv": 1327,
    "nmea/gpsbabel/track__nmeadatetime.csv": 17,
}
NAMES = "a line that names latitude, longitude and time"
ONE_OF_TIMES = "must have one column of times"
NO_TIMES = "must have a usable time"
OTHER = "JSON of another kind"
REFUSED = {
    "fit/fitdecode/DeveloperData.fit": "without position: 3",
    "fit/fitdecode/MonitoringFile.fit": "got none",
    "fit/fitdecode/WorkoutRepeatGreaterThanStep.fit": "got none",
    "fit/fitdecode/sample-activity-indoor-trainer.fit": "without position: 2263",
    "fit/gpsbabel/track__garmin-vivosmart-hr.fit": "without position: 15",
    "fit/fitdecode/garmin-fenix-5-bike-records.csv": "must have a position in degrees",
    "tcx/dawarich/tcx/running.tcx": "two fixes or more",
    "tcx/togeojson/bad.tcx": "must have a position",
    "geojson/dawarich/geojson/gpslogger_example.json": "two fixes or more",
    "geojson/dawarich/polarsteps/segments.json": OTHER,
    "geojson/gpsbabel/track__geojson.geojson": "routes: 5, waypoints: 1",
    "geojson/gpsbabel/track__segmented_tracks~geojson.json": "got routes: 2",
    "csv/dawarich/csv/quoted_headers.csv": ONE_OF_TIMES,
    "csv/gpsbabel/bngtest.csv": NAMES,
    "csv/gpsbabel/grid-swiss.csv": NAMES,
    "csv/gpsbabel/track__trackfilter_segment.csv": NAMES,
    "csv/gpsbabel/unidelim.csv": ONE_OF_TIMES,
    "csv/mappymatch/sample_trace_2.csv": ONE_OF_TIMES,
    "csv/tracktable/PointsWithComments.csv": NAMES,
    "csv/tracktable/PointsWithSkippableHeaders.csv": NAMES,
    "csv/traja/3527.csv": NAMES,
    "csv/gpsbabel/localgmttime.csv": "two fixes or more",
    "csv/gpsbabel/unicsv-local.csv": NO_TIMES,
    "csv/gpsbabel/unicsv-utc.csv": NO_TIMES,
    "csv/gpsbabel/v900_basic_mode.csv": NO_TIMES,
}


@pytest.fixture(scope="module")
def files(shared: Path) -> dict[str, Path]:
    folder = shared / "traces"
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.suffix in READ and path.name != "MANIFEST.csv"
    }


def outcome(path: Path) -> tuple[int, str]:
    """Fixes kept and no message, or none and the refusal."""
    try:
        trace, _ = clean(read(path), assume_utc=True)
        frame_for(trace.positions)
    except TrailveilError as error:
        return 0, str(error)
    return len(trace), ""


def test_no_file_with_a_sound_trace_is_refused(files: dict[str, Path]) -> None:
    assert {name: outcome(files[name])[0] for name in KEPT} == KEPT


def test_each_refusal_is_the_one_a_person_would_expect(files: dict[str, Path]) -> None:
    outcomes = {name: outcome(files[name]) for name in REFUSED}
    assert [name for name, reason in REFUSED.items() if reason not in outcomes[name][1]] == []


def test_every_file_is_judged_and_every_refusal_one_line(files: dict[str, Path]) -> None:
    others = files.keys() - KEPT.keys() - REFUSED.keys()
    assert all(name.startswith(("geolife/", "takeout/")) for name in others), others
    for name in others | REFUSED.keys():
        count, message = outcome(files[name])
        assert (count >= 2) != bool(message), name
        assert "\n" not in message
        # Where the recordings lie is not the message's length.
        assert len(message.replace(str(files[name]), name)) < 300


def test_geolife_is_read(files: dict[str, Path]) -> None:
    """Two of them lead over half of a continent."""
    plts = [path for name, path in files.items() if name.startswith("geolife/")]
    assert len(plts) == 262
    assert {outcome(path)[1] for path in plts} == {""}


def test_the_same_ride_in_two_formats_is_one(files: dict[str, Path]) -> None:
    by_tcx = read(files["tcx/gpsbabel/track__kona2013.tcx"])
    by_csv = read(files["csv/gpsbabel/track__kona2013~tcx.csv"])
    np.testing.assert_allclose(by_csv.positions, by_tcx.positions, rtol=0, atol=1e-6)
    assert (np.diff(by_csv.times) == np.diff(by_tcx.times)).all()  # its clock is another
