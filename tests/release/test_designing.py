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
from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior
from trailveil.release import designing
from trailveil.release.crops import Crop, crops
from trailveil.release.designing import Designed, only_withheld, optimal
from trailveil.release.request import DEFAULT_KERNEL

TIMES = ride(61, 20.0).seconds
BOUND = 1e-5
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


def found_in(spans: Sequence[Span], times: FloatArray = TIMES) -> list[Crop]:
    return crops(DEFAULT_KERNEL, times, spans, BOUND**-0.5)


def made_for(
    spans: Sequence[Span], times: FloatArray = TIMES, base: Mechanism | None = None
) -> Designed:
    return optimal(found_in(spans, times), base or no_noise(times), BOUND)


def worst(spans: Sequence[Span], mechanism: Mechanism, *, near: int | None = None) -> float:
    """The largest loss over what is allowed, of all parts; `near` rows around each are enough.

    Those far away are released as they are, so what is further still tells nothing more.
    """
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
        here = (span[0] - start, span[1] - start)
        shares.append(exposed(Prior(DEFAULT_KERNEL, own.times), own, here)[0] / BOUND)
    return max(shares)


def check(designed: Designed, spans: Sequence[Span], *, near: int | None = None) -> None:
    """Met, to the rounding of the oracle; and what is said is no better than what is so."""
    share = worst(spans, designed.mechanism, near=near)
    assert share <= 1 + 1e-7
    said = max(exposure.loss for exposure in designed.exposures) / BOUND
    assert share * (1 - 1e-7) <= said <= 1.0
    assert len(designed.exposures) == len(spans)


@pytest.mark.parametrize("name", SPANS)
def test_the_least_noise_meets_everything(name: str) -> None:
    spans = [SPANS[name]]
    designed = made_for(spans)
    check(designed, spans)
    assert worst(spans, designed.mechanism) > 0.99  # and not by far too much
    assert designed.mechanism.floor == 0.0
    assert designed.gap is None or 0.0 <= designed.gap < 2e-3


def test_a_short_recording_with_a_lost_fix() -> None:
    """What the fixes tell that were not looked at, more of the same noise did not hide."""
    times = np.array([second for second in range(0, 200, 5) if second != 20], dtype=float)
    spans = [(30.0, 150.0)]
    check(made_for(spans, times), spans)


def test_more_of_a_noise_that_does_not_help_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(designing, "_ALL_ROWS", 0)
    times = np.array([second for second in range(0, 200, 5) if second != 20], dtype=float)
    with pytest.raises(NumericalError, match="must meet its own target"):
        made_for([(30.0, 150.0)], times)


def test_one_time_needs_what_its_closed_form_says() -> None:
    """Against the plain adversary alone: white noise of variance T at every point loses as much."""
    designed = made_for([(400.0, 400.0)])
    white = Mechanism(TIMES, np.empty((61, 0)), designed.mechanism.noise_trace)
    assert worst([(400.0, 400.0)], white) == pytest.approx(1.0, rel=2e-3)


def test_two_parts_that_are_near_share_a_crop() -> None:
    spans = [(700.0, 700.0), (300.0, 500.0)]
    assert len(found_in(spans)) == 1
    designed = made_for(spans)
    check(designed, spans)
    assert designed.gap is None
    alone = made_for(spans[1:]).mechanism.noise_trace
    assert designed.mechanism.noise_trace > alone


LONG = np.arange(1_500.0) * 20.0
APART = [(22_000.0, 22_300.0), (5_000.0, 5_000.0)]


def test_two_parts_far_apart_have_noise_of_their_own() -> None:
    found = found_in(APART, LONG)
    assert len(found) == 2
    designed = made_for(APART, LONG)
    check(designed, APART, near=400)
    assert designed.gap is None
    # In the order of the parts, not of the crops.
    for span, part in zip(APART, designed.exposures, strict=True):
        _, least = exposed(Prior(DEFAULT_KERNEL, LONG), designed.mechanism, span)
        assert part.posterior == pytest.approx(least, rel=1e-4)
    factor = designed.mechanism.factor
    assert np.all(factor[found[0].last : found[1].first] == 0.0)
    heard = [np.any(factor[crop.rows] != 0, axis=0) for crop in found]
    assert not np.any(heard[0] & heard[1])
    assert np.all(heard[0] | heard[1])


def test_noise_fades_to_nothing_where_the_recording_goes_on() -> None:
    designed = made_for(APART[1:], LONG)
    (crop,) = found_in(APART[1:], LONG)
    deviations = np.sqrt(designed.mechanism.variances)
    rows = np.flatnonzero(deviations)
    reach = LONG[rows[[0, -1]]] - crop.start
    assert crop.reach[0] <= reach[0]
    assert reach[1] <= crop.reach[1]
    assert max(deviations[rows[0]], deviations[rows[-1]]) < 1e-3 * deviations.max()


@pytest.mark.parametrize("span", [(0.0, 0.0), (15_000.0, 15_000.0), (29_980.0, 29_980.0)])
def test_noise_is_sought_where_it_must_fade(span: Span, monkeypatch: pytest.MonkeyPatch) -> None:
    (crop,) = found_in([span], LONG)
    seen = []

    def noted(*arguments: Any, **options: Any) -> Splines:
        seen.append(options["fading"])
        return splines(*arguments, **options)

    monkeypatch.setattr("trailveil.release.designing.splines", noted)
    made_for([span], LONG)
    assert set(seen) == {crop.fading} == {(span[0] > 0, span[0] < LONG[-1])}


def test_noise_is_the_same_with_more_of_the_recording_far_away() -> None:
    """Rows that are added beyond the margin change nothing, before or after."""
    spans = [(15_000.0, 15_000.0)]
    (crop,) = found_in(spans, LONG)
    rows = slice(crop.first - 50, crop.last + 50)
    start = float(LONG[rows][0])
    here = made_for(spans, LONG).mechanism.factor[rows]
    moved = [(a - start, b - start) for a, b in spans]
    there = made_for(moved, LONG[rows] - start).mechanism.factor
    assert here.shape == there.shape
    assert np.abs(here - there).max() < 1e-6 * np.abs(here).max()


def test_a_part_in_a_gap_of_a_day() -> None:
    before, day = np.arange(200.0) * 20.0, 86_400.0
    times = np.concatenate([before, before + before[-1] + day])
    middle = float(before[-1] + day / 2)
    for spans in ([(middle, middle)], [(middle, middle + 600)]):
        designed = made_for(spans, times)
        check(designed, spans)


def test_withheld_rows_hold_no_noise_and_the_rest_is_still_enough() -> None:
    spans = [(300.0, 700.0)]
    withheld = (TIMES >= 240) & (TIMES <= 700)
    base = no_noise(TIMES).withholding(withheld)
    designed = made_for(spans, base=base)
    mechanism = designed.mechanism
    assert np.array_equal(mechanism.rows, np.flatnonzero(~withheld))
    assert np.all(mechanism.factor[withheld] == 0.0)
    assert mechanism.noise_trace > 0
    check(designed, spans)
    assert mechanism.noise_trace < made_for(spans).mechanism.noise_trace


def test_where_withholding_is_enough_there_is_no_noise() -> None:
    base = no_noise(TIMES).withholding(TIMES < 1100)
    designed = made_for([(0.0, 100.0)], base=base)
    assert designed.mechanism.noise_trace == 0.0
    check(designed, [(0.0, 100.0)])


def test_withholding_alone_meets_the_target_or_says_by_how_much_not() -> None:
    base = no_noise(TIMES).withholding((TIMES >= 300) & (TIMES <= 1100))
    spans = [(700.0, 700.0)]
    designed = only_withheld(found_in(spans), base, BOUND)
    assert designed.mechanism is base
    check(designed, spans)
    early = [(320.0, 320.0)]
    with pytest.raises(Refused, match="times what may be lost; withhold longer") as caught:
        only_withheld(found_in(early), base, BOUND)
    said = float(str(caught.value).split("got ")[1].split(" times")[0])
    assert said == pytest.approx(worst(early, base), rel=5e-3)


def test_the_part_of_a_mechanism_at_a_crop() -> None:
    found = found_in(APART, LONG)
    released = np.arange(LONG.size) % 7 > 0
    mechanism = Mechanism(LONG, LONG[:, None] + 1.0, 3.0, released=released)
    for crop in found:
        own = crop.part_of(mechanism)
        assert np.array_equal(own.times, crop.prior.times)
        assert np.array_equal(own.variances, mechanism.variances[crop.rows])
        assert np.array_equal(own.rows, np.flatnonzero(released[crop.rows]))
