"""Noise that all visits of a place share: the least of its shapes, and it holds what it says."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from trailveil.adversaries import Named
from trailveil.demands import Target
from trailveil.designer.shapes import Limit, least_noise
from trailveil.errors import InvalidValue, Refused
from trailveil.kernels import IntegratedOU
from trailveil.place_noise import PlaceNoise, place_noise
from trailveil.request import DEFAULT_KERNEL, Request
from trailveil.ways import Shapes, Way, loss_of_shapes, movement, seconds_to

PLAIN = (Named.PLAIN,)
REQUEST, WAYS = Request((), radius=300.0), 2
TARGET = Target(REQUEST.bound, REQUEST.who)


@pytest.fixture(scope="module")
def noise() -> PlaceNoise:
    return place_noise(DEFAULT_KERNEL, TARGET, WAYS)


def test_shapes_add_up_to_one_near_the_place_and_fade() -> None:
    shapes = Shapes(np.array([0.0, 15.0, 40.0, 80.0, 150.0, 300.0, 600.0]))
    away = np.linspace(0.0, 80.0, 50)
    assert np.allclose(shapes.at(away).sum(axis=1), 1.0)
    assert np.all(shapes.at(np.array([600.0, 601.0, np.inf])) == 0)
    sums = shapes.at(np.linspace(0, 700, 300)).sum(axis=1)
    assert np.all(np.diff(sums) < 1e-12)
    assert np.allclose(shapes.design(away)[:, 0], 0.0)


def test_seconds_to_the_nearest_visit() -> None:
    times = np.array([0, 5, 10, 15, 40], dtype=np.int64) * 10**9
    found = seconds_to(times, [(5 * 10**9, 10 * 10**9), (35 * 10**9, 36 * 10**9)])
    assert found.tolist() == [5.0, 0.0, 0.0, 5.0, 4.0]


def test_the_loss_of_shapes_is_that_of_the_joint_law_and_falls_as_is_said() -> None:
    rng = np.random.default_rng(3)
    times = np.arange(0.0, 900.0, 30.0)
    shapes = Shapes(np.array([0.0, 60.0, 200.0, 500.0, 900.0]))
    way = Way(DEFAULT_KERNEL, times, shapes)
    root = np.tril(rng.normal(size=(4, 4))) * 100 + 300 * np.eye(4)
    gamma = root @ root.T
    loss, fall = loss_of_shapes(way.told, root)
    # Given p, what is released has this covariance: the information on p is 1^T C^-1 1.
    shape = shapes.at(times)
    cover = movement(DEFAULT_KERNEL, times) + 0.05**2 * np.eye(times.size) + shape @ gamma @ shape.T
    assert loss == pytest.approx(np.sum(np.linalg.solve(cover, np.ones(times.size))), rel=1e-6)
    change = rng.normal(size=(4, 4))
    change = change + change.T
    step = 1e-3 * np.linalg.norm(gamma)
    after = loss_of_shapes(way.told, np.asarray(np.linalg.cholesky(gamma + step * change), float))[
        0
    ]
    before = loss_of_shapes(way.told, np.asarray(np.linalg.cholesky(gamma - step * change), float))[
        0
    ]
    assert (after - before) / (2 * step) == pytest.approx(-fall @ change @ fall, rel=1e-3)


def test_who_knows_places_besides_is_one_law_of_more_rows() -> None:
    """Given p, fixes and known places are Gaussian: the information on p is 1^T C^-1 1."""
    times = np.arange(0.0, 1200.0, 20.0)
    shapes = Shapes(np.array([0.0, 60.0, 200.0, 500.0, 1200.0]))
    way = Way(DEFAULT_KERNEL, times, shapes)
    root = 300 * np.eye(4) + 50 * np.tril(np.ones((4, 4)))

    def told(known: np.ndarray, accuracy: float) -> tuple[float, float]:
        rows = np.concatenate([times, known])
        shape = np.vstack([shapes.at(times) @ root, np.zeros((known.size, 4))])
        own = np.where(np.arange(rows.size) < times.size, 0.05**2, accuracy**2)
        cover = movement(DEFAULT_KERNEL, rows) + np.diag(own)
        alone = cover[times.size :, times.size :]
        whole = np.linalg.solve(cover + shape @ shape.T, np.ones(rows.size)).sum()
        return float(whole), float(np.linalg.solve(alone, np.ones(known.size)).sum())

    some = times[[3, 10, 40]]
    for moment, found in zip(some, way.told_with_points(some, 10.0), strict=True):
        exact, before = told(np.array([moment]), 10.0)
        assert loss_of_shapes(found[0], root)[0] == pytest.approx(exact, rel=1e-6)
        assert found[1] == pytest.approx(before, rel=1e-9)
    path, before = way.told_with_path(300.0, 10.0)
    exact, known = told(times[times >= 300.0], 10.0)
    assert loss_of_shapes(path, root)[0] == pytest.approx(exact, rel=1e-6)
    assert before == pytest.approx(known, rel=1e-9)


def test_the_least_noise_is_that_of_a_conic_solver() -> None:
    """min tr(C Gamma) so that Var(p | all) >= 1 / most: a linear matrix inequality."""
    times = np.arange(0.0, 1500.0, 50.0)
    shapes = Shapes(np.array([0.0, 100.0, 300.0, 700.0, 1500.0]))
    slow = IntegratedOU(1.0, 60.0)
    unit = 300.0
    ways = [Way(DEFAULT_KERNEL, times, shapes), Way(slow, times, shapes)]
    limits = [Limit(unit**2 * one.told, unit**2 / 250.0**2) for one in ways]
    cost = np.diag([1.0, 1.0, 2.0, 3.0])
    root = least_noise(cost, limits, 20 * np.eye(4))
    gamma = cp.Variable((4, 4), PSD=True)
    bounds = []
    for one in ways:
        cover = movement(one.kernel, times) + 0.05**2 * np.eye(times.size)
        shape, ones = shapes.at(times), np.ones((times.size, 1))
        whole = (cover / unit**2) + shape @ gamma @ shape.T
        # 1^T whole^-1 1 <= most, by Schur.
        most = unit**2 / 250.0**2
        bounds.append(cp.bmat([[whole, ones], [ones.T, np.array([[most]])]]) >> 0)
    problem = cp.Problem(cp.Minimize(cp.trace(cost @ gamma)), bounds)
    problem.solve(solver=cp.CLARABEL)
    ours = float(np.sum(cost * (root @ root.T)))
    assert problem.value * (1 - 1e-4) <= ours <= problem.value * 1.005
    for limit in limits:
        assert loss_of_shapes(limit.told, root)[0] <= limit.most


def test_everybody_is_left_with_what_was_asked_for(noise: PlaceNoise) -> None:
    """On a grid of its own, at other times than noise was designed and judged at."""
    bound = REQUEST.bound
    assert max(one.loss for one in noise.left) <= bound
    assert max(one.loss for one in noise.left) > 0.97 * bound
    rng = np.random.default_rng(5)
    times = np.sort(np.concatenate([rng.uniform(0, 900, 500), rng.uniform(900, 50_000, 900)]))
    for kernel in (DEFAULT_KERNEL, IntegratedOU(1.0, 60.0), IntegratedOU(10.0, 60.0)):
        way = Way(kernel, times, noise.shapes)
        assert loss_of_shapes(WAYS * way.told, noise.root)[0] <= bound
    every = [one for one in way_with_points(noise, times) if one > 0]
    assert max(every) <= bound


def way_with_points(noise: PlaceNoise, times: np.ndarray) -> list[float]:
    way = Way(DEFAULT_KERNEL, times, noise.shapes)
    some = times[times >= 60.0][::50]
    return [
        loss_of_shapes(WAYS * told, noise.root)[0] - WAYS * known
        for told, known in way.told_with_points(some, 10.0)
    ]


def test_noise_is_full_at_the_place_and_nothing_beyond_its_reach(noise: PlaceNoise) -> None:
    sizes = np.linalg.norm(noise.at(np.array([0.0, 600.0, 3600.0, noise.reach, np.inf])), axis=1)
    assert np.all(np.diff(sizes) <= 0)
    assert sizes[0] == noise.std > 474.0
    assert sizes[-2] == sizes[-1] == 0.0


def test_more_ways_take_more_and_withholding_takes_less() -> None:
    target = replace(TARGET, who=PLAIN)
    one, four = (place_noise(DEFAULT_KERNEL, target, ways) for ways in (1, 4))
    assert four.at(np.array([1800.0])).std() > one.at(np.array([1800.0])).std()
    held = place_noise(DEFAULT_KERNEL, target, 1, withhold=600.0)
    assert np.linalg.norm(held.at(np.array([900.0]))) < np.linalg.norm(one.at(np.array([0.0])))


def test_two_designs_are_one() -> None:
    target = replace(TARGET, who=PLAIN)
    one, other = (place_noise(DEFAULT_KERNEL, target, 2) for _ in range(2))
    assert np.array_equal(one.root, other.root)


def test_bad_input() -> None:
    with pytest.raises(InvalidValue, match=r"ways must be in 1\.\.50, got 0"):
        place_noise(DEFAULT_KERNEL, TARGET, 0)
    with pytest.raises(InvalidValue, match="must have an epsilon"):
        place_noise(DEFAULT_KERNEL, replace(TARGET, left=500.0))
    for silence in (0.0, -1.0, 1e5):
        with pytest.raises(InvalidValue, match="withhold less"):
            place_noise(DEFAULT_KERNEL, TARGET, 1, silence)
    with pytest.raises(Refused, match="fewer ways"):
        place_noise(DEFAULT_KERNEL, TARGET, 50)
