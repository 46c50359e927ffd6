"""A few fixes of a wrong clock, or thrown far away, are left out and counted; more are kept."""

import numpy as np
import pytest

from trailveil.traces.cleaning import clean, clean_readings
from trailveil.traces.projection import metres_between
from trailveil.traces.readings import RecordedReadings
from trailveil.traces.strays import of_other_years, thrown
from trailveil.traces.trace import Recording

START = np.datetime64("2024-05-01T08:00:00", "ns")
SECOND = np.timedelta64(1_000_000_000, "ns")
YEAR = 365 * 86_400 * SECOND


def walked(count: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Times and places of a walk with a fix every 5 s."""
    steps = np.arange(count)
    places = np.column_stack([47 + 1e-4 * steps, 8 + 5e-5 * steps])
    return START + 5 * steps * SECOND, places


def recorded(times: np.ndarray, places: np.ndarray) -> Recording:
    count = len(times)
    return Recording(times, np.zeros(count, bool), places, np.zeros(count, int), (0,))


def test_the_first_fixes_of_a_clock_ten_years_early_are_left_out_and_said() -> None:
    times, places = walked()
    times[:3] -= 10 * YEAR
    trace, cleaning = clean(recorded(times, places))
    assert (len(trace), cleaning.wrong_clock, cleaning.kept) == (237, 3, 237)
    assert trace.positions.tolist() == places[3:].tolist()
    assert "a time more than a year from all others" in " ".join(cleaning.sentences())


def test_a_fix_on_another_continent_is_left_out_and_said() -> None:
    times, places = walked()
    places[100] = [-33.9, 151.2]
    trace, cleaning = clean(recorded(times, places))
    assert (len(trace), cleaning.thrown, cleaning.jumps) == (239, 1, 0)
    assert "a place 100 km or more from the fixes around" in " ".join(cleaning.sentences())


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_an_archive_of_many_years_and_two_places_is_kept(share: float) -> None:
    """What is off may be the truth where it is not seldom."""
    times, places = walked()
    few = round(share * len(times))
    early = times.copy()
    early[:few] -= 10 * YEAR
    assert of_other_years(early).size == 0
    places[:few] += [20.0, 0.0]
    assert thrown(times, places).size == 0
    trace, cleaning = clean(recorded(times, places))
    assert (len(trace), cleaning.jumps) == (240, 1)


def test_a_flight_is_no_throw_and_two_fixes_are_too_few_to_tell() -> None:
    hours = START + 3600 * np.arange(12) * SECOND
    route = np.column_stack([np.linspace(47, 40, 12), np.linspace(8, -74, 12)])
    assert thrown(hours, route).size == 0
    assert thrown(hours[:2], np.array([[47.0, 8.0], [-33.0, 151.0]])).size == 0


def test_relatives_of_strays_are_found_wherever_they_stand() -> None:
    """Runs of strays at the beginning, inside and at the end, by any years and kilometres."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        times, places = walked(int(rng.integers(60, 400)))
        chosen = np.unique(rng.integers(0, len(times), int(rng.integers(1, 4))))
        wrong = times.copy()
        wrong[chosen] += int(rng.choice([-1, 1])) * int(rng.integers(2, 20)) * YEAR
        assert np.sort(of_other_years(wrong)).tolist() == chosen.tolist(), seed
        away = places.copy()
        away[chosen] += rng.choice([-1, 1], 2) * rng.uniform(1, 40, 2)
        assert np.sort(thrown(times, away)).tolist() == chosen.tolist(), seed
        order = rng.permutation(len(times))
        assert np.sort(order[thrown(times[order], away[order])]).tolist() == chosen.tolist(), seed


def test_readings_of_a_wrong_clock_are_left_out() -> None:
    times, _ = walked(50)
    times[-1] += 3 * YEAR
    recorded_readings = RecordedReadings(
        times, np.zeros(50, bool), np.linspace(20.0, 21.0, 50), "degC"
    )
    readings, cleaning = clean_readings(recorded_readings)
    assert (len(readings), cleaning.wrong_clock) == (49, 1)


def test_metres_between_places() -> None:
    equator = metres_between(np.array([[0.0, 0.0]]), np.array([[0.0, 90.0]]))
    assert equator == pytest.approx(np.pi / 2 * 6_371_008.8)
    across = metres_between(np.array([[60.0, 179.9]]), np.array([[60.0, -179.9]]))
    assert across == pytest.approx(0.2 * np.pi / 180 * 6_371_000 * 0.5, rel=1e-4)
