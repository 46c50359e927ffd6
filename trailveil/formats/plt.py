"""GeoLife's .plt: a header of six lines, then a fix a line, all times in GMT.

Altitude (in feet, -777 for none) is taken where it is asked for; the time, which stands there once
more as days since 1899-12-30, is not. Python's own split is the parser: the format has no quotes
and no variants. The files of OziExplorer have the same suffix and another header, and are refused.
"""

import codecs
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.formats.collect import MOST_POINTS, Fixes, number
from trailveil.formats.moments import parse_moment
from trailveil.trace import Recording

_HEAD = 4096  # bytes, an even number, in which the first line is
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEADER_LINES = 6
_FIELDS = 7
_FOOT: Final = 0.3048  # metres
_NO_ALTITUDE: Final = -777.0  # feet


def fields(data: bytes, where: str) -> Iterator[list[str]]:
    """The rows of a .plt file of GeoLife, one or more, split at commas, one by one.

    A sound row has latitude, longitude, 0, altitude in feet, days since 1899-12-30, date and time.
    Raises UnreadableInput for anything else. No message holds text of the file.
    """
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
    rest = islice(lines, _HEADER_LINES, None)
    rows = (line.strip().split(",", _FIELDS) for line in rest if line.strip())
    first = next(rows, None)
    if first is None:
        raise UnreadableInput(f"input must hold a recorded track, got none: {where}")
    return chain([first], rows)


def numbers(rows: Iterable[list[str]]) -> NDArray[np.float64]:
    """Latitude and longitude in degrees and days since 1899-12-30, (n, 3); NaN where unreadable."""
    return np.array(
        [[number(row[i]) if i < len(row) else np.nan for i in (0, 1, 4)] for row in rows]
    )


def read(data: bytes, where: str, wanted: Sequence[str] = (), most: int = MOST_POINTS) -> Recording:
    """The recording in a .plt file of GeoLife. Raises UnreadableInput for anything else.

    wanted: fields to read besides; there is elevation.
    """
    fixes = Fixes(where, wanted, most)
    elevation = "elevation" in wanted
    if not elevation:
        fixes.field("altitude")
    for row in fields(data, where):
        fixes.fix(*(number(text) for text in [*row, "", ""][:2]))
        fixes.time(parse_moment(f"{row[5]}T{row[6]}Z" if len(row) == _FIELDS else ""))
        feet = number(row[3]) if elevation and len(row) == _FIELDS else _NO_ALTITUDE
        if feet != _NO_ALTITUDE:
            fixes.values.put("elevation", feet * _FOOT)
    return fixes.recording()
