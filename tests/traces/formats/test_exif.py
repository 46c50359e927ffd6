"""When and where a photo was taken: read from its EXIF, and nothing that is not said there."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.formats.photos import photo
from trailveil.errors import UnreadableInput
from trailveil.traces.formats.exif import read_photo

NOON = int(datetime(2024, 5, 14, 12, 0, 30, tzinfo=UTC).timestamp()) * 10**9


@pytest.mark.parametrize("order", ["<", ">"])
def test_time_and_place_of_the_satellites(order: str) -> None:
    when, latitude, longitude = read_photo(photo(order))
    assert when == NOON
    assert latitude == 46.5
    assert longitude == pytest.approx(-33.2525, abs=1e-12)
    assert read_photo(photo(order, side=b"E\0")).longitude == -longitude


def test_the_time_of_the_camera_needs_a_zone() -> None:
    shown = photo(clock=False, taken="2024:05:14 14:00:30")
    with pytest.raises(UnreadableInput, match="says when and where"):
        read_photo(shown)
    assert read_photo(shown, ZoneInfo("Europe/Berlin")).when == NOON
    # What the file says counts.
    stated = photo(clock=False, taken="2024:05:14 14:00:30", offset="+02:00")
    assert read_photo(stated, ZoneInfo("America/Lima")).when == NOON


def test_pillow_writes_what_is_read() -> None:
    image = pytest.importorskip("PIL.Image")
    from io import BytesIO

    exif = image.Exif()
    exif[0x8825] = {
        1: "S",
        2: (33.0, 52.0, 10.5),
        3: "E",
        4: (151.0, 12.0, 30.0),
        7: (12.0, 0.0, 30.0),
        29: "2024:05:14",
    }
    out = BytesIO()
    image.new("RGB", (4, 4)).save(out, "JPEG", exif=exif)
    when, latitude, longitude = read_photo(out.getvalue())
    assert when == NOON
    assert latitude == pytest.approx(-(33 + 52 / 60 + 10.5 / 3600), abs=1e-9)
    assert longitude == pytest.approx(151 + 12 / 60 + 30 / 3600, abs=1e-9)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8\xff",
        b"GIF89a",
        photo(gps=False),
        photo(clock=False),
        photo(latitude=(91, 1)),
        photo(latitude=(1, 0)),
        photo(hour=99),
        photo(side=b"X\0"),
        photo(clock=False, taken="2024:13:14 14:00:30", offset="+02:00"),
        photo()[:60],
    ],
)
def test_what_says_no_time_and_place_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableInput, match="must be a JPEG that says when and where"):
        read_photo(data)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_camera_without_a_fix_is_named(order: str) -> None:
    """It writes zeros, or nothing that can be divided."""
    nowhere = photo(order, position=((0, 1),) * 6)
    with pytest.raises(UnreadableInput, match="a photo must say where it was taken, got 0 degrees"):
        read_photo(nowhere)
    with pytest.raises(UnreadableInput, match="says when and where"):
        read_photo(photo(order, position=((0, 0),) * 6))
    # On the equator, and on the meridian of Greenwich, people take photos.
    for position in (((0, 1),) * 5 + ((1, 10),), ((0, 1), (0, 1), (1, 10)) + ((0, 1),) * 3):
        assert max(map(abs, read_photo(photo(order, position=position))[1:])) > 0


@pytest.mark.parametrize("year", ["0001", "1677", "2263", "9999"])
def test_a_year_that_cannot_be_counted_in_nanoseconds_is_refused(year: str) -> None:
    data = photo().replace(b"2024:05:14", f"{year}:05:14".encode())
    with pytest.raises(UnreadableInput, match="says when and where"):
        read_photo(data)
    shown = photo(clock=False, taken=f"{year}:05:14 14:00:30", offset="+02:00")
    with pytest.raises(UnreadableInput, match="says when and where"):
        read_photo(shown)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6), st.booleans())
def test_damaged_photos_are_refused_or_read(changes: list[tuple[int, int]], short: bool) -> None:
    data = bytearray(photo())
    for at, value in changes:
        data[at % len(data)] = value
    try:
        read = read_photo(bytes(data[: len(data) // 2] if short else data))
    except UnreadableInput:
        return
    assert abs(read.latitude) <= 90
    assert abs(read.longitude) <= 180
