"""Splines that noise is sought in: what they add up to, how they end, where their knots are."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from trailveil.designer.spaces import FINEST, lag_of, splines
from trailveil.gp.kernels import Constant, IntegratedOU, Matern32, Warped, stopped

REACH, SPAN, LAG = (0.0, 6000.0), (2700.0, 3300.0), 120.0
TIMES = np.linspace(-100.0, 6100.0, 6201)
INSIDE = np.clip(TIMES, *REACH) == TIMES
ENDS = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("span", [SPAN, (3000.0, 3000.0), (0.0, 0.0), (0.0, 900.0), REACH])
def test_they_add_up_to_one_and_are_nothing_outside(
    span: tuple[float, float], coarse: bool
) -> None:
    values = splines(REACH, [span], LAG, [60.0, 300.0], coarse=coarse).at(TIMES)
    assert np.all(values >= 0.0)
    assert values[INSIDE].sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert np.all(values[~INSIDE] == 0.0)
    assert np.all(np.any(values > 0, axis=0))


@pytest.mark.parametrize("fading", ENDS)
def test_at_an_end_where_they_fade_they_are_zero_and_flat(fading: tuple[bool, bool]) -> None:
    faded = splines(REACH, [SPAN], LAG, fading=fading)
    everything = splines(REACH, [SPAN], LAG)
    assert faded.at(TIMES).shape[1] == everything.at(TIMES).shape[1] - 2 * sum(fading)
    step = 1e-3
    for end, inwards, fades in zip(REACH, (1.0, -1.0), fading, strict=True):
        values = faded.at(np.array([end, end + inwards * step, end + 2 * inwards * step]))
        if not fades:
            assert values[0].sum() == pytest.approx(1.0)
            continue
        assert np.all(values[0] == 0.0)
        # Of a cubic with neither value nor slope: its second derivative, at most 6 / (gap between
        # the first knots)^2, times step^2 / 2, and twice that for the third derivative.
        knots = np.unique(faded.knots)
        gap = min(np.diff(knots)[0], np.diff(knots)[-1])
        assert np.all(values[1] <= 6 * (step / gap) ** 2)
        assert values[1].max() > 0.0
        slope = values[1] / step
        assert np.all(np.abs(slope) <= 6 * step / gap**2)


@pytest.mark.parametrize("fading", ENDS)
def test_away_from_the_ends_fading_changes_nothing(fading: tuple[bool, bool]) -> None:
    faded = splines(REACH, [SPAN], LAG, fading=fading)
    knots = np.unique(faded.knots)
    low = knots[2] if fading[0] else knots[0]
    high = knots[-3] if fading[1] else knots[-1]
    away = TIMES[np.clip(TIMES, low, high) == TIMES]
    assert away.size > 3000
    assert faded.at(away).sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_knots_are_dense_at_the_edges_of_what_is_secret() -> None:
    knots = np.unique(splines(REACH, [SPAN], LAG).knots)
    middles, gaps = (knots[1:] + knots[:-1]) / 2, np.diff(knots)
    for edge in SPAN:
        assert edge in knots
        near = np.flatnonzero(np.abs(middles - edge) < LAG / 4)
        assert np.all(gaps[near] <= (FINEST + 1.0 / 4) * LAG)
    # Nowhere wider than asked for: the width at the far side of a gap is its most.
    distance = np.min(np.abs(knots[:, None] - np.array(SPAN)), axis=1)
    within = (middles > SPAN[0]) & (middles < SPAN[1])
    most = np.maximum(distance[1:], distance[:-1])
    assert np.all(gaps <= FINEST * LAG + np.where(within, 1.0, 0.33) * most + 1e-9)
    assert gaps[0] > 5 * gaps[np.argmin(np.abs(middles - SPAN[0]))]


def test_at_the_edge_of_a_stay_they_are_continuous_and_no_more() -> None:
    bumps = splines(REACH, [SPAN], LAG)
    for edge in SPAN:
        assert np.sum(bumps.knots == edge) == 3
        before, at, after = bumps.at(np.array([edge - 1e-6, edge, edge + 1e-6]))
        assert np.allclose(before, at, atol=1e-6)
        assert np.allclose(after, at, atol=1e-6)
        slope_before, right = (at - before) / 1e-6, (after - at) / 1e-6
        assert np.max(np.abs(slope_before - right)) > 1e-3


def test_what_is_known_of_the_series_begins_at_a_knot() -> None:
    knots = splines(REACH, [SPAN], LAG, [60.0, 300.0]).knots
    known = [SPAN[0] - 60, SPAN[0] - 300, SPAN[1] + 60, SPAN[1] + 300]
    assert np.all(np.isin(known, knots))
    assert not np.any(np.isin([SPAN[0] - 60, SPAN[1] + 300], splines(REACH, [SPAN], LAG).knots))


def test_knots_at_the_edges_are_near_in_view_of_what_may_be_known() -> None:
    """Whatever the lag: 2.5 times the finest share of how near a value may be known."""
    for lag in (LAG, 100 * LAG):
        knots = np.unique(splines(REACH, [SPAN], lag, [20.0]).knots)
        first = int(np.searchsorted(knots, SPAN[1]))
        assert knots[first + 1] - knots[first] <= (2.5 * FINEST + 0.33) * 20.0


def test_fewer_of_them_are_coarse() -> None:
    counts = [splines(REACH, [SPAN], LAG, coarse=coarse).knots.size for coarse in (True, False)]
    assert 2 * counts[0] < 1.5 * counts[1]


@given(
    begin=st.floats(0, 1e5),
    length=st.floats(0, 1e5),
    reach=st.floats(1, 1e6),
    lag=st.floats(0.01, 1e4),
    ends=st.sampled_from(ENDS),
)
def test_there_are_never_many_of_them(
    begin: float, length: float, reach: float, lag: float, ends: tuple[bool, bool]
) -> None:
    """Whatever the lag: at most 72 knots and the anchors, and a basis at every time."""
    span = (begin, begin + length)
    bumps = splines((begin - reach, span[1] + reach), [span], lag, [60.0, 300.0], fading=ends)
    assert bumps.knots.size <= 72 + 2 * 2 + 2 * 4
    assert np.all(np.diff(bumps.knots) >= 0)
    times = np.linspace(begin - reach, span[1] + reach, 101)
    values = bumps.at(times)
    assert np.all(np.isfinite(values))
    inner = (times > np.unique(bumps.knots)[2]) & (times < np.unique(bumps.knots)[-3])
    assert np.allclose(values[inner].sum(axis=1), 1.0)


def test_several_spans_have_edges_of_their_own() -> None:
    spans = [(1000.0, 1000.0), (2000.0, 2600.0), (4000.0, 4000.0)]
    knots = splines(REACH, spans, LAG).knots
    for edge in (1000.0, 2000.0, 2600.0, 4000.0):
        assert np.sum(knots == edge) == 3
    between = np.unique(knots)[(np.unique(knots) > 2600) & (np.unique(knots) < 4000)]
    assert all(b > a for a, b in pairwise(between))


def test_no_times_have_no_values() -> None:
    assert splines(REACH, [SPAN], LAG).at(np.empty(0)).shape[0] == 0


@pytest.mark.parametrize("std", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("deviation", [10.0, 100.0, 316.0])
@pytest.mark.parametrize("begin", [0.0, 5000.0])
def test_the_lag_of_movement_is_its_closed_form(std: float, deviation: float, begin: float) -> None:
    """Of a displacement in h, from anywhere: 2 std^2 tau (h - tau (1 - exp(-h / tau)))."""
    tau, longest = 60.0, 1e6

    def missing(h: float) -> float:
        return 2 * std**2 * tau * (h + tau * math.expm1(-h / tau)) - deviation**2

    root = brentq(missing, 1e-9, longest)
    lag = lag_of(IntegratedOU(std, tau), begin, deviation, longest)
    # As far as covariances of km^2 give it: the square of a deviation to some 1e-9 of it.
    assert lag == pytest.approx(root, rel=1e-6)
    assert lag_of(IntegratedOU(std, tau), begin, deviation, 10 * root) == pytest.approx(lag)
    with_level = IntegratedOU(std, tau) + Constant(1e3)
    assert lag_of(with_level, begin, deviation, longest) == pytest.approx(lag)


def test_the_lag_of_what_never_moves_so_far_is_when_it_has_moved_furthest() -> None:
    assert lag_of(Matern32(100.0, 60.0), 0.0, 1000.0, 3600.0) > 600
    assert lag_of(IntegratedOU(1.0, 60.0), 0.0, 1e6, 3600.0) == pytest.approx(3600.0)


def test_the_lag_without_a_prior_that_moves_or_without_time() -> None:
    assert lag_of(None, 0.0, 100.0, 3600.0) == 3600.0
    assert lag_of(None, 0.0, 100.0, 0.0) == 1.0
    assert lag_of(IntegratedOU(3.0, 60.0), 0.0, 100.0, 0.0) == 1.0


def test_the_lag_is_by_the_clock_of_the_prior() -> None:
    still = Warped(IntegratedOU(3.0, 60.0), stopped([(0.0, 1000.0)]))
    moving = lag_of(IntegratedOU(3.0, 60.0), 0.0, 100.0, 1e5)
    assert lag_of(still, 0.0, 100.0, 1e5) == pytest.approx(1000.0 + moving)
