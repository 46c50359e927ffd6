"""Google Timeline, in each of its exports: fixes in; nothing is written.

Read are Records.json of Takeout (`locations` with E7 degrees); its monthly Semantic Location
History (`timelineObjects`); and what phones export: Android's `semanticSegments` and `rawSignals`,
whose positions are text such as "46.1°, 7.6°", and the list of iOS, with "geo:46.1,7.6". A visit is
two fixes, when it began and when it ended; an activity has one at either end and those of its path
that have a time. All are of one segment; corrections (`timelineEdits`) are read as fixes, too.
Positions of several devices are several recordings, and refused.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from trailveil.traces.formats.collect import MOST_POINTS, Fixes, number
from trailveil.traces.formats.json_text import inner, is_list, objects, plain_number
from trailveil.traces.formats.moments import Moment, Trouble, parse_moment
from trailveil.traces.formats.tabular import several
from trailveil.traces.trace import NANOSECONDS, Recording

_DEGREES = re.compile(r"(?:geo:)?([^,°]{1,40})°?,([^,°;?]{1,40})°?", re.ASCII)
_MILLISECONDS = re.compile(r"-?\d{1,16}", re.ASCII)
_LATEST: Final = 9 * 10**12  # milliseconds: the year 2255
_E7: Final = (("latitudeE7", "longitudeE7"), ("latE7", "lngE7"))
_LISTS: Final = ("timelineObjects", "semanticSegments", "rawSignals", "timelineEdits")
_SEGMENT: Final = ("visit", "activity", "timelinePath", "timelineMemory")
_FIELDS: Final = (
    *(("altitude", "elevation"), ("altitudeMeters", "elevation")),
    *(("velocity", "speed"), ("speedMetersPerSecond", "speed"), ("heading", "course")),
)


def fits(root: Any) -> bool:
    """Whether a tree is one of these exports."""
    if isinstance(root, dict):
        listed = any(is_list(root.get(name)) for name in _LISTS)
        return listed or any(_E7[0][0] in entry for entry in objects(root.get("locations")))
    return any(
        "startTime" in entry and any(name in entry for name in _SEGMENT) for entry in objects(root)
    )


def take(
    root: Any, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a tree that fits, in file order; `where` names the file in messages.

    field_names: fields to read besides. Raises UnreadableInput for several devices, or where
    there is no position.
    """
    reader = _Reader(where, field_names, most)
    for entry in objects(root):
        reader.segment(entry)
    takers: Mapping[str, Callable[[dict[str, Any]], None]] = {
        "locations": reader.location,
        "timelineObjects": reader.semantic,
        "semanticSegments": reader.segment,
        "rawSignals": reader.signal,
        "timelineEdits": reader.edit,
    }
    for name, taker in takers.items():
        for entry in objects(inner(root, name)):
            taker(entry)
    return reader.fixes.recording()


class _Reader:
    """Collects fixes from the records of an export."""

    def __init__(self, where: str, field_names: Sequence[str], most: int) -> None:
        self.fixes: Final = Fixes(where, field_names, most)
        self._where: Final = where
        self._field_names: Final = field_names
        self._device: object = None

    def location(self, entry: dict[str, Any]) -> None:
        """A record of Records.json."""
        self._check(entry.get("deviceTag"))
        self._fix(entry, _stated(entry, "timestamp"), entry)

    def semantic(self, entry: dict[str, Any]) -> None:
        """An activity or a visit of the Semantic Location History."""
        pending = [
            part for name, part in entry.items() if name in {"activitySegment", "placeVisit"}
        ]
        if not pending:
            self.fixes.count("other_records")
        while pending:
            part = pending.pop()
            place = inner(part, "location")
            begin = _stated(inner(part, "duration"), "startTimestamp")
            end = _stated(inner(part, "duration"), "endTimestamp")
            ends = [(inner(part, "startLocation") or place, begin)]
            path = objects(inner(part, "simplifiedRawPath", "points"))
            ends += [(point, _stated(point, "timestamp")) for point in path]
            ends.append((inner(part, "endLocation") or place, end))
            self._several(ends)
            self._uncounted(part)
            pending.extend(objects(inner(part, "childVisits")))

    def segment(self, entry: dict[str, Any]) -> None:
        """A visit, an activity or a path of what phones export."""
        begin, end = entry.get("startTime"), entry.get("endTime")
        if not any(name in entry for name in _SEGMENT[:3]):
            self.fixes.count("other_records")
        visited = inner(entry, "visit", "topCandidate", "placeLocation")
        self._several([(visited, begin)])
        self._several([(inner(entry, "activity", "start"), begin)])
        for point in objects(entry.get("timelinePath")):
            minutes = point.get("durationMinutesOffsetFromStartTime")
            time = point.get("time") if minutes is None else _later(begin, minutes)
            self._fix(point.get("point"), time, {})
        self._several([(inner(entry, "activity", "end"), end), (visited, end)])

    def signal(self, entry: dict[str, Any]) -> None:
        """A raw signal: of a position, or of something else."""
        position = entry.get("position")
        if not isinstance(position, dict):
            self.fixes.count("other_records")
            return
        self._fix(_stated(position, "LatLng", "latLng"), position.get("timestamp"), position)

    def edit(self, entry: dict[str, Any]) -> None:
        """A raw signal among corrections."""
        self._check(entry.get("deviceId"))
        position = inner(entry, "rawSignal", "signal", "position")
        if isinstance(position, dict):
            self._fix(position.get("point"), position.get("timestamp"), position)
        else:
            self.fixes.count("other_records")

    def _several(self, ends: Sequence[tuple[Any, Any]]) -> None:
        """Fixes of what states a place and a time; ends that are not stated are none."""
        for place, time in ends:
            if place is not None and time is not None:
                self._fix(place, time, {})

    def _uncounted(self, part: Any) -> None:
        """Count the places on a way that have no time."""
        for names in (("waypointPath", "waypoints"), ("transitPath", "transitStops")):
            self.fixes.count("waypoints", len(objects(inner(part, *names))))

    def _fix(self, place: Any, time: Any, stated: Mapping[str, Any]) -> None:
        position = _position(place)
        if position is None:
            self.fixes.count("without_position")
            return
        self.fixes.fix(*position)
        if time is not None:
            self.fixes.time(time if isinstance(time, Moment | Trouble) else _moment(time))
        for name, field in _FIELDS:
            if name not in stated:
                continue
            if field in self._field_names:
                self.fixes.values.put(field, plain_number(stated[name]))
            else:
                self.fixes.field(name)

    def _check(self, device: object) -> None:
        if device is not None and self._device is not None and device != self._device:
            raise several(self._where)
        self._device = self._device if device is None else device


def _stated(value: Any, *names: str) -> Any:
    """What stands under the first name that there is; a time may be in milliseconds."""
    for name in (*names, f"{names[0]}Ms"):
        if (stated := inner(value, name)) is not None:
            return stated
    return None


def _position(place: Any) -> tuple[float, float] | None:
    """Latitude and longitude in degrees, NaN where unreadable; None where nothing is stated."""
    if isinstance(place, str):
        match = _DEGREES.fullmatch(place.strip())
        return (math.nan, math.nan) if match is None else (number(match[1]), number(match[2]))
    if not isinstance(place, dict):
        return None
    for latitude, longitude in _E7:
        if latitude in place or longitude in place:
            return _e7(place.get(latitude)), _e7(place.get(longitude))
    text = _stated(place, "latLng", "LatLng")
    return _position(text) if isinstance(text, str) else None


def _e7(value: Any) -> float:
    usable = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**33
    return value / 10**7 if usable else math.nan


def _moment(time: Any) -> Moment | Trouble:
    """ISO 8601, or milliseconds since 1970 as a number or as text."""
    text = str(time) if isinstance(time, int) and not isinstance(time, bool) else time
    if not isinstance(text, str):
        return Trouble.UNREADABLE
    if not _MILLISECONDS.fullmatch(text):
        return parse_moment(text)
    if abs(int(text)) >= _LATEST:
        return Trouble.IMPOSSIBLE
    return Moment(int(text) * 10**6, naive=False)


def _later(begin: Any, minutes: Any) -> Moment | Trouble:
    """So many minutes after a time."""
    start = _moment(begin)
    count = number(minutes) if isinstance(minutes, str) else plain_number(minutes)
    if isinstance(start, Trouble) or not 0 <= count < 1e6:
        return Trouble.UNREADABLE
    return start._replace(nanoseconds=start.nanoseconds + round(count * 60) * NANOSECONDS)
