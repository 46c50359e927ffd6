"""TCX (Garmin Training Center): fixes of activities in; nothing is written.

Read are Trackpoint elements of Activities: Time, and Position with LatitudeDegrees and
LongitudeDegrees. Each Track is a segment, each Activity a track. A Trackpoint without a Position is
a record of something else (a heart rate, a pause) and no fix. Courses are plans, and counted. What
is asked for besides is taken from the parts of a Trackpoint that Garmin's schemas name. It is read
from the same guarded parser as GPX, for the same reasons; tcxreader builds a whole tree, and gives
up a file for one bad number.
"""

from collections.abc import Sequence
from typing import Final
from xml.sax import ContentHandler
from xml.sax.xmlreader import AttributesImpl

from trailveil.errors import UnreadableInput
from trailveil.formats.collect import MOST_POINTS, Fixes, number
from trailveil.formats.guarded import check_depth, parse
from trailveil.formats.moments import parse_moment
from trailveil.trace import Recording

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
_DEEPEST = len(_POINT) + 3


def read(data: bytes, where: str, wanted: Sequence[str] = (), most: int = MOST_POINTS) -> Recording:
    """The fixes of all activities of a TCX document, in file order; `where` names it in messages.

    wanted: fields to read besides.

    Raises UnreadableInput where it is no TCX, not well-formed, or holds no fix of an activity.
    """
    handler = _Activities(where, wanted, most)
    parse(data, handler, where)
    return handler.fixes.recording()


class _Activities(ContentHandler):
    """Collects fixes while the document passes by."""

    def __init__(self, where: str, wanted: Sequence[str], most: int) -> None:
        super().__init__()
        self.fixes: Final = Fixes(where, wanted, most)
        self._fields: Final = {at: name for at, name in _FIELDS.items() if name in wanted}
        self._outer: Final = {"Position", *(place.split("/")[0] for place in self._fields)}
        self._where: Final = where
        self._path: list[str] = []
        self._point: dict[str, str] | None = None
        self._text: list[str] | None = None

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        check_depth(len(self._path), self._where)
        own = name.rpartition(":")[2]
        if not self._path and own != _ROOT:
            raise UnreadableInput(
                f"input must be TCX, got XML of another kind: {self._where}; export the recording "
                "as GPX"
            )
        self._path.append(own)
        depth = len(self._path)
        if depth > _DEEPEST:
            return
        if self._point is not None:
            self._open_part(own, depth)
        elif self._path == _POINT:
            self._point = {}
        elif self._path == _POINT[:depth]:
            self._open_outer(own, attrs)
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

    def _open_outer(self, own: str, attrs: AttributesImpl) -> None:
        if own == "Activity":
            self.fixes.begin_track()
            self.fixes.activity(attrs.get("Sport") or "")
        elif own == "Track":
            self.fixes.begin_segment()

    def _open_part(self, own: str, depth: int) -> None:
        """A part of a fix: its text is wanted, or its name is counted."""
        place = "/".join(self._path[len(_POINT) :])
        if place in _READ or place in self._fields:
            self._text = []
        elif self._is_further(own, depth):
            self.fixes.field(own)

    def _is_further(self, own: str, depth: int) -> bool:
        """Whether a part is a field that is not taken; in extensions once some are."""
        inner = depth == _DEEPEST and "Extensions" in self._outer
        return inner or (depth == len(_POINT) + 1 and own not in self._outer)

    def _close_point(self, parts: dict[str, str]) -> None:
        if _LATITUDE not in parts and _LONGITUDE not in parts:
            self.fixes.count("without_position")
            return
        self.fixes.fix(number(parts.get(_LATITUDE)), number(parts.get(_LONGITUDE)))
        if "Time" in parts:
            self.fixes.time(parse_moment(parts["Time"]))
        for place, name in self._fields.items():
            self.fixes.values.put(name, number(parts.get(place)))
