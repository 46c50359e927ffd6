"""How long nothing leaves around a visit: by what is known of both sides, and what is public."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.live.days import HOME, RIDE
from tests.release.test_public import information, positions, released
from trailveil.errors import Refused
from trailveil.ledger import Ledger
from trailveil.ledger.places import save_places
from trailveil.live.cutting import Cutting
from trailveil.live.margins import Margins
from trailveil.privacy.movement import least_cut
from trailveil.release.public import Position
from trailveil.release.request import Request
from trailveil.traces.trace import NANOSECONDS
from trailveil.traces.visits import Circle

SURE, NOW = 60, 10**18
FAST = Request((), radius=70.0, floor=3.0, middle=3.0)


def test_a_shorter_delay_makes_the_silence_after_a_visit_longer() -> None:
    middle, variance = RIDE.paces.middle, HOME.variance
    symmetric = Margins.of(RIDE, variance, 0.0, None)
    assert symmetric.before == (least_cut(middle, variance, 2) + SURE) * NANOSECONDS
    for margins in (
        Margins.of(RIDE, variance, 0.0, symmetric.before / NANOSECONDS - 60),
        symmetric,
    ):
        before, after = (t / NANOSECONDS - SURE for t in (margins.before, margins.passing))
        told = 1 / middle.bridged(before) + 1 / middle.bridged(after)
        assert 0.97 / variance < told <= margins.information <= 1 / variance
    assert Margins.of(RIDE, variance, 0.0, symmetric.before / NANOSECONDS + 500) == symmetric
    shortest = Margins.of(RIDE, variance, 0.0, least_cut(middle, variance, 1) + SURE + 1)
    assert shortest.passing > 2 * symmetric.passing
    assert Margins.of(RIDE, variance, 5000.0, None).before == 5000 * NANOSECONDS


@pytest.mark.parametrize("floor", [0.9, 2.0, 8.0])
@pytest.mark.parametrize("uncertain", [0, 60])
@pytest.mark.parametrize(("radius", "withhold"), [(30.0, None), (100.0, None), (250.0, 4000.5)])
def test_the_delay_that_is_named_is_the_least_that_works(
    ledger: Ledger, floor: float, uncertain: int, radius: float, withhold: float | None
) -> None:
    """For all places and stays at once; and no visit is followed by hours of needless silence."""
    request = Request((), radius=60.0, floor=floor, middle=floor / 2, uncertain=uncertain)
    other = replace(HOME, name="clinic", circle=Circle(48.5, 11.0, 80.0), ident=b"c" * 16)
    save_places(ledger, [HOME, replace(other, radius=radius, withhold=withhold)])
    with pytest.raises(Refused, match="the delay must be at least") as caught:
        Cutting.of(ledger, request, 1.0, None)
    (least,) = map(int, re.findall(r"at least (\d+) s", str(caught.value)))
    assert f"--delay {least} or more" in str(caught.value)
    assert Cutting.of(ledger, request, float(least), None).delay == least
    freely, stated = (Margins.of(request, HOME.variance, 0.0, t) for t in (None, float(least)))
    usual, passing = freely.before / NANOSECONDS, stated.passing / NANOSECONDS
    assert passing <= max(7200.0, 2 * usual) + uncertain + 1
    with pytest.raises(Refused, match=f"at least {least} s"):
        Cutting.of(ledger, request, least - 0.5, None)


@settings(max_examples=60, deadline=None)
@given(positions, st.sampled_from([0, 40, 400]), st.sampled_from([None, 250.0]))
def test_what_leaves_beside_what_is_public_tells_no_more_than_is_asked(
    public: list[tuple[float, float]], stay: int, delay: float | None
) -> None:
    """A law, by dense conditioning on all that is public and that leaves on both sides."""
    margins = Margins.of(FAST, FAST.variance, 0.0, delay)
    begin, end = NOW, NOW + stay * NANOSECONDS
    stated = [
        Position(
            (begin if away < 0 else end) + round((away + np.sign(away) * SURE) * 1e9), deviation
        )
        for away, deviation in public
    ]
    try:
        after = margins.after(begin, end, stated)
    except Refused as error:
        assert str(error).startswith("nothing can be hidden any more")  # noqa: PT017
        return
    assert after >= (margins.stay if stay >= 180 else margins.passing)
    silent = margins.before / NANOSECONDS - SURE, after / NANOSECONDS - SURE
    known = [*public, *released(silent[0], -1), *released(silent[1], 1)]
    assert information(known) <= 1.001 / FAST.variance


def test_a_position_beside_a_visit_makes_the_silence_after_it_longer() -> None:
    margins = Margins.of(FAST, FAST.variance, 0.0, None)
    before = margins.before / NANOSECONDS - SURE
    near, far = ([Position(NOW - round((SURE + s * before) * 1e9), 0.0)] for s in (0.85, 1.0))
    assert margins.after(NOW, NOW, far) == margins.passing
    longer = margins.after(NOW, NOW, near)
    assert longer > 1.2 * margins.passing
    known = [(-0.85 * before, 0.0), *released(before, -1)]
    blind, heeding = (
        information([*known, *released(after / NANOSECONDS - SURE, 1)])
        for after in (margins.passing, longer)
    )
    assert heeding <= 1 / FAST.variance < blind
    for where, known_to in (
        (NOW, "exactly"),
        (NOW + 70 * NANOSECONDS, "within 8 m 68 times in 100"),
    ):
        with pytest.raises(Refused, match=f"nothing can be hidden any more: .* {known_to}; begin"):
            margins.after(NOW, NOW, [Position(where, 0.0)])
    with pytest.raises(Refused, match=r"tells within 5[89] m"):  # the circle that was stated
        margins.after(NOW, NOW, [Position(NOW, 60 / 1.5096)])
