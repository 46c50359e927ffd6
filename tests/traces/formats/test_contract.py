"""What every format of the table must do: one row more there is one row more here."""

import io
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.formats.samples import FULL, HUGE, SAMPLES, STATED
from tests.traces.formats.traces import (
    PLACES,
    SECONDS,
    TRACE,
    timed,
    traces,
    traces_with_fields,
    written,
)
from trailveil.errors import InvalidValue, TrailveilError, UnreadableInput
from trailveil.traces.cleaning import clean
from trailveil.traces.fields import FIELDS, LONGEST_NAME, NAME
from trailveil.traces.formats import read, write
from trailveil.traces.formats.table import FORMATS, Format, format_of
from trailveil.traces.trace import Recording, Seen, Trace

WRITTEN = [row for row in FORMATS if row.write]
SECRET = re.compile(r"46[.,]1\d|7[.,]65|461\d{4}|765\d{4}|Secretville")

all_formats = pytest.mark.parametrize("row", FORMATS, ids=[row.name for row in FORMATS])
all_written = pytest.mark.parametrize("row", WRITTEN, ids=[row.name for row in WRITTEN])
all_exact = pytest.mark.parametrize(
    "row", [row for row in WRITTEN if row.exact], ids=lambda row: row.name
)


def checked(error: UnreadableInput) -> str:
    message = str(error)
    assert "\n" not in message
    assert len(message) < 300
    assert " must " in message.split(":")[0]
    assert "input.file" in message
    assert not SECRET.search(message)
    assert error.__suppress_context__ or error.__context__ is None
    return message


def outcome(row: Format, data: bytes) -> Recording | str:
    """What is read, or the one line that says why not."""
    try:
        return row.read(data, "input.file")
    except UnreadableInput as error:
        return checked(error)


def refusal(row: Format, data: bytes) -> str:
    refused = outcome(row, data)
    assert isinstance(refused, str)
    return refused


def test_each_row_has_a_sample() -> None:
    names = {row.name for row in FORMATS}
    assert SAMPLES.keys() == FULL.keys() == HUGE.keys() == names
    assert STATED.keys() < names


def test_a_format_that_is_not_exact_has_tests_of_its_own() -> None:
    """They hold what it holds of fields: those of `all_exact` do not."""
    for row in WRITTEN:
        own = Path(__file__).with_name(f"test_{row.name.casefold()}_writing.py")
        assert row.exact or own.exists(), f"{own.name} is missing"


@all_formats
def test_the_documents_list_it(row: Format) -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs/formats.md").read_text(encoding="utf-8")
    assert row.name in page
    assert all(f"`{suffix}`" in page for suffix in row.suffixes)


@all_formats
def test_the_sample_is_read_as_it_is(row: Format) -> None:
    recording = row.read(SAMPLES[row.name], "x")
    np.testing.assert_allclose(recording.positions, PLACES, rtol=0, atol=row.step / 2)
    np.testing.assert_array_equal(recording.times, TRACE.times.view("datetime64[ns]"))
    assert not recording.naive.any()
    assert recording.tracks == (0,)
    trace, cleaning = clean(recording)
    assert len(trace) == cleaning.recorded == len(SECONDS)


@all_formats
def test_content_tells_the_format_whatever_the_suffix(row: Format, tmp_path: Path) -> None:
    for name in ("ride", "ride.txt", "ride.gpx", "ride.json", "ride.csv"):
        file_format = format_of(name, SAMPLES[row.name])
        assert file_format.read is row.read
    path = tmp_path / "ride.bin"
    path.write_bytes(SAMPLES[row.name])
    assert len(read(path)) == len(SECONDS)


@all_written
@given(case=traces())
def test_what_is_written_reads_back(row: Format, case: tuple[Trace, np.ndarray]) -> None:
    drawn, grid = case
    trace = timed(drawn, row)
    data = written(trace, row.suffixes[0])
    assert data == written(trace, row.suffixes[0], grid)
    recording = row.read(data, "x")
    order = np.argsort(recording.times)
    assert recording.times[order].astype(np.int64).tolist() == trace.times.tolist()
    away = recording.positions[order] - grid / 10**6
    if row.step:  # 180 degrees east may be read as west
        away = (away + 180) % 360 - 180
    assert np.abs(away).max() <= 0.50001 * row.step
    assert recording.segments[order].tolist() == trace.segments.tolist()
    assert recording.tracks == trace.tracks
    assert not recording.naive.any()
    assert recording.seen == Seen()


@all_exact
@given(case=traces_with_fields())
def test_fields_that_are_asked_for_read_back_to_their_decimals(
    row: Format, case: tuple[Trace, np.ndarray]
) -> None:
    trace, grid = case
    data = written(trace, row.suffixes[0], grid)
    recording = row.read(data, "x", tuple(FIELDS))
    order = np.argsort(recording.times)
    fields, expected = dict(recording.fields), dict(trace.fields)
    for name, values in expected.items():
        if name not in row.fields:
            continue
        field = FIELDS[name]
        possible = (values >= field.least) & (values <= field.most)
        back = fields.pop(name, np.full(len(trace), np.nan))[order]
        assert np.isfinite(back).tolist() == possible.tolist()
        assert back[possible].tolist() == [round(x, field.decimals) for x in back[possible]]
        np.testing.assert_allclose(
            back[possible], values[possible], rtol=0, atol=0.5001 * 10.0**-field.decimals
        )
    assert fields == {}
    assert recording.seen == Seen()
    again = Trace(trace.times, trace.positions, trace.segments, trace.tracks, reordered(recording))
    assert written(again, row.suffixes[0], grid) == data


@all_written
@given(case=traces(), data=st.data())
def test_names_of_tracks_read_back_where_the_format_has_a_place_for_them(
    row: Format, case: tuple[Trace, np.ndarray], data: st.DataObject
) -> None:
    drawn, grid = case
    trace = timed(drawn, row)
    count = trace.tracks[-1] + 1
    named = replace(trace, names=tuple(data.draw(st.text(max_size=120)) for _ in range(count)))
    content = written(named, row.suffixes[0], grid)
    recording = row.read(content, "x", (NAME,))
    assert recording.names == (named.names if any(named.names) and row.names else ())
    assert recording.seen == Seen()
    assert all(name.isprintable() and len(name) <= LONGEST_NAME for name in recording.names)
    assert row.read(content, "x").names == ()
    if not row.names:
        assert content == written(trace, row.suffixes[0], grid)


def reordered(recording: Recording) -> tuple[tuple[str, np.ndarray], ...]:
    """The fields of a recording by time, in the order of their names."""
    order = np.argsort(recording.times)
    return tuple(sorted((name, values[order]) for name, values in recording.fields))


@all_written
@given(case=traces_with_fields())
def test_fields_that_are_not_asked_for_are_neither_read_nor_moved(
    row: Format, case: tuple[Trace, np.ndarray]
) -> None:
    drawn, grid = case
    trace = timed(drawn, row)
    recording = row.read(written(trace, row.suffixes[0], grid), "x")
    bare = Trace(trace.times, trace.positions, trace.segments, trace.tracks)
    without = row.read(written(bare, row.suffixes[0], grid), "x")
    assert recording.fields == ()
    for part in ("times", "positions", "segments"):
        np.testing.assert_array_equal(getattr(recording, part), getattr(without, part))


@all_written
def test_segments_without_a_fix_are_left_out(row: Format) -> None:
    trace = Trace(TRACE.times, TRACE.positions, np.repeat([1, 4], 20), (0, 1, 1, 1, 3))
    recording = row.read(written(trace, row.suffixes[0]), "x")
    assert recording.segments.tolist() == np.repeat([0, 1], 20).tolist()
    assert recording.tracks == (0, 1)


@all_written
def test_a_grid_that_does_not_fit_is_refused_before_anything_is_written(row: Format) -> None:
    stream, shape = io.BytesIO(), (len(TRACE), 2)
    for grid in (np.zeros((2, 2), dtype=np.int64), np.zeros(shape, dtype=np.int32)):
        with pytest.raises(InvalidValue, match="whole microdegrees"):
            write(TRACE, stream, row.suffixes[0], grid=grid)
    for off in (np.full(shape, 91.0), np.full(shape, np.nan), np.full(shape, 181_000_000)):
        with pytest.raises(InvalidValue, match="must lie on the globe"):
            write(TRACE, stream, row.suffixes[0], grid=off)
    assert stream.getvalue() == b""


@all_formats
@pytest.mark.parametrize("data", [b"", b" ", b"\n\n", b"\0" * 100, b"Secretville 46.123456"])
def test_nothing_and_nonsense_are_refused_in_one_line(row: Format, data: bytes) -> None:
    refusal(row, data)


@all_formats
@pytest.mark.parametrize("other", SAMPLES)
def test_the_content_of_another_format_is_refused_in_one_line(row: Format, other: str) -> None:
    reader = next(known_format.read for known_format in FORMATS if known_format.name == other)
    if reader is row.read:  # JSON of all kinds, and tables
        assert len(row.read(SAMPLES[other], "x")) == len(SECONDS)
    else:
        refusal(row, SAMPLES[other])


@all_formats
def test_a_file_that_is_cut_off_is_refused_or_whole_up_to_its_end(row: Format) -> None:
    """What is read is right but for its last fix; that more is lost is said where that is seen."""
    data = SAMPLES[row.name]
    for end in range(1, len(data) - 1, 7):
        judged = outcome(row, data[:end])
        if isinstance(judged, str):
            continue
        assert not row.end_mark or judged.seen.lost_ends or len(judged) == len(SECONDS)
        whole = len(judged) - 1
        step = row.step / 2
        np.testing.assert_allclose(judged.positions[:whole], PLACES[:whole], rtol=0, atol=step)
        np.testing.assert_array_equal(judged.times[:whole].astype(np.int64), TRACE.times[:whole])


@all_formats
def test_the_number_of_fixes_is_bounded(row: Format) -> None:
    assert len(row.read(SAMPLES[row.name], "x", (), len(SECONDS))) == len(SECONDS)
    with pytest.raises(UnreadableInput, match=f"at most {len(SECONDS) - 1} fixes.*--max-points"):
        row.read(SAMPLES[row.name], "x", (), len(SECONDS) - 1)


@all_formats
@pytest.mark.parametrize("text", [b"9" * 50_000 + b"x", b"9" * 50_000, b" " * 50_000 + b"x"])
def test_a_long_number_takes_no_longer_than_its_length(row: Format, text: bytes) -> None:
    sample = SAMPLES[row.name]
    began = time.process_time()
    for place in (b"46.123456", b"4607.40736", b"7.654321", b"2024-05-01"):
        outcome(row, sample.replace(place, text, 1))
    assert time.process_time() - began < 5


@all_formats
def test_huge_numbers_are_refused_in_one_line(row: Format) -> None:
    judged = outcome(row, HUGE[row.name])
    if not isinstance(judged, str):
        with pytest.raises(UnreadableInput, match=r"must have a position|at least half") as caught:
            clean(judged)
        assert "\n" not in str(caught.value)
        assert "999" not in str(caught.value)


@all_formats
@given(st.data())
def test_damage_is_refused_or_survived(row: Format, data: st.DataObject) -> None:
    sample = SAMPLES[row.name]
    place = data.draw(st.integers(0, len(sample)))
    length, patch = data.draw(st.integers(0, 40)), data.draw(st.binary(max_size=8))
    try:
        recording = row.read(sample[:place] + patch + sample[place + length :], "x")
    except TrailveilError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine
    else:
        assert len(recording) >= 1
