"""Where lines end that programs draw: at each long gap, by what leaves alone."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import done
from tests.rides import ride
from tests.rides import written as saved
from trailveil.traces.formats import read
from trailveil.traces.formats.grid import begun_after_cuts, begun_after_gaps
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.trace import Trace

RIDE = ride(5400, 1.0, seed=3)
LINES = [row.suffixes[0] for row in FORMATS if row.lines]


def without(*times: tuple[int, int]) -> Trace:
    """The ride but for its rows of some times, as one segment."""
    rows = np.arange(len(RIDE))
    return RIDE.only(~np.any([(rows >= a) & (rows < b) for a, b in times], axis=0))


def test_a_segment_begins_after_each_long_gap() -> None:
    apart = begun_after_gaps(without((1000, 1050), (2000, 2061), (3000, 4000)))
    assert np.diff(apart.segments).nonzero()[0].tolist() == [1949, 2888]
    assert apart.tracks == (0, 0, 0)


def test_without_times_it_begins_after_each_long_way() -> None:
    part = replace(without((1000, 1010), (3000, 4000)), timed=False)
    assert np.diff(begun_after_gaps(part).segments).nonzero()[0].tolist() == [2989]


def test_segments_and_tracks_stay_apart() -> None:
    numbers = (np.arange(len(RIDE)) // 100 % 2).astype(np.intp)  # they go on among each other
    apart = begun_after_gaps(replace(RIDE, segments=numbers, tracks=(4, 5)))
    assert apart.tracks == (4,) * 27 + (5,) * 27
    assert np.unique(apart.segments[:100]).tolist() == [0]
    part = RIDE.only(np.zeros(len(RIDE), dtype=np.bool_))
    assert len(begun_after_gaps(part)) == 0


def test_a_segment_begins_where_fixes_are_left_out() -> None:
    rows = np.flatnonzero(np.arange(len(RIDE)) // 7 % 100 != 3)
    numbers = (np.arange(len(RIDE)) // 350 % 2).astype(np.intp)
    part = replace(RIDE, segments=numbers, tracks=(0, 1)).only(np.isin(np.arange(len(RIDE)), rows))
    apart = begun_after_cuts(part, rows)
    cuts = [a for a, b in pairwise(rows) if b - a > 1]
    for number in (0, 1):
        own = np.flatnonzero(part.segments == number)
        begun = np.diff(apart.segments[own]) != 0
        expected = [any(a <= cut < b for cut in cuts) for a, b in pairwise(rows[own])]
        assert begun.tolist() == expected


@pytest.mark.parametrize("more", [(), ("--drop-times",), ("--round-times", 60)])
@pytest.mark.parametrize("step", [60.0, 120.0])
def test_it_ends_at_a_cut_among_few_fixes_too(
    step: float, more: tuple[object, ...], tmp_path: Path
) -> None:
    trace = ride(round(10_800 / step), step, seed=4)
    source, output = saved(tmp_path / "ride.gpx", trace), tmp_path / "out.gpx"
    how = ("--at", "start+90m", "--no-ends", "--no-returns", "--activity", "drive", "-o", output)
    done("protect", source, *how, *more)
    released = read(output)
    before = np.searchsorted(trace.times, trace.times[0] + 5400 * 10**9)
    assert len(released) < len(trace)
    assert np.unique(released.segments).tolist() == [0, 1]
    assert 0 < np.count_nonzero(released.segments == 0) < int(before)


@pytest.mark.parametrize("suffix", [*LINES, ".csv"])
def test_no_line_is_drawn_across_a_cut(suffix: str, tmp_path: Path) -> None:
    source = saved(tmp_path / "ride.gpx", RIDE)
    done(
        "protect", source, "--at", "start+45m", "--round-times", 1, "-o", tmp_path / f"out{suffix}"
    )
    released = read(tmp_path / f"out{suffix}")
    across = np.diff(released.times).astype("timedelta64[s]").astype(int) > 60
    assert across.sum() == 1
    begun = np.diff(released.segments) != 0
    assert begun.tolist() == (across if suffix in LINES else np.zeros(across.size)).tolist()
