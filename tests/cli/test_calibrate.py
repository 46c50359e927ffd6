"""`trailveil calibrate`: what it prints, draws and refuses."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import run
from tests.studies.datasets.geolife_files import plt_text, walked
from trailveil.errors import TrailveilError
from trailveil.privacy.priors import BUILT_IN, to_json

QUICK = ("--kernel", "none", "--gaps", "0,60")


@pytest.fixture
def rides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two recordings, and what is none."""
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2):
        Path(f"{seed}.plt").write_text(plt_text(*walked(130, seed=seed)))
    Path("notes.gpx").write_text("not a recording, at 45.123456")
    Path("short.plt").write_text(plt_text(*walked(3, seed=3)))
    newer = json.loads(to_json(BUILT_IN["walk"])) | {"version": 2}
    Path("newer.json").write_text(json.dumps(newer))
    Path("mine.json").write_text(to_json(BUILT_IN["walk"]))
    return ["1.plt", "2.plt"]


def test_a_table_for_each_prior(rides: list[str]) -> None:
    result = run("calibrate", *rides, *QUICK, "--prior", "default", "--prior", "mine.json")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("2 recordings, 2 windows (0 without a fix to predict), 2 recordings")
    assert "Warning: of 2 recordings" in result.stdout
    assert [line for line in lines if line in ("default", "mine.json")] == ["default", "mine.json"]
    assert sum(line.lstrip().startswith(("0 ", "60 ")) for line in lines) == 4
    for secret in ("2009-", "45.", "-125"):
        assert secret not in result.stdout


def test_json_is_one_object(rides: list[str]) -> None:
    result = run("calibrate", *rides, *QUICK, "--json")
    report = json.loads(result.stdout)
    assert report.keys() == {
        "recordings",
        "windows",
        "windows_without_prediction",
        "windows_too_wide",
        "groups",
        "grouped_by",
        "paces",
        "far",
        "curve_levels",
        "judged",
        "twice",
        "unreadable",
        "plot",
    }
    assert [prior["name"] for prior in report["judged"]] == list(BUILT_IN)
    for judged in report["judged"]:
        assert judged.keys() == {"name", "fitted", "terms", "cells"}
        assert {cell["gap"] for cell in judged["cells"]} == {0, 60}
        assert judged["cells"][0]["pace"] == "all"
        for cell in judged["cells"]:
            assert cell["inside"].keys() == {"0.5", "0.68", "0.95"}
            shares = [cell["inside"][level]["share"] for level in ("0.5", "0.68", "0.95")]
            assert shares == sorted(shares)
            assert len(cell["curve"]) == len(report["curve_levels"])
            assert cell["rms"] >= 0 < cell["promised"]
        paces = [cell for cell in judged["cells"] if cell["gap"] == 60]
        assert sum(cell["predictions"] for cell in paces[1:]) == paces[0]["predictions"]


def test_a_kernel_fitted_on_the_other_recording(rides: list[str]) -> None:
    result = run("calibrate", *rides, "--prior", "default", "--kernel", "integrated-ou", "--json")
    stated, fitted = json.loads(result.stdout)["judged"]
    assert (stated["fitted"], fitted["fitted"]) == (False, True)
    assert [len(stated["terms"]), len(fitted["terms"])] == [1, 2]
    assert fitted["terms"][0] != fitted["terms"][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["held.png", "held.svg"])
def test_the_picture_is_made(rides: list[str], name: str) -> None:
    result = run("calibrate", *rides, *QUICK, "--prior", "default", "--plot", name)
    assert result.exit_code == 0
    assert f"Picture: {name}" in result.stdout
    content = Path(name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    again = run("calibrate", *rides, *QUICK, "--plot", name)
    assert isinstance(again.exception, TrailveilError)
    assert "must not exist yet" in str(again.exception)
    assert Path(name).read_bytes() == content


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["1.plt", "absent.gpx"], "absent.gpx"),
        (["1.plt", "notes.gpx"], "notes.gpx"),
        (["notes.gpx", "--skip-unreadable"], "notes.gpx"),
        (["."], "got a directory"),
        (["1.plt", "--prior", "newer.json"], "version 1, got another: update trailveil"),
        (["1.plt", "--prior", "notes.gpx"], "must be JSON"),
        (["1.plt", "--prior", "nobody"], "one of default, walk, bike, drive or a file"),
        (["short.plt"], "give longer recordings"),
        (["1.plt", "--gaps", "3600"], "give longer recordings"),
        (["1.plt", "--kernel", "rbf"], "--kernel none"),
        ([".", "--labels", "walk"], "must hold USER/Trajectory"),
        (["1.plt", "--plot", "no/held.png"], "in a folder that exists"),
    ],
)
def test_bad_input_is_one_clear_line(rides: list[str], arguments: list[str], message: str) -> None:
    del rides
    before = sorted(Path().iterdir())
    kernel = [] if "--kernel" in arguments else ["--kernel", "none"]
    result = run("calibrate", *arguments, *kernel)
    assert isinstance(result.exception, TrailveilError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert "45.1" not in str(result.exception)
    assert result.stdout == ""
    assert sorted(Path().iterdir()) == before


def test_each_file_that_cannot_be_read_is_a_line(rides: list[str]) -> None:
    result = run("calibrate", "notes.gpx", "absent.gpx", *rides, *QUICK)
    assert isinstance(result.exception, TrailveilError)
    assert result.stderr.count("\n") == 1
    assert "notes.gpx" in result.stderr
    assert "absent.gpx" in str(result.exception)
    skipped = run("calibrate", "notes.gpx", "absent.gpx", *rides, *QUICK, "--skip-unreadable")
    assert skipped.exit_code == 0
    assert skipped.stderr.count("left out: ") == 2


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["1.plt", "--gaps", "a"],
        ["1.plt", "--gaps", "-5"],
        ["1.plt", "--gaps", "nan"],
        ["1.plt", "--window", "0"],
        ["1.plt", "--kernel", "cubic"],
        ["1.plt", "--kernel", "none", "--kernel", "rbf"],
        ["1.plt", "--plot", "held.pdf"],
        ["1.plt", "2.plt", "--labels", "walk"],
    ],
)
def test_wrong_usage_is_told_apart(rides: list[str], arguments: list[str]) -> None:
    del rides
    result = run("calibrate", *arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr
