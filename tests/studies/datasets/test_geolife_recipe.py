"""The paper's recipe for GeoLife, against another telling of it, and on the files that are here."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from tests.studies.datasets.geolife_files import Floats, plt_text, walked, write_user
from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.studies.datasets.geolife_recipe import apfs_order, geolife_scales

EARTH = 6.371e6


def retold(text: str) -> list[float]:
    """Effective length scales in the paper's X and Y of one file, step by step."""
    rows = [line.split(",") for line in text.splitlines()[6:]]
    days = [float(row[4]) for row in rows]
    table = []
    for row, day in zip(rows, days, strict=True):
        north, east = np.radians(float(row[0])), np.radians(float(row[1]))
        seconds = (day - days[0]) * 86_400
        if seconds <= 320:
            table.append(
                (
                    seconds,
                    EARTH * np.cos(north) * np.cos(east),
                    EARTH * np.cos(north) * np.sin(east),
                )
            )
    if len(table) > 50:
        step = len(table) // 50
        table = [table[step * number - 1] for number in range(1, 51)]
    times, *axes = np.array(table).T
    scales = []
    for axis in axes:
        values = (axis - axis.mean()) / axis.std()

        def cost(length: float, values: Floats = values) -> float:
            gaps = times[:, None] - times[None, :]
            cov = np.exp(-(gaps**2) / (2 * length**2)) + 0.0025 * np.eye(len(times))
            return -float(multivariate_normal(np.zeros(len(times)), cov).logpdf(values))

        grid = np.geomspace(1, 40, 80)
        best = int(np.argmin([cost(length) for length in grid]))
        ends = grid[max(best - 1, 0)], grid[min(best + 1, 79)]
        inner = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": 1e-9})
        scales.append(inner.x / np.median(np.diff(times)))
    return scales


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three users: with three files to use of seven, with one, and with one more and a copy."""
    first = tmp_path / "Data" / "000" / "Trajectory"
    write_user(first, [1, 2, 3])
    seconds, degrees = walked(400, seed=4, period=1.0)
    (first / "003.plt").write_text(plt_text(seconds[:200], degrees[:200]))  # 199 s
    (first / "004.plt").write_text(plt_text(seconds, np.tile(degrees[0], (400, 1))))
    (first / "005.plt").write_text(plt_text(seconds, np.full((400, 2), 95.0)))
    (first / "006.plt").write_text("Geolife trajectory")
    write_user(tmp_path / "Data" / "001" / "Trajectory", [5])
    write_user(tmp_path / "Data" / "002" / "Trajectory", [1, 6], count=130)
    third = tmp_path / "Data" / "002" / "Trajectory"
    (third / "copy.plt").write_bytes((first / "001.plt").read_bytes())
    return tmp_path


def test_each_step_is_the_papers(folder: Path) -> None:
    scales = geolife_scales(folder, projection="paper", fewest=2, workers=1)
    assert scales.counts == {
        "users": 2,
        "files": 11,
        "duplicates": 1,
        "unreadable": 1,
        "short": 1,
        "still": 2,
        "of_few": 1,
        "beyond": 0,
        "unclear": 0,
        "used": 5,
    }
    used = [f"000/Trajectory/00{n}.plt" for n in range(3)]
    used += [f"002/Trajectory/00{n}.plt" for n in range(2)]
    expected = np.array([retold((folder / "Data" / name).read_text()) for name in used])
    np.testing.assert_allclose(scales.first.values, expected[:, 0], rtol=1e-5)
    np.testing.assert_allclose(scales.second.values, expected[:, 1], rtol=1e-5)
    assert scales.first.unfinished == 0


def test_local_metres_are_not_the_papers_coordinates(folder: Path) -> None:
    metres = geolife_scales(folder, fewest=2, workers=1)
    paper = geolife_scales(folder, projection="paper", fewest=2, workers=1)
    assert metres.counts["used"] == paper.counts["used"]
    assert (metres.counts["unreadable"], paper.counts["unreadable"]) == (2, 1)  # 95 degrees north
    # South and north of the equator R cos(lat) cos(lon) is no northing, nor an easting.
    assert np.abs(metres.first.values / paper.first.values - 1).max() > 0.05


@pytest.mark.parametrize(("count", "period"), [(900, 1.0), (60, 7.0)])
def test_long_files_are_cut_and_thinned_by_whole_steps(
    tmp_path: Path, count: int, period: float
) -> None:
    # 321 fixes of the first 320 s: every sixth, from the sixth to the 300th: 299 s, median 6 s.
    # 60 fixes every 7 s: the 46 of the first 320 s.
    write_user(tmp_path / "000", [2, 3], count=count, period=period)
    scales = geolife_scales(tmp_path, projection="paper", fewest=2, workers=1)
    expected = [retold((tmp_path / "000" / f"00{n}.plt").read_text()) for n in (0, 1)]
    np.testing.assert_allclose(scales.first.values, [pair[0] for pair in expected], rtol=1e-5)
    np.testing.assert_allclose(scales.second.values, [pair[1] for pair in expected], rtol=1e-5)
    assert scales.second.at_bound == 0.0


def test_of_many_files_the_first_fifty_count(tmp_path: Path) -> None:
    write_user(tmp_path / "000", range(53), count=26, period=10.0)
    write_user(tmp_path / "001", range(100, 109), count=26, period=10.0)
    scales = geolife_scales(tmp_path, starts=1, workers=1)
    assert (scales.counts["used"], scales.counts["beyond"], scales.counts["of_few"]) == (50, 3, 9)


# In the published values the fits of these files, of three users, stand in this order.
PUBLISHED = (
    ("20111130015030", "20111118101629", "20110830012338"),
    ("20081103025353", "20080927001519", "20080709133136", "20081031085514", "20081102081524"),
    ("20080524124046", "20080524204705", "20080820152500", "20080728150635", "20080814023430"),
)


@pytest.mark.parametrize("names", PUBLISHED)
def test_files_stand_as_in_the_published_values(names: tuple[str, ...]) -> None:
    files = [Path(f"{name}.plt") for name in names]
    assert sorted(files) != files
    assert sorted(files, key=apfs_order) == files


def test_the_papers_selection_counts_a_file_for_each_user_in_its_own_order(folder: Path) -> None:
    distinct = geolife_scales(folder, projection="paper", fewest=2, workers=1)
    paper = geolife_scales(folder, projection="paper", selection="paper", fewest=2, workers=1)
    assert (paper.counts["duplicates"], paper.counts["used"]) == (0, distinct.counts["used"] + 1)
    copied = distinct.first.values[1]  # 001.plt of the first user, stored for the third, too
    # Its checksum puts copy.plt before 000.plt.
    assert np.flatnonzero(paper.first.values == copied).tolist() == [1, 3]


def test_processes_change_nothing(folder: Path) -> None:
    write_user(folder / "Data" / "003" / "Trajectory", range(200, 250), count=26, period=10.0)
    here = geolife_scales(folder, fewest=2, starts=1, workers=1)
    apart = geolife_scales(folder, fewest=2, starts=1, workers=2)
    np.testing.assert_array_equal(here.first.values, apart.first.values)
    np.testing.assert_array_equal(here.second.values, apart.second.values)
    assert here.counts == apart.counts


def test_what_cannot_be_served_is_refused(folder: Path) -> None:
    with pytest.raises(UnreadableInput, match="a user must have 10 files or more"):
        geolife_scales(folder, workers=1)
    with pytest.raises(InvalidValue, match="projection must be metres or paper, got polar"):
        geolife_scales(folder, projection="polar")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidValue, match="selection must be distinct or paper, got all"):
        geolife_scales(folder, selection="all")  # type: ignore[arg-type]  # on purpose


@pytest.mark.slow
def test_the_real_files_run_end_to_end(shared: Path) -> None:
    # The figures of docs/fit.md. The published 3,762 fits a coordinate need the whole data set.
    place = shared / "traces" / "geolife"
    scales = geolife_scales(place, projection="paper", selection="paper", starts=1)
    assert scales.counts == {
        "users": 2,
        "files": 262,
        "duplicates": 0,
        "unreadable": 0,
        "short": 109,
        "still": 0,
        "of_few": 122,
        "beyond": 0,
        "unclear": 0,
        "used": 31,
    }
    np.testing.assert_allclose(scales.first.quartiles, (5.711, 6.873, 8.167), atol=2e-3)
    np.testing.assert_allclose(scales.second.quartiles, (5.575, 7.569, 8.261), atol=2e-3)
    assert (scales.first.at_high, scales.second.at_high) == (12, 13)
    assert scales.first.unfinished == scales.second.unfinished == 0


@pytest.mark.slow
def test_real_files_are_in_the_published_values_where_the_recipe_puts_them(shared: Path) -> None:
    """The published values are by user, and a user's by file, in the order of the recipe."""
    published = np.load(shared / "reference" / "effective_length_scales.npz")
    pairs = np.stack([published["location_x"], published["location_y"]], axis=1)
    place = shared / "traces" / "geolife"
    scales = geolife_scales(place, projection="paper", selection="paper", starts=1, fewest=1)
    places = []
    for pair in np.stack([scales.first.values, scales.second.values], axis=1):
        same = np.flatnonzero(np.abs(pairs / pair - 1).max(axis=1) < 2e-6)
        if same.size == 1 and abs(pair[1] / pair[0] - 1) > 1e-6:  # not at a bound in both
            places.append(int(same[0]))
    # Two files of the first user are stored for another, too, who has 50 that come before them.
    assert places[:2] == places[2:4] == [23, 31]
    assert len(places) == 50
    assert places[3:] == sorted(set(places[3:]))
