"""When and where a photo was taken: the EXIF of a JPEG file, read strictly.

Only the few tags that tell a time and a position are looked at (EXIF 2.32, TIFF 6.0). No picture is
decoded. A photo that says something else than a time and a position is refused, not guessed at.
"""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.traces.stated_times import in_nanoseconds, time_of

JPEG = b"\xff\xd8\xff"
"""How such a file begins."""

_EXIF = b"Exif\0\0"
_EXIF_IFD, _GPS_IFD = 0x8769, 0x8825
_TAKEN, _OFFSET = 0x9003, 0x9011
_LATITUDE, _LONGITUDE, _CLOCK, _DATE = 2, 4, 7, 29
# Bytes of each kind of value: text, short, long, fraction.
_SIZES = {2: 1, 3: 2, 4: 4, 5: 8}
_MOST_TAGS, _MOST_BYTES = 512, 1024

Tags = dict[int, tuple[int, bytes]]


class Photo(NamedTuple):
    """A photo. when: nanoseconds since 1970 UTC. latitude, longitude: degrees."""

    when: int
    latitude: float
    longitude: float


def read_photo(data: bytes, zone: tzinfo | None = None) -> Photo:
    """When and where a photo was taken. zone: of a time without one.

    Raises UnreadableInput for what is no JPEG with a time and a position.
    """
    try:
        order, whole = _tiff(data)
        first = _tags(whole, order, struct.unpack_from(f"{order}I", whole, 4)[0])
        places = _tags(whole, order, _long(first[_GPS_IFD], order))
        latitude = _degrees(places, _LATITUDE, b"NS", order, 90)
        longitude = _degrees(places, _LONGITUDE, b"EW", order, 180)
        taken = _tags(whole, order, _long(first[_EXIF_IFD], order)) if _EXIF_IFD in first else {}
        when = _when(places, taken, order, zone)
    except (
        InvalidValue,
        struct.error,
        LookupError,
        ValueError,
        OverflowError,
        ZeroDivisionError,
    ) as error:
        raise UnreadableInput(
            "a photo must be a JPEG that says when and where it was taken, got one that does not: "
            "state --at LAT,LON and --time"
        ) from error
    if latitude == longitude == 0:
        raise UnreadableInput(
            "a photo must say where it was taken, got 0 degrees north and east, as of a camera "
            "without a fix: state --at LAT,LON and --time"
        )
    return Photo(when, latitude, longitude)


def _tiff(data: bytes) -> tuple[str, bytes]:
    """Byte order and contents of the EXIF segment."""
    for marker, segment in _segments(data):
        if marker == 0xE1 and segment.startswith(_EXIF):
            whole = segment[len(_EXIF) :]
            order = {b"II*\0": "<", b"MM\0*": ">"}[whole[:4]]
            return order, whole
    raise ValueError


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The marker and the contents of each segment before the picture."""
    if not data.startswith(JPEG):
        raise ValueError
    at = 2
    while data[at] == 0xFF and data[at + 1] not in (0xD9, 0xDA):
        (size,) = struct.unpack_from(">H", data, at + 2)
        if size < 2 or at + 2 + size > len(data):
            raise ValueError
        yield data[at + 1], data[at + 4 : at + 2 + size]
        at += 2 + size


def _tags(whole: bytes, order: str, at: int) -> Tags:
    """The kind and the bytes of each tag of a directory."""
    (count,) = struct.unpack_from(f"{order}H", whole, at)
    if count > _MOST_TAGS:
        raise ValueError
    tags: Tags = {}
    for i in range(count):
        start = at + 2 + 12 * i
        tag, kind, values = struct.unpack_from(f"{order}HHI", whole, start)
        size = _SIZES.get(kind, 0) * values
        if not 0 < size <= _MOST_BYTES:
            continue
        place = start + 8 if size <= 4 else struct.unpack_from(f"{order}I", whole, start + 8)[0]
        if place + size > len(whole):
            raise ValueError
        tags.setdefault(tag, (kind, whole[place : place + size]))
    return tags


def _long(tag: tuple[int, bytes], order: str) -> int:
    return int(struct.unpack(f"{order}I", tag[1])[0])


def _text(tag: tuple[int, bytes]) -> str:
    if tag[0] != 2:
        raise ValueError
    return tag[1].split(b"\0")[0].decode("ascii").strip()


def _fractions(tag: tuple[int, bytes], order: str) -> list[float]:
    """Three fractions."""
    if tag[0] != 5:
        raise ValueError
    numbers = struct.unpack(f"{order}6I", tag[1])
    return [numbers[i] / numbers[i + 1] for i in (0, 2, 4)]


def _degrees(tags: Tags, tag: int, signs: bytes, order: str, most: int) -> float:
    """Degrees, minutes and seconds, and the side that the tag before them names."""
    side = signs.index(_text(tags[tag - 1]).encode())
    degrees, minutes, seconds = _fractions(tags[tag], order)
    value = degrees + minutes / 60 + seconds / 3600
    if not (value <= most and minutes < 60.1 and seconds < 60.1):
        raise ValueError
    return -value if side else value


def _when(places: Tags, taken: Tags, order: str, zone: tzinfo | None) -> int:
    """The time of the satellites; else that of the camera, in its zone or the stated one."""
    if _DATE in places and _CLOCK in places:
        day = datetime.strptime(_text(places[_DATE]), "%Y:%m:%d").replace(tzinfo=UTC)
        hours, minutes, seconds = _fractions(places[_CLOCK], order)
        if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 61):
            raise ValueError
        when = day + timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return in_nanoseconds(when)
    day_and_clock = _text(taken[_TAKEN]).split(" ")
    offset = _text(taken[_OFFSET]) if _OFFSET in taken else ""
    return time_of(f"{day_and_clock[0].replace(':', '-')}T{day_and_clock[1]}{offset}", zone)
