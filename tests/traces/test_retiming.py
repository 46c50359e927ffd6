"""Rounded and shifted times: of the released fixes alone, after the noise, each time once."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.rides import ride, written
from trailveil.cli import cli
from trailveil.errors import InvalidValue
from trailveil.traces.formats import read
from trailveil.traces.retiming import AS_RECORDED, SHIFTED_TO, Retiming, retimed
from trailveil.traces.trace import NANOSECONDS, Trace


def trace_at(times: list[int]) -> Trace:
    places = np.column_stack([np.arange(len(times)) * 1e-3, np.zeros(len(times))])
    return Trace(np.array(times, dtype=np.int64), places, np.zeros(len(times), np.intp), (0,))


def grid_of(trace: Trace) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.column_stack([np.arange(len(trace)), np.zeros(len(trace))]).astype(np.int64)


moments = st.lists(st.integers(-(10**18), 4 * 10**18), min_size=1, max_size=30, unique=True).map(
    sorted
)
steps = st.sampled_from([None, 1e-9, 0.3, 1.0, 7.0, 60.0, 3600.0, 86_400.0])


@given(moments, steps, st.booleans())
def test_times_are_the_nearest_multiples_and_each_is_there_once(
    times: list[int], step: float | None, shift: bool
) -> None:
    trace = trace_at(times)
    released, grid = retimed(trace, grid_of(trace), Retiming(step, shift))
    start = SHIFTED_TO - times[0] if shift else 0
    expected: dict[int, int] = {}
    for row, time in enumerate(times):
        moved = time + start
        if step is not None:
            size = round(step * NANOSECONDS)
            moved = (2 * moved + size) // (2 * size) * size
        expected.setdefault(moved, row)
    assert released.times.tolist() == list(expected)
    assert grid[:, 0].tolist() == list(expected.values())
    assert released.segments.size == grid.shape[0]


@given(moments, steps, st.integers(-(10**17), 10**17))
def test_shifted_times_tell_nothing_of_when_it_was(
    times: list[int], step: float | None, later: int
) -> None:
    retiming = Retiming(step, shift=True)
    here, elsewhere = trace_at(times), trace_at([time + later for time in times])
    assert np.array_equal(
        retimed(here, grid_of(here), retiming)[0].times,
        retimed(elsewhere, grid_of(elsewhere), retiming)[0].times,
    )


def test_without_a_wish_nothing_is_changed() -> None:
    trace = ride(5)
    grid = grid_of(trace)
    released = retimed(trace, grid, AS_RECORDED)
    assert released[0] is trace
    assert released[1] is grid


@pytest.mark.parametrize("step", [0.0, -1.0, 1e-10, 86_401.0, float("nan")])
def test_steps_that_are_none_are_refused(step: float) -> None:
    with pytest.raises(InvalidValue, match="times must be rounded"):
        Retiming(step)


def test_the_noise_is_the_same_at_other_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one release, told at other times: the promise is that of the recorded ones."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    source = written(tmp_path / "ride.gpx", ride(30, 30.0))
    words = ["protect", str(source), "--at", "start+5m", "--mechanism", "noise", "--json"]
    outcomes = {}
    for name, more in {"plain": [], "other": ["--round-times", "60", "--shift-times"]}.items():
        output = tmp_path / f"{name}.gpx"
        done = CliRunner().invoke(cli, [*words, "-o", str(output), *more])
        assert done.exit_code == 0, done.output
        outcomes[name] = (json.loads(done.stdout), read(output))
    (report, plain), (retold, other) = outcomes["plain"], outcomes["other"]
    assert report["secrets"] == retold["secrets"]
    assert retold["times"] == {
        "rounded_to_s": 60.0,
        "shifted": True,
        "dropped": False,
        "left_out": 14,
    }
    assert other.positions.tolist() == plain.positions[[0, *range(1, 30, 2)]].tolist()
    first = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    assert other.times.astype("datetime64[s]").tolist() == [
        first + timedelta(minutes=i) for i in range(16)
    ]
    assert any("adds nothing" in line for line in retold["not_protected"])
    assert not any("adds nothing" in line for line in report["not_protected"])
