"""Certificates of releases: never above what is said, on the whole recording; planted errors."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.kinds import recording
from tests.rides import ride
from trailveil.adversaries import Named
from trailveil.certifying import certify_plan
from trailveil.crops import crops
from trailveil.errors import NumericalError, Unavailable
from trailveil.guarantee import CIRCLE_68, Guarantee
from trailveil.kinds import DesignFor
from trailveil.mechanism import no_noise
from trailveil.priors import BUILT_IN
from trailveil.projection import Frame, frame_for
from trailveil.release import Noise, Plan, Request, plan
from trailveil.selection import Stretch
from trailveil.trace import Trace

pytest.importorskip("flint")

NOWHERE = np.zeros((120, 2), dtype=np.int64)
STILL = ride(120, 15.0, still=(50, 60))


def stretch(trace: Trace, begin: int, end: int) -> Stretch:
    return Stretch("part", int(trace.times[begin]), int(trace.times[end]))


@cache
def planned(
    who: tuple[Named, ...] = (Named.PLAIN, Named.POINT), leave: float | None = None
) -> Plan:
    parts = (stretch(STILL, 50, 60), stretch(STILL, 100, 100))
    return plan(STILL, Request(parts, who=who, leave=leave))


@pytest.mark.parametrize("length", [0.0, 150.0])
def test_what_a_kind_says_is_proved_of_a_recording(length: float) -> None:
    trace, part = recording(700, length, 1000, without=(-90.0, 1000.0))
    request = Request((part,), who=(Named.PLAIN, Named.POINT), design_for=DesignFor.KIND)
    made = plan(trace, request)
    assert made.of_kind is not None
    (found,), (finding,) = certify_plan(made), made.findings
    assert 0.5 * finding.guarantee.epsilon <= found.epsilon <= finding.guarantee.epsilon
    assert finding.guarantee.epsilon <= 1.0


def with_mu(made: Plan, share: float) -> Plan:
    """The same plan that claims this share of its epsilon."""
    findings = tuple(
        replace(one, guarantee=Guarantee(one.guarantee.mu * share**0.5)) for one in made.findings
    )
    return replace(made, findings=findings)


def test_what_is_proved_is_not_above_what_is_said() -> None:
    made = planned()
    found = certify_plan(made)
    for one, finding in zip(found, made.findings, strict=True):
        assert one.epsilon <= finding.guarantee.epsilon * (1 + 1e-9)
        # The crop that the design looks at is nearly all that matters.
        assert one.epsilon >= finding.guarantee.epsilon * (1 - 1e-2)
        assert one.radius < 1e-9
    assert found[0].against == tuple(one.adversary for one in made.findings[0].left)
    assert found[0].what.startswith("every fix of each stay")
    assert found[1].what == "the place at each protected time"


@pytest.mark.slow
def test_all_adversaries_of_the_default() -> None:
    trace = ride(60, 30.0, still=(20, 30))
    made = plan(trace, Request((stretch(trace, 20, 26),)))
    (found,) = certify_plan(made)
    assert found.epsilon <= made.findings[0].guarantee.epsilon * (1 + 1e-9)
    assert found.against == ("plain", *(one.adversary for one in made.findings[0].left[1:]))
    assert len(found.against) == 10


def test_a_part_far_from_both_ends_is_judged_on_the_whole_recording() -> None:
    trace = ride(420, 60.0)
    request = Request((stretch(trace, 210, 210),), who=(Named.PLAIN, Named.POINT))
    made = plan(trace, request)
    span = [request.stretches[0].seconds(trace)]
    (crop,) = crops(request.kernel, trace.seconds, span, request.target.deviation)
    assert crop.start > 0
    assert len(crop.edges) == 2
    (found,) = certify_plan(made)
    # The crop reckons with its edges as known, twice over, and with a level that is flat.
    claimed = made.findings[0].guarantee.epsilon
    assert claimed * (1 - 1e-3) <= found.epsilon <= claimed * (1 + 1e-9)


def test_a_release_that_says_too_little_is_caught() -> None:
    made = planned()
    alone = replace(made, findings=made.findings[1:])
    (found,) = certify_plan(alone)
    share = found.epsilon / alone.findings[0].guarantee.epsilon
    certify_plan(with_mu(alone, share))
    with pytest.raises(NumericalError, match="must not be below what is proved"):
        certify_plan(with_mu(alone, share * (1 - 1e-6)))


def test_metres_that_are_left_are_proved() -> None:
    made = planned((Named.PLAIN,), 500.0)
    least = 500.0 * (1 + Frame.SCALE_ERROR) / CIRCLE_68
    for one in certify_plan(made):
        assert one.left >= least * (1 - 1e-9)
    left = made.findings[1].left
    more = tuple(replace(one, least=1.01 * one.least) for one in left)
    wrong = replace(made.findings[1], left=more)
    with pytest.raises(NumericalError, match="must be left with"):
        certify_plan(replace(made, findings=(made.findings[0], wrong)))


def test_other_noise_and_other_priors() -> None:
    part = (stretch(STILL, 80, 80),)
    for request in (
        Request(part, who=(Named.PLAIN,), noise=Noise.UNIFORM, epsilon=50.0),
        Request(part, who=(Named.PLAIN,), withhold=30.0, kernel=BUILT_IN["walk"].kernel),
    ):
        made = plan(STILL, request)
        (found,) = certify_plan(made)
        assert found.epsilon <= made.findings[0].guarantee.epsilon * (1 + 1e-9)
        assert found.epsilon >= made.findings[0].guarantee.epsilon * (1 - 1e-2)


def test_of_a_long_stay_it_is_said_how_much_was_looked_at() -> None:
    trace = ride(260, 5.0, still=(20, 240))
    made = plan(trace, Request((stretch(trace, 30, 230),), who=(Named.PLAIN,)))
    (found,) = certify_plan(made)
    looked = int(found.what.split(" of ")[0])
    assert 150 <= looked < 201
    assert found.what == f"{looked} of 201 fixes, evenly, of each stay, its mean and its ends"
    assert np.isclose(found.epsilon, made.findings[0].guarantee.epsilon, rtol=1e-3)


def test_noise_for_every_place_has_no_certificate() -> None:
    every = Request((stretch(STILL, 80, 80),), noise=Noise.EVERYWHERE)
    made = Plan(STILL, frame_for(STILL.positions), NOWHERE, every, no_noise(STILL.seconds), ())
    with pytest.raises(Unavailable, match="got --everywhere"):
        certify_plan(made)
