"""What is said of a protected part is the worst of its places, recomputed by its definition."""

from dataclasses import replace

import numpy as np
import pytest

from tests.exposed import exposed
from tests.rides import ride
from trailveil.errors import BeyondPrior
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import DEFAULT, Named
from trailveil.privacy.adversary import Adversary, exposures
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop, crops
from trailveil.release.demands import (
    Aims,
    PartExposure,
    Target,
    adversaries_of,
    demanded,
    judged,
    judged_again,
)
from trailveil.release.request import DEFAULT_KERNEL

TIMES = ride(61, 20.0).seconds
PRIOR = Prior(DEFAULT_KERNEL, TIMES)
FLAT = 1e-10
BOUND = 1e-5
PLAIN, STILL = (Named.PLAIN,), (Named.PLAIN, Named.STILL)
SPANS = {
    "a time": (400.0, 400.0),
    "a time without a fix": (405.0, 405.0),
    "the first fix": (0.0, 0.0),
    "the last fix": (1200.0, 1200.0),
    "a stay": (300.0, 500.0),
    "a stay between fixes": (295.0, 511.0),
    "a stay with one fix": (395.0, 405.0),
    "a stay without a fix": (402.0, 412.0),
}


def crop_of(*spans: tuple[float, float], times: FloatArray = TIMES) -> Crop:
    (found,) = crops(DEFAULT_KERNEL, times, spans, BOUND**-0.5)
    return found


def noise(seed: int, times: FloatArray = TIMES) -> Mechanism:
    """Smooth columns of some hundred metres around the stay, and a tenth of the fixes withheld."""
    random = np.random.default_rng(seed)
    middles, widths = random.uniform(200, 600, 3), random.uniform(100, 400, 3)
    factor = 400 * np.exp(-(((times[:, None] - middles) / widths) ** 2))
    return Mechanism(times, factor, released=random.uniform(size=times.size) > 0.1)


def left(**values: float | str | None) -> PartExposure:
    part_exposure = PartExposure("plain", 1e-6, 1000.0, 500.0, None, None, 900.0, 400.0, None)
    return replace(part_exposure, **values)  # type: ignore[arg-type]  # names of its fields


@pytest.mark.parametrize("name", SPANS)
def test_each_adversary_is_left_with_the_worst_of_all_places(name: str) -> None:
    """With full matrices that share nothing with the package: see tests.exposed.

    Numerical errors are bounded by 1e-8 of the precision, known values by about 1e-7 of it.
    """
    span, mechanism = SPANS[name], noise(len(name))
    crop = crop_of(span)
    part_exposures = judged(crop, mechanism, 0, Target(BOUND, DEFAULT))
    expected = exposed(PRIOR, mechanism, span, DEFAULT)
    assert [one.adversary for one in part_exposures] == list(expected)
    for one in part_exposures:
        loss, least = expected[one.adversary]
        assert loss + FLAT - 1e-9 * least**-2 <= one.loss <= loss + FLAT + 2e-5 * least**-2
        assert one.least == pytest.approx(least, rel=1e-5)
        assert one.least <= one.after < one.before
        assert one.known <= one.before
        assert one.place is None or span[0] <= one.place <= span[1]
        assert one.at is None or one.at in TIMES


def test_the_same_by_the_adversaries_of_the_package() -> None:
    crop, mechanism = crop_of((300.0, 500.0)), noise(1)
    passing, still = adversaries_of(crop, 0, Target(BOUND, STILL))
    assert passing[0].unseen == still[0].still == ((300.0, 500.0),)
    assert still[0].unseen == ()
    part_exposures = judged(crop, mechanism, 0, Target(BOUND, STILL))
    for one, by in zip(part_exposures, [*passing, *still], strict=True):
        places = [300.0] if by.still else TIMES[15:26].tolist()
        worst = max(
            (each for time in places for each in exposures(PRIOR, Secret.at(time), mechanism, by)),
            key=lambda each: each.loss,
        )
        assert one.loss >= worst.loss * (1 - 1e-6)


@pytest.mark.parametrize("bare", [17, 25, 31, 40])
def test_every_fix_of_a_stay_counts(bare: int) -> None:
    """One inner fix without noise, of many, is found out: also one that is not of the sample."""
    times = np.arange(61.0) * 20.0
    crop, target = crop_of((300.0, 1000.0), times=times), Target(BOUND, PLAIN)
    factor = np.full((61, 1), 400.0)
    covered = judged(crop, Mechanism(times, factor), 0, target)
    assert target.missed(covered) < 1
    factor[bare] = 0.0
    (found,) = judged(crop, Mechanism(times, factor), 0, target)
    assert target.missed([found]) > 1000
    worst, _ = exposed(Prior(DEFAULT_KERNEL, times), Mechanism(times, factor), (300, 1000), PLAIN)[
        "plain"
    ]
    assert found.loss == pytest.approx(worst, rel=1e-5)


def test_the_mean_of_a_stay_counts() -> None:
    """Noise that differs from fix to fix averages out."""
    crop, span = crop_of((300.0, 500.0)), (300.0, 500.0)
    mechanism = Mechanism(TIMES, np.empty((61, 0)), 500.0**2)
    (found,) = judged(crop, mechanism, 0, Target(BOUND, PLAIN))
    assert found.place is found.weakest is None
    assert found.loss == pytest.approx(
        exposed(PRIOR, mechanism, span, PLAIN)["plain"][0] + FLAT, rel=1e-6
    )


def test_stays_of_one_crop_are_seen_together() -> None:
    spans = [(200.0, 400.0), (500.0, 500.0), (700.0, 900.0)]
    crop, target = crop_of(*spans), Target(BOUND, STILL)
    for i, span in enumerate(crop.spans):
        passing, still = adversaries_of(crop, i, target)
        assert [one.still for one in still] == [(spans[0], spans[2])]
        assert [one.unseen for one in passing] == [() if i == 1 else (span,)]
        expected = exposed(PRIOR, noise(3), span, STILL, stays=[spans[0], spans[2]])
        for one in judged(crop, noise(3), i, target):
            assert one.loss == pytest.approx(expected[one.adversary][0] + FLAT, rel=2e-5)


def test_times_are_those_of_the_recording() -> None:
    times = np.arange(2_000.0) * 20.0
    span = (20_000.0, 20_400.0)
    crop = crop_of(span, times=times)
    assert crop.start > 1000
    near = np.exp(-(((crop.prior.times - crop.spans[0][0]) / 900) ** 2))
    mechanism = Mechanism(crop.prior.times, 2000 * near[:, None])
    (_, point) = judged(crop, mechanism, 0, Target(BOUND, (Named.PLAIN, Named.POINT)))
    assert point.place is None or span[0] <= point.place <= span[1]
    assert point.at is not None
    assert 60 <= max(span[0] - point.at, point.at - span[1]) < 600
    assert point.weakest is not None
    assert span[0] <= point.weakest <= span[1]


def test_what_is_missed_of_a_bound() -> None:
    target = Target(BOUND, PLAIN)
    assert target.deviation == pytest.approx(BOUND**-0.5)
    assert target.missed([left(loss=1e-5), left(loss=2e-6)]) == pytest.approx(1.0)
    assert target.missed([left(loss=1e-6), left(loss=3e-5)]) == pytest.approx(3.0)


def test_what_is_missed_of_what_each_must_be_left_with() -> None:
    target = Target(BOUND, PLAIN, left=200.0)
    assert target.deviation == 200.0
    assert target.missed([left(least=400.0), left(least=200.0)]) == pytest.approx(1.0)
    assert target.missed([left(least=400.0), left(least=100.0)]) == pytest.approx(4.0)
    assert target.missed([left(loss=1.0, least=400.0)]) == pytest.approx(0.25)
    with pytest.raises(BeyondPrior) as caught:
        target.missed([left(), left(known=180.0)])
    assert caught.value.most == 180.0


def test_what_is_left_is_the_least_whatever_is_known_not_where_most_is_learnt() -> None:
    """Who knows a near value learns little from the release, and is left with little.

    Noise that is alike for all fixes tells nothing of a place to who knows no value: the loss is
    largest without one. Who knows the fix 60 s away is left with at most what it knew: 155 m.
    """
    mechanism = Mechanism(TIMES, np.full((61, 1), 200.0))
    crop, target = crop_of((400.0, 400.0)), Target(BOUND, (Named.PLAIN, Named.POINT), left=140.0)
    plain, point = judged(crop, mechanism, 0, target)
    knows = exposures(PRIOR, Secret.at(400.0), mechanism, Adversary.knows_point())
    expected = exposed(PRIOR, mechanism, (400.0, 400.0), target.who)[point.adversary]
    assert len(knows) == 2
    assert point.least == pytest.approx(expected[1], rel=1e-6)
    assert point.least < 20.0
    assert plain.least > 140.0
    assert target.missed([plain]) < 1 < target.missed([plain, point])


def test_demands_are_the_places_that_noise_is_sought_for() -> None:
    crop, target = crop_of((300.0, 700.0)), Target(BOUND, STILL)
    found = demanded(crop, crop.prior, 0, target, Aims(places=(333.0,)))
    passing = [demand for demand, one in found if not one.still]
    still = [demand for demand, one in found if one.still]
    times = {float(one.secret.times[0]) for one in passing if one.secret.kind == "basic"}
    assert {300.0, 333.0, 500.0, 700.0} <= times
    assert [one.secret.kind for one in passing].count("mean") == 1
    assert [(one.secret.kind, float(one.secret.times[0])) for one in still] == [("basic", 300.0)]
    # A little less than the bound: the level of the prior counts as flat.
    assert all(one.bound == pytest.approx(BOUND - FLAT) for one, _ in found)
    assert all(one.deviation is None for one, _ in found)
    (only,) = demanded(crop_of((400.0, 400.0)), PRIOR, 0, Target(BOUND, PLAIN), Aims())
    assert only[0].secret.times == np.array([400.0])


def test_aims_are_lower_where_a_design_has_missed() -> None:
    crop, target = crop_of((300.0, 700.0)), Target(BOUND, PLAIN)
    aims = Aims().after(crop, target, [left(loss=0.9e-5, place=500.0)])
    assert aims == Aims()
    inner = left(loss=1.2e-5, place=500.0)
    aims = aims.after(crop, target, [inner])
    assert aims == Aims((), (500.0,))
    # The same again, an edge, and a mean: lower for that adversary, by what was missed.
    for missed in (inner, left(loss=1.2e-5, place=300.0), left(loss=1.2e-5)):
        lower = aims.after(crop, target, [missed])
        assert lower.places == (500.0,)
        assert dict(lower.tight) == pytest.approx({"plain": 1.2})
        twice = lower.after(crop, target, [missed])
        assert dict(twice.tight) == pytest.approx({"plain": 1.44})
        demands = demanded(crop, crop.prior, 0, target, lower)
        assert all(one.bound == pytest.approx(BOUND / 1.2 - FLAT) for one, _ in demands)


def test_aims_at_what_must_be_left() -> None:
    crop, target = crop_of((300.0, 700.0)), Target(BOUND, PLAIN, left=200.0)
    weak = left(least=100.0, place=500.0, weakest=540.0)
    aims = Aims().after(crop, target, [weak])
    assert aims == Aims((), (540.0,))
    again = aims.after(crop, target, [weak])
    assert dict(again.tight) == pytest.approx({"plain": 4.0})
    demands = demanded(crop, crop.prior, 0, target, again)
    assert all(one.deviation == pytest.approx(400.0) for one, _ in demands)


def test_without_noise_a_part_is_told() -> None:
    (found,) = judged(crop_of((400.0, 400.0)), no_noise(TIMES), 0, Target(BOUND, PLAIN))
    assert found.least < 2.0
    assert found.loss == pytest.approx(found.least**-2, rel=1e-4)


def test_nothing_released_tells_nothing() -> None:
    silent = no_noise(TIMES).withholding(np.ones(61, dtype=np.bool_))
    (found,) = judged(crop_of((400.0, 400.0)), silent, 0, Target(BOUND, PLAIN))
    assert found.loss == pytest.approx(FLAT, rel=0.1)
    assert found.least == pytest.approx(found.known)


def test_a_fix_that_is_found_among_all_is_one_to_look_at() -> None:
    times = np.arange(230.0) * 10.0
    factor = np.full((230, 1), 400.0)
    factor[101] = 0.0  # neither of 12 nor of 150
    crop = crop_of((300.0, 1900.0), times=times)
    (found,) = judged(crop, Mechanism(times, factor), 0, Target(BOUND, PLAIN), quickly=True)
    assert found.place == times[101]
    aims = Aims().after(crop, Target(BOUND, PLAIN), [found])
    assert aims == Aims((), (float(times[101]),))


@pytest.mark.parametrize("ratio", [1.0, 1.001, 1.01, 3.0, 1e3])
@pytest.mark.parametrize("name", ["a time", "a stay"])
def test_with_a_little_more_noise_a_second_look_at_few_places_says_the_same(
    name: str, ratio: float
) -> None:
    """Or nothing, where others may be worst now."""
    crop, target = crop_of(SPANS[name]), Target(BOUND, DEFAULT)
    for seed in range(4):
        mechanism = noise(seed)
        more = mechanism.scaled(ratio)
        again = judged_again(crop, more, 0, target, judged(crop, mechanism, 0, target))
        whole = judged(crop, more, 0, target)
        if again is None:
            assert ratio > 1.01
            continue
        for one, other in zip(again, whole, strict=True):
            assert one.adversary == other.adversary
            assert one.loss == pytest.approx(other.loss, rel=1e-7)
            assert one.least == pytest.approx(other.least, rel=1e-7)
            assert one.known == pytest.approx(other.known, rel=1e-9)


def test_a_second_look_is_refused_where_it_cannot_be_enough() -> None:
    crop, target = crop_of(SPANS["a stay"]), Target(BOUND, DEFAULT)
    first = judged(crop, noise(1), 0, target)
    elsewhere = [replace(one, elsewhere=(1.01 * one.loss, one.least)) for one in first]
    assert judged_again(crop, noise(1), 0, target, elsewhere) is None
    elsewhere = [replace(one, elsewhere=(0.0, 0.99 * one.least)) for one in first]
    assert judged_again(crop, noise(1), 0, target, elsewhere) is None
