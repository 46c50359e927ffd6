"""A batch on workers: of this machine, or of a scheduler that is there, some of them killed."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.batch.fleets import (
    HOLDING,
    batch,
    batch_process,
    done_in,
    fleet,
    held_back,
    outputs,
    summary,
    until,
)
from tests.rides import PATIENCE, environment, run
from trailveil.files.keys import new_key

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs processes that are killed"),
]


def heard_by(process: psutil.Process) -> list[str]:
    """The addresses that a process listens on."""
    connections = process.net_connections("inet")
    return [
        connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN
    ]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], list[int]]]:
    """A real scheduler with two workers: its address, its process, and theirs."""
    folder.mkdir()
    env = {**environment(HOLDING), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    said = folder / "said"
    here = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with contextlib.ExitStack() as started:
        out = started.enter_context(said.open("wb"))
        where = {"env": env, "cwd": folder, "stdout": out, "stderr": subprocess.STDOUT}
        scheduler = subprocess.Popen([*dask, *here], **where)  # type: ignore[call-overload]  # as stated
        started.callback(_end, scheduler)
        until(lambda: re.search(r"Scheduler at:\s+(tcp://\S+)", said.read_text()))
        address = re.findall(r"tcp://127\S+", said.read_text())[0]
        workers = []
        for _ in range(2):
            words = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
            more = ["--no-dashboard", "--local-directory", str(folder)]
            popen = subprocess.Popen([sys.executable, "-m", *words, *more], **where)  # type: ignore[call-overload]  # as stated
            started.callback(_end, popen)
            workers.append(popen.pid)
        until(lambda: said.read_text().count("Registered to:") == len(workers))
        yield address, scheduler, workers


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_a_scheduler_and_two_workers_of_which_one_is_killed(tmp_path: Path, full: bool) -> None:
    count = 300 if full else 40
    rides, key = fleet(tmp_path / "rides", count, people=count), tmp_path / "key"
    new_key(key)
    asked = ("--key", key, "--subject-from", "folder")
    done = batch(rides, "-o", tmp_path / "alone", *asked, "--workers", "1")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    state = tmp_path / "other"
    with cluster(tmp_path / "cluster") as (address, _, workers):
        with held_back(sorted(rides.glob("*/*.gpx"))[4]):
            words = (rides, "-o", out, *asked, "--scheduler", address)
            running = batch_process(*words, env=HOLDING | {"XDG_STATE_HOME": str(state)})
            until(lambda: done_in(state, out) or running.poll() is not None)
            os.kill(workers[0], signal.SIGKILL)
        said = running.communicate(timeout=PATIENCE)
        assert running.returncode == 0, said
        assert outputs(out) == outputs(tmp_path / "alone")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "udp://nowhere"])
def test_a_scheduler_that_does_not_answer_is_one_line(tmp_path: Path, address: str) -> None:
    rides, out = fleet(tmp_path / "rides", 1), tmp_path / "out"
    patience = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    gone = run("batch", rides, "-o", out, "--scheduler", address, env=patience)
    assert gone.returncode == 1
    assert gone.stderr.startswith("trailveil: the scheduler and a worker must answer, got no")
    assert gone.stderr.count("\n") == 1
    assert not out.exists()


def test_the_whole_run_is_killed_with_its_workers_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 20
    rides, key = fleet(tmp_path / "rides", count, people=count), tmp_path / "key"
    new_key(key)
    asked = ("--key", key, "--subject-from", "folder")
    assert summary(rides, "-o", tmp_path / "alone", *asked, "--workers", "1")["protected"] == count
    state, out = tmp_path / "other", tmp_path / "out"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    with held_back(sorted(rides.glob("*/*.gpx"))[4]):
        running = batch_process(rides, "-o", out, *asked, "--workers", "2", env=HOLDING)
        until(lambda: done_in(state, out) or running.poll() is not None)
        program = psutil.Process(running.pid)
        all_of_it = (program, *program.children(recursive=True))
        addresses = [address for each in all_of_it for address in heard_by(each)]
        running.kill()
        # Until the workers are gone, too: they hold its stderr.
        running.communicate(timeout=PATIENCE)
    assert len(all_of_it) >= 3
    assert addresses == []
    remains, whole = outputs(out), outputs(tmp_path / "alone")
    remains = {path: digest for path, digest in remains.items() if not path.startswith(".")}
    assert remains.items() <= whole.items()
    done = done_in(state, out)
    assert done <= set(remains)
    again = summary(rides, "-o", out, *asked, "--workers", "1")
    assert (again["protected"], again["as_before"]) == (count - len(done), len(done))
    assert outputs(out) == whole


def test_a_scheduler_that_is_killed_is_one_line_and_a_new_one_goes_on(tmp_path: Path) -> None:
    count = 12
    rides, key = fleet(tmp_path / "rides", count, people=count), tmp_path / "key"
    new_key(key)
    asked = ("--key", key, "--subject-from", "folder")
    assert summary(rides, "-o", tmp_path / "alone", *asked, "--workers", "1")["protected"] == count
    state, out = tmp_path / "other", tmp_path / "out"
    words, env = (rides, "-o", out, *asked, "--json"), HOLDING | {"XDG_STATE_HOME": str(state)}
    with (
        cluster(tmp_path / "first") as (address, scheduler, _),
        held_back(sorted(rides.glob("*/*.gpx"))[4]),
    ):
        running = batch_process(*words, "--scheduler", address, env=env)
        until(lambda: done_in(state, out) or running.poll() is not None)
        scheduler.kill()
        said, errors = running.communicate(timeout=PATIENCE)
    assert (running.returncode, said) == (1, "")
    assert errors.startswith("trailveil: the scheduler and a worker must answer, got no answer f")
    assert address in errors
    assert errors.count("\n") == 1
    remains, whole = outputs(out), outputs(tmp_path / "alone")
    # A worker that is killed while it writes leaves a hidden part, which the next run clears.
    remains = {path: digest for path, digest in remains.items() if not path.startswith(".")}
    done = done_in(state, out)
    assert done <= set(remains)
    assert remains.items() <= whole.items()
    with cluster(tmp_path / "second") as (address, *_):
        again = batch_process(*words, "--scheduler", address, env=env)
        stdout, errors = again.communicate(timeout=PATIENCE)
    assert (again.returncode, errors) == (0, "")
    summed = json.loads(stdout)
    assert (summed["protected"], summed["as_before"]) == (count - len(done), len(done))
    assert outputs(out) == whole
