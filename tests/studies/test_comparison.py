"""The comparison of ways to release: all rows, and the orderings that are known beforehand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import kstest

from benchmarks import comparison
from benchmarks._attackers import NOTHING
from benchmarks._laws import planar_laplace
from benchmarks._rides import MOST_FIXES, real
from benchmarks.comparison import (
    COLUMNS,
    PROMISE,
    TOGETHER,
    Row,
    cell,
    dots,
    main,
    population,
    table,
)
from tests.rides import ride, written

NAMES = [
    PROMISE,
    "ours, cut",
    "ours, noise",
    "ours, both",
    "ours, noise against a stranger",
    "SDP_A, a fix of each",
    "Multiple Secrets",
    "uniform, same distortion",
    "uniform, epsilon 1",
    "planar Laplace, usual",
    "zone of 200 m",
    "zone of 400 m",
    "planar Laplace, same distortion",
    "cut",
    "cut, 5 min around",
    "nothing released",
]


# About 5 s on a calm machine: all designs and attacks, once.
@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    """Few recordings of few fixes."""
    few, others = population(30, minutes=(10.0, 10.0, 10.0, 5.0), step=60.0)
    return {row.law: row for row in comparison.rows(few, 1, 0, others)}


@pytest.mark.slow
def test_every_way_is_tried_by_every_attack(rows: dict[str, Row]) -> None:
    assert list(rows) == NAMES
    for name in NAMES[1:]:
        row = rows[name]
        assert set(row.left) == set(COLUMNS)
        assert np.isfinite(
            [*row.cost, *(value for metres in row.left.values() for value in metres)]
        ).all()
        moved, left_out = row.cost[0] > 0, row.cost[2] > 0
        assert moved != left_out or (name == "ours, both" and moved)


@pytest.mark.slow
def test_our_default_leaves_about_what_it_promises(rows: dict[str, Row]) -> None:
    promise, ours = rows[PROMISE], rows["ours, noise"]
    for attack, values in promise.left.items():
        # Forty recordings: a circle is known to a quarter.
        assert np.all(np.array(ours.left[attack]) > 0.75 * np.array(values)), attack


@pytest.mark.slow
def test_independent_noise_averages_out(rows: dict[str, Row]) -> None:
    ours = rows["ours, noise"]
    for name in ("uniform, same distortion", "planar Laplace, same distortion"):
        row = rows[name]
        assert row.cost[0] == pytest.approx(ours.cost[0])
        for attack in ("average", "still", "Kalman"):
            assert row.least(attack) < ours.least(attack) / 2, (name, attack)


@pytest.mark.slow
def test_noise_made_for_one_adversary_is_undone_by_another(rows: dict[str, Row]) -> None:
    ours, plain = rows["ours, noise"], rows["ours, noise against a stranger"]
    assert plain.cost[0] < ours.cost[0]
    assert plain.least("prior") > ours.least("prior") / 2
    for name in NAMES[5:7]:
        assert rows[name].least("path") < ours.least("path") / 10, name


@pytest.mark.slow
def test_a_zone_tells_where_its_middle_is(rows: dict[str, Row]) -> None:
    for metres in (200.0, 400.0):
        row = rows[f"zone of {metres:.0f} m"]
        assert row.cost[:2] == (0.0, 0.0)
        assert row.least("edges") < 1.5 * metres
        assert row.least(TOGETHER) < row.least("edges") / 2


@pytest.mark.slow
def test_a_cut_tells_by_its_edges(rows: dict[str, Row]) -> None:
    alone, wide = rows["cut"], rows["cut, 5 min around"]
    for row in (alone, wide):
        assert row.least("average") == NOTHING
    assert alone.least("edges") < rows[PROMISE].least("edges") / 1.5
    assert alone.least("edges") < wide.least("edges") / 3
    assert wide.cost[2] > alone.cost[2]


@pytest.mark.slow
def test_who_knows_something_needs_no_release(rows: dict[str, Row]) -> None:
    nothing, ours = rows["nothing released"], rows["ours, noise"]
    for attack in COLUMNS:
        if attack in ("place", "path"):
            assert ours.least(attack) < 1.2 * nothing.least(attack) < NOTHING
        else:
            assert nothing.least(attack) == NOTHING


@pytest.mark.slow
def test_the_table_and_the_files(
    rows: dict[str, Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "rows", lambda *_, **__: iter(rows.values()))
    monkeypatch.setattr(comparison, "RECORDINGS", 2)
    done = CliRunner().invoke(main, ["-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in lines[2:]] == NAMES
    # Its name, three costs, each attack, and the one with a map.
    assert {line.count("|") for line in lines} == {4 + len(COLUMNS) + 1 + 1}
    assert (tmp_path / "comparison.svg").read_bytes().startswith(b"<?xml")
    written_rows = (tmp_path / "comparison.csv").read_text(encoding="utf-8").splitlines()
    values = [number for row in rows.values() for metres in row.left.values() for number in metres]
    assert len(written_rows) == 1 + len(values)


@pytest.mark.slow
def test_several_rides_are_a_median_and_a_range(rows: dict[str, Row]) -> None:
    row = rows["zone of 200 m"]
    twice = replace(row, left=dict.fromkeys(row.left, (2e3, 3e3)))
    assert "| 2,000 |" in list(table([[twice], [twice]]))[2].replace("**", "")
    assert cell(np.array([3.14159])) == "3.1"
    assert cell(np.array([10.0, 20.0, 3_000.0])) == "20 (10 to 3,000)"
    assert cell(np.array([1.0, NOTHING, NOTHING])) == "none (1.0 to none)"
    assert not dots([[replace(row, left={"average": (NOTHING, NOTHING)})]])[0].left


def test_planar_laplace_is_as_its_density_has_it() -> None:
    draws = planar_laplace((20_000,), 50.0, np.random.default_rng(3))
    distances = np.hypot(*draws.T) / 50.0
    # The integral of r exp(-r): Andres and others (2013), section 4.1.
    assert kstest(distances, lambda r: 1 - (1 + r) * np.exp(-r)).pvalue > 0.01
    angles = np.arctan2(draws[:, 1], draws[:, 0])
    assert kstest(angles, "uniform", (-np.pi, 2 * np.pi)).pvalue > 0.01


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two recordings of one person, and something else."""
    trace = ride(900, 5.0, still=(240, 400))
    written(tmp_path / "a.gpx", trace)
    written(tmp_path / "b.gpx", trace)
    (tmp_path / "c.gpx").write_text("nothing", encoding="utf-8")
    return tmp_path


def test_real_recordings_are_one_a_folder_and_thinned(folder: Path) -> None:
    (trace,) = real(folder, 5)
    assert 250 <= trace.times.size <= MOST_FIXES
    assert len(trace.recorded) == 1
    begin, end = trace.spans[0]
    assert (begin, end) == pytest.approx((1200.0, 2000.0), abs=60.0)
    assert np.isin([begin, end], trace.times).all()
    assert np.ptp(trace.recorded[0][trace.inside(0)], axis=0).max() < 100.0
    assert trace.spans[1][1] == trace.times[-1]
