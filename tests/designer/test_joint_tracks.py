"""What is told of one place by several windows of it, against dense Gaussian conditioning."""

import numpy as np
import pytest

from trailveil.designer.joint_tracks import VisitNoise, told_of_one_place
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.window import window_noise
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Matern12, Matern32
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.movement import Matern, Movement

FLOOR = Movement(0.9, 60.0)
BOUND = 1 / 300.0**2


@pytest.fixture(scope="module")
def noise() -> WindowNoise:
    """Noise around a window of ten minutes, recorded on both sides."""
    return window_noise(600.0, 2, [Knowledge("plain", FLOOR)], BOUND)


def place_from_rest(p: FloatArray, q: FloatArray) -> FloatArray:
    """Cov(x(p), x(q)) of integrated Ornstein-Uhlenbeck motion that is at rest at 0."""
    s, tau = FLOOR.speed, FLOOR.time_constant
    gone = [1 - np.exp(-x / tau) for x in (p, q, np.abs(p - q))]
    steady = 2 * np.minimum(p, q) - tau * (gone[0] + gone[1] - gone[2])
    return np.asarray(s**2 * tau * (steady - tau * gone[0] * gone[1]))


def speed_from_rest(p: FloatArray, end: float) -> FloatArray:
    """Cov(x(p), v(end)) of the same, p no later than the end."""
    s, tau = FLOOR.speed, FLOOR.time_constant
    later = np.exp(-(end - p) / tau) - np.exp(-end / tau)
    return np.asarray(s**2 * tau * (later - (1 - np.exp(-p / tau)) * np.exp(-end / tau)))


def moved(times: FloatArray, windows: list[tuple[float, float]]) -> FloatArray:
    """The covariance of places less that of all windows, at whose edges all is at rest."""
    whole = np.zeros((times.size, times.size))
    edges = [-np.inf, *(edge for window in windows for edge in window), np.inf]
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        rows = np.flatnonzero((times > begin) & (times < end))
        away = times[rows] - begin if np.isfinite(begin) else end - times[rows]
        part = place_from_rest(away[:, None], away)
        if np.isfinite(begin) and np.isfinite(end):
            length = np.array(end - begin)
            s, tau = FLOOR.speed, FLOOR.time_constant
            crossed = np.stack([place_from_rest(away, length), speed_from_rest(away, end - begin)])
            corner = float(speed_from_rest(length, end - begin))
            last = [float(place_from_rest(length, length)), corner]
            fast = s**2 * (1 - np.exp(-2 * (end - begin) / tau))
            part = part - crossed.T @ np.linalg.solve(np.array([last, [corner, fast]]), crossed)
        whole[np.ix_(rows, rows)] = part
    return whole


def dense(covariance: FloatArray, visits: list[VisitNoise], times: FloatArray, std: float) -> float:
    """What all fixes tell of a level that they share."""
    factor = np.hstack([visit.curves(times) for visit in visits])
    total = covariance + factor @ factor.T + std**2 * np.eye(times.size)
    return float(np.sum(np.linalg.solve(total, np.ones(times.size))))


@pytest.mark.parametrize("std", [0.3, 3.0])
@pytest.mark.parametrize("gap", [100.0, 300.0, 900.0, 3000.0, 9000.0])
def test_it_is_no_less_than_dense_conditioning_and_hardly_more(
    noise: WindowNoise, gap: float, std: float
) -> None:
    visits = [VisitNoise(0.0, 600.0, noise), VisitNoise(600.0 + gap, 1200.0 + gap, noise)]
    times = np.arange(-6000.0, 1200.0 + gap + 6000.0, 20.0)
    windows = [(visit.begin, visit.end) for visit in visits]
    truth = dense(moved(times, windows), visits, times, std)
    most = told_of_one_place(visits, times, np.full(times.size, std**2), [FLOOR])
    assert truth * (1 - 1e-9) <= most <= 1.08 * truth


def test_of_one_window_it_is_the_cost_that_its_design_proves(noise: WindowNoise) -> None:
    times = np.arange(-6000.0, 7000.0, 30.0)
    most = told_of_one_place([VisitNoise(0.0, 600.0, noise)], times, np.ones(times.size), [FLOOR])
    assert 0.99 * BOUND < most < BOUND


def test_windows_that_meet_can_tell_more_than_both_designs_allow(noise: WindowNoise) -> None:
    """So adding up what is promised of each would be no bound."""
    times = np.arange(-6000.0, 9000.0, 30.0)
    visits = [VisitNoise(0.0, 600.0, noise), VisitNoise(1200.0, 1800.0, noise)]
    assert told_of_one_place(visits, times, np.full(times.size, 9.0), [FLOOR]) > 3 * BOUND


def test_the_slowest_pace_counts_and_windows_that_overlap_are_one(noise: WindowNoise) -> None:
    times = np.arange(-6000.0, 7000.0, 30.0)
    two = [VisitNoise(0.0, 600.0, noise), VisitNoise(500.0, 1100.0, noise)]
    truth = dense(moved(times, [(0.0, 1100.0)]), two, times, 1.0)
    for paces in ([FLOOR], [Movement(3.0, 60.0), FLOOR]):
        most = told_of_one_place(two, times, np.ones(times.size), paces)
        assert truth * (1 - 1e-9) <= most <= 1.1 * truth


@pytest.mark.parametrize("smoothness", [1, 3])
@pytest.mark.parametrize("levels", [0, 1])
def test_under_a_movement_that_returns_to_a_mean(
    noise: WindowNoise, smoothness: int, levels: int
) -> None:
    """Against the prior given that its mean is known: a false track moves all of a window."""
    movement = Matern(smoothness, 900.0, 1500.0, levels)
    kernel = (Matern12 if smoothness == 1 else Matern32)(900.0, 1500.0)
    visits = [VisitNoise(0.0, 600.0, noise), VisitNoise(2400.0, 3000.0, noise)]
    times = np.arange(-6000.0, 9000.0, 20.0)
    total = kernel(times, times) + np.diag(np.full(times.size, 9.0))
    factor = np.hstack([visit.curves(times) for visit in visits])
    precision = np.linalg.inv(kernel(times, times) + 1e-6 * np.eye(times.size))
    noises = np.linalg.inv(total - kernel(times, times) + factor @ factor.T)
    still = np.any([(times >= visit.begin) & (times <= visit.end) for visit in visits], axis=0)
    form = precision + noises
    fixed = form[np.ix_(still, still)].sum()
    across = form[np.ix_(~still, still)].sum(axis=1)
    truth = fixed - across @ np.linalg.solve(form[np.ix_(~still, ~still)], across)
    most = told_of_one_place(visits, times, np.full(times.size, 9.0), [movement])
    counted = most + 1 / movement.alone
    assert truth * (1 - 1e-3) <= counted <= 1.1 * truth


def test_where_nothing_but_windows_is_released_the_noise_alone_counts(noise: WindowNoise) -> None:
    times = np.arange(0.0, 601.0, 10.0)
    most = told_of_one_place(
        [VisitNoise(0.0, 600.0, noise)], times, np.full(times.size, 4.0), [FLOOR]
    )
    value = noise.columns(np.zeros(1), np.zeros(1))[0]
    assert most == pytest.approx(1 / (value @ value + 4.0 / times.size), rel=1e-9)
