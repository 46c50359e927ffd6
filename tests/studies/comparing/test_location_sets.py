"""Planar isotropic noise: the K-norm mechanism in the sensitivity hull. False alarms: 1e-4 each."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.stats import gamma, kstest

from tests.studies.comparing.cases import drawn, random
from trailveil.studies.comparing.cases import Sighting
from trailveil.studies.comparing.location_sets import (
    Hull,
    _corners,
    _location_set,
    _mean_square,
    planar_isotropic,
)

PLACES = 100.0 * np.array([[0, 0], [3, 0], [3, 1], [0, 2], [1, 1], [5, 1]], dtype=float)


def test_the_hull_holds_all_differences_and_no_more() -> None:
    hull = Hull.of_differences(PLACES)
    apart = (PLACES[:, None] - PLACES).reshape(-1, 2)
    by_scipy = ConvexHull(apart)
    assert hull.norm(apart).max() == pytest.approx(1.0)
    assert hull.triangles.sum() / 2 == pytest.approx(by_scipy.volume)
    assert {tuple(corner) for corner in hull.corners} == {
        tuple(corner) for corner in apart[by_scipy.vertices]
    }


@pytest.mark.parametrize("seed", range(5))
def test_corners_are_those_of_another_algorithm(seed: int) -> None:
    places = np.round(np.random.default_rng(seed).normal(0, 4, (300, 2)))
    places = np.unique(places, axis=0)
    found = _corners(places)
    expected = places[ConvexHull(places).vertices]
    assert {tuple(p) for p in found} == {tuple(p) for p in expected}


def test_noise_has_a_k_norm_of_gamma_law() -> None:
    hull = Hull.of_differences(PLACES)
    noise = hull.noise(random("k-norm"), 0.5, 20_000)
    # Of density exp(-epsilon |z|_K) in the plane: |z|_K has Gamma(2, 1 / epsilon).
    assert kstest(hull.norm(noise), gamma(2, scale=2.0).cdf).pvalue > 1e-4
    assert np.mean(np.sum(noise**2, axis=1)) == pytest.approx(
        12 / 0.5**2 * _mean_square(hull), rel=0.05
    )


def test_no_two_places_of_the_set_are_told_apart_by_more_than_epsilon() -> None:
    hull, epsilon = Hull.of_differences(PLACES), 0.7
    released = random("released").normal(0, 400, (2000, 2))
    logs = -epsilon * hull.norm(released[:, None] - PLACES)
    assert np.ptp(logs, axis=1).max() <= epsilon * (1 + 1e-12)


def test_points_are_drawn_evenly_from_the_hull() -> None:
    hull = Hull.of_differences(PLACES)
    points = hull.drawn(random("even"), 20_000)
    assert hull.norm(points).max() <= 1.0 + 1e-12
    # Even points: the area within a norm of x is x^2 of all.
    assert kstest(hull.norm(points) ** 2, "uniform").pvalue > 1e-4


def test_places_on_a_line_have_a_thin_hull() -> None:
    hull = Hull.of_differences(np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]]))
    assert hull.norm(np.array([200.0, 0.0])) == pytest.approx(1.0)
    assert np.isfinite(hull.noise(random("line"), 1.0, 10)).all()


def test_the_location_set_is_the_least_of_its_share() -> None:
    prior = np.array([0.05, 0.4, 0.3, 0.2, 0.05])
    assert _location_set(prior, 0.15).tolist() == [1, 2, 3]
    assert _location_set(prior, 0.5).tolist() == [1, 2]


def test_a_larger_epsilon_is_nearer_and_a_tiny_one_is_far() -> None:
    (case,) = drawn(1)

    def off(epsilon: float) -> float:
        released = planar_isotropic(case, random("off"), epsilon=epsilon)
        sighting = Sighting.of(case, released)
        return float(np.sqrt(np.mean(np.sum((sighting.metres - case.metres) ** 2, axis=1))))

    assert off(20.0) < 250.0 < off(0.5)
    released = planar_isotropic(case, random("off"), epsilon=1.0)
    assert released.noise is not None
    # Of 131 fixes, of dependent sizes: a factor of two is no chance.
    promised = np.sqrt(2 * released.noise.variances.mean())
    assert 0.5 < off(1.0) / promised < 2.0
