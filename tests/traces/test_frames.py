"""Tables of other packages: what goes in and out of them is the same."""

import sys
import warnings
from pathlib import Path

import geopandas
import movingpandas
import numpy as np
import pandas
import pytest
import shapely
from hypothesis import given, settings

from tests.traces.formats.traces import TRACE, traces
from trailveil.errors import InvalidValue, Unavailable, UnreadableInput
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.frames import (
    from_frame,
    from_trajectory,
    to_frame,
    to_geoframe,
    to_positionfixes,
    to_trajectories,
)
from trailveil.traces.trace import Recording, Seen, Trace

TWO = Trace(TRACE.times, TRACE.positions, np.repeat([0, 1], 20), (0, 1))


def same(recording: Recording, trace: Trace) -> None:
    np.testing.assert_array_equal(recording.positions, trace.positions)
    np.testing.assert_array_equal(recording.times.astype(np.int64), trace.times)
    # Numbers are given anew in the order of the rows, so the parts and not their names are equal.
    pairs = zip(recording.segments.tolist(), trace.segments.tolist(), strict=True)
    assert len(set(pairs)) == len(set(trace.segments.tolist()))
    assert recording.seen == Seen()


@given(traces())
@settings(max_examples=30)
def test_what_goes_out_comes_in(case: tuple[Trace, np.ndarray]) -> None:
    trace, _ = case
    for table in (to_frame(trace), to_geoframe(trace)):
        recording = from_frame(table)
        same(recording, trace)
        assert not recording.naive.any()
        owners = [recording.tracks[number] for number in recording.segments]
        expected = [trace.tracks[number] for number in trace.segments]
        assert len(set(zip(owners, expected, strict=True))) == len(set(expected))


def test_the_columns_are_these() -> None:
    table = to_frame(TRACE)
    assert list(table) == ["time", "latitude", "longitude", "track", "segment"]
    assert str(table["time"].dtype) == "datetime64[ns, UTC]"
    points = to_geoframe(TRACE)
    assert list(points) == ["time", "track", "segment", "geometry"]
    assert points.crs == "EPSG:4326"
    assert shapely.get_coordinates(points.geometry)[:, ::-1].tolist() == TRACE.positions.tolist()


def test_tables_by_other_names_and_kinds() -> None:
    plain = to_frame(TRACE)[["time", "latitude", "longitude"]]
    same(from_frame(plain.set_index("time")), TRACE)
    same(from_frame(plain.astype({"time": str, "latitude": str})), TRACE)
    seconds = plain.assign(timestamp=TRACE.times // 10**9).drop(columns="time")
    same(from_frame(seconds), TRACE)
    same(from_frame(seconds.astype({"timestamp": "Int64"})), TRACE)
    berlin = plain.assign(time=plain["time"].dt.tz_convert("Europe/Berlin"))
    same(from_frame(berlin), TRACE)
    naive = plain.assign(time=plain["time"].dt.tz_localize(None))
    assert from_frame(naive).naive.all()
    assert from_frame(plain.assign(heart=90, name="x")).seen == Seen(other_fields=2)


def test_what_is_missing_is_counted_or_lost_with_its_fix_alone() -> None:
    table = pandas.DataFrame(
        {
            "lat": [None, 1.0, None, 4.0],
            "lon": [None, 1.0, 2.0, 4.0],
            "time": pandas.to_datetime(["2024-05-14", "2024-05-15", None, None], utc=True),
        }
    )
    for times in (table["time"], pandas.Series([1.7e9, 1.7e9, None, None]), ["x", "", None, "y"]):
        recording = from_frame(table.assign(time=times))
        assert np.isnan(recording.positions[:, 0]).tolist() == [False, True, False]
        assert recording.seen.without_position == 1
        assert np.isnat(recording.times[1:]).all()


def test_points_in_metres_become_degrees() -> None:
    recording = from_frame(to_geoframe(TRACE).to_crs("EPSG:32632"))
    np.testing.assert_allclose(recording.positions, TRACE.positions, rtol=0, atol=1e-9)


def test_points_that_are_none_are_no_fixes() -> None:
    table = to_geoframe(TRACE)
    table.geometry = [*table.geometry[:-2], None, shapely.Point()]
    assert from_frame(table).seen == Seen(without_position=2)


def test_trackintel_position_fixes_both_ways() -> None:
    table = to_positionfixes(TRACE, user_id="somebody")
    assert list(table) == ["user_id", "tracked_at", "geometry"]
    same(from_frame(table), TRACE)
    table.loc[3, "user_id"] = "somebody else"
    with pytest.raises(UnreadableInput, match="of one person and one device"):
        from_frame(table)


def test_moving_pandas_both_ways() -> None:
    collection = to_trajectories(TWO)
    assert len(collection.trajectories) == 2
    assert collection.trajectories[0].df.index[0] == pandas.Timestamp("2024-05-01T07:30:00")
    recording = from_trajectory(collection)
    same(recording, TWO)
    assert recording.tracks == (0, 1)
    assert recording.naive.all()
    same(from_trajectory(to_trajectories(TRACE).trajectories[0]), TRACE)


def test_moving_pandas_of_its_own_making() -> None:
    table = to_positionfixes(TRACE).drop(columns="user_id").assign(heart=90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells that it drops the zone
        trajectory = movingpandas.Trajectory(table, traj_id=7, t="tracked_at")
    recording = from_trajectory(trajectory)
    assert recording.seen.other_fields >= 1
    assert recording.positions.tolist() == TRACE.positions.tolist()
    assert len(clean(recording, assume_utc=True)[0]) == len(TRACE)


def test_a_track_of_one_fix_is_no_trajectory() -> None:
    for trace in (TWO.only(np.arange(40) < 21), TWO.only(np.zeros(40, dtype=np.bool_))):
        with pytest.raises(InvalidValue, match="must have two fixes to be a trajectory"):
            to_trajectories(trace)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (pandas.DataFrame({"x": [1.0], "y": [2.0]}), "must have points or columns named"),
        (pandas.DataFrame({"lat": [1.0], "lon": [2.0]}), "must have points or columns named"),
        (
            pandas.DataFrame({"lat": [1.0], "lon": [2.0], "date": ["x"], "clock": ["y"]}),
            "must be one column",
        ),
        (geopandas.GeoDataFrame({"time": [1]}, geometry=[shapely.Point(1, 2)]), "must state its"),
        (
            geopandas.GeoDataFrame({"time": [1]}, geometry=[shapely.Point(1, 2).buffer(1)]),
            "must be points",
        ),
    ],
)
def test_what_is_no_table_of_fixes_is_refused_in_one_line(
    table: pandas.DataFrame, expected: str
) -> None:
    with pytest.raises(InvalidValue, match=expected) as caught:
        from_frame(table)
    assert "\n" not in str(caught.value)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "geopandas", None)
    with pytest.raises(Unavailable, match=r"pip install 'trailveil\[frames\]'"):
        to_geoframe(TRACE)
    monkeypatch.setitem(sys.modules, "movingpandas", None)
    with pytest.raises(Unavailable, match="pip install movingpandas"):
        to_trajectories(TRACE)


def test_real_position_fixes_say_the_same_in_every_way(shared: Path) -> None:
    folder = shared / "traces"
    by_file = read(folder / "csv/trackintel/positionfixes.csv")
    table = pandas.read_csv(folder / "csv/trackintel/positionfixes.csv", sep=";")
    points = geopandas.read_file(folder / "geojson/trackintel/positionfixes.geojson")
    for recording in (from_frame(table), from_frame(points)):
        assert recording.positions.tolist() == by_file.positions.tolist()
        assert recording.times.tolist() == by_file.times.tolist()
        assert not recording.naive.any()
