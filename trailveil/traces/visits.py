"""Visits to a place that somebody names: when a trace was within some metres of it.

The place is a secret. It is in no message, and printing it shows nothing.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.traces.stops import Interval, joined, unseen
from trailveil.traces.trace import Trace

if TYPE_CHECKING:
    from pyproj import Geod

FASTEST = 100.0
"""Metres per second: between two fixes that are further apart the receiver erred, or somebody flew;
the straight way between them is nobody's."""

WIDEST = 100_000.0
"""Metres: a larger circle is no place."""

_NUMBER = re.compile(r"[+-]?\d{1,6}(?:\.\d{0,20})?", re.ASCII)


@dataclass(frozen=True, slots=True, repr=False)
class Circle:
    """All within some metres of a place, which is given in degrees (WGS84).

    Raises InvalidValue for a place that is none, or metres that are not above 0 and at most WIDEST.
    """

    latitude: float
    longitude: float
    metres: float

    def __post_init__(self) -> None:
        """Check the numbers, and name none."""
        if 90 < abs(self.latitude) <= 180 and abs(self.longitude) <= 90:
            raise InvalidValue(
                "a place must have a latitude within -90..90, got one outside of it; latitude and "
                "longitude seem to be swapped: state LAT,LON,METRES"
            )
        if not abs(self.latitude) <= 90:
            raise InvalidValue("a place must have a latitude within -90..90, got another: check it")
        if not abs(self.longitude) <= 180:
            raise InvalidValue(
                "a place must have a longitude within -180..180, got another: check it"
            )
        if not 0 < self.metres <= WIDEST:
            raise InvalidValue(
                f"a place must extend over metres above 0 and up to {WIDEST:,.0f}, got others: "
                "check METRES"
            )

    @property
    def swapped(self) -> "Circle | None":
        """The same with latitude and longitude the other way round, where that is a place."""
        if abs(self.longitude) > 90:
            return None
        return replace(self, latitude=self.longitude, longitude=self.latitude)


def circle(text: str) -> Circle:
    """LAT,LON,METRES as people write it. Raises InvalidValue, without what was written."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(_NUMBER.fullmatch(part) for part in parts):
        raise InvalidValue(
            "a place must be LAT,LON,METRES such as 46.5,-33.25,150 (decimal degrees, no unit), "
            "got something else: check commas and points"
        )
    return Circle(*(float(part) for part in parts))


def visits(trace: Trace, place: Circle) -> list[Interval]:
    """When a trace was there, in order of time: begin and end in nanoseconds, both times of fixes.

    A visit is a run of fixes inside, by geodesics, with long gaps beside it (`stops.unseen`). Where
    the straight way between two fixes outside leads through the circle, no faster than FASTEST, it
    is a visit from the one to the other. Visits less than ABSENCE apart are one.
    """
    if not len(trace):
        return []
    latitudes, longitudes = trace.positions.T
    count = len(trace)
    away = distances(
        latitudes, longitudes, np.full(count, place.latitude), np.full(count, place.longitude)
    )
    inside = away <= place.metres
    edges = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
    begins, ends = unseen(trace.times, edges[::2], edges[1::2] - 1)
    seen = list(zip(begins.tolist(), ends.tolist(), strict=True))
    passed = _passing(trace, away, place.metres)
    return joined(seen + [(int(trace.times[i]), int(trace.times[i + 1])) for i in passed])


def between_places(circle: Circle, other: Circle) -> float:
    """Metres between the middles of two places."""
    degrees = (circle.latitude, circle.longitude, other.latitude, other.longitude)
    return float(distances(*(np.array([value]) for value in degrees))[0])


def _passing(trace: Trace, away: NDArray[np.float64], metres: float) -> list[int]:
    """The fixes outside from which a straight way to the next, outside too, leads through."""
    reach = FASTEST * np.diff(trace.seconds)
    outside, near = away > metres, away - metres
    may = outside[:-1] & outside[1:] & (near[:-1] <= reach) & (near[1:] <= reach)
    i = np.flatnonzero(may)
    length = distances(*trace.positions[i].T, *trace.positions[i + 1].T)
    begin_away, other = away[i], away[i + 1]
    # Where along the way its nearest point to the place is: of a triangle with these three sides.
    # That the globe is round makes the height wrong by 0.1 % at 500 km.
    along = (begin_away**2 + length**2 - other**2) / (2 * np.where(length > 0, length, np.inf))
    height = np.sqrt(np.maximum(begin_away**2 - along**2, 0.0))
    through = (along > 0) & (along < length) & (height <= 1.001 * metres) & (length <= reach[i])
    return [int(index) for index in i[through]]


def distances(*degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Metres between places: latitudes, longitudes, and those of the others; all (n,)."""
    latitude, longitude, other_latitude, other_longitude = degrees
    return np.asarray(_globe().inv(longitude, latitude, other_longitude, other_latitude)[2])


@lru_cache(maxsize=1)
def _globe() -> "Geod":
    from pyproj import Geod

    return Geod(ellps="WGS84")
