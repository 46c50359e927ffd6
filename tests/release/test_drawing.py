"""What leaves of segments and laps is a function of what is released and of bounds outside of cuts.

Random cases are seeded and exact: a false alarm is impossible.
"""

import io
from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from trailveil.release.drawing import cut_out, draw
from trailveil.release.protect import protect
from trailveil.release.request import Request
from trailveil.traces.formats import write
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace, no_laps

TRACE = ride(120, 5.0)
FORMS = [row.suffixes[0] for row in FORMATS if row.write]


def with_bounds(segments: np.ndarray, laps: np.ndarray) -> Trace:
    """Segments and laps begin at these rows."""
    bounds = np.zeros((2, len(TRACE)), dtype=np.intp)
    bounds[0, segments], bounds[1, laps] = 1, 1
    numbers = np.cumsum(bounds, axis=1)
    return replace(TRACE, segments=numbers[0], laps=numbers[1], tracks=(0,) * len(TRACE))


def written(trace: Trace, suffix: str) -> bytes:
    out = io.BytesIO()
    write(trace, out, suffix)
    return out.getvalue()


@pytest.mark.parametrize("suffix", FORMS)
def test_bounds_inside_of_cuts_tell_nothing(suffix: str) -> None:
    rng = np.random.default_rng(20)
    moved = 0
    for _ in range(30):
        released = np.ones(len(TRACE), dtype=np.bool_)
        for start in rng.integers(0, len(TRACE), 3):
            released[start : start + rng.integers(1, 30)] = False
        # A bound of row i is between i - 1 and i: it shows where both of them are released.
        shows = np.flatnonzero(released & np.append(False, released[:-1]))
        hidden = np.setdiff1d(np.arange(1, len(TRACE)), shows)
        fixed = [rng.choice(shows, 4, replace=False) for _ in range(2)]
        data = set()
        for _ in range(4):
            others = [rng.choice(hidden, rng.integers(0, 6)) for _ in range(2)]
            trace = with_bounds(
                *(np.concatenate([one, more]) for one, more in zip(fixed, others, strict=True))
            )
            data.add(written(cut_out(trace, released), suffix))
            moved += sum(len(other) for other in others)
        assert len(data) == 1
    assert moved > 100


def test_bounds_between_released_fixes_stay() -> None:
    released = np.ones(len(TRACE), dtype=np.bool_)
    released[:10] = released[50:60] = False
    part = cut_out(with_bounds(np.array([30, 50, 80]), np.array([5, 20, 55, 60, 90])), released)
    rows = np.flatnonzero(released)
    assert rows[1:][np.diff(part.segments) != 0].tolist() == [30, 80]
    assert rows[1:][np.diff(part.laps) != 0].tolist() == [20, 90]


def test_a_new_track_is_one_after_a_cut_too() -> None:
    segments = (np.arange(len(TRACE)) >= 55).astype(np.intp)
    released = np.ones(len(TRACE), dtype=np.bool_)
    released[50:60] = False
    trace = replace(TRACE, segments=segments, tracks=(0, 1))
    assert np.unique(cut_out(trace, released).segments).tolist() == [0, 1]
    assert np.unique(cut_out(replace(trace, tracks=(0, 0)), released).segments).tolist() == [0]


def test_segments_that_go_on_among_others_are_as_recorded() -> None:
    segments = np.arange(len(TRACE)) // 10 % 2
    released = np.ones(len(TRACE), dtype=np.bool_)
    released[15:25] = False
    trace = replace(TRACE, segments=segments, tracks=(0, 0))
    assert cut_out(trace, released).segments.tolist() == segments[released].tolist()


def test_a_gpx_with_several_segments_stays_so() -> None:
    trace = replace(
        with_bounds(np.array([1, 60, 90, 118]), np.array([], dtype=int)), laps=no_laps()
    )
    parts = tuple(Chosen(returns=False).stretches(trace))
    made = protect(trace, Request(parts, floor=10.0, middle=10.0, uncertain=10))
    assert made.mechanism.rows.size < len(trace) - 4
    out = written(draw(made, bytes(32))[0], ".gpx")
    assert out.count(b"<trkseg>") == 3
