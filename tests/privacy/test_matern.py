"""Matern movement: what a false track costs, what is known of a place; exactly, and in floats."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.linalg import solve_triangular

from tests.oracles.dense_movement import MP, Returning, Rows, variance_of
from trailveil.designer.window import window_noise
from trailveil.errors import InvalidValue, Refused
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)
from trailveil.privacy.checker import check
from trailveil.privacy.exact import ExactMovement
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import ACCURACY, Knowledge
from trailveil.privacy.movement import Matern, Movement, movement_of

KNOTS = Knots((0, 20, 60, 170, 400))
STD, LENGTH, WINDOW = 300.0, 200.0, 90.0
BOUND = 1e-5


def curve(seed: int, smoothness: int) -> tuple[Rows, CubicHermiteSpline]:
    """The coefficients of one side of a false track, and the track."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=KNOTS.size) * np.where(np.arange(KNOTS.size) % 2, 1, 0.02)
    w[0] = 1.0
    if smoothness == 1:
        w[1:] *= 0.5
    whole = np.array([w[0], 0.0, *w[1:], 0.0, 0.0])
    return w, CubicHermiteSpline(np.array(KNOTS.seconds, float), whole[::2], whole[1::2])


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize(("smoothness", "step"), [(1, 0.5), (3, 2.0)])
def test_a_cost_is_that_of_the_innovations(smoothness: int, step: float, sides: int) -> None:
    """phi^T Sigma^-1 phi on a fine grid of places and velocities, with the window: see Returning.

    Between grid points the cheapest movement is taken, so it is below the integral, by little.
    """
    w, phi = curve(3, smoothness)
    out, inside = np.arange(0, 400 + step, step), np.arange(0, WINDOW, 10.0)[1:]
    times = np.unique(np.hstack([-WINDOW - out if sides == 2 else -WINDOW, -inside, out]))
    motion = Returning(times, smoothness, STD, LENGTH)
    away = np.maximum(np.maximum(times, -WINDOW - times), 0.0)
    rows, values = motion.position(*times), phi(away)
    if smoothness == 3:
        rows = np.vstack([rows, motion.velocity(*times)])
        signs = np.where(times < 0, -1.0, 1.0) * (away > 0)
        values = np.hstack([values, signs * phi.derivative()(away)])
    root = np.linalg.qr(rows.T, mode="r")  # Sigma = R^T R
    drawn = solve_triangular(root, values, trans="T")
    movement = Matern(smoothness, STD, LENGTH, 0)
    expected = sides * float(w @ movement.cost(KNOTS) @ w) + movement.inside(WINDOW, sides)
    assert 0.998 * expected < drawn @ drawn < expected * (1 + 1e-9)


@pytest.mark.parametrize("smoothness", [1, 3])
def test_a_cost_is_the_integral_of_its_operator_and_what_is_told_at_the_edge(
    smoothness: int,
) -> None:
    """(d/dt + rate)^k phi, squared and integrated by nodes, and 1 / std^2 where phi begins."""
    w, phi = curve(4, smoothness)
    movement = Matern(smoothness, STD, LENGTH, 0)
    rate = math.sqrt(smoothness) / LENGTH
    total, (nodes, shares) = 1 / STD**2, np.polynomial.legendre.leggauss(8)
    for a, b in zip(KNOTS.seconds, KNOTS.seconds[1:], strict=False):
        u = (a + b) / 2 + (b - a) / 2 * nodes
        if smoothness == 1:
            values, unit = phi(u, 1) + rate * phi(u), 2 * rate * STD**2
        else:
            values = phi(u, 2) + 2 * rate * phi(u, 1) + rate**2 * phi(u)
            unit = 4 * rate**3 * STD**2
        total += (b - a) / 2 * float(shares @ values**2) / unit
    expected = float(w @ movement.cost(KNOTS) @ w) + movement.inside(0.0, 1)
    assert total == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("smoothness", [1, 3])
@pytest.mark.parametrize("away", [5.0, 60.0, 300.0, 4000.0])
def test_what_is_known_is_dense_conditioning(smoothness: int, levels: int, away: float) -> None:
    """Given the velocity of the place, and another place; or the path and the mean."""
    motion = Returning([-away, 0.0, away], smoothness, STD, LENGTH, 1e6 * levels)
    secret = np.hstack([motion.position(0.0)[0], 0.0])
    place = np.hstack([motion.position(away), [[ACCURACY]]])
    speed = np.hstack([motion.velocity(0.0), [[0.0]]])
    posterior = variance_of(secret, 0.0, np.vstack([place, speed]), np.zeros(2))
    movement = Matern(smoothness, STD, LENGTH, levels)
    who = Knowledge("who", movement, place=1)
    assert who.variance(1, away) == pytest.approx(posterior, rel=1e-6 if levels else 1e-9)
    assert who.variance(2, away) == who.variance(1, away)
    assert who.variance(2) == (math.inf if levels else pytest.approx(STD**2))
    known = Returning([-away, 0.0, away], smoothness, STD, LENGTH)
    for sides in (1, 2):
        at = [away, -away][:sides]
        rows = np.vstack([known.velocity(0.0), known.position(*at), known.velocity(*at)])
        posterior = variance_of(known.position(0.0)[0], 0.0, rows, np.zeros(len(rows)))
        closed = Knowledge("who", movement, path=int(away)).variance(sides)
        assert closed == pytest.approx(posterior, rel=1e-8)


TIMES = [1e-3, 0.1, 1.0, 20.0, 60.0, 119.0, 240.0, 1000.0, 3600.0, 86_400.0, 1e6]


def in_digits(smoothness: int, levels: int, seconds: float, sides: int) -> tuple[Any, Any]:
    """P given a place, and the path, in 50 digits: by Schur complements of covariances."""
    rate, s = MP.sqrt(smoothness) / MP.mpf(LENGTH), MP.mpf(STD)
    z = rate * MP.mpf(seconds)
    f = MP.exp(-z)
    smooth = smoothness == 3
    k, v = ((1 + z) * f, z * f) if smooth else (f, MP.mpf(0))
    error = (MP.mpf(ACCURACY) / s) ** 2
    place = 2 - 2 * k - v**2 + error if levels else 1 - k**2 / (1 - v**2 + error)
    ends = [1, -1][:sides]
    # Values at the ends; with a velocity, they and the own velocity, in units of the rate.
    names = [(end, kind) for end in ends for kind in range(1 + smooth)] + [(0, 1)] * smooth

    def covariance(a: tuple[int, int], b: tuple[int, int]) -> Any:
        lag = z * (b[0] - a[0])
        x, fade = abs(lag), MP.exp(-abs(lag))
        if a[1] == b[1] == 0:
            return (1 + x) * fade if smooth else fade
        if a[1] == b[1]:
            return (1 - x) * fade
        return lag * fade * (1 if a[1] else -1)

    matrix = MP.matrix([[covariance(a, b) for b in names] for a in names])
    cross = MP.matrix([covariance((0, 0), b) for b in names])
    path = 1 - (cross.T * MP.lu_solve(matrix, cross))[0]
    return s**2 * place, s**2 * path


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("smoothness", [1, 3])
def test_exact_bounds_hold_the_truth_between_them(smoothness: int, levels: int, sides: int) -> None:
    """Rational bounds, and floats, from a millisecond to days."""
    movement = Matern(smoothness, STD, LENGTH, levels)
    names = ("smoothness", "std", "length_scale", "levels")
    stated = {name: getattr(movement, name) for name in names}
    exact = ExactMovement({**stated, "seconds": WINDOW}, sides)
    for seconds in TIMES:
        place, path = in_digits(smoothness, levels, seconds, sides)
        at = Fraction(seconds)
        accuracy, both = Fraction(ACCURACY), (False, True)
        places = [exact.given_place(at, accuracy, above=above) for above in both]
        paths = [exact.given_path(at, above=above) for above in both]
        # Within a second the determinants of the oracle lose too many digits.
        for value, bounds, near in ((place, places, 1e-30), (path, paths, 1e-15)):
            low, high = (MP.mpf(x.numerator) / x.denominator for x in bounds)
            if seconds >= 1:
                assert low <= value * (1 + MP.mpf("1e-28"))
                assert high >= value * (1 - MP.mpf("1e-28"))
                assert abs(high / low - 1) < near
        assert movement.given_place(seconds, ACCURACY) == pytest.approx(float(place), rel=1e-11)
        if seconds >= 1:
            assert movement.given_path(seconds, sides) == pytest.approx(float(path), rel=1e-11)
    costs = movement.coefficients()
    for mine, its in zip(costs, exact.costs, strict=True):
        assert float(its) == pytest.approx(mine, rel=1e-14)
    rate = MP.sqrt(smoothness) / LENGTH
    truth = [rate, 1 / rate, 0] if smoothness == 1 else [rate / 2, 1 / rate, 1 / rate**3 / 2]
    for its, value in zip(exact.costs, truth, strict=True):
        at_least = value / 2 / MP.mpf(STD) ** 2
        assert MP.mpf(its.numerator) / its.denominator >= at_least * (1 - MP.mpf("1e-45"))
    assert float(exact.inside) == pytest.approx(movement.inside(WINDOW, sides), rel=1e-14)


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("smoothness", [1, 3])
def test_what_is_known_falls_with_time(smoothness: int, levels: int) -> None:
    """The checker takes P to grow, up to that of the mean."""
    movement = Matern(smoothness, STD, LENGTH, levels)
    at = np.arange(1.0, 3000.0, 3.0)
    for sides in (1, 2):
        values = np.array([movement.given_path(x, sides) for x in at])
        assert np.all(np.diff(values) > -1e-12 * STD**2)
        assert values[-1] == pytest.approx(STD**2)
    values = np.array([movement.given_place(x, ACCURACY) for x in at])
    assert np.all(np.diff(values) > -1e-12 * STD**2)
    assert values[-1] == pytest.approx(2 * STD**2 + 100 if levels else STD**2)


LEVEL, NOISE = Constant(1e5), White(2.0)


def test_a_prior_is_the_movement_that_it_states() -> None:
    assert movement_of(IntegratedOU(3.0, 60.0) + LEVEL + NOISE) == Movement(3.0, 60.0)
    assert movement_of(Matern12(200.0, 300.0) + NOISE) == Matern(1, 300.0, 200.0, 0)
    assert movement_of(NOISE + Matern32(200.0, 300.0) + LEVEL) == Matern(3, 300.0, 200.0, 1)


@pytest.mark.parametrize(
    "kernel",
    [
        IntegratedOU(3.0, 60.0),
        RBF(200.0, 300.0) + LEVEL,
        Matern52(200.0, 300.0) + LEVEL,
        Matern32(200.0, 300.0) + Matern12(20.0, 30.0),
        Matern32(200.0, 300.0) + Periodic(1.0, 3600.0, 30.0),
        Matern32(200.0, 300.0) * 2.0,
        LEVEL + NOISE,
    ],
)
def test_other_priors_are_refused(kernel: Kernel) -> None:
    with pytest.raises(Refused, match="must be one integrated-ou with a level, or one matern12"):
        movement_of(kernel)


@pytest.mark.parametrize(
    "numbers", [(5, 1.0, 1.0, 0), (3, 0.0, 1.0, 0), (3, 1.0, math.inf, 0), (3, 1.0, 1.0, 2)]
)
def test_numbers_out_of_range_are_refused(numbers: tuple[int, float, float, int]) -> None:
    with pytest.raises(InvalidValue, match="must be"):
        Matern(*numbers)


@pytest.fixture(scope="module", params=[(1, 0), (3, 1)], ids=["Matern 1/2", "Matern 3/2, level"])
def honest(request: pytest.FixtureRequest) -> dict[str, Any]:
    movement = Matern(request.param[0], 1000.0, 300.0, request.param[1])
    who = [Knowledge("place", movement, place=60), Knowledge("path", movement, path=240)]
    proof = window_noise(120.0, 2, who, BOUND).proof
    assert check(proof) == []
    return proof


FAULTS: dict[str, Any] = {
    "smaller": {"std": 950.0},
    "no size": {"std": 0.0},
    "longer window": {"seconds": 3000.0},
    "no window": {"seconds": None},
    "negative window": {"seconds": -1e6},
    "other smoothness": {"smoothness": 5},
    "a level of two": {"levels": 2},
    "half a level": {"levels": 0.5},
    "longer length": {"length_scale": 600.0},
    "negative length": {"length_scale": -300.0},
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_rejected(honest: dict[str, Any], name: str) -> None:
    design = {
        **honest,
        "adversaries": [{**adversary, **FAULTS[name]} for adversary in honest["adversaries"]],
    }
    assert check(design)
