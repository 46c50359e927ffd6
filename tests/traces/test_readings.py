"""Readings: a trace in one dimension."""

import re

import numpy as np
import pytest

from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.ledger.counting import released_before
from trailveil.traces.cleaning import clean_readings
from trailveil.traces.readings import Readings, RecordedReadings

TIMES = np.array([0, 5, 10, 15]) * 10**9 + 1_700_000_000 * 10**9
VALUES = np.array([20.5, -0.25, 0.125, 21.0])


def recorded(
    values: object = VALUES, times: object = TIMES, naive: bool = False
) -> RecordedReadings:
    stamps = np.array(times).astype("datetime64[ns]")
    return RecordedReadings(stamps, np.full(len(stamps), naive), np.array(values), "degC")


def test_steps_are_the_nearest_and_halves_go_up() -> None:
    readings = Readings(TIMES, VALUES, "degC")
    assert readings.steps(0).tolist() == [21, 0, 0, 21]
    assert readings.steps(2).tolist() == [2050, -25, 13, 2100]
    assert readings.steps(6).tolist() == (VALUES * 10**6).astype(int).tolist()
    assert readings.seconds.tolist() == [0, 5, 10, 15]
    assert (len(readings), readings.duration) == (4, 15.0)
    for decimals in (-1, 13):
        with pytest.raises(InvalidValue, match="decimals must be 0 to 12"):
            readings.steps(decimals)
    with pytest.raises(InvalidValue, match="at most 15 digits"):
        Readings(TIMES, VALUES * 1e6, "degC").steps(12)


def test_nothing_shows_a_value_and_nothing_can_be_changed() -> None:
    readings = Readings(TIMES, VALUES, "degC")
    assert repr(readings) == "Readings(4 in degC, 15 s)"
    assert repr(recorded()) == "RecordedReadings(4 in degC)"
    with pytest.raises(ValueError, match="read-only"):
        readings.values[0] = 0.0


@pytest.mark.parametrize(
    ("times", "values", "unit", "expected"),
    [
        (TIMES[::-1], VALUES, "degC", "strictly increase"),
        (TIMES, VALUES[:3], "degC", "one for each time"),
        (TIMES, VALUES[:, None], "degC", "one for each time"),
        (TIMES * 1.0, VALUES, "degC", "must be integers"),
        (TIMES, VALUES * np.nan, "degC", "must be finite"),
        (TIMES, VALUES, " ", "a unit must be stated"),
        (TIMES, VALUES, "a\nb", "a unit must be stated"),
    ],
)
def test_what_does_not_hold_is_refused(
    times: np.ndarray, values: np.ndarray, unit: str, expected: str
) -> None:
    with pytest.raises(InvalidValue, match=expected):
        Readings(times, values, unit)


def test_cleaning_sorts_drops_and_counts() -> None:
    order = [2, 0, 1, 3, 3, 3]
    recorded_readings = recorded([*VALUES[order[:5]], 99.0], TIMES[order])
    readings, cleaning = clean_readings(recorded_readings)
    assert readings.values.tolist() == VALUES.tolist()
    assert readings.unit == "degC"
    assert (cleaning.recorded, cleaning.kept, cleaning.out_of_order) == (6, 4, 2)
    assert (cleaning.duplicates, cleaning.equal_times) == (1, 1)
    _, cleaning = clean_readings(recorded([20.0, np.nan, 0.0, 0.0]))
    assert cleaning.bad_values == 1
    assert "Left out because they had no readable value: 1 fixes." in cleaning.sentences()


def test_readings_are_not_spoken_of_as_places() -> None:
    moments = [TIMES[0]] * 3 + [TIMES[0] + np.timedelta64(i, "m") for i in range(1, 6)]
    again = recorded([20.0, 20.0, 21.0, *range(5)], moments)
    _, cleaning = clean_readings(again)
    said = " ".join(cleaning.sentences(readings=True))
    assert "the time and value of another reading: 1 readings" in said
    assert "the time of another reading with a different value: 1 readings" in said
    assert not re.search("fix|place|track", said)
    refused = str(released_before("me", [], 0, 1, series="series"))
    assert not re.search(r"\bplaces?\b|track", refused)
    assert "protected places" in str(released_before("me", [], 0, 1))


def test_cleaning_refuses_what_it_refuses_of_traces() -> None:
    with pytest.raises(Refused, match="must say their zone"):
        clean_readings(recorded(naive=True))
    assert clean_readings(recorded(naive=True), assume_utc=True)[1].assumed_zone == 4
    with pytest.raises(UnreadableInput, match="must have a number as value, got 3 of 4"):
        clean_readings(recorded([1.0, np.nan, np.inf, np.nan]))
    with pytest.raises(UnreadableInput, match="two readings or more"):
        clean_readings(recorded(VALUES[:1], TIMES[:1]))
