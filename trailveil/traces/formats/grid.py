"""What every writer needs: rows in the order of segments, and degrees as text.

Degrees are whole microdegrees (int64), or exactly those that were recorded (float64).
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue
from trailveil.traces.fields import as_text
from trailveil.traces.projection import MICRO, metres_between
from trailveil.traces.trace import Trace

_LEAST, _MOST = np.array([-90.0, -180.0]), np.array([90.0, 180.0])
# Seconds or, where no times leave, metres; and times the usual step: a longer one is a gap.
_LONG, _FAR, _LONGER = 60.0, 100.0, 10.0


Degrees = NDArray[np.int64] | NDArray[np.float64]
Texts = tuple[tuple[str, list[str]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """A trace as it is written: segment after segment, in the order of their numbers.

    times: (n,) int64, nanoseconds since 1970 UTC; points: (n, 2) latitude and longitude, int64 in
    microdegrees or float64 in degrees; tracks, segments: (n,) numbers from 0 without gaps, since
    what has no fix is left out; starts: index of the first row of each segment, and n; fields: by
    name, n decimal numbers as text, "" for none; one that no row states is left out; names,
    types: of tracks, if any has one; decimals: of whole microdegrees, as many as the finest point
    has; timed: whether times are written; lap_numbers: (n,) as they are stated, else (0,).
    """

    times: NDArray[np.int64]
    points: Degrees
    tracks: NDArray[np.intp]
    segments: NDArray[np.intp]
    starts: NDArray[np.intp]
    fields: Texts = ()
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    decimals: int = 6
    timed: bool = True

    def pieces(self) -> list[list[tuple[int, int]]]:
        """Of each track, its segments: first row, and the one behind."""
        segments = list(pairwise(self.starts.tolist()))
        owners = self.tracks[self.starts[:-1]].tolist()
        return [
            [segment for segment, owner in zip(segments, owners, strict=True) if owner == track]
            for track in sorted({*owners})
        ]


def rows_of(trace: Trace, grid: ArrayLike) -> WrittenRows:
    """Put a trace in order. Raises InvalidValue for a grid that does not fit it or the globe."""
    points = _checked(grid, len(trace))
    order = np.argsort(trace.segments, kind="stable")
    known, segments = np.unique(trace.segments[order], return_inverse=True)
    owners = np.array([trace.tracks[number] for number in known], dtype=np.intp)
    numbers, inverse = np.unique(owners, return_inverse=True)
    tracks = inverse[segments]
    starts = np.searchsorted(segments, np.arange(len(known) + 1))
    cells_of = ((name, as_text(name, values[order])) for name, values in trace.fields)
    fields = tuple((name, cells) for name, cells in cells_of if any(cells))
    names, types = (
        tuple(texts[number] for number in numbers) if any(texts) else ()
        for texts in (trace.names, trace.types)
    )
    placed_rows = (trace.times[order], points[order], tracks, segments, starts)
    exact = points.dtype != np.int64
    decimals = 6 if exact else max(1, decimals_of(points, 6))
    return WrittenRows(*placed_rows, fields, names, types, decimals, trace.timed)


def begun_after_cuts(trace: Trace, rows: NDArray[np.intp]) -> Trace:
    """A segment begins where recorded fixes are left out, so that no program draws a line there.

    rows: (n,) which fix of the recording each released one is.
    """
    order = np.argsort(trace.segments, kind="stable")
    return _begun(trace, order, np.diff(rows[order]) != np.diff(order))


def begun_after_gaps(trace: Trace) -> Trace:
    """A segment begins after each long gap too: so a cut is not told from where nothing was.

    A gap is over a minute and ten times the usual step; where no times leave, over 100 m and ten
    times. It is a function of what leaves alone.
    """
    order = np.argsort(trace.segments, kind="stable")
    steps, least = np.diff(trace.seconds[order]), _LONG
    if not trace.timed:
        places = trace.positions[order]
        steps, least = metres_between(places[:-1], places[1:]), _FAR
    return _begun(trace, order, long_gaps(steps, least))


def _begun(trace: Trace, order: NDArray[np.intp], after: NDArray[np.bool_]) -> Trace:
    """A trace whose segments begin, besides, after some fixes in an order (n,), (n - 1,)."""
    old = trace.segments[order]
    begins = np.append(True, np.diff(old) != 0)[: len(trace)]
    begins[1:] |= after
    numbers = np.empty(len(trace), dtype=np.intp)
    numbers[order] = np.cumsum(begins) - 1
    tracks = tuple(trace.tracks[number] for number in old[begins].tolist())
    return replace(trace, segments=numbers, tracks=tracks)


def long_gaps(steps: NDArray[np.float64], least: float = _LONG) -> NDArray[np.bool_]:
    """Which steps (n,) are gaps: over `least`, in their unit, and ten times the usual one."""
    usual = float(np.median(steps)) if steps.size else 0.0
    return steps > max(least, _LONGER * usual)


def decimals_of(whole: NDArray[Any], most: int) -> int:
    """How many decimals the finest of some numbers has, given in whole steps of 10^-most."""
    return next(
        decimals for decimals in range(most + 1) if not np.any(whole % 10 ** (most - decimals))
    )


def way_lengths(rows: WrittenRows) -> NDArray[np.float64]:
    """Metres of the way of each track, on a sphere; none from one segment to the next."""
    places = whole_degrees(rows.points)
    steps = metres_between(places[:-1], places[1:])
    return np.array(
        [sum(steps[start : end - 1].sum() for start, end in pieces) for pieces in rows.pieces()]
    )


def degrees(micro: int | float, decimals: int = 6) -> str:
    """Whole microdegrees as degrees with 1 to 6 decimals, or exact degrees with all they have."""
    if isinstance(micro, float):
        return str(np.format_float_positional(micro, trim="0"))
    whole, part = divmod(abs(micro) // 10 ** (6 - decimals), 10**decimals)
    return f"{'-' if micro < 0 else ''}{whole}.{part:0{decimals}d}"


def whole_degrees(points: Degrees) -> NDArray[np.float64]:
    """Points as degrees."""
    return np.asarray(points / MICRO if points.dtype == np.int64 else points, dtype=np.float64)


def _checked(grid: ArrayLike, count: int) -> Degrees:
    points = np.asarray(grid)
    if points.shape != (count, 2) or points.dtype not in (np.int64, np.float64):
        raise InvalidValue(
            f"grid must be ({count}, 2) of int64, got {points.shape} of {points.dtype}: give whole "
            "microdegrees, a row for each fix"
        )
    on_globe = whole_degrees(points)
    if not ((on_globe >= _LEAST) & (on_globe <= _MOST)).all():
        raise InvalidValue(
            "grid must lie on the globe, latitudes within -90..90 degrees and longitudes from -180 "
            "to 180, got others: check its order and unit"
        )
    return points
