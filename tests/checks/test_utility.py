"""What is left of a trace: against what can be counted by hand, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from trailveil.checks.utility import (
    bounds,
    cells,
    compare,
    compared,
    density,
    summary,
    together,
    trip,
)
from trailveil.errors import InvalidValue
from trailveil.traces.trace import NANOSECONDS, Trace

METRE = 1 / 111_150.0  # of latitude, here, in degrees
GEOD = Geod(ellps="WGS84")


def north(metres: np.ndarray, step: float = 10.0, segments: np.ndarray | None = None) -> Trace:
    """A way to the north, by metres from its beginning, a fix every so many seconds."""
    count = len(metres)
    positions = np.stack([46.2 + np.asarray(metres) * METRE, np.full(count, -33.0)], axis=1)
    times = (np.arange(count) * step * NANOSECONDS).astype(np.int64)
    numbers = np.zeros(count, dtype=np.intp) if segments is None else segments
    return Trace(times, positions, numbers, (0,) * (int(numbers.max(initial=0)) + 1))


STOPPED = np.concatenate([np.arange(60) * 20.0, np.full(90, 1180.0), 1180 + np.arange(60) * 20.0])


def test_a_way_with_a_stop_in_numbers() -> None:
    summarised = summary(north(STOPPED))
    assert summarised.fixes == 210
    assert summarised.duration == 2090
    assert summarised.length == pytest.approx(2 * 1180, rel=2e-3)
    assert summarised.stops == 1
    assert summarised.stopped == pytest.approx(910, abs=110)  # within 100 m of it
    assert summarised.median_speed == pytest.approx(2, rel=2e-3)
    assert summarised.fast_speed == pytest.approx(2, rel=2e-3)


def test_lengths_are_those_of_the_ellipsoid() -> None:
    random = np.random.default_rng(1)
    positions = np.array([46.2, -33.0]) + np.cumsum(random.normal(0, 1e-3, (50, 2)), axis=0)
    trace = Trace(np.arange(50) * NANOSECONDS, positions, np.zeros(50, np.intp), (0,))
    true = GEOD.line_length(positions[:, 1], positions[:, 0])
    assert summary(trace).length == pytest.approx(true, rel=1e-3)


def test_gaps_and_ends_of_segments_are_no_way() -> None:
    ten = np.arange(10) * 20.0
    apart = summary(north(np.concatenate([ten, 5000 + ten]), segments=np.repeat([0, 1], 10)))
    assert apart.length == pytest.approx(360, rel=2e-3)
    assert math.isnan(summary(north(ten, step=300)).median_speed)
    assert summary(north(ten, step=299)).length == pytest.approx(180, rel=2e-3)
    first = summary(north(ten[:1]))
    assert (first.length, first.stops) == (0, 0)
    assert math.isnan(first.fast_speed)


def test_slower_means_longer_time_and_not_more_fixes() -> None:
    speeds = np.concatenate([np.full(10, 100.0), np.full(90, 10.0)])  # metres a step
    summarised = summary(north(np.append(0, np.cumsum(speeds)), step=10))
    assert summarised.median_speed == pytest.approx(1, rel=2e-3)
    assert summarised.fast_speed == pytest.approx(10, rel=2e-3)


def test_what_moved_by_how_much() -> None:
    before = north(STOPPED)
    shift = np.where(np.arange(210) < 100, 30.0, 40.0)
    shift[7] = 90.0
    after = north(STOPPED + shift).only(np.arange(210) != 3)
    compared_traces = compare(before, after)
    assert compared_traces.withheld == 1
    assert compared_traces.median == pytest.approx(40, rel=3e-3)
    assert compared_traces.largest == pytest.approx(90, rel=3e-3)
    moved = np.delete(shift, 3)
    assert compared_traces.rms == pytest.approx(np.sqrt(np.mean(moved**2)), rel=3e-3)
    assert (
        compared_traces.before.stops,
        compared_traces.after.stops,
        compared_traces.stops_kept,
    ) == (1, 1, 1)


def test_a_stop_elsewhere_or_at_another_time_is_not_kept() -> None:
    before = north(STOPPED)
    assert compare(before, north(STOPPED + 95)).stops_kept == 1
    far = compare(before, north(STOPPED + 110))
    assert (far.after.stops, far.stops_kept) == (1, 0)
    late = np.concatenate([np.arange(120) * 20.0, np.full(90, 2380.0)])
    assert compare(before, north(late)).stops_kept == 0


def test_a_release_of_other_times_is_refused() -> None:
    before = north(STOPPED)
    other = Trace(before.times + 1, before.positions, before.segments, before.tracks)
    with pytest.raises(InvalidValue, match="must have times of its original"):
        compare(before, other)


@given(st.floats(-90, 90), st.floats(-180, 180), st.sampled_from([1.0, 50.0, 500.0, 3_000.0, 1e5]))
def test_a_cell_is_about_as_large_anywhere(latitude: float, longitude: float, cell: float) -> None:
    row, column = cells(np.array([[latitude, longitude]]), cell)[0].tolist()
    rows = round(2 * math.pi * 6_371_009.0 / 2 / cell)
    assert 0 <= row < rows
    assert abs((row + 0.5) / rows * 180 - 90 - latitude) <= 90 / rows * (1 + 1e-9)
    around = 2 * math.pi * 6_371_009.0 * math.cos(math.radians((row + 0.5) / rows * 180 - 90))
    columns = max(1, round(around / cell))
    assert 0 <= column < columns
    assert around / columns == pytest.approx(cell, rel=0.5 / columns + 1e-9) or columns < 3


@given(st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=5))
def test_a_place_is_within_the_bounds_of_its_cell(places: list[tuple[float, float]]) -> None:
    positions = np.array(places)
    south, west, north, east = bounds(cells(positions, 700.0), 700.0).T
    tiny = 1e-9
    assert np.all((south - tiny <= positions[:, 0]) & (positions[:, 0] <= north + tiny))
    longitude = np.where(positions[:, 1] == 180, -180, positions[:, 1])
    assert np.all((west - tiny <= longitude) & (longitude <= east + tiny))


def test_the_antimeridian_and_the_poles_are_in_cells() -> None:
    places = np.array([[0, 180.0], [0, -180.0], [90, 7.0], [-90, 7.0]])
    rows = cells(places, 500.0)
    assert rows[0].tolist() == rows[1].tolist()
    assert rows[3, 0] == 0
    with pytest.raises(InvalidValue, match="a cell must be"):
        cells(places, 0.5)


def test_time_in_cells_is_all_of_the_time() -> None:
    trace = north(np.arange(100) * 37.0, step=10)
    durations = density([trace, trace], 500.0)
    assert sum(durations.values()) == pytest.approx(2 * trace.duration)
    # Of 990 s at 3.7 m/s, a cell of 500 m has 135 s of each.
    assert sorted(durations.values())[-2] == pytest.approx(270, abs=20)
    assert sum(density([north(np.zeros(3), step=1000)]).values()) == 2 * 300


def test_a_fix_alone_spends_no_time() -> None:
    assert list(density([north(np.zeros(1))]).values()) == [0]


def test_distributions_are_compared_as_by_hand() -> None:
    same = compared({1: 2.0, 2: 2.0}, {2: 10.0, 1: 10.0})
    assert (same.overlap, same.divergence) == (1, 0)
    other = compared({1: 1.0}, {2: 5.0})
    assert (other.overlap, other.divergence) == (0, 1)
    half = compared({1: 1.0, 2: 1.0}, {2: 1.0, 3: 1.0})
    assert (half.overlap, half.divergence) == (0.5, 0.5)
    assert (half.cells_before, half.cells_after) == (2, 2)
    with pytest.raises(InvalidValue, match="weight above 0"):
        compared({}, {1: 1.0})


@given(st.dictionaries(st.integers(0, 5), st.floats(0.01, 1e6), min_size=1))
def test_comparing_is_symmetric_and_does_not_see_scale(weights: dict[int, float]) -> None:
    other = {key + 1: 3 * value for key, value in weights.items()}
    first, two = compared(weights, other), compared(other, weights)
    assert first.overlap == pytest.approx(two.overlap, abs=1e-12)
    assert first.divergence == pytest.approx(two.divergence, abs=1e-12)
    assert 0 <= first.overlap <= 1 + 1e-12
    assert 0 <= first.divergence <= 1 + 1e-12


def test_many_traces_together() -> None:
    ways = [north(np.arange(50) * 50.0 + 700 * k) for k in range(4)]
    still = together((way, way) for way in ways)
    assert (still.traces, still.same_trip) == (4, 1)
    assert (still.density.overlap, still.flows.overlap) == (1, 1)
    far = [north(np.arange(50) * 50.0 + 700 * k + 5e4) for k in range(4)]
    moved = together(zip(ways, far, strict=True))
    assert (moved.same_trip, moved.density.overlap, moved.flows.divergence) == (0, 0, 1)
    assert trip(ways[0])[0] != trip(ways[0])[1]
    with pytest.raises(InvalidValue, match="one or more"):
        together([])
    with pytest.raises(InvalidValue, match="a trip must have a fix"):
        trip(north(np.zeros(0)))
