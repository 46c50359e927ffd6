"""The sketch of a track: at most 8 lines, and each dot and block where a fix is."""

from dataclasses import replace

import numpy as np
import pytest

from tests.report.test_report import PLANS, TRACE
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.report.sketch import COLUMNS, HIDDEN, LEGEND, ROWS, sketch


def drawn(plan: Plan) -> list[str]:
    return sketch(plan, draw(plan, bytes(32))[0])


@pytest.mark.parametrize("name", PLANS)
def test_it_is_small_and_has_both(name: str) -> None:
    lines = drawn(PLANS[name])
    assert 2 <= len(lines) <= ROWS + 1 == 8
    assert lines[-1] == f"  {LEGEND}"
    assert max(len(line) for line in lines) <= COLUMNS + 2
    shown = "".join(lines[:-1]).replace(" ", "")
    assert HIDDEN in shown
    assert {*shown} - {HIDDEN, "\u2800"}
    assert all(mark == HIDDEN or "\u2800" <= mark <= "\u28ff" for mark in shown)


def test_a_straight_way_east_is_a_line_that_begins_and_ends_in_blocks() -> None:
    east = np.column_stack([np.full(60, 48.1), 11.5 + np.arange(60) * 1e-3])
    planned = protect(replace(TRACE, positions=east), PLANS["cut"].request)
    line, legend = drawn(planned)
    assert legend == f"  {LEGEND}"
    assert len(line) == COLUMNS + 2
    hidden = ~np.asarray(planned.mechanism.released)
    # The fixes are evenly spread: a block stands where one of those in its cell is hidden.
    cells = (planned.lattice[:, 0] - planned.lattice[:, 0].min()) / np.ptp(planned.lattice[:, 0])
    columns = np.minimum((cells * (2 * COLUMNS - 1)).astype(int) // 2, COLUMNS - 1)
    for column in columns[hidden]:
        assert line[2 + column] == HIDDEN
    clear = set(range(COLUMNS)) - {*columns[hidden]} - {*(columns[hidden] - 1)}
    assert all(line[2 + column] != HIDDEN for column in clear - {*(columns[hidden] + 1)})
    assert line[2 + COLUMNS // 2] != "\u2800"


def test_one_place_has_no_sketch() -> None:
    still = np.tile([[48.1, 11.5]], (60, 1))
    assert drawn(protect(replace(TRACE, positions=still), PLANS["cut"].request)) == []
