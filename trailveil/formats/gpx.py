"""GPX 1.0 and 1.1: fixes of tracks in, times and positions out.

Read are gpx/trk/trkseg/trkpt with lat, lon and time. Routes, waypoints and further fields of a fix
are counted, and nothing else (names, ...) is looked at. The structure is three elements deep, so it
is taken straight from the guarded parser. gpxpy serves as the oracle of the tests and not as the
reader: it gives up a whole file for one bad latitude, cuts times to microseconds, takes text such
as "x05" for a zone, and quotes the file in its errors.
"""

from collections.abc import Callable
from typing import BinaryIO, Final
from xml.sax import ContentHandler
from xml.sax.xmlreader import AttributesImpl

from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.formats.collect import Fixes, number
from trailveil.formats.grid import Rows, degrees, rows_of
from trailveil.formats.guarded import parse
from trailveil.formats.moments import format_moments, parse_moment
from trailveil.trace import Recording, Trace

_DEEPEST = 5
_FIX = ["gpx", "trk", "trkseg", "trkpt"]
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<gpx version="1.1" creator="trailveil" xmlns="http://www.topografix.com/GPX/1/1">\n'
)


def read(data: bytes, where: str) -> Recording:
    """The fixes of all tracks of a GPX document, in file order; `where` names it in messages.

    Raises UnreadableInput where it is no GPX, not well-formed, or holds no fix of a track.
    """
    handler = _Tracks(where)
    parse(data, handler, where)
    return handler.fixes.recording()


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as GPX 1.1.

    Segments that have no fix are left out. Raises InvalidValue for a grid that does not fit.
    """
    rows = rows_of(trace, grid)
    stream.write(_HEAD.encode())
    track = -1
    for start, end in zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True):
        if rows.tracks[start] != track:
            stream.write(b"<trk>\n" if track < 0 else b"</trk>\n<trk>\n")
            track = rows.tracks[start]
        stream.write("\n".join(["<trkseg>", *_lines(rows, start, end), "</trkseg>", ""]).encode())
    stream.write(b"</gpx>\n" if track < 0 else b"</trk>\n</gpx>\n")


def _lines(rows: Rows, start: int, end: int) -> list[str]:
    points, times = rows.points[start:end].tolist(), format_moments(rows.times[start:end])
    return [
        f'<trkpt lat="{degrees(latitude)}" lon="{degrees(longitude)}"><time>{time}</time></trkpt>'
        for (latitude, longitude), time in zip(points, times, strict=True)
    ]


class _Tracks(ContentHandler):
    """Collects fixes while the document passes by."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.fixes: Final = Fixes(where)
        self._where: Final = where
        self._prefix = ""
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._opening: dict[str, Callable[[AttributesImpl], None]] = {
            "gpx/trk": lambda _: self.fixes.begin_track(),
            "gpx/trk/trkseg": lambda _: self.fixes.begin_segment(),
            "gpx/trk/trkseg/trkpt": self._open_fix,
            "gpx/trk/trkseg/trkpt/time": self._open_time,
            "gpx/rte": lambda _: self.fixes.count("routes"),
            "gpx/wpt": lambda _: self.fixes.count("waypoints"),
        }
        self._closing: dict[str, Callable[[], None]] = {
            "gpx/trk/trkseg": self.fixes.end_segment,
            "gpx/trk/trkseg/trkpt/time": self._close_time,
        }

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        if not self._path:
            self._start(name)
        own = name.removeprefix(self._prefix)
        if self._path == _FIX and own != "time":
            self.fixes.field(own)
        self._path.append(own)
        place = self._place()
        if place in self._opening:
            self._opening[place](attrs)
        elif own == "trkpt" and place and "extensions" not in place:
            self.fixes.count("misplaced_points")

    def endElement(self, name: str) -> None:  # noqa: N802 - of SAX
        place = self._place()
        if place in self._closing:
            self._closing[place]()
        self._path.pop()

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def _place(self) -> str:
        return "/".join(self._path) if len(self._path) <= _DEEPEST else ""

    def _start(self, name: str) -> None:
        prefix, colon, own = name.rpartition(":")
        if own != "gpx":
            raise UnreadableInput(
                f"input must be GPX, got XML of another kind: {self._where}; export the recording "
                "as GPX"
            )
        self._prefix = prefix + colon

    def _open_fix(self, attrs: AttributesImpl) -> None:
        self.fixes.fix(number(attrs.get("lat")), number(attrs.get("lon")))

    def _open_time(self, _: AttributesImpl) -> None:
        self._text = []

    def _close_time(self) -> None:
        self.fixes.time(parse_moment("".join(self._text or ())))
        self._text = None
