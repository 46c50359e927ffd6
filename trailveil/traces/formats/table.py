"""One row a format: its name, its suffixes, what its content looks like, who reads and writes it.

A new format is a module with `read`, and `write` where it can be written, and a row.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import BinaryIO, Protocol

from numpy.typing import ArrayLike

from trailveil.errors import (
    Refused,
    Unavailable,
    UnreadableInput,
    UnwritableOutput,
    installing,
)
from trailveil.files.output import check_output
from trailveil.files.source import beginning, named
from trailveil.traces.fields import ALL, FIELDS, TYPE
from trailveil.traces.formats.collect import MOST_POINTS
from trailveil.traces.trace import Recording, Trace


class Reader(Protocol):
    """From the content of a file, and its name for messages, to a recording.

    field_names: names of `trailveil.traces.fields` to read besides; no other is looked at. most:
    how many fixes there may be.
    """

    def __call__(
        self, data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
    ) -> Recording:
        """The recording."""


Writer = Callable[[Trace, ArrayLike, BinaryIO], None]
"""Writes times of a trace, the fields it carries, and positions in whole microdegrees (n, 2)."""

_HEAD = 4096
_BLANK = b"\xef\xbb\xbf\xff\xfe \t\r\n"  # and marks of UTF-8 and UTF-16
_ZIP = b"pk\3\4"  # in small letters; what is in it may be stored as it is


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table. `looks_like` judges the first 4 KiB, lower case, without zero bytes.

    structure: what a file is made of, whatever it means, by which the leak scan takes its words:
    "xml", "json", "json lines", "table", "plt", "nmea", "fit", "kml" (XML with numbers in texts),
    "kmz", "parquet"; of any other it takes runs of text.
    write: None where files of the format are only read. needs: a package that is not always there,
    and the extra that brings it. names: whether tracks have names in it, once they are kept.
    untimed: whether fixes can be written without their times. lines: whether programs draw a line
    through each of its segments. fields: those that it has a place for. end_mark: whether a file
    that is cut off is seen to be. step: degrees between the places that it can hold, where these
    are not those of the public grid. whole_seconds: whether it holds no other times.
    """

    name: str
    suffixes: tuple[str, ...]
    structure: str
    looks_like: Callable[[bytes], bool]
    read: Reader
    write: Writer | None = None
    needs: tuple[str, str] | None = None
    names: bool = False
    untimed: bool = False
    lines: bool = False
    fields: tuple[str, ...] = tuple(FIELDS)
    end_mark: bool = True
    step: float = 0.0
    whole_seconds: bool = False

    @property
    def exact(self) -> bool:
        """Whether it holds a release to the last digit."""
        return not (self.step or self.whole_seconds)


def _reader(module: str) -> Reader:
    """The `read` of a module, which is imported when it is first needed."""

    def read(
        data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
    ) -> Recording:
        reader: Reader = import_module(f"trailveil.traces.formats.{module}").read
        return reader(data, where, field_names, most)

    return read


def _writer(module: str, name: str = "write") -> Writer:
    """The `write` of a module, which is imported when it is first needed."""

    def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
        writer: Writer = getattr(import_module(f"trailveil.traces.formats.{module}"), name)
        writer(trace, grid, stream)

    return write


def _holds(*marks: bytes) -> Callable[[bytes], bool]:
    return lambda head: any(mark in head for mark in marks)


def _begins(mark: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.lstrip(_BLANK).startswith(mark)


def _is_json(*marks: bytes) -> Callable[[bytes], bool]:
    """JSON that holds one of the marks; what it is in fact, its reader tells by all of it."""
    begins = (b"{", b"[")
    return lambda head: head.lstrip(_BLANK).startswith(begins) and _holds(*marks)(head)


def _is_geojson(head: bytes) -> bool:
    return _is_json(b'"feature', b'"coordinates"', b'"geometry"')(head) and not _MOVING(head)


def _is_timeline(head: bytes) -> bool:
    dated = _is_json(b'"starttime"')(head) and _holds(b'"visit"', b'"activity"')(head)
    return dated or _is_json(*_TIMELINE)(head)


def _is_owntracks(head: bytes) -> bool:
    return _is_json(b'"_type"')(head) or _RECORDED.match(head) is not None


def _is_kml(head: bytes) -> bool:
    return _holds(b"<kml", b":kml")(head) and not head.startswith(_ZIP)


def _is_nmea(head: bytes) -> bool:
    return re.search(rb"\$[a-z]{2}(?:rmc|gga|zda|gll|gsa|gsv|vtg),", head) is not None


def _is_table(head: bytes) -> bool:
    from trailveil.traces.formats.delimited import looks_like_table

    return looks_like_table(head)


_MOVING = _is_json(b'"temporalgeometry"', b'"movingpoint"', b'"movinggeometry')
_TIMELINE = (
    *(b'"timelineobjects"', b'"semanticsegments"', b'"rawsignals"', b'"timelineedits"'),
    *(b'"latitudee7"', b'"timelinepath"'),
)
_RECORDED = re.compile(rb"[\dtz:.+-]{10,40}\t[^\t\n]{1,40}\t *\{")  # OwnTracks' .rec
_JSON = _reader("jsons")
_TABLE = _reader("delimited")

FORMATS: tuple[Format, ...] = (
    Format(
        "GPX",
        (".gpx",),
        "xml",
        _holds(b"<gpx", b":gpx"),
        _reader("gpx"),
        _writer("gpx"),
        names=True,
        untimed=True,
        lines=True,
        fields=ALL,
    ),
    Format(
        "FIT",
        (".fit",),
        "fit",
        lambda head: b".fit" in head[:14],
        _reader("fit"),
        _writer("fit"),
        lines=True,
        fields=("elevation", "speed", "heart_rate", "cadence", "power", "temperature", TYPE),
        step=180 / 2**31,
        whole_seconds=True,
    ),
    Format(
        "TCX",
        (".tcx",),
        "xml",
        _holds(b"trainingcenterdatabase"),
        _reader("tcx"),
        _writer("tcx"),
        lines=True,
        fields=("elevation", "speed", "heart_rate", "cadence", "power", TYPE),
    ),
    Format(
        "KML", (".kml",), "kml", _is_kml, _reader("kml"), _writer("kml"), names=True, lines=True
    ),
    Format(
        "KMZ",
        (".kmz",),
        "kmz",
        _begins(_ZIP),
        _reader("kmz"),
        _writer("kmz"),
        names=True,
        lines=True,
    ),
    Format("NMEA", (".nmea",), "nmea", _is_nmea, _reader("nmea"), end_mark=False),
    Format(
        "GeoLife",
        (".plt",),
        "plt",
        _begins(b"geolife trajectory"),
        _reader("plt"),
        end_mark=False,
    ),
    Format(
        "GeoJSON",
        (".geojson", ".json"),
        "json",
        _is_geojson,
        _JSON,
        _writer("geojson"),
        names=True,
        lines=True,
        fields=ALL,
    ),
    Format("Moving Features", (".mfjson",), "json", _MOVING, _JSON),
    Format("Google Timeline", (), "json", _is_timeline, _JSON),
    Format("OwnTracks", (".rec",), "json lines", _is_owntracks, _JSON),
    Format(
        "GeoParquet",
        (".parquet", ".geoparquet"),
        "parquet",
        _begins(b"par1"),
        _reader("parquet"),
        _writer("parquet"),
        needs=("pyarrow", "parquet"),
    ),
    Format("CSV", (".csv",), "table", _is_table, _TABLE, _writer("delimited"), end_mark=False),
    Format(
        "TSV",
        (".tsv",),
        "table",
        _is_table,
        _TABLE,
        _writer("delimited", "write_tabs"),
        untimed=True,
        end_mark=False,
    ),
)

TABLES = {
    suffix: row.structure == "parquet"
    for row in FORMATS
    if row.structure in ("table", "parquet")
    for suffix in row.suffixes
}
"""Whether a table is Parquet, by its suffix; others have none."""


def format_of(path: str | PathLike[str], data: bytes) -> Format:
    """The format of a file: that of its suffix, unless its content looks like another.

    Raises UnreadableInput where neither says one, and for Apple Health's export.xml.
    """
    suffix = PurePath(fspath(path)).suffix.lower()
    head = data[:_HEAD].replace(b"\0", b"").lower()  # UTF-16 without its zeros reads as ASCII
    if _holds(b"<healthdata", b"doctype healthdata", b"<clinicaldocument")(head):
        raise UnreadableInput(
            "input must be a recorded route, got the list of all records of Apple Health: "
            f"{named(path)}; name a file of the same export, workout-routes/*.gpx"
        )
    by_suffix = [row for row in FORMATS if suffix in row.suffixes]
    for row in (*by_suffix, *FORMATS):
        if row.looks_like(head):
            return row
    if by_suffix:
        return by_suffix[0]
    raise UnreadableInput(
        f"input must be of a format that is read ({_names(FORMATS)}), got another: {named(path)}; "
        "convert it first"
    )


def format_to_write(suffix: str) -> Format:
    """The format that writes files of a suffix such as ".gpx".

    Raises UnwritableOutput for none, Unavailable for one whose package is not installed.
    """
    return _to_write(suffix)[0]


def writer_of(suffix: str) -> Writer:
    """What writes files of a suffix such as ".gpx". Raises as `format_to_write` does."""
    return _to_write(suffix)[1]


def _to_write(suffix: str) -> tuple[Format, Writer]:
    for row in FORMATS:
        if suffix.lower() in row.suffixes and row.write is not None:
            _check_installed(row)
            return row, row.write
    raise UnwritableOutput(
        f"output must be of a format that is written ({_names(row for row in FORMATS if row.write)}"
        f"), got the suffix '{named(suffix)}': choose another name"
    )


def default_output(source: Path, content: bytes | None = None) -> Path:
    """ride.gpx -> ride.private.gpx; GPX, too, where a format is none that is written.

    content: of the file, where it is at hand. A format may share its suffix with one that is
    written: then the content tells, if there is one.
    Raises Refused for a name that is none of a file.
    """
    if not source.name:
        raise Refused(f"the input must be a file, got a folder: {named(source)}; name the file")
    try:
        row = format_to_write(source.suffix)
    except UnwritableOutput:
        return source.with_name(f"{source.name}.private.gpx")
    actual = format_of(source, beginning(source) if content is None else content)
    if actual.read is row.read and actual.write is None:
        return source.with_name(f"{source.name}.private.gpx")
    return source.with_name(f"{source.stem}.private{source.suffix}")


def check_writable(output: Path, *others: Path, overwrite: bool) -> None:
    """Refuse an output that cannot or must not be written, before any work is done.

    others: the files that are read, none of which it may be. Raises UnwritableOutput.
    """
    format_to_write(output.suffix)
    check_output(output, *others, overwrite=overwrite)


def check_untimed(suffix: str) -> None:
    """Refuse a format that is not written without times. Raises UnwritableOutput."""
    row = format_to_write(suffix)
    if not row.untimed:
        raise UnwritableOutput(
            f"an output without times must be GPX, got {row.name}: name it .gpx (-o, or --suffix "
            "of a batch), or leave --drop-times out"
        )


def _check_installed(row: Format) -> None:
    """Refuse at once, and not after the noise has been made."""
    if row.needs is not None and not _is_there(row.needs[0]):
        raise Unavailable(
            f"{row.name} must be written with {row.needs[0]}, which is not installed: "
            f"{installing(row.needs[1])}, or choose GPX, GeoJSON or CSV"
        )


def _is_there(package: str) -> bool:
    return find_spec(package) is not None if package in sys.modules else _is_found(package)


@lru_cache  # it looks through folders, and is asked for each trace of a batch
def _is_found(package: str) -> bool:
    return find_spec(package) is not None


def _names(rows: Iterable[Format]) -> str:
    return ", ".join(" ".join([row.name, *row.suffixes]) for row in rows)
