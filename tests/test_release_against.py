"""Releases against the default set, in metres, and with what is cheapest withheld."""

from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from trailveil.adversaries import DEFAULT, Named, every
from trailveil.adversary import exposures
from trailveil.errors import Refused
from trailveil.guarantee import CIRCLE_68
from trailveil.prior import Prior
from trailveil.projection import Frame
from trailveil.release import Request, plan
from trailveil.secrets import basic, window_mean
from trailveil.selection import Stretch
from trailveil.trace import Trace

STILL = (Named.PLAIN, Named.STILL)
TRACE = ride(60, 20.0, still=(20, 35))


def stretch(trace: Trace, first: int, last: int) -> Stretch:
    return Stretch("x", int(trace.times[first]), int(trace.times[last]))


@pytest.mark.slow
def test_everyone_of_the_default_set_is_left_with_what_the_target_demands() -> None:
    """A stay of 10 minutes in an hour: about 470 m of noise, recomputed from the mechanism."""
    trace = ride(181, 20.0, still=(75, 105))
    request = Request((stretch(trace, 75, 105),))
    made = plan(trace, request)
    (found,) = made.findings
    assert [one.adversary for one in found.left] == [
        "plain",
        "knows one true place 60 s or more away",
        "knows the path 300 s or more away",
        "knows that the speed is 1 m/s",
        "knows that the speed is 10 m/s",
        "sees standing still",
        "knows one true place 60 s or more away, sees standing still",
        "knows the path 300 s or more away, sees standing still",
        "knows that the speed is 1 m/s, sees standing still",
        "knows that the speed is 10 m/s, sees standing still",
    ]
    prior, (begin, end) = Prior(request.kernel, trace.seconds), (1500.0, 2100.0)
    inside = trace.seconds[75:106]
    fixes = [*(basic(float(time)) for time in inside[::5]), window_mean(inside)]
    for who in every(DEFAULT, request.kernel, [(begin, end)]):
        one = who if who.still else replace(who, unseen=((begin, end),))
        places = [basic(begin)] if who.still else fixes
        for place in places:
            for seen in exposures(prior, place, made.mechanism, one):
                assert seen.loss <= request.bound * (1 + 1e-9)
                assert seen.after >= seen.required(request.bound) * (1 - 1e-9)
    assert made.mechanism.rms == pytest.approx(470, rel=0.02)
    assert made.gap is not None
    assert made.gap < 0.03


@pytest.mark.slow
def test_metres_can_be_asked_for_in_place_of_epsilon() -> None:
    request = Request((stretch(TRACE, 20, 35),), leave=200.0)
    made = plan(TRACE, request)
    left = [CIRCLE_68 * one.after for one in made.findings[0].left]
    assert min(left) == pytest.approx(200, rel=5e-3)
    assert min(left) >= 200 * (1 - 1e-9)
    with pytest.raises(Refused, match=r"metres to leave must be below 2\d\d, got 300"):
        plan(TRACE, replace(request, leave=300.0))


@pytest.mark.slow
def test_as_long_as_is_cheapest_is_withheld() -> None:
    trace = ride(181, 20.0, still=(75, 105))
    request = Request((stretch(trace, 75, 105),), withhold="auto", who=STILL)
    made = plan(trace, request)
    kinds = [one.kind for one in made.prices]
    assert kinds == ["noise", "withholding", "both"]
    noise, alone, both = made.prices
    assert both.total <= min(noise.total, alone.total) * 1.05
    assert made.withheld_for == both.seconds
    kept = plan(trace, replace(request, withhold=made.withheld_for))
    assert np.array_equal(kept.mechanism.factor, made.mechanism.factor)
    dear = plan(trace, replace(request, rate=1e6))
    assert dear.mechanism.rows.size == 181
    cheap = plan(trace, replace(request, rate=1.0))
    assert cheap.mechanism.noise_trace == 0


def test_metres_are_true_metres_where_the_frame_has_longer_ones() -> None:
    request = Request((stretch(TRACE, 0, 0),), leave=150.0)
    assert request.target.left == pytest.approx(150 * (1 + Frame.SCALE_ERROR) / CIRCLE_68)
    assert request.target.deviation == request.target.left
