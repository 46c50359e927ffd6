"""Windows neither overlap nor outgrow their limits, and leave nothing out but what is thinned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import InvalidValue
from trailveil.studies.fit import cut


@given(
    steps=st.lists(st.floats(0.1, 50.0), min_size=0, max_size=60),
    window=st.floats(0.5, 300.0),
    points=st.integers(2, 20),
    gap=st.floats(1.0, 60.0),
)
def test_laws(steps: list[float], window: float, points: int, gap: float) -> None:
    times = np.cumsum([0.0, *steps])
    windows = cut(times, window, points, gap)
    firsts = [rows[0] for rows in windows]
    ends = [*firsts[1:], len(times)]
    assert firsts[0] == 0
    for rows, end in zip(windows, ends, strict=True):
        whole = times[rows[0] : end]
        assert rows[-1] == end - 1  # the first and the last fix stay
        assert len(rows) == min(points, len(whole))
        assert (np.diff(rows) > 0).all()
        assert whole[-1] - whole[0] <= window + 1e-9
        assert (np.diff(whole) <= gap).all()
        # No window could have been longer.
        if end < len(times):
            assert times[end] - whole[0] > window - 1e-9 or times[end] - times[end - 1] > gap


def test_an_example() -> None:
    times = [0.0, 1.0, 2.0, 3.0, 20.0, 21.0, 22.0, 23.0, 24.0]
    windows = cut(times, 3.0, 3, 10.0)
    assert [rows.tolist() for rows in windows] == [[0, 2, 3], [4, 6, 7], [8]]
    assert cut([], 3.0, 3) == []


@pytest.mark.parametrize(("window", "points", "gap"), [(0.0, 5, 1.0), (1.0, 1, 1.0), (1.0, 5, 0.0)])
def test_limits_that_are_none_are_refused(window: float, points: int, gap: float) -> None:
    with pytest.raises(InvalidValue, match="a window must be longer"):
        cut([0.0, 1.0], window, points, gap)
