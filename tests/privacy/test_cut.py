"""The least cut: the metres that it leaves, exactly, by conditioning on all that is released."""

import math

import numpy as np
import pytest

from tests.oracles.dense_movement import Law, released
from trailveil.errors import Refused
from trailveil.privacy.movement import Movement, least_cut

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
