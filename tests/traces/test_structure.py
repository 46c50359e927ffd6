"""What is exact in a recording is counted, and nothing is found in an ordinary one."""

from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from tests.structured import by_distance, filled_in, held, rounded, smoothed, snapped, steady
from trailveil.privacy.adversaries import Named
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.report.warnings import warnings
from trailveil.traces.selection import Stretch
from trailveil.traces.structure import Structure, structure_of
from trailveil.traces.trace import Trace


@pytest.mark.parametrize("decimals", [4, 5, 7])
@pytest.mark.parametrize("still", [None, (100, 200)])
def test_an_ordinary_ride_has_none(decimals: int, still: tuple[int, int] | None) -> None:
    structure = structure_of(rounded(ride(600, 3.0, still=still, seed=4), decimals))
    assert not structure.filled_in
    assert not structure.on_a_map
    assert structure.apart == 0
    assert structure.fixes == 600
    assert structure.reach == structure.window == 0
    assert not structure.smoothed


def test_repeated_positions_are_counted() -> None:
    structure = structure_of(held(ride(600, 3.0), 5))
    assert structure.repeated == 480
    assert structure.repeats
    assert structure.held > 400


def test_repeats_where_somebody_stands_still_are_none_on_the_way() -> None:
    trace = ride(600, 3.0, seed=4)
    positions = trace.positions.copy()
    positions[400:] += positions[200] - positions[400]
    positions[200:400] = positions[200]
    structure = structure_of(replace(trace, positions=positions))
    assert structure.repeated == 200
    assert not structure.repeats


def test_filled_in_lines_are_counted() -> None:
    """Of 20 steps between two recorded fixes, the 19 between; a wander this slow hides some."""
    structure = structure_of(filled_in(ride(600, 3.0), 20))
    assert structure.filled_in
    assert 480 <= structure.straight <= 570
    assert structure.longest == pytest.approx(60.0)


def test_a_map_is_seen() -> None:
    structure = structure_of(snapped(ride(600, 3.0), 20))
    assert structure.on_a_map
    assert not structure.filled_in


def test_a_rule_by_distance_is_seen() -> None:
    structure = structure_of(by_distance(seed=3, apart=15.0))
    assert structure.apart == pytest.approx(15.0, abs=0.1)


@pytest.mark.parametrize("decimals", [5, 6, 7])
@pytest.mark.parametrize("seed", range(4))
def test_one_speed_all_along_a_curve_is_noticed(decimals: int, seed: int) -> None:
    trace = steady(seed, decimals=decimals)
    assert structure_of(trace).speed == pytest.approx(7.0, rel=0.015)
    assert "The speed is 7 m/s all along" in warned(trace, Method.NOISE)


@pytest.mark.parametrize("decimals", [5, 6, 7])
@pytest.mark.parametrize("scatter", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_a_speed_that_scatters_is_none_all_along(decimals: int, scatter: float, seed: int) -> None:
    assert structure_of(steady(seed, scatter=scatter, decimals=decimals)).speed == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_ride_with_measurement_noise_has_no_one_speed(seed: int) -> None:
    for step in (1.0, 3.0, 20.0):
        for decimals in (4, 5, 6, 7):
            structure = structure_of(rounded(ride(300, step, seed=seed), decimals))
            assert structure.speed == structure.apart == 0


@pytest.mark.parametrize(("size", "least", "most"), [(9, 20, 37), (21, 45, 75), (41, 75, 150)])
@pytest.mark.parametrize("decimals", [5, 6])
def test_the_window_of_a_moving_average_is_about_found(
    size: int, least: float, most: float, decimals: int
) -> None:
    structure = structure_of(rounded(smoothed(ride(2400, 3.0, seed=3), size), decimals))
    assert least < structure.window < most
    assert structure.smoothed == (size > 10)
    assert structure.filled_in or (structure.reach > 60) == (size == 41)


def test_a_longer_filter_is_found_as_one_that_reaches_too_far() -> None:
    assert structure_of(smoothed(ride(2400, 3.0, seed=3), 101)).reach > 60


def test_repeats_on_the_way_and_lines_reach_as_far_as_they_last() -> None:
    assert structure_of(held(ride(600, 3.0), 31)).reach == pytest.approx(90.0, abs=6.0)
    assert structure_of(filled_in(ride(600, 3.0), 40)).reach == pytest.approx(120.0)


def test_too_few_fixes_say_nothing() -> None:
    empty = Trace(np.empty(0, np.int64), np.empty((0, 2)), np.empty(0, np.intp), (0,))
    assert structure_of(empty) == Structure()


def warned(trace: Trace, method: Method, uncertain: int = 60) -> str:
    at = int(trace.times[len(trace) // 2])
    part = Stretch("stated", at, at)
    plan = protect(trace, Request((part,), method=method, uncertain=uncertain, who=(Named.PLAIN,)))
    return " ".join(warnings(plan, None, (), further=False, private=True))


def test_a_report_warns_of_filters_that_neither_noise_nor_the_minute_around_a_cut_hides() -> None:
    for size, cut, noise in ((5, False, False), (15, False, True), (61, True, True)):
        trace = smoothed(ride(2400, 3.0, seed=3), size)
        assert ("then tell of what is cut" in warned(trace, Method.CUT)) == cut
        assert ("seems smoothed over" in warned(trace, Method.NOISE)) == noise
        assert "then tell of what is cut" not in warned(trace, Method.NOISE)
        assert "then tell of what is cut" not in warned(trace, Method.CUT, uncertain=200)
