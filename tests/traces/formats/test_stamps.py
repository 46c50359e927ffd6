"""Times in columns: every notation that tells one instant, and none that does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.moments import Stamps, parse_moment

NOON = np.datetime64("2024-05-14T12:00:00", "ns")


def one(text: str, date: str = "", unit: int | None = None) -> np.datetime64:
    stamps = Stamps(per_second=unit, utc=False)
    stamps.text(text, date)
    moment: np.datetime64 = stamps.finished("x")[0][0]
    return moment


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-14T12:00:00Z",
        "2024-05-14 14:00:00+02:00",
        "2024-05-14 12:00",
        "2024/05/14 12:00:00",
        "2024/5/14 12:00:00 PM",
        "2024-05-14T12:00:00 PM",
        "14.05.2024 12:00:00",
        "14.5.2024, 12:00:00",
        "20240514T120000Z",
        "20240514 120000",
        "14/05/2024 12:00",
        "5/14/2024 12:00:00 PM",
        "5/14/2024 12:00:00.000 p.m.",
        "2024/05/14 14:00:00+0200",
        "1715688000",
        "1715688000.0",
        "1.715688E9",
        "1715688000000",
        "1715688000000000",
        "1715688000000000000",
        "  1715688000  ",
    ],
)
def test_each_of_these_is_one_noon(text: str) -> None:
    assert one(text) == NOON


@pytest.mark.parametrize(
    ("date", "clock"),
    [
        ("2024/05/14", "12:00:00"),
        ("2024-05-14", "12:00:00.000"),
        ("14.05.2024", "12:00"),
        ("20240514", "120000"),
        ("14/05/2024", "12:00:00 PM"),
        ("", "2024-05-14T12:00:00Z"),
    ],
)
def test_date_and_clock_may_stand_apart(date: str, clock: str) -> None:
    assert one(clock, date) == NOON


@pytest.mark.parametrize(
    "text",
    [
        *("noon", "12:00:00", "2024-13-14 12:00:00", "2024/05/14", "14.05.24 12:00:00", "1e999"),
        *("0x10", "1_000_000_000", "2024/05/14 13:00 PM", "9" * 200),
        *("Mon Jun 12 09:09:22 PDT 2017", "nan", "inf", "\u0661\u0662", "2024/05-14 12:00"),
    ],
)
def test_what_names_no_instant_is_counted_not_guessed(text: str) -> None:
    stamps = Stamps(per_second=None, utc=False)
    stamps.text(text)
    times, naive = stamps.finished("x")
    assert np.isnat(times).all()
    assert not naive.any()
    assert stamps.counts == {"unreadable_times": 1, "impossible_years": 0}


def test_nothing_is_no_time_and_no_trouble() -> None:
    stamps = Stamps(per_second=None, utc=False)
    stamps.text("  ")
    stamps.numbers([float("nan")])
    assert np.isnat(stamps.finished("x")[0]).all()
    assert stamps.counts == {"unreadable_times": 0, "impossible_years": 0}


def test_decimals_are_exact() -> None:
    assert one("1715688000.123456789") == NOON + np.timedelta64(123_456_789, "ns")
    assert one("1715688000123.456789") == NOON + np.timedelta64(123_456_789, "ns")
    assert one("5.25", unit=1000) == np.datetime64(5_250_000, "ns")


def test_a_zone_in_the_name_of_the_column_is_enough() -> None:
    for utc in (False, True):
        stamps = Stamps(per_second=None, utc=utc)
        stamps.text("2024-05-14 12:00:00")
        stamps.text("2024-05-14 12:00:00Z")
        stamps.moments(np.array([NOON]), naive=True)
        assert stamps.finished("x")[1].tolist() == [not utc, False, not utc]


def test_the_first_number_settles_the_unit() -> None:
    stamps = Stamps(per_second=None, utc=False)
    stamps.numbers([1_715_688_000_000, 1_000])
    assert stamps.finished("x")[0].astype("datetime64[s]").astype(int).tolist() == [1715688000, 1]


def test_small_numbers_without_a_unit_are_refused() -> None:
    stamps = Stamps(per_second=None, utc=False)
    stamps.numbers([0, 1, 2])
    with pytest.raises(UnreadableInput, match="too small to tell their unit: x; say it in"):
        stamps.finished("x")


def test_days_and_months_by_what_all_rows_allow() -> None:
    for rows, month in ((["05/06/2024", "13/06/2024"], 6), (["05/06/2024", "05/13/2024"], 5)):
        stamps = Stamps(per_second=None, utc=False)
        for row in rows:
            stamps.text(f"{row} 12:00")
        assert str(stamps.finished("x")[0][0]).startswith(f"2024-0{month}-")


def test_days_that_may_be_months_are_refused() -> None:
    stamps = Stamps(per_second=None, utc=False)
    stamps.text("05/06/2024 12:00")
    with pytest.raises(UnreadableInput, match="which number is the month"):
        stamps.finished("x")
    same = Stamps(per_second=None, utc=False)
    same.text("06/06/2024 12:00")
    assert same.finished("x")[0][0] == np.datetime64("2024-06-06T12:00")


def test_years_beyond_64_bits_are_counted_in_every_notation() -> None:
    stamps = Stamps(per_second=1, utc=False)
    stamps.text("4096-05-14 12:00:00Z")
    stamps.numbers([1e12, -1e20])
    for unit in ("s", "ms", "us"):
        stamps.moments(np.array([2**62, -(2**62), 0]).astype(f"datetime64[{unit}]"), naive=False)
    times, _ = stamps.finished("x")
    assert np.isnat(times).tolist() == [True] * 3 + [True, True, False] * 3
    assert stamps.counts["impossible_years"] == 9


def test_iso_8601_is_read_as_everywhere_else() -> None:
    text = "2024-05-14T12:00:00.5+01:30"
    moment = parse_moment(text)
    assert isinstance(moment, tuple)
    assert one(text).astype(np.int64) == moment[0]


WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**11), 10**11)
EDGES = [(2**63 - 2 * 86_400 * 10**9) // 10**k + d for k in (0, 3, 6, 9) for d in (-1, 0, 1)]


@given(
    st.lists(WHOLE | st.sampled_from([*EDGES, *(-number for number in EDGES)]), max_size=8),
    st.sampled_from([None, 1, 10**3, 10**6, 10**9]),
    st.booleans(),
)
def test_whole_numbers_at_once_are_as_one_by_one(
    values: list[int], unit: int | None, unsigned: bool
) -> None:
    kind = np.uint64 if unsigned else np.int64
    numbers = np.array([abs(value) if unsigned else value for value in values], dtype=kind)
    at_once = Stamps(per_second=unit, utc=False)
    one_by_one = Stamps(per_second=unit, utc=False)
    at_once.whole(numbers)
    one_by_one.numbers(numbers.tolist())
    assert at_once.per_second == one_by_one.per_second
    assert at_once.counts == one_by_one.counts
    outcomes = []
    for stamps in (at_once, one_by_one):
        try:
            outcomes.append([stamp.tolist() for stamp in stamps.finished("x")])
        except UnreadableInput as error:
            outcomes.append([str(error)])
    assert outcomes[0] == outcomes[1]
