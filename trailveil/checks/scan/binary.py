"""The tokens of files that take more than reading text: Parquet, FIT, KML, KMZ and NMEA.

Parquet and FIT are taken apart by their libraries. KML has several numbers in a text, and names in
attributes.
"""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from trailveil.checks.scan.tokens import COMMENT, NAME, VALUE, Emit, Place, from_json, from_xml
from trailveil.traces.formats import kmz
from trailveil.traces.formats.fit import opened as opened_fit
from trailveil.traces.formats.parquet import opened as opened_parquet

_BATCH = 65_536
_LONGEST = 65_536  # characters of a text, bytes of a file that is no KML, that are looked at
_POINT = 21  # bytes of a point in WKB, as releases write it: order, kind, x and y
_LITTLE_POINT = b"\x01\x01\x00\x00\x00"
_NUMBER: Final = r"-?\d{1,9}(?:\.\d{1,20})?"
_NUMBERS: Final = re.compile(rf"{_NUMBER}(?: {_NUMBER}){{1,2}}", re.ASCII)
_ANGLE: Final = re.compile(r"(\d{1,3})(\d\d\.\d{2,9})", re.ASCII)
_COORD, _ARRAY = "gx:coord", "gx:SimpleArrayData"
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
NOT_LOOKED_INTO = "a column of lists or records"
"""What stands for the values of a nested column: no release has one."""


def from_parquet(data: bytes, where: str, emit: Emit) -> None:
    """Columns, their metadata, that of the file, and all values; points (WKB) as x and y."""
    with opened_parquet(data, where) as file:
        if created := file.metadata.created_by:
            emit(("created by",), str(created), VALUE)
        stated = {**(file.schema_arrow.metadata or {}), **(file.metadata.metadata or {})}
        for key, value in stated.items():
            _metadata(("metadata",), key, value, where, emit)
        for index, column in enumerate(file.schema_arrow):
            place = (f"column {index + 1}", column.name)
            emit(place, column.name, NAME)
            for key, value in (column.metadata or {}).items():
                _metadata((*place, "metadata"), key, value, where, emit)
        for batch in file.iter_batches(_BATCH):
            for index, (name, column) in enumerate(
                zip(batch.schema.names, batch.columns, strict=True)
            ):
                place = (f"column {index + 1}", name)
                for text, count in _values(column):
                    if isinstance(text, tuple):
                        emit((*place, "x"), repr(text[0]), VALUE, count)
                        emit((*place, "y"), repr(text[1]), VALUE, count)
                    else:
                        emit(place, text, VALUE, count)


def from_fit(data: bytes, where: str, emit: Emit) -> None:
    """Fields of all messages by their names, values with their scale."""
    from fitdecode import FIT_FRAME_DATA

    with opened_fit(data, where) as frames:
        for frame in frames:
            if frame.frame_type != FIT_FRAME_DATA:
                continue
            for field in frame.fields:
                place = (str(frame.name), str(field.name))
                emit(place, str(field.name), NAME)
                for value in (field.raw_value, field.value):  # as it stands, and with its scale
                    for element in value if isinstance(value, tuple) else (value,):
                        if element is not None:
                            emit(place, _text(element), VALUE)


def _metadata(place: Place, key: bytes, value: bytes, where: str, emit: Emit) -> None:
    name = key.decode(errors="replace")
    inner = (*place, name)
    emit(inner, name, NAME)
    if name == "ARROW:schema":  # the schema, coded: its columns and metadata are looked at as such
        return
    text = value.decode(errors="replace")
    if name == "geo" and _is_json(text):
        from_json(value, where, emit, under=inner)
    else:
        emit(inner, text[:_LONGEST], VALUE)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _values(column: Any) -> Iterator[tuple[str | tuple[float, float], int]]:
    """Each value of a column, or of a dictionary each with how often it comes; None left out."""
    kind = column.type
    if hasattr(column, "dictionary"):
        codes = column.indices.drop_null().to_numpy()
        counts = np.bincount(codes, minlength=len(column.dictionary)).tolist()
        for (value, _), count in zip(_plain(column.dictionary), counts, strict=True):
            if count and value is not None:
                yield _point_or_text(value), count
    elif getattr(kind, "num_fields", 0) or hasattr(kind, "storage_type"):
        if len(column) > column.null_count:
            yield NOT_LOOKED_INTO, len(column)
    elif str(kind).startswith("timestamp"):
        zone = {"UTC": "Z", None: ""}.get(kind.tz, f" {kind.tz}")
        for moment in column.drop_null().to_numpy(zero_copy_only=False):
            yield f"{moment}{zone}", 1
    else:
        for value, count in _plain(column):
            if value is not None:
                yield _point_or_text(value), count


def _plain(column: Any) -> Iterator[tuple[Any, int]]:
    """Values one by one: an array of a million long texts is never a list of them."""
    return ((scalar.as_py(), 1) for scalar in column)


def _point_or_text(value: Any) -> str | tuple[float, float]:
    if isinstance(value, bytes) and len(value) == _POINT and value.startswith(_LITTLE_POINT):
        x, y = np.frombuffer(value, "<f8", 2, 5).tolist()
        return x, y
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value[:_LONGEST].decode(errors="backslashreplace")
    return str(value)[:_LONGEST]


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
