"""Parquet and GeoParquet: columns of any kind in, what others read out."""

import io
import json
import sys
from typing import Any

import geopandas
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
import shapely

from tests.traces.formats.traces import TRACE, written
from trailveil.errors import Unavailable, UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS
from trailveil.traces.formats.parquet import read
from trailveil.traces.formats.table import format_to_write
from trailveil.traces.trace import Recording, Seen

COUNT = len(TRACE)
LATITUDES, LONGITUDES = TRACE.positions.T.tolist()
TIMES = TRACE.times.astype("datetime64[ns]")


def file(columns: dict[str, Any], geo: object = None, **options: Any) -> bytes:
    table = pyarrow.table(columns)
    if geo is not None:
        table = table.replace_schema_metadata({"geo": json.dumps(geo)})
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream, **options)
    return stream.getvalue()


def reference(crs: object) -> dict[str, object]:
    """What GeoParquet says of a column of points in a reference system."""
    return {**GEO, "columns": {"g": {"encoding": "WKB", "crs": crs}}}


def nested_metadata() -> bytes:
    """What it says is nested more deeply than any program looks into."""
    table = pyarrow.table({"g": [b"x"], "time": [1]})
    stream = io.BytesIO()
    deep = table.replace_schema_metadata({"geo": "[" * 100_000})
    pyarrow.parquet.write_table(deep, stream)
    return stream.getvalue()


def frame() -> geopandas.GeoDataFrame:
    places = geopandas.points_from_xy(LONGITUDES, LATITUDES)
    return geopandas.GeoDataFrame({"time": TIMES, "heart": 90}, geometry=places, crs="EPSG:4326")


def geoparquet(table: geopandas.GeoDataFrame, **options: Any) -> bytes:
    stream = io.BytesIO()
    table.to_parquet(stream, **options)
    return stream.getvalue()


def same(recording: Recording, atol: float = 0.0) -> None:
    np.testing.assert_allclose(recording.positions, TRACE.positions, rtol=0, atol=atol)
    np.testing.assert_array_equal(recording.times, TIMES)


@pytest.mark.parametrize(
    "times",
    [
        pyarrow.array(TIMES),
        pyarrow.array(TIMES.astype("datetime64[ms]")),
        pyarrow.array(TRACE.times, type=pyarrow.timestamp("ns", tz="Europe/Berlin")),
        TRACE.times // 10**9,
        TRACE.times // 10**6,
        (TRACE.times // 10**9).astype(np.float64),
        [f"{time}Z" for time in TIMES],
        pyarrow.array([f"{time}Z" for time in TIMES]).dictionary_encode(),
    ],
)
def test_times_of_any_kind(times: Any) -> None:
    recording = read(file({"lat": LATITUDES, "lon": LONGITUDES, "time": times, "e": TIMES}), "x")
    same(recording)
    assert recording.naive.all() == (getattr(times, "type", None) in {
        pyarrow.timestamp("ns"), pyarrow.timestamp("ms")
    })  # fmt: skip
    assert recording.seen == Seen(other_fields=1)


def test_positions_of_any_kind() -> None:
    e7 = {"latE7": np.round(TRACE.positions[:, 0] * 1e7).astype(np.int32)}
    e7["lonE7"] = np.round(TRACE.positions[:, 1] * 1e7).astype(np.int32)
    text = {"lat": [str(x) for x in LATITUDES], "lon": [str(x) for x in LONGITUDES]}
    decimal = {
        name: pyarrow.array(values).cast(pyarrow.decimal128(12, 6))
        for name, values in (("lat", LATITUDES), ("lon", LONGITUDES))
    }
    encoded = {
        name: pyarrow.array(values).dictionary_encode()
        for name, values in (("lat", LATITUDES), ("lon", LONGITUDES))
    }
    for columns in (e7, text, decimal, encoded):
        same(read(file({**columns, "time": TIMES}), "x"), atol=1e-14)


def test_what_is_null_is_counted_or_lost_with_its_fix_alone() -> None:
    columns = {
        "lat": [None, 1.0, None, 4.0],
        "lon": [None, 1.0, 2.0, 4.0],
        "time": pyarrow.array([1, 2, 3, None], type=pyarrow.timestamp("s", tz="UTC")),
    }
    recording = read(file(columns), "x")
    assert np.isnan(recording.positions[:, 0]).tolist() == [False, True, False]
    assert np.isnat(recording.times).tolist() == [False, False, True]
    assert recording.seen == Seen(without_position=1)


def test_what_geopandas_writes_is_read() -> None:
    recording = read(geoparquet(frame()), "x")
    same(recording)
    assert recording.naive.all()
    assert recording.seen == Seen(other_fields=1)
    table = frame()
    table.geometry = [*table.geometry[:-2], None, shapely.Point()]
    assert len(read(geoparquet(table), "x")) == COUNT - 2
    table.geometry = shapely.force_3d(frame().geometry, 100.0)
    same(read(geoparquet(table), "x"))


def test_geopandas_and_pandas_read_what_is_written() -> None:
    data = written(TRACE, ".geoparquet")
    frame = geopandas.read_parquet(io.BytesIO(data))
    assert frame.crs == "OGC:CRS84"
    places = shapely.get_coordinates(frame.geometry)
    assert places[:, ::-1].tolist() == TRACE.positions.tolist()
    assert frame["time"].dtype == "datetime64[ns, UTC]"
    assert frame["time"].astype("int64").tolist() == TRACE.times.tolist()
    assert list(pandas.read_parquet(io.BytesIO(data)).columns) == ["time", "geometry"]


def test_two_people_are_not_mixed_up() -> None:
    columns = {"lat": [1.0, 2.0], "lon": [1.0, 2.0], "time": TIMES[:2]}
    assert len(read(file({**columns, "user_id": [7, 7]}), "x")) == 2
    with pytest.raises(UnreadableInput, match="of one person and one device"):
        read(file({**columns, "user_id": ["a", "b"]}), "x")


GEO = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}}
REFERENCES: tuple[object, ...] = (
    *({}, [], "EPSG:4326", {"id": None}, {"id": []}, {"id": {"code": [4326]}}),
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"PAR1", "must be a whole Parquet file"),
        (b"PAR1" + b"\0" * 100 + b"PAR1", "must be a whole Parquet file"),
        (file({"x": [1.0], "y": [2.0]}), "must have columns of time, and of latitude"),
        (
            file({"lat": [1.0], "lon": [2.0]}),
            "one column of times, got none",
        ),
        (file({"lat": [[1.0]], "lon": [2.0], "time": [1]}), "must be a whole Parquet file"),
        (file({"lat": ["x" * 9999], "lon": ["1"], "time": [1]}), "must be a whole Parquet file"),
        (file({"g": [b"\1\7"], "time": [1]}, GEO), "must be a whole Parquet file"),
        (file({"g": [b""], "time": [1]}, GEO), "must be a whole Parquet file"),
        (file({"g": [b"x"], "time": [1]}, {"primary_column": "h"}), "a whole Parquet file"),
        (file({"g": [b"x"], "time": [1]}, []), "must be a whole Parquet file"),
        (file({"g": [b"x"], "time": [1]}, {**GEO, "columns": []}), "must be a whole Parquet file"),
        (
            file({"g": [b"x"], "time": [1]}, {**GEO, "columns": {"g": None}}),
            "must be a whole Parquet file",
        ),
        (file({"g": [b"x"], "time": [1]}, "WKB"), "must be a whole Parquet file"),
        (nested_metadata(), "must be a whole Parquet file"),
        *(
            (
                file({"g": [b"x"], "time": [1]}, reference(crs)),
                "another reference system",
            )
            for crs in REFERENCES
        ),
        (
            file({"g": [b"x"]}, {**GEO, "columns": {"g": {"encoding": "point"}}}),
            "points as WKB",
        ),
        (geoparquet(frame().to_crs("EPSG:3857")), "another reference system"),
    ],
)
def test_what_is_no_parquet_of_fixes_is_refused_in_one_line(data: bytes, expected: str) -> None:
    with pytest.raises(UnreadableInput, match=expected) as caught:
        read(data, "x")
    assert "\n" not in str(caught.value)


def test_a_small_file_of_very_many_rows_is_refused_before_it_unfolds() -> None:
    many = np.zeros(MOST_POINTS + 1, dtype=np.int8)
    data = file({"lat": many, "lon": many, "time": many}, compression="zstd")
    assert len(data) < 1_000_000
    with pytest.raises(UnreadableInput, match="at most 10000000 fixes"):
        read(data, "x")


def test_a_long_value_repeated_is_held_once() -> None:
    long = pyarrow.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), [b"x" * 10**6])
    ones = np.ones(200_000)
    with pytest.raises(UnreadableInput, match="must be a whole Parquet file"):
        read(file({"lat": ones, "lon": ones, "time": long}), "x")


def test_without_pyarrow_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unavailable, match=r"pip install 'trailveil\[parquet\]'"):
        read(b"PAR1", "x")
    with pytest.raises(Unavailable, match=r"pip install 'trailveil\[parquet\]'"):
        format_to_write(".parquet")
