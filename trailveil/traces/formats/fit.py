"""FIT (Garmin and others): fixes of recorded activities, in and out.

Read are `record` messages with position_lat and position_long, in units of 180/2^31 degree, and
timestamp, in seconds since 1989-12-31 UTC; each start of the timer begins a segment, each file of a
chain a track. Laps are not read: see docs/decisions.md. A record without a position is one of
something else (a heart rate indoors) and no fix. fitdecode takes the file apart; its decoding of
values is left out, which would take half of the time. Fields that are asked for are scaled here, by
the profile. A wrong checksum is counted, as software that writes it wrongly is about.
"""

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import UnreadableInput, UnwritableOutput
from trailveil.traces.formats.collect import MOST_POINTS, Fixes
from trailveil.traces.formats.grid import WrittenRows, rows_of, way_lengths, whole_degrees
from trailveil.traces.formats.moments import Moment, Trouble
from trailveil.traces.trace import NANOSECONDS, Recording, Trace

_RECORD, _EVENT = 20, 21  # numbers of messages
_SPORT_OF: Final = {12: 0, 18: 5}  # by the number of a message, here sport and session: its field
_LATITUDE, _LONGITUDE, _TIMESTAMP = 0, 1, 253  # numbers of fields of a record
_TIMER, _START = 0, 0  # values of event and event_type, which are fields 0 and 1 of an event
# Of the profile: the number of a field, its name, scale and offset; enhanced ones come first.
_FIELDS: Final = (
    *((78, "elevation", 5, 500), (2, "elevation", 5, 500)),
    *((73, "speed", 1000, 0), (6, "speed", 1000, 0)),
    *((3, "heart_rate", 1, 0), (4, "cadence", 1, 0), (7, "power", 1, 0), (13, "temperature", 1, 0)),
)
# Of the profile: what sports are called that are an activity.
_SPORTS: Final = {
    1: "running",
    2: "cycling",
    11: "walking",
    17: "hiking",
    21: "e_biking",
    22: "motorcycling",
    24: "driving",
}
_SEMICIRCLES = 2**31 / 180
_EPOCH = 631_065_600  # 1989-12-31T00:00:00Z, in seconds since 1970
_LEAST_TIME = 0x10000000  # what is less counts from when the device was switched on

# What the parser may stumble over in a damaged file: it checks some things by assertion.
_DAMAGE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of all activities of a FIT file or chain of them; `where` names it in messages.

    field_names: fields to read besides. Of a file that is damaged or cut off, what stands
    before that is read, and the rest is counted as lost.

    Raises UnreadableInput where it is no FIT, or holds no recorded fix.
    """
    fixes = Fixes(where, field_names, most)
    try:
        with opened(data, where) as frames:
            for frame in frames:
                _take(frame, fixes, field_names)
    except _Damaged:
        if not len(fixes):
            raise
        fixes.count("lost_ends")
    return fixes.recording()


class _Damaged(UnreadableInput):
    """A file that cannot be read to its end."""


@contextmanager
def opened(data: bytes, where: str) -> Iterator[Iterator[Any]]:
    """The frames of a FIT file or chain of them, as fitdecode has them, one after the other.

    Raises UnreadableInput where it is no FIT, is damaged or cut off, also for what a damaged frame
    makes the code inside stumble over.
    """
    from fitdecode import CrcCheck, ErrorHandling, FitError, FitReader

    try:
        with FitReader(
            io.BytesIO(data),
            processor=None,
            check_crc=CrcCheck.READONLY,
            error_handling=ErrorHandling.IGNORE,
        ) as reader:
            yield iter(reader)
    except (FitError, *_DAMAGE):
        raise _Damaged(
            f"input must be a whole FIT file, got one that is damaged or cut off: {where}; export "
            "the recording again"
        ) from None


def _take(frame: Any, fixes: Fixes, field_names: Sequence[str]) -> None:
    from fitdecode import FIT_FRAME_CRC, FIT_FRAME_DATA, FIT_FRAME_HEADER

    if frame.frame_type == FIT_FRAME_HEADER:
        fixes.begin_track()
    elif frame.frame_type == FIT_FRAME_CRC:
        fixes.count("wrong_checksums", int(not frame.matched))
    elif frame.frame_type != FIT_FRAME_DATA:
        return
    elif frame.global_mesg_num == _RECORD:
        _take_record(frame, fixes, field_names)
    elif (sport := _SPORT_OF.get(frame.global_mesg_num)) is not None:
        fixes.activity(_SPORTS.get(_values(frame).get(sport, -1), ""))
    elif frame.global_mesg_num == _EVENT:
        values = _values(frame)
        if (values.get(0), values.get(1)) == (_TIMER, _START):
            fixes.begin_segment()


def _values(frame: Any) -> dict[int, Any]:
    """Raw values by the number of their field; what a developer added has no number here."""
    raw = {
        field.def_num: field.raw_value
        for field in frame.fields
        if field.field_def is None or not field.field_def.is_dev
    }
    return {number: value for number, value in raw.items() if value is not None}


def _take_record(frame: Any, fixes: Fixes, field_names: Sequence[str]) -> None:
    values = _values(frame)
    taken = [row for row in _FIELDS if row[1] in field_names]
    for name in values.keys() - {_LATITUDE, _LONGITUDE, _TIMESTAMP, *(row[0] for row in taken)}:
        fixes.field(str(name))
    latitude, longitude = values.get(_LATITUDE), values.get(_LONGITUDE)
    if latitude is None and longitude is None:
        fixes.count("without_position")
        return
    fixes.fix(_degrees(latitude), _degrees(longitude))
    if (stamp := values.get(_TIMESTAMP)) is not None:
        fixes.time(_moment(stamp))
    for index, field, scale, offset in taken:
        value = values.get(index)
        if isinstance(value, int):
            fixes.values.put(field, value / scale - offset)


def _degrees(semicircles: object) -> float:
    return semicircles / _SEMICIRCLES if isinstance(semicircles, int) else float("nan")


def _moment(stamp: object) -> Moment | Trouble:
    if not isinstance(stamp, int) or stamp < _LEAST_TIME:
        return Trouble.UNREADABLE
    return Moment((stamp + _EPOCH) * NANOSECONDS, naive=False)


# FIT out: the few messages of a recorded activity, with checksums, by the published protocol.
#
# fitdecode, which reads FIT, does not write it. Libraries that do bring the whole profile
# (fit-tool: 100,000 lines of generated code) or a licence that is not permissive (Garmin's own
# kit); six messages of fixed layout need neither. FIT holds whole seconds since 1989, and positions
# in 180/2^31 degree, which is finer than the grid of a release.

_LEAST, _MOST = 0x10000000, 0xFFFFFFFE  # times since then that are no other clock, and that fit
_ENUM, _UINT8, _SINT8, _UINT16, _UINT32, _SINT32 = 0x00, 0x02, 0x01, 0x84, 0x86, 0x85
_TYPES: Final[Mapping[int, str]] = {
    _ENUM: "B",
    _UINT8: "B",
    _SINT8: "b",
    _UINT16: "H",
    _UINT32: "I",
    _SINT32: "i",
}
_FILE_ID, _SESSION, _LAP, _ACTIVITY = 0, 18, 19, 34
# Of each message: the numbers and the types of its fields.
_LAYOUTS: Final[Mapping[int, tuple[tuple[int, int], ...]]] = {
    _FILE_ID: ((0, _ENUM), (1, _UINT16), (2, _UINT16), (4, _UINT32)),
    _EVENT: ((253, _UINT32), (0, _ENUM), (1, _ENUM)),
    _LAP: (
        *((253, _UINT32), (2, _UINT32), (7, _UINT32), (8, _UINT32), (9, _UINT32)),
        *((0, _ENUM), (1, _ENUM)),
    ),
    _SESSION: (
        *((253, _UINT32), (2, _UINT32), (7, _UINT32), (8, _UINT32), (0, _ENUM), (1, _ENUM)),
        *((5, _ENUM), (25, _UINT16), (26, _UINT16)),
    ),
    _ACTIVITY: ((253, _UINT32), (0, _UINT32), (1, _UINT16), (2, _ENUM), (3, _ENUM), (4, _ENUM)),
}
# Of a record, besides time and place: name, number, type, scale, offset, and what says none.
_WRITTEN: Final = (
    ("elevation", 78, _UINT32, 5, 500, 0xFFFFFFFF),
    ("heart_rate", 3, _UINT8, 1, 0, 0xFF),
    ("cadence", 4, _UINT8, 1, 0, 0xFF),
    ("speed", 73, _UINT32, 1000, 0, 0xFFFFFFFF),
    ("power", 7, _UINT16, 1, 0, 0xFFFF),
    ("temperature", 13, _SINT8, 1, 0, 0x7F),
)
_SPORT_NUMBERS: Final = {"run": 1, "ride": 2, "walk": 11, "drive": 24}
_ACTIVITY_FILE, _DEVELOPMENT, _STOP_ALL = 4, 255, 4


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as FIT activities.

    A file of the chain for each track, with one lap that has the times and the length of what is
    written; each segment begins with a start of the timer. Raises
    UnwritableOutput for times that are no whole seconds from 1998 to 2125, and InvalidValue for a
    grid that does not fit.
    """
    rows = rows_of(trace, grid)
    seconds, below_second = np.divmod(rows.times, NANOSECONDS)
    stamps = seconds - _EPOCH
    if np.any(below_second) or np.any((stamps < _LEAST) | (stamps > _MOST)):
        raise UnwritableOutput(
            "times in FIT must be whole seconds from 1998 to 2125, got others: add --round-times "
            "1, or choose GPX (-o, or --suffix of a batch)"
        )
    places = np.round(whole_degrees(rows.points) * _SEMICIRCLES).astype(np.int64)
    # Lengths are of places as they are written: whoever reads them finds the same.
    laps, lengths = rows.pieces(), way_lengths(replace(rows, points=places / _SEMICIRCLES))
    places = (places + 2**31) % 2**32 - 2**31
    owners = [int(rows.tracks[lap[0][0]]) for lap in laps]
    for track in sorted({*owners}):
        numbers = [number for number, owner in enumerate(owners) if owner == track]
        of_track = [laps[number] for number in numbers]
        body = b"".join(_messages(rows, stamps, places, of_track, lengths[numbers].tolist()))
        head = struct.pack("<BBHI4s", 14, 0x20, 2195, len(body), b".FIT")
        head += struct.pack("<H", _checksum(head))
        stream.write(head + body + struct.pack("<H", _checksum(head + body)))


def _messages(
    rows: WrittenRows,
    stamps: NDArray[np.int64],
    places: NDArray[np.int64],
    laps: Sequence[list[tuple[int, int]]],
    lengths: Sequence[float],
) -> Iterator[bytes]:
    spans = [_span(stamps, pieces) for pieces in laps]
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    fields = [(row, dict(rows.fields)[row[0]]) for row in _WRITTEN if row[0] in dict(rows.fields)]
    yield _definition(_FILE_ID)
    yield _message(_FILE_ID, _ACTIVITY_FILE, _DEVELOPMENT, 0, first)
    yield _definition(_EVENT) + _definition(_LAP)
    sizes = tuple((row[1], row[2]) for row, _ in fields)
    layout = ((253, _UINT32), (0, _SINT32), (1, _SINT32), *sizes)
    yield _definition(_RECORD, layout)
    form = _form(layout)
    bounds = {*rows.starts.tolist()}
    for pieces, metres in zip(laps, lengths, strict=True):
        for start, end in pieces:
            if start in bounds:
                yield _message(_EVENT, int(stamps[start]), _TIMER, _START)
            for row in range(start, end):
                values = [_value(field, texts[row]) for field, texts in fields]
                lat, lon = places[row].tolist()
                yield struct.pack(form, _LOCAL[_RECORD], int(stamps[row]), lat, lon, *values)
            if end in bounds:
                yield _message(_EVENT, int(stamps[end - 1]), _TIMER, _STOP_ALL)
        begins, ends = _span(stamps, pieces)
        took, way = _milli(ends - begins), min(round(metres * 100), 0xFFFFFFFE)
        yield _message(_LAP, ends, begins, took, took, way, 9, 1)
    took = _milli(last - first)
    count = min(len(laps), 0xFFFE)
    yield _definition(_SESSION)
    stated = rows.types[rows.tracks[laps[0][0][0]]] if rows.types else ""
    yield _message(_SESSION, last, first, took, took, 8, 1, _SPORT_NUMBERS.get(stated, 0), 0, count)
    yield _definition(_ACTIVITY)
    yield _message(_ACTIVITY, last, took, 1, 0, 26, 1)


def _span(stamps: NDArray[np.int64], pieces: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The first and the last time: segments need not follow one another."""
    edges = stamps[[row for start, end in pieces for row in (start, end - 1)]]
    return int(edges.min()), int(edges.max())


def _milli(seconds: int) -> int:
    return min(seconds * 1000, 0xFFFFFFFE)


_LOCAL: Final = {number: local for local, number in enumerate((*_LAYOUTS, _RECORD))}


def _form(layout: tuple[tuple[int, int], ...]) -> str:
    return "<B" + "".join(_TYPES[kind] for _, kind in layout)


def _definition(message: int, layout: tuple[tuple[int, int], ...] | None = None) -> bytes:
    stated = _LAYOUTS[message] if layout is None else layout
    head = struct.pack("<BBBHB", 0x40 | _LOCAL[message], 0, 0, message, len(stated))
    sizes = ((number, struct.calcsize(f"<{_TYPES[kind]}"), kind) for number, kind in stated)
    return head + b"".join(bytes(size) for size in sizes)


def _message(message: int, *values: int) -> bytes:
    return struct.pack(_form(_LAYOUTS[message]), _LOCAL[message], *values)


def _value(field: tuple[str, int, int, int, int, int], text: str) -> int:
    """A field of a record in its steps; what says none where there is none or it has no room."""
    _, _, kind, scale, offset, none = field
    if not text:
        return none
    value = round((float(text) + offset) * scale)
    size = 8 * struct.calcsize(f"<{_TYPES[kind]}")
    least, most = (-(2 ** (size - 1)), 2 ** (size - 1)) if kind == _SINT8 else (0, 2**size)
    return value if least <= value < most - 1 else none


def _checksum(data: bytes) -> int:
    """CRC-16/ARC, as the protocol has it, a byte at a time."""
    crc = 0
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


def _row(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0xA001 if byte & 1 else 0)
    return byte


_TABLE: Final = tuple(_row(byte) for byte in range(256))
