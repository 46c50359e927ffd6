"""Made-up fleets for tests of batches, and the batch run on them."""

import contextlib
import hashlib
import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.rides import BEGIN, PATIENCE, ROOT, command, environment, ride, written
from trailveil.batch.manifest import DONE, folder_of
from trailveil.cli import cli
from trailveil.errors import TrailveilError
from trailveil.release.request import Request

# Half a minute is cut at each end of rides of a few minutes: for tests of all that is not that.
AT_ONCE = (
    *("--radius", "1", "--withhold", "30", "--uncertain", "0", "--activity", "drive"),
    "--no-returns",
)
SHORT = Request((), 1.0, withhold=30.0, uncertain=0).at_pace_of(replace(ride(2), activity="drive"))
"""The same as a request."""
DAY = 86_400


def fleet(folder: Path, count: int, people: int = 3) -> Path:
    """Short rides, a day apart, in a folder for each person."""
    for i in range(count):
        folder_of_person = folder / f"p{i % people}"
        folder_of_person.mkdir(parents=True, exist_ok=True)
        written(folder_of_person / f"r{i:04}.gpx", ride(12, 30.0, seed=i, begin=BEGIN + DAY * i))
    return folder


@dataclass(frozen=True)
class Done:
    """What a run left: its exit status and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def batch(*words: str | Path) -> Done:
    """The batch in this process, with its errors as the program prints them."""
    alone = () if {"--workers", "--scheduler"} & set(words) else ("--workers", "1")
    done = CliRunner().invoke(cli, ["batch", *map(str, words), *alone, *AT_ONCE])
    if isinstance(done.exception, TrailveilError):
        return Done(1, done.stdout, f"trailveil: {done.exception}\n")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def protect(source: Path, output: Path, key: Path, state: Path) -> bytes:
    """What trailveil protect makes of one recording, counted in a state folder of its own."""
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(state))
        words = ["protect", str(source), "-o", str(output), "--key", str(key), *AT_ONCE]
        done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return output.read_bytes()


def batch_process(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """The batch as a process of its own, under way."""
    return subprocess.Popen(
        command("batch", *words, *AT_ONCE),
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def summary(*words: str | Path) -> dict[str, Any]:
    """What a batch that was done says of itself."""
    done = batch(*words, "--json")
    assert done.stderr == "", done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def outputs(folder: Path) -> dict[str, str]:
    """The digest of every file below a folder, by its path; hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def done_in(state: Path, outdir: Path) -> set[str]:
    """The outputs that the manifest in a state folder says are done, durably.

    A file appears before that is written: a run that is killed between the two does it again.
    What a run that was killed had begun to write is taken back first, as the next run does.
    """
    path = folder_of(state / "trailveil", outdir) / "manifest.sqlite"
    asked = "SELECT output FROM traces WHERE status = ?"
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)) as rows:
            return {output for (output,) in rows.execute(asked, (DONE,))}
    except sqlite3.OperationalError:  # it is not there yet, or being written
        return set()


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


HOLDING = {
    "PYTHONPATH": os.pathsep.join([os.fspath(ROOT), os.fspath(ROOT / "tests" / "batch" / "held")])
}
"""The environment of processes that may be held back."""


@contextlib.contextmanager
def held_back(recording: Path) -> Iterator[None]:
    """No process of HOLDING opens this recording while this lasts, so no run gets past it."""
    mark = recording.with_name(f".{recording.name}.held")
    mark.touch()
    try:
        yield
    finally:
        mark.unlink()
