"""GeoJSON (RFC 7946): fixes in, times and positions out.

The format has no place for times, so several habits are read: lines whose properties give a time
for each position (coordTimes, coordinateProperties.times, times, ...), points with a time among
their properties, and lines whose positions have a Unix time in fourth place. Lines without times
are plans; they, points without times and areas are counted. `formats.jsons` tells GeoJSON
from other JSON, and reads the text.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.traces.activities import SPORTS
from trailveil.traces.fields import FIELDS, NAME
from trailveil.traces.formats.collect import MOST_POINTS, number
from trailveil.traces.formats.columns import Columns, FieldColumn, columns_beside, field_columns
from trailveil.traces.formats.grid import degrees, rows_of
from trailveil.traces.formats.json_text import is_list, objects
from trailveil.traces.formats.moments import format_moments
from trailveil.traces.formats.tabular import RowCollector
from trailveil.traces.trace import Recording, Trace

_TIMES: Final = ("coordTimes", "times", "timestamps", "datetimes", "time", "timestamp")
_TAKEN: Final = {*_TIMES, "coordinateProperties", "track", "segment"}
_GEOMETRIES: Final = {
    *("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"),
    "GeometryCollection",
}
_WGS84: Final = ("CRS84", "EPSG:4326", "EPSG::4326")
_MOST_ROLES = 1000
_NO_NAMES: Final = columns_beside([])


def take(
    root: Any, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a tree that fits, in file order; `where` names the file in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where it is not in degrees (WGS84), or has no timed position.
    """
    reader = _Reader(where, field_names, most)
    for feature in _features(root, where):
        reader.feature(feature)
    return reader.recording()


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as GeoJSON.

    A segment is a LineString with coordTimes, or a Point with a time where it has one fix alone;
    where there is more than one, each says its track and segment. Of the fields of the trace
    elevation is the third coordinate, others are lists beside the times, with null for none. Raises
    InvalidValue for a grid that does not fit.
    """
    rows = rows_of(trace, grid)
    decimals = rows.decimals
    fields = dict(rows.fields)
    heights = fields.pop("elevation", [""] * len(rows.times))
    several = len(rows.starts) > 2
    stream.write(b'{"type":"FeatureCollection","features":[')
    for index, (start, end) in enumerate(
        zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True)
    ):
        places = [
            f"[{degrees(lon, decimals)},{degrees(lat, decimals)}{high and ','}{high}]"
            for (lat, lon), high in zip(
                rows.points[start:end].tolist(), heights[start:end], strict=True
            )
        ]
        times = [f'"{time}"' for time in format_moments(rows.times[start:end])]
        owner = f'"track":{rows.tracks[start]},"segment":{index},' if several else ""
        if rows.names and (name := rows.names[rows.tracks[start]]):
            owner += f'"name":{json.dumps(name)},'
        if rows.types and (stated := rows.types[rows.tracks[start]]):
            owner += f'"activity":"{SPORTS[stated]}",'
        if len(places) > 1:
            kind, shape = "LineString", f"[{','.join(places)}]"
            stated = f'"coordTimes":[{",".join(times)}]'
        else:
            kind, shape, stated = "Point", places[0], f'"time":{times[0]}'
        stated += "".join(
            _beside(name, texts[start:end], whole=len(places) > 1) for name, texts in fields.items()
        )
        stream.write(
            f'{"," if index else ""}\n{{"type":"Feature","properties":{{{owner}{stated}}},'
            f'"geometry":{{"type":"{kind}","coordinates":{shape}}}}}'.encode()
        )
    stream.write(b"\n]}\n")


def _beside(name: str, texts: list[str], *, whole: bool) -> str:
    """A field of the fixes of a segment, as a list or, of one fix alone, as a number."""
    cells = [text or "null" for text in texts]
    return f',"{FIELDS[name].column}":' + (f"[{','.join(cells)}]" if whole else cells[0])


def fits(root: Any) -> bool:
    """Whether a tree is GeoJSON in which nothing moves, or features under "locations"."""
    if not isinstance(root, dict) or "temporalGeometry" in root:
        return False
    features = objects(root.get("features"))
    if any("temporalGeometry" in feature for feature in features):
        return False
    listed = is_list(root.get("features"))
    located = any("geometry" in location for location in objects(root.get("locations")))
    return listed or located or str(root.get("type")) in {*_GEOMETRIES, "Feature"}


def _features(root: Any, where: str) -> Iterator[Mapping[str, Any]]:
    """The features of a text: of a collection, of a list under "locations", itself, a geometry."""
    if isinstance(root, dict):
        check_reference(root.get("crs"), where)
        inner = root.get("features", root.get("locations"))
        if is_list(inner):
            yield from objects(inner)
            return
        if str(root.get("type")) in _GEOMETRIES:
            yield {"type": "Feature", "geometry": root}
            return
        if root.get("type") == "Feature":
            yield root
            return
    raise UnreadableInput(
        f"input must be GeoJSON, got JSON of another kind: {where}; export the recording as GPX or "
        "GeoJSON"
    )


def check_reference(reference: Any, where: str) -> None:
    """Old GeoJSON could state a reference system; RFC 7946 knows degrees (WGS84) alone.

    Raises UnreadableInput for another.
    """
    if reference is None:
        return
    name = json.dumps(reference).upper()
    if not any(known in name for known in _WGS84):
        raise UnreadableInput(
            f"positions must be degrees (WGS84), got another reference system: {where}; convert "
            "them first"
        )


class _Reader:
    """Collects the fixes of features."""

    def __init__(self, where: str, field_names: Sequence[str], most: int) -> None:
        self._where: Final = where
        self._field_names: Final = field_names
        self._rows = RowCollector(_NO_NAMES, where, field_names, most)
        self._lines = 0
        self._others: set[str] = set()
        self._fields: dict[tuple[str, ...], tuple[FieldColumn, ...]] = {}
        self._roles: dict[tuple[str, ...], Columns] = {}
        self._counts = {"routes": 0, "waypoints": 0}
        self._shapes: dict[str, Callable[[Any, Mapping[str, Any]], None]] = {
            "Point": self._point,
            "LineString": self._line,
            "MultiPoint": self._line,
            "MultiLineString": self._several,
        }

    def feature(self, feature: Mapping[str, Any]) -> None:
        """Take what a feature has of fixes; count what it has else."""
        stated = feature.get("properties")
        properties = stated if isinstance(stated, dict) else {}
        geometry = feature.get("geometry")
        if not isinstance(geometry, dict):
            self._rows.without_position()
            return
        take = self._shapes.get(str(geometry.get("type")))
        if take is None:
            self._rows.other_records += 1
            return
        take(geometry.get("coordinates"), properties)

    def recording(self) -> Recording:
        """What was collected. Raises UnreadableInput where that is nothing."""
        others = self._others - ({NAME} & {*self._field_names})
        return self._rows.recording(other_fields=len(others), **self._counts)

    def _point(self, place: Any, properties: Mapping[str, Any]) -> None:
        names, roles = tuple(properties), self._roles_of(properties)
        if roles.time is None:
            self._counts["waypoints"] += 1
            return
        values = list(properties.values())
        fields = self._fields_of(names)
        used = {roles.time, roles.date, roles.track, roles.segment, roles.person}
        used |= {field.index for field in fields}
        self._others.update(name for index, name in enumerate(names) if index not in used)
        self._fix(place, [(field, values[field.index]) for field in fields])
        self._rows.stamps.per_second = roles.per_second or self._rows.stamps.per_second
        date = "" if roles.date is None else values[roles.date]
        self._stamp(values[roles.time], date if isinstance(date, str) else "")
        track, segment, person = (
            None if index is None else _key(values[index])
            for index in (roles.track, roles.segment, roles.person)
        )
        self._rows.keys(track, segment, person)
        self._rows.people.row(names, values)
        self._call(properties)

    def _several(self, lines: Any, properties: Mapping[str, Any]) -> None:
        """Lines of one track: the times are in a list for each, or all in one."""
        if not isinstance(lines, list):
            self._rows.other_records += 1
            return
        times = _times(properties)
        flat = bool(times) and not isinstance(times[0], list)
        done = 0
        for index, line in enumerate(lines):
            count = len(line) if isinstance(line, list) else 0
            line_times = times[done : done + count] if flat else times[index : index + 1]
            done += count
            inner = (
                line_times
                if flat
                else line_times[0]
                if line_times and isinstance(line_times[0], list)
                else []
            )
            self._line(line, properties, inner, track=("several", self._lines - index))

    def _line(
        self,
        places: Any,
        properties: Mapping[str, Any],
        times: Sequence[Any] | None = None,
        *,
        track: tuple[str, int] | None = None,
    ) -> None:
        line = self._lines
        self._lines += 1
        if not isinstance(places, list):
            self._rows.other_records += 1
            return
        stamps = _times(properties) if times is None else times
        if not stamps:
            stamps = [place[3] for place in places if isinstance(place, list) and len(place) > 3]
        if len(stamps) != len(places):
            self._counts["routes"] += 1
            return
        lists = self._lists(properties, len(places))
        listed = {name for name, _, _ in lists}
        self._others.update(name for name in properties if name not in _TAKEN | listed)
        named = properties.get("track"), properties.get("segment")
        keys = tuple(_key(value) for value in named)
        who = self._roles_of(properties).person
        person = None if who is None else _key(list(properties.values())[who])
        said = {key: value for key, value in properties.items() if key != NAME}  # of the track
        for index, (place, stamp) in enumerate(zip(places, stamps, strict=True)):
            self._rows.people.row(tuple(said), [*said.values()])
            self._fix(place, [(field, values[index]) for _, field, values in lists])
            self._stamp(stamp)
            self._rows.keys(keys[0] or track or ("line", line), keys[1] or ("line", line), person)
        if places:
            self._call(properties)

    def _call(self, properties: Mapping[str, Any]) -> None:
        """The name of the track of the latest fix, where it is wanted."""
        if NAME in self._field_names and isinstance(name := properties.get(NAME), str):
            self._rows.name(name)

    def _fix(self, place: Any, fields: Sequence[tuple[FieldColumn, Any]]) -> None:
        """A position, and what is stated of its fields; the third coordinate is a height."""
        self._rows.position(*_position(place))
        self._rows.values.begin()
        if "elevation" in self._field_names and isinstance(place, list) and len(place) > 2:
            self._rows.values.put("elevation", _number(place[2]))
        for field, value in fields:
            self._rows.values.put(field.field, field.value(value))

    def _lists(
        self, properties: Mapping[str, Any], count: int
    ) -> list[tuple[str, FieldColumn, list[Any]]]:
        """Lists of a value for each position, of fields that are wanted, beside the times."""
        holder = properties.get("coordinateProperties")
        inner = holder if isinstance(holder, dict) else {}
        stated = {
            name: values
            for name, values in ({**inner, **properties} if self._field_names else {}).items()
            if isinstance(values, list) and len(values) == count
        }
        names = list(stated)
        singular = [name.removesuffix("s") for name in names]  # "powers", of a line
        columns = {
            field_column.field: field_column
            for field_column in field_columns(singular, self._field_names)
        }
        columns |= {
            field_column.field: field_column
            for field_column in field_columns(names, self._field_names)
        }
        return [
            (names[column.index], column, stated[names[column.index]])
            for column in columns.values()
        ]

    def _fields_of(self, names: tuple[str, ...]) -> tuple[FieldColumn, ...]:
        """The fields that are wanted among properties; most features have the same."""
        columns = self._fields.get(names)
        if columns is None:
            columns = field_columns(names, self._field_names)
            if len(self._fields) < _MOST_ROLES:
                self._fields[names] = columns
        return columns

    def _roles_of(self, properties: Mapping[str, Any]) -> Columns:
        """What the properties are, by their names; most features have the same."""
        names = tuple(properties)
        roles = self._roles.get(names)
        if roles is None:
            roles = columns_beside(names)
            if len(self._roles) < _MOST_ROLES:
                self._roles[names] = roles
        return roles

    def _stamp(self, value: Any, date: str = "") -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._rows.stamps.numbers([value])
        else:
            self._rows.stamps.text(value if isinstance(value, str) else "", date)


def _times(properties: Mapping[str, Any]) -> list[Any]:
    """The list of times among properties, empty where there is none."""
    holder = properties.get("coordinateProperties")
    for values in (properties, holder if isinstance(holder, dict) else {}):
        for name in _TIMES:
            if isinstance(times := values.get(name), list):
                return times
    return []


def _position(place: Any) -> tuple[float, float]:
    """Latitude and longitude of a position, NaN where it is none; numbers as text are read."""
    if not isinstance(place, list) or len(place) < 2:
        return math.nan, math.nan
    return _number(place[1]), _number(place[0])


def _number(value: Any) -> float:
    if isinstance(value, str):
        return number(value)
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and abs(value) < 1e9 else math.nan


def _key(value: Any) -> str | None:
    """A name of a track, a segment or a person, None where nothing is said."""
    return None if value is None else json.dumps(value)
