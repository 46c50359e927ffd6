"""Both ends of a loop may be one place: what is said of it is what both cuts tell together."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from trailveil.privacy.promises import promises
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.report.record import record
from trailveil.traces.selection import Chosen


@pytest.mark.parametrize("loop", [True, False])
def test_the_headline_of_a_loop_is_of_both_ends(loop: bool) -> None:
    trace = ride(720, 10.0)
    if loop:
        share = np.linspace(0, 1, len(trace))[:, None]
        back = trace.positions - share * (trace.positions[-1] - trace.positions[0])
        trace = replace(trace, positions=back)
    else:
        trace = replace(trace, positions=trace.positions + np.linspace(0, 0.1, 720)[:, None])
    plan = protect(trace, requested(trace, Chosen(returns=False), Request(())))
    alone = [part.guarantee for part in plan.findings]
    assert len(alone) == 2
    mu = math.hypot(*(guarantee.mu for guarantee in alone)) if loop else max(x.mu for x in alone)
    assert plan.guarantee.mu == pytest.approx(mu, rel=1e-12)
    assert plan.guarantee.epsilon <= 1.001
    report = record(plan, None, output="x.gpx")
    assert report["worst"]["mu"] == plan.guarantee.mu
    assert all(promise.holds for promise in promises(dict(report)))
    if loop:  # said of one end alone, it would be better than the truth
        changed = {**report, "worst": {**report["worst"], "mu": alone[0].mu}}
        assert not all(promise.holds for promise in promises(dict(changed)))
