"""What released traces are still good for: ways and stops of one, where people are of many.

Figures of the original beside those of the release. They are computed from both, so they are for
the owner: how far a fix was moved tells, with the release, where it was.

Lengths and speeds are those of the fixes as they are, steps over a gap of GAP left out: noise that
is smooth in time hardly changes them, independent noise makes a person race. Cells are those of a
grid of the globe whose rows are `cell` metres high and whose columns are as wide to within one in
the number around the row's middle, so a cell is about as large anywhere.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, check_kind
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.projection import MICRO, placed
from trailveil.traces.stops import WITHIN, Interval, stays
from trailveil.traces.trace import NANOSECONDS, Trace

GAP: Final = 300.0
"""Seconds between two fixes from which on nothing is said of the way between them."""

CELL: Final = 500.0
"""Metres: how high and wide cells of the density map and of flows are."""

_CIRCUMFERENCE = 2 * math.pi * 6_371_009.0  # metres
_QUANTILES = (0.5, 0.95)

Cell = tuple[int, int]
"""Row from the south pole and column from the antimeridian."""

_Weights = dict[Any, float]


@dataclass(frozen=True, slots=True)
class Summary:
    """A trace in numbers: fixes, seconds, metres, metres a second; stops and their seconds.

    median_speed, fast_speed: the half and 95 % of the time that is told of is slower; NaN where
    nothing is.
    """

    fixes: int
    duration: float
    length: float
    median_speed: float
    fast_speed: float
    stops: int
    stopped: float


@dataclass(frozen=True, slots=True)
class Utility:
    """An original and its release in numbers.

    rms, median, largest: metres by which fixes that are in both are moved, NaN for none. withheld:
    fixes that are not in the release. stops_kept: stops of the original that have one of the
    release at the same time (more than half of the shorter) and within `stops.WITHIN` metres.
    """

    before: Summary
    after: Summary
    rms: float
    median: float
    largest: float
    withheld: int
    stops_kept: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Two distributions over cells or pairs of cells, each of sum 1, and what they have in common.

    overlap: sum of the lesser of both shares, 1 for equal ones and 0 for others (one less the total
    variation distance). divergence: of Jensen and Shannon, in bits, 0 to 1.
    """

    overlap: float
    divergence: float
    cells_before: int
    cells_after: int


@dataclass(frozen=True, slots=True)
class Together:
    """Many traces before and after. density: by time spent. flows: from first to last cell.

    same_trip: share of traces whose first and last cell are what they were.
    """

    traces: int
    density: Compared
    flows: Compared
    same_trip: float


def summary(trace: Trace) -> Summary:
    """A trace in numbers. Raises Refused where it reaches too far for one frame."""
    metres = placed(trace.positions)[1] / MICRO if len(trace) else np.zeros((0, 2))
    seconds, way = _steps(trace, metres)
    median, fast = _quantiles(way / seconds, seconds)
    intervals = stays(trace)
    stopped = sum(end - begin for begin, end in intervals) / NANOSECONDS
    length = float(way.sum())
    return Summary(len(trace), trace.duration, length, median, fast, len(intervals), stopped)


def compare(before: Trace, after: Trace) -> Utility:
    """What a release is still good for; fixes are the same where their times are.

    Raises InvalidValue where no fix is in both, Refused where one reaches too far for one frame.

    >>> day = tv.datasets.simulated_day()
    >>> tv.compare(day, day.only(day.seconds > 600)).withheld > 0
    True
    """
    check_kind("before", before, Trace, "tv.read gives one of a file")
    check_kind("after", after, Trace, "tv.read gives one of a file")
    _, recorded, other = np.intersect1d(
        before.times, after.times, assume_unique=True, return_indices=True
    )
    if not recorded.size:
        raise InvalidValue(
            "a release must have times of its original, got none: give both with the same times"
        )
    frame, lattice = placed(before.positions)
    moved = np.hypot(*((frame.to_lattice(after.positions[other]) - lattice[recorded]) / MICRO).T)
    stops = _stops_kept(before, after)
    return Utility(
        summary(before),
        summary(after),
        rms=float(np.sqrt(np.mean(moved**2))),
        median=float(np.median(moved)),
        largest=float(np.max(moved)),
        withheld=len(before) - recorded.size,
        stops_kept=stops,
    )


def together(pairs: Iterable[tuple[Trace, Trace]], cell: float = CELL) -> Together:
    """What releases of many traces are still good for: each the original and its release.

    cell: metres. Raises InvalidValue for no pair, a trace without fixes, or a size out of range.
    """
    densities: tuple[_Weights, _Weights] = ({}, {})
    flows: tuple[_Weights, _Weights] = ({}, {})
    traces = same = 0
    for pair in pairs:
        ends = []
        for trace, dense, flow in zip(pair, densities, flows, strict=True):
            for place, seconds in density([trace], cell).items():
                dense[place] = dense.get(place, 0.0) + seconds
            way = trip(trace, cell)
            flow[way] = flow.get(way, 0.0) + 1
            ends.append(way)
        traces += 1
        same += ends[0] == ends[1]
    if not traces:
        raise InvalidValue("traces must be one or more, got none")
    return Together(traces, compared(*densities), compared(*flows), same_trip=same / traces)


def density(traces: Iterable[Trace], cell: float = CELL) -> dict[Cell, float]:
    """Seconds that traces spend in each cell; a fix has half of the time to its neighbours.

    Of a time of more than GAP to a neighbour it has half of GAP.
    """
    durations: dict[Cell, float] = {}
    for trace in traces:
        halves = np.minimum(np.diff(trace.seconds), GAP) / 2
        spent = np.append(halves, 0.0) + np.append(0.0, halves) if len(trace) else np.zeros(0)
        places, index = np.unique(cells(trace.positions, cell), axis=0, return_inverse=True)
        times = np.bincount(index.ravel(), weights=spent, minlength=len(places))
        for (row, column), seconds in zip(places.tolist(), times.tolist(), strict=True):
            durations[row, column] = durations.get((row, column), 0.0) + seconds
    return durations


def trip(trace: Trace, cell: float = CELL) -> tuple[Cell, Cell]:
    """The cells of the first and of the last fix. Raises InvalidValue where there is none."""
    if not len(trace):
        raise InvalidValue("a trip must have a fix, got a trace without: leave it out")
    first, last = cells(trace.positions[[0, -1]], cell).tolist()
    return (first[0], first[1]), (last[0], last[1])


def cells(positions: FloatArray, cell: float = CELL) -> NDArray[np.int64]:
    """The cells (n, 2) of positions (n, 2) in degrees. cell: metres, 1 to 100,000."""
    rows = _rows_of(cell)
    row = np.minimum(np.floor((positions[:, 0] + 90) / 180 * rows), rows - 1)
    columns = _columns_of(row, rows, cell)
    column = np.floor((positions[:, 1] + 180) / 360 % 1 * columns)
    return np.stack([row, np.minimum(column, columns - 1)], axis=1).astype(np.int64)


def bounds(places: NDArray[np.int64], cell: float = CELL) -> FloatArray:
    """South, west, north and east (n, 4) of cells (n, 2), in degrees."""
    rows = _rows_of(cell)
    wide = 360 / _columns_of(places[:, 0].astype(np.float64), rows, cell)
    south, west = places[:, 0] / rows * 180 - 90, places[:, 1] * wide - 180
    return np.stack([south, west, south + 180 / rows, west + wide], axis=1)


def _rows_of(cell: float) -> int:
    if not 1 <= cell <= 100_000:
        raise InvalidValue(f"a cell must be 1 to 100,000 metres, got {cell:g}")
    return round(_CIRCUMFERENCE / 2 / cell)


def _columns_of(row: FloatArray, rows: int, cell: float) -> FloatArray:
    """How many cells there are in rows (n,)."""
    around = np.cos(np.radians((row + 0.5) / rows * 180 - 90)) * _CIRCUMFERENCE / cell
    return np.asarray(np.maximum(1, np.round(around)))


def compared(before: Mapping[Any, float], after: Mapping[Any, float]) -> Compared:
    """Two distributions over the same kind of cells, by weights of any sum above 0.

    Raises InvalidValue where all weights of one are 0.
    """
    keys = list(dict.fromkeys([*before, *after]))
    shares = []
    for cells in (before, after):
        weights = np.array([cells.get(key, 0.0) for key in keys])
        if not weights.sum() > 0:
            raise InvalidValue("a distribution must have a weight above 0, got none")
        shares.append(weights / weights.sum())
    middle = (shares[0] + shares[1]) / 2
    divergence = sum(
        float(np.sum(share[share > 0] * np.log2(share[share > 0] / middle[share > 0])))
        for share in shares
    )
    return Compared(
        overlap=float(np.minimum(*shares).sum()),
        divergence=max(0.0, divergence / 2),  # of equal ones, less than 0 by rounding
        cells_before=int(np.count_nonzero(shares[0])),
        cells_after=int(np.count_nonzero(shares[1])),
    )


def _steps(trace: Trace, metres: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Seconds and metres of the steps within segments that are no gap."""
    seconds, way = np.diff(trace.seconds), np.hypot(*np.diff(metres, axis=0).T)
    counted = (np.diff(trace.segments) == 0) & (seconds < GAP)
    return seconds[counted], way[counted]


def _quantiles(values: FloatArray, weights: FloatArray) -> list[float]:
    """Of values (n,) that count by weights (n,) above 0; NaN for none."""
    if not values.size:
        return [math.nan] * len(_QUANTILES)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return [float(values[order][np.searchsorted(reached, q * reached[-1])]) for q in _QUANTILES]


def _stops_kept(before: Trace, after: Trace) -> int:
    others = stays(after)
    return sum(
        any(_overlap(stay, other) and _near(before, after, stay, other) for other in others)
        for stay in stays(before)
    )


def _overlap(interval: Interval, other: Interval) -> bool:
    both = min(interval[1], other[1]) - max(interval[0], other[0])
    return 2 * both > min(interval[1] - interval[0], other[1] - other[0])


def _near(before: Trace, after: Trace, interval: Interval, other: Interval) -> bool:
    frame, lattice = placed(before.positions)
    others = frame.to_lattice(_within(after, other)) / MICRO
    places = lattice[_rows(before, interval)] / MICRO
    away = np.hypot(*(np.median(others, axis=0) - np.median(places, axis=0)))
    return bool(away <= WITHIN)


def _within(trace: Trace, interval: Interval) -> FloatArray:
    return trace.positions[_rows(trace, interval)]


def _rows(trace: Trace, interval: Interval) -> NDArray[np.bool_]:
    return np.asarray((trace.times >= interval[0]) & (trace.times <= interval[1]))
