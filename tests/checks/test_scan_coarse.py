"""A recording with few decimals: noise leaves fixes in their cells, and what it cannot is told."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from tests.rides import ride
from tests.structured import rounded
from trailveil.checks.scan.matching import Leak, LeakKind
from trailveil.checks.scan.positions import compare
from trailveil.privacy.adversaries import Named
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Recording

STAY = slice(20, 41)
DRAWS = 30


@lru_cache
def planned(decimals: int, seed: int, radius: float = 100.0) -> Plan:
    trace = rounded(ride(60, 20.0, seed=seed), decimals)
    part = Stretch("stay", int(trace.times[STAY.start]), int(trace.times[STAY.stop - 1]))
    return protect(trace, Request((part,), radius, method=Method.NOISE, who=(Named.PLAIN,)))


def findings(plan: Plan, positions: np.ndarray) -> tuple[Leak, ...]:
    trace = plan.trace
    moments = trace.times.astype("datetime64[ns]")
    naive = np.zeros(len(trace), dtype=np.bool_)
    released = Recording(moments, naive, positions, trace.segments, trace.tracks)
    protected = np.zeros(len(trace), dtype=np.bool_)
    protected[STAY] = True
    return compare(trace, protected, released).findings


@pytest.mark.parametrize(("decimals", "radius"), [(2, 100.0), (3, 100.0), (3, 40.0)])
def test_noise_on_a_coarse_grid_is_no_leak(decimals: int, radius: float) -> None:
    """Of 90 true releases none is called a leak; a hundredth of a false alarm is expected."""
    for seed in range(3):
        plan = planned(decimals, seed, radius)
        for number in range(DRAWS):
            released, _ = draw(plan, bytes([number] * 32))
            assert findings(plan, released.positions) == ()


def test_fixes_that_were_not_moved_are_told_on_a_coarse_grid_as_well() -> None:
    plan = planned(3, 1)
    released, _ = draw(plan, bytes(32))
    for rows, kind in ((STAY, LeakKind.UNMOVED), (slice(20, 33), LeakKind.UNMOVED)):
        positions = released.positions.copy()
        positions[rows] = plan.trace.positions[rows]
        assert kind in {each.kind for each in findings(plan, positions)}
    positions = released.positions.copy()
    positions[STAY] = plan.trace.positions[STAY] + np.array([0.0, 0.002])
    assert LeakKind.HALF_MOVED in {each.kind for each in findings(plan, positions)}
    coarser = np.round(plan.trace.positions, 2)
    assert LeakKind.NEARLY in {each.kind for each in findings(plan, coarser)}


def test_noise_that_is_rounded_to_coarser_decimals_than_recorded_is_no_leak() -> None:
    """Regular steps of 2e-4 degrees are released to 1e-3: most fixes come near their own cell."""
    trace = ride(60, 20.0)
    regular = np.array([46.123456, 7.654321]) + np.outer(np.arange(60), [1e-4, 2e-4])
    trace = replace(trace, positions=regular)
    part = Stretch("stay", int(trace.times[STAY.start]), int(trace.times[STAY.stop - 1]))
    plan = protect(trace, Request((part,), 25.0, method=Method.NOISE, who=(Named.PLAIN,)))
    assert plan.grid.micro == 1000
    near = 0
    for number in range(DRAWS):
        released, grid = draw(plan, bytes([number] * 32))
        off = np.abs(grid[STAY] - np.rint(1e6 * regular[STAY])).max(axis=1)
        near += bool(np.mean(off < 1000) > 0.5)
        assert findings(plan, released.positions) == ()
    assert near > 5
    down = np.floor(regular * 1000) / 1000
    assert LeakKind.NEARLY in {each.kind for each in findings(plan, down)}
