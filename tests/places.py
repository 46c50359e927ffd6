"""Traces made of metres and seconds around a place anywhere on the globe, by geodesics."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from pyproj import Geod

from tests.rides import BEGIN
from trailveil.traces.trace import NANOSECONDS, Trace

Where = tuple[float, float]
ANYWHERE: Sequence[Where] = [
    (0.0, 11.0),
    (40.0, 180.0),
    (40.0, -179.9999),
    (70.0, 25.0),
    (-55.0, -68.0),
    (-55.0, 180.0),
    (89.99, 100.0),
    (-90.0, 0.0),
]
GLOBE = Geod(ellps="WGS84")


def around(where: Where, metres: ArrayLike) -> np.ndarray:
    """Latitudes and longitudes (n, 2) of points (n, 2), metres east and north of a place."""
    east, north = np.asarray(metres, dtype=np.float64).T
    count = east.size
    longitude, latitude, _ = GLOBE.fwd(
        np.full(count, where[1]),
        np.full(count, where[0]),
        np.degrees(np.arctan2(east, north)),
        np.hypot(east, north),
    )
    return np.stack([latitude, longitude], axis=1)


def trace_of(seconds: ArrayLike, metres: ArrayLike, where: Where = (48.0, 11.0)) -> Trace:
    """A trace with these seconds since its first fix, metres (n, 2) east and north of a place."""
    after = np.round(np.asarray(seconds, dtype=np.float64) * NANOSECONDS).astype(np.int64)
    degrees = around(where, metres)
    return Trace(BEGIN * NANOSECONDS + after, degrees, np.zeros(after.size, dtype=np.intp), (0,))


def after(trace: Trace, intervals: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Begins and ends in seconds since the first fix."""
    first = int(trace.times[0])
    return [((one - first) / NANOSECONDS, (end - first) / NANOSECONDS) for one, end in intervals]
