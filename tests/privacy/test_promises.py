"""`trailveil verify` accepts what `protect` says, and nothing better than that."""

from typing import Any

import numpy as np
import pytest

from trailveil.privacy.adversaries import Named
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.promises import FLOORS, HAS_THE_REST, NAMES, _odds, promises
from trailveil.release import request
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.report.record import record
from trailveil.studies.datasets.day import day_plan, simulated_day
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import cut_out

CLINIC = day_plan().stays[1]
STAY = Stretch("clinic", CLINIC.begin, CLINIC.end)
TIME = Stretch("on the way", CLINIC.begin - 600 * 10**9, CLINIC.begin - 600 * 10**9)


def reported(stretch: Stretch, method: Method, withhold: float | None = None) -> dict[str, Any]:
    asked = Request((stretch,), method=method, withhold=withhold)
    planned = protect(simulated_day(), asked)
    return dict(record(planned, None, output="day.private.gpx"))


@pytest.mark.parametrize("stretch", [STAY, TIME], ids=lambda stretch: stretch.label)
@pytest.mark.parametrize("method", [Method.CUT, Method.NOISE, Method.BOTH])
def test_promises_hold_of_each_mechanism(stretch: Stretch, method: Method) -> None:
    checks = list(promises(reported(stretch, method)))
    assert [checked.what for checked in checks if not checked.holds] == []
    assert len(checks) > 5


@pytest.mark.parametrize("withhold", [0.0, 40.0, 300.0, 900.0])
@pytest.mark.parametrize("method", [Method.CUT, Method.NOISE, Method.BOTH])
def test_promises_hold_where_more_was_withheld(withhold: float, method: Method) -> None:
    report = reported(STAY, method, withhold)
    assert [promise.what for promise in promises(report) if not promise.holds] == []
    for shorter in (None, withhold - 1):
        report["secrets"][0]["cut_s"] = shorter
        failed = " ".join(promise.what for promise in promises(report) if not promise.holds)
        assert "it has a cut where the mechanism has one" in failed


@pytest.mark.parametrize("method", [Method.CUT, Method.BOTH])
def test_promises_hold_of_a_time_in_a_gap(method: Method) -> None:
    day = simulated_day()
    gap = cut_out(day, np.abs(day.times - TIME.begin) > 900 * 10**9)
    report = record(protect(gap, Request((TIME,), radius=20.0, method=method)), None, output="x")
    assert [promise.what for promise in promises(dict(report)) if not promise.holds] == []


def test_promises_of_a_passed_place_use_the_slower_pace() -> None:
    """A cut that would be enough for a stay is too short for a place that is passed."""
    report = reported(TIME, Method.CUT)
    report["secrets"][0]["cut_s"] = reported(STAY, Method.CUT)["secrets"][0]["cut_s"]
    assert not all(promise.holds for promise in promises(report))


def test_what_is_stated_twice_is_the_same() -> None:
    assert {name: (ACTIVITIES[name], MIDDLE[name]) for name in ACTIVITIES} == FLOORS
    known = {
        each.name: "path" if each.path is not None else "" if each.place is None else "place"
        for each in request.Request((), who=tuple(Named)).adversaries
    }
    assert known == NAMES
    assert request.HAS_THE_REST == HAS_THE_REST


@pytest.mark.parametrize("mu", [1e-6, 0.005, 0.02, 0.6, 3.0, 30.0, 60.0])
def test_odds_are_those_of_the_guarantee(mu: float) -> None:
    assert _odds(mu) == pytest.approx(Guarantee(mu).odds(), rel=1e-11)
