"""Times are exact to the nanosecond in every notation, or no times."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.traces.formats.moments import Moment, Trouble, format_moments, parse_moment

NOON = int(np.datetime64("2024-05-01T12:00:00", "ns").astype(np.int64))
SECOND = 10**9

OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.integers(-(8 * 10**15), 8 * 10**15), OFFSETS)
def test_agrees_with_the_standard_library(microseconds: int, offset: timezone) -> None:
    moment = (EPOCH + timedelta(microseconds=microseconds)).astimezone(offset)
    exact = microseconds * 1000
    assert parse_moment(moment.isoformat()) == Moment(exact, naive=False)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01T12:00:00Z",
        "2024-05-01t12:00:00z",
        "2024-05-01 12:00:00 UTC",
        "2024-05-01T12:00:00.000000000GMT",
        "2024-05-01T14:00:00+02:00",
        "2024-05-01T14:00:00+0200",
        "2024-05-01T14:00:00+02",
        "2024-05-01T14:00:00 +2:00",
        "2024-05-01T14:00:00+02:00[Europe/Berlin]",
        "2024-05-01T08:30:00-03:30",
        "2024-05-01T08:30:00\u221203:30",
        "2024-05-02T00:00:00+12:00",
        "2024-05-01T12:00Z",
        "2024-5-1T12:00:00Z",
        "\n  2024-05-01T12:00:00Z\t",
        "2024-05-01T11:59:60Z",
    ],
)
def test_every_zone_notation_names_the_same_noon(text: str) -> None:
    assert parse_moment(text) == Moment(NOON, naive=False)


@pytest.mark.parametrize(
    "text", ["2024-05-01T12:00:00", "2024-05-01 12:00", "2024-05-01T12:00:00 "]
)
def test_a_time_without_a_zone_says_so(text: str) -> None:
    assert parse_moment(text) == Moment(NOON, naive=True)


def test_the_end_of_a_day_is_the_start_of_the_next() -> None:
    assert parse_moment("2024-04-30T24:00:00Z") == Moment(NOON - 12 * 3600 * SECOND, naive=False)


@pytest.mark.parametrize(
    ("digits", "nanoseconds"),
    [
        ("5", 500_000_000),
        ("207", 207_000_000),
        ("2073437", 207_343_700),
        ("000000001", 1),
        ("999999999", 999_999_999),
        ("9999999999999", 999_999_999),  # cut off, never rounded into the next second
    ],
)
@pytest.mark.parametrize("mark", [".", ","])
def test_nine_decimals_are_kept(digits: str, nanoseconds: int, mark: str) -> None:
    expected = Moment(NOON + nanoseconds, naive=False)
    assert parse_moment(f"2024-05-01T12:00:00{mark}{digits}Z") == expected


def test_decimals_before_1970_count_forward() -> None:
    assert parse_moment("1969-12-31T23:59:59.25Z") == Moment(-750_000_000, naive=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-05-01",
        "12:00:00",
        "1714564800",
        "2024-13-01T12:00:00Z",
        "2024-02-30T12:00:00Z",
        "0000-01-01T12:00:00Z",
        "2024-05-01T25:00:00Z",
        "2024-05-01T24:00:01Z",
        "2024-05-01T12:60:00Z",
        "2024-05-01T12:00:61Z",
        "2024-05-01T12:00:00.Z",
        "2024-05-01T12:00:00x05",  # no zone, whatever some parsers say
        "2024-05-01T12:00:00+24:00",
        "2024-05-01T12:00:00 CEST",
        "2024-05-01T12:00:00ZZ",
        "\u0662\u0660\u0662\u0664-05-01T12:00:00Z",
        "2024-05-01T12:00:00." + "1" * 10_000 + "Z",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_moment(text) is Trouble.UNREADABLE


@pytest.mark.parametrize("year", ["0001", "1234", "1676", "2263", "4096", "9999"])
def test_years_beyond_64_bit_nanoseconds_are_told_apart(year: str) -> None:
    assert parse_moment(f"{year}-01-01T00:00:00Z") is Trouble.IMPOSSIBLE


@pytest.mark.parametrize("year", ["1678", "2261"])
def test_years_within_64_bit_nanoseconds_can_be_read(year: str) -> None:
    expected = int(np.datetime64(f"{year}-06-01", "ns").astype(np.int64))
    assert parse_moment(f"{year}-06-01T00:00:00Z") == Moment(expected, naive=False)


@given(st.integers(-(2**63) + 2 * 86_400 * SECOND, 2**63 - 2 * 86_400 * SECOND))
def test_what_is_written_reads_back_exactly(nanoseconds: int) -> None:
    (text,) = format_moments(np.array([nanoseconds]))
    assert parse_moment(text) == Moment(nanoseconds, naive=False)


def test_only_as_many_decimals_as_needed_are_written() -> None:
    times = NOON + np.array([0, 500_000_000, 123_456_789, 10, 8 * 3600 * SECOND])
    assert format_moments(times) == [
        "2024-05-01T12:00:00Z",
        "2024-05-01T12:00:00.5Z",
        "2024-05-01T12:00:00.123456789Z",
        "2024-05-01T12:00:00.00000001Z",
        "2024-05-01T20:00:00Z",
    ]
