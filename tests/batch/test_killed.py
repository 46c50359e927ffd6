"""A batch that is killed, wherever, goes on to the outputs of one that was not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.fleets import AT_ONCE, fleet
from tests.rides import ROOT, environment
from trailveil.keys import new_key

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
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    whole, *killed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(whole["outputs"]) == 6
    assert len(killed) == count
    for one in killed:
        assert one["killed"] == -9
        assert one["status"] == 0, one["said"]
        assert one["outputs"] == whole["outputs"]
        # What has its name is whole, at any moment.
        seen = {name: digest for name, digest in one["left"].items() if ".aside/" not in name}
        seen.pop(".trailveil-batch.lock", None)
        assert seen.items() <= whole["outputs"].items()
    assert any(len(one["left"]) > 0 for one in killed)
