"""Fields that are asked for: where each format has them, in which units, and what is refused."""

import io
import json
import re
import struct
from collections.abc import Sequence

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from tests.traces.formats.builders import plt, tcx
from tests.traces.formats.fit_files import EPOCH, RECORD, SINT32, UINT8, UINT32, definition, framed
from tests.traces.formats.samples import TEXT
from tests.traces.formats.traces import PLACES, SECONDS, written
from trailveil.errors import InvalidValue, Refused
from trailveil.traces.fields import FIELDS, NEVER, as_text, check_fields, plain_name, plausible
from trailveil.traces.formats import read
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.frames import from_frame, to_frame
from trailveil.traces.trace import Recording, Trace

ALL = tuple(FIELDS)
READERS = {row.name: row.read for row in FORMATS}
HOSTILE = ["NaN", "inf", "-inf", "1e308", "-1e308", "Secretville", "", "1_0", "0x10", "9" * 400]
UINT16, SINT8 = 0x84, 0x01


def values(recording: Recording) -> dict[str, list[float]]:
    return {name: numbers.tolist() for name, numbers in recording.fields}


def gpx(inside: str, version: str = "1.1") -> bytes:
    return (
        f'<gpx version="{version}"><trk><trkseg><trkpt lat="46" lon="7">{inside}'
        "<time>2024-05-01T07:30:00Z</time></trkpt></trkseg></trk></gpx>"
    ).encode()


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<ele>431.25</ele>", {"elevation": [431.25]}),
        (
            "<ele>-12</ele><speed>3.5</speed><course>271</course>",
            {"elevation": [-12.0], "speed": [3.5], "course": [271.0]},
        ),
        (
            "<extensions><x:TrackPointExtension><x:atemp>21</x:atemp><x:hr>140</x:hr><x:cad>88"
            "</x:cad><x:speed>4.5</x:speed><x:course>90.5</x:course></x:TrackPointExtension>"
            "</extensions>",
            {
                "speed": [4.5],
                "course": [90.5],
                "heart_rate": [140.0],
                "cadence": [88.0],
                "temperature": [21.0],
            },
        ),
        ("<extensions><power>250</power></extensions>", {"power": [250.0]}),
        (
            "<extensions><p:PowerExtension><p:PowerInWatts>251</p:PowerInWatts></p:PowerExtension>"
            "<g:hr>99</g:hr><g:hr>101</g:hr></extensions>",
            {"power": [251.0], "heart_rate": [99.0]},
        ),
        ("<x:ele>3</x:ele><hr>90</hr><extensions><d><e><hr>9</hr></e></d></extensions>", {}),
        ("<extensions><hr><cad>7</cad></hr></extensions>", {"cadence": [7.0]}),
    ],
)
def test_gpx(inside: str, expected: dict[str, list[float]]) -> None:
    assert values(READERS["GPX"](gpx(inside), "x", ALL)) == expected


def test_gpx_1_0_has_speed_and_course_in_the_fix() -> None:
    recording = READERS["GPX"](gpx("<speed>3.5</speed><course>271</course>", "1.0"), "x", ALL)
    assert values(recording) == {"speed": [3.5], "course": [271.0]}
    assert recording.seen.other_fields == 0


def test_what_is_read_of_extensions_is_not_counted_as_left_out() -> None:
    inside = (
        "<ele>1</ele><extensions><x:TrackPointExtension><x:hr>90</x:hr><x:wtemp>9</x:wtemp>"
        "</x:TrackPointExtension></extensions>"
    )
    for names, uncounted in ((("heart_rate",), 2), (("heart_rate", "elevation"), 1), ((), 2)):
        assert READERS["GPX"](gpx(inside), "x", names).seen.other_fields == uncounted


def test_tcx() -> None:
    inside = (
        "<AltitudeMeters>431.5</AltitudeMeters><HeartRateBpm><Value>140</Value></HeartRateBpm>"
        "<Cadence>80</Cadence><Extensions><ns3:TPX><ns3:Speed>3.25</ns3:Speed><ns3:Watts>250"
        "</ns3:Watts><ns3:Strange>1</ns3:Strange></ns3:TPX></Extensions></Trackpoint>"
    )
    data = tcx(TEXT).replace(b"</Trackpoint>", inside.encode())
    recording = READERS["TCX"](data, "x", ALL)
    expected = {"elevation": 431.5, "speed": 3.25, "heart_rate": 140, "cadence": 80, "power": 250}
    assert values(recording) == {name: [value] * len(SECONDS) for name, value in expected.items()}
    assert recording.seen.other_fields == 1
    run = data.replace(b"<Cadence>80</Cadence>", b"").replace(b"Watts", b"RunCadence")
    assert values(READERS["TCX"](run, "x", ("cadence",))) == {"cadence": [250.0] * len(SECONDS)}


def fit(rows: Sequence[tuple[int, ...]], numbers: list[tuple[int, int, int, str]]) -> bytes:
    """A FIT file of one place; numbers: of further fields, number, size, type and code."""
    place = [(253, 4, UINT32), (0, 4, SINT32), (1, 4, SINT32)]
    body = definition(0, RECORD, [*place, *(number[:3] for number in numbers)])
    code = "<BIii" + "".join(number[3] for number in numbers)
    for index, row in enumerate(rows):
        body += struct.pack(code, 0, int(SECONDS[index]) - EPOCH, 10**9, 10**8, *row)
    return framed(body)


def test_fit_is_scaled_as_the_profile_says() -> None:
    numbers = [
        *((2, 2, UINT16, "H"), (6, 2, UINT16, "H"), (3, 1, UINT8, "B"), (4, 1, UINT8, "B")),
        *((7, 2, UINT16, "H"), (13, 1, SINT8, "b")),
    ]
    sound = ((431 + 500) * 5, 3250, 140, 80, 250, -7)
    none = (0xFFFF, 0xFFFF, 0xFF, 0xFF, 0xFFFF, 0x7F)
    fields = values(READERS["FIT"](fit([sound, none], numbers), "x", ALL))
    expected = {
        "elevation": 431.0,
        "speed": 3.25,
        "heart_rate": 140.0,
        "cadence": 80.0,
        "power": 250.0,
        "temperature": -7.0,
    }
    assert fields.keys() == expected.keys()
    for name, (first, second) in fields.items():
        assert first == expected[name]
        assert np.isnan(second)


def test_fit_prefers_what_is_enhanced_where_it_is_stated() -> None:
    numbers = [
        *((2, 2, UINT16, "H"), (78, 4, UINT32, "I"), (6, 2, UINT16, "H"), (73, 4, UINT32, "I")),
    ]
    rows = [(2500, 2505, 1000, 2000), (2500, 0xFFFFFFFF, 1000, 0xFFFFFFFF)]
    recording = READERS["FIT"](fit(rows, numbers), "x", ALL)
    assert values(recording) == {"elevation": [1.0, 0.0], "speed": [2.0, 1.0]}
    assert recording.seen.other_fields == 0


def test_geolife_is_in_feet_and_knows_a_number_for_none() -> None:
    data = plt(TEXT)
    assert READERS["GeoLife"](data, "x", ALL).fields == ()  # -777 throughout
    assert READERS["GeoLife"](data, "x", ALL).seen.other_fields == 0
    fields = values(READERS["GeoLife"](data.replace(b"-777", b"1000", 1), "x", ALL))
    assert fields["elevation"][0] == pytest.approx(304.8)
    assert np.isnan(fields["elevation"][1:]).all()


@pytest.mark.parametrize(
    ("name", "cell", "expected"),
    [
        *(("Elevation (m)", "431.5", ("elevation", 431.5)), ("ele", "-3", ("elevation", -3.0))),
        *(("altitude_ft", "100", ("elevation", 30.48)), ("Höhe", "1,5", ("elevation", 1.5))),
        *(("speed (km/h)", "36", ("speed", 10.0)), ("speedKmh", "36", ("speed", 10.0))),
        *(("speed_mph", "100", ("speed", 44.704)), ("Speed [m/s]", "3", ("speed", 3.0))),
        *(("speed_knots", "3600", None), ("speed_kn", "18", ("speed", 9.26))),
        *(("speed", "3", None), ("max speed (m/s)", "3", None), ("height", "180", None)),
        *(("heading", "359.5", ("course", 359.5)), ("course_deg", "400", None)),
        *(("heartRate", "90", ("heart_rate", 90.0)), ("hr (bpm)", "90", ("heart_rate", 90.0))),
        *(("Heart_Rate", "0", None), ("cadence_rpm", "80", ("cadence", 80.0))),
        *(("Power (W)", "250", ("power", 250.0)), ("power_kw", "1", None)),
        *(("temp", "21", ("temperature", 21.0)), ("Temp (°F)", "212", ("temperature", 100.0))),
        *(("x", "1", None), ("altitude_error", "1", None), ("gpsAltitude", "7", None)),
    ],
)
def test_a_column_is_known_by_its_name_and_its_unit(
    name: str, cell: str, expected: tuple[str, float] | None
) -> None:
    data = f"time;lat;lon;{name}\n2024-05-01T07:30:00Z;46;7;{cell}\n".encode()
    recording = READERS["CSV"](data, "x", ALL)
    if name == "gpsAltitude":
        expected = ("elevation", 7.0)
    assert {key: pytest.approx(numbers) for key, numbers in values(recording).items()} == (
        {expected[0]: [expected[1]]} if expected else {}
    )
    frame = pandas.DataFrame(
        {"time": ["2024-05-01T07:30:00Z"], "lat": [46.0], "lon": [7.0], name: [cell]}
    )
    assert values(from_frame(frame, ALL)) == values(recording)


@pytest.mark.parametrize("cell", HOSTILE)
def test_what_is_no_number_is_none_in_every_text_format(cell: str) -> None:
    assert READERS["GPX"](gpx(f"<ele>{cell}</ele>"), "x", ALL).fields == ()
    table = f"time,lat,lon,ele,hr\n2024-05-01T07:30:00Z,46,7,{cell},90\n".encode()
    assert values(READERS["CSV"](table, "x", ALL)) == {"heart_rate": [90.0]}
    high = json.dumps(cell) if cell not in ("1e308", "-1e308", "9" * 400) else cell
    feature = (
        '{"type":"Feature","properties":{"time":"2024-05-01T07:30:00Z","hr":%s,"cad":true},'
        '"geometry":{"type":"Point","coordinates":[7,46,%s]}}'
    )
    assert READERS["GeoJSON"]((feature % (high, high)).encode(), "x", ALL).fields == ()
    columns = {"time": [1_714_548_600], "lat": [46.0], "lon": [7.0], "ele": [cell], "hr": [True]}
    stream = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.table(columns | {"power": np.array([2**64 - 1], dtype=np.uint64)}), stream
    )
    assert READERS["GeoParquet"](stream.getvalue(), "x", ALL).fields == ()
    assert from_frame(pandas.DataFrame(columns), ALL).fields == ()


def test_geojson_has_heights_in_places_and_lists_beside_times() -> None:
    line = {
        "type": "Feature",
        "properties": {
            "power": [1, None],
            "name": "Secretville",
            "coordinateProperties": {
                "times": ["2024-05-01T07:30:00Z", "2024-05-01T07:30:05Z"],
                "heart": [90, "91"],
                "atemps": [20.5, 21],
                "cads": [80],
            },
        },
        "geometry": {"type": "LineString", "coordinates": [[7, 46, 431.5], [7, 46.1]]},
    }
    recording = READERS["GeoJSON"](json.dumps(line).encode(), "x", ALL)
    expected = {
        "elevation": [431.5, np.nan],
        "heart_rate": [90, 91],
        "power": [1, np.nan],
        "temperature": [20.5, 21.0],
    }
    assert values(recording).keys() == expected.keys()
    for name, numbers in expected.items():
        np.testing.assert_array_equal(dict(recording.fields)[name], numbers)
    assert recording.seen.other_fields == 1


def test_fields_stay_beside_their_rows_where_some_state_no_position() -> None:
    times = [f"2024-05-01T07:30:0{second}Z" for second in range(4)]
    columns = {
        "time": times,
        "lat": [46.0, None, 46.2, 46.3],
        "lon": [7.0, None, 7.2, 7.3],
        "power": [100.0, 101.0, None, 103.0],
    }
    frame = pandas.DataFrame(columns)
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    for recording in (
        from_frame(frame, ("power",)),
        READERS["CSV"](frame.to_csv(index=False).encode(), "x", ("power",)),
        READERS["GeoParquet"](stream.getvalue(), "x", ("power",)),
    ):
        assert recording.seen.without_position == 1
        np.testing.assert_array_equal(recording.fields[0][1], [100.0, np.nan, 103.0])


def test_tables_in_memory_have_the_fields_as_columns() -> None:
    fields = (("elevation", np.arange(40.0)), ("speed", np.full(40, 2.5)))
    trace = Trace(SECONDS * 10**9, PLACES, np.zeros(40, dtype=np.intp), (0,), fields)
    table = to_frame(trace)
    assert list(table)[5:] == ["elevation_m", "speed_m_s"]
    assert from_frame(table).fields == ()
    assert values(from_frame(table, ("speed",))) == {"speed": [2.5] * 40}


def test_a_released_file_tells_no_noise_of_floats() -> None:
    fields = tuple((name, np.full(40, 12.345678901)) for name in ALL)
    trace = Trace(SECONDS * 10**9, PLACES, np.zeros(40, dtype=np.intp), (0,), fields)
    for suffix in (".gpx", ".csv", ".tsv", ".geojson"):
        assert set(re.findall(rb"12\.3\d*|\b12\b", written(trace, suffix))) == {
            b"12.3",
            b"12.35",
            b"12",
        }


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        *(("elevation", -0.04, "0.0"), ("elevation", -0.06, "-0.1"), ("speed", 3.005, "3.01")),
        *(("course", 359.96, "360.0"), ("heart_rate", 90.5, "91"), ("power", np.nan, "")),
        *(("temperature", -100.01, ""), ("cadence", np.inf, "")),
    ],
)
def test_numbers_leave_with_the_decimals_of_their_field(name: str, value: float, text: str) -> None:
    assert as_text(name, np.array([value])) == [text]


def test_bounds_include_their_ends() -> None:
    for name, field in FIELDS.items():
        ends = [field.least, field.most]
        assert plausible(name, ends).tolist() == ends
        beyond = [np.nextafter(field.least, -np.inf), np.nextafter(field.most, np.inf)]
        assert np.isnan(plausible(name, beyond)).all()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("Round  the\nlake ", "Round the lake"), ("a\x00b\u202e\u200bc\ud800", "abc")),
        *(("x" * 500, "x" * 100), (" \t", ""), ("</name><wpt lat='1'>", "</name><wpt lat='1'>")),
    ],
)
def test_a_name_is_one_line_of_what_can_be_printed(text: str, name: str) -> None:
    assert plain_name(text) == plain_name(plain_name(text)) == name


def test_gpx_names_of_tracks() -> None:
    def track(inside: str, fixes: int = 1) -> str:
        points = '<trkpt lat="46" lon="7"><name>Point</name></trkpt>' * fixes
        return f"<trk>{inside}<trkseg>{points}</trkseg></trk>"

    tracks = [
        *(track("<name>A &amp; B</name><name>C</name><cmt>D</cmt>"), track("<name>E</name>", 0)),
        *(track("<desc>F</desc>"), f"{track('')[:-6]}<name>Late</name></trk>"),
    ]
    data = f"<gpx><metadata><name>M</name></metadata>{''.join(tracks)}</gpx>".encode()
    recording = READERS["GPX"](data, "x", ("name",))
    assert recording.names == ("A & B", "", "Late")
    assert READERS["GPX"](data, "x").names == ()


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_released_is_refused_by_name(name: str) -> None:
    with pytest.raises(Refused, match=f"got {name}, never released: ") as caught:
        check_fields(["speed", name])
    assert "\n" not in str(caught.value)


def test_names_are_checked_and_put_in_order() -> None:
    assert check_fields(["speed", "elevation", "speed"]) == ("elevation", "speed")
    with pytest.raises(InvalidValue, match="must be one of elevation, speed"):
        check_fields(["Secretville"])
    with pytest.raises(InvalidValue, match="must be one of elevation, speed"):
        read("any.gpx", ("heartrate",))
