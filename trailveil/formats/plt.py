"""GeoLife's .plt: a header of six lines, then a fix a line, all times in GMT.

Altitude (in feet, -777 for none) is taken where it is asked for; the time, which stands there once
more as days since 1899-12-30, is not. Python's own split is the parser: the format has no quotes
and no variants. The files of OziExplorer have the same suffix and another header, and are refused.
"""

import codecs
from collections.abc import Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.formats.collect import MOST_POINTS, Fixes, number
from trailveil.formats.moments import parse_moment
from trailveil.trace import Recording

_HEADER_LINES = 6
_FIELDS = 7
_FOOT: Final = 0.3048  # metres
_NO_ALTITUDE: Final = -777.0  # feet


def fields(data: bytes, where: str) -> list[list[str]]:
    """The rows of a .plt file of GeoLife, one or more, split at commas.

    A sound row has latitude, longitude, 0, altitude in feet, days since 1899-12-30, date and time.
    Raises UnreadableInput for anything else. No message holds text of the file.
    """
    lines = _text(data).strip("\r\n ").splitlines()
    if not lines or not lines[0].lower().startswith("geolife trajectory"):
        raise UnreadableInput(
            f"input must be a .plt file of GeoLife, got another kind: {where}; export the "
            "recording as GPX"
        )
    rows = [line.split(",") for line in islice(lines, _HEADER_LINES, None) if line.strip()]
    if not rows:
        raise UnreadableInput(f"input must hold a recorded track, got none: {where}")
    return rows


def _text(data: bytes) -> str:
    """The text, which is ASCII: of UTF-16 where it has its mark, else without that of UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.removeprefix(codecs.BOM_UTF8).decode("latin-1")


def numbers(rows: list[list[str]]) -> NDArray[np.float64]:
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
