"""OGC Moving Features JSON: fixes of moving points in; nothing is written.

Read is MovingPoint, by itself, as the temporalGeometry of a feature or of several, in the prisms of
a MovingGeometryCollection, or in sequences. Times are ISO 8601, or milliseconds since 1970 where
they are numbers. A feature is a track, a MovingPoint or a sequence of it a segment. What moves and
is no point is counted.
"""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Final

from trailveil.traces.fields import NAME
from trailveil.traces.formats.collect import MOST_POINTS, Fixes
from trailveil.traces.formats.geojson import check_reference
from trailveil.traces.formats.json_text import Items, inner, objects, plain_number
from trailveil.traces.formats.moments import Moment, Trouble, parse_moment
from trailveil.traces.trace import Recording

_MILLISECOND: Final = 10**6  # nanoseconds
_LATEST: Final = 9 * 10**12  # milliseconds: the year 2255


def fits(root: Any) -> bool:
    """Whether a tree is Moving Features: something in it moves."""
    return isinstance(root, dict) and any(
        _is_moving(feature) for feature in chain([root], _members(root))
    )


def take(
    root: Any, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a tree that fits, in file order; `where` names the file in messages.

    field_names: fields to read besides; there is elevation, and the name. Raises
    UnreadableInput where it is not in degrees (WGS84), or has no timed position.
    """
    fixes = Fixes(where, field_names, most)
    check_reference(root.get("crs"), where)
    for feature in _members(root) or [root]:
        if not _is_moving(feature):
            fixes.count("other_records")
            continue
        fixes.begin_track()
        check_reference(feature.get("crs"), where)
        if NAME in field_names and isinstance(name := inner(feature, "properties", NAME), str):
            fixes.name(name)
        for group in objects(feature.get("temporalProperties")):
            for name in group.keys() - {"datetimes"}:
                fixes.field(name)
        for geometry in _geometries(feature.get("temporalGeometry", feature)):
            check_reference(geometry.get("crs"), where)
            _line(geometry, fixes, field_names)
    return fixes.recording()


def _is_moving(feature: dict[str, Any]) -> bool:
    return "temporalGeometry" in feature or str(feature.get("type")).startswith("Moving")


def _members(root: dict[str, Any]) -> list[dict[str, Any]] | Items:
    return objects(root.get("features"))


def _geometries(geometry: Any) -> Iterator[dict[str, Any]]:
    """A geometry, or those that it is made of."""
    if not isinstance(geometry, dict):
        return
    parts = objects(geometry.get("prisms"))
    for part in parts or [geometry]:
        rows = objects(part.get("sequences"))
        yield from ({"type": part.get("type"), **row} for row in rows or [part])


def _line(geometry: dict[str, Any], fixes: Fixes, field_names: Sequence[str]) -> None:
    """The fixes of one moving point, if it is one, and each has a time."""
    places, times = geometry.get("coordinates"), geometry.get("datetimes")
    if geometry.get("type") != "MovingPoint" or not isinstance(places, list):
        fixes.count("other_records")
        return
    if not isinstance(times, list) or len(times) != len(places):
        fixes.count("routes")
        return
    fixes.begin_segment()
    for place, time in zip(places, times, strict=True):
        known = place if isinstance(place, list) else []
        longitude, latitude, height = (plain_number(x) for x in [*known, None, None, None][:3])
        fixes.fix(latitude, longitude)
        fixes.time(_moment(time))
        if "elevation" in field_names:
            fixes.values.put("elevation", height)
        elif not math.isnan(height):
            fixes.field("altitude")
    fixes.end_segment()


def _moment(time: Any) -> Moment | Trouble:
    if isinstance(time, str):
        return parse_moment(time)
    if isinstance(time, bool) or not isinstance(time, int | float) or not abs(time) < _LATEST:
        return Trouble.UNREADABLE
    return Moment(int(Decimal(time) * _MILLISECOND), naive=False)
