"""From recordings to coverage: who is held together, what is fitted on whom, what is left out."""

from pathlib import Path

import numpy as np
import pytest

from tests.studies.datasets.geolife_files import plt_text, walked, write_user
from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.gp.kernels import IntegratedOU, White
from trailveil.privacy.priors import BUILT_IN, PriorSpec
from trailveil.studies.calibrating import (
    ALL,
    Recorded,
    calibrate,
    cases_of,
    recorded,
    recorded_as,
)
from trailveil.traces.trace import Trace

DEFAULT = [BUILT_IN["default"]]


def a_file(folder: Path, seed: int, count: int = 130) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seed}.plt"
    path.write_text(plt_text(*walked(count, seed=seed)))
    return path


def moving(speed: float, seed: int, minutes: int = 20) -> Trace:
    """Somebody of this speed per coordinate, whose velocity lasts a minute; a fix every 5 s."""
    random = np.random.default_rng(seed)
    count, keep = 12 * minutes, np.exp(-5 / 60)
    velocity = np.empty((count, 2))
    velocity[0] = random.normal(0, speed, 2)
    for row in range(1, count):
        noise = random.normal(0, speed * (1 - keep**2) ** 0.5, 2)
        velocity[row] = keep * velocity[row - 1] + noise
    metres = np.cumsum(5 * velocity, axis=0) + random.normal(0, 2, (count, 2))
    degrees = np.array([-45.0, -125.0]) + metres / 111_200 * np.array([1, 1.414])
    times = 1_300_000_000_000_000_000 + 5_000_000_000 * np.arange(count)
    return Trace(times, degrees, np.zeros(count, np.intp), (0,))


def test_files_are_held_together_by_folder_where_there_are_five(tmp_path: Path) -> None:
    files = [
        a_file(tmp_path / f"{user:03}" / "Trajectory", user * 10 + k)
        for user in range(5)
        for k in (0, 1)
    ]
    calibrated = recorded(files)
    assert calibrated.by == "folder"
    assert calibrated.groups == (0, 0, 1, 1, 2, 2, 3, 3, 4, 4)
    few = recorded(files[:8])
    assert (few.by, few.groups) == ("file", tuple(range(8)))


def test_what_is_stored_twice_counts_once_and_what_is_none_is_named(tmp_path: Path) -> None:
    first_file = a_file(tmp_path, 1)
    twin = tmp_path / "twin.plt"
    twin.write_bytes(first_file.read_bytes())
    bad = tmp_path / "bad.gpx"
    bad.write_text("no recording, at 45.123456")
    calibrated = recorded([first_file, twin, bad, tmp_path / "none.gpx"])
    assert (len(calibrated.traces), calibrated.twice) == (1, 1)
    assert len(calibrated.unreadable) == 2
    assert "bad.gpx" in calibrated.unreadable[0]
    assert "45.1" not in calibrated.unreadable[0]
    assert "none.gpx" in calibrated.unreadable[1]


def test_kernels_are_fitted_on_the_others() -> None:
    slow, fast = moving(1.0, 1), moving(8.0, 2)
    recorded = Recorded((slow, fast), (0, 1), "file")
    result = calibrate(recorded, [], ["integrated-ou"], gaps=[30.0], workers=1)
    (judged,) = result.judged
    assert judged.fitted
    for_slow, for_fast = (
        next(term for term in kernel.terms() if isinstance(term, IntegratedOU))
        for kernel in judged.kernels
    )
    assert for_slow.std > 4
    assert for_fast.std < 2
    by = {cell.pace: cell.coverage for cell in judged.cells}
    assert by[ALL].predictions == 24
    assert by[ALL].groups == 2


def test_predictions_are_those_of_the_fold_in_the_order_of_the_fixes() -> None:
    traces = (moving(3.0, 0, minutes=11), moving(3.0, 1), moving(3.0, 2, minutes=16))
    recorded = Recorded(traces, (2, 0, 1), "file")
    stated = PriorSpec("same", IntegratedOU(3.0, 60.0) + White(2.0), "metres", None)
    calibrated = calibrate(recorded, [stated], ["matern32"], gaps=[0.0, 320.0], workers=1)
    names = [(judged.name, judged.fitted, len(judged.kernels)) for judged in calibrated.judged]
    assert names == [("same", False, 1), ("matern32", True, 3)]
    counts = [[cell.coverage.predictions for cell in judged.cells] for judged in calibrated.judged]
    assert counts[0] == counts[1]
    alone = calibrated.judged[1].cells[0]
    assert (alone.gap, alone.pace) == (0.0, ALL)
    assert alone.coverage.rms < 10


def test_a_single_recording_is_held_together_by_window() -> None:
    single = Recorded((moving(3.0, 5, minutes=60),), (0,), "file")
    cases = cases_of(single, [30.0], window=600.0)
    assert cases.by == "window"
    assert len(set(cases.groups)) == len(cases.windows) == 6
    with pytest.raises(InvalidValue, match="--kernel none"):
        calibrate(single, [], ["rbf"], gaps=[30.0], window=7200.0)
    alone = calibrate(single, DEFAULT, [], gaps=[30.0], window=7200.0)
    assert alone.groups == 1
    assert alone.judged[0].cells[0].coverage.inside[0.68].low is None


def test_no_prediction_reaches_over_a_segment_or_a_window() -> None:
    trace = moving(3.0, 5)
    halves = Trace(trace.times, trace.positions, np.repeat([0, 1], 120), (0, 0))
    ends = {case.times[-1] for case in cases_of(Recorded((halves,), (0,), "file"), [0.0]).cases}
    assert max(ends) <= 600
    with pytest.raises(UnreadableInput, match="got none in 1 recordings"):
        cases_of(Recorded((halves,), (0,), "file"), [400.0])


def test_a_flight_is_left_out_and_counted() -> None:
    adversaries = moving(3.0, 5)
    times = adversaries.times[:100] + 10**15
    degrees = np.column_stack([np.linspace(-45, -36, 100), np.full(100, -125.0)])
    flight = Trace(times, degrees, np.zeros(100, np.intp), (0,))
    calibrated = calibrate(
        Recorded((adversaries, flight), (0, 1), "file"), DEFAULT, [], gaps=[30.0]
    )
    assert (calibrated.wide, calibrated.windows) == (1, 1)


def test_labelled_parts_are_held_together_by_user(tmp_path: Path) -> None:
    label = "2009/05/04 06:00:00\t2009/05/04 06:09:00\t{}\n"
    write_user(tmp_path / "g" / "000", [1, 2], count=130, labels=label.format("walk"))
    write_user(tmp_path / "g" / "001", [3], count=130, labels=label.format("walk"))
    recorded = recorded_as(tmp_path / "g", "walk")
    assert (recorded.by, recorded.groups) == ("folder", (0, 0, 1))


def test_a_prior_in_another_unit_is_refused() -> None:
    warm = PriorSpec("room.json", White(1.0), "degC", None)
    with pytest.raises(InvalidValue, match=r"in metres, got one in degC: room\.json"):
        calibrate(Recorded((moving(3.0, 5),), (0,), "file"), [warm], [])
