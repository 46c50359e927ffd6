"""What a batch counts is what `protect` would have counted: later releases are told the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.rides import BEGIN, ride, written
from trailveil.cli import cli
from trailveil.files.keys import new_key

pytestmark = pytest.mark.slow

NOISE = ("--between", "start+4m", "start+6m", "--mechanism", "noise")


def run(*words: object) -> str:
    done = CliRunner().invoke(cli, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_later_release_is_told_the_same_after_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that goes on where the first ends, and one that has half of its times again."""
    rides, key = tmp_path / "rides", tmp_path / "key"
    rides.mkdir()
    new_key(key)
    first = written(rides / "a.gpx", ride(20, 30.0, seed=1))
    later = [
        written(tmp_path / "b.gpx", ride(20, 30.0, seed=2, begin=BEGIN + 620)),
        written(tmp_path / "c.gpx", ride(20, 30.0, seed=3, begin=BEGIN + 300)),
    ]
    by_place = ("--near", "48.137,11.575,80", "--adversary", "plain", "--ways", "1")
    totals: list[list[Any]] = []
    for way in ("protect", "batch"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / way))
        run("place", "add", "home", *by_place)
        if way == "protect":
            run("protect", first, "-o", tmp_path / "a.out.gpx", "--key", key, *NOISE)
        else:
            run("batch", rides, "-o", tmp_path / "out", "--workers", 1, "--key", key, *NOISE)
        totals.append([])
        for number, path in enumerate(later):
            out = tmp_path / f"{way}{number}.gpx"
            words = ("--again", "--json", "--key", key, *NOISE)
            said = json.loads(run("protect", path, "-o", out, *words))
            totals[-1].append(said["ledger"])
    assert totals[0] == totals[1]
    assert totals[0][0]["total"] > totals[0][0]["epsilon"]  # the first counts beside it
    assert totals[0][1]["overlapping"] == 2
    released = (tmp_path / "out" / "a.private.gpx").read_bytes()
    assert released == (tmp_path / "a.out.gpx").read_bytes()
