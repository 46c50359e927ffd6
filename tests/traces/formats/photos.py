"""JPEG files with EXIF, as cameras write it."""

import struct
from collections.abc import Sequence

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
    position: Sequence[tuple[int, int]] = (),
    side: bytes = b"W\0",
    hour: int = 12,
) -> bytes:
    """A JPEG with EXIF, and a segment of another kind before it."""
    where = position or (latitude, (30, 1), (0, 1), (33, 1), (15, 1), (90, 10))
    places: list[Tag] = [
        (1, 2, b"N\0"),
        (2, 5, fractions(order, *where[:3])),
        (3, 2, side),
        (4, 5, fractions(order, *where[3:])),
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
