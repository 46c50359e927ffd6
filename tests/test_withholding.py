"""Prices of noise and of withholding: by hand, and the ways to choose from on one example."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.rides import ride
from trailveil.adversaries import Named
from trailveil.crops import Crop, Span, crops
from trailveil.demands import Target
from trailveil.designing import estimated, only_withheld
from trailveil.errors import BeyondPrior, NumericalError, Refused
from trailveil.gaussian import FloatArray
from trailveil.mechanism import Mechanism, no_noise
from trailveil.release import DEFAULT_KERNEL
from trailveil.withholding import Price, cheapest, price

TIMES = ride(121, 20.0).seconds
SPAN = (1000.0, 1200.0)
BARE = Target(1e-5, (Named.PLAIN,))
BASIC = Target(1e-5, (Named.PLAIN, Named.STILL))


def found_in(target: Target, times: FloatArray = TIMES, span: Span = SPAN) -> list[Crop]:
    return crops(DEFAULT_KERNEL, times, [span], target.deviation)


def around(span: Span, times: FloatArray = TIMES) -> Callable[[float], NDArray[np.bool_]]:
    return lambda seconds: (times >= span[0] - seconds) & (times <= span[1] + seconds)


def kinds(prices: tuple[Price, ...]) -> list[str]:
    return [one.kind for one in prices]


def test_the_price_of_noise_and_of_withholding_by_hand() -> None:
    """Fixes at 0, 20, 60, 100 s stand for 10, 30, 40, 20 s; the third is withheld.

    Deviations of 3, 4, -, 0 m per coordinate, times the root of 2 in the plane.
    """
    mechanism = Mechanism(
        np.array([0.0, 20.0, 60.0, 100.0]),
        np.array([[3.0], [4.0], [9.0], [0.0]]),
        released=np.array([True, True, False, True]),
    )
    found = price("both", 60.0, mechanism, 50.0)
    assert (found.kind, found.seconds) == ("both", 60.0)
    assert found.withheld == pytest.approx(40 / 60)
    assert found.moved == pytest.approx(np.sqrt(2) * (3 * 10 + 4 * 30) / 60 / 50)
    assert found.total == pytest.approx(found.withheld + found.moved)
    assert price("both", 60.0, mechanism, 100.0).moved == pytest.approx(found.moved / 2)


def test_a_gap_costs_a_minute_at_most() -> None:
    """Fixes at 0, 10, 7210 s: the gap of two hours counts as a minute, half on each side."""
    times = np.array([0.0, 10.0, 7210.0])
    nothing = no_noise(times).withholding(np.ones(3, dtype=np.bool_))
    assert price("withholding", 0.0, nothing, 1.0).withheld == pytest.approx(70 / 60)
    last = no_noise(times).withholding(np.array([False, False, True]))
    assert price("withholding", 0.0, last, 1.0) == Price("withholding", 0.0, 0.5, 0.0)


def test_the_floor_moves_as_well() -> None:
    mechanism = Mechanism(np.array([0.0, 60.0]), np.array([[3.0], [0.0]]), 16.0)
    expected = np.sqrt(2) * (5.0 + 4.0) * 0.5 / 10
    assert price("noise", None, mechanism, 10.0).moved == pytest.approx(expected)


@pytest.mark.slow
def test_the_ways_to_choose_from() -> None:
    found, base, rate = found_in(BASIC), no_noise(TIMES), 500.0
    withheld = around(SPAN)
    prices = cheapest(found, base, BASIC, withheld, rate)
    assert kinds(prices) == ["noise", "withholding", "both"]
    noise, alone, both = prices
    assert noise == price("noise", None, estimated(found, base, BASIC), rate)
    assert (noise.seconds, noise.withheld) == (None, 0.0)
    # Withholding alone: enough, and ten seconds less are not.
    assert alone.seconds is not None
    assert alone.moved == 0.0
    assert alone.withheld == pytest.approx(int(withheld(alone.seconds).sum()) / 3)
    only_withheld(found, base.withholding(withheld(alone.seconds)), BASIC)
    with pytest.raises(Refused):
        only_withheld(found, base.withholding(withheld(alone.seconds - 10.0)), BASIC)
    # Both: the least of all that was tried.
    assert both.seconds in (0.0, 60.0, 120.0, 300.0, 600.0)
    for seconds in (0.0, 60.0, 120.0, 300.0):
        tried = estimated(found, base.withholding(withheld(seconds)), BASIC)
        assert both.total <= price("both", seconds, tried, rate).total * (1 + 1e-9)


def test_where_a_metre_weighs_much_nothing_is_moved_and_where_it_weighs_little_all_is() -> None:
    base, withheld = no_noise(TIMES), around((1100.0, 1100.0))
    found = found_in(BARE, span=(1100.0, 1100.0))
    precious = cheapest(found, base, BARE, withheld, 1.0)
    assert min(precious, key=lambda one: one.total).moved < 1.0
    cheap = cheapest(found, base, BARE, withheld, 1e5)
    assert min(cheap, key=lambda one: one.total).kind == "noise"


def test_where_withholding_is_never_enough_it_is_no_way() -> None:
    """All but one fix within reach: what would be left to release is no recording."""
    times = np.arange(8.0) * 20.0
    span = (60.0, 60.0)
    prices = cheapest(found_in(BARE, times, span), no_noise(times), BARE, around(span, times), 500)
    assert "withholding" not in kinds(prices)
    assert "noise" in kinds(prices)


def test_where_withholding_alone_is_enough_no_more_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def none(_: object, base: Mechanism, __: object) -> Mechanism:
        tried.append(int(base.rows.size))
        return base

    monkeypatch.setattr("trailveil.withholding.estimated", none)
    cheapest(found_in(BARE), no_noise(TIMES), BARE, around(SPAN), 500.0)
    assert len(tried) == 2  # noise alone, and withholding the stay itself


def test_where_there_is_no_way_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Mechanism:
        raise NumericalError("not found")

    monkeypatch.setattr("trailveil.withholding.estimated", fails)
    times = np.arange(8.0) * 20.0
    span = (60.0, 60.0)
    with pytest.raises(Refused, match="no noise and no withholding meets the target: ask for less"):
        cheapest(found_in(BARE, times, span), no_noise(times), BARE, around(span, times), 500.0)


def test_more_than_can_be_left_is_refused_whatever_is_withheld() -> None:
    target = Target(1e-5, (Named.PLAIN, Named.POINT), left=160.0)
    span = (1100.0, 1100.0)
    with pytest.raises(BeyondPrior, match=r"must be below the 154\.\d"):
        cheapest(found_in(target, span=span), no_noise(TIMES), target, around(span), 500.0)
