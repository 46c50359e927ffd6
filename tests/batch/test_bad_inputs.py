"""What a study has that is not as it must be: each is one line, and what is finished stays."""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.batch.fleets import AT_ONCE, DAY, batch, fleet, outputs, summary
from tests.rides import BEGIN, PATIENCE, command, environment, ride
from tests.traces.formats.builders import full_fit
from trailveil.files import output
from trailveil.files.keys import new_key
from trailveil.traces.formats import write
from trailveil.traces.frames import to_frame
from trailveil.traces.trace import Trace

pytestmark = pytest.mark.slow


def later(days: int) -> Trace:
    return ride(12, 30.0, seed=days, begin=BEGIN + days * DAY)


def table(path: Path, **columns: object) -> Path:
    bare = to_frame(later(len(columns))).drop(columns=["track", "segment"])
    bare.assign(**columns).to_csv(path, index=False)
    return path


def test_a_folder_of_all_sorts_is_done_and_what_cannot_be_is_a_line_each(tmp_path: Path) -> None:
    rides, out = tmp_path / "rides", tmp_path / "out"
    (rides / "empty").mkdir(parents=True)
    for days, suffix in enumerate((".gpx", ".geojson", ".kml", ".kmz"), start=10):
        with (rides / f"ride{suffix}").open("wb") as file:
            write(later(days), file, suffix)
    table(rides / "fleet.csv", trip_id=7, what="x")
    good = {f"ride.private{suffix}" for suffix in (".gpx", ".geojson", ".kml", ".kmz")}
    good.add("fleet/trip_id=7/7.private.csv")
    assert summary(rides, "-o", out)["protected"] == len(good)
    assert set(outputs(out)) == good
    before = outputs(out)
    table(rides / "nameless.csv")
    table(rides / "people.csv", trip_id=8, user_id=["a"] * 6 + ["b"] * 6)
    (rides / "none.gpx").write_bytes(b"")
    os.mkfifo(rides / "pipe.gpx")
    (rides / "cut.fit").write_bytes(full_fit()[:60])
    (rides / "wrong.kmz").write_bytes((rides / "ride.gpx").read_bytes()[:200])
    done = batch(rides, "-o", out)
    assert done.returncode == 1
    said = dict(line.split(": ", 1) for line in done.stderr.splitlines())
    tables = {"nameless.csv", "people.csv"}
    assert set(said) == {*tables, "cut.fit", "none.gpx", "pipe.gpx", "wrong.kmz"}
    assert said["nameless.csv"].startswith("a table must have one column that names its traces")
    assert said["people.csv"].startswith("each trace of a table must be of one person")
    assert f"{len(good)} are as they were, 6 refused" in done.stdout
    assert "  refused (UnreadableInput): 6\n" in done.stdout  # of cut.fit the class is private
    assert outputs(out) == before


def test_tables_may_have_the_same_ids(tmp_path: Path) -> None:
    """As what Trailveil wrote has, by track; and their rules tell them apart."""
    rides, out, rules = tmp_path / "rides", tmp_path / "out", tmp_path / "rules.csv"
    (rides / "a").mkdir(parents=True)
    table(rides / "one.csv", track=7)
    table(rides / "a" / "two.csv", track=7, what="x")
    table(rides / "three.csv", track=8, what="x", further="y")
    rules.write_text("trace,radius\na/two.csv/7,2\n")
    said = tmp_path / "said.json"
    assert summary(rides, "-o", out, "--rules", rules, "--manifest", said)["protected"] == 3
    lines = {each["trace"]: each for each in json.loads(said.read_text())["traces"]}
    assert set(lines) == {"8", "a/two.csv/7", "one.csv/7"}
    assert lines["a/two.csv/7"]["radius_m"] == 2.0
    assert set(outputs(out)) == {
        *("a/two/track=7/7.private.csv", "one/track=7/7.private.csv"),
        "three/track=8/8.private.csv",
    }
    rules.write_text("trace,radius\n7,2\n")
    assert "name traces as the report does" in batch(rides, "-o", out, "--rules", rules).stderr


def test_no_room_ends_the_run_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the next test has it, where no disk can be had."""
    rides, out = fleet(tmp_path / "rides", 5), tmp_path / "out"
    fill = output._fill

    def until_full(
        rough: Path, write: Callable[[BinaryIO], object], *, durable: bool = True
    ) -> None:
        if rough.is_relative_to(out) and len(outputs(out)) + len(list(out.rglob("*.part"))) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fill(rough, write, durable=durable)

    with monkeypatch.context() as full:
        full.setattr(output, "_fill", until_full)
        done = batch(rides, "-o", out)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("trailveil: the folder of outputs must have room for them")
    assert "give the same command again" in done.stderr
    some = outputs(out)
    assert 0 < len(some) < 5
    assert summary(rides, "-o", out)["as_before"] == len(some)
    assert some.items() < outputs(out).items()


# A disk of its own that has no room for all; what is on it is copied, then there is more of it.
FULL = """
set -e
mount -t tmpfs -o size=32k none "$1"; out=$1; copy=$2; shift 2
"$@" && exit 9 || echo "$?" > "$copy/status"
cp -a "$out" "$copy/full"
mount -o remount,size=10m "$out"
"$@"
cp -a "$out" "$copy/whole"
"""


def test_a_disk_that_is_full_midway_is_told_and_the_same_command_goes_on(tmp_path: Path) -> None:
    alone = ["unshare", "--map-root-user", "--mount"]
    (probe := tmp_path / "probe").mkdir()
    mounts = [*alone, "mount", "-t", "tmpfs", "none", str(probe)]
    if shutil.which("unshare") is None or subprocess.run(mounts, check=False).returncode:
        pytest.skip("needs a system that lets its users mount a tmpfs of their own (unshare)")
    rides, key, disk = fleet(tmp_path / "rides", 12), tmp_path / "key", tmp_path / "disk"
    new_key(key)
    disk.mkdir()
    asked = ("--key", key, "--workers", "1")
    assert summary(rides, "-o", tmp_path / "alone", *asked)["protected"] == 12
    program = command("batch", rides, "-o", disk, *asked, *AT_ONCE)
    (copy := tmp_path / "copy").mkdir()
    done = subprocess.run(
        [*alone, "bash", "-c", FULL, "bash", str(disk), str(copy), *program],
        env=environment({"XDG_STATE_HOME": str(tmp_path / "other")}),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert (copy / "status").read_text() == "1\n"
    full, whole = outputs(copy / "full"), outputs(copy / "whole")
    assert full.items() < whole.items()
    assert 0 < len(full) < len(whole) == 12
    assert whole == outputs(tmp_path / "alone")
    assert done.stderr.startswith("trailveil: the folder of outputs must have room for them, got")
    assert done.stderr.count("\n") == 1
