"""Which column of a table is what, by its name: latitude, longitude, time, and how they are stated.

Names are cut into words (at capitals, too), in lower case and without accents: "latitudeE7",
"Latitude (deg)", "location-lat" and "Breitengrad" are all latitudes. Words such as "e7", "ms" or
"utc" tell the unit. What is not named is not guessed: x and y could be anything.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.traces.fields import FIELDS
from trailveil.traces.formats.collect import number

LATITUDES: Final = {"lat", "latitude", "latitud", "latitudine", "breite", "breitengrad"}
LONGITUDES: Final = {
    *("lon", "long", "lng", "longitude", "longitud", "longitudine"),
    *("lange", "laenge", "langengrad", "laengengrad"),
}
# In order of preference, where a table has several.
TIMES: Final = (
    *("trackedat", "fixtime", "recordedat", "timestamp", "datetime", "dateandtime", "ts"),
    *("time", "gpstime", "devicetime", "eventtime", "trackpointtime", "epoch", "epochtime"),
    *("unix", "unixtime", "unixtimestamp", "zeitstempel", "zeitpunkt", "zeit", "horodatage"),
    *("fechahora", "datumzeit", "datumuhrzeit", "dateheure", "t", "utc", "gmt"),
)
_ENDS: Final = {"timestamp", "ts", "datetime"}  # of names such as fix_timestamp
_SPEAK: Final = _ENDS | {"time", "times", "at", "date", "when", "clock"}
DATES: Final = ("date", "datum", "fecha", "utcd")
CLOCKS: Final = ("time", "uhrzeit", "clock", "hora", "heure", "timeofday", "utct", "zeit")
SEGMENTS: Final = ("segment", "segmentid", "trkseg")
TRACKS: Final = ("track", "trackid", "trip", "tripid", "trajectory", "trajectoryid", "trajid")
PEOPLE: Final = (
    *("userid", "user", "deviceid", "device", "objectid", "individualid", "personid", "person"),
    *("individuallocalidentifier", "vehicleid", "vehicle", "animalid", "mmsi", "imei", "trackerid"),
)

_PER_DEGREE: Final = {
    "e7": 1e7,
    **dict.fromkeys(("e6", "micro", "microdegrees"), 1e6),
    **dict.fromkeys(("rad", "radians"), math.radians(1)),
    "semicircles": 2**31 / 180,
}
_PLAIN: Final = {"deg", "degree", "degrees", "dd", "decimal", "wgs", "84", "n", "s", "e", "w"}
_BEFORE: Final = {"gps", "location", "position", "geo", "point", "geographische", "start"}
_PER_SECOND: Final = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), 10**3),
    **dict.fromkeys(("us", "micros", "microsecond", "microseconds"), 10**6),
    **dict.fromkeys(("ns", "nanos", "nanosecond", "nanoseconds"), 10**9),
}
_UTC: Final = {"utc", "gmt", "z"}
_WORDS = re.compile(r"[eE][67](?![a-zA-Z0-9])|[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*|\d+")
_LONGEST_NAME, _NAMED = 100, 8
_PLAIN_NAME = re.compile(r"[^\W\d_]{1,20}(?:[ _-]?[^\W\d_]{1,20}){0,3}_?\d?")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is what, by its index; None where there is none.

    per_degree: what one degree is in the columns of latitude and longitude.
    date: a column of dates, where `time` holds the clock alone.
    per_second: what one second is in a column of numbers, None where its name does not say.
    utc: whether the name of the time says that it is UTC.
    others: how many further columns there are.
    """

    latitude: int
    longitude: int
    per_degree: tuple[float, float]
    time: int | None
    date: int | None
    per_second: int | None
    utc: bool
    segment: int | None
    track: int | None
    person: int | None
    others: int


def columns_of(names: Sequence[object]) -> Columns | None:
    """The roles of columns of these names, None without a latitude and a longitude."""
    return _columns_of(_hashable(names))


def columns_beside(names: Sequence[object]) -> Columns:
    """The roles of columns where positions come from elsewhere: their index is -1 here."""
    return _columns_beside(_hashable(names))


def _hashable(names: Sequence[object]) -> tuple[str | None, ...]:
    """What is no text, or too long, names nothing."""
    return tuple(
        name if isinstance(name, str) and len(name) <= _LONGEST_NAME else None for name in names
    )


@lru_cache(maxsize=64)  # the files of a batch have the same columns
def _columns_of(names: tuple[str | None, ...]) -> Columns | None:
    cut = [words_of(name) for name in names]
    latitude, longitude = _position(cut, LATITUDES), _position(cut, LONGITUDES)
    if latitude is None or longitude is None:
        return None
    return _with_rest(cut, latitude, longitude)


@lru_cache(maxsize=64)
def _columns_beside(names: tuple[str | None, ...]) -> Columns:
    return _with_rest([words_of(name) for name in names], (-1, 1.0), (-1, 1.0))


def _with_rest(
    cut: list[list[str]], latitude: tuple[int, float], longitude: tuple[int, float]
) -> Columns:
    time, unit, utc = _time(cut)
    date, clock = _first(cut, DATES, drop=_UTC), _first(cut, CLOCKS, drop=_UTC)
    if date is not None and clock is not None and time in (clock, None):
        time, unit, utc = clock, None, bool(_UTC & {*cut[clock], *cut[date]})
    elif time is None and (ends := _time_by_end(cut))[0] is not None:
        time, unit, utc = ends
    elif time is None:
        time, date = date, None
    else:
        date = None
    optional = {
        "time": time,
        "segment": _first(cut, SEGMENTS),
        "track": _first(cut, TRACKS),
        "person": _first(cut, PEOPLE),
    }
    taken = [latitude[0], longitude[0], date, *optional.values()]
    used = {index for index in taken if index is not None and index >= 0}
    return Columns(
        latitude=latitude[0],
        longitude=longitude[0],
        per_degree=(latitude[1], longitude[1]),
        date=date,
        per_second=unit,
        utc=utc,
        others=len(cut) - len(used),
        **optional,
    )


def times_in(names: Sequence[object]) -> list[str]:
    """The columns whose names speak of times, all of them."""
    return [name for name in names if isinstance(name, str) and _SPEAK & {*words_of(name)}]


def no_time(names: Sequence[object], where: str) -> UnreadableInput:
    """The refusal of a table none of whose columns, or no one of them, is surely of times."""
    known = times_in(names)
    got = "several that may be" if len(known) > 1 else "one that may be" if known else "none"
    listed = f" ({', '.join(shown(name) for name in known[:_NAMED])})" if known else ""
    return UnreadableInput(
        f"input must have one column of times, got {got}{listed}: {where}; name the one that "
        "holds the times 'time'"
    )


def shown(name: str) -> str:
    """A column's name as it may stand in a message: a plain one, since others may be a value."""
    return f"'{name}'" if _PLAIN_NAME.fullmatch(name) else "NAME"


def tracks_in(names: Sequence[str]) -> list[str]:
    """The columns that name tracks, trips or trajectories, all of them."""
    return [name for name in names if "".join(words_of(name)) in TRACKS]


def people_in(names: Sequence[str]) -> list[str]:
    """The columns that name people or devices, all of them."""
    return [name for name in names if "".join(words_of(name)) in PEOPLE]


def words_of(name: object) -> list[str]:
    """The words of a name: "latitudeE7" and "LATITUDE (e7)" are both latitude, e7."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return []
    plain = unicodedata.normalize("NFKD", name)
    text = "".join(c for c in plain if not unicodedata.combining(c))
    words = [word.lower() for word in _WORDS.findall(text)]
    if len(words) > 1 and words[0].isdigit():  # "3:Temperature", where columns are numbered
        words = words[1:]
    if words[-1:] in (["6"], ["7"]) and words[0][:-1] in LATITUDES | LONGITUDES:  # "latitudee7"
        words = [words[0][:-1], f"e{words[-1]}"]
    return words


def _position(cut: list[list[str]], names: set[str]) -> tuple[int, float] | None:
    """The first column of these names, and what one degree is in it."""
    for index, words in enumerate(cut):
        parts = words[1:] if len(words) > 1 and words[0] in _BEFORE else words
        if parts and parts[0] in names:
            units = parts[1:]
            if all(word in _PER_DEGREE or word in _PLAIN for word in units):
                return index, next((_PER_DEGREE[w] for w in units if w in _PER_DEGREE), 1.0)
    return None


def _time(cut: list[list[str]]) -> tuple[int | None, int | None, bool]:
    """The column of times that is preferred, its unit, and whether it says that it is UTC."""
    best: tuple[int, int, int | None, bool] | None = None
    for index, words in enumerate(cut):
        units = [_PER_SECOND[word] for word in words[1:] if word in _PER_SECOND]
        key = "".join(w for i, w in enumerate(words) if not (i and w in _PER_SECOND))
        utc = bool(_UTC & {*words})
        bare = "".join(w for w in words if w not in _UTC and w not in _PER_SECOND)
        rank = min((TIMES.index(k) for k in (key, bare) if k in TIMES), default=None)
        if rank is not None and (best is None or rank < best[0]):
            best = (rank, index, units[0] if units else None, utc)
    return (None, None, False) if best is None else best[1:]


def _time_by_end(cut: list[list[str]]) -> tuple[int | None, int | None, bool]:
    """The one column whose name ends like one of times, such as fix_timestamp."""
    columns = []
    for index, words in enumerate(cut):
        bare = [word for word in words if word not in _UTC and word not in _PER_SECOND]
        if bare and bare[-1] in _ENDS:
            units = [_PER_SECOND[word] for word in words[1:] if word in _PER_SECOND]
            columns.append((index, units[0] if units else None, bool(_UTC & {*words})))
    return columns[0] if len(columns) == 1 else (None, None, False)


def _first(cut: list[list[str]], names: Iterable[str], drop: set[str] | None = None) -> int | None:
    """The first column whose words, but for some, make one of these names; by order of names."""
    keys = ["".join(word for word in words if not drop or word not in drop) for words in cut]
    whole = ["".join(words) for words in cut]
    for name in names:
        for index in range(len(cut)):
            if name in (keys[index], whole[index]):
                return index
    return None


# Which column or property is which field that may be kept, and in what unit, by its name.
#
# "Altitude (ft)", "gpsElevation", "speed_km_h" and "Herzfrequenz" are known. A name without a unit
# means the one that is usual, but for a speed, which is written in m/s as often as in km/h: without
# its unit it is not guessed.

_NAMES: Final = {
    **dict.fromkeys(("elevation", "ele", "altitude", "alt", "hohe", "hoehe"), "elevation"),
    **dict.fromkeys(("speed", "velocity", "geschwindigkeit", "vitesse"), "speed"),
    **dict.fromkeys(("course", "heading", "bearing", "kurs"), "course"),
    **dict.fromkeys(("heartrate", "hr", "heart", "pulse", "herzfrequenz", "puls"), "heart_rate"),
    **dict.fromkeys(("cadence", "cad", "trittfrequenz"), "cadence"),
    **dict.fromkeys(("power", "leistung"), "power"),
    **dict.fromkeys(("temperature", "temp", "atemp", "temperatur"), "temperature"),
}
_BEFORE_FIELDS: Final = {"gps", "location", "position", "enhanced"}
_DEGREES: Final = dict.fromkeys(("", "deg", "degree", "degrees"), (1.0, 0.0))
_PER_MINUTE: Final = dict.fromkeys(("", "bpm", "rpm", "spm", "min"), (1.0, 0.0))
_CELSIUS: Final = dict.fromkeys(("", "c", "degc", "celsius"), (1.0, 0.0))
_FAHRENHEIT: Final = dict.fromkeys(("f", "degf", "fahrenheit"), (5 / 9, -160 / 9))
# Of each field, the units that a name may state: a value of them times the first plus the second.
_UNITS: Final = {
    "elevation": {
        **dict.fromkeys(("", "m", "meter", "meters", "metres"), (1.0, 0.0)),
        **dict.fromkeys(("ft", "feet"), (0.3048, 0.0)),
    },
    "speed": {
        **dict.fromkeys(("ms", "mps", "meterspersecond", "metrespersecond"), (1.0, 0.0)),
        **dict.fromkeys(("kmh", "kph", "kmph"), (1 / 3.6, 0.0)),
        **dict.fromkeys(("kn", "kt", "knots"), (1852 / 3600, 0.0)),
        "mph": (0.44704, 0.0),
    },
    "course": _DEGREES,
    "heart_rate": _PER_MINUTE,
    "cadence": _PER_MINUTE,
    "power": dict.fromkeys(("", "w", "watt", "watts"), (1.0, 0.0)),
    "temperature": {**_CELSIUS, **_FAHRENHEIT},
}
_COMMA: Final = re.compile(r"[+-]?\d+,\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """A column of a field: its index, and what its unit is times and plus in that of the field."""

    field: str
    index: int
    scale: float
    offset: float

    def value(self, cell: Any) -> float:
        """A number, or one as text, in the unit of the field; NaN for anything else."""
        if isinstance(cell, str):
            cell = cell.strip()
            stated = number(cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell)
        elif isinstance(cell, int | float) and not isinstance(cell, bool) and abs(cell) < 1e9:
            stated = float(cell)
        else:
            return float("nan")
        return stated * self.scale + self.offset

    def values(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers (n,) in the unit of the field."""
        return numbers * self.scale + self.offset


def field_columns(names: Sequence[object], field_names: Sequence[str]) -> tuple[FieldColumn, ...]:
    """The columns of the fields that are wanted, at most one of each: the first."""
    columns: dict[str, FieldColumn] = {}
    for index, name in enumerate(names if field_names else ()):
        known = _known(words_of(name), field_names)
        if known is not None and known[0] not in columns:
            field, (scale, offset) = known
            columns[field] = FieldColumn(field, index, scale, offset)
    return tuple(columns[name] for name in FIELDS if name in columns)


def _known(words: list[str], field_names: Sequence[str]) -> tuple[str, tuple[float, float]] | None:
    """The field and the unit that words say."""
    parts = words[1:] if len(words) > 1 and words[0] in _BEFORE_FIELDS else words
    for cut in (1, 2):
        field = _NAMES.get("".join(parts[:cut]))
        unit = "".join(parts[cut:])
        if field in field_names and field is not None and unit in _UNITS[field]:
            return field, _UNITS[field][unit]
    return None
