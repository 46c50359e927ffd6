"""Crops of a long recording: which parts share one, how far it goes, what is looked at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.designer.spaces import lag_of
from trailveil.errors import Unavailable
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Matern32, StoppedClock, White, split
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import LARGEST_FULL_MATRIX, Crop, Span, crops
from trailveil.release.judging import judged
from trailveil.release.request import DEFAULT_KERNEL

LEFT = 316.0
STEP = 10.0
DAY = np.arange(8_641.0) * STEP
MIDDLE = 43_200.0
SMOOTH = RBF(300.0, 300.0) + White(2.0) + Constant(1e5)


def lag(times: FloatArray = DAY) -> float:
    base = split(DEFAULT_KERNEL)[0]
    return lag_of(base, float(times[times.size // 2]), LEFT, float(times[-1]))


REACH = 30 * lag()


def of(*spans: Span, times: FloatArray = DAY) -> list[Crop]:
    return crops(DEFAULT_KERNEL, times, spans, LEFT)


def test_one_part_in_the_middle() -> None:
    (crop,) = of((MIDDLE, MIDDLE + 600))
    assert (crop.parts, crop.lag, crop.fading) == ((0,), lag(), (True, True))
    assert np.array_equal(crop.prior.times, DAY[crop.rows] - crop.start)
    assert crop.start == DAY[crop.first]
    assert crop.prior.kernel == DEFAULT_KERNEL
    assert crop.spans == ((MIDDLE - crop.start, MIDDLE + 600 - crop.start),)
    # Noise reaches so far around the part; beyond, fixes are released for at least ten minutes and
    # at least sixty of them.
    assert crop.reach == pytest.approx((crop.spans[0][0] - REACH, crop.spans[0][1] + REACH))
    assert crop.edges == (0.0, crop.prior.times[-1])
    for edge, end in zip(crop.edges, crop.reach, strict=True):
        assert 600 - STEP < abs(edge - end) <= 600  # to the last fix within
        assert np.sum(np.abs(crop.prior.times - edge) <= abs(edge - end)) >= 60


def test_where_fixes_are_rare_there_are_enough_of_them_beyond() -> None:
    times = np.arange(2_000.0) * 60.0
    (crop,) = of((60_000.0, 60_000.0), times=times)
    before = crop.prior.times < crop.reach[0]
    after = crop.prior.times > crop.reach[1]
    assert (before.sum(), after.sum()) == (60, 60)


@pytest.mark.parametrize(
    ("span", "ends"),
    [
        ((0.0, 0.0), (False, True)),
        ((86_400.0, 86_400.0), (True, False)),
        ((0.0, 86_400.0), (False, False)),
        ((REACH - 1, REACH - 1), (False, True)),
        ((REACH + 1, REACH + 1), (True, True)),
    ],
)
def test_noise_fades_where_the_recording_goes_on(span: Span, ends: tuple[bool, bool]) -> None:
    (crop,) = of(span)
    assert crop.fading == ends
    assert 0.0 <= crop.reach[0] <= crop.spans[0][0] <= crop.spans[0][1] <= crop.reach[1]
    assert crop.reach[1] <= crop.prior.times[-1]
    # An edge stands where rows were cut off, and nowhere else.
    assert (0.0 in crop.edges) == (crop.first > 0)
    assert (crop.prior.times[-1] in crop.edges) == (crop.last < DAY.size)
    assert len(crop.edges) == (crop.first > 0) + (crop.last < DAY.size)


def test_all_of_a_short_recording_is_one_crop_without_edges() -> None:
    times = np.arange(61.0) * 20.0
    (crop,) = of((0.0, 0.0), (1200.0, 1200.0), times=times)
    assert (crop.first, crop.last, crop.edges, crop.parts) == (0, 61, (), (0, 1))
    assert crop.fading[0] is crop.fading[1] is False


def test_parts_that_are_near_share_a_crop_in_the_order_of_time() -> None:
    first, second = (MIDDLE, MIDDLE), (MIDDLE + REACH - 1, MIDDLE + REACH + 99)
    (crop,) = of(second, first)
    assert crop.parts == (1, 0)
    assert crop.spans == tuple((a - crop.start, b - crop.start) for a, b in (first, second))
    apart = of((MIDDLE + REACH + 1, MIDDLE + REACH + 101), first)
    assert [one.parts for one in apart] == [(1,), (0,)]


def test_parts_are_near_what_they_are_joined_to_and_a_long_one_counts_to_its_end() -> None:
    longest = (MIDDLE, MIDDLE + 3 * REACH)
    within = (MIDDLE + 10, MIDDLE + 20)
    after = (longest[1] + REACH / 2, longest[1] + REACH / 2)
    far = (longest[1] + 5 * REACH, longest[1] + 5 * REACH)
    found = of(far, after, within, longest)
    assert [one.parts for one in found] == [(3, 2, 1), (0,)]
    assert found[0].reach[1] == pytest.approx(after[1] + REACH - found[0].start)


def test_a_prior_that_is_not_markov_is_not_cropped() -> None:
    times = np.arange(400.0) * 60.0
    (crop,) = crops(SMOOTH, times, [(20_000.0, 20_060.0), (60.0, 60.0)], LEFT)
    assert (crop.first, crop.last, crop.edges, crop.fading) == (0, 400, (), (False, False))
    assert crop.parts == (1, 0)
    assert crop.reach == (0.0, times[-1])


def test_a_prior_that_is_not_markov_has_its_limit() -> None:
    times = np.arange(LARGEST_FULL_MATRIX + 1.0)
    assert len(crops(SMOOTH, times[:-1], [(60.0, 60.0)], LEFT)) == 1
    with pytest.raises(Unavailable) as caught:
        crops(SMOOTH, times, [(60.0, 60.0)], LEFT)
    message = str(caught.value)
    assert "\n" not in message
    assert "must have at most 5000 fixes, got 5001: take a Matern or integrated-ou" in message
    assert len(crops(Matern32(300.0, 300.0) + White(2.0), times, [(60.0, 60.0)], LEFT)) == 1


def test_of_many_fixes_few_are_looked_at_and_they_are_dense_at_the_edges() -> None:
    (crop,) = of((MIDDLE, MIDDLE + 600), times=np.arange(86_401.0) * 1.0)
    few = crop.few()
    times = crop.prior.times[few]
    assert few.size < 0.2 * crop.prior.times.size
    gaps = np.diff(times)
    begin, end = crop.spans[0]
    near = np.min(np.abs(times[:, None] - np.array([begin, end])), axis=1)
    # No wider than what is asked for, and one second more for where the fixes stand.
    assert np.all(gaps <= 0.03 * crop.lag + 0.05 * np.maximum(near[1:], near[:-1]) + 2.0)
    assert gaps[near[1:] < 20].max() < gaps.max() / 4


@given(
    begin=st.floats(0, 2400),
    length=st.sampled_from([0.0, 30.0, 600.0, 4000.0]),
    step=st.sampled_from([1.0, 7.0, 60.0]),
    seed=st.integers(0, 1000),
)
def test_few_has_what_matters(begin: float, length: float, step: float, seed: int) -> None:
    """Both ends, both sides of each edge, places asked for."""
    random = np.random.default_rng(seed)
    times = np.cumsum(random.uniform(0.5, 1.5, int(3000 / step)) * step)
    times -= times[0]
    span = (min(begin, times[-1]), min(begin + length, times[-1]))
    (crop,) = of(span, times=times)
    own = crop.prior.times
    place = float(own[int(random.integers(own.size))])
    few = crop.few([place])
    assert np.all(np.diff(few) > 0)
    assert few[0] == 0
    assert few[-1] == own.size - 1
    wanted: set[int] = {int(np.flatnonzero(own == place)[0])}
    for edge in crop.spans[0]:
        wanted |= {*np.flatnonzero(own < edge)[-1:].tolist()}
        wanted |= {*np.flatnonzero(own >= edge)[:2].tolist()}
    assert wanted <= set(few.tolist())


def test_the_lag_is_that_of_the_prior() -> None:
    (fast,) = crops(IntegratedOU(10.0, 60.0) + White(2.0), DAY, [(MIDDLE, MIDDLE)], LEFT)
    (slow,) = crops(IntegratedOU(1.0, 60.0) + White(2.0), DAY, [(MIDDLE, MIDDLE)], LEFT)
    assert fast.lag < lag() < slow.lag
    assert fast.last - fast.first < slow.last - slow.first


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
    (exposure,) = judged(one, Mechanism(one.prior.times, bump), 0, 1e-5).values()
    prior, mechanism = Prior(DEFAULT_KERNEL, times), Mechanism(times, whole)
    truth = loss_matrix(prior, Secret.at(begin), mechanism).largest
    # What lies beyond the crop is granted, and a level counts as flat.
    assert truth <= exposure.loss == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize("level", [None, 300.0, 1e5])
def test_what_a_crop_may_forget_of_its_prior(level: float | None) -> None:
    """An integrated series is known to be 0 at its origin: a crop must not have it begin anew."""
    times = np.arange(0.0, 21_000.0, 10.0)
    kernel = IntegratedOU(3.0, 60.0) + White(2.0)
    kernel = kernel if level is None else kernel + Constant(level)
    span = (10_000.0, 10_000.0)
    (one,) = crops(kernel, times, [span], 100.0)
    assert one.first > 0
    own = one.prior.times + one.start
    bump = 300 * np.exp(-(((own - span[0]) / 300) ** 2))[:, None]
    bump[np.abs(own - span[0]) > 1000] = 0.0
    whole = np.zeros((times.size, 1))
    whole[one.rows] = bump
    (found,) = judged(one, Mechanism(one.prior.times, bump), 0, 1e-5).values()
    prior, mechanism = Prior(kernel, times), Mechanism(times, whole)
    place = Secret.at(span[0])
    truth = loss_matrix(prior, place, mechanism).largest
    # Against nobody's idea of a level: all that is known afterwards.
    truth += 0.0 if level is None else 1 / float(prior.variance(place)[0, 0])
    assert found.loss >= truth * (1 - 1e-9)  # the truth holds its own error against us
    assert found.loss == pytest.approx(truth, rel=1e-4)


def test_a_clock_is_not_shifted() -> None:
    kernel = Matern32(300.0, 500.0).warp(StoppedClock(((12_000.0, 13_000.0),))) + White(2.0)
    (one,) = crops(kernel, np.arange(0.0, 21_000.0, 10.0), [(10_000.0, 10_000.0)], 100.0)
    assert one.first > 0
    assert one.start == 0.0
