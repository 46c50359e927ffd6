"""`trailveil fit`: the file it writes, what it says, and what it refuses."""

import json
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.studies.datasets.geolife_files import plt_text, walked, write_user
from tests.studies.datasets.test_sml2010 import table_text
from trailveil.cli.waiting import watched
from trailveil.gp.kernels import Constant, IntegratedOU, Matern32, White
from trailveil.studies.datasets.day import simulated_day
from trailveil.traces.formats import write
from trailveil.traces.loading import read_prior

Run = Callable[..., tuple[int, str, str]]

GPX = """<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
{}
</trkseg></trk></gpx>"""


@pytest.fixture
def run(program: Run) -> Run:
    return partial(program, "fit")


@pytest.fixture
def rides(tmp_path: Path) -> list[str]:
    """Two recordings of 600 s, one as GPX, one as PLT; and a table and a text that are none."""
    points = [
        f'<trkpt lat="{latitude:.6f}" lon="{longitude:.6f}"><time>'
        f"2024-05-01T06:{int(after) // 60:02}:{int(after) % 60:02}Z</time></trkpt>"
        for after, (latitude, longitude) in zip(*walked(120, seed=1), strict=True)
    ]
    (tmp_path / "a.gpx").write_text(GPX.format("\n".join(points)))
    (tmp_path / "b.plt").write_text(plt_text(*walked(121, seed=2)))
    (tmp_path / "notes.gpx").write_text("not a recording, at 45.123456")
    return ["a.gpx", "b.plt"]


def test_a_prior_is_written_with_what_it_was_fitted_on(run: Run, rides: list[str]) -> None:
    status, out, err = run(*rides, "-o", "mine.json", "--starts", "1")
    assert (status, err) == (0, "")
    assert "Fitted on 2 recordings: 2 windows, 200 fixes, 0.3 h" in out
    assert "std" in out
    assert "m/s" in out
    spec = read_prior("mine.json")
    movement, noise, level = spec.kernel.terms()
    assert isinstance(movement, IntegratedOU)
    assert isinstance(noise, White)
    assert 0.3 < movement.std < 5.0
    assert level == Constant(100_000.0)
    assert spec.fitted_on is not None
    assert (spec.fitted_on.files, spec.fitted_on.fixes, spec.fitted_on.seconds) == (2, 200, 1195.0)
    text = Path("mine.json").read_text()
    for secret in ("2024-", "2009-", "-45.", "-125", "a.gpx", "b.plt"):
        assert secret not in text
        assert secret not in out


def test_json_is_one_object_with_the_same_numbers(run: Run, rides: list[str]) -> None:
    options = ("--kernel", "matern32", "--how", "pooled", "--window", "300", "--starts", "1")
    status, out, err = run(*rides, "-o", "mine.json", *options, "--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    written = json.loads(Path("mine.json").read_text())
    assert {key: report[key] for key in written} == written
    assert report["output"] == "mine.json"
    assert report["left_out"] == {"short": 0, "fast": 0}
    assert written["fitted_on"]["windows"] == 4
    assert isinstance(read_prior("mine.json").kernel.terms()[0], Matern32)


def test_nothing_is_replaced_without_being_told(run: Run, rides: list[str]) -> None:
    Path("mine.json").write_text("older")
    status, out, err = run(*rides, "-o", "mine.json", "--starts", "1")
    assert (status, out) == (1, "")
    assert "must not exist yet" in err
    assert Path("mine.json").read_text() == "older"
    assert run(*rides, "-o", "mine.json", "--overwrite", "--starts", "1")[0] == 0
    assert read_prior("mine.json").unit == "metres"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.gpx"], "absent.gpx"),
        (["notes.gpx"], "notes.gpx"),
        (["a.gpx", "notes.gpx"], "notes.gpx"),
        (["a.gpx", "--window", "5000"], "2500 to 5000 s"),
        (["."], "got a directory"),
        ([".", "--labels", "walk"], "must hold USER/Trajectory"),
        (["a.gpx", "--labels", "walk"], "must be a folder"),
        (["b.plt", "-o", "b.plt", "--overwrite"], "a file of its own"),
        (["b.plt", "-o", "no/mine.json"], "in a folder that exists"),
    ],
)
def test_bad_input_is_one_clear_line(
    run: Run, rides: list[str], arguments: list[str], message: str
) -> None:
    del rides
    before = sorted(Path().iterdir())
    output = [] if "-o" in arguments else ["-o", "mine.json"]
    status, out, err = run(*arguments, *output)
    assert (status, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert "45.1" not in err
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.gpx"],
        [],
        ["a.gpx", "-o", "x.json", "--kernel", "cubic"],
        ["a.gpx", "-o", "x.json", "--window", "0"],
        ["a.gpx", "b.plt", "-o", "x.json", "--labels", "walk"],
        ["a.gpx", "-o", "x.json", "--recipe", "geolife"],
        ["a.gpx", "b.plt", "--recipe", "geolife"],
        ["a.gpx", "-o", "x.json", "--as-published"],
    ],
)
def test_wrong_usage_is_told_apart(run: Run, rides: list[str], arguments: list[str]) -> None:
    del rides
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert "Usage:" in err
    assert not Path("x.json").exists()


def test_what_geolife_users_labelled(run: Run, tmp_path: Path) -> None:
    label = "2009/05/04 06:00:00\t2009/05/04 06:09:00\t{}\n"
    write_user(tmp_path / "g" / "000", [1, 2], count=130, labels=label.format("walk"))
    write_user(tmp_path / "g" / "001", [3], count=130, labels=label.format("bus"))
    status, out, err = run("g", "--labels", "walk", "-o", "walk.json", "--starts", "1", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["fitted_on"]["files"] == 2
    assert json.loads(out)["fitted_on"]["seconds"] == 1080.0
    status, _, err = run("g", "--labels", "bike", "-o", "bike.json")
    assert status == 1
    assert "labelled bike, got none" in err


def test_the_recipes_print_length_scales(run: Run, tmp_path: Path) -> None:
    write_user(tmp_path / "g" / "000", range(10), count=26, period=10.0)
    (tmp_path / "table.txt").write_text(table_text())
    status, out, err = run("g", "--recipe", "geolife", "--as-published")
    assert (status, err) == (0, "")
    assert "users 1, files 10" in out
    assert "Effective length scale, x: 10 fits, quartiles" in out
    status, out, err = run("g", "--recipe", "geolife", "--starts", "1", "--json")
    report = json.loads(out)
    assert (status, err, list(report["scales"])) == (0, "", ["east", "north"])
    east = report["scales"]["east"]
    np.testing.assert_allclose(np.percentile(east["values"], [25, 50, 75]), east["quartiles"])
    status, out, err = run("table.txt", "--recipe", "sml2010", "--as-published", "--json")
    assert (status, err) == (0, "")
    assert len(json.loads(out)["scales"]["temperature"]["values"]) == 10
    status, _, err = run("g/000/000.plt", "--recipe", "sml2010")
    assert status == 1
    assert "table of SML2010" in err


def test_the_examples_of_the_page_run(run: Run) -> None:
    with Path("ride.gpx").open("wb") as out:
        write(simulated_day(), out, ".gpx")
    page = (Path(__file__).parents[2] / "docs" / "commands" / "fit.md").read_text(encoding="utf-8")
    examples = [line[2:] for line in page.splitlines() if line.startswith("$ ")]
    assert examples
    for example in examples:
        status, _, err = run(*shlex.split(example)[2:])
        assert (status, err) == (0, ""), example


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_a_bar_appears_on_a_terminal_once_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], patience: float
) -> None:
    monkeypatch.setattr("trailveil.cli.waiting._PATIENCE", patience)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(watched(iter(range(5)), 5, "Fitting")) == list(range(5))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("Fitting" in captured.err and "100%" in captured.err) == (patience == 0.0)


def test_help_has_an_example(run: Run) -> None:
    status, out, _ = run("--help")
    assert status == 0
    assert "Example: trailveil fit" in out
