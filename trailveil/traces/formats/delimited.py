"""CSV and its kin: tables of text with names in the first line; times and positions in and out.

The delimiter (comma, semicolon, tab or bar, else a blank) is the one with which a line names a
latitude, a longitude and a time. Read are UTF-8, UTF-16 with a mark, else Windows-1252; decimal
commas; a hemisphere before or after a number; lines that begin with # are comments. The standard
library's csv takes the lines apart: it goes row by row, so memory stays bounded, and it guesses no
types, as pandas does, which rounds long numbers and makes a column text for one bad cell.
"""

import codecs
import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.traces.fields import FIELDS
from trailveil.traces.formats.collect import MOST_POINTS, number
from trailveil.traces.formats.columns import (
    Columns,
    FieldColumn,
    columns_of,
    field_columns,
    no_time,
)
from trailveil.traces.formats.grid import degrees, rows_of
from trailveil.traces.formats.moments import format_moments
from trailveil.traces.formats.tabular import RowCollector
from trailveil.traces.trace import Recording, Trace

_DELIMITERS = ",;\t|"
_HEAD = 8192  # bytes in which the line of names must be
_HEADER_LINES = 30
_LONGEST_ROW = 1_000_000  # characters
_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_POSITION = re.compile(
    r"([NSEW]?) ?([+-]?\d+(?:[.,]\d*)?)(?: ?\u00b0)? ?([NSEW]?)", re.IGNORECASE | re.ASCII
)
_CHUNK = 10_000
_OR_READINGS = (
    "; convert metres of a map to degrees first; for readings say --column NAME and --unit UNIT "
    "(of protect)"
)


Roles = Callable[[Sequence[str]], Columns | None]
"""What columns of these names are, None where they are no line of names."""


@dataclass(frozen=True, slots=True)
class Header:
    """Where the names stand (line, from 0), how cells are parted, and what the columns are."""

    line: int
    delimiter: str
    columns: Columns
    names: tuple[str, ...]


def looks_like_table(head: bytes) -> bool:
    """Whether the beginning of a file names a latitude and a longitude in one line."""
    return _header(head.decode("latin-1"), columns_of) is not None


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a table, in file order; `where` names it in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where no line names the columns, a row has more cells than there are
    names, or no row has a position.
    """
    header, lines = table_of(
        data, columns_of, "latitude, longitude and time", where, more=_OR_READINGS
    )
    rows = RowCollector(header.columns, where, field_names, most)
    fields = field_columns(header.names, field_names)
    for cells in lines:
        if _take(cells, header.columns, fields, rows):
            rows.people.row(header.names, cells)
    return rows.recording(other_fields=header.columns.others - len(fields))


def table_of(
    data: bytes, roles: Roles, named: str, where: str, *, more: str = "", blanks: bool = False
) -> tuple[Header, Iterator[list[str]]]:
    """The header of a table of text, and its rows; a comment is an empty row.

    named: what the line of names must name, in words; more: advice besides; blanks: whether one
    between cells will do. Raises UnreadableInput where no line does, and, while rows are taken, for
    one that has more cells than there are names.
    """
    encoding, header = header_of(data, roles, blanks=blanks)
    if header is not None and header.columns.time is None:
        raise no_time(header.names, where)
    if header is None:
        raise UnreadableInput(
            f"input must have a line that names {named}, got none: {where}; name the columns so, "
            f"with a comma, semicolon, tab or bar between{more}"
        )
    stream = io.TextIOWrapper(io.BytesIO(data), encoding, errors="replace", newline="")
    for _ in range(header.line + 1):
        stream.readline()
    return header, _rows(stream, header, where)


def header_of(data: bytes, roles: Roles, *, blanks: bool = False) -> tuple[str, Header | None]:
    """The encoding of a table of text, and its header where a line names the roles."""
    encoding, head = _decoded(data[:_HEAD])
    return encoding, _header(head, roles, blanks=blanks)


def encoding_of(data: bytes) -> str:
    """The encoding of a text, by its beginning."""
    return _decoded(data[:_HEAD])[0]


def rows_in(lines: Iterable[str], delimiter: str, where: str) -> Iterator[list[str]]:
    """The rows of lines, as cells; a row may go over several lines, in quotation marks.

    Raises UnreadableInput for a row of more than a million characters, which would unfold to as
    many cells, and for a cell that is too long.
    """
    room = _LONGEST_ROW

    def bounded() -> Iterator[str]:
        nonlocal room
        for line in lines:
            room -= len(line)
            if room < 0:
                raise UnreadableInput(
                    f"rows must have at most {_LONGEST_ROW:,} characters, got a longer one: "
                    f"{where}; line ends or a quotation mark may be missing"
                )
            yield line

    try:
        for cells in csv.reader(bounded(), delimiter=delimiter):
            room = _LONGEST_ROW
            yield cells
    except csv.Error:
        raise UnreadableInput(
            f"input must be a table with cells of at most 128 KiB, got a longer one: {where}; a "
            "quotation mark may be missing"
        ) from None


def _rows(stream: io.TextIOWrapper, header: Header, where: str) -> Iterator[list[str]]:
    width = len(header.names)
    for index, cells in enumerate(rows_in(stream, header.delimiter, where), 1):
        if len(cells) > width and any(cells[width:]):
            raise UnreadableInput(
                f"rows must have {width} cells, as the line of names has, got {len(cells)} in "
                f"row {index}: {where}; where commas are decimal, put semicolons between cells"
            )
        if cells:
            yield [] if cells[0].startswith("#") else cells


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as CSV.

    Columns: time, latitude, longitude; the fields of the trace, if any; where there is more than
    one segment, track and segment. Raises InvalidValue for a grid that does not fit.
    """
    _write(trace, grid, stream, ",")


def write_tabs(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write as `write` does, with tabs between."""
    _write(trace, grid, stream, "\t")


def _write(trace: Trace, grid: ArrayLike, stream: BinaryIO, delimiter: str) -> None:
    rows = rows_of(trace, grid)
    decimals = rows.decimals
    several = len(rows.starts) > 2
    columns = [FIELDS[name].column for name, _ in rows.fields]
    ends = ["track", "segment"] if several else []
    names = ["time", "latitude", "longitude", *columns, *ends]
    stream.write(f"{delimiter.join(names)}\n".encode())
    for start in range(0, len(rows.times), _CHUNK):
        part = slice(start, start + _CHUNK)
        lines = []
        for time, point, track, segment, *fields in zip(
            format_moments(rows.times[part]),
            rows.points[part].tolist(),
            rows.tracks[part].tolist(),
            rows.segments[part].tolist(),
            *(texts[part] for _, texts in rows.fields),
            strict=True,
        ):
            cells = [time, degrees(point[0], decimals), degrees(point[1], decimals), *fields]
            cells += [str(track), str(segment)] if several else []
            lines.append(f"{delimiter.join(cells)}\n")
        stream.write("".join(lines).encode())


def _decoded(head: bytes) -> tuple[str, str]:
    """The encoding of a file, and its beginning as text."""
    encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8")
    try:
        return encoding, codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return "cp1252", head.decode("cp1252", errors="replace")


def _header(head: str, roles: Roles, *, blanks: bool = False) -> Header | None:
    """The first line that has the roles; among delimiters, the one that gives most."""
    for line, text in enumerate(_lines(head)):
        headers = [_named(line, text, delimiter, roles) for delimiter in _DELIMITERS]
        sound = [header for header in headers if header]
        if sound:
            return max(
                sound, key=lambda header: (header.columns.time is not None, len(header.names))
            )
        if blanks and (header := _named(line, text, " ", roles)):
            return header
    return None


def _lines(head: str) -> Iterator[str]:
    stream = io.StringIO(head, newline="")
    for _ in range(_HEADER_LINES):
        yield stream.readline()


def _named(line: int, text: str, delimiter: str, roles: Roles) -> Header | None:
    try:
        names = next(csv.reader([text.lstrip("\ufeff# ")], delimiter=delimiter), [])
    except csv.Error:
        return None
    columns = roles(names)
    return None if columns is None else Header(line, delimiter, columns, tuple(names))


def _take(
    cells: list[str], columns: Columns, fields: Sequence[FieldColumn], rows: RowCollector
) -> bool:
    """Take a row, and say whether it is a fix."""
    if not cells:
        rows.other_records += 1
        return False
    get = cell_getter(cells)
    latitude, longitude = get(columns.latitude), get(columns.longitude)
    if not latitude.strip() and not longitude.strip():
        rows.without_position()
        return False
    per_latitude, per_longitude = columns.per_degree
    rows.position(_degrees(latitude) / per_latitude, _degrees(longitude) / per_longitude)
    rows.values.begin()
    for field in fields:
        rows.values.put(field.field, field.value(get(field.index)))
    rows.stamps.text(get(columns.time), get(columns.date))
    rows.keys(get(columns.track), get(columns.segment), get(columns.person) or None)
    return True


def cell_getter(cells: list[str]) -> Callable[[int | None], str]:
    """The text of a cell by the index of its column, empty where the row or the role has none."""
    return lambda index: "" if index is None or index >= len(cells) else cells[index]


def _degrees(text: str) -> float:
    """A number as it stands, or with a decimal comma or a hemisphere; NaN for anything else."""
    value = number(text)
    if not math.isnan(value):
        return value
    match = _POSITION.fullmatch(text.strip())
    if match is None or (match[1] and match[3]):
        return float("nan")
    value = float(match[2].replace(",", "."))
    return -value if (match[1] or match[3]).upper() in {"S", "W"} else value
