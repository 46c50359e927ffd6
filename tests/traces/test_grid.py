"""The grid of recorded numbers is found, and none where there is none."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pytest
from pyproj import Transformer

from tests.rides import ride
from trailveil.checks.attacks import lattice
from trailveil.checks.attacks.contract import Background, Evidence, OnGrid
from trailveil.checks.attacks.exact import on_a_grid
from trailveil.checks.attacks.worlds import noises
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import Named
from trailveil.privacy.secrets import Secret
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.grid import (
    METRES_A_DEGREE,
    Grid,
    coarse_subset,
    position_grid,
    reading_grid,
)
from trailveil.traces.map_grid import projected_step
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Trace

SEMICIRCLE = 180.0 / 2**31


def path(count: int = 600, seed: int = 1) -> FloatArray:
    """A wandering path with 2 m of noise, in degrees of any digits: some 500 m wide."""
    random = np.random.default_rng(seed)
    metres = np.cumsum(4 * random.standard_normal((count, 2)), axis=0)
    metres += 2 * random.standard_normal((count, 2))
    return np.asarray(np.array([52.1234567, 13.4567891]) + metres / np.array([111e3, 68e3]))


@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("times", [1, 30])
def test_decimals_are_found(decimals: int, times: int) -> None:
    places = path()
    places = np.round(places[0] + times * (places - places[0]), decimals)
    grid = position_grid(places)
    assert grid.step == pytest.approx(10.0**-decimals)
    assert grid.micro == 10 ** max(0, 6 - decimals)


@pytest.mark.parametrize(
    ("step", "micro"),
    [
        (1e-2 / 60, 1000),
        (1e-3 / 60, 100),
        (1e-4 / 60, 10),
        (0.1 / 3600, 100),
        (SEMICIRCLE, 1),
        (SEMICIRCLE * 2**9, 100),
        (2.0**-18, 10),
    ],
)
def test_other_units_are_found_and_released_in_coarser_decimals(step: float, micro: int) -> None:
    grid = position_grid(np.round(path() / step) * step)
    assert grid.step == pytest.approx(step)
    assert grid.micro == micro
    assert grid.released_step >= grid.step or grid.step < 1e-6


def test_single_precision_is_a_grid_of_the_larger_coordinate() -> None:
    assert position_grid(path().astype(np.float32).astype(float)).step == 2.0**-18


def test_minutes_that_were_printed_as_degrees_are_still_a_grid() -> None:
    minutes = np.round(path() * 60, 3) / 60
    assert position_grid(np.round(minutes, 6)).step == pytest.approx(1e-3 / 60)


def test_a_few_fixes_of_another_kind_hide_no_grid() -> None:
    places = np.round(path(), 5)
    places[::20] = path()[::20]
    assert position_grid(places).step == pytest.approx(1e-5)


def test_one_coarse_coordinate_counts() -> None:
    places = path()
    places[:, 1] = np.round(places[:, 1], 4)
    assert position_grid(places).step == pytest.approx(1e-4)


def test_no_grid_is_found_in_numbers_without_one() -> None:
    assert position_grid(path()) == Grid(0.0, 1)
    assert reading_grid(path()[:, 0]) == Grid(0.0, 1)


def test_one_place_has_the_decimals_that_are_written_of_at_least_two() -> None:
    """One fix again and again hardly tells the grid; 0.1 degrees would be 11 km of noise."""
    assert position_grid(np.tile([52.5, 13.0], (100, 1))).step == pytest.approx(1e-2)
    assert position_grid(np.tile([52.51631, 13.37777], (100, 1))).step == pytest.approx(1e-5)


@pytest.mark.parametrize("step", [1.0, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 0.0625])
def test_steps_of_readings_are_found_and_kept(step: float) -> None:
    values = 20 + np.cumsum(0.05 * np.random.default_rng(2).standard_normal(600))
    grid = reading_grid(np.round(values / step) * step)
    assert grid.step == pytest.approx(step)
    assert grid.released_step == pytest.approx(step)


def test_a_step_of_any_size_is_found_in_readings() -> None:
    """Tenths of a degree Fahrenheit, in Celsius."""
    values = 20 + np.cumsum(0.05 * np.random.default_rng(2).standard_normal(600))
    step = 0.1 * 5 / 9
    grid = reading_grid(np.round(values / step) * step + 0.012345)
    assert grid.step == pytest.approx(step)
    assert grid.micro == 100_000


def test_released_places_lie_on_the_grid_and_on_the_globe() -> None:
    degrees = np.array([[89_999_960, 179_999_960], [-89_999_960, -180_000_000], [15, -25]])
    rounded = Grid(1e-4, 100).rounded_places(degrees)
    assert rounded.tolist() == [[90_000_000, -180_000_000], [-90_000_000, -180_000_000], [0, 0]]


def test_a_step_in_metres_is_never_too_short() -> None:
    """The longest degree of WGS84 is that of latitude at a pole: 111,694 m."""
    assert METRES_A_DEGREE >= 111_694
    assert Grid(1e-5, 10).metres == pytest.approx(1.117)


COARSE = [1e-3, 1e-4, 1e-2 / 60, 1e-3 / 60, 0.1 / 3600, SEMICIRCLE * 2**9]


@pytest.mark.parametrize("step", COARSE)
@pytest.mark.parametrize("every", [2, 3, 20])
@pytest.mark.parametrize("decimals", [6, 7])
def test_a_coarser_grid_of_some_fixes_is_noticed(step: float, every: int, decimals: int) -> None:
    places = path()[0] + 30 * (path() - path()[0])
    places[::every] = np.round(places[::every] / step) * step
    places = np.round(places, decimals)
    grid = position_grid(places)
    # Two grids of half of all each are one of the coarser step for all, and that is wide enough.
    subset = coarse_subset(places, grid)
    assert max(grid.step, subset.step) == pytest.approx(step)
    if grid.step < step:
        assert subset.fixes[::every].mean() > 0.9
        assert subset.count < 1.1 * len(places[::every])


def test_five_distinct_places_are_enough_and_one_place_again_and_again_is_not() -> None:
    places = np.round(path()[0] + 30 * (path() - path()[0]), 6)
    places[:100:20] = np.round(places[:100:20], 3)
    assert coarse_subset(places, position_grid(places)).fixes[:100:20].all()
    places = np.round(path(), 6)
    places[:100] = np.round(places[0], 3)
    assert coarse_subset(places, position_grid(places)).step == 0


def test_one_coordinate_on_a_coarser_grid_at_times_is_noticed() -> None:
    places = np.round(path()[0] + 30 * (path() - path()[0]), 6)
    places[::3, 1] = np.round(places[::3, 1], 3)
    assert coarse_subset(places, position_grid(places)).step == pytest.approx(1e-3)


@pytest.mark.parametrize("count", [10, 30, 100, 600, 5000])
@pytest.mark.parametrize("decimals", [4, 5, 6, 7, 12])
@pytest.mark.parametrize("wide", [0.1, 1.0, 30.0])
def test_no_fix_of_a_random_track_is_on_a_coarser_grid(
    count: int, decimals: int, wide: float
) -> None:
    """A false alarm is rarer than 1e-6 a track: rarer than once in 2,000 runs of all these."""
    for seed in range(2, 4 if count == 5000 else 10):
        places = path(count, seed)
        places = np.round(places[0] + wide * (places - places[0]), decimals)
        assert coarse_subset(places, position_grid(places)).count == 0


UTM, DRAWS = 32632, 5
MAPS = {
    "UTM": (UTM, (48.1, 11.5)),
    "UTM at its edge": (UTM, (48.1, 6.1)),
    "UTM in the south": (32719, (-33.4, -70.6)),
    "Lambert": (2154, (43.6, 1.4)),
    "British National Grid": (27700, (51.5, -0.1)),
    "Swiss": (2056, (47.3, 8.5)),
}


def transformer(epsg: int) -> Transformer:
    return Transformer.from_crs(4326, epsg, always_xy=True)


def on_map(trace: Trace, epsg: int, step: float, decimals: int = 7) -> Trace:
    """A trace whose places were rounded to so many metres of a map."""
    projector = transformer(epsg)
    east, north = projector.transform(trace.positions[:, 1], trace.positions[:, 0])
    whole = [np.round(np.asarray(axis) / step) * step for axis in (east, north)]
    longitude, latitude = projector.transform(whole[0], whole[1], direction="INVERSE")
    return replace(trace, positions=np.round(np.column_stack([latitude, longitude]), decimals))


@pytest.mark.parametrize("step", [1.0, 2.0, 10.0, 100.0])
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(("seconds", "decimals"), [(1.0, 6), (20.0, 7)])
def test_metres_of_a_map_are_found(name: str, step: float, seconds: float, decimals: int) -> None:
    epsg, at = MAPS[name]
    trace = on_map(ride(1200, seconds, seed=4, at=at), epsg, step, decimals)
    assert projected_step(trace.positions) == step
    grid = position_grid(trace.positions)
    assert grid.metres == pytest.approx(step)
    assert 1e-6 * grid.micro * 111_700 >= step


@pytest.mark.parametrize("step", [1.0, 10.0])
def test_metres_of_web_mercator_are_short(step: float) -> None:
    trace = on_map(ride(1200, 3.0, seed=4), 3857, step)
    short = step * float(np.cos(np.radians(48.137)))
    assert projected_step(trace.positions) == pytest.approx(short, rel=1e-2)
    assert position_grid(trace.positions).metres >= 0.99 * short


@pytest.mark.parametrize("decimals", [4, 5, 7])
@pytest.mark.parametrize("seconds", [1.0, 5.0, 30.0])
def test_no_map_is_found_in_degrees(decimals: int, seconds: float) -> None:
    for seed in range(5):
        positions = np.round(ride(1200, seconds, seed=seed).positions, decimals)
        assert projected_step(positions) == 0.0


@pytest.mark.parametrize("count", [0, 1, 2, 19])
def test_few_places_say_nothing(count: int) -> None:
    trace = on_map(ride(20, 3.0), UTM, 100.0)
    assert projected_step(trace.positions[:count]) == 0.0
    assert projected_step(np.tile(trace.positions[:1], (count, 1))) == 0.0


class _Map:
    """The metres of UTM in place of degrees, for the attack."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self._there = frame, transformer(UTM)

    def in_degrees(self, places: FloatArray) -> FloatArray:
        degrees = self._frame.in_degrees(places)
        east, north = self._there.transform(degrees[:, 1], degrees[:, 0])
        return np.column_stack([north, east])

    def to_lattice(self, places: FloatArray) -> Any:
        longitude, latitude = self._there.transform(places[:, 1], places[:, 0], direction="INVERSE")
        return self._frame.to_lattice(np.column_stack([latitude, longitude]))


@lru_cache
def planned(step: float) -> Plan:
    trace = on_map(ride(1200, 3.0, seed=3), UTM, step)
    at = int(trace.times[600])
    part = Stretch("stated", at, at)
    return protect(trace, Request((part,), method=Method.NOISE, who=(Named.PLAIN,)))


def errors(step: float, independent: float) -> FloatArray | None:
    """Metres (draws,) that the attack, which knows the map, is off beside such noise."""
    plan = planned(step)
    true, times = plan.lattice / MICRO, plan.trace.seconds
    mechanism = replace(plan.mechanism, independent=None)
    if independent:
        mechanism = mechanism.hiding(independent)
    released = true + noises(mechanism, (DRAWS,), np.random.default_rng(5))
    grid = OnGrid(cast("Frame", _Map(plan.frame)), step)
    known = Background((Secret.at(times[600]),), plan.request.kernel, mechanism, grid=grid)
    (error,) = on_a_grid(Evidence(times, released), known)
    return None if error is None else error.errors(true[600])


@pytest.mark.parametrize(("step", "independent"), [(2.0, 0.0), (10.0, 0.0), (25.0, 2.0)])
def test_noise_that_is_narrower_than_metres_of_a_map_is_undone(
    step: float, independent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Places that lie on no grid are 0.29 steps off it, these at most 0.2.
    monkeypatch.setattr(lattice, "_ON_GRID", 0.22)
    error = errors(step, independent)
    assert error is not None
    assert np.median(error) < 3 * max(independent, 0.1)


@pytest.mark.parametrize(("step", "least"), [(2.0, 2.0), (10.0, 10.0), (25.0, 25.0)])
def test_independent_noise_is_as_wide_as_metres_of_a_map(
    step: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even an attack that takes whatever it finds for the grid comes to no less than a third."""
    monkeypatch.setattr(lattice, "_ON_GRID", 1.0)
    plan = planned(step)
    assert np.max(plan.mechanism.independent_variances) == pytest.approx(least**2)
    error = errors(step, least)
    assert error is None or np.median(error) > plan.findings[0].deviation / 3
