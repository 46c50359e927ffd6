"""Visits to a place that somebody names: when a trace was within some metres of it.

The place is a secret. It is in no message, and printing it shows nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue
from trailveil.traces.projection import remembered
from trailveil.traces.stops import ABSENCE, Interval, joined, stays, unseen
from trailveil.traces.trace import NANOSECONDS, Trace

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


# Returns: when a recording comes back to a place that is protected at another time.
#
# A place is a point and how far around it a fix still tells it. Distances are straight ones in
# space (WGS84), so that no recording reaches too far for them; within a place that is the distance
# on the ground. Places are secrets: printing them shows nothing.

TELLS = 50.0
"""Metres: a fix this near a place tells it, on a road that passes by as well."""

LEAST, MOST = 75.0, 150.0
"""Metres around a place within which a fix is a return to it: TELLS, and what receivers scatter."""

# The scatter that nine fixes of ten keep within, over the median one, where it is Gaussian.
_NINE_OF_TEN = 1.82
# Reaches are rounded up to so many metres: few of them are few passes over a recording.
_STEP = 25.0
# Places that are sooner looked at one by one than arranged to be searched.
_FEW = 32
_AXIS, _FLATTENING = 6_378_137.0, 1 / 298.257_223_563

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Places:
    """Places that are protected. points: (k, 3) metres in space. reach: (k,) metres."""

    points: Floats
    reach: Floats

    def near(self, positions: Floats, metres: float) -> NDArray[np.bool_]:
        """Which positions (n, 2), degrees, are within metres of a place."""
        alike = Places(self.points, np.full(len(self.reach), metres))
        return alike._held(in_space(positions)) > 0

    def times(self, trace: Trace) -> list[Interval]:
        """When a trace was at any of them, in order of time: begin and end in nanoseconds.

        Both are times of fixes. Between two fixes at one place the person is taken to have stayed,
        however long that is, and to have been back from an absence below `stops.ABSENCE`.
        """
        where = in_space(trace.positions)
        held = self._held(where)
        rows = np.flatnonzero(held)
        if not rows.size:
            return []
        size = np.maximum(held[rows[1:]], held[rows[:-1]])
        near = np.linalg.norm(where[rows[1:]] - where[rows[:-1]], axis=1) <= 2 * size
        soon = np.diff(trace.times[rows]) < ABSENCE * NANOSECONDS
        leaves = np.flatnonzero(~(near & (soon | (np.diff(rows) == 1))))
        first, last = rows[np.append(0, leaves + 1)], rows[np.append(leaves, rows.size - 1)]
        return list(zip(trace.times[first].tolist(), trace.times[last].tolist(), strict=True))

    def _held(self, where: Floats) -> Floats:
        """How far the largest place extends that each point (n, 3) is in; 0 for none."""
        held = np.zeros(len(where))
        for size in np.unique(self.reach):
            points = self.points[self.reach == size]
            if len(points) <= _FEW:
                for point in points:
                    away = where - point
                    held[np.einsum("ij,ij->i", away, away) < size**2] = size
            else:
                from scipy.spatial import cKDTree  # heavy, and seldom needed

                tree = cKDTree(points)
                held[np.isfinite(tree.query(where, distance_upper_bound=size)[0])] = size
        return held


def places_of(
    trace: Trace, parts: Sequence[tuple[Interval, bool]], circles: Sequence[Circle] = ()
) -> Places:
    """Where the parts of a trace were.

    parts: intervals, and whether their times were stated. A part at one place is its median, and
    one that leaves it is where it stays as well; one that moves, where it stays, and its edges if
    they were stated. The first and the last fix of the trace are places where a part has them. A
    circle is its middle, and all within it.
    """
    where, count = in_space(trace.positions), len(trace)
    points_and_sizes: list[tuple[Floats, float]] = []
    for (begin, end), stated in parts:
        first, last = np.searchsorted(trace.times, [begin, end + 1])
        fixes = where[first:last] if last > first else _between(trace, where, begin)
        middle, away = _middle(fixes)
        scatter = _NINE_OF_TEN * float(np.median(away))
        at_one = scatter <= MOST - TELLS
        points_and_sizes += [(middle, TELLS + scatter)] if at_one else []
        points_and_sizes += _stayed(trace, where, first, last) if away.max() > MOST else []
        edges = stated and not at_one
        points_and_sizes += [(fixes[0], LEAST)] if edges or first == 0 < last else []
        points_and_sizes += [(fixes[-1], LEAST)] if edges or first < last == count else []
    for circle in circles:
        points_and_sizes.append(
            (in_space(np.array([[circle.latitude, circle.longitude]]))[0], circle.metres)
        )
    reach = _STEP * np.ceil(np.array([size for _, size in points_and_sizes]) / _STEP)
    points = np.array([point for point, _ in points_and_sizes]).reshape(-1, 3)
    return Places(points, np.maximum(reach, LEAST))


@remembered
def in_space(positions: ArrayLike) -> Floats:
    """Positions (n, 2), degrees, as points (n, 3) of the ellipsoid, metres."""
    latitude, longitude = np.radians(positions).T
    flat = _FLATTENING * (2 - _FLATTENING)
    curve = _AXIS / np.sqrt(1 - flat * np.sin(latitude) ** 2)
    ring = curve * np.cos(latitude)
    up = (1 - flat) * curve * np.sin(latitude)
    points = np.stack([ring * np.cos(longitude), ring * np.sin(longitude), up], axis=1)
    points.flags.writeable = False
    return points


def _middle(fixes: Floats) -> tuple[Floats, Floats]:
    """The median of fixes (n, 3), and how far each is from it (n,)."""
    middle = np.median(fixes, axis=0) if len(fixes) > 1 else fixes[0]
    return middle, np.linalg.norm(fixes - middle, axis=1)


def _between(trace: Trace, where: Floats, when: int) -> Floats:
    """The point (1, 3) on the straight way at a time without a fix."""
    return np.stack([np.interp([when], trace.times, axis) for axis in where.T], axis=1)


def _stayed(trace: Trace, where: Floats, first: int, last: int) -> list[tuple[Floats, float]]:
    """The median of each stay among some fixes, and how far a fix there may be from it."""
    rows = np.zeros(len(trace), dtype=np.bool_)
    rows[first:last] = True
    medians = []
    for begin, end in stays(trace.only(rows)):
        fixes = where[slice(*np.searchsorted(trace.times, [begin, end + 1]))]
        middle, away = _middle(fixes)
        medians.append((middle, min(TELLS + _NINE_OF_TEN * float(np.median(away)), MOST)))
    return medians
