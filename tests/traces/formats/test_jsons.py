"""JSON other than GeoJSON: what is read of it, and that no kind is taken for another."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.traces.formats.builders import messages, moving, signals
from tests.traces.formats.samples import SAMPLES
from tests.traces.formats.traces import PLACES, SECONDS
from trailveil.errors import UnreadableInput
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read as read_file
from trailveil.traces.formats.jsons import read
from trailveil.traces.trace import Recording

AT = ["2024-05-01T08:00:00Z", "2024-05-01T08:10:00.500Z", "2024-05-01T08:20:00Z"]
MS = [1_714_550_400_000, 1_714_551_000_500, 1_714_551_600_000]
E7 = {"latitudeE7": 461234560, "longitudeE7": -76543210}
SHORT = {"latE7": 461234570, "lngE7": -76543220}


def taken(root: object, *field_names: str) -> Recording:
    return read(json.dumps(root).encode(), "x", field_names)


def refusal(data: bytes) -> str:
    with pytest.raises(UnreadableInput) as caught:
        read(data, "input.file")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


def times(recording: Recording) -> list[int]:
    return [int(at) for at in recording.times.astype("datetime64[ms]").astype(np.int64)]


def test_records_of_takeout() -> None:
    records = [
        {**E7, "timestamp": AT[0], "altitude": 512, "velocity": 3, "deviceTag": 7},
        {**E7, "timestampMs": str(MS[1]), "deviceTag": 7},
        {"timestamp": AT[2], "activity": []},
    ]
    riders = taken({"locations": records}, "elevation", "speed")
    assert times(riders) == MS[:2]
    assert riders.positions.tolist() == [[46.123456, -7.654321]] * 2
    assert dict(riders.fields)["elevation"][0] == 512
    assert dict(riders.fields)["speed"][0] == 3
    assert riders.seen.without_position == 1
    other = [*records, {**E7, "timestamp": AT[2], "deviceTag": 8}]
    assert "of one person and one device" in refusal(json.dumps({"locations": other}).encode())


def test_semantic_location_history() -> None:
    duration = {"startTimestamp": AT[0], "endTimestampMs": str(MS[2])}
    activity = {
        "startLocation": E7,
        "endLocation": E7,
        "duration": duration,
        "waypointPath": {"waypoints": [SHORT, SHORT]},
        "simplifiedRawPath": {"points": [{**SHORT, "timestampMs": str(MS[1])}]},
    }
    visit = {"location": SHORT, "duration": duration, "childVisits": [{"location": E7}]}
    objects = [{"activitySegment": activity}, {"placeVisit": visit}, {"other": 1}]
    riders = taken({"timelineObjects": objects})
    assert times(riders) == [*MS, MS[0], MS[2]]
    assert riders.positions[1].tolist() == [46.123457, -7.654322]
    assert (riders.seen.waypoints, riders.seen.other_records) == (2, 1)


def test_the_export_of_android() -> None:
    visit = {"topCandidate": {"placeLocation": {"latLng": "46.5°, -7.5°"}}}
    segments = [
        {"startTime": AT[0], "endTime": AT[2], "visit": visit},
        {"startTime": AT[0], "timelinePath": [{"point": "46.25°, 7.25°", "time": AT[1]}]},
        {
            "startTime": AT[0],
            "endTime": AT[1],
            "activity": {"start": {"latLng": "1.0°, 2.0°"}, "end": {"latLng": "3.0°, 4.0°"}},
        },
        {"startTime": AT[0], "timelineMemory": {}},
    ]
    raw = [{"position": {"LatLng": "5.0°, 6.0°", "timestamp": AT[2]}}, {"wifiScan": {}}]
    riders = taken({"semanticSegments": segments, "rawSignals": raw})
    assert times(riders) == [MS[0], MS[2], MS[1], MS[0], MS[1], MS[2]]
    expected = [[46.5, -7.5], [46.5, -7.5], [46.25, 7.25], [1, 2], [3, 4], [5, 6]]
    assert riders.positions.tolist() == expected
    assert riders.seen.other_records == 2


def test_the_export_of_ios() -> None:
    path = [
        {"point": "geo:46.25,-7.25", "durationMinutesOffsetFromStartTime": "10"},
        {"point": "geo:46.5,-7.5", "durationMinutesOffsetFromStartTime": "x"},
    ]
    visit = {"topCandidate": {"placeLocation": "geo:46.0,7.0"}}
    local = "2024-05-01T10:00:00.000+02:00"
    riders = taken(
        [
            {"startTime": local, "endTime": AT[2], "timelinePath": path},
            {"startTime": local, "endTime": AT[2], "visit": visit},
        ]
    )
    assert times(riders)[0] == MS[0] + 600_000
    assert np.isnat(riders.times[1])
    assert times(riders)[2:] == [MS[0], MS[2]]
    assert riders.positions[:, 1].tolist() == [-7.25, -7.5, 7.0, 7.0]
    assert riders.seen.unreadable_times == 1


BAD: list[object] = ["46.1", None, True, [46], {}, 1e400, 10**300, float("nan"), -(10**30)]


@pytest.mark.parametrize("bad", BAD)
def test_text_and_worse_where_numbers_belong(bad: object) -> None:
    records: list[Any] = [{**E7, "longitudeE7": bad, "timestampMs": bad}] * 2
    sent = [{"_type": "location", "lat": bad, "lon": 7.5, "tst": bad}] * 2
    moved = {"type": "MovingPoint", "coordinates": [[7.5, bad], bad], "datetimes": [bad, bad]}
    strange = [{"startTime": bad, "timelinePath": [{"point": bad}, bad], "visit": bad}]
    for root in ({"locations": records}, sent, moved, {"semanticSegments": strange}):
        try:
            clean(taken(root))
        except UnreadableInput as error:
            assert "\n" not in str(error)  # noqa: PT017 - it must not be read, in one line
        else:
            pytest.fail("it was read")


def test_owntracks_in_each_of_its_forms() -> None:
    sent = messages()
    whole = SAMPLES["OwnTracks"]
    lines = [json.dumps(message) for message in sent]
    recorded = [f"2024-05-01T07:30:00Z\t*                 \t{line}" for line in lines]
    spaced = [f"2024-05-01T07:30:00Z  *                   {line}" for line in lines]
    cut = [*lines, lines[-1][:20]]
    forms = [whole, json.dumps({"count": 40, "data": sent}).encode()]
    forms += ["\r\n".join(each).encode() for each in (lines, recorded, spaced, cut)]
    for data in forms:
        recording = read(data, "x")
        assert recording.positions.tolist() == PLACES.tolist()
        assert times(recording) == (SECONDS * 1000).tolist()
    assert read(forms[-1], "x").seen.other_records == 1
    assert len(taken(sent[0])) == 1


def test_fields_and_other_messages_of_owntracks() -> None:
    sent = [{**messages()[0], "alt": 500, "vel": 36, "cog": 90, "batt": 5}, {"_type": "lwt"}]
    riders = taken(sent, "elevation", "speed", "course")
    assert {name: values.tolist() for name, values in riders.fields} == {
        "elevation": [500.0],
        "speed": [10.0],
        "course": [90.0],
    }
    assert riders.seen.other_records == 1
    two = [{**message, "topic": f"owntracks/a/{index}"} for index, message in enumerate(messages())]
    assert "of one person and one device" in refusal(json.dumps(two).encode())


def test_moving_features_in_each_of_their_forms() -> None:
    point: Any = moving()["temporalGeometry"]
    prisms = {"type": "MovingGeometryCollection", "prisms": [point, point]}
    members = {key: value for key, value in point.items() if key != "type"}
    sequences = {"type": "MovingPoint", "sequences": [members, members]}
    stamps = {**point, "datetimes": (SECONDS * 1000).tolist()}
    several = {"type": "FeatureCollection", "features": [moving(), {"type": "Feature"}, moving()]}
    counts = [(point, 1), (prisms, 2), (sequences, 2), (stamps, 1), (several, 2)]
    for root, count in counts:
        riders = taken(root)
        assert times(riders) == (SECONDS * 1000).tolist() * count
        assert len(riders.tracks) == count
    assert taken(several).tracks == (0, 1)
    assert taken(prisms).tracks == (0, 0)
    crs = {"type": "Name", "properties": {"name": "EPSG:3857"}}
    assert "another reference system" in refusal(json.dumps({**point, "crs": crs}).encode())
    short = {**point, "datetimes": point["datetimes"][:-1]}
    assert "got routes: 1" in refusal(json.dumps(short).encode())
    other = {"type": "MovingPolygon", "coordinates": [], "datetimes": []}
    assert "got other records: 1" in refusal(json.dumps(other).encode())


@pytest.mark.parametrize(
    "root", [{}, [], [1], 7, "x", None, {"locations": []}, {"data": [{}]}, [{"startTime": AT[0]}]]
)
def test_what_is_of_no_kind_is_refused_with_what_was_expected(root: object) -> None:
    message = refusal(json.dumps(root).encode())
    assert "GeoJSON, Moving Features, Google Timeline or OwnTracks, got JSON of another" in message


def test_what_could_be_of_two_kinds_is_refused() -> None:
    both = {**signals(), "type": "FeatureCollection", "features": []}
    assert "JSON of several kinds" in refusal(json.dumps(both).encode())


def test_a_key_that_comes_twice_is_refused() -> None:
    twice = SAMPLES["OwnTracks"].replace(b'"lat": 46.123456', b'"lat": 1, "lat": 46.123456')
    assert "each key once" in refusal(twice)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"[" + b"9" * 5000 + b"]"])
def test_what_is_too_deep_or_too_long_is_refused(data: bytes) -> None:
    assert "well-formed JSON" in refusal(data)


def test_encodings() -> None:
    for name in ("Google Timeline", "OwnTracks", "Moving Features"):
        text = SAMPLES[name].decode()
        for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
            assert len(read(text.encode(encoding), "x")) == len(SECONDS)
    assert "well-formed JSON" in refusal(SAMPLES["Google Timeline"].decode().encode("latin-1"))


REAL = {
    "takeout/dawarich/google/edge_cases/device_settings.json": "JSON of another kind",
    "takeout/dawarich/google/edge_cases/semantic_history_with_bom.json": "",
    "takeout/dawarich/google/edge_cases/timeline_edits.json": "two fixes or more",
    "geojson/movingpandas/movingfeatures.json": "",
}


def test_real_files(shared: Path) -> None:
    folder = shared / "traces"
    stems = {path.relative_to(folder).as_posix() for path in folder.glob("takeout/**/*.json")}
    for name in sorted(stems | REAL.keys()):
        try:
            clean(read_file(folder / name))
            message = ""
        except UnreadableInput as error:
            message = str(error)
        assert REAL.get(name, "two fixes or more") in message
        assert bool(REAL.get(name, "x")) == bool(message)
