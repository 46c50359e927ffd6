"""Metres of a map under recorded degrees: found, hidden, and what an attack makes of them."""

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
from trailveil.traces.grid import position_grid
from trailveil.traces.projected import projected_step
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Trace

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
    there = transformer(epsg)
    east, north = there.transform(trace.positions[:, 1], trace.positions[:, 0])
    whole = [np.round(np.asarray(axis) / step) * step for axis in (east, north)]
    longitude, latitude = there.transform(whole[0], whole[1], direction="INVERSE")
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
    made = planned(step)
    true, times = made.lattice / MICRO, made.trace.seconds
    mechanism = replace(made.mechanism, independent=None)
    if independent:
        mechanism = mechanism.hiding(independent)
    released = true + noises(mechanism, (DRAWS,), np.random.default_rng(5))
    grid = OnGrid(cast("Frame", _Map(made.frame)), step)
    known = Background((Secret.at(times[600]),), made.request.kernel, mechanism, grid=grid)
    (found,) = on_a_grid(Evidence(times, released), known)
    return None if found is None else found.errors(true[600])


@pytest.mark.parametrize(("step", "independent"), [(2.0, 0.0), (10.0, 0.0), (25.0, 2.0)])
def test_noise_that_is_narrower_than_metres_of_a_map_is_undone(
    step: float, independent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Places that lie on no grid are 0.29 steps off it, these at most 0.2.
    monkeypatch.setattr(lattice, "_ON_GRID", 0.22)
    found = errors(step, independent)
    assert found is not None
    assert np.median(found) < 3 * max(independent, 0.1)


@pytest.mark.parametrize(("step", "least"), [(2.0, 2.0), (10.0, 10.0), (25.0, 25.0)])
def test_independent_noise_is_as_wide_as_metres_of_a_map(
    step: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even an attack that takes whatever it finds for the grid comes to no less than a third."""
    monkeypatch.setattr(lattice, "_ON_GRID", 1.0)
    made = planned(step)
    assert np.max(made.mechanism.independent_variances) == pytest.approx(least**2)
    found = errors(step, least)
    assert found is None or np.median(found) > made.findings[0].deviation / 3
