"""KML 2.2: fixes of tracks and of places with a time in, times and positions out.

Read are gx:Track, alone or in a gx:MultiTrack: its n-th `when` is the time of its n-th `gx:coord`,
in whatever order they stand, so there must be as many, or no `when` at all. Where a document has no
such fix, a Placemark of one Point with a TimeStamp is one; with a TimeSpan it is two, of somebody
who stayed. A LineString with a TimeSpan states the times of its ends, and of what is between none.
Else Points are waypoints and LineStrings are routes: they are counted, and so are areas, models and
links, which are never followed.
"""

import math
import re
from array import array
from collections.abc import Sequence
from typing import BinaryIO, Final
from xml.sax import ContentHandler
from xml.sax.saxutils import escape
from xml.sax.xmlreader import AttributesImpl

from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.traces.fields import FIELDS, NAME
from trailveil.traces.formats.collect import (
    MOST_POINTS,
    Fixes,
    check_depth,
    number,
    parse,
    too_many,
)
from trailveil.traces.formats.columns import FieldColumn, field_columns
from trailveil.traces.formats.grid import WrittenRows, degrees, rows_of
from trailveil.traces.formats.moments import NO_TIME, Moment, Trouble, format_moments, parse_moment
from trailveil.traces.trace import Recording, Trace

_HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<kml xmlns="http://www.opengis.net/kml/2.2"'
    b' xmlns:gx="http://www.google.com/kml/ext/2.2">\n<Document>\n'
)
_LEAVES: Final = {
    *("Track/when", "Track/coord", "TimeStamp/when", "TimeSpan/begin", "TimeSpan/end"),
    *("Point/coordinates", "LineString/coordinates", "SimpleArrayData/value"),
}
_OTHERS: Final = {"Polygon", "Model", "NetworkLink", "GroundOverlay", "PhotoOverlay", "Tour"}
_TUPLE = re.compile(r"\S+")


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a KML document, in file order; `where` names it in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where it is no KML, not well-formed, has a track whose times and
    positions are not as many, or holds no timed position.
    """
    handler = _Placemarks(where, field_names, most)
    parse(data, handler, where)
    return handler.recording()


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as KML 2.2.

    A track is a Placemark with a gx:MultiTrack, a segment a gx:Track in it. Of the fields of the
    trace elevation is the third coordinate, others are arrays of ExtendedData. Raises InvalidValue
    for a grid that does not fit.
    """
    rows = rows_of(trace, grid)
    stream.write(_HEAD)
    track = -1
    for start, end in zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True):
        if rows.tracks[start] != track:
            stream.write(b"" if track < 0 else b"</gx:MultiTrack></Placemark>\n")
            track = rows.tracks[start]
            called = escape(rows.names[track]) if rows.names else ""
            name = f"<name>{called}</name>" if called else ""
            stream.write(f"<Placemark>{name}<gx:MultiTrack>\n".encode())
        stream.write("\n".join(["<gx:Track>", *_lines(rows, start, end), "</gx:Track>\n"]).encode())
    stream.write(b"" if track < 0 else b"</gx:MultiTrack></Placemark>\n")
    stream.write(b"</Document>\n</kml>\n")


def _lines(rows: WrittenRows, start: int, end: int) -> list[str]:
    fields, decimals = dict(rows.fields), rows.decimals
    heights = fields.pop("elevation", [""] * len(rows.times))[start:end]
    lines = [f"<when>{time}</when>" for time in format_moments(rows.times[start:end])]
    lines += [
        f"<gx:coord>{degrees(lon, decimals)} {degrees(lat, decimals)}"
        f"{high and ' '}{high}</gx:coord>"
        for (lat, lon), high in zip(rows.points[start:end].tolist(), heights, strict=True)
    ]
    arrays = [
        f'<gx:SimpleArrayData name="{FIELDS[name].column}">'
        + "".join(f"<gx:value>{text}</gx:value>" for text in texts[start:end])
        + "</gx:SimpleArrayData>"
        for name, texts in fields.items()
    ]
    if arrays:
        lines += ["<ExtendedData><SchemaData>", *arrays, "</SchemaData></ExtendedData>"]
    return lines


class _Held:
    """Times and positions of a track, or of places, until it is known what becomes of them."""

    def __init__(self, fixes: Fixes, where: str) -> None:
        self._fixes, self._where = fixes, where
        self.times, self.naive = array("q"), bytearray()
        self.places = array("d")  # latitude, longitude, height
        self.stated = bytearray()  # whether a position is, readable or not

    def time(self, text: str | None) -> None:
        stamp = Trouble.UNREADABLE if text is None else parse_moment(text)
        if isinstance(stamp, Moment):
            self.times.append(stamp.nanoseconds)
            self.naive.append(stamp.naive)
            return
        if text is not None:
            self._fixes.trouble(stamp)
        self.times.append(NO_TIME)
        self.naive.append(False)

    def last(self, text: str) -> None:
        """The time of the latest place, which had none."""
        self.times.pop()
        self.naive.pop()
        self.time(text)

    def place(self, parts: Sequence[str]) -> None:
        if len(self.places) >= 3 * self._fixes.most:
            raise too_many(self._where, self._fixes.most)
        lon, lat, high = (number(text) for text in (*parts, "", "", "")[:3])
        self.places.extend((lat, lon, high))
        self.stated.append(bool(parts))

    def give(self, arrays: Sequence[tuple[FieldColumn, "array[float]"]], *, high: bool) -> None:
        """All that is held become fixes of the latest segment, but for what has no position."""
        for index, (at, naive) in enumerate(zip(self.times, self.naive, strict=True)):
            latitude, longitude, height = self.places[3 * index : 3 * index + 3]
            if not self.stated[index]:
                self._fixes.count("without_position")
                continue
            self._fixes.fix(latitude, longitude)
            if at != NO_TIME:
                self._fixes.time(Moment(at, bool(naive)))
            if high:
                self._fixes.values.put("elevation", height)
            elif not math.isnan(height):
                self._fixes.field("altitude")
            for column, values in arrays:
                self._fixes.values.put(column.field, values[index])


class _Placemarks(ContentHandler):
    """Collects fixes while the document passes by."""

    def __init__(self, where: str, field_names: Sequence[str], most: int) -> None:
        super().__init__()
        self._fixes: Final = Fixes(where, field_names, most)
        self._where: Final = where
        self._field_names: Final = field_names
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._track = self._new()
        self._arrays: list[tuple[FieldColumn, array[float]]] = []
        self._open: FieldColumn | None = None
        self._marks = self._new()  # places with a time, outside tracks
        self._tracked = self._links = 0
        self._kinds = {"waypoints": 0, "routes": 0}  # what the marks are beside tracks
        self._placemark: dict[str, str] = {}

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        check_depth(len(self._path), self._where)
        tag = name.rpartition(":")[2]
        if not self._path and tag != "kml":
            raise UnreadableInput(
                f"input must be KML, got XML of another kind: {self._where}; export the recording "
                "as KML or GPX"
            )
        outer = self._path[-1] if self._path else ""
        self._path.append(tag)
        if tag == "Placemark":
            self._placemark = {}
            self._fixes.begin_track()
        elif tag == "Track":
            self._fixes.begin_segment()
            self._track, self._arrays = self._new(), []
        elif tag == "SimpleArrayData":
            self._begin_array(str(attrs.get("name", "")))
        elif tag in _OTHERS:
            self._fixes.count("other_records")
            self._links += tag == "NetworkLink"
        elif f"{outer}/{tag}" in _LEAVES or (self._place(tag) == "Placemark/name"):
            self._text = []

    def endElement(self, name: str) -> None:  # noqa: N802 - of SAX
        tag = self._path.pop()
        text, self._text = "".join(self._text or ()), None
        outer = self._path[-1] if self._path else ""
        if outer == "Track" and tag == "when":
            self._track.time(text)
        elif outer == "Track" and tag == "coord":
            self._track.place(text.split(maxsplit=3))
        elif tag == "value" and outer == "SimpleArrayData" and self._open is not None:
            self._arrays[-1][1].append(self._open.value(text))
        elif tag == "Track":
            self._end_track()
        elif tag == "Placemark":
            self._end_placemark()
        elif tag == "name" and outer == "Placemark" and NAME in self._field_names:
            self._fixes.name(text)
        elif tag in {"when", "begin", "end"} and self._path[-2:-1] == ["Placemark"]:
            self._placemark.setdefault(tag, text)
        elif tag == "coordinates":
            self._end_shape(outer, text)

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def recording(self) -> Recording:
        """What was collected. Raises UnreadableInput where that is nothing."""
        if self._tracked:
            for kind, count in self._kinds.items():
                self._fixes.count(kind, count)
        elif self._marks.times:
            self._fixes.begin_track()
            self._marks.give((), high="elevation" in self._field_names)
        if self._links and not len(self._fixes):
            raise UnreadableInput(
                "input must hold the recorded track itself, got a KML that only links to where it "
                f"is, which is not followed: {self._where}; open it in the program that made it, "
                "and save the track as KMZ or GPX"
            )
        return self._fixes.recording()

    def _new(self) -> _Held:
        return _Held(self._fixes, self._where)

    def _place(self, tag: str) -> str:
        return "/".join([*self._path[-2:-1], tag])

    def _begin_array(self, name: str) -> None:
        columns = field_columns((name,), self._field_names)
        self._open = columns[0] if columns else None
        if self._open is None:
            self._fixes.field(name)
        else:
            self._arrays.append((self._open, array("d")))

    def _end_track(self) -> None:
        held, count = self._track, len(self._track.places) // 3
        if not held.times:
            for _ in range(count):
                held.time(None)
        if len(held.times) != count:
            raise UnreadableInput(
                f"a gx:Track must have a time for each position, got {len(held.times)} times and "
                f"{count} positions: {self._where}; export the recording again, or as GPX"
            )
        whole = [(field, values) for field, values in self._arrays if len(values) == count]
        held.give(whole, high="elevation" in self._field_names)
        self._fixes.end_segment()
        self._tracked += count
        self._track, self._arrays = self._new(), []

    def _end_shape(self, kind: str, text: str) -> None:
        """A Point or a LineString: of a Placemark by itself it may be a mark with a time."""
        if kind not in {"Point", "LineString"}:
            return
        if self._path[-2:-1] == ["Placemark"]:
            self._placemark.setdefault(kind, text)
        else:
            self._fixes.count("waypoints" if kind == "Point" else "routes")

    def _end_placemark(self) -> None:
        """Hold what a Placemark says of a place and its time."""
        stated, self._placemark = self._placemark, {}
        times = [stated[name] for name in ("when", "begin", "end") if stated.get(name, "").strip()]
        if "Point" in stated:
            if not times:
                self._fixes.count("waypoints")
                return
            self._kinds["waypoints"] += 1
            for time in times if "when" not in stated else times[:1]:
                self._marks.place(stated["Point"].strip().split(",", 3))
                self._marks.time(time)
        elif "LineString" in stated:
            if len(times) != 2 or "when" in stated:
                self._fixes.count("routes")
                return
            self._kinds["routes"] += 1
            self._hold_line(stated["LineString"], *times)

    def _hold_line(self, line: str, begin: str, end: str) -> None:
        first = len(self._marks.times)
        for match in _TUPLE.finditer(line):
            self._marks.place(match[0].split(",", 3))
            self._marks.time(begin if len(self._marks.times) == first else None)
        if len(self._marks.times) > first + 1:
            self._marks.last(end)
