"""What visits of one place tell together, against dense algebra in many digits."""

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from trailveil.composition import Release, joint_loss
from trailveil.errors import InvalidValue, Unavailable
from trailveil.kernels import RBF, Constant, IntegratedOU, Kernel, Matern32, StoppedClock, White
from trailveil.mechanism import Mechanism, no_noise
from trailveil.recurring import SAME_PLACE, information, routine
from trailveil.secrets import Secret
from trailveil.ways import Shapes, Way, loss_of_shapes

MOVES = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
SHAPES = Shapes(np.array([0.0, 60.0, 150.0, 300.0, 520.0]))
ROOT = np.asarray(np.linalg.cholesky(400.0**2 * (0.3 * np.ones((4, 4)) + 0.7 * np.eye(4))), float)
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

    Unknowns: p, c, and the places of each ride, whose level is its own; a tie says that a visit is
    at p, to SAME_PLACE. Nothing of trailveil.recurring is used.
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
        gamma = ROOT @ ROOT.T
        shapes = [SHAPES.at(np.array([gap]))[0] for _, _, _, gap in blocks]
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
                if kind == other == "fix":
                    noise = shapes[i] @ gamma @ shapes[k]
                    total += mpmath.mpf(float(noise))
                if i == k:
                    total += mpmath.mpf(SAME_PLACE**2 if kind == "tie" else 4.0)
                matrix[i, k] = total
        left = big - (vector.T * mpmath.lu_solve(matrix, vector))[0]
        return float(1 / left - 1 / big)


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (3,), (0, 1), (0, 1, 2), (1, 1, 3)])
def test_what_visits_tell_together_is_what_one_dense_matrix_says(which: tuple[int, ...]) -> None:
    rides = [RIDES[i] for i in which]
    told = sum(
        information(MOVES, times, visits, SHAPES.design(away(times, visits)))
        for times, visits in rides
    )
    assert loss_of_shapes(np.asarray(told), ROOT)[0] == pytest.approx(brute_force(rides), rel=2e-6)


def test_own_noise_and_a_floor_are_noise_of_one_recording_alone() -> None:
    """Of independent noise, recordings add up: what an average of fuzzed homes learns."""
    times, visits = RIDES[0]
    own = 300.0 * SHAPES.at(away(times, visits))[:, :1]
    ones = np.ones((times.size, 1))
    alone = information(MOVES, times, visits, ones, own, noise=25.0)
    tied = information(MOVES, times, visits, ones, noise=25.0)
    assert 0 < alone[0, 0] < tied[0, 0]
    # The same by the posterior of the place, its ties aside: one visit, where there is none.
    times, visits = RIDES[1]
    mechanism = Mechanism(times + 20.0, 300.0 * SHAPES.at(away(times, visits))[:, :1], 25.0)
    stopped = MOVES.warp(StoppedClock(((0.0, 80.0),)))
    exact = joint_loss(stopped, [Release(mechanism)], Secret.at(0.0)).matrix[0, 0]
    told = information(MOVES, times, visits, np.ones((times.size, 1)), mechanism.factor, noise=25.0)
    # What is told is of the place that visits share, to SAME_PLACE; the level was 100 km.
    assert 1 / told[0, 0] - SAME_PLACE**2 == pytest.approx(1 / (exact + 1e-10), rel=1e-6)


def test_markov_and_full_matrices_agree() -> None:
    times, visits = RIDES[0]
    design = SHAPES.design(away(times, visits))
    smooth = Matern32(200.0, 300.0) + Constant(1e5) + White(2.0)
    by_sweeps = information(smooth, times, visits, design)
    dense = information(smooth + RBF(1e9, 1e-6), times, visits, design)
    assert np.allclose(by_sweeps, dense, rtol=1e-6, atol=1e-9 * np.max(np.abs(by_sweeps)))


@pytest.mark.parametrize("ways", [1, 3])
def test_any_number_of_rides_by_few_ways_tells_no_more_than_the_ways(ways: int) -> None:
    """Rides that follow a way but for what is their own: the dense joint matrix of all of them."""
    times = np.arange(0.0, 900.0, 90.0)
    design = SHAPES.design(times)
    way = Way(MOVES, times, SHAPES)
    moved = IntegratedOU(3.0, 60.0)(times, times)
    bound = loss_of_shapes(ways * way.told, ROOT)[0]

    def loss(rides: int, own: float) -> float:
        same = (np.arange(rides) % ways)[:, None] == np.arange(rides) % ways
        cover = np.kron(same, moved) + own**2 * np.eye(rides * times.size)
        whole = np.tile(design, (rides, 1))
        told = whole.T @ np.linalg.solve(cover, whole)
        return loss_of_shapes((told + told.T) / 2, ROOT)[0]

    for rides, own in ((ways, 5.0), (4 * ways, 5.0), (12 * ways, 40.0)):
        assert loss(rides, own) <= bound * (1 + 1e-9)
    # And they come near it where what is their own averages out.
    assert loss(12 * ways, 0.1) > 0.98 * bound


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
        routine(500.0, 0.5, 60 * 86_400.0) + White(2.0),
        Matern32(600.0, 300.0) + Constant(500.0) + White(2.0),
    ],
    ids=["routine", "shared place"],
)
def test_a_routine_or_a_shared_place_does_not(kernel: Kernel) -> None:
    alone, both = together(kernel)
    assert both > 1.02 * alone


def test_bad_input() -> None:
    times, _ = RIDES[0]
    design = SHAPES.design(times)
    with pytest.raises(InvalidValue, match="got no visit"):
        information(MOVES, times, [], design)
    with pytest.raises(InvalidValue, match="must have 10 rows"):
        information(MOVES, times, [(0.0, 1.0)], design[:3])
    many = np.arange(6000.0)
    with pytest.raises(Unavailable, match="at most 5000 fixes"):
        information(RBF(10.0) + White(1.0), many, [(0.0, 1.0)], np.ones((6000, 1)))
    nothing = information(MOVES, np.empty(0), [(0.0, 1.0)], np.empty((0, 3)))
    assert not nothing.any()
    assert no_noise(times).noise_trace == 0
