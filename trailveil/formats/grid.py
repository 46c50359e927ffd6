"""What every writer needs: rows in the order of segments, and whole microdegrees as text."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue
from trailveil.fields import as_text
from trailveil.trace import Trace

_LEAST = np.array([-90_000_000, -180_000_000])
_MOST = np.array([90_000_000, 179_999_999])
_RADIUS = 6_371_008.8  # metres of the sphere


Texts = tuple[tuple[str, list[str]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A trace as it is written: segment after segment, in the order of their numbers.

    times: (n,) int64, nanoseconds since 1970 UTC; points: (n, 2) int64, latitude and longitude in
    microdegrees; tracks, segments: (n,) numbers from 0 without gaps, since what has no fix is left
    out; starts: index of the first row of each segment, and n; fields: by name, n decimal numbers
    as text, "" for none; one that no row states is left out; names: of tracks, if any has one.
    """

    times: NDArray[np.int64]
    points: NDArray[np.int64]
    tracks: NDArray[np.intp]
    segments: NDArray[np.intp]
    starts: NDArray[np.intp]
    fields: Texts = ()
    names: tuple[str, ...] = ()


def rows_of(trace: Trace, grid: ArrayLike) -> Rows:
    """Put a trace in order. Raises InvalidValue for a grid that does not fit it or the globe."""
    points = _checked(grid, len(trace))
    order = np.argsort(trace.segments, kind="stable")
    found, segments = np.unique(trace.segments[order], return_inverse=True)
    owners = np.array([trace.tracks[number] for number in found], dtype=np.intp)
    numbers, inverse = np.unique(owners, return_inverse=True)
    tracks = inverse[segments]
    starts = np.searchsorted(segments, np.arange(len(found) + 1))
    texts = ((name, as_text(name, values[order])) for name, values in trace.fields)
    fields = tuple((name, cells) for name, cells in texts if any(cells))
    names = tuple(trace.names[number] for number in numbers) if any(trace.names) else ()
    return Rows(trace.times[order], points[order], tracks, segments, starts, fields, names)


def way_lengths(rows: Rows) -> NDArray[np.float64]:
    """Metres of the way of each segment, on a sphere."""
    latitude, longitude = np.radians(rows.points / 1e6).T
    lat, lon = np.diff(latitude), np.diff(longitude)
    half = np.sin(lat / 2) ** 2
    half += np.cos(latitude[1:]) * np.cos(latitude[:-1]) * np.sin(lon / 2) ** 2
    steps = 2 * _RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    starts = rows.starts.tolist()
    return np.array([steps[start : end - 1].sum() for start, end in pairwise(starts)])


def degrees(micro: int) -> str:
    """Whole microdegrees as degrees with six decimals, without floating point."""
    whole, part = divmod(abs(micro), 1_000_000)
    return f"{'-' if micro < 0 else ''}{whole}.{part:06d}"


def _checked(grid: ArrayLike, count: int) -> NDArray[np.int64]:
    points = np.asarray(grid)
    if points.shape != (count, 2) or points.dtype != np.int64:
        raise InvalidValue(
            f"grid must be ({count}, 2) of int64, got {points.shape} of {points.dtype}: give whole "
            "microdegrees, a row for each fix"
        )
    if not ((points >= _LEAST) & (points <= _MOST)).all():
        raise InvalidValue(
            "grid must lie on the globe, latitudes within -90..90 degrees and longitudes from -180 "
            "to less than 180, got others: check its order and unit"
        )
    return points
