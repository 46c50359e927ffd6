"""What is public already, against dense conditioning: what is left is what a cut says it leaves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rides import ride
from trailveil.errors import Refused
from trailveil.gp.kernels import Constant, IntegratedOU
from trailveil.privacy.adversaries import Named
from trailveil.privacy.movement import Movement
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.public import Around, Position, relevant
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS

MOVEMENT = Movement(3.0, 60.0)
TRACE = ride(720, 5.0)
CHOSEN = Chosen(("start+30m",), returns=False, ends=False)
CUT = Request((), floor=3.0, middle=3.0)


def information(known: list[tuple[float, float]]) -> float:
    """1 / m^2 that positions tell of the window's place by dense conditioning.

    known: seconds from the window, below 0 before it, and metres to which each is known. The clock
    stands still in the window: nobody moves there.
    """
    times = np.array([time for time, _ in known] + [0.0])
    shifted = times + 20_000.0
    prior = IntegratedOU(MOVEMENT.speed, MOVEMENT.time_constant)(shifted, shifted)
    prior = prior + Constant(1e5)(shifted, shifted)
    noise = np.array([deviation for _, deviation in known]) ** 2
    both, whole = prior[:-1, -1], prior[:-1, :-1] + np.diag(np.maximum(noise, 1e-6))
    return float(1 / (prior[-1, -1] - both @ np.linalg.solve(whole, both)))


def released(seconds: float, side: int) -> list[tuple[float, float]]:
    """A recording on one side, from some seconds on, a fix every 5 s."""
    return [(side * (seconds + 5.0 * i), 0.0) for i in range(60)]


positions = st.lists(
    st.tuples(
        st.floats(5.0, 900.0).flatmap(lambda away: st.sampled_from([away, -away])),
        st.sampled_from([0.0, 3.0, 20.0, 100.0, 400.0]),
    ),
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(positions, st.floats(30.0, 600.0), st.tuples(st.booleans(), st.booleans()))
def test_what_positions_tell_is_no_more_than_is_reckoned(
    public: list[tuple[float, float]], seconds: float, recorded: tuple[bool, bool]
) -> None:
    """A law: the bound of false tracks holds for any positions, and for a cut on either side."""
    now = 10**18
    stated = [Position(now + round(away * NANOSECONDS), deviation) for away, deviation in public]
    around = Around.of(stated, now, now, 0.0)
    known = list(public)
    for side, is_recorded in zip((-1, 1), recorded, strict=True):
        known += released(seconds, side) if is_recorded else []
    if known:
        assert information(known) <= around.precision(MOVEMENT, seconds, recorded) * 1.001 + 1e-9
    # A longer cut never tells more.
    longer = around.precision(MOVEMENT, 1.5 * seconds, recorded)
    assert longer <= around.precision(MOVEMENT, seconds, recorded) * (1 + 1e-12)


def test_the_bound_is_near_what_is_told() -> None:
    """Of one exact position on a side, an adversary lacks the velocity alone."""
    for away, deviation in ((120.0, 0.0), (300.0, 0.0), (300.0, 30.0)):
        now = 10**18
        around = Around.of([Position(now + round(away * 1e9), deviation)], now, now, 0.0)
        told = information([(away, deviation), *released(600.0, -1)])
        assert told <= around.precision(MOVEMENT, 600.0, (True, False)) < 2.1 * told


def planned(public: list[Position], request: Request = CUT) -> Plan:
    return protect(TRACE, requested(TRACE, CHOSEN, request, (), public))


def at(minutes: float, deviation: float = 0.0) -> Position:
    return Position(int(TRACE.times[0]) + round(minutes * 60 * NANOSECONDS), deviation)


def seconds_known(plan: Plan, public: list[Position]) -> list[tuple[float, float]]:
    """All that is exact or public of a cut, in seconds from the window's two edges."""
    begin, end = 30 * 60.0 - 60.0, 30 * 60.0 + 60.0
    fixes = [(time, 0.0) for time in np.array(plan.trace.seconds)[plan.mechanism.rows].tolist()]
    first = int(TRACE.times[0])
    fixes += [((when - first) / NANOSECONDS, deviation) for when, deviation in public]
    return [(min(t - begin, 0.0) + max(t - end, 0.0), deviation) for t, deviation in fixes]


@pytest.mark.parametrize(
    "public",
    [
        [at(32.5)],
        [at(27.4), at(27.3), at(33.3), at(33.4)],
        [at(32.5, 5.0), at(32.6, 5.0)],
        [at(30.5, 400.0), at(29.5, 400.0)],
    ],
    ids=["one side", "both sides", "to 20 m", "in the window, to 400 m"],
)
def test_a_cut_leaves_what_it_promises_whatever_is_public(public: list[Position]) -> None:
    """By dense conditioning on all that is released and public; without reckoning it would not."""
    request = replace(CUT, radius=70.0)
    plan, blind = planned(public, request), planned([], request)
    promised = plan.request.variance
    assert 1 / information(seconds_known(plan, public)) >= promised * 0.999
    assert 1 / information(seconds_known(blind, public)) < promised
    (finding,), (other,) = plan.findings, blind.findings
    assert finding.cut is not None
    assert other.cut is not None
    assert finding.cut > other.cut
    assert finding.guarantee.epsilon <= 1.0
    assert plan.identity != blind.identity


def test_what_is_far_changes_nothing() -> None:
    """A position beyond a cut, where all is exact, tells nothing more: the release is the same."""
    far = [at(5.0), at(55.0), at(55.0, 10.0)]
    assert planned(far).findings == planned([]).findings
    assert planned(far).identity == planned([]).identity
    more = [at(4.0), at(3.0, 10.0), at(56.0)]  # beyond exact positions
    assert relevant([*far, *more], [(at(30.0).when,) * 2], 60) == tuple(sorted(far)[:2])


@pytest.mark.parametrize(
    ("public", "message"),
    [
        ([at(30.0)], "tells it exactly, by a position in it"),
        ([at(30.9)], "tells it exactly, by a position in it"),
        ([at(30.0, 30.0)], r"tells it within \d+ m 68 times in 100, by a position in it"),
        ([at(31.2)], r"tells it within \d+ m 68 times in 100, by a position beside it"),
    ],
)
def test_a_part_that_is_public_is_refused(public: list[Position], message: str) -> None:
    with pytest.raises(Refused, match=message):
        planned(public)


def test_noise_is_used_only_where_it_is_proved() -> None:
    """An adversary who knows the path from 5 minutes on knows what is public there."""
    noise = replace(CUT, method=Method.NOISE)
    far = [at(24.9), at(35.1, 10.0)]
    assert np.array_equal(planned(far, noise).mechanism.factor, planned([], noise).mechanism.factor)
    refusals: list[tuple[list[Position], dict[str, Any]]] = [
        ([at(25.1)], {}),
        ([at(34.9, 400.0)], {}),
        ([at(-10.0)], {}),
        ([at(24.0)], {"who": (Named.PLAIN,)}),
        ([at(24.0)], {"method": Method.EVERYWHERE}),
        ([at(25.1)], {"method": Method.BOTH}),
    ]
    for public, more in refusals:
        chosen = CHOSEN if more.get("method") != Method.EVERYWHERE else Chosen(ends=False)
        with pytest.raises(Refused, match="proved against what is public already"):
            requested(TRACE, chosen, replace(noise, **more), (), public)


def test_an_end_of_a_recording_is_told_by_what_follows() -> None:
    """A photo at the door after the ride: the cut at the end is longer, or there is none."""
    chosen = Chosen(returns=False)
    end = int(TRACE.times[-1])
    later = [Position(end + round(300 * NANOSECONDS), 0.0)]
    plain, longer = (
        protect(TRACE, requested(TRACE, chosen, CUT, (), public)) for public in ([], later)
    )
    last, told = plain.findings[-1].cut, longer.findings[-1].cut
    assert last is not None
    assert told is not None
    assert told > last
    assert longer.findings[0].cut == plain.findings[0].cut
    door = [Position(end + round(70 * NANOSECONDS), 0.0)]
    with pytest.raises(Refused, match="by a position beside it"):
        protect(TRACE, requested(TRACE, chosen, CUT, (), door))
