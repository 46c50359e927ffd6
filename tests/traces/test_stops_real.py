"""Stays and visits of real recordings, counted by hand from a list of where each was when."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.stops import ABSENCE, LASTS, stays
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import Circle, visits

# Of those with a gap: the recording goes on where it broke off.
STAYS = {
    "000/20090427215826": 1,  # 22 minutes without a fix, from one corner of a building to another
    "010/20081018120606": 1,  # 21 minutes without a fix
    # And 294 s of a stroll within 100 m; and a gap of 27 minutes, 400 m long, that is none.
    "021/20070502013107": 3,
    "052/20080706090206": 2,  # 82 minutes without a fix; then ten, with one fix 670 m off
    "062/20080923094317": 2,  # 250 m apart
    "062/20080719122239": 1,
    "082/20090325130111": 1,
}
# The file, the seconds after its start at which it was at the place, metres, how often it was.
VISITS = [
    ("000/20090427215826", 0, 100, 1),
    ("021/20070502013107", 5769, 150, 1),  # the straight way of the gap of 27 minutes leads back
    ("052/20080706090206", 480, 150, 2),  # on a road, there and back
    ("052/20080706090206", 0, 150, 3),  # at the start, and in front of and after the last stop
    ("082/20090325130111", 240, 100, 1),  # in a vehicle
]


def recorded(shared: Path, name: str) -> Trace:
    return clean(read(shared / "traces" / "geolife" / f"{name}.plt"))[0]


@pytest.mark.parametrize("name", STAYS)
def test_stays_counted_by_hand(name: str, shared: Path) -> None:
    trace = recorded(shared, name)
    intervals = stays(trace)
    assert len(intervals) == STAYS[name]
    assert all(end - begin >= 0.9 * LASTS * NANOSECONDS for begin, end in intervals)
    assert all(interval[1] < other[0] for interval, other in pairwise(intervals))
    assert np.isin(np.ravel(intervals), trace.times).all()


@pytest.mark.parametrize(("name", "second", "metres", "count"), VISITS)
def test_visits_counted_by_hand(
    name: str, second: int, metres: float, count: int, shared: Path
) -> None:
    trace = recorded(shared, name)
    latitude, longitude = trace.positions[np.argmin(np.abs(trace.seconds - second))].tolist()
    intervals = visits(trace, Circle(latitude, longitude, metres))
    assert len(intervals) == count
    assert all(
        other[0] - interval[1] >= ABSENCE * NANOSECONDS for interval, other in pairwise(intervals)
    )
