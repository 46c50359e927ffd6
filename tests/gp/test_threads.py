"""Linear algebra uses one thread wherever something is released."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import blas
from threadpoolctl import threadpool_info, threadpool_limits

from tests.conftest import ROOT
from tests.rides import ride, written
from trailveil.batch import working
from trailveil.batch.working import here
from trailveil.gp.threads import one_thread

# Looked at when the command ends, with all that it has loaded.
_LOOK = """
import atexit, sys
from trailveil.cli import main

def look():
    from threadpoolctl import threadpool_info
    print("threads", sorted({library["num_threads"] for library in threadpool_info()}))

atexit.register(look)
sys.argv = ["trailveil", "protect", "ride.gpx", "--mechanism", sys.argv[1]]
main()
"""


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info()}


def run(
    command: list[str], folder: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """A process in which these variables alone say how many threads there are."""
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_THREADS")}
    env = {**plain, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), **variables}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", ["", "2"])
@pytest.mark.parametrize("mechanism", ["cut", "noise"])
def test_the_command_line_uses_one_thread_whatever_is_set(
    tmp_path: Path, number: str, mechanism: str
) -> None:
    """Where a variable says two, and where none is set, which is a thread a core."""
    written(tmp_path / "ride.gpx", ride(400, 20.0))
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    many = dict.fromkeys(names, number) if number else {}
    done = run([sys.executable, "-c", _LOOK, mechanism], tmp_path, many)
    assert (done.returncode, done.stdout.split("\n")[-2]) == (0, "threads [1]"), done.stderr


def test_what_is_loaded_already_uses_one_thread_for_as_long_as_asked() -> None:
    assert blas.ddot(np.ones(2), np.ones(2)) == 2  # the libraries of numpy and scipy are loaded
    with threadpool_limits(limits=2):
        before = threads()
        with one_thread():
            assert threads() == {1}
        assert threads() == before


def test_workers_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[set[int]] = []
    monkeypatch.setattr(working, "_guarded", lambda task, act: counts.append(threads()))
    task: Any = object()  # nothing looks at it
    with threadpool_limits(limits=2):
        tasks = iter([task, None, None])
        assert len(list(here(lambda: next(tasks)))) == 1
        working.work_all([task])
    assert counts[::2] == [{1}] * 2  # what follows each puts a file to the disk


# Asked of processes in which nobody has set anything, when they have loaded what they need.
_WORKERS = """
from types import SimpleNamespace

def look():
    import scipy.linalg
    from threadpoolctl import threadpool_info
    print("threads", sorted({each["num_threads"] for each in threadpool_info()}), flush=True)
    return SimpleNamespace(number=0)

class Look:
    def __reduce__(self):  # unpacked by a worker
        return look, ()

if __name__ == "__main__":
    from trailveil.batch.workers import workers_here
    from trailveil.gp.threads import keep_one_thread
    keep_one_thread()
    tasks = iter([Look()])
    with workers_here(1) as engine:
        list(engine(lambda: next(tasks, None)))
"""


def test_worker_processes_use_one_thread_where_nothing_is_set(tmp_path: Path) -> None:
    file = tmp_path / "workers.py"
    file.write_text(_WORKERS)
    done = run([sys.executable, str(file)], tmp_path, {})
    assert (done.returncode, done.stdout.strip()) == (0, "threads [1]"), done.stderr
