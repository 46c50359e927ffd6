"""Crops of a recording: what they hold, what of them is looked at, and what is refused."""

import numpy as np
import pytest

from trailveil.adversaries import Named
from trailveil.adversary import PLAIN, exposures, knows_a_point, knows_the_path
from trailveil.crops import LARGEST_FULL_MATRIX, crops
from trailveil.demands import Target, judged
from trailveil.errors import Unavailable
from trailveil.kernels import RBF, White
from trailveil.mechanism import Mechanism
from trailveil.prior import Prior
from trailveil.release import DEFAULT_KERNEL
from trailveil.secrets import basic

TIMES = np.arange(0.0, 50_000.0, 10.0)
LEFT = 316.2


def test_parts_that_are_near_share_a_crop() -> None:
    found = crops(DEFAULT_KERNEL, TIMES, [(30_000.0, 30_600.0), (0.0, 0.0), (1200.0, 1300.0)], LEFT)
    assert [one.parts for one in found] == [(1, 2), (0,)]
    first, second = found
    assert first.first == 0
    assert first.edges == (float(first.prior.times[-1]),)
    assert first.fading == (False, True)
    assert second.fading == (True, True)
    assert second.edges == (0.0, float(second.prior.times[-1]))
    assert second.start == TIMES[second.first]
    assert second.spans == ((30_000.0 - second.start, 30_600.0 - second.start),)
    assert np.array_equal(second.prior.times, TIMES[second.rows] - second.start)
    low, high = second.reach
    assert second.prior.times[0] <= low - 590 < low < second.spans[0][0]
    assert second.spans[0][1] < high < high + 590 <= second.prior.times[-1]


def test_of_few_fixes_the_telling_ones_are_looked_at() -> None:
    (one,) = crops(DEFAULT_KERNEL, TIMES, [(20_000.0, 20_600.0)], LEFT)
    few = one.few([60.0, 300.0], [one.spans[0][0] + 215.0])
    assert np.array_equal(few, np.unique(few))
    assert 100 < few.size < 500 < one.prior.times.size
    times = set(one.prior.times[few].tolist())
    begin, end = one.spans[0]
    assert {begin, end, begin - 60, end + 60, begin - 300, end + 300, begin - 70} <= times
    assert {begin + 210, begin + 220} <= times
    assert {float(one.prior.times[0]), float(one.prior.times[-1])} <= times


def test_a_prior_that_is_not_markov_is_taken_whole_or_refused() -> None:
    kernel = RBF(600.0, 400.0) + White(2.0)
    (one,) = crops(kernel, TIMES[:300], [(1000.0, 1000.0)], LEFT)
    assert (one.first, one.last, one.edges, one.fading) == (0, 300, (), (False, False))
    with pytest.raises(Unavailable, match="at most 5000 fixes, got 5001"):
        crops(kernel, np.arange(LARGEST_FULL_MATRIX + 1.0), [(1.0, 1.0)], LEFT)


@pytest.mark.parametrize("begin", [20_000.0, 20_004.0])
def test_what_is_said_of_a_crop_holds_of_the_recording(begin: float) -> None:
    times = np.arange(10_000.0, 31_000.0, 10.0) - 10_000.0
    begin -= 10_000.0
    (one,) = crops(DEFAULT_KERNEL, times, [(begin, begin)], 100.0)
    assert one.prior.times.size < times.size / 2
    own = one.prior.times + one.start
    bump = 300 * np.exp(-(((own - begin) / 300) ** 2))[:, None]
    bump[np.abs(own - begin) > 1000] = 0.0
    whole = np.zeros((times.size, 1))
    whole[one.rows] = bump
    target = Target(1e-5, (Named.PLAIN, Named.POINT, Named.PATH))
    found = judged(one, Mechanism(one.prior.times, bump), 0, target)
    prior, mechanism = Prior(DEFAULT_KERNEL, times), Mechanism(times, whole)
    for left, who in zip(found, [PLAIN, knows_a_point(), knows_the_path()], strict=True):
        seen = exposures(prior, basic(begin), mechanism, who)
        truth = max(seen, key=lambda exposure: exposure.loss)
        # With a known value the O(n) form of the whole adds 1e-9 of the value's variance against
        # itself, ten thousand times what it is after all that is told: 1e-5 of the loss.
        assert left.loss >= truth.loss * (1 - (1e-5 if who.point else 0.0))
        # The adversary is granted what lies beyond the crop, and a level counts as flat.
        assert left.loss == pytest.approx(truth.loss, rel=1e-5)
