"""TCX (Garmin Training Center): fixes of activities in; times and positions out.

Read are Trackpoint elements of Activities: Time, and Position with LatitudeDegrees and
LongitudeDegrees. Each Activity is a track, each Track a segment, but for the first of a Lap: a lap
is no pause. A Trackpoint without a Position is a record of something else (a heart rate, a pause)
and no fix. Courses are plans, and counted. What is asked for besides is taken from the parts of a
Trackpoint that Garmin's schemas name. It is read from the same guarded parser as GPX, for the same
reasons; tcxreader builds a whole tree, and gives up a file for one bad number.

Written is an Activity with one Lap for each track, and in it a Track for each segment. What the
schema asks a Lap for besides is computed from what is released (`totals`), or nothing.
"""

from collections.abc import Sequence
from typing import BinaryIO, Final
from xml.sax import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS, Fixes, check_depth, number, parse
from trailveil.traces.formats.grid import WrittenRows, degrees, rows_of, way_lengths
from trailveil.traces.formats.moments import format_moments, parse_moment
from trailveil.traces.trace import NANOSECONDS, Recording, Trace

_ROOT = "TrainingCenterDatabase"
_POINT = [_ROOT, "Activities", "Activity", "Lap", "Track", "Trackpoint"]
_LATITUDE, _LONGITUDE = "Position/LatitudeDegrees", "Position/LongitudeDegrees"
_READ = ("Time", _LATITUDE, _LONGITUDE)
_FIELDS: Final = {
    "AltitudeMeters": "elevation",
    "HeartRateBpm/Value": "heart_rate",
    "Cadence": "cadence",
    "Extensions/TPX/Speed": "speed",
    "Extensions/TPX/Watts": "power",
    "Extensions/TPX/RunCadence": "cadence",
}
# What an activity is called in it; others have no word.
_SPORTS: Final = {"run": "Running", "ride": "Biking"}
_DEEPEST = len(_POINT) + 3
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<TrainingCenterDatabase '
    'xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2">\n<Activities>\n'
)
_TAIL = "</Activities>\n</TrainingCenterDatabase>\n"
_EXTENSION = "http://www.garmin.com/xmlschemas/ActivityExtension/v2"


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of all activities of a TCX document, in file order; `where` names it in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where it is no TCX, not well-formed, or holds no fix of an activity.
    """
    handler = _Activities(where, field_names, most)
    parse(data, handler, where)
    return handler.fixes.recording()


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as TCX.

    Segments that have no fix are left out. Fields of the trace go with it, but for a temperature
    and a course, which have no place. Raises InvalidValue for a grid that does not fit.
    """
    rows = rows_of(trace, grid)
    stream.write(_HEAD.encode())
    for pieces, (seconds, metres) in zip(rows.pieces(), totals(rows), strict=True):
        start = pieces[0][0]
        begins = format_moments(rows.times[start : start + 1])[0]
        stated = rows.types[rows.tracks[start]] if rows.types else ""
        lines = [
            f'<Activity Sport="{_SPORTS.get(stated, "Other")}">',
            f"<Id>{begins}</Id>",
            f'<Lap StartTime="{begins}"><TotalTimeSeconds>{seconds}</TotalTimeSeconds>'
            f"<DistanceMeters>{metres}</DistanceMeters><Calories>0</Calories>"
            "<Intensity>Active</Intensity><TriggerMethod>Manual</TriggerMethod>",
        ]
        for piece in pieces:
            lines += ["<Track>", *_points(rows, *piece), "</Track>"]
        stream.write("\n".join([*lines, "</Lap>\n</Activity>"]).encode())
    stream.write(_TAIL.encode())


def totals(rows: WrittenRows) -> list[tuple[str, str]]:
    """Seconds and metres of each track, as they are written: of what is released."""
    times, lengths = rows.times, way_lengths(rows)
    return [
        (_decimal(int(np.ptp(times[[row for a, b in pieces for row in (a, b - 1)]]))), f"{way:.1f}")
        for pieces, way in zip(rows.pieces(), lengths, strict=True)
    ]


def _decimal(nanoseconds: int) -> str:
    whole, part = divmod(nanoseconds, NANOSECONDS)
    return f"{whole}.{part:09d}".rstrip("0").rstrip(".")


def _points(rows: WrittenRows, start: int, end: int) -> list[str]:
    times = format_moments(rows.times[start:end])
    fields = {name: texts[start:end] for name, texts in rows.fields}
    none = [""] * (end - start)

    def tagged(name: str, opens: str, closes: str) -> list[str]:
        return [f"{opens}{text}{closes}" if text else "" for text in fields.get(name, none)]

    before = [
        tagged("elevation", "<AltitudeMeters>", "</AltitudeMeters>"),
        tagged("heart_rate", "<HeartRateBpm><Value>", "</Value></HeartRateBpm>"),
        tagged("cadence", "<Cadence>", "</Cadence>"),
    ]
    speeds = tagged("speed", "<Speed>", "</Speed>")
    extended = map("".join, zip(speeds, tagged("power", "<Watts>", "</Watts>"), strict=True))
    more = [
        f'<Extensions><TPX xmlns="{_EXTENSION}">{text}</TPX></Extensions>' if text else ""
        for text in extended
    ]
    further = map("".join, zip(*before, more, strict=True))
    return [
        f"<Trackpoint><Time>{time}</Time><Position><LatitudeDegrees>{degrees(lat)}"
        f"</LatitudeDegrees><LongitudeDegrees>{degrees(lon)}</LongitudeDegrees></Position>"
        f"{text}</Trackpoint>"
        for (lat, lon), time, text in zip(
            rows.points[start:end].tolist(), times, further, strict=True
        )
    ]


class _Activities(ContentHandler):
    """Collects fixes while the document passes by."""

    def __init__(self, where: str, field_names: Sequence[str], most: int) -> None:
        super().__init__()
        self.fixes: Final = Fixes(where, field_names, most)
        self._fields: Final = {at: name for at, name in _FIELDS.items() if name in field_names}
        self._outer: Final = {"Position", *(place.split("/")[0] for place in self._fields)}
        self._where: Final = where
        self._path: list[str] = []
        self._point: dict[str, str] | None = None
        self._text: list[str] | None = None
        self._new_lap = False

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        check_depth(len(self._path), self._where)
        tag = name.rpartition(":")[2]
        if not self._path and tag != _ROOT:
            raise UnreadableInput(
                f"input must be TCX, got XML of another kind: {self._where}; export the recording "
                "as GPX"
            )
        self._path.append(tag)
        depth = len(self._path)
        if depth > _DEEPEST:
            return
        if self._point is not None:
            self._open_part(tag, depth)
        elif self._path == _POINT:
            self._point = {}
        elif self._path == _POINT[:depth]:
            self._open_outer(tag, attrs)
        elif self._path in ([_ROOT, "Courses", "Course"], [_ROOT, "Workouts", "Workout"]):
            self.fixes.count("routes")

    def endElement(self, name: str) -> None:  # noqa: N802 - of SAX
        if self._text is not None and self._point is not None:
            place = "/".join(self._path[len(_POINT) :])
            self._point.setdefault(place, "".join(self._text))  # of two the first counts
            self._text = None
        elif self._point is not None and self._path == _POINT:
            self._close_point(self._point)
            self._point = None
        elif self._path == _POINT[:-1]:
            self.fixes.end_segment()
        self._path.pop()

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def _open_outer(self, tag: str, attrs: AttributesImpl) -> None:
        if tag == "Activity":
            self.fixes.begin_track()
            self.fixes.activity(attrs.get("Sport") or "")
            self._new_lap = False  # the first of a track begins with it
        elif tag == "Lap":
            self._new_lap = True
        elif tag == "Track":
            # Where a lap begins is no pause: it tells how long the way was until then.
            if not self._new_lap:
                self.fixes.begin_segment()
            self._new_lap = False

    def _open_part(self, tag: str, depth: int) -> None:
        """A part of a fix: its text is wanted, or its name is counted."""
        place = "/".join(self._path[len(_POINT) :])
        if place in _READ or place in self._fields:
            self._text = []
        elif self._is_further(tag, depth):
            self.fixes.field(tag)

    def _is_further(self, tag: str, depth: int) -> bool:
        """Whether a part is a field that is not taken; in extensions once some are."""
        inner = depth == _DEEPEST and "Extensions" in self._outer
        return inner or (depth == len(_POINT) + 1 and tag not in self._outer)

    def _close_point(self, parts: dict[str, str]) -> None:
        if _LATITUDE not in parts and _LONGITUDE not in parts:
            self.fixes.count("without_position")
            return
        self.fixes.fix(number(parts.get(_LATITUDE)), number(parts.get(_LONGITUDE)))
        if "Time" in parts:
            self.fixes.time(parse_moment(parts["Time"]))
        for place, name in self._fields.items():
            self.fixes.values.put(name, number(parts.get(place)))
