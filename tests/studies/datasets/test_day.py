"""The simulated day: the same for everyone, plausible, and as its plan says."""

import hashlib

import numpy as np
import pytest

from trailveil.errors import InvalidValue
from trailveil.studies.datasets import Day, day_plan, simulated_day
from trailveil.traces.projection import MICRO, frame_for, microdegrees
from trailveil.traces.trace import NANOSECONDS, Trace

SEEDS = range(5)


@pytest.fixture(scope="module", params=SEEDS)
def day(request: pytest.FixtureRequest) -> Trace:
    return simulated_day(request.param)


@pytest.fixture(scope="module")
def plan() -> Day:
    return day_plan()


def metres(trace: Trace, *places: tuple[float, float]) -> np.ndarray:
    positions = np.array(places) if places else trace.positions
    return frame_for(trace.positions).to_lattice(positions) / MICRO


def test_the_day_never_changes() -> None:
    trace = simulated_day()
    content = (
        trace.times.astype("<i8").tobytes() + microdegrees(trace.positions).astype("<i8").tobytes()
    )
    assert (
        hashlib.sha256(content).hexdigest()
        == "7695b037f52d9c3bcdb05506e658c7fcaeaa2b61d1b73da108d6534f6cbbbac6"
    )


def test_seeds_differ_and_repeat(day: Trace) -> None:
    again = [simulated_day(seed) for seed in SEEDS]
    same = [np.array_equal(day.positions, other.positions) for other in again]
    assert sum(same) == 1


def test_a_seed_is_an_integer() -> None:
    with pytest.raises(InvalidValue, match="seed must be an integer, got str"):
        simulated_day("0")  # type: ignore[arg-type]  # wrong on purpose


def test_it_has_the_size_and_the_sampling_of_a_recording(day: Trace) -> None:
    assert 600 <= len(day) <= 1200
    steps = np.diff(day.seconds)
    assert np.median(steps) == pytest.approx(10, abs=0.5)
    assert np.std(steps[steps < 30]) > 1
    assert (steps > 30).sum() == 2  # the pause and the gap
    assert (day.times % (NANOSECONDS // 1000) == 0).all()
    assert (microdegrees(day.positions) / MICRO == day.positions).all()


def test_the_pause_ends_a_segment_and_the_gap_does_not(day: Trace, plan: Day) -> None:
    for (begin, end), segments in ((plan.pause, {0, 1}), (plan.gap, {1})):
        assert not ((day.times > begin) & (day.times < end)).any()
        around = np.abs(day.times - (begin + end) // 2) < (end - begin) // 2 + 20 * NANOSECONDS
        assert set(day.segments[around].tolist()) == segments
    assert np.bincount(day.segments).min() > 100


def test_fixes_of_a_stay_scatter_around_its_place_by_the_noise(day: Trace, plan: Day) -> None:
    assert [stay.name for stay in plan.stays] == ["home", "clinic", "home"]
    for stay in plan.stays:
        here = (day.times >= stay.begin) & (day.times <= stay.end)
        place = metres(day, (stay.latitude, stay.longitude))
        errors = metres(day)[here] - place
        assert here.sum() > 150
        assert np.std(errors, axis=0) == pytest.approx([2, 2], rel=0.2)
        assert np.abs(np.mean(errors, axis=0)).max() < 0.6


def test_home_is_one_place_and_the_clinic_kilometres_away(day: Trace, plan: Day) -> None:
    home, clinic, again = (metres(day, (stay.latitude, stay.longitude))[0] for stay in plan.stays)
    assert (home == again).all()
    assert 3_000 < np.hypot(*(home - clinic)) < 10_000


def test_the_day_begins_and_ends_at_home(day: Trace, plan: Day) -> None:
    first, _, last = plan.stays
    assert first.begin < day.times[0] < first.begin + 60 * NANOSECONDS
    assert last.end - 60 * NANOSECONDS < day.times[-1] < last.end


def test_rides_are_as_fast_as_rides_and_their_velocity_persists(day: Trace, plan: Day) -> None:
    home, clinic, _ = plan.stays
    riding = (day.times > home.end) & (day.times < clinic.begin)
    steps = np.diff(day.seconds[riding])
    velocity = np.diff(metres(day)[riding], axis=0) / steps[:, None]
    speed = np.hypot(*velocity.T)
    assert 2 < np.median(speed) < 8
    assert speed.max() < 15
    wander = velocity - velocity.mean(axis=0)
    correlation = (wander[1:] * wander[:-1]).sum() / (wander**2).sum()
    assert correlation > 0.5
