"""Published data sets are read in the layouts of their authors: people, times, places, secrets."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.rides import ride, written
from tests.studies.comparing import samples
from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.studies.comparing import published
from trailveil.studies.comparing.cases import Case
from trailveil.studies.comparing.simulated import from_prior, on_streets, people

FOLDERS = ("geolife", "t_drive", "cabspotting")
FILES = ("porto", "gowalla", "yjmob")


def read(name: str, tmp_path: Path, **options: Any) -> list[Case]:
    """The cases of a sample."""
    place = tmp_path / name
    if name in FOLDERS:
        place.mkdir(exist_ok=True)
        getattr(samples, name)(place)
        return list(getattr(published, name)(folder=str(place), **options))
    getattr(samples, name)(place)
    return list(getattr(published, name)(file=str(place), **options))


@pytest.mark.parametrize(
    ("name", "names", "fixes", "first"),
    [
        ("geolife", {"000", "010"}, 90, "2008-02-04T01:00:00"),
        ("t_drive", {"1", "2"}, 60, "2008-02-04T01:00:00"),
        ("porto", {"20000580", "20000581"}, 90, "2008-02-04T03:00:00"),
        ("cabspotting", {"abboip", "acdiyy"}, 60, "2008-02-04T01:00:00"),
        ("gowalla", {"0", "1"}, 40, "2008-02-04T01:00:00"),
        ("yjmob", {"0", "1"}, 30, "1970-01-01T07:00:00"),
    ],
)
def test_people_times_and_places_are_those_of_the_files(
    name: str, names: set[str], fixes: int, first: str, tmp_path: Path
) -> None:
    cases = read(name, tmp_path)
    assert {case.person for case in cases} == names
    assert {len(case.trace) for case in cases} <= {fixes, fixes - 1, fixes - 2}
    assert np.datetime64(min(int(case.trace.times[0]) for case in cases), "ns") == np.datetime64(
        first, "ns"
    )
    assert len({case.name for case in cases}) == len(cases)
    latitude, longitude = cases[0].trace.positions[0]
    assert (latitude, longitude) == pytest.approx(
        {"yjmob": (35.22, 136.54)}.get(name, (39.9, cases[0].trace.positions[0, 1])), abs=0.01
    )
    assert all({"start", "end"} <= {part.label for part in case.secrets} for case in cases)


def test_a_stay_between_the_ends_is_hidden(tmp_path: Path) -> None:
    for case in read("cabspotting", tmp_path):
        (stay,) = (part for part in case.secrets if part.label == "stay")
        begin, end = stay.seconds(case.trace)
        assert (begin, end) == pytest.approx((1200.0, 2340.0), abs=180.0)


def test_cells_of_yjmob_are_five_hundred_metres(tmp_path: Path) -> None:
    case = read("yjmob", tmp_path)[0]
    steps = np.hypot(*np.diff(case.metres, axis=0).T)
    assert steps[steps > 1] == pytest.approx(np.round(steps[steps > 1] / 500) * 500, rel=0.01)


def test_a_trip_of_hours_is_read(tmp_path: Path) -> None:
    """Its line has more characters than a field of CSV usually may have."""
    file = tmp_path / "train.csv"
    samples.porto(file)
    long = "[" + ",".join(f"[-8.6{i % 7:05d}000,41.1{i:05d}00]" for i in range(8000)) + "]"
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f'"7","C","","","77","1372636858","A","False","{long}"\n')
    usual = csv.field_size_limit()
    cases = published.porto(file=str(file))
    assert next(cases).person
    assert csv.field_size_limit() == usual  # what `protect` reads stays bounded meanwhile
    assert "77" in {case.person for case in cases}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_compressed_as_it_is_handed_out(name: str, tmp_path: Path) -> None:
    plain = read(name, tmp_path)
    packed = tmp_path / f"{name}.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    cases = list(getattr(published, name)(file=str(packed)))
    assert [(case.name, case.trace.times.tolist()) for case in cases] == [
        (case.name, case.trace.times.tolist()) for case in plain
    ]


def test_trips_that_lack_places_and_second_copies_are_left_out(tmp_path: Path) -> None:
    """As the authors mark them; their places are not 15 s apart."""
    cases = read("porto", tmp_path)
    assert len(cases) == 3
    assert not any(case.person.startswith("3") for case in cases)


def test_a_cell_that_is_masked_is_no_place(tmp_path: Path) -> None:
    cases = read("yjmob", tmp_path)
    assert {case.name for case in cases} == {f"{p} day {d}" for p in (0, 1) for d in (0, 1)}
    assert all(case.trace.seconds[-1] == 29 * 1800 for case in cases)


def test_short_recordings_are_left_out_where_that_is_stated(tmp_path: Path) -> None:
    samples.geolife(tmp_path)
    for minutes, count in ((40, 2), (50, 0)):
        cases = list(published.geolife(folder=str(tmp_path), minutes=minutes))
        assert len(cases) == count


def test_a_taxi_of_no_way_is_left_out(tmp_path: Path) -> None:
    assert "20000589" not in {case.person for case in read("porto", tmp_path)}


def test_so_many_traces_and_fixes_are_used(tmp_path: Path) -> None:
    cases = read("porto", tmp_path, traces=2, fixes=40)
    assert len(cases) == 2
    assert all(len(case.trace) <= 40 for case in cases)


def test_a_folder_is_read_as_protect_reads_it(tmp_path: Path) -> None:
    for person in ("ann", "bob"):
        (tmp_path / person).mkdir()
        written(tmp_path / person / "a.gpx", ride(900, 5.0, still=(240, 400)))
    (tmp_path / "ann" / "broken.gpx").write_text("nothing", encoding="utf-8")
    cases = list(published.recordings(folder=str(tmp_path)))
    assert [case.person for case in cases] == ["ann", "bob"]
    assert all(len(case.trace) <= published.MOST_FIXES for case in cases)


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_what_is_no_such_data_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    place = tmp_path / "x.txt"
    place.write_text("a,b\nc,d\n", encoding="utf-8")
    (tmp_path / "new_x.txt").write_text("a b\n", encoding="utf-8")
    given = {"folder": str(tmp_path)} if name in FOLDERS else {"file": str(place)}
    with pytest.raises(UnreadableInput, match="must") as error:
        list(getattr(published, name)(**given))
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    for name in FILES:
        with pytest.raises(UnreadableInput):
            list(getattr(published, name)(file=str(tmp_path / "none")))
    with pytest.raises(UnreadableInput, match="must be a folder"):
        list(published.recordings(folder=str(tmp_path / "none")))


def test_made_up_people_have_a_home_and_a_place() -> None:
    cases = list(people(people=3, days=2))
    assert len({case.person for case in cases}) == 3
    for case in cases:
        assert [part.label for part in case.secrets] == ["home", "stay", "home"]
        assert case.truths[0] == pytest.approx(case.truths[2], abs=5.0)
    first, second = cases[:2]
    assert first.truths[1] == pytest.approx(second.truths[1], abs=5.0)
    assert np.abs(first.metres - second.metres).max() > 100.0


def test_recordings_of_the_prior_have_its_speed() -> None:
    for speed in (1.0, 3.0):
        steps = [
            np.diff(case.metres[:40], axis=0) / 30.0 for case in from_prior(traces=40, speed=speed)
        ]
        # The variance of a mean over half of a time constant is 0.85. 1,600 steps, of which few
        # are independent.
        assert np.std(steps) == pytest.approx(0.92 * speed, rel=0.1)


def test_made_up_data_are_the_same_again() -> None:
    for make in (from_prior, people, on_streets):
        first, again = (next(iter(make())).trace.positions for _ in range(2))
        assert np.array_equal(first, again)


def test_numbers_out_of_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="traces must be"):
        list(from_prior(traces=0))
    with pytest.raises(InvalidValue, match="fixes must be"):
        read("porto", tmp_path, fixes=5)
