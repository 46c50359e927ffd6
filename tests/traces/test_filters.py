"""Recordings that a linear filter made: what the best attack there is gets, by dense algebra.

The adversary knows the filter. Averages, least squares (Savitzky and Golay), the smoother of Kalman
(Rauch, Tung and Striebel) and straight lines between a fix now and then are all linear, so the
posterior deviation of a place is exact here.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.signal import savgol_coeffs

from tests.rides import ride
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import IntegratedOU
from trailveil.privacy.adversaries import Named
from trailveil.privacy.movement import Movement, least_cut
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Stretch

COUNT, STEP = 601, 5.0
MIDDLE = COUNT // 2
TIMES = np.arange(COUNT) * STEP
MEASURED, ROUNDED, ANYWHERE = 2.0, 0.03, 3000.0


def averaged(seconds: float) -> FloatArray:
    near = np.abs(TIMES[:, None] - TIMES) <= seconds / 2
    return np.asarray(near / near.sum(axis=1, keepdims=True))


def fitted(seconds: float) -> FloatArray:
    """Cubic least squares; fixes near the ends are as they were."""
    size = int(seconds / STEP) | 1
    weights = np.eye(COUNT)
    for i in range(size // 2, COUNT - size // 2):
        weights[i] = 0
        weights[i, i - size // 2 : i + size // 2 + 1] = savgol_coeffs(size, 3)
    return weights


def kalman(deviation: float) -> FloatArray:
    """The best estimate of a walk from measurements of such a deviation."""
    moves = IntegratedOU(0.92, 60.0)(TIMES, TIMES) + ANYWHERE**2
    return np.asarray(np.linalg.solve(moves + deviation**2 * np.eye(COUNT), moves).T)


def filled_in(seconds: float, first: int = 0) -> FloatArray:
    """Straight lines from a first fix on."""
    nodes = np.unique([0, *range(first, COUNT, int(seconds / STEP)), COUNT - 1])
    each = [np.interp(TIMES, TIMES[nodes], row) for row in np.eye(nodes.size)]
    weights = np.zeros((COUNT, COUNT))
    weights[:, nodes] = np.column_stack(each)
    return weights


def recorded(movement: Movement, filtered: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The covariance of what is recorded, and of the true place in the middle with it (n,)."""
    moves = IntegratedOU(movement.speed, movement.time_constant)(TIMES, TIMES) + ANYWHERE**2
    whole = filtered @ (moves + MEASURED**2 * np.eye(COUNT)) @ filtered.T
    return whole, filtered @ moves[MIDDLE]


@lru_cache
def planned() -> Plan:
    trace = ride(COUNT, STEP)
    at = int(trace.times[MIDDLE])
    stated = Stretch("stated", at, at)
    return protect(trace, Request((stated,), method=Method.NOISE, who=(Named.PLAIN,)))


def left_by_noise(filtered: FloatArray, *, independent: bool) -> float:
    """The share of the promised metres that is left of the recorded place."""
    plan = planned()
    mechanism = plan.mechanism if independent else replace(plan.mechanism, independent=None)
    true, _ = recorded(plan.request.slowest, filtered)
    released = true + mechanism.covariance() + ROUNDED**2 * np.eye(COUNT)
    after = true[MIDDLE, MIDDLE] - true[MIDDLE] @ np.linalg.solve(released, true[MIDDLE])
    return float(np.sqrt(after)) / plan.findings[0].deviation


SHORT = {
    "averages of 20 s": averaged(20),
    "averages of 30 s": averaged(30),
    "least squares over 60 s": fitted(60),
    "a smoother": kalman(5.0),
    "lines of 20 s": filled_in(20),
}
LONG = {"averages of 2 min": averaged(120), "averages of 5 min": averaged(300)}


@pytest.mark.parametrize("name", ["averages of 20 s", "averages of 30 s", "lines of 20 s", *LONG])
def test_a_filter_undoes_noise_of_low_rank(name: str) -> None:
    assert left_by_noise({**SHORT, **LONG}[name], independent=False) < 0.6


@pytest.mark.parametrize("name", SHORT)
def test_independent_noise_hides_short_filters(name: str) -> None:
    assert left_by_noise(SHORT[name], independent=True) > 0.98


@pytest.mark.parametrize("name", LONG)
def test_it_does_not_hide_long_ones(name: str) -> None:
    assert left_by_noise(LONG[name], independent=True) < 0.95


def left_by_cut(filtered: FloatArray, uncertain: float) -> float:
    """The share of the promised metres that is left of the true place, after a cut."""
    rides, promised = Movement(8.0, 60.0), 200.0
    seconds = least_cut(rides, promised**2, 2) + uncertain
    whole, place = recorded(rides, filtered)
    released = np.abs(TIMES - TIMES[MIDDLE]) > seconds
    noise = ROUNDED**2 * np.eye(int(released.sum()))
    shown = whole[np.ix_(released, released)] + noise
    before = IntegratedOU(rides.speed, rides.time_constant)(TIMES, TIMES)[MIDDLE, MIDDLE]
    after = before + ANYWHERE**2 - place[released] @ np.linalg.solve(shown, place[released])
    return float(np.sqrt(after)) / promised


WITHIN_A_MINUTE = {
    "averages of 60 s": averaged(60),
    "averages of 2 min": averaged(120),
    "least squares over 2 min": fitted(120),
    "a smoother": kalman(20.0),
    **{f"lines of 60 s from {first}": filled_in(60, first) for first in range(0, 12, 3)},
}


@pytest.mark.parametrize("name", WITHIN_A_MINUTE)
def test_the_minute_around_a_cut_covers_what_fixes_beside_it_are_computed_of(name: str) -> None:
    """A fix that is computed of others up to a minute away tells what these would tell."""
    assert left_by_cut(WITHIN_A_MINUTE[name], 60.0) >= 1.0


@pytest.mark.parametrize("seconds", [240, 360])
def test_longer_filters_need_a_longer_one(seconds: float) -> None:
    filtered = averaged(seconds)
    assert left_by_cut(filtered, 60.0) < 0.5
    assert left_by_cut(filtered, seconds / 2) >= 1.0


def test_without_that_minute_a_filter_leaks() -> None:
    assert left_by_cut(np.eye(COUNT), 0.0) >= 1.0
    assert left_by_cut(averaged(60), 0.0) < 0.7
