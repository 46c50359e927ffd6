"""When and where a photo was taken: read from its EXIF, and nothing that is not said there."""

import struct
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.exif import read_photo

NOON = int(datetime(2024, 5, 14, 12, 0, 30, tzinfo=UTC).timestamp()) * 10**9
Tag = tuple[int, int, bytes]


def fractions(order: str, *values: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(f"{order}II", *value) for value in values)


def directory(order: str, at: int, tags: list[Tag]) -> bytes:
    """An IFD that begins at some byte, its values after it."""
    sizes = {2: 1, 4: 4, 5: 8}
    head, values = struct.pack(f"{order}H", len(tags)), b""
    after = at + 2 + 12 * len(tags) + 4
    for tag, kind, value in tags:
        count = len(value) // sizes[kind]
        if len(value) <= 4:
            place = value.ljust(4, b"\0")
        else:
            place = struct.pack(f"{order}I", after + len(values))
            values += value
        head += struct.pack(f"{order}HHI", tag, kind, count) + place
    return head + bytes(4) + values


def photo(
    order: str = ">",
    *,
    gps: bool = True,
    clock: bool = True,
    taken: str | None = None,
    offset: str | None = None,
    latitude: tuple[int, int] = (46, 1),
    side: bytes = b"W\0",
    hour: int = 12,
) -> bytes:
    """A JPEG with EXIF, and a segment of another kind before it."""
    places: list[Tag] = [
        (1, 2, b"N\0"),
        (2, 5, fractions(order, latitude, (30, 1), (0, 1))),
        (3, 2, side),
        (4, 5, fractions(order, (33, 1), (15, 1), (90, 10))),
    ]
    if clock:
        places += [
            (7, 5, fractions(order, (hour, 1), (0, 1), (3000, 100))),
            (29, 2, b"2024:05:14\0"),
        ]
    camera: list[Tag] = [] if taken is None else [(0x9003, 2, taken.encode() + b"\0")]
    camera += [] if offset is None else [(0x9011, 2, offset.encode() + b"\0")]
    first = 8
    pointers = 2 + 12 * 2 + 4
    taken_at = first + pointers
    block = directory(order, taken_at, camera)
    gps_at = taken_at + len(block)
    head = directory(
        order,
        first,
        [
            (0x8769, 4, struct.pack(f"{order}I", taken_at)),
            (0x8825 if gps else 0x8826, 4, struct.pack(f"{order}I", gps_at)),
        ],
    )
    magic = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(f"{order}I", first)
    tiff = magic + head + block + directory(order, gps_at, places)
    segment = b"Exif\0\0" + tiff
    other = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0".ljust(14, b"\0")
    exif = b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment
    return b"\xff\xd8" + other + exif + b"\xff\xda\0\2\xff\xd9"


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
