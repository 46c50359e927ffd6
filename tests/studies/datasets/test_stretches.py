"""Windows of traces: in metres, of one segment, long and dense enough."""

import numpy as np
import pytest

from tests.studies.datasets.geolife_files import walked
from trailveil.errors import UnreadableInput
from trailveil.studies.datasets.stretches import FEWEST_FIXES, MOST_FIXES, stretches
from trailveil.traces.trace import NANOSECONDS, Trace

START = 1_700_000_000 * NANOSECONDS


def trace(count: int, seed: int = 1, period: float = 5.0, segments: int = 1) -> Trace:
    seconds, degrees = walked(count, seed, period)
    parts = np.arange(count) * segments // count
    return Trace((START + seconds * 1e9).astype(np.int64), degrees, parts, (0,) * segments)


def test_windows_hold_metres_from_their_first_fix() -> None:
    ride = trace(200)  # 995 s: a window of 600 s, and one of 390 s, which is over half of it
    windows = stretches([ride])
    assert [len(series.times) for series in windows.series] == [100, 79]
    assert windows.sources == (0, 0)
    assert (windows.short, windows.fast) == (0, 0)
    assert windows.fixes == 179
    first = windows.series[0]
    assert first.times[0] == 0.0
    assert first.times[-1] == 600.0
    assert windows.seconds == 600 + 390
    np.testing.assert_array_equal(first.values[0], 0.0)
    # The sphere of the invention and the ellipsoid of the frame differ by under 1 %.
    north = (ride.positions[120, 0] - ride.positions[0, 0]) * 111_195
    assert first.values[-1, 1] == pytest.approx(north, rel=0.01, abs=0.5)


def test_dense_windows_are_thinned_and_sources_told() -> None:
    windows = stretches([trace(30, period=4.0), trace(700, period=1.0)])
    assert windows.sources == (1,)
    assert [len(series.times) for series in windows.series] == [MOST_FIXES]
    assert windows.short == 2  # 116 s of the first, and the last 99 s of the second


def test_no_window_reaches_over_a_segment_or_a_pause() -> None:
    parts = stretches([trace(240, segments=2)], window=590.0)
    assert [float(series.times[-1]) for series in parts.series] == [590.0, 590.0]
    ride = trace(240)
    late = ride.times + (np.arange(240) >= 80) * 120 * NANOSECONDS
    paused = Trace(late, ride.positions, ride.segments, ride.tracks)
    windows = stretches([paused])
    assert [float(series.times[-1]) for series in windows.series] == [395.0, 600.0]
    assert windows.short == 1


def test_what_is_too_fast_for_its_label_is_left_out() -> None:
    slow, fast = trace(60), trace(60, seed=2)
    metres = np.arange(60)[:, None] * [200.0, 0.0] / 111_195
    fast = Trace(fast.times, fast.positions + metres, fast.segments, fast.tracks)
    windows = stretches([slow, fast], window=300.0, fastest=10.0)
    assert (windows.sources, windows.fast) == ((0,), 1)


@pytest.mark.parametrize("period", [60.0, 100.0])
def test_no_window_at_all_is_refused(period: float) -> None:
    with pytest.raises(UnreadableInput, match=rf"300 to 600 s with {FEWEST_FIXES} fixes"):
        stretches([trace(40, period=period)])
