"""The table of designs says what it found, and what it did not."""

import resource

import pytest
from click.testing import CliRunner

from benchmarks import design_table
from benchmarks.design_table import ROWS, line, main, run, slope, ten


@pytest.mark.slow
def test_a_row_of_both() -> None:
    measured = run(0, "ours", 60.0, 6.0)
    assert measured["gap"] < 1e-6
    assert 0 < measured["first"] < 60
    assert 0 < measured["peak"] < 6 * 2**30
    other = {**measured, "noise": measured["noise"] / 2}
    cells = line(ROWS[0], measured, other).split(" | ")
    assert cells[0] == "| one secret"
    assert cells[-2] == "+1e+00"
    assert cells[-1] == " |"


@pytest.mark.parametrize(("again", "told"), [(0.01, "met"), (0.03, "missed"), (None, "missed")])
def test_an_aim_is_met_or_missed(again: float | None, told: str) -> None:
    row = design_table.Row("x", 3, design_table.values(1), aim=0.02)
    ours = {"noise": 1.0, "gap": None, "first": 5.0, "again": again, "peak": 1}
    assert line(row, ours, {"why": "too large"}).endswith(f"| 20.0 ms: {told} |")
    assert line(row, {"why": "over 1 s"}, {"why": "too large"}).endswith("| 20.0 ms: missed |")


def test_a_limit_that_is_reached_is_a_row() -> None:
    assert run(0, "ours", 0.01, 6.0) == {"why": "over 0.01 s"}
    assert "| over 0.01 s |" in line(ROWS[0], {"why": "over 0.01 s"}, {"why": "too large"})


def test_what_is_too_large_for_a_conic_solver_is_not_asked() -> None:
    number = next(i for i, row in enumerate(ROWS) if row.points == 1_000)
    assert run(number, "conic", 60.0, 6.0) == {"why": "too large"}


def test_a_refusal_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(design_table, "ROWS", (design_table.Row("x", 3, design_table.values(9)),))
    assert design_table.child(0, "ours", 6.0)["why"].startswith("InvalidValue: ")


def test_slopes_and_adversaries() -> None:
    assert slope([(10, 1.0), (1_000, 100.0)]) == "1.00 from n = 10 to 1,000"
    assert slope([(10, 1.0)]).startswith("not known")
    assert len({adversary.name for adversary in ten([(0.0, 1.0)])}) == 10


def test_the_table_has_a_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design_table, "run", lambda *_: {"why": "not tried"})
    done = CliRunner().invoke(main, [])
    assert done.exit_code == 0, done.output
    assert done.output.count("\n| ") == len(ROWS)
    assert done.output.count("Slope of time over n") == 3
