"""The tokens of KML, which has several numbers in a text and names in attributes, KMZ and NMEA."""

import io
import re
import zipfile
from typing import Final

from trailveil.checks.scan.tokens import COMMENT, NAME, VALUE, Emit, Place, from_xml
from trailveil.traces.formats import kmz

_NUMBER: Final = r"-?\d{1,9}(?:\.\d{1,20})?"
_NUMBERS: Final = re.compile(rf"{_NUMBER}(?: {_NUMBER}){{1,2}}", re.ASCII)
_ANGLE: Final = re.compile(r"(\d{1,3})(\d\d\.\d{2,9})", re.ASCII)
_COORD, _ARRAY = "gx:coord", "gx:SimpleArrayData"
_LONGEST = 65_536  # bytes of a file that is no KML that are looked at
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)


def from_kml(data: bytes, where: str, emit: Emit) -> None:
    """Like `from_xml`; numbers of a position are apart, and values have the name of their array."""
    from_xml(data, where, _Apart(emit))


def from_kmz(data: bytes, where: str, emit: Emit) -> None:
    """Names, dates, comments and contents of all files of an archive, KML as `from_kml` has it."""
    with kmz.opened(data, where) as archive:
        for text in (archive.comment, data[: _before(data, archive)]):
            if text:
                emit(("archive",), text.decode("latin-1")[:_LONGEST], COMMENT)
        for entry in archive.infolist():
            emit(("archive", "name"), entry.filename, VALUE)
            if entry.date_time != _FIRST_DAY:
                emit(("archive", "date"), "-".join(map(str, entry.date_time)), VALUE)
            for more in (entry.comment, entry.extra):
                if more:
                    emit(("archive",), more.decode("latin-1"), COMMENT)
            content = kmz.member(archive, entry, where)
            if entry.filename.lower().endswith(".kml"):
                from_kml(content, where, emit)
            elif content:
                emit(("archive", "file"), content.decode("latin-1")[:_LONGEST], VALUE)


def from_nmea(data: bytes, where: str, emit: Emit) -> None:
    """Lines of a log, cell by cell; angles also in degrees, as they are written elsewhere."""
    for line in io.BytesIO(data):
        head, *cells = line.decode("latin-1").strip().split(",")
        place = (head.lstrip("$")[2:],)
        for cell in (head, *cells):
            emit(place, cell, VALUE)
            if match := _ANGLE.fullmatch(cell):
                degrees = (int(match[1]) * 60 + float(match[2])) / 60
                emit((*place, "degrees"), f"{degrees:.6f}", VALUE)


def _before(data: bytes, archive: zipfile.ZipFile) -> int:
    """How many bytes stand before the first file of an archive."""
    return min((entry.header_offset for entry in archive.infolist()), default=len(data))


class _Apart:
    """Passes tokens on, with positions taken apart and values under the name of their array."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._array: str | None = None

    def __call__(self, place: Place, text: str, part: str, count: int = 1) -> None:
        """A token of the document."""
        tag = place[-1]
        if tag == _COORD and part == VALUE and _NUMBERS.fullmatch(text):
            for index, word in enumerate(text.split(" ")):
                self._emit((*place, f"[{index}]"), word, VALUE, count)
            return
        if tag == _ARRAY and part == NAME:
            self._array = None
        elif place[-2:] == (_ARRAY, "@name"):
            if part == VALUE:
                self._array = text
                self._emit((*place[:-1], text), text, NAME, count)
            return
        elif self._array is not None and place[-2:-1] == (_ARRAY,):
            place = (*place[:-1], self._array, tag)
        self._emit(place, text, part, count)
