"""Releases without times: the order of the fixes is all that leaves of when they were."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.rides import ride, stated_key, written
from trailveil.cli import cli
from trailveil.errors import InvalidValue, UnwritableOutput
from trailveil.traces.formats import read
from trailveil.traces.retiming import Retiming

TRACE = ride(240, 10.0, seed=3)
QUICK = ("--activity", "drive", "--radius", "20")


def run(*words: Any) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(tmp_path / "ride.gpx", TRACE)


@pytest.mark.parametrize(
    "how", [(*QUICK, "--mechanism", "cut"), ("--mechanism", "noise")], ids=lambda how: how[-1]
)
def test_no_time_leaves_and_the_release_is_still_checked(
    source: Path, how: tuple[str, ...]
) -> None:
    output, private = "out.gpx", "out.PRIVATE.json"
    key = stated_key(source.with_name("key"))
    asked = (*how, "--drop-times", "--private-report", private, "--key", key)
    done = run("protect", source, "-o", output, *asked, "--explain")
    assert done.exit_code == 0, done.output
    assert "No times leave: the order of each fix does." in " ".join(done.output.split())
    data = Path(output).read_text()
    assert not re.search(r"20\d\d-|\d\d:\d\d|time", data.replace("timestamp", ""))
    released = read(output)
    assert len(released) == json.loads(Path(private).read_text())["mechanism"]["released_fixes"]
    audited = run("audit", source, output)
    assert audited.exit_code == 0, audited.output
    checked = run("verify", private, source, output)
    assert checked.exit_code == 0, checked.output


def test_an_audit_finds_a_protected_fix_that_leaves_without_its_time(source: Path) -> None:
    assert run("protect", source, *QUICK, "--drop-times").exit_code == 0
    whole = Path("ride.private.gpx").read_text()
    latitude, longitude = TRACE.positions[0]
    first = f'<trkseg>\n<trkpt lat="{latitude:.6f}" lon="{longitude:.6f}"></trkpt>'
    Path("leaky.gpx").write_text(whole.replace("<trkseg>", first, 1))
    found = run("audit", source, "leaky.gpx")
    assert found.exit_code == 1
    assert "LEAK" in found.output
    Path("stray.gpx").write_text(whole.replace("<trkseg>", first.replace(".", ".9"), 1))
    assert run("audit", source, "stray.gpx").exit_code == 1


def test_with_or_without_times_it_is_the_same_release(source: Path) -> None:
    first = json.loads(run("protect", source, *QUICK, "--json").stdout)
    again = run("protect", source, "-o", "untimed.gpx", *QUICK, "--drop-times", "--json")
    assert again.exit_code == 0, again.output
    report = json.loads(again.stdout)
    assert (report["times"]["dropped"], report["ledger"]) == (True, first["ledger"])
    listed = json.loads(run("ledger", "show", "--json").stdout)
    assert len(listed["releases"]) == 1


@pytest.mark.parametrize("suffix", [".fit", ".tcx", ".kml", ".csv", ".geojson"])
def test_formats_that_need_times_are_refused(source: Path, suffix: str) -> None:
    done = run("protect", source, "-o", f"out{suffix}", *QUICK, "--drop-times")
    assert isinstance(done.exception, UnwritableOutput)
    assert "must be GPX, got" in f"{done.exception}"
    assert not Path(f"out{suffix}").exists()


def test_what_cannot_be_combined_is_refused(source: Path) -> None:
    with pytest.raises(InvalidValue, match="leave --drop-times out"):
        Retiming(60.0, drop=True)
    done = run("protect", source, *QUICK, "--drop-times", "--mechanism", "both")
    assert done.exit_code == 2
    assert "--drop-times must come with --mechanism cut" in done.output


def test_a_batch_drops_times_too(source: Path) -> None:
    done = run("batch", source, "-o", "outputs", *QUICK, "--drop-times")
    assert done.exit_code == 0, done.output
    assert "time" not in Path("outputs/ride.private.gpx").read_text()
