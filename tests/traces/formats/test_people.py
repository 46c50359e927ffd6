"""Tables of several people are refused by whatever column tells them apart; others are read."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.delimited import read
from trailveil.traces.formats.people import may_name_people, splits

_BEGIN = np.datetime64("2024-05-01T08:00:00", "s")


def walk(rng: np.random.Generator, count: int, step: float = 10.0) -> np.ndarray:
    """Places (count, 2) of somebody who walks on, degrees, at 1.5 m/s with fixes to 5 m."""
    turns = np.cumsum(rng.normal(0, 0.2, count))
    metres = np.cumsum(1.5 * step * np.column_stack([np.sin(turns), np.cos(turns)]), axis=0)
    start = np.array([47.0, 8.0]) + rng.uniform(-0.05, 0.05, 2)
    return start + (metres + rng.normal(0, 5, metres.shape)) / [111_000.0, 76_000.0]


def table(people: Sequence[np.ndarray], column: str, cells: Sequence[Sequence[object]]) -> bytes:
    """Tracks one after the other, which begin at one time, and what a column says of each fix."""
    lines = [f"lat,lng,datetime,{column}"]
    for places, said in zip(people, cells, strict=True):
        for row, ((latitude, longitude), cell) in enumerate(zip(places, said, strict=True)):
            time = _BEGIN + np.timedelta64(10 * row, "s")
            lines.append(f"{latitude:.6f},{longitude:.6f},{time}Z,{cell}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize("name", ["uid", "participant", "traj_user", "id", "rider id", "Zaphod"])
def test_two_people_at_the_same_time_are_refused_whatever_the_column_is_called(name: str) -> None:
    rng = np.random.default_rng(18)
    both = [walk(rng, 60), walk(rng, 60)]
    with pytest.raises(
        UnreadableInput, match=re.escape(f"column '{name}' tells 2 apart")
    ) as refused:
        read(table(both, name, [["7"] * 60, ["b"] * 60]), "two.csv")
    assert f"--trace-column '{name}'" in str(refused.value)


@pytest.mark.parametrize("name", ["uid", "participant", "traj_user", "id"])
def test_two_people_on_two_days_are_told_by_the_name_of_the_column(name: str) -> None:
    rng = np.random.default_rng(19)
    text = table([walk(rng, 40)], name, [[1] * 20 + [2] * 20])
    with pytest.raises(UnreadableInput, match="tells 2 apart"):
        read(text, "two.csv")


@pytest.mark.parametrize(
    ("name", "values"),
    [("activity", 5), ("accuracy", 9), ("satellites", 6), ("zone", 4), ("id", 60), ("x1", 3)],
)
def test_a_column_that_changes_along_one_track_is_no_person(name: str, values: int) -> None:
    rng = np.random.default_rng(20)
    places = walk(rng, 60)
    cells = [str(i) for i in range(60)] if name == "id" else rng.integers(values, size=60).tolist()
    assert len(read(table([places], name, [cells]), "one.csv")) == 60


def test_visits_of_named_places_are_of_one_person() -> None:
    rng = np.random.default_rng(21)
    homes = np.array([[47.0, 8.0], [47.1, 8.1], [47.05, 8.2]])
    names = np.arange(60) // 4 % 3
    places = homes[names] + rng.normal(0, 1e-4, (60, 2))
    times = np.arange(60) * 1800 * 10**9
    assert not splits(names + 1, times, places)


def test_relatives_of_tables_of_people_and_of_one_person() -> None:
    """Several people of any rate and number are told apart; what is chance is not."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        count, fixes = int(rng.integers(2, 6)), int(rng.integers(20, 80))
        step = float(rng.choice([1.0, 10.0, 60.0]))
        tracks = [walk(rng, fixes, step) for _ in range(count)]
        times = np.concatenate(
            [(np.arange(fixes) * step + rng.uniform(0, 5 * step)) * 1e9 for _ in tracks]
        ).astype(np.int64)
        codes = np.repeat(np.arange(count) + 1, fixes)
        assert splits(codes, times, np.concatenate(tracks)), seed
        for alone in (rng.integers(1, 9, fixes), 1 + np.cumsum(rng.random(fixes) < 0.1) % 4):
            assert not splits(alone, times[:fixes], tracks[0]), seed


def test_measurements_are_no_names() -> None:
    assert not any(map(may_name_people, ("Latitude", "gps_time", "Mode", "speed (m/s)", "HDOP")))
    assert all(map(may_name_people, ("uid", "trip", "Zaphod")))
