"""Which fixes are left out, which are kept, and what pace is seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import InvalidValue
from trailveil.studies.calibration import PACES, SLACK, left_out, pace_of

GAPS = (0.0, 30.0, 150.0)


def straight(times: np.ndarray, speed: float) -> np.ndarray:
    return np.column_stack([0.6 * speed * times, 0.8 * speed * times])


@given(st.lists(st.floats(0.5, 90.0), min_size=2, max_size=120), st.sampled_from(GAPS))
def test_nothing_that_is_kept_is_nearer_than_the_gap(steps: list[float], gap: float) -> None:
    times = np.cumsum(steps)
    values = straight(times, 1.0)
    for case in left_out(times, values, [gap]):
        apart = np.abs(case.times - case.time)
        assert np.all(apart >= gap)
        assert np.all(apart > 0)
        assert np.all(np.diff(case.times) > 0)
        assert len(case.times) <= 64
        before, after = case.times[case.times < case.time], case.times[case.times > case.time]
        allowed = times[(np.abs(times - case.time) >= gap) & (times != case.time)]
        assert before[-1] == allowed[allowed < case.time][-1]
        assert after[0] == allowed[allowed > case.time][0]
        assert case.time - before[-1] <= gap + SLACK
        assert after[0] - case.time <= gap + SLACK
        assert np.all(np.isin(case.times, times))
        np.testing.assert_array_equal(case.values, straight(case.times, 1.0))
        np.testing.assert_array_equal(case.value, straight(np.array([case.time]), 1.0)[0])


def test_one_fix_alone_leaves_all_others() -> None:
    times = np.arange(0.0, 100.0, 5.0)
    cases = left_out(times, straight(times, 1.0), [0.0])
    assert len(cases) == 12
    assert all(len(case.times) == 19 for case in cases)
    assert len({case.time for case in cases}) == 12


@pytest.mark.parametrize("speed", [0.1, 1.0, 4.0, 12.0, 40.0])
def test_a_steady_pace_is_seen_as_it_is(speed: float) -> None:
    times = np.arange(0.0, 900.0, 7.0)
    cases = left_out(times, straight(times, speed), GAPS)
    assert {case.gap for case in cases} == set(GAPS)
    for case in cases:
        assert case.speed == pytest.approx(speed)
        assert case.pace == pace_of(speed)


def test_the_pace_is_that_of_what_is_seen_alone() -> None:
    times = np.arange(0.0, 901.0, 5.0)
    values = np.where(np.abs(times - 450) < 100, 1e4, 0.0)[:, None] * np.ones((1, 2))
    cases = [case for case in left_out(times, values, [150.0]) if abs(case.time - 450) < 40]
    assert cases
    assert all(case.speed == 0 and case.value[0] == 1e4 for case in cases)


def test_noise_of_a_still_receiver_is_no_pace() -> None:
    random = np.random.default_rng(0)
    times = np.arange(0.0, 600.0)
    cases = left_out(times, random.normal(0, 2.5, (600, 2)), GAPS)
    assert {case.pace for case in cases} == {"still"}


def test_paces_go_by_their_thresholds() -> None:
    for name, least in PACES.items():
        assert pace_of(least) == name
    assert pace_of(0.59) == "still"
    assert pace_of(1e9) == "fast"


def test_pauses_and_ends_are_not_predicted_across() -> None:
    times = np.concatenate([np.arange(0.0, 300.0, 5.0), np.arange(1000.0, 1300.0, 5.0)])
    cases = left_out(times, straight(times, 1.0), [30.0], most=1000)
    assert cases
    assert not [case for case in cases if 300 - 30 < case.time < 1000 + 30]
    assert min(case.time for case in cases) >= 30
    assert left_out(times[:3], straight(times[:3], 1.0), [30.0]) == []
    assert left_out(times[:0], straight(times[:0], 1.0), [0.0]) == []


def test_other_shapes_and_gaps_are_refused() -> None:
    times = np.arange(5.0)
    with pytest.raises(InvalidValue, match="one row of values"):
        left_out(times, times, [0.0])
    with pytest.raises(InvalidValue, match="0 s or more"):
        left_out(times, straight(times, 1.0), [-1.0])
