"""GPX 1.0 and 1.1: fixes of tracks in, times and positions out.

Read are gpx/trk/trkseg/trkpt with lat, lon and time. Routes, waypoints and further fields of a fix
are counted, and nothing else (names, ...) is looked at but the type of a track. Fields that are
asked for are taken from the fix (ele; speed and course of GPX 1.0) and from its extensions, by
local names: those of Garmin's TrackPointExtension, and what others write; a name from the track.
The structure is a few elements deep, so it is taken straight from the guarded parser. gpxpy serves
as the oracle of the tests and not as the reader: it gives up a whole file for one bad latitude,
cuts times to microseconds, takes text such as "x05" for a zone, and quotes the file in its errors.
"""

from collections.abc import Callable, Sequence
from typing import BinaryIO, Final
from xml.sax import ContentHandler
from xml.sax.saxutils import escape
from xml.sax.xmlreader import AttributesImpl

from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.traces.activities import SPORTS
from trailveil.traces.fields import NAME
from trailveil.traces.formats.collect import MOST_POINTS, Fixes, check_depth, number, parse
from trailveil.traces.formats.grid import WrittenRows, degrees, rows_of
from trailveil.traces.formats.moments import format_moments, parse_moment
from trailveil.traces.trace import Recording, Trace

_DEEPEST = 5
_FIX = ["gpx", "trk", "trkseg", "trkpt"]
_DEEPEST_VALUE = len(_FIX) + 3  # extensions/TrackPointExtension/hr
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<gpx version="1.1" creator="trailveil" xmlns="http://www.topografix.com/GPX/1/1"{more}>\n'
)
_GARMIN = ' xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2"'
# Where a field stands, by its local name: in the fix itself, and anywhere in its extensions.
_OWN: Final = {"ele": "elevation", "speed": "speed", "course": "course"}
_EXTENDED: Final = {
    **dict.fromkeys(("hr", "heartrate", "heart_rate"), "heart_rate"),
    **dict.fromkeys(("cad", "cadence"), "cadence"),
    **dict.fromkeys(("power", "watts", "PowerInWatts"), "power"),
    **dict.fromkeys(("atemp", "temp", "temperature", "Temperature"), "temperature"),
    "speed": "speed",
    "course": "course",
}
# What is written of them, in the order that the schema of TrackPointExtension/v2 asks for.
_WRITTEN: Final = {
    "temperature": "atemp",
    "heart_rate": "hr",
    "cadence": "cad",
    "speed": "speed",
    "course": "course",
}


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of all tracks of a GPX document, in file order; `where` names it in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where it is no GPX, not well-formed, or holds no fix of a track.
    """
    handler = _Tracks(where, field_names, most)
    parse(data, handler, where)
    return handler.fixes.recording()


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as GPX 1.1.

    Segments that have no fix are left out. Fields of the trace go with it: elevation as ele, power
    by itself, the others as Garmin's TrackPointExtension. Raises InvalidValue for a grid that does
    not fit.
    """
    rows = rows_of(trace, grid)
    garmin = any(name in _WRITTEN for name, _ in rows.fields)
    stream.write(_HEAD.format(more=_GARMIN if garmin else "").encode())
    track = -1
    for start, end in zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True):
        if rows.tracks[start] != track:
            stream.write(b"<trk>\n" if track < 0 else b"</trk>\n<trk>\n")
            track = rows.tracks[start]
            if rows.names and rows.names[track]:
                stream.write(f"<name>{escape(rows.names[track])}</name>\n".encode())
            if rows.types and rows.types[track]:
                stream.write(f"<type>{SPORTS[rows.types[track]]}</type>\n".encode())
        stream.write("\n".join(["<trkseg>", *_lines(rows, start, end), "</trkseg>", ""]).encode())
    stream.write(b"</gpx>\n" if track < 0 else b"</trk>\n</gpx>\n")


def _lines(rows: WrittenRows, start: int, end: int) -> list[str]:
    points, times = rows.points[start:end].tolist(), format_moments(rows.times[start:end])
    before, after = _beside(rows, start, end)
    decimals = rows.decimals
    return [
        f'<trkpt lat="{degrees(latitude, decimals)}" lon="{degrees(longitude, decimals)}">'
        f"{first}{f'<time>{time}</time>' if rows.timed else ''}{last}</trkpt>"
        for (latitude, longitude), time, first, last in zip(
            points, times, before, after, strict=True
        )
    ]


def _beside(rows: WrittenRows, start: int, end: int) -> tuple[list[str], list[str]]:
    """What stands before and after the time of each fix, in the order of the schema."""
    fields = {name: texts[start:end] for name, texts in rows.fields}
    none = [""] * (end - start)
    before = [f"<ele>{text}</ele>" if text else "" for text in fields.get("elevation", none)]
    watts = [f"<power>{text}</power>" if text else "" for text in fields.get("power", none)]
    parts = [
        [f"<gpxtpx:{tag}>{text}</gpxtpx:{tag}>" if text else "" for text in fields[name]]
        for name, tag in _WRITTEN.items()
        if name in fields
    ]
    inner = ["".join(cells) for cells in zip(*parts, strict=True)] if parts else none
    after = [
        f"{power}<gpxtpx:TrackPointExtension>{cells}</gpxtpx:TrackPointExtension>"
        if cells
        else power
        for power, cells in zip(watts, inner, strict=True)
    ]
    return before, [f"<extensions>{text}</extensions>" if text else "" for text in after]


class _Tracks(ContentHandler):
    """Collects fixes while the document passes by."""

    def __init__(self, where: str, field_names: Sequence[str], most: int) -> None:
        super().__init__()
        self.fixes: Final = Fixes(where, field_names, most)
        self._own: Final = {tag: name for tag, name in _OWN.items() if name in field_names}
        self._extended: Final = {
            tag: name for tag, name in _EXTENDED.items() if name in field_names
        }
        self._value: tuple[str, int] | None = None  # the field that is open, and how deep
        self._where: Final = where
        self._prefix = ""
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._opening: dict[str, Callable[[AttributesImpl], None]] = {
            "gpx/trk": lambda _: self.fixes.begin_track(),
            "gpx/trk/type": self._open_time,
            "gpx/trk/trkseg": lambda _: self.fixes.begin_segment(),
            "gpx/trk/trkseg/trkpt": self._open_fix,
            "gpx/trk/trkseg/trkpt/time": self._open_time,
            "gpx/rte": lambda _: self.fixes.count("routes"),
            "gpx/wpt": lambda _: self.fixes.count("waypoints"),
        }
        self._closing: dict[str, Callable[[], None]] = {
            "gpx/trk/type": self._close_type,
            "gpx/trk/trkseg": self.fixes.end_segment,
            "gpx/trk/trkseg/trkpt/time": self._close_time,
        }

        if NAME in field_names:
            self._opening["gpx/trk/name"] = self._open_time
            self._closing["gpx/trk/name"] = self._close_name

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        check_depth(len(self._path), self._where)
        if not self._path:
            self._start(name)
        tag = name.removeprefix(self._prefix)
        if self._path == _FIX and tag != "time":
            self._open_field(tag)
        elif self._extended and self._path[:5] == [*_FIX, "extensions"]:
            self._open_extended(tag.rpartition(":")[2])
        self._path.append(tag)
        place = self._place()
        if place in self._opening:
            self._opening[place](attrs)
        elif tag == "trkpt" and place and "extensions" not in place:
            self.fixes.count("misplaced_points")

    def endElement(self, name: str) -> None:  # noqa: N802 - of SAX
        place = self._place()
        if self._value is not None and self._value[1] == len(self._path):
            self._close_value(self._value[0])
        elif place in self._closing:
            self._closing[place]()
        self._path.pop()

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def _place(self) -> str:
        return "/".join(self._path) if len(self._path) <= _DEEPEST else ""

    def _start(self, name: str) -> None:
        prefix, colon, tag = name.rpartition(":")
        if tag != "gpx":
            raise UnreadableInput(
                f"input must be GPX, got XML of another kind: {self._where}; export the recording "
                "as GPX"
            )
        self._prefix = prefix + colon

    def _open_fix(self, attrs: AttributesImpl) -> None:
        self.fixes.fix(number(attrs.get("lat")), number(attrs.get("lon")))

    def _open_field(self, tag: str) -> None:
        """A part of a fix that is no time: it is wanted, or its name is counted."""
        if tag in self._own:
            self._value, self._text = (self._own[tag], len(_FIX) + 1), []
        elif tag != "extensions" or not self._extended:
            self.fixes.field(tag)

    def _open_extended(self, tag: str) -> None:
        depth = len(self._path) + 1
        if tag in self._extended and depth <= _DEEPEST_VALUE:
            self._value, self._text = (self._extended[tag], depth), []
        elif not tag.endswith("Extension"):
            self.fixes.field(tag)

    def _close_value(self, name: str) -> None:
        self.fixes.values.put(name, number("".join(self._text or ())))
        self._value = self._text = None

    def _close_name(self) -> None:
        self.fixes.name("".join(self._text or ()))
        self._text = None

    def _close_type(self) -> None:
        self.fixes.activity("".join(self._text or ()))
        self._text = None

    def _open_time(self, _: AttributesImpl) -> None:
        self._text = []

    def _close_time(self) -> None:
        self.fixes.time(parse_moment("".join(self._text or ())))
        self._text = None
