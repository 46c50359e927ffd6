"""A batch that is killed, wherever, goes on to the outputs of one that was not."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.fleets import AT_ONCE, DAY, fleet, outputs, summary
from tests.rides import BEGIN, PATIENCE, ROOT, command, environment, ride, written
from trailveil.files.keys import new_key

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs processes that are forked and killed"),
]


def test_killed_at_any_step_it_resumes_to_the_same_outputs(tmp_path: Path, full: bool) -> None:
    """Each time from nothing: at a random step of all those that the file system notices."""
    rides, key = fleet(tmp_path / "rides", 6), tmp_path / "key"
    new_key(key)
    count = 20 if full else 5
    words = [tmp_path / "runs", "7", str(count), rides, "--key", key, "--workers", "1", *AT_ONCE]
    done = subprocess.run(
        [sys.executable, "-m", "tests.batch.killed", *map(str, words)],
        cwd=ROOT,
        env=environment(None),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    whole, *killed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(whole["outputs"]) == 6
    assert len(killed) == count
    for case in killed:
        assert case["killed"] == -signal.SIGKILL
        assert case["status"] == 0, case["said"]
        assert case["outputs"] == whole["outputs"]
        # What has its name is whole, at any moment.
        remains = {name: digest for name, digest in case["left"].items() if ".aside/" not in name}
        remains.pop(".trailveil-batch.lock", None)
        assert remains.items() <= whole["outputs"].items()
        # And it is counted.
        assert {Path(name).name for name in remains} <= {*case["counted"]}
        assert not {name for name in case["outputs"] if ".aside/" in name}
    assert any(len(each["left"]) > 0 for each in killed)


def limited(kib: int, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The batch where no file may grow beyond so many KiB, as on a disk that is full."""
    program = ["bash", "-c", f'ulimit -f {kib}; exec "$@"', "bash"]
    return subprocess.run(
        [*program, *command("batch", *words, "--workers", "1", *AT_ONCE)],
        env=environment(None),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def test_a_full_disk_is_a_line_and_what_is_finished_stays(tmp_path: Path) -> None:
    """Of one output, which is too large; and of the ledger, without which nothing is released."""
    rides, out = fleet(tmp_path / "rides", 2), tmp_path / "out"
    none = limited(20, rides, "-o", out)
    assert none.returncode == 1
    assert none.stderr.count("\n") == 1
    assert none.stderr.startswith("trailveil: ")
    assert not outputs(out)
    written(rides / "p1" / "large.gpx", ride(6000, 1.0, begin=BEGIN - 10 * DAY))
    some = limited(400, rides, "-o", out)
    assert some.returncode == 1
    assert some.stderr.startswith("p1/large.gpx: the output must be writable, got the error 'File")
    assert some.stderr.count("\n") == 1
    first = outputs(out)
    assert set(first) == {"p0/r0000.private.gpx", "p1/r0001.private.gpx"}
    assert summary(rides, "-o", out)["protected"] == 1
    assert first.items() < outputs(out).items()
