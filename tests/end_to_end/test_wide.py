"""A recording over several countries is protected like any other, for true metres."""

from dataclasses import replace

import numpy as np
import pytest

from tests.ledger.test_accounting import HOME
from tests.rides import ride
from trailveil.errors import Refused
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.release.drawing import draw
from trailveil.release.places import Visited
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.projection import Frame
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

AT = 20  # the fix whose time is protected


def travelled(degrees: float) -> Trace:
    """A ride, a journey of so many degrees to the east and half as many north, and a ride there."""
    home = ride(40, 20.0)
    there = ride(40, 20.0, seed=2, at=(48.1 + degrees / 2, 11.6 + degrees))
    way = np.linspace(home.positions[-1], there.positions[0], 12)[1:-1]
    fly = home.times[-1] + np.arange(1, 11) * 3600 * NANOSECONDS
    later = there.times - there.times[0] + fly[-1] + 3600 * NANOSECONDS
    times = np.concatenate([home.times, fly, later])
    positions = np.concatenate([home.positions, way, there.positions])
    return Trace(times, positions, np.zeros(len(times), dtype=np.intp), (0,))


def asked(trace: Trace, row: int = AT) -> Request:
    when = int(trace.times[row])
    return Request((Stretch("at a stated time", when, when),), method=Method.NOISE)


@pytest.fixture(scope="module")
def plan() -> Plan:
    trace = travelled(24.0)
    return protect(trace, asked(trace))


def test_the_noise_is_made_for_the_radius_in_true_metres(plan: Plan) -> None:
    error = plan.frame.scale_error
    assert 0.005 < error < 0.03
    assert plan.request.scale == 1 + error
    bound = loss_bound_for(1.0, 100.0 * (1 + error), 5.0)
    (finding,) = plan.findings
    worst = (
        max(exposure.loss for exposure in finding.exposures) / plan.request.wide**2
    )  # of the frame
    assert worst <= bound * (1 + 1e-9)
    # Two places 100 m apart in truth, in any direction, are told apart no better than epsilon 1.
    place = plan.trace.positions[AT]
    for angle in np.linspace(0.0, np.pi, 7):
        step = 100.0 * np.array([np.cos(angle), np.sin(angle) / np.cos(np.radians(place[0]))])
        both = np.array([place, place + np.degrees(step / 6_378_137.0)])
        apart = np.hypot(*(np.diff(plan.frame.to_lattice(both), axis=0)[0] / 1e6))
        assert 5.0 / 2 * apart**2 * worst <= 1.0 + 5e-3  # of the sphere that steps are made on
    assert finding.guarantee.epsilon <= 1.0 + 1e-9


def test_what_is_left_is_said_in_true_metres(plan: Plan) -> None:
    (finding,) = plan.findings
    wide = plan.request.wide
    assert wide == pytest.approx((1 + plan.frame.scale_error) / (1 + Frame.SCALE_ERROR))
    of_the_frame = plan.request.bound**-0.5
    for exposure in finding.exposures:
        known = exposure.prior * wide  # of the frame
        left = 1 / np.sqrt(of_the_frame**-2 + known**-2)
        assert exposure.posterior == pytest.approx(left / wide, rel=1e-12)
    assert finding.deviation == pytest.approx(of_the_frame / wide, rel=1e-12)


def test_a_cut_leaves_true_metres() -> None:
    """As long a cut as leaves the metres that were asked for, times the scale of the frame."""
    trace = travelled(24.0)
    made = protect(trace, replace(asked(trace, -1), method=Method.CUT))
    (finding,) = made.findings
    assert finding.cut is not None
    left = made.request.slowest.bridged(finding.cut - made.request.uncertain)
    (exposure,) = finding.exposures
    assert exposure.posterior == pytest.approx(left**0.5 / made.request.wide, rel=1e-12)
    assert exposure.posterior**2 >= 2.5 * (100.0 * (1 + Frame.SCALE_ERROR)) ** 2


def test_what_is_far_from_the_part_is_released_as_it_was_recorded(plan: Plan) -> None:
    released, grid = draw(plan, bytes(32))
    assert len(released) == len(plan.trace)
    still = np.flatnonzero(np.all(plan.mechanism.factor == 0, axis=1))
    assert still.size > 30
    recorded = np.floor(plan.trace.positions * 1e6 + 0.5).astype(np.int64)
    assert np.array_equal(grid[still], recorded[still])


def test_a_frame_that_is_not_wide_gives_what_it_gave() -> None:
    trace = ride(40, 20.0)
    request = asked(trace)
    assert request.framed(protect(trace, request).frame) == request
    assert replace(request, scale=1.1).design == request.design


def test_places_with_names_are_for_frames_that_are_not_wide() -> None:
    trace = travelled(24.0)
    home = Visited(HOME, ((int(trace.times[0]), int(trace.times[9])),), bytes(32))
    with pytest.raises(Refused, match="within 480 km"):
        protect(trace, asked(trace), places=[home])
