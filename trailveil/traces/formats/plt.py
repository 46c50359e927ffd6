"""GeoLife's .plt: a header of six lines, then a fix a line, all times in GMT.

Altitude (in feet, -777 for none) is taken where it is asked for; the time, which stands there once
more as days since 1899-12-30, is not. The format has no quotes and no variants: lines as GeoLife
writes them are read many at once, and others split at their commas. The files of OziExplorer have
the same suffix and another header, and are refused.
"""

import codecs
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS, Fixes, number
from trailveil.traces.formats.moments import parse_moment
from trailveil.traces.trace import Recording

_HEAD = 4096  # bytes, an even number, in which the first line is
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEADER_LINES = 6
_FIELDS = 7
# Lines as GeoLife writes them, and how many are looked at together.
_AS_WRITTEN = re.compile(
    r"(?:[+\-.\d]*+,[+\-.\d]*+,(?:[^,\n]*+,){3}(?:19|20)\d\d-\d\d-\d\d,\d\d:\d\d:\d\d\n)*+",
    re.ASCII,
)
_BLOCK = 16_384
_FOOT: Final = 0.3048  # metres
_NO_ALTITUDE: Final = -777.0  # feet


def fields(data: bytes, where: str) -> Iterator[list[str]]:
    """The rows of a .plt file of GeoLife, one or more, split at commas, one by one.

    A sound row has latitude, longitude, 0, altitude in feet, days since 1899-12-30, date and time.
    Raises UnreadableInput for anything else. No message holds text of the file.
    """
    return (line.split(",", _FIELDS) for line in _lines(data, where))


def _lines(data: bytes, where: str) -> Iterator[str]:
    encoding = "utf-16" if data.startswith(_UTF16) else "latin-1"  # it is ASCII
    plain = data.removeprefix(codecs.BOM_UTF8)
    head = plain[:_HEAD].decode(encoding, "replace").lstrip()
    if not head.lower().startswith("geolife trajectory"):
        raise UnreadableInput(
            f"input must be a .plt file of GeoLife, got another kind: {where}; export the "
            "recording as GPX"
        )
    stream = io.TextIOWrapper(io.BytesIO(plain), encoding, errors="replace")
    lines = dropwhile(lambda line: not line.strip(), stream)
    rows = filter(None, map(str.strip, islice(lines, _HEADER_LINES, None)))
    first = next(rows, None)
    if first is None:
        raise UnreadableInput(f"input must hold a recorded track, got none: {where}")
    return chain([first], rows)


def numbers(rows: Iterable[list[str]]) -> NDArray[np.float64]:
    """Latitude and longitude in degrees and days since 1899-12-30, (n, 3); NaN where unreadable."""
    return np.array(
        [[number(row[i]) if i < len(row) else np.nan for i in (0, 1, 4)] for row in rows]
    )


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The recording in a .plt file of GeoLife. Raises UnreadableInput for anything else.

    field_names: fields to read besides; there is elevation.
    """
    fixes, lines = Fixes(where, field_names, most), _lines(data, where)
    elevation = "elevation" in field_names
    if not elevation:
        fixes.field("altitude")
    while block := list(islice(lines, _BLOCK)):
        if elevation or not _at_once(block, fixes):
            for line in block:
                _one_by_one(line.split(",", _FIELDS), fixes, elevation=elevation)
    return fixes.recording()


def _at_once(lines: Sequence[str], fixes: Fixes) -> bool:
    """Take fixes from lines that are all as GeoLife writes them; whether they are."""
    text = "\n".join([*lines, ""])
    if not _AS_WRITTEN.fullmatch(text):
        return False
    cells = text.replace("\n", ",").split(",")[:-1]
    latitudes, longitudes = cells[::_FIELDS], cells[1::_FIELDS]
    moments = list(map("T".join, zip(cells[5::_FIELDS], cells[6::_FIELDS], strict=True)))
    try:
        times = np.array(moments, dtype="datetime64[ns]")
        degrees = [list(map(float, latitudes)), list(map(float, longitudes))]
    except ValueError:  # such as a leap second, or two points in a number
        return False
    fixes.extend(np.transpose(degrees), times.astype(np.int64))
    return True


def _one_by_one(row: Sequence[str], fixes: Fixes, *, elevation: bool) -> None:
    whole = len(row) == _FIELDS
    fixes.fix(*(number(text) for text in [*row, "", ""][:2]))
    fixes.time(parse_moment(f"{row[5]}T{row[6]}Z" if whole else ""))
    feet = number(row[3]) if elevation and whole else _NO_ALTITUDE
    if feet != _NO_ALTITUDE:
        fixes.values.put("elevation", feet * _FOOT)
