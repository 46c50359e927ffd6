"""Linear algebra uses one thread wherever something is released."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import blas
from threadpoolctl import threadpool_info, threadpool_limits

from trailveil.batch import working
from trailveil.threads import one_thread

# Looked at when the command ends, with all that it has loaded.
_LOOK = """
import atexit, sys
from trailveil.cli import main

def look():
    from threadpoolctl import threadpool_info
    print("threads", sorted({one["num_threads"] for one in threadpool_info()}))

atexit.register(look)
sys.argv = ["trailveil", "protect", "none.gpx"]
main()
"""


def threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info()}


def test_the_command_line_uses_one_thread_whatever_is_set(tmp_path: Path) -> None:
    many = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    told = subprocess.run(
        [sys.executable, "-c", _LOOK],
        cwd=tmp_path,
        env={**os.environ, **many},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout.split("\n")[0]) == (1, "threads [1]"), told.stderr


def test_what_is_loaded_already_uses_one_thread_for_as_long_as_asked() -> None:
    assert blas.ddot(np.ones(2), np.ones(2)) == 2  # the libraries of numpy and scipy are loaded
    with threadpool_limits(limits=2):
        before = threads()
        with one_thread():
            assert threads() == {1}
        assert threads() == before


def test_workers_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    monkeypatch.setattr(working, "_told", lambda task, act: seen.append(threads()))
    with threadpool_limits(limits=2):
        working.work(None)  # type: ignore[arg-type]  # nothing looks at it here
        working.work_all([None])  # type: ignore[list-item]  # nor here
    assert seen[:2] == [{1}] * 2  # what follows puts a file to the disk
