"""What a release may hold, place by place: times, positions, numbers of segments, and no more.

The writers of `trailveil.traces.formats` write exactly this. Everything else in a released file is
beyond it, whether its value is known from the original or not: a renamed field, a rescaled one, a
comment.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

import numpy as np

from trailveil.checks.scan.binary import from_fit, from_kml, from_kmz, from_nmea, from_parquet
from trailveil.checks.scan.tokens import (
    NAME,
    VALUE,
    Emit,
    Place,
    from_json,
    from_json_lines,
    from_plt,
    from_table,
    from_text,
    from_xml,
)
from trailveil.traces.activities import SPORTS
from trailveil.traces.formats.grid import WrittenRows
from trailveil.traces.formats.moments import format_moments
from trailveil.traces.formats.table import Format
from trailveil.traces.formats.tcx import totals
from trailveil.traces.trace import Recording


class Role(Enum):
    """What a value at a place of a release is."""

    LATITUDE = "latitude"
    LONGITUDE = "longitude"
    TIME = "time"
    NUMBER_OF = "number of a track or segment"
    NOTHING = "nothing of its own"


Rule = Role | frozenset[str] | re.Pattern[str]
"""A role, the texts that may stand at a place, or what they look like."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_DEGREES: Final = re.compile(r"-?\d{1,3}(\.\d+)?(e-\d\d?)?", re.ASCII)  # 1e-06 in Parquet
_INDEX: Final = re.compile(r"\d{1,6}", re.ASCII)
_SHAPES: Final = {
    Role.TIME: _TIME,
    Role.LATITUDE: _DEGREES,
    Role.LONGITUDE: _DEGREES,
    Role.NUMBER_OF: _INDEX,
}


@dataclass(frozen=True, slots=True)
class Layout:
    """What releases of a format hold. tabular: a place begins with the number of its column.

    frame: names that may stand around a field that was kept, and hold nothing of their own.
    computed: of what was released, more rules. types: where the type of a track may stand, once it
    was kept, and its words.
    """

    rules: Mapping[Place, Rule]
    tabular: bool = False
    frame: frozenset[str] = frozenset()
    computed: Callable[[Recording], Mapping[Place, Rule]] | None = None
    types: Mapping[Place, Rule] = field(default_factory=dict)

    def of(self, released: Recording, *, typed: bool = False) -> "Layout":
        """The layout with the rules that are computed of what was released.

        typed: whether the types of tracks were kept.
        """
        computed = {} if self.computed is None else self.computed(released)
        types = self.types if typed else {}
        return replace(self, rules={**self.rules, **computed, **types}, computed=None)

    def allows(self, place: Place, text: str, part: str) -> bool:
        """Whether a release may have a token where it stands, by its looks."""
        rule = self.rule(place)
        return rule is not None and (part == NAME or (part == VALUE and fits(rule, text)))

    def rule(self, place: Place) -> Rule | None:
        """The rule for a place; None where a release has nothing there."""
        if not self.tabular:
            return self.rules.get(place)
        first = place[0] if place else ""
        return self.rules.get(place[1:] if first.startswith("column ") else place)


def fits(rule: Rule, text: str) -> bool:
    """Whether a value may stand where the rule holds, by its looks."""
    if isinstance(rule, frozenset):
        return text in rule
    if isinstance(rule, re.Pattern):
        return rule.fullmatch(text) is not None
    return rule in _SHAPES and _SHAPES[rule].fullmatch(text) is not None


def _only(*texts: str) -> frozenset[str]:
    return frozenset(texts)


def _under(place: Place, rules: Mapping[Place, Rule]) -> dict[Place, Rule]:
    return {(*place, *inner): rule for inner, rule in rules.items()}


_FIX: Final = ("gpx", "trk", "trkseg", "trkpt")
_GPX: Final[dict[Place, Rule]] = {
    **{_FIX[:depth]: Role.NOTHING for depth in (1, 2, 3, 4)},
    ("gpx", "@version"): _only("1.1"),
    ("gpx", "@creator"): _only("trailveil"),
    ("gpx", "@xmlns"): _only("http://www.topografix.com/GPX/1/1"),
    (*_FIX, "@lat"): Role.LATITUDE,
    (*_FIX, "@lon"): Role.LONGITUDE,
    (*_FIX, "time"): Role.TIME,
}
_KML_TRACK: Final = ("kml", "Document", "Placemark", "gx:MultiTrack", "gx:Track")
_KML: Final[dict[Place, Rule]] = {
    **{_KML_TRACK[:depth]: Role.NOTHING for depth in range(1, 6)},
    ("kml", "@xmlns"): _only("http://www.opengis.net/kml/2.2"),
    ("kml", "@xmlns:gx"): _only("http://www.google.com/kml/ext/2.2"),
    (*_KML_TRACK, "when"): Role.TIME,
    (*_KML_TRACK, "gx:coord"): Role.NOTHING,
    (*_KML_TRACK, "gx:coord", "[0]"): Role.LONGITUDE,
    (*_KML_TRACK, "gx:coord", "[1]"): Role.LATITUDE,
}
_KML_FRAME: Final = _only("ExtendedData", "SchemaData", "SimpleArrayData")
_GEOJSON: Final[dict[Place, Rule]] = {
    ("type",): _only("FeatureCollection"),
    ("features",): Role.NOTHING,
    **_under(
        ("features", "[]"),
        {
            ("type",): _only("Feature"),
            ("properties",): Role.NOTHING,
            ("properties", "track"): Role.NUMBER_OF,
            ("properties", "segment"): Role.NUMBER_OF,
            ("properties", "time"): Role.TIME,
            ("properties", "coordTimes"): Role.NOTHING,
            ("properties", "coordTimes", "[]"): Role.TIME,
            ("geometry",): Role.NOTHING,
            ("geometry", "type"): _only("LineString", "Point"),
            ("geometry", "coordinates"): Role.NOTHING,
            ("geometry", "coordinates", "[0]"): Role.LONGITUDE,
            ("geometry", "coordinates", "[1]"): Role.LATITUDE,
            ("geometry", "coordinates", "[]", "[0]"): Role.LONGITUDE,
            ("geometry", "coordinates", "[]", "[1]"): Role.LATITUDE,
        },
    ),
}
_SEGMENTS: Final[dict[Place, Rule]] = {
    ("time",): Role.TIME,
    ("track",): Role.NUMBER_OF,
    ("segment",): Role.NUMBER_OF,
}
_TABLE: Final[dict[Place, Rule]] = {
    **_SEGMENTS,
    ("latitude",): Role.LATITUDE,
    ("longitude",): Role.LONGITUDE,
}
_PARQUET: Final[dict[Place, Rule]] = {
    **_SEGMENTS,
    ("geometry",): Role.NOTHING,
    ("geometry", "x"): Role.LONGITUDE,
    ("geometry", "y"): Role.LATITUDE,
    ("created by",): re.compile(r"parquet-cpp-arrow version \d+(\.\d+){1,2}(-SNAPSHOT)?", re.ASCII),
    **{
        (name, "metadata", "PARQUET:field_id"): re.compile(r"-?\d{1,3}", re.ASCII)
        for name in ("time", "geometry", "track", "segment")
    },
    **_under(
        ("metadata",),
        {
            ("ARROW:schema",): Role.NOTHING,
            ("geo",): Role.NOTHING,
            ("geo", "version"): _only("1.1.0"),
            ("geo", "primary_column"): _only("geometry"),
            ("geo", "columns"): Role.NOTHING,
            ("geo", "columns", "geometry"): Role.NOTHING,
            ("geo", "columns", "geometry", "encoding"): _only("WKB"),
            ("geo", "columns", "geometry", "geometry_types"): Role.NOTHING,
            ("geo", "columns", "geometry", "geometry_types", "[]"): _only("Point"),
        },
    ),
}

_LAP: Final = ("TrainingCenterDatabase", "Activities", "Activity", "Lap")
_POINT: Final = (*_LAP, "Track", "Trackpoint")
_TCX: Final[dict[Place, Rule]] = {
    **{_POINT[:depth]: Role.NOTHING for depth in range(1, 7)},
    (*_LAP[:1], "@xmlns"): _only("http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2"),
    (*_LAP[:3], "@Sport"): _only("Other"),
    (*_LAP, "Calories"): _only("0"),
    (*_LAP, "Intensity"): _only("Active"),
    (*_LAP, "TriggerMethod"): _only("Manual"),
    (*_POINT, "Time"): Role.TIME,
    (*_POINT, "Position"): Role.NOTHING,
    (*_POINT, "Position", "LatitudeDegrees"): Role.LATITUDE,
    (*_POINT, "Position", "LongitudeDegrees"): Role.LONGITUDE,
}


def _laps(released: Recording) -> dict[Place, Rule]:
    """What TCX states of each track: when it begins, how long and how far it is, as released."""
    if np.isnat(released.times).any() or not np.isfinite(released.positions).all():
        return {}
    times, segments = released.times.astype(np.int64), released.segments
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    bounds = np.append(starts, times.size)
    tracks = np.array(released.tracks)[segments]
    rows = WrittenRows(times, released.positions, tracks, segments, bounds)
    begins = _only(*format_moments(times[[pieces[0][0] for pieces in rows.pieces()]]))
    seconds, metres = zip(*totals(rows), strict=True)
    return {
        (*_LAP[:3], "Id"): begins,
        (*_LAP, "@StartTime"): begins,
        (*_LAP, "TotalTimeSeconds"): _only(*seconds),
        (*_LAP, "DistanceMeters"): _only(*metres),
    }


LAYOUTS: Final[Mapping[str, Layout]] = {
    "GPX": Layout(
        _GPX,
        frame=_only("extensions", "TrackPointExtension", "metadata"),
        types={(*_FIX[:2], "type"): _only(*SPORTS.values())},
    ),
    "KML": Layout(_KML, frame=_KML_FRAME),
    "KMZ": Layout({**_KML, ("archive", "name"): _only("doc.kml")}, frame=_KML_FRAME),
    "TCX": Layout(
        _TCX,
        frame=_only("Extensions", "TPX", "HeartRateBpm"),
        computed=_laps,
        types={(*_LAP[:3], "@Sport"): _only("Other", "Running", "Biking")},
    ),
    "GeoJSON": Layout(
        _GEOJSON,
        frame=_only("properties", "coordinateProperties"),
        types={("features", "[]", "properties", "activity"): _only(*SPORTS.values())},
    ),
    "CSV": Layout(_TABLE, tabular=True),
    "TSV": Layout(_TABLE, tabular=True),
    "GeoParquet": Layout(_PARQUET, tabular=True),
}
"""Of formats that are written, by the names of their rows in `trailveil.traces.formats.table`.

Of a format without a layout every byte is compared with what is written of its fixes. So it is with
FIT, in which more can hide than its library shows: bytes between messages, fields of no name.
"""


KEPT_AS: Final[Mapping[str, tuple[str, ...]]] = {
    "elevation": ("ele", "elevation_m", "[2]", "AltitudeMeters", "enhanced_altitude"),
    "speed": ("speed_m_s", "enhanced_speed"),
    "course": ("course_deg",),
    "heart_rate": ("hr", "HeartRateBpm"),
    "cadence": ("cad",),
    "power": ("power_w", "Watts"),
    "temperature": ("atemp", "temperature_c"),
}
"""What fields that `protect --keep` kept are called in released files, besides their own names."""

TAKERS: Final[Mapping[str, Callable[[bytes, str, Emit], None]]] = {
    "xml": from_xml,
    "fit": from_fit,
    "kml": from_kml,
    "kmz": from_kmz,
    "nmea": from_nmea,
    "plt": from_plt,
    "json": from_json,
    "json lines": from_json_lines,
    "parquet": from_parquet,
    "table": from_table,
}
"""What takes all tokens out of a file, by the structure of its format."""


def taker_of(file_format: Format) -> Callable[[bytes, str, Emit], None]:
    """What takes all tokens out of files of a format: of an unknown structure, runs of text."""
    return TAKERS.get(file_format.structure, from_text)


NAMESPACES: Final = re.compile(
    r"http://(www\.topografix\.com/GPX/1/[01]|www\.garmin\.com/xmlschemas/\w+/v\d|"
    r"www\.w3\.org/2001/XMLSchema-instance)",
    re.ASCII,
)
"""What a namespace may be that is declared for a field that was kept."""

_SHOWN: Final = """
gpx trk trkseg trkpt time metadata wpt rte rtept name cmt desc src link text type author email
copyright year license keywords bounds number extensions ele speed course magvar geoidheight sym
fix sat hdop vdop pdop ageofdgpsdata dgpsid TrackPointExtension hr cad atemp wtemp depth power
heartrate heart_rate cadence temperature elevation altitude distance accuracy bearing heading steps
@lat @lon @version @creator @xmlns @href @minlat @minlon @maxlat @maxlon @id @domain latitude
longitude lat lon lng timestamp date track segment id device device_id user user_id owner comment
notes title description features properties geometry coordinates coordTimes coordinateProperties
times crs bbox geometries created_by geo columns x y url note activity sport notes calories
kml Document Folder Placemark MultiTrack Track when coord ExtendedData SchemaData SimpleArrayData
value archive ARROW:schema [] [0] [1] [2] [3] primary_column encoding header
"""
_PUBLIC: Final = frozenset(
    {*_SHOWN.casefold().split(), "a comment", "created by", "further places"}
)


def described(place: Place) -> str:
    """A place in words. A name that is none of formats could itself be a leak, and is not told."""
    return "/".join(_public(name) for name in place if name) or "the file"


def _public(name: str) -> str:
    if name.startswith("column ") and name[7:].isdigit():
        return name
    local = "@xmlns" if name.startswith("@xmlns:") else name.rpartition(":")[2]
    known = name if name == "ARROW:schema" else local
    return known if known.casefold() in _PUBLIC else "(another name)"
