"""FIT in: what is read, what is refused in one line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.formats.fit_files import (
    DEFINITIONS,
    EPOCH,
    NO_POSITION,
    framed,
    record,
    semicircles,
    timer_start,
)
from trailveil.errors import TrailveilError, UnreadableInput
from trailveil.traces.cleaning import clean
from trailveil.traces.formats.fit import read
from trailveil.traces.trace import Seen

START = 1_714_548_600  # 2024-05-01T07:30:00Z
PLACES = [(12.5, -33.25), (12.6, -33.26), (-12.7, 179.5), (89.9, -179.9)]


def records(count: int = 4, start: int = START) -> bytes:
    return b"".join(
        record(start + i, semicircles(PLACES[i % 4][0]), semicircles(PLACES[i % 4][1]))
        for i in range(count)
    )


SOUND = framed(DEFINITIONS + records())


def test_fixes_are_read_in_file_order() -> None:
    recording = read(SOUND, "x.fit")
    np.testing.assert_allclose(recording.positions, PLACES, rtol=0, atol=90 / 2**31)
    stamps = (START + np.arange(4)).astype("datetime64[s]")
    np.testing.assert_array_equal(recording.times, stamps.astype("datetime64[ns]"))
    assert not recording.naive.any()
    assert recording.tracks == (0,)
    assert recording.seen == Seen(other_fields=1)


def test_a_start_of_the_timer_begins_a_segment_and_a_chained_file_a_track() -> None:
    body = timer_start(START) + records(2) + timer_start(START + 60) + records(1, START + 60)
    recording = read(framed(DEFINITIONS + body) + framed(DEFINITIONS + records(1)), "x.fit")
    assert recording.segments.tolist() == [0, 0, 1, 2]
    assert recording.tracks == (0, 0, 1)


def test_records_without_a_position_are_no_fixes_and_odd_times_are_counted() -> None:
    body = record(START, NO_POSITION, NO_POSITION) + record(START, NO_POSITION, 5)
    body += record(EPOCH + 100, 5, 5) + record(START + 1, 5, 5)
    recording = read(framed(DEFINITIONS + body), "x.fit")
    assert np.isnan(recording.positions).any(axis=1).tolist() == [True, False, False]
    assert np.isnat(recording.times).tolist() == [False, True, False]
    assert (recording.seen.without_position, recording.seen.unreadable_times) == (1, 1)


def test_a_wrong_checksum_is_counted() -> None:
    recording = read(SOUND[:-1] + bytes([SOUND[-1] ^ 1]), "x.fit")
    assert len(recording) == 4
    assert recording.seen.wrong_checksums == 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (SOUND[:13], "must be a whole FIT file"),
        (b"<gpx/>" * 9, "must be a whole FIT file"),
        (framed(records()), "must be a whole FIT file"),
        (framed(DEFINITIONS), "got none"),
        (framed(DEFINITIONS + record(START, NO_POSITION, NO_POSITION)), "without position: 1"),
    ],
)
def test_what_is_no_recorded_track_is_refused_in_one_line(data: bytes, expected: str) -> None:
    with pytest.raises(UnreadableInput, match=expected) as caught:
        read(data, "x.fit")
    assert "\n" not in str(caught.value)
    assert "x.fit" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "fixes"), [(SOUND[:-1], 4), (SOUND[:-3], 3), (SOUND[:-17], 2), (SOUND + b"m", 4)]
)
def test_what_stands_before_the_damage_is_kept_and_that_is_said(data: bytes, fixes: int) -> None:
    recording = read(data, "x.fit")
    assert (len(recording), recording.seen.lost_ends) == (fixes, 1)
    assert recording.positions.tolist() == read(SOUND, "x.fit").positions[:fixes].tolist()
    _, cleaning = clean(recording, assume_utc=True)
    assert "damaged or cut off, and were read up to there: 1" in " ".join(cleaning.sentences())


@given(st.integers(0, len(SOUND)), st.integers(0, 20), st.binary(max_size=8))
def test_damage_is_refused_or_survived(place: int, length: int, patch: bytes) -> None:
    damaged = SOUND[:place] + patch + SOUND[place + length :]
    try:
        recording = read(damaged, "x.fit")
    except TrailveilError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine
    else:
        assert len(recording) >= 1
