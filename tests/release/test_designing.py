"""Noise of whole recordings: every demand is met when it is recomputed, and hardly more than that.

Of the whole recording, not of the crop it was designed on; with full matrices that share nothing
with the package (tests.exposed).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.exposed import Span, exposed
from tests.rides import ride
from trailveil.designer.spaces import Splines, splines
from trailveil.errors import BeyondPrior, NumericalError, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import DEFAULT, Named
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior
from trailveil.release import designing
from trailveil.release.crops import Crop, crops
from trailveil.release.demands import Target, judged
from trailveil.release.designing import Designed, only_withheld, optimal, part_of
from trailveil.release.request import DEFAULT_KERNEL

TIMES = ride(61, 20.0).seconds
BOUND = 1e-5
PLAIN, STILL = (Named.PLAIN,), (Named.PLAIN, Named.STILL)
BARE, BASIC = Target(BOUND, PLAIN), Target(BOUND, STILL)
SPANS = {
    "the first fix": (0.0, 0.0),
    "the last fix": (1200.0, 1200.0),
    "a time": (400.0, 400.0),
    "a time without a fix": (405.0, 405.0),
    "a stay": (300.0, 700.0),
    "a stay at the beginning": (0.0, 300.0),
    "a stay with one fix": (395.0, 405.0),
    "a stay without a fix": (402.0, 412.0),
    "all of it": (0.0, 1200.0),
}


def found_in(spans: Sequence[Span], target: Target, times: FloatArray = TIMES) -> list[Crop]:
    return crops(DEFAULT_KERNEL, times, spans, target.deviation)


def made_for(
    spans: Sequence[Span], target: Target, times: FloatArray = TIMES, base: Mechanism | None = None
) -> Designed:
    return optimal(found_in(spans, target, times), base or no_noise(times), target)


def worst(
    spans: Sequence[Span], target: Target, mechanism: Mechanism, *, near: int | None = None
) -> float:
    """The largest loss over what is allowed, of all parts; `near` rows around each are enough.

    Those far away are released as they are, so what is further still tells nothing more.
    """
    stays = [span for span in spans if span[0] < span[1]]
    shares = []
    for span in spans:
        rows = slice(None)
        if near is not None:
            middle = int(np.searchsorted(mechanism.times, span[0]))
            rows = slice(max(0, middle - near), middle + near)
        start = mechanism.times[rows][0]
        own = Mechanism(
            mechanism.times[rows] - start,
            mechanism.factor[rows],
            mechanism.floor,
            released=np.asarray(mechanism.released)[rows],
        )
        ends = own.times[[0, -1]] + start
        moved = [(a - start, b - start) for a, b in stays if ends[0] <= a and b <= ends[1]]
        here = (span[0] - start, span[1] - start)
        all_of_it = exposed(Prior(DEFAULT_KERNEL, own.times), own, here, target.who, moved)
        for loss, least in all_of_it.values():
            shares.append(
                loss / target.bound if target.left is None else (target.left / least) ** 2
            )
    return max(shares)


def check(
    designed: Designed, spans: Sequence[Span], target: Target, *, near: int | None = None
) -> None:
    """Met, to the rounding of the oracle; and what is said is no better than what is so."""
    share = worst(spans, target, designed.mechanism, near=near)
    assert share <= 1 + 1e-7
    said = max(target.missed(left) for left in designed.left)
    assert share * (1 - 1e-7) <= said <= 1.0
    assert len(designed.left) == len(spans)


@pytest.mark.parametrize("target", [BARE, BASIC], ids=["plain", "still"])
@pytest.mark.parametrize("name", SPANS)
def test_the_least_noise_meets_everything(name: str, target: Target) -> None:
    spans = [SPANS[name]]
    designed = made_for(spans, target)
    check(designed, spans, target)
    assert worst(spans, target, designed.mechanism) > 0.99  # and not by far too much
    assert designed.mechanism.floor == 0.0
    assert designed.gap is None or 0.0 <= designed.gap < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["the first fix", "a time without a fix", "a stay", "all of it"])
def test_the_least_noise_against_the_default_set(name: str) -> None:
    target = Target(BOUND, DEFAULT)
    designed = made_for([SPANS[name]], target)
    check(designed, [SPANS[name]], target)
    assert worst([SPANS[name]], target, designed.mechanism) > 0.95


def test_a_short_recording_with_a_lost_fix() -> None:
    """What the fixes tell that were not looked at, more of the same noise did not hide."""
    times = np.array([second for second in range(0, 200, 5) if second != 20], dtype=float)
    spans = [(30.0, 150.0)]
    check(made_for(spans, BARE, times), spans, BARE)


def test_more_of_a_noise_that_does_not_help_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(designing, "_ALL_ROWS", 0)
    times = np.array([second for second in range(0, 200, 5) if second != 20], dtype=float)
    with pytest.raises(NumericalError, match="must meet its own target"):
        made_for([(30.0, 150.0)], BARE, times)


def test_one_time_needs_what_its_closed_form_says() -> None:
    """Against the plain adversary alone: white noise of variance T at every point loses as much."""
    designed = made_for([(400.0, 400.0)], BARE)
    white = Mechanism(TIMES, np.empty((61, 0)), designed.mechanism.noise_trace)
    assert worst([(400.0, 400.0)], BARE, white) == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("target", [BARE, BASIC], ids=["plain", "still"])
def test_two_parts_that_are_near_share_a_crop(target: Target) -> None:
    spans = [(700.0, 700.0), (300.0, 500.0)]
    assert len(found_in(spans, target)) == 1
    designed = made_for(spans, target)
    check(designed, spans, target)
    assert designed.gap is None
    alone = made_for(spans[1:], target).mechanism.noise_trace
    assert designed.mechanism.noise_trace > alone


LONG = np.arange(1_500.0) * 20.0
APART = [(22_000.0, 22_300.0), (5_000.0, 5_000.0)]


def test_two_parts_far_apart_have_noise_of_their_own() -> None:
    found = found_in(APART, BASIC, LONG)
    assert len(found) == 2
    designed = made_for(APART, BASIC, LONG)
    check(designed, APART, BASIC, near=400)
    assert designed.gap is None
    # In the order of the parts, not of the crops.
    for span, left in zip(APART, designed.left, strict=True):
        assert all(one.place is None or span[0] <= one.place <= span[1] for one in left)
    factor = designed.mechanism.factor
    assert np.all(factor[found[0].last : found[1].first] == 0.0)
    heard = [np.any(factor[crop.rows] != 0, axis=0) for crop in found]
    assert not np.any(heard[0] & heard[1])
    assert np.all(heard[0] | heard[1])


def test_noise_fades_to_nothing_where_the_recording_goes_on() -> None:
    designed = made_for(APART[1:], BARE, LONG)
    (crop,) = found_in(APART[1:], BARE, LONG)
    deviations = np.sqrt(designed.mechanism.variances)
    rows = np.flatnonzero(deviations)
    reach = LONG[rows[[0, -1]]] - crop.start
    assert crop.reach[0] <= reach[0]
    assert reach[1] <= crop.reach[1]
    assert max(deviations[rows[0]], deviations[rows[-1]]) < 1e-3 * deviations.max()


@pytest.mark.parametrize("span", [(0.0, 0.0), (15_000.0, 15_000.0), (29_980.0, 29_980.0)])
def test_noise_is_sought_where_it_must_fade(span: Span, monkeypatch: pytest.MonkeyPatch) -> None:
    (crop,) = found_in([span], BARE, LONG)
    seen = []

    def noted(*arguments: Any, **options: Any) -> Splines:
        seen.append(options["fading"])
        return splines(*arguments, **options)

    monkeypatch.setattr("trailveil.release.designing.splines", noted)
    made_for([span], BARE, LONG)
    assert set(seen) == {crop.fading} == {(span[0] > 0, span[0] < LONG[-1])}


def test_noise_is_the_same_with_more_of_the_recording_far_away() -> None:
    """Rows that are added beyond the margin change nothing, before or after."""
    spans = [(15_000.0, 15_000.0)]
    (crop,) = found_in(spans, BARE, LONG)
    rows = slice(crop.first - 50, crop.last + 50)
    start = float(LONG[rows][0])
    here = made_for(spans, BARE, LONG).mechanism.factor[rows]
    moved = [(a - start, b - start) for a, b in spans]
    there = made_for(moved, BARE, LONG[rows] - start).mechanism.factor
    assert here.shape == there.shape
    assert np.abs(here - there).max() < 1e-6 * np.abs(here).max()


def test_a_part_in_a_gap_of_a_day() -> None:
    before, day = np.arange(200.0) * 20.0, 86_400.0
    times = np.concatenate([before, before + before[-1] + day])
    middle = float(before[-1] + day / 2)
    for spans in ([(middle, middle)], [(middle, middle + 600)]):
        designed = made_for(spans, BASIC, times)
        check(designed, spans, BASIC)


def test_withheld_rows_hold_no_noise_and_the_rest_is_still_enough() -> None:
    spans = [(300.0, 700.0)]
    withheld = (TIMES >= 240) & (TIMES <= 700)
    base = no_noise(TIMES).withholding(withheld)
    designed = made_for(spans, BASIC, base=base)
    mechanism = designed.mechanism
    assert np.array_equal(mechanism.rows, np.flatnonzero(~withheld))
    assert np.all(mechanism.factor[withheld] == 0.0)
    assert mechanism.noise_trace > 0
    check(designed, spans, BASIC)
    assert mechanism.noise_trace < made_for(spans, BASIC).mechanism.noise_trace


def test_where_withholding_is_enough_there_is_no_noise() -> None:
    base = no_noise(TIMES).withholding(TIMES < 1100)
    designed = made_for([(0.0, 100.0)], BASIC, base=base)
    assert designed.mechanism.noise_trace == 0.0
    check(designed, [(0.0, 100.0)], BASIC)


def test_what_each_must_be_left_with_in_place_of_the_bound() -> None:
    target = Target(BOUND, (*PLAIN, Named.POINT), left=100.0)
    spans = [(400.0, 400.0)]
    designed = made_for(spans, target)
    check(designed, spans, target)
    assert all(one.least >= 100.0 for one in designed.left[0])


@pytest.mark.parametrize("maker", [optimal, only_withheld])
def test_more_than_an_adversary_can_be_left_with_is_refused(maker: object) -> None:
    """Who knows a fix 60 s away knows the place to 155 m before any release."""
    assert callable(maker)
    target = Target(BOUND, (*PLAIN, Named.POINT), left=160.0)
    base = no_noise(TIMES).withholding((TIMES > 200) & (TIMES < 600))
    with pytest.raises(BeyondPrior, match=r"must be below the 154\.\d that one knows") as caught:
        maker(found_in([(400.0, 400.0)], target), base, target)
    # 10 m of the value, and 2 g(60) of the movement: the closed form of its kernel.
    moved = 2 * 9 * 60**2 * np.exp(-1.0)
    assert caught.value.most == pytest.approx(np.sqrt(moved + 10**2 + 2**2), rel=1e-3)


def test_withholding_alone_meets_the_target_or_says_by_how_much_not() -> None:
    base = no_noise(TIMES).withholding((TIMES >= 300) & (TIMES <= 1100))
    spans = [(700.0, 700.0)]
    designed = only_withheld(found_in(spans, BASIC), base, BASIC)
    assert designed.mechanism is base
    check(designed, spans, BASIC)
    early = [(320.0, 320.0)]
    with pytest.raises(Refused, match="times what may be lost; withhold longer") as caught:
        only_withheld(found_in(early, BASIC), base, BASIC)
    said = float(str(caught.value).split("got ")[1].split(" times")[0])
    assert said == pytest.approx(worst(early, BASIC, base), rel=5e-3)


def test_the_part_of_a_mechanism_at_a_crop() -> None:
    found = found_in(APART, BASIC, LONG)
    released = np.arange(LONG.size) % 7 > 0
    mechanism = Mechanism(LONG, LONG[:, None] + 1.0, 3.0, released=released)
    for crop in found:
        own = part_of(mechanism, crop)
        assert np.array_equal(own.times, crop.prior.times)
        assert np.array_equal(own.variances, mechanism.variances[crop.rows])
        assert np.array_equal(own.rows, np.flatnonzero(released[crop.rows]))


@pytest.mark.slow
@pytest.mark.parametrize("knows", [Named.PATH, Named.POINT])
@pytest.mark.parametrize("left", [None, 120.0])
def test_every_fix_of_a_long_stay_is_held(knows: Named, left: float | None) -> None:
    """More fixes than are looked at while noise is sought, and than are ever looked at evenly."""
    times, span = np.arange(230.0) * 10.0, (300.0, 1900.0)
    target = Target(BOUND, (Named.PLAIN, knows), left)
    designed = made_for([span], target, times)
    check(designed, [span], target)


@pytest.mark.parametrize("left", [None, 150.0])
def test_of_more_fixes_than_are_looked_at_the_worst_is_searched_for(
    left: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    times, span = np.arange(230.0) * 10.0, (300.0, 1900.0)
    target = Target(BOUND, (Named.PLAIN, Named.PATH), left)
    mechanism = made_for([span], target, times).mechanism
    (crop,) = found_in([span], target, times)
    flat = 0.0 if left else 1.0 / (100_000.0**2 * BOUND)  # of a loss, the level counts as flat
    share = worst([span], target, mechanism) + flat
    few = target.missed(judged(crop, mechanism, 0, target, quickly=True))
    assert few < share * (1 - 1e-6)
    monkeypatch.setattr("trailveil.release.demands._EVERY", 12)
    found = target.missed(judged(crop, mechanism, 0, target))
    assert found == pytest.approx(share, rel=1e-6)
    assert found >= share * (1 - 1e-7)
