"""Noise around a window: its figures, its laws, and why false tracks have no kink."""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.interpolate import CubicHermiteSpline
from scipy.linalg import block_diag

from tests.conftest import Sweep
from tests.oracles.dense_movement import Law, released
from trailveil.designer.ellipsoid import Limit, smallest_ellipsoid
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.table import shaped_for
from trailveil.designer.window import window_noise
from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.checker import check
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.movement import Movement
from trailveil.release.request import Request
from trailveil.traces.activities import ACTIVITIES

# 316.2 m must be left: a radius of 200 m, epsilon 1, order 5.
BOUND = 1e-5
WALK, RIDE = Movement(1.0, 60.0), Movement(3.0, 60.0)
USUAL = Request(stretches=(), radius=200.0, floor=WALK.speed).adversaries


designed = lru_cache(window_noise)


def energy(noise: WindowNoise, seconds: float) -> float:
    """The integral of the variance over all time, m^2 s, by sums a second apart."""
    away = np.arange(0.5, noise.knots.end, 1.0)
    factor = noise.columns(0 * away, away)
    inside = seconds * float(np.sum(noise.columns(np.zeros(1), np.zeros(1)) ** 2))
    sides = 1 if noise.odd is None else 2
    return sides * float(np.sum(factor**2)) + inside


def stranger(movement: Movement = WALK, steady: int = 0) -> Knowledge:
    return Knowledge("a stranger", movement, steady=steady)


@pytest.mark.parametrize(
    ("seconds", "who", "hours", "metres"),
    [
        (0.0, [stranger(RIDE)], 3000 / 3600, 137.2),
        (0.0, [stranger()], 1, 317),
        (600.0, [stranger()], 1, 366),
        (720.0, [stranger()], 1, 377),
        (0.0, [stranger(steady=300)], 1, 365),
        (720.0, USUAL, 1, 504),
        (120.0, USUAL, 1, 430),
    ],
    ids=["ride", "walk", "stay", "uncertain", "steady", "usual stay", "usual time"],
)
def test_how_much_noise_it_takes(
    seconds: float, who: Sequence[Knowledge], hours: float, metres: float
) -> None:
    """Root mean square over an hour, were all noise in it: the first five were found elsewhere."""
    noise = designed(seconds, 2, tuple(who), BOUND)
    assert (energy(noise, seconds) / hours / 3600) ** 0.5 == pytest.approx(metres, rel=0.02)
    assert 0 <= noise.gap < 0.01
    assert check(noise.proof) == []


def test_noise_is_the_same_all_over_the_window_and_ends() -> None:
    noise = window_noise(600.0, 2, [stranger()], BOUND)
    before = np.array([0.0, 0.0, 7.0, 0.0, 5100.0, 0.0])
    after = np.array([0.0, 0.0, 0.0, 7.0, 0.0, 9999.0])
    rows = noise.columns(before, after)
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not rows[4:].any()
    covariance = rows @ rows.T
    assert covariance[2, 2] == pytest.approx(covariance[3, 3], rel=1e-12)
    assert covariance[2, 3] < covariance[2, 2]


def test_metres_and_speeds_scale_together() -> None:
    """Three times as far and as fast takes nine times the variance."""
    small = window_noise(120.0, 2, [stranger(), Knowledge("path", RIDE, path=300)], BOUND)
    faster = [stranger(Movement(3.0, 60.0)), Knowledge("path", Movement(9.0, 60.0), path=300)]
    large = window_noise(120.0, 2, faster, BOUND / 9)
    ratio = energy(large, 120.0) / energy(small, 120.0)
    assert ratio == pytest.approx(9, rel=max(small.gap, large.gap) + 1e-6)


def test_noise_grows_with_what_is_asked_and_with_adversaries() -> None:
    def found(*who: Knowledge, bound: float = BOUND, sides: int = 2) -> float:
        return energy(designed(120.0, sides, who, bound), 120.0)

    path = Knowledge("path", RIDE, path=300)
    alone, steady, slack = found(stranger()), found(stranger(steady=240)), 1.005
    assert alone < steady < slack * found(stranger(steady=240), path) < slack**2 * found(*USUAL)
    assert found(stranger(), bound=2 * BOUND) < 0.6 * alone
    assert found(stranger(RIDE)) < alone < found(stranger(Movement(0.8, 60.0)))
    assert found(stranger(), sides=1) < alone


def test_noise_at_an_end_is_on_one_side() -> None:
    noise = window_noise(120.0, 1, [stranger(), Knowledge("path", RIDE, path=300)], BOUND)
    assert noise.odd is None
    assert noise.gap < 0.01
    assert check(noise.proof) == []
    away = np.array([0.0, 30.0, 700.0, 5100.0])
    np.testing.assert_array_equal(noise.columns(away, 0 * away), noise.columns(0 * away, away))


def test_numbers_have_few_digits() -> None:
    """The fractions that the checker reckons with are short."""
    proof = window_noise(120.0, 2, [stranger()], BOUND).proof
    for row in proof["even"]:
        assert all(float(x * 2**26).is_integer() for x in row)


@pytest.mark.parametrize("bound", [1e-13, 1e-16])
def test_what_no_noise_can_hide_is_refused_in_a_line(bound: float) -> None:
    """Curves end after 85 minutes: whoever walks slowly is not a thousand kilometres away."""
    with pytest.raises(Refused, match="some noise must be able to hide so much") as refused:
        window_noise(120.0, 2, [stranger()], bound)
    assert "\n" not in str(refused.value)


class Kinked:
    """Noise as it would be if false tracks had a slope at the window's edge, at a price.

    That price is of a velocity that nothing is known of there: phi'(0)^2 / (2 s^2) on each side.
    """

    def __init__(self, seconds: float, speed: float, tau: float) -> None:
        at = np.array([0, 10, 30, 60, 98, 170, 240, 377, 638, 1133, 2074, 3862, 5100.0])
        unit = np.eye(2 * at.size)
        self.size, self.end = 2 * at.size - 2, float(at[-1])
        self.curves = CubicHermiteSpline(at, unit[::2], unit[1::2])
        self.nodes, self.weights = leggauss(4)
        self.at = at
        cost = tau / (2 * speed**2) * (self.form(2) + self.form(1) / tau**2)
        cost[1, 1] += 1 / (2 * speed**2)
        objective = 2 * self.form(0)
        objective[0, 0] += seconds
        units = np.array([1.0, 1e-3] * (self.size // 2))
        units = np.hstack([units, units[1:]])
        fixed, free = np.eye(units.size)[0], np.eye(units.size)[:, 1:]
        limit = Limit(units[:, None] * self.both(2 * cost) * units / BOUND, fixed, free, 1.0)
        blocks = (self.size, self.size - 1)
        scaled = units[:, None] * self.both(objective) * units
        covariance = smallest_ellipsoid(scaled, [limit], blocks).covariance
        self.root = np.linalg.cholesky(units[:, None] * covariance * units / BOUND)

    def form(self, order: int) -> FloatArray:
        """The integral of the squares of a derivative, by Gauss's rule."""
        half = np.diff(self.at) / 2
        at = ((self.at[:-1] + half)[:, None] + half[:, None] * self.nodes).ravel()
        values = self.curves(at, order)[:, : self.size]
        return np.asarray((values.T * (half[:, None] * self.weights).ravel()) @ values)

    def both(self, form: FloatArray) -> FloatArray:
        return np.asarray(block_diag(form, form[1:, 1:]))

    def columns(self, before: FloatArray, after: FloatArray) -> FloatArray:
        away = np.minimum(np.maximum(before, after), self.end)
        rows = self.curves(away)[:, : self.size]
        sign = np.where(before > after, -1.0, 1.0)[:, None]
        return np.asarray(np.hstack([rows, sign * rows[:, 1:]]) @ self.root)


@pytest.mark.parametrize("seconds", [0.0, 120.0, 600.0])
def test_a_kink_at_the_window_would_prove_nothing(seconds: float) -> None:
    """Of movement with a velocity, plain within and without: 3 % more than the bound is lost."""
    half = seconds / 2
    out = np.hstack(
        [np.arange(0, 200, 5.0), np.arange(200, 1200, 20.0), np.arange(1200, 5101, 100)]
    )
    fixes = np.unique(np.hstack([-half - out, np.arange(-half, half + 1, 5.0), half + out]))
    before, after = np.maximum(-half - fixes, 0), np.maximum(fixes - half, 0)
    losses = []
    for noise in (Kinked(seconds, 1.0, 60.0), window_noise(seconds, 2, [stranger()], BOUND)):
        factor = noise.columns(before, after)
        record = released(fixes, [Law(math.inf, 1.0)], factor, [0.0])
        losses.append(1 / record.posterior(record.motion.position(0.0)[0]) / BOUND)
    assert losses[0] > 1.025
    assert 0.85 < losses[1] < 1


# Few metres, where the 10 m to which a place is known are many, and far more than movement leaves.
@pytest.mark.parametrize(
    ("radius", "epsilon", "order", "seconds", "sides"),
    [
        (5.0, 5.0, 1.5, 120.0, 1),
        (10.0, 1.0, 5.0, 720.0, 2),
        (20.0, 0.1, 50.0, 120.0, 1),
        (1000.0, 5.0, 5.0, 720.0, 2),
    ],
)
def test_noise_for_any_radius_is_proved(
    radius: float, epsilon: float, order: float, seconds: float, sides: int
) -> None:
    request = Request((), radius=radius, epsilon=epsilon, order=order)
    noise = window_noise(seconds, sides, request.adversaries, request.bound)
    assert check(noise.proof) == []
    assert noise.gap < 0.01


def drawn_request(rng: random.Random) -> tuple[Request, float, int]:
    """A request with the length and the sides of its window: of 20 to 3,000 m, any hour."""
    uncertain = rng.choice([60, 60, 60, 0, 1, 30, 239, 241, 300, 1800])
    steady = rng.choice([max(300, uncertain), uncertain, uncertain + 1, 900, 7200, 86_400])
    request = Request(
        (),
        radius=float(round(math.exp(rng.uniform(math.log(20), math.log(3000))))),
        epsilon=rng.choice([1.0, 1.0, 1.0, 0.1, 5.0]),
        floor=ACTIVITIES[rng.choice(["walk", "ride", "drive"])],
        uncertain=uncertain,
        steady=max(steady, uncertain),
    )
    seconds = rng.choice([0.0, 60.0, 600.0, 3600.0, 43_200.0]) + 2 * uncertain
    return request, shaped_for(seconds), rng.choice([1, 2])


def check_request(request: Request, seconds: float, sides: int) -> None:
    """Noise is proved; or a request is refused by a line that says what can be had instead."""
    try:
        noise = window_noise(seconds, sides, request.adversaries, request.bound)
    except Refused as refused:
        stated = re.fullmatch(
            r"some noise must be able to hide so much, got none that can: ask for (?:at most (\d+) "
            r"% of this radius|a shorter --slow-for or --uncertain), or use --mechanism cut",
            str(refused),
        )
        assert stated, (request, seconds, sides)
        if stated[1]:
            smaller = replace(request, radius=request.radius * int(stated[1]) / 100)
            noise = window_noise(seconds, sides, smaller.adversaries, smaller.bound)
            assert check(noise.proof) == [], (request, seconds, sides)
        return
    assert check(noise.proof) == [], (request, seconds, sides)
    assert noise.gap < 0.01, (request, seconds, sides)


# Radius, sides, steady.
LARGE = [
    (850.0, 1, 300),  # the loss peaks between places that are 5 % apart
    (1000.0, 2, 300),
    (3000.0, 1, 300),
    (100.0, 2, 86_400),
]


def test_a_large_radius_is_designed_or_refused(sweep: Sweep) -> None:
    for radius, sides, steady in sweep(LARGE, short=3):
        request = Request((), radius=radius, uncertain=0 if steady > 300 else 60, steady=steady)
        check_request(request, shaped_for(1200.0), sides)


@pytest.mark.parametrize("seed", [2, 3])
def test_any_request_is_designed_or_refused(seed: int) -> None:
    """Exact: no alarm is false."""
    check_request(*drawn_request(random.Random(seed)))


@pytest.mark.slow
def test_many_requests_are_designed_or_refused(sweep: Sweep) -> None:
    for seed in sweep([0, 1, *range(4, 8)], short=3):
        check_request(*drawn_request(random.Random(seed)))
