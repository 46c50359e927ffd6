"""GeoJSON in, by every habit of stating times; and what is written is GeoJSON."""

import contextlib
import json
from typing import Any

import geopandas
import numpy as np
import pytest
import shapely

from tests.traces.formats.traces import TRACE, written
from trailveil.errors import UnreadableInput
from trailveil.traces.formats.jsons import read
from trailveil.traces.trace import Recording, Seen, Trace

PLACES = [[7.25, 46.5], [-7.5, 46.25], [0.0, -46.125]]
TIMES = ["2024-05-14T12:00:00Z", "2024-05-14T12:00:05Z", "2024-05-14T12:00:10Z"]
SECONDS = [1_715_688_000, 1_715_688_005, 1_715_688_010]


def feature(kind: str, coordinates: object, **properties: object) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def collection(*features: object, **more: object) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features), **more}


def recorded(root: object) -> Recording:
    return read(json.dumps(root).encode(), "x.json")


POINTS = [feature("Point", p, time=t) for p, t in zip(PLACES, TIMES, strict=True)]


@pytest.mark.parametrize(
    "root",
    [
        collection(*POINTS),
        {"locations": POINTS},
        collection(feature("LineString", PLACES, coordTimes=TIMES)),
        collection(feature("MultiPoint", PLACES, times=TIMES)),
        feature("LineString", PLACES, coordinateProperties={"times": TIMES}),
        feature("MultiLineString", [PLACES], coordinateProperties={"times": [TIMES]}),
        feature("MultiLineString", [PLACES], coordTimes=TIMES),
        feature("LineString", [[*p, 400, s] for p, s in zip(PLACES, SECONDS, strict=True)]),
        feature("LineString", [[*p, 0] for p in PLACES], timestamps=[1000 * s for s in SECONDS]),
        {
            "type": "LineString",
            "coordinates": [[*p, 0, s] for p, s in zip(PLACES, SECONDS, strict=True)],
        },
        {
            "type": "Feature",
            "temporalGeometry": {"type": "MovingPoint", "coordinates": PLACES, "datetimes": TIMES},
        },
        collection(
            *[
                feature("Point", [str(x) for x in p], timestamp=s)
                for p, s in zip(PLACES, SECONDS, strict=True)
            ]
        ),
        collection(
            *POINTS, crs={"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
        ),
    ],
)
def test_each_habit_says_the_same(root: object) -> None:
    recording = recorded(root)
    assert recording.positions.tolist() == [place[::-1] for place in PLACES]
    assert recording.times.astype("datetime64[s]").astype(int).tolist() == SECONDS
    assert not recording.naive.any()
    assert recording.tracks == (0,)
    assert recording.seen == Seen()


def test_lines_are_tracks_and_parts_of_a_line_segments() -> None:
    two = feature("MultiLineString", [PLACES[:1], PLACES[1:]], coordTimes=[TIMES[:1], TIMES[1:]])
    flat = feature("MultiLineString", [PLACES[:1], PLACES[1:]], coordTimes=TIMES)
    line = feature("LineString", PLACES, coordTimes=TIMES)
    recording = recorded(collection(two, line, flat))
    assert recording.segments.tolist() == [0, 1, 1, 2, 2, 2, 3, 4, 4]
    assert recording.tracks == (0, 0, 1, 2, 2)
    assert recording.times.astype("datetime64[s]").astype(int).tolist() == SECONDS * 3


def test_what_has_no_times_is_counted() -> None:
    square = [[PLACES[0], PLACES[1], PLACES[2], PLACES[0]]]
    recording = recorded(
        collection(
            feature("LineString", PLACES),
            feature("LineString", PLACES, coordTimes=TIMES[:2]),
            feature("Point", PLACES[0], name="Secretville"),
            feature("Polygon", square),
            {"type": "Feature", "geometry": None, "properties": None},
            feature("GeometryCollection", None),
            "no feature",
            feature("Point", PLACES[0], time=TIMES[0], heart=90, name="Secretville"),
        )
    )
    assert len(recording) == 1
    assert recording.seen == Seen(
        routes=2, waypoints=1, other_records=2, without_position=1, other_fields=2
    )


def test_what_is_unreadable_loses_only_its_fix() -> None:
    odd: list[Any] = [None, "here", [1], [True, 2], [1e300, "x"], {"a": 1}, [10**400, 1]]
    recording = recorded(
        collection(*POINTS, *[feature("Point", place, time="soon") for place in odd])
    )
    assert np.isfinite(recording.positions).all(axis=1).tolist() == [True] * 3 + [False] * 7
    assert np.isnat(recording.times).tolist() == [False] * 3 + [True] * 7
    assert recording.seen.unreadable_times == 7


def test_two_people_are_not_mixed_up() -> None:
    points = [feature("Point", PLACES[0], time=TIMES[0], user_id=who) for who in ("a", "b")]
    lines = [feature("LineString", PLACES, times=TIMES, deviceId=who) for who in (1, 2)]
    for features in (points, lines):
        with pytest.raises(UnreadableInput, match="of one person and one device"):
            recorded(collection(*features))
        assert len(recorded(collection(features[0], features[0]))) == 2 * len(recorded(features[0]))


DEEP = 100_000


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"{", "must be well-formed JSON"),
        (b"\xff\xfe{", "must be well-formed JSON"),
        (b"[" * DEEP + b"]" * DEEP, "must be well-formed JSON"),
        (b'{"features":' * DEEP, "must be well-formed JSON"),
        (b'{"features": [%s]}' % (b"9" * 5000), "must be well-formed JSON"),
        (b"[1, 2]", "JSON of another kind"),
        (b'"Secretville"', "JSON of another kind"),
        (b'{"type": "Topology"}', "JSON of another kind"),
        (b'{"features": []}', "got none"),
        (b'{"features": [1, null, {}]}', "got without position: 1"),
        (
            json.dumps(collection(*POINTS, crs={"name": "EPSG:3857"})).encode(),
            "another reference system",
        ),
    ],
)
def test_what_is_no_recorded_track_is_refused_in_one_line(data: bytes, expected: str) -> None:
    with pytest.raises(UnreadableInput, match=expected) as caught:
        read(data, "x.json")
    assert "\n" not in str(caught.value)
    assert "Secretville" not in str(caught.value)


@pytest.mark.parametrize("kind", [[], {}, ["Feature"], None, 1])
def test_a_type_of_any_kind_is_no_geojson(kind: object) -> None:
    for tree in ({"type": kind}, {"type": kind, "coordinates": []}):
        with pytest.raises(UnreadableInput, match="JSON of another kind"):
            read(json.dumps(tree).encode(), "x.json")


@pytest.mark.parametrize("name", ["crs", "track", "user_id"])
def test_what_can_just_be_parsed_is_read_or_refused(name: str) -> None:
    """The depth at which a part can still be read but no longer be written or compared."""
    points = [
        feature("Point", p, time=t, **{name: "x"}) for p, t in zip(PLACES, TIMES, strict=True)
    ]
    tree = collection(*points) if name != "crs" else collection(*POINTS, crs="x")
    text = json.dumps(tree)
    for depth in range(900, 1000):
        with contextlib.suppress(UnreadableInput):
            read(text.replace('"x"', "[" * depth + "]" * depth).encode(), "x.json")


def test_the_bytes_are_these() -> None:
    trace = Trace(
        np.array([0, 1_500_000_000, 2**60]),
        np.array([[-0.0000004, 179.9999996], [-89.9999994, -0.000001], [7.25, 180.0]]),
        np.array([0, 2, 0]),
        (0, 0, 1),
    )
    assert written(trace, ".json").decode() == (
        '{"type":"FeatureCollection","features":[\n'
        '{"type":"Feature","properties":{"track":0,"segment":0,'
        '"coordTimes":["1970-01-01T00:00:00Z","2006-07-14T23:58:24.606846976Z"]},'
        '"geometry":{"type":"LineString",'
        '"coordinates":[[-180.000000,0.000000],[-180.000000,7.250000]]}},\n'
        '{"type":"Feature","properties":{"track":1,"segment":1,"time":"1970-01-01T00:00:01.5Z"},'
        '"geometry":{"type":"Point","coordinates":[-0.000001,-89.999999]}}\n'
        "]}\n"
    )


def test_geopandas_reads_what_is_written() -> None:
    frame = geopandas.GeoDataFrame.from_features(json.loads(written(TRACE, ".geojson")))
    places = shapely.get_coordinates(frame.geometry)
    assert places[:, ::-1].tolist() == TRACE.positions.tolist()
