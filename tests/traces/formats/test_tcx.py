"""TCX in: what is read, what is refused in one line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import TrailveilError, UnreadableInput
from trailveil.traces.formats.tcx import read
from trailveil.traces.trace import Seen

NAMESPACE = "http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2"


def point(second: int, lat: object = 12.5, lon: object = -33.25, more: str = "") -> str:
    place = f"<LatitudeDegrees>{lat}</LatitudeDegrees><LongitudeDegrees>{lon}</LongitudeDegrees>"
    return (
        f"<Trackpoint><Time>2024-05-01T00:00:{second:02d}Z</Time>"
        f"<Position>{place}</Position>{more}</Trackpoint>"
    )


def tcx(*activities: str, extra: str = "") -> bytes:
    body = "".join(f'<Activity Sport="Biking">{laps}</Activity>' for laps in activities)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<TrainingCenterDatabase xmlns="{NAMESPACE}">'
        f"<Activities>{body}</Activities>{extra}</TrainingCenterDatabase>"
    ).encode()


def lap(*points: str) -> str:
    return f"<Lap><Track>{''.join(points)}</Track></Lap>"


HEART = "<HeartRateBpm><Value>90</Value></HeartRateBpm><Extensions><x:TPX/></Extensions>"
SOUND = tcx(
    lap(point(0, more=HEART), point(5, 12.6, -33.26)) + lap(point(9, 12.7, -33.27)),
    lap(point(11, 12.8, -33.28)),
)


def test_fixes_of_all_activities_are_read_in_file_order() -> None:
    recording = read(SOUND, "x.tcx")
    assert recording.positions.tolist() == [
        [12.5, -33.25],
        [12.6, -33.26],
        [12.7, -33.27],
        [12.8, -33.28],
    ]
    start = np.datetime64("2024-05-01T00:00:00", "ns")
    assert [(time - start) // np.timedelta64(1, "s") for time in recording.times] == [0, 5, 9, 11]
    assert not recording.naive.any()
    assert recording.segments.tolist() == [0, 0, 0, 1]  # a lap is no pause
    assert recording.tracks == (0, 1)
    assert recording.seen == Seen(other_fields=2)


def test_a_point_without_a_position_is_no_fix_and_a_course_no_track() -> None:
    bare = "<Trackpoint><Time>2024-05-01T00:00:01Z</Time></Trackpoint>"
    course = f"<Courses><Course>{lap(point(1))}</Course></Courses>"
    recording = read(tcx(lap(bare, point(2)), lap(bare), extra=course), "x.tcx")
    assert len(recording) == 1
    assert recording.seen == Seen(routes=1, empty_segments=1, without_position=2)


def test_what_is_unreadable_loses_only_its_fix() -> None:
    late = point(1).replace("2024-05-01T00:00:01Z", "later")
    half = "<Trackpoint><Position><LatitudeDegrees>7</LatitudeDegrees></Position></Trackpoint>"
    recording = read(tcx(lap(point(0, "north"), late, half, point(2))), "x.tcx")
    assert np.isnan(recording.positions).any(axis=1).tolist() == [True, False, True, False]
    assert np.isnat(recording.times).tolist() == [False, True, True, False]
    assert recording.seen.unreadable_times == 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"Secretville", "must be XML"),
        (b"<gpx><trk/></gpx>", "must be TCX, got XML of another kind"),
        (SOUND[: len(SOUND) // 2], "must be well-formed XML"),
        (tcx(), "got none"),
        (tcx(lap()), "got empty segments: 1"),
        (b"<!DOCTYPE x [<!ENTITY a 'Secretville'>]>" + SOUND[39:], "a document type or entities"),
    ],
)
def test_what_is_no_tcx_is_refused_in_one_line(data: bytes, expected: str) -> None:
    with pytest.raises(UnreadableInput, match=expected) as caught:
        read(data, "x.tcx")
    assert "\n" not in str(caught.value)
    assert "Secretville" not in str(caught.value)


@given(st.integers(0, len(SOUND)), st.integers(0, 40), st.binary(max_size=8))
def test_damage_is_refused_or_survived(place: int, length: int, patch: bytes) -> None:
    damaged = SOUND[:place] + patch + SOUND[place + length :]
    try:
        recording = read(damaged, "x.tcx")
    except TrailveilError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine
    else:
        assert len(recording) >= 1
