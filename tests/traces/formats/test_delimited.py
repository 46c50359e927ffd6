"""Tables of text in: delimiters, encodings, notations of numbers; and what is refused."""

import csv
import io
import tracemalloc

import numpy as np
import pytest

from tests.traces.formats.traces import TRACE, written
from trailveil.errors import UnreadableInput
from trailveil.traces.formats import tabular
from trailveil.traces.formats.delimited import read
from trailveil.traces.trace import Recording, Seen, Trace

PLACES = [[46.5, 7.25], [46.25, -7.5], [-46.125, 0.0]]
TIMES = ["2024-05-14T12:00:00Z", "2024-05-14T12:00:05Z", "2024-05-14T12:00:10Z"]
PLAIN = "time,lat,lon\n" + "".join(
    f"{time},{a},{b}\n" for time, (a, b) in zip(TIMES, PLACES, strict=True)
)


def table(text: str, encoding: str = "utf-8") -> Recording:
    return read(text.encode(encoding), "x.csv")


def test_the_delimiter_is_the_one_that_names_the_columns() -> None:
    for delimiter in ";\t|":
        assert table(PLAIN.replace(",", delimiter)).positions.tolist() == PLACES
    assert table('"a;b;c;lat",lat,"x;y",lon,time\n1,46.5,2,7.25,"x"\n').seen.other_fields == 2


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"], ids=lambda name: name
)
def test_encodings(encoding: str) -> None:
    text = PLAIN.replace("lat,lon", "Breite,L\u00e4nge")
    assert table(text, encoding).positions.tolist() == PLACES


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends(ending: str) -> None:
    assert table(PLAIN.replace("\n", ending)).positions.tolist() == PLACES


def test_a_preamble_comments_and_blank_lines_are_passed_over() -> None:
    text = "sep=,\nA recording; of mine\n\n#" + PLAIN.replace("\n", "\n\n# a comment, too\n", 2)
    recording = table(text)
    assert recording.positions.tolist() == PLACES
    assert recording.seen.other_records == 2


@pytest.mark.parametrize(
    ("latitude", "longitude"),
    [
        ("46,5", "-7,25"),
        ("46.5N", "7.25W"),
        ("N46.5", "W 7.25"),
        ("46.5\u00b0", "-7.25\u00b0"),
        ("46,5\u00b0 N", "7,25\u00b0 w"),
        (" +46.50 ", "-725e-2"),
        ("46.5", "-7.25"),
    ],
)
def test_notations_of_degrees(latitude: str, longitude: str) -> None:
    recording = table(f"time;lat;lon\n{TIMES[0]};{latitude};{longitude}\n")
    assert recording.positions.tolist() == [[46.5, -7.25]]


@pytest.mark.parametrize("cell", ["north", "46.5.1", "N46.5N", "4 6", "1_0", "NaN", "46\u00b05'"])
def test_what_is_no_number_is_lost_with_its_fix_alone(cell: str) -> None:
    recording = table(PLAIN + f"{TIMES[0]},{cell},7.25\n")
    assert np.isnan(recording.positions).any(axis=1).tolist() == [False] * 3 + [True]


def test_units_of_positions() -> None:
    e7 = table("timestampMs,latitudeE7,longitudeE7\n1715688000123,465000000,-72500000\n")
    assert e7.positions.tolist() == [[46.5, -7.25]]
    assert e7.times[0] == np.datetime64("2024-05-14T12:00:00.123")
    half = table("time,lat_semicircles,lon_semicircles\n1715688000,1073741824,-536870912\n")
    assert half.positions.tolist() == [[90.0, -45.0]]


def test_rows_without_a_position_are_no_fixes() -> None:
    recording = table(PLAIN + f"{TIMES[0]},,\n{TIMES[1]}\n,46.5,7.25\n")
    assert len(recording) == 4
    assert np.isnat(recording.times).tolist() == [False] * 3 + [True]
    assert recording.seen == Seen(without_position=2)


def test_tracks_and_segments_are_those_that_are_named() -> None:
    rows = [("a", "1"), ("b", "1"), ("a", "2"), ("a", "1")]
    text = "trip_id,segment,lat,lon,time\n"
    text += "".join(f"{trip},{part},46.5,7.25,{TIMES[0]}\n" for trip, part in rows)
    recording = table(text)
    assert recording.segments.tolist() == [0, 1, 2, 0]
    assert recording.tracks == (0, 1, 0)


def test_the_number_of_segments_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "_MOST_SEGMENTS", 2)
    text = "segment,lat,lon,time\n" + "".join(
        f"{i % 2},46,7,{1_715_688_000 + i}\n" for i in range(9)
    )
    assert table(text).tracks == (0, 0)
    with pytest.raises(UnreadableInput, match="at most 2 segments"):
        table(text + "2,46,7,1715688010\n")


def test_two_people_are_not_mixed_up() -> None:
    text = "user_id,lat,lon,time\n7,46.5,7.25,1715688000\n{},46.5,7.25,1715688001\n"
    assert len(table(text.format(7))) == len(table(text.format(""))) == 2
    with pytest.raises(UnreadableInput, match="of one person and one device") as caught:
        table(text.format(8))
    assert "make a file for each" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("46.5,7.25\n46.6,7.26\n", "a line that names latitude, longitude and time, got none"),
        ("lat,lon\n46.5,7.25\n", "must have one column of times, got none"),
        ("x,y,time\n1,2,3\n", "a line that names latitude, longitude and time, got none"),
        ("UTM-East,UTM-North,time\n5,4,3\n", "convert metres of a map"),
        ("time,lat,lon\n", "got none"),
        ("time,lat,lon\n1715688000,,\n", "got without position: 1"),
        ("time,lat,lon\n1715688000,46,5,7,25\n", "3 cells, as the line of names has, got 5 in row"),
        ('time,lat,lon\n"' + "x" * 200_000, "cells of at most 128 KiB"),
        ("time,lat,lon\n0,46.5,7.25\n1,46.5,7.25\n", "too small to tell their unit"),
        ("time,lat,lon\n05/06/2024 12:00,46.5,7.25\n", "which number is the month"),
    ],
)
def test_what_is_no_table_of_fixes_is_refused_in_one_line(text: str, expected: str) -> None:
    with pytest.raises(UnreadableInput, match=expected) as caught:
        table(text)
    assert "\n" not in str(caught.value)
    assert "x.csv" in str(caught.value)
    assert "46" not in str(caught.value)


def test_the_bytes_are_these() -> None:
    trace = Trace(
        np.array([0, 1_500_000_000, 2**60]),
        np.array([[-0.0000004, 179.9999996], [-89.9999994, -0.000001], [7.25, 180.0]]),
        np.array([0, 2, 0]),
        (0, 0, 1),
    )
    assert written(trace, ".csv").decode() == (
        "time,latitude,longitude,track,segment\n"
        "1970-01-01T00:00:00Z,0.000000,-180.000000,0,0\n"
        "2006-07-14T23:58:24.606846976Z,7.250000,-180.000000,0,0\n"
        "1970-01-01T00:00:01.5Z,-89.999999,-0.000001,1,1\n"
    )


def test_an_ordinary_reader_reads_what_is_written() -> None:
    rows = list(csv.DictReader(io.StringIO(written(TRACE, ".tsv").decode()), delimiter="\t"))
    assert [row.keys() == {"time", "latitude", "longitude"} for row in rows] == [True] * len(TRACE)
    assert [float(row["latitude"]) for row in rows] == TRACE.positions[:, 0].tolist()
    stamps = np.array([row["time"].removesuffix("Z") for row in rows], dtype="datetime64[ns]")
    np.testing.assert_array_equal(stamps.astype(np.int64), TRACE.times)


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (
            "lat,lng,begin_timestamp,end_timestamp",
            "several that may be ('begin_timestamp', 'end_tim",
        ),
        ("lat,lng,Start Time", "one that may be ('Start Time')"),
        ("lat,lng,moment", "got none: x.csv"),
    ],
)
def test_a_column_that_may_be_the_time_is_named(names: str, listed: str) -> None:
    with pytest.raises(UnreadableInput) as refused:
        read(f"{names}\n47,8,2024-05-01T08:00:00Z,\n".encode(), "x.csv")
    assert listed in str(refused.value)
    assert "'time'" in str(refused.value)


@pytest.mark.parametrize("row", ["," * 2_000_000, '"a\n",' * 400_000], ids=["line", "lines"])
def test_a_row_that_would_unfold_to_millions_of_cells_is_refused(row: str) -> None:
    tracemalloc.start()
    with pytest.raises(UnreadableInput, match="at most 1,000,000 characters"):
        read(f"time,lat,lon\n{row}\n".encode(), "x.csv")
    assert tracemalloc.get_traced_memory()[1] < 60 * 10**6
    tracemalloc.stop()
