"""`trailveil reproduce`: what it writes and says, going on after a stop, and what it refuses."""

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from trailveil.studies.experiments import figure2

Run = Callable[..., tuple[int, str, str]]
FAST = ("figure2", "--panel", "c", "--scales", "2", "--published", "--csv-only")

# As started from a terminal, even where whoever runs the tests ignores interrupts.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from trailveil.cli import main
main()
"""
# The same, but it computes five points and no more.
HELD = """
import sys
from trailveil.studies.experiments import figure2
compute, left = figure2.compute, 5
def held(point):
    global left
    left -= 1
    if left < 0:
        sys.stdin.read()
    return compute(point)
figure2.compute = held
"""


@pytest.fixture
def run(program: Run) -> Run:
    return partial(program, "reproduce")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def is_picture(path: Path) -> bool:
    if path.suffix == ".png":
        return path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    return ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_panel_is_a_table_and_two_pictures(run: Run, tmp_path: Path) -> None:
    status, out, err = run("figure2", "--panel", "g", "--scales", "3", "--out", "made")
    assert (status, err) == (0, "")
    assert out.startswith("figure2: 18 points computed, 0 kept from before, ")
    assert "g) exact, l = 1.14: sdp 0.564, optimum 0.83, uniform 0.321" in out
    names = {"figure2-g.csv", "figure2-g.png", "figure2-g.svg", "figure2-bands.csv"}
    assert names | {"figure2.run.jsonl"} == set(contents(tmp_path / "made"))
    assert is_picture(tmp_path / "made" / "figure2-g.png")
    assert is_picture(tmp_path / "made" / "figure2-g.svg")
    table = rows(tmp_path / "made" / "figure2-g.csv")
    assert [row["computed"] for row in table] == ["as published"] * 3 + ["exact"] * 3
    assert [float(row["length_scale"]) for row in table[:3]] == [0.5, 1.141328865, 1.5]
    assert float(table[0]["sdp"]) == pytest.approx(0.7613113, rel=1e-5)
    bands = rows(tmp_path / "made" / "figure2-bands.csv")
    assert bands == [
        {"kernel": "periodic", "source": "SML2010", "low": "1.04", "median": "1.097"}
        | {"high": "1.145"}
    ]


def test_json_is_one_object_and_the_second_run_computes_nothing(run: Run) -> None:
    first: dict[str, Any] = json.loads(run(*FAST, "--json")[1])
    assert first["points"] == first["computed"] == 6
    assert first["files"] == ["figure2-c.csv", "figure2-bands.csv"]
    assert first["out"] == "reproduced"
    again: dict[str, Any] = json.loads(run(*FAST, "--json")[1])
    assert (again["computed"], again["kept"]) == (0, 6)
    assert again["median"] == first["median"]
    more: dict[str, Any] = json.loads(run(*FAST, "--scales", "3", "--json")[1])
    assert (more["computed"], more["kept"]) == (3, 6)


def test_all_panels_have_two_sheets(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure2, "compute", lambda _: {"interval": 0.5, "noise_trace": 1.0})
    status, out, _ = run("figure2", "--scales", "2")
    assert status == 0
    leaks = contents(tmp_path / "reproduced")
    for letter in "abcdefgh":
        assert {f"figure2-{letter}.{end}" for end in ("csv", "png", "svg")} <= set(leaks)
    for sheet in ("figure2-published", "figure2-exact"):
        for ending in ("png", "svg"):
            assert is_picture(tmp_path / "reproduced" / f"{sheet}.{ending}")
            assert f"{sheet}.{ending}" in out


ASK = ["figure2", "--panel", "a", "--panel", "c", "--scales", "3", "--csv-only", "--json"]
ASK += ["--published"]  # what is exact is gone on with alike, and takes longer


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_ends_with_the_same_files(tmp_path: Path) -> None:
    whole = subprocess.run([*line(PROGRAM), "whole"], cwd=tmp_path, check=True, capture_output=True)
    for stop in (signal.SIGKILL, signal.SIGINT):
        (folder := tmp_path / stop.name).mkdir()
        stopped_and_resumed(folder, stop, json.loads(whole.stdout)["computed"])
        assert contents(tmp_path / "whole") == contents(folder / "stopped")


def line(program: str) -> list[str]:
    return [sys.executable, "-c", program, "reproduce", *ASK, "--out"]


def stopped_and_resumed(tmp_path: Path, stop: int, count: int) -> None:
    record = tmp_path / "stopped" / "figure2.run.jsonl"
    with subprocess.Popen(
        [*line(HELD + PROGRAM), "stopped"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        while not (record.exists() and record.read_bytes().count(b"\n") == 5):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(stop)
        said = process.communicate()[1].decode()
    assert process.returncode == (130 if stop == signal.SIGINT else -signal.SIGKILL)
    if stop == signal.SIGINT:
        assert "stopped: what was computed is kept in stopped" in said
    assert list(contents(tmp_path / "stopped")) == ["figure2.run.jsonl"]
    again = subprocess.run(
        [*line(PROGRAM), "stopped"], cwd=tmp_path, check=True, capture_output=True
    )
    report = json.loads(again.stdout)
    assert (report["kept"], report["computed"]) == (5, count - 5)


def test_a_foreign_file_is_refused_before_anything_is_computed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reproduced").mkdir()
    (tmp_path / "reproduced" / "figure2-c.csv").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(figure2, "compute", lambda _: pytest.fail("computed"))
        status, out, err = run(*FAST)
    assert (status, out) == (1, "")
    assert "another 'figure2-c.csv'; choose another folder with --out, or --overwrite" in err
    assert (tmp_path / "reproduced" / "figure2-c.csv").read_text() == "mine"
    assert run(*FAST, "--overwrite")[0] == 0
    assert (tmp_path / "reproduced" / "figure2-c.csv").read_text().startswith("computed,")


def test_without_matplotlib_there_are_tables(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for figure in ("figure2", "covariances", "nyc"):
        status, out, err = run(figure)
        assert (status, out) == (1, "")
        assert "pip install '.[plots]'), or --csv-only" in err
    assert not (tmp_path / "reproduced").exists()
    assert run(*FAST)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("figure2", "--panel", "z"), 2, "'z' is not one of"),
        (("figure2", "--scales", "1"), 2, "--scales"),
        (("figure3",), 2, "No such command"),
        ((*FAST, "--out", "file"), 1, "--out must be a folder"),
        ((*FAST, "--out", "file/below"), 1, "--out must be a folder"),
    ],
)
def test_what_is_refused(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, says: str
) -> None:
    (tmp_path / "file").write_text("x")
    exit_status, out, err = run(*arguments)
    assert (exit_status, out) == (status, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("figure", ["covariances", "nyc"])
def test_the_other_figures_are_written_whole(run: Run, tmp_path: Path, figure: str) -> None:
    status, out, _ = run(figure, "--json")
    assert status == 0
    names = json.loads(out)["files"]
    assert set(names) | {f"{figure}.run.jsonl"} == set(contents(tmp_path / "reproduced"))
    for name in names:
        path = tmp_path / "reproduced" / name
        assert rows(path) if path.suffix == ".csv" else is_picture(path)
    before = contents(tmp_path / "reproduced")
    # That equal data are equal pictures is a test of plots, where they are smaller.
    assert run(figure, *(["--csv-only"] if figure == "covariances" else []))[0] == 0
    assert contents(tmp_path / "reproduced") == before
