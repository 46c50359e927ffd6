"""SML2010: an invented table read and prepared; the ten values of the paper from the real one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import cheby1, filtfilt

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.studies.datasets.sml2010 import read_table, sml2010_scales, windows

ROWS = 800 + 10 * 192
HEADER = "#  1:Date 2:Time 3:Room 4:Other 5:Weather 6:Day"


def wave(row: int, number: int) -> float:
    """What the invented column of that number has in a row: a daily wave, and a faster one."""
    return float(20 + number * np.sin(2 * np.pi * row / 96) + np.cos(row * row % 17 + number))


def table_text(rows: int = ROWS, change: Callable[[int, str], str] = lambda _, line: line) -> str:
    lines = []
    start = np.datetime64("2031-12-30T23:45")
    for row in range(rows):
        day, clock = str(start + np.timedelta64(15 * row, "m")).split("T")
        year, month, number = day.split("-")
        values = " ".join(f"{wave(row, column):.4f}" for column in (3, 4, 5, 6))
        lines.append(change(row, f"{number}/{month}/{year} {clock} {values}"))
    return "\n".join([HEADER, *lines]) + "\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.txt"
    path.write_text(text)
    return path


def test_columns_go_by_the_numbers_in_the_header(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, table_text(7)))
    assert table.times[1] == np.datetime64("2031-12-31T00:00")
    assert list(table.columns) == [3, 4, 5, 6]
    for number, values in table.columns.items():
        np.testing.assert_allclose(values, [wave(row, number) for row in range(7)], atol=5.1e-5)


def test_windows_are_those_of_the_recipe(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, table_text()))
    for column, number in (("room", 3), ("paper", 5)):
        series = windows(table, column)  # type: ignore[arg-type]  # a loop over literals
        assert [len(window) for window in series] == [48] * 10
        # The third window: rows 800 + 384 to 800 + 576, both left out, as in `a < day < b`.
        raw = table.columns[number][1185:1376]
        raw = (raw - raw.mean()) / raw.std()
        expected = filtfilt(*cheby1(8, 0.05, 0.8 / 4), raw)[::4]
        np.testing.assert_allclose(series[2], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "input must"),
        ("1:Date 2:Time 3:Room\n", "got another header"),
        ("# 1:Date 3:Time 4:Room\n", "got another header"),
        ("# 1:Date 2:Time\n", "got another header"),
        (HEADER, "every row must have 6 columns"),
        (table_text(5, lambda row, line: line + " 7" * (row == 3)), "every row must have 6"),
        (table_text(5, lambda row, line: line.replace("31/12", "31/13")), "every row must be DD"),
        (table_text(5, lambda row, line: line[:-7] + "warmer!"), "every row must be DD"),
        (table_text(5, lambda row, line: line[:-7] + "nan"), "every number must be finite"),
    ],
)
def test_what_is_no_such_table_is_refused_without_its_text(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UnreadableInput, match=message) as caught:
        read_table(written(tmp_path, text))
    assert "warmer" not in str(caught.value)
    assert "table.txt" in str(caught.value)


def test_a_table_that_does_not_serve_the_recipe_is_refused(tmp_path: Path) -> None:
    short = read_table(written(tmp_path, table_text(900)))
    with pytest.raises(InvalidValue, match=r"must have 2720 rows and column 3, got 900 rows"):
        windows(short)
    gap = read_table(written(tmp_path, table_text(ROWS + 1, lambda row, line: line * (row != 900))))
    with pytest.raises(InvalidValue, match="a row every 15 minutes"):
        windows(gap)
    flat = read_table(written(tmp_path, table_text(ROWS, lambda _, line: line[:16] + " 1" * 4)))
    with pytest.raises(InvalidValue, match="every window must vary"):
        windows(flat)
    with pytest.raises(InvalidValue, match="columns must be room or paper, got garden"):
        windows(flat, "garden")  # type: ignore[arg-type]  # on purpose


def test_the_papers_ten_values_are_reproduced(shared: Path) -> None:
    table = shared / "traces" / "sml2010" / "NEW-DATA-1.T15.txt"
    values = np.load(shared / "reference" / "effective_length_scales.npz")["temperature"]
    effective_scales = sml2010_scales(table, column="paper", workers=1)
    np.testing.assert_allclose(
        effective_scales.values, values.astype(float), rtol=5e-6
    )  # 1e-3 is asked for
    np.testing.assert_allclose(effective_scales.quartiles, (1.040, 1.097, 1.145), atol=5e-4)
    assert (
        effective_scales.at_low,
        effective_scales.at_high,
        effective_scales.unfinished,
        effective_scales.rejected,
    ) == (0, 0, 0, 0)


def test_the_room_has_another_scale_and_needs_several_starts(shared: Path) -> None:
    table = shared / "traces" / "sml2010" / "NEW-DATA-1.T15.txt"
    theirs = sml2010_scales(table, starts=1, workers=1)
    np.testing.assert_allclose(theirs.quartiles, (1.23, 1.34, 1.42), atol=5e-3)
    effective_scales = sml2010_scales(table, workers=1)
    np.testing.assert_allclose(effective_scales.quartiles, (1.269, 1.367, 1.421), atol=1e-3)
    assert theirs.values[8] < 0.02  # their one start ends where nothing is periodic
    assert effective_scales.values[8] > 1.3
