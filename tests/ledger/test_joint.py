"""What is known of other times tells no more of a part than is counted: by exact conditioning.

Nothing here is of the package but the noise and what is counted: tests.oracles.dense_movement.
"""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracles.dense_movement import Law, Rows, released
from trailveil.designer.window import window_noise
from trailveil.gp.kernels import Kernel
from trailveil.ledger.joint import NearbyRelease, worst_nearby
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.mechanism import Mechanism
from trailveil.release.request import DEFAULT_KERNEL, Request
from trailveil.traces.trace import NANOSECONDS

REQUEST = Request((), radius=100.0)
SLOW, STEADY = REQUEST.slowest, float(REQUEST.steady)
# The part is the first moment of a recording of two hours; all is known long before it.
FIXES = np.hstack([np.arange(0.0, 600.0, 20.0), np.arange(600.0, 7201.0, 150.0)])


def counted(
    factor: Rows,
    is_released: NDArray[np.bool_],
    epsilon: float,
    seconds: float,
    proved: tuple[float, float],
) -> float:
    """What is counted of the part, with a release that ends so many seconds before it."""
    mechanism = Mechanism(FIXES + seconds, factor, released=is_released)
    begin, end = (round((x + seconds) * NANOSECONDS) for x in (0.0, FIXES[-1]))
    new = NearbyRelease(begin, end, mechanism, ((begin, begin),), (epsilon,), *proved)
    other = NearbyRelease(-NANOSECONDS, 0, None, (), ())  # without a part of its own
    row: Any = SimpleNamespace(begin=other.begin, end=other.end, number=1)
    kernel = at_speed(DEFAULT_KERNEL, SLOW.speed)
    assert isinstance(kernel, Kernel)
    return worst_nearby(new, [row], lambda _: other, [kernel], 1.0)


@pytest.mark.parametrize(
    ("how", "seconds"),
    [
        ("noise", 360.0),
        ("noise", 700.0),
        ("noise", 20_000.0),
        ("noise", 400_000.0),
        ("cut", 120.0),
        ("cut", 200.0),
        ("cut", 900.0),
        ("cut", 86_400.0),
    ],
)
def test_what_is_known_long_before_tells_no_more_than_is_counted(how: str, seconds: float) -> None:
    bound, steady = REQUEST.bound, STEADY if how == "noise" else float(REQUEST.uncertain)
    if how == "noise":
        noise = window_noise(120.0, 1, REQUEST.adversaries, bound)
        factor = noise.columns(np.zeros(FIXES.size), np.maximum(FIXES - 60.0, 0.0))
        is_released, reach = np.ones(FIXES.size, np.bool_), noise.knots.end + 60.0
    else:
        is_released, reach = FIXES >= 900.0, 0.0
        bound = 1 / SLOW.bridged(900.0 - steady)
        factor = np.zeros((FIXES.size, 0))
    total = counted(factor, is_released, bound, seconds, (steady, reach))
    laws = [Law(math.inf, SLOW.speed)]
    edges = (-seconds, -steady, 0.0, steady)
    record = released(FIXES[is_released], laws, factor[is_released], edges, SLOW.speed)
    # All of the movement near the part, and of all that is far: its place and velocity at the edge.
    # And how fast it is where a cut ends, which fixes that are denser would tell.
    near = record.granted(-steady, steady)
    near = np.vstack([near, record.rows(record.motion.velocity(900.0))[: how == "cut"]])
    velocity = record.rows(record.motion.velocity(-seconds))
    place = record.rows(record.motion.position(-seconds))
    known = np.vstack([near, velocity, place])
    levels = np.append(np.zeros(len(near) + 1), 1.0)
    secret = record.motion.position(0.0)[0]
    alone, exact = (
        1 / record.posterior(secret, known[:n], levels[:n]) for n in (len(near), len(known))
    )
    assert alone < exact <= total * (1 + 1e-9)
    assert exact > 0.97 * total
    most = 1 / SLOW.bridged(seconds - steady)
    assert total - bound <= most * (1 + 1e-5) + 1e-6 * bound
    if seconds > 10_000:  # no more is computed than that
        assert total - bound == pytest.approx(most, rel=1e-6)


@pytest.mark.parametrize(("minutes", "one_way"), [(15, True), (50, True), (90, False)])
def test_within_an_hour_a_cut_end_is_a_place_that_may_be_passed(
    minutes: int, one_way: bool
) -> None:
    """Then both its sides are counted at the pace of the middle, as in one recording."""
    uncertain, cut, gap = float(REQUEST.uncertain), 900.0, 60.0 * minutes
    end, middle = REQUEST.paces.end, REQUEST.paces.middle
    kernel = at_speed(DEFAULT_KERNEL, middle.speed)
    assert isinstance(kernel, Kernel)
    first = round(gap * NANOSECONDS)
    mechanism = Mechanism(FIXES + gap, np.zeros((FIXES.size, 0)), released=cut <= FIXES)
    last = round((FIXES[-1] + gap) * NANOSECONDS)
    alone = 1 / end.bridged(cut - uncertain)
    part = ((first, first),)
    new = NearbyRelease(first, last, mechanism, part, (alone,), uncertain, 0.0)
    other = NearbyRelease(-NANOSECONDS, 0, None, (), ())
    row: Any = SimpleNamespace(begin=other.begin, end=other.end, number=1)
    total = worst_nearby(new, [row], lambda _: other, [kernel], 1.0)
    passed = sum(1 / middle.bridged(seconds - uncertain) for seconds in (cut, gap))
    assert (total >= passed) == one_way
    assert total >= alone + 0.999 / middle.bridged(gap - uncertain)
