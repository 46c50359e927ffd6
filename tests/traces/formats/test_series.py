"""Plain time series in and out."""

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.traces.formats.series import read_series, write_series
from trailveil.traces.readings import Readings, RecordedReadings
from trailveil.traces.trace import Seen

ROOM = (
    "time,temperature (degC)\n2024-05-14T12:00:00Z,20.5\n"
    "2024-05-14T12:15:00Z,-0.25\n2024-05-14T12:30:00Z,1e1\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "room.csv"


def table(path: Path, text: str, **options: Any) -> RecordedReadings:
    path.write_text(text, encoding="utf-8")
    return read_series(path, **options)


def test_the_only_value_and_the_unit_in_its_name(path: Path) -> None:
    recorded = table(path, ROOM)
    assert recorded.values.tolist() == [20.5, -0.25, 10.0]
    assert recorded.unit == "degC"
    assert recorded.times[0] == np.datetime64("2024-05-14T12:00:00")
    assert recorded.seen == Seen()
    assert table(path, ROOM, unit="K").unit == "K"


def test_a_column_by_name_and_other_notations(path: Path) -> None:
    text = "Datum;Uhrzeit;innen;aussen [\u00b0C]\n14.05.2024;12:00;21;-0,5\n14.05.2024;12:15;22;\n"
    text += "14.05.2024;12:30;22;warm\n# Ende\n"
    recorded = table(path, text, column="aussen [\u00b0C]")
    np.testing.assert_array_equal(recorded.values, [-0.5, np.nan])
    assert recorded.unit == "\u00b0C"
    assert recorded.naive.all()
    assert recorded.seen == Seen(other_fields=1, other_records=2)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("t (degC)", "degC"),
        ("t [ K ] ", "K"),
        ("t (in) [mm]", "mm"),
        ("(%)", "%"),
        ("t (" + "m" * 20 + ")", "m" * 20),
        ("t (" + "m" * 21 + ")", None),
        ("t (m) x", None),
        ("t (a) b)", None),
        ("t ()", None),
        ("t (  )", None),
        ("t m)", None),
        ("t (" + " " * 8000, None),
        ("t " + "( " * 4000, None),
    ],
)
def test_the_unit_stands_in_the_last_brackets(path: Path, name: str, unit: str | None) -> None:
    text = f"time,{name}\n2024-05-14T12:00:00Z,20.5\n"
    began = time.process_time()
    if unit is None:
        with pytest.raises(InvalidValue, match="the unit must be stated"):
            table(path, text)
    else:
        assert table(path, text).unit == unit
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "options", "kind", "expected"),
    [
        (ROOM.replace(" (degC)", ""), {}, InvalidValue, "the unit must be stated"),
        (ROOM.replace("\n", ",1\n"), {}, InvalidValue, "must be named, got 2 that it could be"),
        (ROOM, {"column": "pressure"}, InvalidValue, "must be one of the table, got another"),
        (ROOM.replace("time", "when"), {}, UnreadableInput, "a line that names a time and a value"),
        ("time\n1\n", {}, UnreadableInput, "a line that names a time and a value"),
        (ROOM[:24], {}, UnreadableInput, "got none"),
        (ROOM.replace("20.5", "20,5"), {}, UnreadableInput, "rows must have 2 cells"),
        ("", {}, UnreadableInput, "got an empty file"),
    ],
)
def test_what_is_no_series_is_refused_in_one_line(
    path: Path, text: str, options: dict[str, str], kind: type[Exception], expected: str
) -> None:
    with pytest.raises(kind, match=expected) as caught:
        table(path, text, **options)
    assert "\n" not in str(caught.value)
    assert "room.csv" in str(caught.value)
    assert "pressure" not in str(caught.value)


@given(
    st.dictionaries(st.integers(0, 2**62), st.integers(-(10**14), 10**14), min_size=1, max_size=9),
    st.integers(0, 6),
)
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[int, int], decimals: int
) -> None:
    times = np.array(sorted(rows))
    steps = np.array([rows[time] for time in sorted(rows)])
    readings = Readings(times, steps / 10**decimals, "m/s")
    stream = io.BytesIO()
    write_series(readings, stream, decimals=decimals)
    given_as = io.BytesIO()
    write_series(readings, given_as, decimals=decimals, grid=steps)
    assert stream.getvalue() == given_as.getvalue()
    path = tmp_path_factory.mktemp("series") / "a.csv"
    path.write_bytes(stream.getvalue())
    recorded_readings = read_series(path)
    assert recorded_readings.times.astype(np.int64).tolist() == times.tolist()
    assert recorded_readings.values.tolist() == readings.values.tolist()
    assert recorded_readings.unit == "m/s"
    assert recorded_readings.seen == Seen()


def test_the_bytes_are_these() -> None:
    stream = io.BytesIO()
    readings = Readings(np.array([0, 1_500_000_000]), np.array([-0.25, 21.0]), "degC")
    write_series(readings, stream, decimals=2)
    assert stream.getvalue().decode() == (
        'time,"value (degC)"\n1970-01-01T00:00:00Z,-0.25\n1970-01-01T00:00:01.5Z,21.00\n'
    )
    with pytest.raises(InvalidValue, match="give whole steps, one for each reading"):
        write_series(readings, stream, grid=np.zeros(2))
