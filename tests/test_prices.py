"""What other mechanisms would cost: as their own plans say, and without designing anything anew."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from trailveil.designer import table, window
from trailveil.gp.gaussian import FloatArray
from trailveil.release.plan import Plan
from trailveil.release.prices import HARDLY_MOVED, other_prices
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.report.record import record
from trailveil.report.text import text
from trailveil.traces.selection import Chosen, Stretch

TRACE = replace(ride(2400, 5.0), activity="ride")
EVERY = (Method.CUT, Method.NOISE, Method.BOTH)


@pytest.fixture(autouse=True)
def new_process() -> Iterator[None]:
    """No design is known but those that ship."""
    table.forget()
    yield
    table.forget()


def planned(method: Method, radius: float = 100.0) -> Plan:
    return protect(
        TRACE, requested(TRACE, Chosen(returns=False), Request((), radius=radius, method=method))
    )


def seconds_to(part: Stretch) -> FloatArray:
    inside = TRACE.seconds[part.rows(TRACE)]
    return np.asarray(np.abs(TRACE.seconds[:, None] - inside).min(axis=1))


@pytest.mark.parametrize("method", EVERY)
def test_each_price_is_that_of_the_plan_itself(method: Method) -> None:
    prices = other_prices(planned(method))
    assert [price.method for price in prices] == [one for one in EVERY if one is not method]
    for price in prices:
        itself = planned(price.method)
        rows = itself.mechanism.rows
        stated = record(itself, None, output="")["mechanism"]
        assert price.released_fixes == stated["released_fixes"] == rows.size
        assert price.withheld_fixes == stated["withheld_fixes"]
        assert (price.minutes, price.kilometres) == (stated["withheld_min"], stated["withheld_km"])
        away = np.min([seconds_to(finding.stretch) for finding in itself.findings], axis=0)[rows]
        spread = np.sqrt(2 * itself.mechanism.variances)[rows]
        assert (spread[away > price.within] < HARDLY_MOVED).all()
        near = away <= price.within
        moved = np.mean(spread[near] ** 2) ** 0.5 if price.method is not Method.CUT else 0.0
        assert price.moved == pytest.approx(moved)


def test_no_noise_is_designed_for_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped table has none for another radius; a plan that was made before leaves its own."""
    made = planned(Method.CUT, 130.0)
    with monkeypatch.context() as patched:
        patched.setattr(window, "window_noise", lambda *_: pytest.fail("noise is designed"))
        assert other_prices(made) == ()
        assert len(other_prices(planned(Method.CUT))) == 2
    designs: dict[str, bytes] = {}

    class Kept:
        def get(self, key: str) -> bytes | None:
            return designs.get(key)

        def put(self, key: str, data: bytes) -> None:
            designs[key] = data

    noise = protect(TRACE, replace(made.request, method=Method.NOISE), cache=Kept())
    table.forget()
    monkeypatch.setattr(window, "window_noise", lambda *_: pytest.fail("noise is designed"))
    assert other_prices(made) == ()
    prices = other_prices(made, Kept())
    assert [one.method for one in prices] == [Method.NOISE, Method.BOTH]
    assert prices[0].released_fixes == noise.mechanism.rows.size


def test_what_would_be_refused_has_no_price() -> None:
    """A cut of so short a recording leaves nothing."""
    short = replace(ride(30, 5.0), activity="walk")
    made = protect(short, requested(short, Chosen(returns=False), Request((), method=Method.NOISE)))
    assert other_prices(made) == ()


def test_the_report_says_it_to_the_owner_alone() -> None:
    for method, words in (
        (Method.CUT, "By noise instead: every fix stays, moved by 189 m on average within 21 min"),
        (Method.NOISE, "By a cut instead: 6% of all, 11 min, 1.7 km are left out"),
        (Method.NOISE, "By both instead: 6% of all, 11 min, 1.7 km are left out"),
    ):
        made = planned(method)
        prices = other_prices(made)
        shown = " ".join(text(record(made, None, output="", instead=prices)).split())
        assert words in shown
        others = record(made, None, output="", instead=prices, private=False)
        assert "instead" not in others
        assert "instead:" not in text(others)
