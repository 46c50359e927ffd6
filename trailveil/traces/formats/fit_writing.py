"""FIT out: the few messages of a recorded activity, with checksums, by the published protocol.

fitdecode, which reads FIT, does not write it. Libraries that do bring the whole profile (fit-tool:
100,000 lines of generated code) or a licence that is not permissive (Garmin's own kit); six
messages of fixed layout need neither. FIT holds whole seconds since 1989, and
positions in 180/2^31 degree, which is finer than the grid of a release.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import UnwritableOutput
from trailveil.traces.formats.grid import WrittenRows, rows_of, way_lengths, whole_degrees
from trailveil.traces.trace import NANOSECONDS, Trace

_EPOCH = 631_065_600  # 1989-12-31T00:00:00Z, in seconds since 1970
_LEAST, _MOST = 0x10000000, 0xFFFFFFFE  # times since then that are no other clock, and that fit
_SEMICIRCLES = 2**31 / 180
_ENUM, _UINT8, _SINT8, _UINT16, _UINT32, _SINT32 = 0x00, 0x02, 0x01, 0x84, 0x86, 0x85
_TYPES: Final[Mapping[int, str]] = {
    _ENUM: "B",
    _UINT8: "B",
    _SINT8: "b",
    _UINT16: "H",
    _UINT32: "I",
    _SINT32: "i",
}
_FILE_ID, _SESSION, _LAP, _RECORD, _EVENT, _ACTIVITY = 0, 18, 19, 20, 21, 34
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
_FIELDS: Final = (
    ("elevation", 78, _UINT32, 5, 500, 0xFFFFFFFF),
    ("heart_rate", 3, _UINT8, 1, 0, 0xFF),
    ("cadence", 4, _UINT8, 1, 0, 0xFF),
    ("speed", 73, _UINT32, 1000, 0, 0xFFFFFFFF),
    ("power", 7, _UINT16, 1, 0, 0xFFFF),
    ("temperature", 13, _SINT8, 1, 0, 0x7F),
)
_SPORTS: Final = {"run": 1, "ride": 2, "walk": 11, "drive": 24}
_ACTIVITY_FILE, _DEVELOPMENT, _TIMER, _START, _STOP_ALL = 4, 255, 0, 0, 4


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
            "1, or choose GPX (-o)"
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
    fields = [(row, dict(rows.fields)[row[0]]) for row in _FIELDS if row[0] in dict(rows.fields)]
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
    yield _message(_SESSION, last, first, took, took, 8, 1, _SPORTS.get(stated, 0), 0, count)
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
