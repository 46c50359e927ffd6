"""GeoLife's .plt: what is read of it, and what is refused in one line."""

import tracemalloc

import numpy as np
import pytest

from tests.studies.datasets.geolife_files import DAYS, HEADER, MORNING, plt_text, walked
from trailveil.errors import UnreadableInput
from trailveil.traces.formats import plt
from trailveil.traces.formats.plt import fields, numbers, read


def test_a_file_is_read_as_it_was_written() -> None:
    seconds, degrees = walked(12, seed=1)
    data = plt_text(seconds, degrees).encode()
    recording = read(data, "x.plt")
    expected = MORNING + seconds.astype("timedelta64[s]")
    np.testing.assert_array_equal(recording.times, expected.astype("datetime64[ns]"))
    np.testing.assert_allclose(recording.positions, degrees, atol=5.1e-7, rtol=0)
    assert not recording.naive.any()
    table = numbers(fields(data, "x.plt"))
    np.testing.assert_array_equal(table[:, :2], recording.positions)
    np.testing.assert_allclose((table[:, 2] - DAYS) * 86_400, seconds, atol=1e-4)


def test_broken_rows_are_kept_and_counted_not_guessed() -> None:
    rows = [
        "10.5,20.5,0,-777,39937.25,2009-05-04,06:00:00",
        "ten,20.5,0,-777,39937.25,2009-05-04,06:00:05",
        "10.5,20.5,0,-777,39937.25,2009-05-04",
        "10.5,20.5,0,-777,39937.25,2009-13-04,06:00:10",
        "10.5,20.5,0,-777,39937.25,4096-05-04,06:00:10",
        "10.5",
    ]
    recording = read((HEADER + "\r\n".join(rows)).encode(), "x.plt")
    assert len(recording) == 6
    assert np.isnan(recording.positions).any(axis=1).tolist() == [0, 1, 0, 0, 0, 1]
    assert np.isnat(recording.times).tolist() == [0, 0, 1, 1, 1, 1]
    assert (recording.seen.unreadable_times, recording.seen.impossible_years) == (3, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\1\2",
        b"<gpx></gpx>",
        b"OziExplorer Track Point File Version 2.1\r\n",
        HEADER.encode(),
    ],
)
def test_what_is_no_file_of_geolife_is_refused_without_its_text(data: bytes) -> None:
    with pytest.raises(UnreadableInput, match=r"^input must .*: x\.plt") as caught:
        read(data, "x.plt")
    assert "gpx" not in str(caught.value)


def test_what_is_no_geolife_is_refused_before_it_is_taken_apart() -> None:
    tracemalloc.start()
    try:
        for data in (bytes(10**7), b"Geolife trajectory" + bytes(10**7)):
            with pytest.raises(UnreadableInput):
                read(data, "x")
        assert tracemalloc.get_traced_memory()[1] < 5 * 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "10.5, 20.5,0,7,1,2009-05-04,06:00:60",
        "10,20,0,7,1,2009-02-30,1:00:00",
        "10.5,20-5,0,7,1,2009-05-04,06:00:00",
        "1_0,2e1,0,7,1,2009-05-04,06:00:00",
        ".5,5.,0,7,1,2009-05-04,06:00:00",
        "10,20,0,1,2009-05-04,06:00:00",
        "10,20,0,7,1,2009-05-04,06:00:00,9",
    ],
)
def test_lines_that_are_read_at_once_are_read_as_one_by_one(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plt, "_BLOCK", 7)
    text = plt_text(*walked(40, seed=3)) + (odd and f"{odd}\r\n")
    fast = read(text.encode(), "x.plt")
    monkeypatch.setattr(plt, "_at_once", lambda *_: False)
    slow = read(text.encode(), "x.plt")
    assert len(fast) == 40 + bool(odd)
    for name in ("times", "naive", "positions", "segments", "tracks"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name))
    assert fast.seen == slow.seen


def test_more_fixes_than_are_read_are_refused_at_once() -> None:
    data = plt_text(*walked(40, seed=3)).encode()
    assert len(read(data, "x.plt", most=40)) == 40
    with pytest.raises(UnreadableInput, match="at most 39 fixes"):
        read(data, "x.plt", most=39)
