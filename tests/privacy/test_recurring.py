"""What a recording tells of a place that it visits, against dense algebra in many digits."""

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Unavailable
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Periodic,
    StoppedClock,
    White,
)
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.recurring import SAME_PLACE, information
from trailveil.privacy.secrets import Secret

MOVES = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
WEEK = 7 * 86_400.0

# (times of fixes, visits): both ends; one end; in the middle; a visit before the recording.
RIDES = [
    (np.arange(0.0, 900.0, 90.0), [(0.0, 80.0), (820.0, 810.0 + 90.0)]),
    (np.arange(0.0, 700.0, 70.0), [(-20.0, 60.0)]),
    (np.arange(0.0, 800.0, 100.0), [(300.0, 420.0)]),
    (np.arange(100.0, 700.0, 75.0), [(-400.0, -100.0)]),
]


def away(times: NDArray[np.float64], visits: list[tuple[float, float]]) -> NDArray[np.float64]:
    gaps = [np.maximum(np.maximum(a - times, times - b), 0.0) for a, b in visits]
    return np.asarray(np.min(gaps, axis=0))


def noise_at(away: NDArray[np.float64]) -> NDArray[np.float64]:
    """The factor of a recording's noise, at so many seconds from the nearest visit."""
    return np.stack([300 * np.exp(-((away / 250) ** 2)), 200 * np.exp(-((away / 90) ** 2))], axis=1)


def exact(a: float, b: float) -> mpmath.mpf:
    """The covariance of the movement at two times, 3 m/s and 60 s."""
    tau, v, e = mpmath.mpf(60), mpmath.mpf(3), mpmath.e
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    faded = e ** (-a / tau) + e ** (-b / tau) - e ** (-abs(a - b) / tau)
    return v**2 * tau * (2 * min(a, b) - tau * (1 - faded))


def brute_force(
    rides: list[tuple[NDArray[np.float64], list[tuple[float, float]]]], level: float = 1e9
) -> float:
    """1 / Var(p | all releases, all ties) - 1 / level^2, by one dense matrix in 60 digits.

    Unknowns: p, and the places of each ride, whose level and noise are its own; a tie says that a
    visit is at p, to SAME_PLACE. Nothing of trailveil.privacy.recurring is used.
    """
    with mpmath.workdps(60):
        blocks: list[tuple[str, int, float, float]] = []  # (kind, ride, clock time, away)
        clocks = [
            StoppedClock(tuple((a - s, b - s) for a, b in v))
            for t, v in rides
            for s in [min(t[0], v[0][0])]
        ]
        for number, (times, visits) in enumerate(rides):
            start = min(times[0], visits[0][0])
            blocks += [
                ("fix", number, float(clocks[number](np.array(t - start))), float(gap))
                for t, gap in zip(times, away(times, visits), strict=True)
            ]
            blocks += [
                ("tie", number, float(clocks[number](np.array(a - start))), 0.0) for a, _ in visits
            ]
        shapes = [noise_at(np.array([gap]))[0] for _, _, _, gap in blocks]
        size, big = len(blocks), mpmath.mpf(level) ** 2
        matrix, vector = mpmath.matrix(size), mpmath.matrix(size, 1)
        for i, (kind, ride, time, _) in enumerate(blocks):
            # A tie observes p less the place of the visit: 0, give or take a metre.
            vector[i] = big if kind == "tie" else 0
            for k, (other, its, then, _) in enumerate(blocks):
                total = mpmath.mpf(0)
                if ride == its:
                    sign = (-1 if kind == "tie" else 1) * (-1 if other == "tie" else 1)
                    total += sign * (exact(time, then) + big)
                if kind == other == "tie":
                    total += big
                if kind == other == "fix" and ride == its:
                    total += mpmath.mpf(float(shapes[i] @ shapes[k]))
                if i == k:
                    total += mpmath.mpf(SAME_PLACE**2 if kind == "tie" else 4.0)
                matrix[i, k] = total
        posterior = big - (vector.T * mpmath.lu_solve(matrix, vector))[0]
        return float(1 / posterior - 1 / big)


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (3,), (0, 1), (0, 1, 2), (1, 1, 3)])
def test_what_visits_tell_together_is_what_one_dense_matrix_says(which: tuple[int, ...]) -> None:
    rides = [RIDES[i] for i in which]
    total = sum(
        information(MOVES, times, visits, noise_at(away(times, visits))) for times, visits in rides
    )
    assert total == pytest.approx(brute_force(rides), rel=2e-6)


def test_own_noise_and_a_floor_are_noise_of_one_recording_alone() -> None:
    """Of independent noise, recordings add up: what an average of fuzzed homes learns."""
    times, visits = RIDES[0]
    column = noise_at(away(times, visits))[:, :1]
    alone = information(MOVES, times, visits, column, noise=25.0)
    assert 0 < alone < information(MOVES, times, visits, column[:, :0], noise=25.0)
    # The same by the posterior of the place, its ties aside: one visit, where there is none.
    times, visits = RIDES[1]
    mechanism = Mechanism(times + 20.0, noise_at(away(times, visits)), 25.0)
    stopped = MOVES.warp(StoppedClock(((0.0, 80.0),)))
    exact = joint_loss(stopped, [Release(mechanism)], Secret.at(0.0)).matrix[0, 0]
    gained = information(MOVES, times, visits, mechanism.factor, noise=25.0)
    # What is told is of the place that visits share, to SAME_PLACE; the level was 100 km.
    assert 1 / gained - SAME_PLACE**2 == pytest.approx(1 / (exact + 1e-10), rel=2e-5)


def test_markov_and_full_matrices_agree() -> None:
    times, visits = RIDES[0]
    factor = noise_at(away(times, visits))
    smooth = Matern32(200.0, 300.0) + Constant(1e5) + White(2.0)
    by_sweeps = information(smooth, times, visits, factor)
    dense = information(smooth + RBF(1e9, 1e-6), times, visits, factor)
    assert dense == pytest.approx(by_sweeps, rel=1e-6)


def release(start: float, std: float) -> Release:
    times = start + np.arange(0.0, 600.0, 100.0)
    column = std * np.exp(-(((times - start) / 250.0) ** 2))
    return Release(Mechanism(times, column[:, None], 1.0), f"ride of {start:g}")


def together(kernel: Kernel) -> tuple[float, float]:
    """The loss of a place of the first ride, alone and with a ride a week later."""
    rides = [release(0.0, 300.0), release(WEEK, 200.0)]
    alone = joint_loss(kernel, rides[:1], Secret.at(0.0)).matrix[0, 0]
    return alone, joint_loss(kernel, rides, Secret.at(0.0)).matrix[0, 0]


def test_a_week_apart_a_prior_that_forgets_composes_as_independent() -> None:
    alone, both = together(Matern32(600.0, 500.0) + White(2.0))
    assert both == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        Periodic(0.5, 86_400.0, 500.0) * Matern12(60 * 86_400.0, 1.0) + White(2.0),
        Matern32(600.0, 300.0) + Constant(500.0) + White(2.0),
    ],
    ids=["routine", "shared place"],
)
def test_a_routine_or_a_shared_place_does_not(kernel: Kernel) -> None:
    alone, both = together(kernel)
    assert both > 1.02 * alone


def test_bad_input() -> None:
    times, _ = RIDES[0]
    factor = noise_at(times)
    with pytest.raises(InvalidValue, match="got no visit"):
        information(MOVES, times, [], factor)
    with pytest.raises(InvalidValue, match="must have 10 rows"):
        information(MOVES, times, [(0.0, 1.0)], factor[:3])
    many = np.arange(6000.0)
    with pytest.raises(Unavailable, match="at most 5000 fixes"):
        information(RBF(10.0) + White(1.0), many, [(0.0, 1.0)], np.ones((6000, 1)))
    assert information(MOVES, np.empty(0), [(0.0, 1.0)], np.empty((0, 3))) == 0
