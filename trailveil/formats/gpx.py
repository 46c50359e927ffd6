"""GPX 1.0 and 1.1: fixes of tracks in, times and positions out.

Read are gpx/trk/trkseg/trkpt with lat, lon and time. Routes and waypoints are counted, everything
else (elevation, names, extensions, ...) is never looked at. The structure is three elements deep,
so it is taken straight from the guarded parser. gpxpy serves as the oracle of the tests and not as
the reader: it gives up a whole file for one bad latitude, cuts times to microseconds, takes text
such as "x05" for a zone, and quotes the file in its errors.
"""

import re
from collections.abc import Callable
from typing import BinaryIO, Final
from xml.sax import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.formats.guarded import parse
from trailveil.formats.moments import Trouble, format_moments, parse_moment
from trailveil.trace import Recording, Seen, Trace

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DEEPEST = 5
_LEAST = np.array([-90_000_000, -180_000_000])
_MOST = np.array([90_000_000, 179_999_999])
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
    return handler.recording()


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as GPX 1.1.

    Segments that have no fix are left out. Raises InvalidValue for a grid that does not fit.
    """
    points = _checked(grid, len(trace))
    lines = [
        f'<trkpt lat="{_degrees(latitude)}" lon="{_degrees(longitude)}"><time>{time}</time></trkpt>'
        for (latitude, longitude), time in zip(
            points.tolist(), format_moments(trace.times), strict=True
        )
    ]
    stream.write(_HEAD.encode())
    for track in sorted(set(trace.tracks)):
        segments = [
            [lines[row] for row in np.flatnonzero(trace.segments == segment)]
            for segment, owner in enumerate(trace.tracks)
            if owner == track
        ]
        _write_track([segment for segment in segments if segment], stream)
    stream.write(b"</gpx>\n")


def _write_track(segments: list[list[str]], stream: BinaryIO) -> None:
    if not segments:
        return
    stream.write(b"<trk>\n")
    for lines in segments:
        stream.write("\n".join(["<trkseg>", *lines, "</trkseg>", ""]).encode())
    stream.write(b"</trk>\n")


def _checked(grid: ArrayLike, count: int) -> NDArray[np.int64]:
    points = np.asarray(grid)
    if points.shape != (count, 2) or points.dtype != np.int64:
        raise InvalidValue(
            f"grid must be ({count}, 2) of int64, got {points.shape} of {points.dtype}: give whole "
            "microdegrees, a row for each fix"
        )
    if not ((points >= _LEAST) & (points <= _MOST)).all():
        raise InvalidValue(
            "grid must lie on the globe, latitudes within -90..90 degrees and longitudes from -180 "
            "to less than 180, got others: check its order and unit"
        )
    return points


def _degrees(micro: int) -> str:
    """Whole microdegrees as degrees with six decimals, without floating point."""
    whole, part = divmod(abs(micro), 1_000_000)
    return f"{'-' if micro < 0 else ''}{whole}.{part:06d}"


def _number(text: str | None) -> float:
    return float(text) if text and _NUMBER.fullmatch(text := text.strip()) else float("nan")


class _Tracks(ContentHandler):
    """Collects fixes while the document passes by."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where: Final = where
        self._prefix = ""
        self._path: list[str] = []
        self._times: list[int] = []
        self._naive: list[bool] = []
        self._positions: list[tuple[float, float]] = []
        self._segments: list[int] = []
        self._tracks: list[int] = []
        self._new_track = self._new_segment = False
        self._text: list[str] | None = None
        self._counts = dict.fromkeys(Seen.__dataclass_fields__, 0)
        self._opening: dict[str, Callable[[AttributesImpl], None]] = {
            "gpx/trk": self._open_track,
            "gpx/trk/trkseg": self._open_segment,
            "gpx/trk/trkseg/trkpt": self._open_fix,
            "gpx/trk/trkseg/trkpt/time": self._open_time,
            "gpx/rte": lambda _: self._count("routes"),
            "gpx/wpt": lambda _: self._count("waypoints"),
        }
        self._closing: dict[str, Callable[[], None]] = {
            "gpx/trk/trkseg": self._close_segment,
            "gpx/trk/trkseg/trkpt/time": self._close_time,
        }

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        if not self._path:
            self._start(name)
        own = name.removeprefix(self._prefix)
        self._path.append(own)
        place = self._place()
        if place in self._opening:
            self._opening[place](attrs)
        elif own == "trkpt" and place and "extensions" not in place:
            self._count("misplaced_points")

    def endElement(self, name: str) -> None:  # noqa: N802 - of SAX
        place = self._place()
        if place in self._closing:
            self._closing[place]()
        self._path.pop()

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def recording(self) -> Recording:
        """What was collected. Raises UnreadableInput where that is nothing."""
        if not self._times:
            raise UnreadableInput(self._nothing())
        return Recording(
            np.array(self._times, dtype="datetime64[ns]"),
            np.array(self._naive),
            np.array(self._positions),
            np.array(self._segments, dtype=np.intp),
            tuple(self._tracks),
            Seen(**self._counts),
        )

    def _place(self) -> str:
        return "/".join(self._path) if len(self._path) <= _DEEPEST else ""

    def _count(self, what: str) -> None:
        self._counts[what] += 1

    def _start(self, name: str) -> None:
        prefix, colon, own = name.rpartition(":")
        if own != "gpx":
            raise UnreadableInput(
                f"input must be GPX, got XML of another kind: {self._where}; export the recording "
                "as GPX"
            )
        self._prefix = prefix + colon

    def _open_track(self, _: AttributesImpl) -> None:
        self._new_track = True

    def _open_segment(self, _: AttributesImpl) -> None:
        self._new_segment = True

    def _close_segment(self) -> None:
        if self._new_segment:
            self._count("empty_segments")

    def _open_fix(self, attrs: AttributesImpl) -> None:
        if self._new_segment:  # only now is it known that the segment, and the track, have a fix
            last = self._tracks[-1] if self._tracks else -1
            self._tracks.append(last + self._new_track)
            self._new_track = self._new_segment = False
        self._positions.append((_number(attrs.get("lat")), _number(attrs.get("lon"))))
        self._times.append(_NO_TIME)
        self._naive.append(False)
        self._segments.append(len(self._tracks) - 1)

    def _open_time(self, _: AttributesImpl) -> None:
        self._text = []

    def _close_time(self) -> None:
        moment = parse_moment("".join(self._text or ()))
        self._text = None
        if moment is Trouble.UNREADABLE:
            self._count("unreadable_times")
        elif moment is Trouble.IMPOSSIBLE:
            self._count("impossible_years")
        elif self._times[-1] == _NO_TIME:  # of two times in one fix the first counts
            self._times[-1], self._naive[-1] = moment

    def _nothing(self) -> str:
        found = ", ".join(
            f"{what.replace('_', ' ')}: {count}" for what, count in self._counts.items() if count
        )
        return (
            f"input must hold a recorded track, got {found or 'none'}: {self._where}; export the "
            "recorded activity, not a plan or a list of places"
        )


_NO_TIME: Final = int(np.datetime64("NaT", "ns").astype(np.int64))
