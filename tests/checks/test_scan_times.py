"""The scan finds which fix is which where `protect` rounded or shifted the times of a release."""

import io

import numpy as np
import pytest

from tests.rides import gpx, ride
from trailveil.checks.scan import LeakKind, scan
from trailveil.release.drawing import on_lattice
from trailveil.traces.formats import write
from trailveil.traces.projection import frame_for
from trailveil.traces.retiming import Retiming, retimed
from trailveil.traces.selection import Chosen

TRACE = ride(240, 5.0)
FRAME = frame_for(TRACE.positions)
TRUE = FRAME.to_degrees(FRAME.to_lattice(TRACE.positions))
NOISE = np.random.default_rng(2).normal(0, 300, (len(TRACE), 2))
MOVED = FRAME.to_degrees(FRAME.to_lattice(TRACE.positions) + on_lattice(NOISE))


def released(retiming: Retiming, withheld: slice, *, unmoved: bool) -> tuple[str, bytes]:
    """A release with some fixes withheld; unmoved: the last protected minute is as recorded."""
    released_rows = np.ones(len(TRACE), dtype=np.bool_)
    released_rows[withheld] = False
    grid = MOVED.copy()
    if unmoved:
        grid[-24:] = TRUE[-24:]
    trace, places = retimed(TRACE.only(released_rows), grid[released_rows], retiming)
    out = io.BytesIO()
    write(trace, out, ".csv", grid=places)
    return "shared.csv", out.getvalue()


@pytest.mark.parametrize("unmoved", [False, True])
@pytest.mark.parametrize("withheld", [slice(0, 0), slice(0, 17), slice(60, 100)], ids=str)
@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("step", [None, 1.0, 12.0, 30.0, 60.0])
def test_rounded_and_shifted_releases_are_compared(
    step: float | None, shift: bool, withheld: slice, unmoved: bool
) -> None:
    release = released(Retiming(step, shift), withheld, unmoved=unmoved)
    chosen = Chosen(between=(("end-2m", "end"),), ends=False)
    result = scan(("ride.gpx", gpx(TRACE)), release, chosen)
    assert result.every.compared >= 0.9 * (release[1].count(b"\n") - 1)
    kinds = {leak.kind for leak in result.leaks}
    assert (LeakKind.UNMOVED in kinds) == unmoved
    assert kinds <= {LeakKind.UNMOVED, LeakKind.NEARLY, LeakKind.RETURN}


@pytest.mark.parametrize("step", [30.0, 60.0])
@pytest.mark.parametrize("first", range(17, 23))
def test_of_fixes_that_share_a_rounded_time_the_released_one_is_meant(
    step: float, first: int
) -> None:
    """Which is the first that was not cut: another would count as moved, off the grid."""
    rows = (np.arange(len(TRACE)) >= first) & (np.arange(len(TRACE)) < len(TRACE) - 3)
    trace, places = retimed(TRACE.only(rows), TRUE[rows], Retiming(step))
    out = io.BytesIO()
    write(trace, out, ".csv", grid=places)
    result = scan(("ride.gpx", gpx(TRACE)), ("shared.csv", out.getvalue()), Chosen())
    assert result.every.unmoved == result.every.compared == len(trace)
