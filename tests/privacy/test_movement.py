"""What movement costs and leaves, against exact conditioning on fine grids and 50 digits."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from tests.oracles.dense_movement import MP, Law, Motion, released, variance_of
from trailveil.designer.window import window_noise
from trailveil.errors import InvalidValue, Refused
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.movement import Movement, least_cut


@pytest.mark.parametrize(("speed", "tau"), [(1.0, 60.0), (3.0, 20.0), (0.4, 700.0)])
def test_a_cost_is_that_of_the_innovations(speed: float, tau: float) -> None:
    """phi^T Sigma^-1 phi on a fine grid of places and velocities, of a motion with a flat level.

    Between grid points the cheapest movement is taken, so it is below the integral, by little.
    """
    knots = Knots((0, 20, 60, 170, 400))
    rng = np.random.default_rng(3)
    w = rng.normal(size=knots.size) * np.where(np.arange(knots.size) % 2, 1, 0.02)
    w[0] = 1.0
    whole = np.array([w[0], 0.0, *w[1:], 0.0, 0.0])
    phi = CubicHermiteSpline(np.array(knots.seconds, dtype=float), whole[::2], whole[1::2])
    times = np.arange(0, 401, 2.0)
    motion = Motion(times, [Law(math.inf, speed, tau)], speed)
    places, velocities = motion.position(*times), motion.velocity(*times)
    square = np.vstack([velocities[:1], places[1:], velocities[1:]])
    target = np.hstack([0.0, (phi(times) - phi(0.0))[1:], phi.derivative()(times)[1:]])
    innovations = np.linalg.solve(square, target)
    expected = float(w @ Movement(speed, tau).cost(knots) @ w)
    assert 0.999 * expected < innovations @ innovations < expected * (1 + 1e-9)


HOURS = [1e-3, 0.1, 1.0, 7.0, 20.0, 60.0, 119.0, 121.0, 600.0, 3600.0, 86_400.0, 1e6]


@pytest.mark.parametrize("tau", [1.0, 60.0, 3600.0])
def test_what_is_left_is_exact_from_a_millisecond_to_days(tau: float) -> None:
    """In 50 digits, of the formulas as they are derived."""
    movement = Movement(3.0, tau)
    for seconds in HOURS:
        h, t, s = MP.mpf(seconds), MP.mpf(tau), MP.mpf(3)
        e = MP.exp(-h / t)
        gone = t * (1 - e)
        wandered = s**2 * (2 * t * (h - gone) - gone**2)
        bridged = s**2 * (2 * t * (h - gone) - 2 * gone**2 / (1 + e))
        assert movement.wandered(seconds) == pytest.approx(float(wandered), rel=1e-12)
        assert movement.bridged(seconds) == pytest.approx(float(bridged), rel=1e-12)


@pytest.mark.parametrize(("speed", "tau"), [(1.0, 60.0), (3.0, 20.0), (0.4, 700.0)])
@pytest.mark.parametrize("seconds", [0.5, 5.0, 60.0, 240.0, 2000.0])
def test_what_is_left_is_dense_conditioning(speed: float, tau: float, seconds: float) -> None:
    motion = Motion([0.0, 50.0, 50.0 + seconds], [Law(math.inf, speed, tau)], speed)
    moved = (motion.position(50.0 + seconds) - motion.position(50.0))[0]
    before, after = motion.velocity(50.0), motion.velocity(50.0 + seconds)
    movement = Movement(speed, tau)
    posterior = variance_of(moved, 0.0, before, np.zeros(1))
    assert movement.wandered(seconds) == pytest.approx(posterior, rel=1e-9)
    posterior = variance_of(moved, 0.0, np.vstack([before, after]), np.zeros(2))
    assert movement.bridged(seconds) == pytest.approx(posterior, rel=1e-9)


def test_what_is_left_grows_with_time_speed_and_bends_upward() -> None:
    """The checker takes what is left of a place to be convex."""
    movement = Movement(1.0, 60.0)
    at = np.arange(0.0, 4000.0, 10.0)
    for each in (movement.wandered, movement.bridged):
        values = np.array([each(x) for x in at])
        assert values[0] == 0
        assert np.all(np.diff(values) > 0)
        assert np.all(np.diff(values, 2)[:60] > 0)
        assert np.all(np.diff(values, 2) > -1e-15 * values[-1])
    for a, b in pairwise([0.5, 1.0, 7.0]):
        assert Movement(a, 60.0).bridged(90) < Movement(b, 60.0).bridged(90)


@pytest.mark.parametrize(
    "numbers", [(0.0, 60.0), (-1.0, 60.0), (math.nan, 60.0), (1.0, 0.0), (1.0, math.inf)]
)
def test_movement_must_be_positive(numbers: tuple[float, float]) -> None:
    with pytest.raises(InvalidValue, match="must be a number above 0, got"):
        Movement(*numbers)


# Seconds: a window from -360 to 360, and its fixes.
OUT = np.hstack([np.arange(0, 300, 10.0), np.arange(300, 1200, 30.0), np.arange(1200, 5101, 100.0)])
BOUND = 1e-5


def test_a_time_constant_that_grows_on_the_way_is_not_covered() -> None:
    """Nowhere slower than the floor, but for a minute free of what slows: 0.25 % beyond the bound.

    A long time constant alone is covered, and so is a higher speed for a while.
    """
    noise = window_noise(720.0, 1, [Knowledge("stranger", Movement(1.0, 60.0), steady=240)], BOUND)
    fixes = np.unique(np.hstack([-360.0 - OUT, np.arange(-360.0, 361, 30.0)]))
    factor = noise.columns(np.maximum(-360.0 - fixes, 0), 0 * fixes)
    long = 1e4
    fast = (long / 60) ** 0.5
    cases = {
        "floor": [Law(math.inf, 1.0)],
        "long": [Law(math.inf, fast, long)],
        "fast": [Law(-660.0, 1.0), Law(math.inf, 2.0)],
        "grows": [Law(-660.0, 1.0), Law(-600.0, fast, long), Law(math.inf, 1.0)],
    }
    losses = {}
    for name, laws in cases.items():
        record = released(fixes, laws, factor, [-600.0, 0.0], laws[0].speed)
        known = record.granted(-600.0, 360.0)
        posterior = record.posterior(
            record.motion.position(0.0)[0], known, np.zeros(known.shape[0])
        )
        losses[name] = 1 / posterior / BOUND
    assert losses["long"] < losses["fast"] < losses["floor"] < 1 < losses["grows"] < 1.006


# The least cut: the metres that it leaves, exactly, by conditioning on all that is released.
LEFT = 316.2**2


@pytest.mark.parametrize(
    ("speed", "end", "middle"),
    [(1.0, 15.90, 29.78), (3.0, 3.42, 5.07), (5.0, 2.13, 2.92), (10.0, 1.25, 1.62)],
)
def test_minutes_of_usual_speeds(speed: float, end: float, middle: float) -> None:
    """For 316 m: at an end of a recording and in its middle, with both velocities known.

    Roots of s^2 2 tau (h - 2 tau tanh(h / 2 tau)) / sides = 316.2^2, found apart.
    """
    minutes = [least_cut(Movement(speed, 60.0), LEFT, sides) / 60 for sides in (1, 2)]
    assert minutes == pytest.approx([end, middle], abs=0.005)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("metres", [5.0, 48.0, 316.0])
def test_it_is_the_least_whole_second(sides: int, speed: float, metres: float) -> None:
    floor = Movement(speed, 60.0)
    seconds = least_cut(floor, metres**2, sides)
    assert seconds == round(seconds)
    assert floor.bridged(seconds - 1) / sides < metres**2 <= floor.bridged(seconds) / sides


def test_a_cut_grows_with_metres_and_sides_and_falls_with_speed() -> None:
    def cut(speed: float = 1.0, metres: float = 100.0, sides: int = 1) -> float:
        return least_cut(Movement(speed, 60.0), metres**2, sides)

    assert cut(metres=50) < cut() < cut(metres=200)
    assert cut(speed=2) < cut() < cut(sides=2)


def test_metres_and_speed_scale_together() -> None:
    cuts = [least_cut(Movement(x, 60.0), (x * 200) ** 2, 2) for x in (1.0, 2.5, 10.0)]
    assert cuts == [cuts[0]] * 3


def test_a_cut_of_more_than_a_day_is_refused_in_a_line() -> None:
    with pytest.raises(Refused, match="a cut must be shorter than a day") as refused:
        least_cut(Movement(0.01, 60.0), 1000.0**2, 2)
    assert "\n" not in str(refused.value)


def check_cut(seed: int) -> None:
    """Everything beyond the cut is known exactly, at drawn times, and all movement within."""
    rng = np.random.default_rng(seed)
    speed, sides = rng.uniform(0.8, 8), int(rng.integers(1, 3))
    metres = rng.uniform(20, 300)
    cut = least_cut(Movement(speed, 60.0), metres**2, sides)
    half = rng.choice([0.0, 60.0, 300.0])
    before = -half - cut - np.hstack([0, np.cumsum(rng.exponential(rng.choice([2, 60]), 30))])
    after = half + cut + np.hstack([0, np.cumsum(rng.exponential(rng.choice([2, 60]), 30))])
    fixes = np.hstack([before[::-1], after if sides == 2 else []])
    # Nowhere slower than the floor: other speeds for a while.
    laws = [
        Law(until, speed * rng.choice([1.0, 1.0, 2.0]))
        for until in [*np.sort(rng.uniform(-half - cut, half + cut, 3)), math.inf]
    ]
    floor = [Law(math.inf, speed)]
    for movement, granted in ((floor, True), (floor, False), (laws, False)):
        record = released(fixes, movement, np.zeros((fixes.size, 0)), {-half, 0.0, half}, speed)
        known = (
            record.granted(-half, half)
            if granted
            else record.rows(np.zeros((0, record.motion.size)))
        )
        edges = record.rows(
            record.motion.velocity(*(t for t in (before[0], after[0]) if t in record.motion.index))
        )
        known = np.vstack([known, edges])
        posterior = record.posterior(
            record.motion.position(0.0)[0], known, np.zeros(known.shape[0])
        )
        assert posterior >= metres**2 * (1 - 1e-9)
        if granted and half == 0:
            assert posterior <= Movement(speed, 60.0).bridged(cut) / sides * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_what_a_cut_leaves(seed: int) -> None:
    check_cut(seed)


@pytest.mark.slow
def test_what_many_cuts_leave() -> None:
    for seed in range(12, 100):
        check_cut(seed)
