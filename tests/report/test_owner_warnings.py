"""What hides less than is said is said at once, in words, to the owner alone."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.rides import BEGIN, ride, route
from trailveil.errors import Refused
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.report.owner_warnings import heed
from trailveil.report.record import record
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS, Trace

DEGREE = 111_194.9


def straight(speed: float, count: int = 120, step: float = 30.0, gap: float = 0.0) -> Trace:
    """North at one speed, with a gap of seconds after the middle, in which there are 200 m."""
    seconds = np.arange(count) * step
    metres = speed * seconds + 0.5 * np.random.default_rng(2).normal(size=count)
    seconds[count // 2 :] += gap
    metres[count // 2 :] += 200.0 if gap else 0.0
    positions = np.column_stack([48.0 + metres / DEGREE, np.full(count, 11.0)])
    times = BEGIN * NANOSECONDS + (seconds * NANOSECONDS).astype(np.int64)
    return Trace(times, positions, np.zeros(count, dtype=np.intp), (0,))


def planned(trace: Trace, chosen: Chosen | None = None, **asked: float) -> Plan:
    request = replace(Request(()), **asked)  # type: ignore[arg-type]  # numbers of a request
    return protect(trace, requested(trace, chosen or Chosen(returns=False), request))


@pytest.mark.parametrize(("floor", "slower"), [(1.9, False), (2.1, True), (50.0, True)])
def test_a_pace_below_the_one_that_the_cut_reckons_with_is_named(
    floor: float, slower: bool
) -> None:
    sentences = heed(planned(straight(2.0), floor=floor))
    named = [sentence for sentence in sentences if "it hides less than is said here" in sentence]
    assert bool(named) == slower
    if slower:
        assert re.match(r"You moved at 1\.9\d m/s beside what is hidden", named[0])


@pytest.mark.parametrize("speed", [1.3999, 0.98765, 2.0])
def test_the_advised_floor_is_slow_enough(speed: float) -> None:
    """Rounded down, and slow enough for what it cuts besides."""
    sentences = heed(planned(straight(speed, 2400), floor=speed * 1.00001 + 0.2))
    (advice,) = [
        words for sentence in sentences for words in re.findall(r"--floor (\S+)", sentence)
    ]
    assert float(advice) == pytest.approx(speed, rel=0.02)
    assert not any(
        "You moved" in each for each in heed(planned(straight(speed, 2400), floor=float(advice)))
    )


def midday(slow: float) -> Trace:
    """Home, away, 40 minutes at home, away; the first 20 minutes of that at this pace."""
    begins, leaves = 1800.0, 4200.0
    corners = [(0, -6000), (begins, 0), (leaves, 0), (leaves + 1200, 1200 * slow), (7000, 9000)]
    return route(
        "midday", [(when, east, 0) for when, east in corners], [], step=5.0, noise=0.1
    ).trace


@pytest.mark.parametrize("slow", [3.0, 0.4])
def test_a_time_within_a_part_that_hides_it_as_well_is_judged_with_that_part(slow: float) -> None:
    """Who stands still in a hidden stay is no slower beside it; who leaves it slowly is."""
    stay = (("start+30m", "start+70m"),)
    for more in ({}, {"withhold": 1200.0}):
        warned = []
        for times in ((), ("start+50m",)):
            chosen = Chosen(at=times, between=stay, ends=False, returns=False)
            plan = planned(midday(slow), chosen, radius=60.0, floor=1.4, middle=1.2, **more)
            warned.append([each for each in heed(plan) if "You moved" in each])
        assert warned[0] == warned[1]
        assert bool(warned[0]) == (slow < 1)


def test_a_time_that_is_said_to_be_hidden_better_than_its_stay_is_judged_alone() -> None:
    chosen = Chosen(at=("start+50m",), between=(("start+30m", "start+70m"),), ends=False)
    plan = planned(midday(3.0), chosen, radius=60.0, floor=1.4, middle=1.2)
    inner = next(part for part in plan.findings if not part.stretch.is_stay)
    (outer,) = (part for part in plan.findings if part.stretch.is_stay)
    (exposure,) = inner.exposures
    better = replace(inner, exposures=(replace(exposure, posterior=1.1 * exposure.posterior),))
    assert not any("You moved" in each for each in heed(plan))
    assert any("You moved" in each for each in heed(replace(plan, findings=(better, outer))))


def test_no_floor_is_advised_that_leaves_nothing() -> None:
    (sentence,) = heed(planned(straight(0.3, 100), floor=50.0))
    assert "You moved at 0.296 m/s" in sentence
    assert "--floor" not in sentence
    assert "do not publish it" in sentence


def test_no_stop_is_to_be_hidden_that_leaves_nothing() -> None:
    trace = straight(8.0, count=20, gap=700.0)
    (sentence,) = [each for each in heed(planned(trace, floor=6.0)) if "There is no fix" in each]
    assert "--stops-within" not in sentence
    assert "If you stopped there, do not publish it" in sentence


def test_a_gap_that_may_be_a_stop_is_named_with_what_finds_it() -> None:
    trace = straight(2.0, gap=700.0)
    sentences = heed(planned(trace))
    (named,) = [sentence for sentence in sentences if "There is no fix for 12 min" in sentence]
    assert "261 m apart" in named
    assert "--stops-within 300" in named
    found = planned(trace, Chosen(stops=(300.0, 300.0), returns=False))
    assert not any("There is no fix" in sentence for sentence in heed(found))
    # Who goes on at the pace that is reckoned with has not stopped.
    assert not any("There is no fix" in sentence for sentence in heed(planned(straight(2.0))))


def test_others_are_told_none_of_it() -> None:
    plan = planned(straight(2.0, gap=700.0), floor=50.0)
    sentences = heed(plan)
    assert len(sentences) == 2
    report = record(plan, None, output="x.gpx", private=False)
    words = repr(report)
    assert not any(sentence in words for sentence in sentences)
    assert "heed" not in report
    assert record(plan, None, output="x.gpx")["heed"] == sentences


def test_two_stays_near_each_other_are_not_told_to_be_added_again() -> None:
    """Both are protected already: only as one are they hidden as is said."""
    trace = ride(400, 10.0, still=(150, 200))
    positions = trace.positions.copy()
    positions[230:280] = positions[230]
    looked_for = Chosen(stops=(100.0, 300.0), ends=False, returns=False)
    plan = planned(replace(trace, positions=positions), looked_for)
    assert len(plan.findings) == 2
    words = " ".join(record(plan, None, output="x.gpx")["warnings"])
    assert "protect both as one (--between)" in words
    assert "add --stops auto" not in words


def test_a_recording_of_one_place_is_not_to_be_published_and_no_other_part_is_advised() -> None:
    trace = straight(0.05, count=28)  # 41 m
    for chosen in (Chosen(returns=False), Chosen(("start+7m",), ends=False, returns=False)):
        with pytest.raises(Refused, match=r"stays there: do not publish it$"):
            planned(trace, chosen)
