"""`trailveil verify` of --everywhere: true releases pass, and what is changed is found."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.commands import refused, run
from tests.cli.test_verify import Report, failed
from tests.rides import ride, written
from trailveil.checks.everywhere import promised
from trailveil.traces.formats import read, write
from trailveil.traces.trace import cut_out

TRACE = ride(240, 20.0, still=(100, 140))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording, and a release of it with both of its reports."""
    path = tmp_path_factory.mktemp("everywhere")
    source = written(path / "ride.gpx", TRACE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", os.fspath(path / "state"))
        reports = ("--private-report", path / "r.PRIVATE.json", "--report", path / "public.json")
        out = ("-o", path / "out.gpx", *reports)
        run("protect", source, "--everywhere", *out, status=0)
    return path


def report_of(folder: Path) -> Report:
    return dict(json.loads((folder / "r.PRIVATE.json").read_text()))


def test_a_true_release_and_what_is_not_checked(folder: Path) -> None:
    said = run("verify", folder / "r.PRIVATE.json", status=0).output
    assert "by other code than that which its noise is designed with" in said
    files = (folder / "ride.gpx", folder / "out.gpx")
    whole = run("verify", folder / "r.PRIVATE.json", *files, status=0).output
    assert "plausible draw" in whole
    assert "FAILED" not in whole
    assert "must be the private one" in refused("verify", folder / "public.json")


def of_noise(share: float) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        for term in report["everywhere"]["noise"]:
            term["std_m"] *= share

    return change


def at(path: tuple[Any, ...], value: Any) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        inner: Any = report
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (at(("everywhere", "left", 0, "epsilon"), 0.5), "plain: epsilon"),
        (at(("everywhere", "left", 1, "circle_68_m"), 9e3), "point: "),
        (at(("everywhere", "left", 2, "circle_68_before_m"), 1.0), "path: "),
        (at(("everywhere", "longest_stay_s"), 1e5), "plain: epsilon"),
        (of_noise(0.98), "plain: epsilon"),
        (at(("worst", "epsilon"), 0.5), "the worst epsilon"),
        (at(("target", "epsilon"), 0.5), "at most what was asked for"),
        (at(("worst", "odds_factor_99"), 1.0), "its odds"),
        (at(("mechanism", "rms_m"), 9e3), "fixes are moved by"),
        (at(("everywhere", "left", 1, "adversary"), "nobody"), "every kind of adversary"),
        (at(("everywhere", "noise"), [{}]), "the report is whole"),
        (at(("everywhere", "noise", 0, "length_scale_s"), -1.0), "the report is whole"),
    ],
)
def test_a_report_that_promises_too_much(
    folder: Path, change: Callable[[Report], None], what: str
) -> None:
    report = report_of(folder)
    change(report)
    wrong = [check.what for check in promised(report) if not check.holds]
    assert any(what in each for each in wrong), wrong


def test_files_that_are_no_such_release(folder: Path, tmp_path: Path) -> None:
    """Not moved, moved by half of the noise, one fix moved besides, or one that is not there.

    The noise of the module's release is one draw: its test fails by chance once in a million.
    """
    report, source = folder / "r.PRIVATE.json", folder / "ride.gpx"
    released = read(folder / "out.gpx")
    positions = released.positions.copy()
    cases = {
        "is a plausible draw": TRACE.positions,
        "plausible draw ": (positions + TRACE.positions) / 2,
        "plausible draw (": positions.copy(),
    }
    cases["plausible draw ("][50] += 0.05
    for what, moved in cases.items():
        other = tmp_path / "other.gpx"
        with other.open("wb") as out:
            write(replace(TRACE, positions=moved.round(6)), out, ".gpx")
        assert any(what in each for each in failed(report, source, other))
    fewer = tmp_path / "fewer.gpx"
    shown = replace(TRACE, positions=positions)
    with fewer.open("wb") as out:
        write(cut_out(shown, np.arange(len(TRACE)) != 7), out, ".gpx")
    assert any("every fix" in each for each in failed(report, source, fewer))
