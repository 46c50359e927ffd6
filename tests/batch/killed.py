"""Runs the batch until it is killed at the Nth step that leaves a trace, then to its end, N by N.

A program of its own: it forks, so that the package is imported once.

    python -m tests.batch.killed FOLDER SEED COUNT BATCH-ARGUMENTS...

FOLDER is new. Each N has a state folder and outputs of its own there; written is one JSON object a
line: N, how the run ended that was to be killed, what was counted then, and the digests of all that
is in the folder of outputs after that, and at the end. The first line is of the run that nothing
happens to.
"""

import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from click.testing import CliRunner

from tests.batch.fleets import outputs
from trailveil.batch import working
from trailveil.cli import cli

# Calls into the system, and into a database, before each of which the run may end.
STEPS = ("fsync", "link", "replace", "unlink", "mkdir", "chmod", "rmdir", "open", "close")
OF_A_DATABASE = ("execute", "executemany", "executescript", "commit", "close", "__exit__")


def main(folder: Path, seed: int, count: int, words: list[str]) -> None:
    # Groups of two, however fast the machine is: each run takes the same steps.
    working._SECONDS, working.MOST = float("inf"), 2
    os.environ["XDG_STATE_HOME"] = str(folder / "warm" / "state")
    CliRunner().invoke(cli, ["batch", *words, "-o", str(folder / "warm" / "out")])
    whole, _ = child(folder / "whole", words, 0)
    steps = int((folder / "whole" / "steps").read_text())
    tell({"n": 0, "status": whole, "outputs": outputs(folder / "whole" / "out")})
    for n in random.Random(seed).sample(range(1, steps + 1), count):
        home = folder / str(n)
        status, _ = child(home, words, n)
        remains = outputs(home / "out") if (home / "out").exists() else {}
        known = counted_in(home / "state")
        end, said = child(home, words, 0)
        outcome = {"n": n, "killed": status, "left": remains, "status": end, "said": said}
        outcome["counted"] = known
        tell(outcome | {"outputs": outputs(home / "out")})


def counted_in(state: Path) -> list[str]:
    """The names of the files that a ledger counts, as it is found after its run was killed."""
    ledger = state / "trailveil" / "ledger.sqlite"
    try:
        with contextlib.closing(sqlite3.connect(f"{ledger.as_uri()}?mode=rw", uri=True)) as rows:
            bodies = rows.execute("SELECT body FROM contents").fetchall()
    except sqlite3.OperationalError:  # it is not there yet
        return []
    return [json.loads(body)["output"] for (body,) in bodies]


def tell(outcome: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(outcome) + "\n")
    sys.stdout.flush()


def watch(n: int) -> Callable[[], int]:
    """From now on, end at the Nth step; how many there were."""
    counted = 0

    def step() -> None:
        nonlocal counted
        counted += 1
        if counted == n:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            step()
            return function(*arguments, **options)

        return call

    for name in STEPS:
        setattr(os, name, watched(getattr(os, name)))
    methods = {name: watched(getattr(sqlite3.Connection, name)) for name in OF_A_DATABASE}
    connection = type("Watched", (sqlite3.Connection,), methods)
    connect = sqlite3.dbapi2.connect

    def watched_connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **options, factory=connection)

    sqlite3.connect = watched_connect  # type: ignore[assignment]  # a part of its signature
    return lambda: counted


def child(home: Path, words: list[str], n: int) -> tuple[int, str]:
    """The status of one run in a child, and what it printed."""
    home.mkdir(parents=True, exist_ok=True)
    pid = os.fork()
    if pid == 0:
        run(home, words, n)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, (home / "said").read_text()


def run(home: Path, words: list[str], n: int) -> NoReturn:
    os.environ["XDG_STATE_HOME"] = str(home / "state")
    os.dup2(os.open(home / "said", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 1)
    os.dup2(1, 2)
    steps = watch(n)
    status = 70
    try:
        words = ["batch", *words, "-o", str(home / "out")]
        status = cli.main(words, prog_name="trailveil", standalone_mode=False) or 0
    finally:
        sys.stdout.flush()
        counted = steps()
        (home / "steps").write_text(str(counted))
        os._exit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
