"""Runs that rely on one row of the ledger: real processes that fail or are killed at each step."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ledger.test_commit import MADE, OTHER
from tests.ledger.test_store import entry, rows
from tests.rides import PATIENCE
from trailveil.errors import Refused, UnwritableOutput
from trailveil.ledger import Ledger
from trailveil.ledger.commit import commit, publish

RUN = """
import pickle, sys
from pathlib import Path
from trailveil.errors import UnwritableOutput
from trailveil.ledger import open_ledger
from trailveil.ledger.commit import commit


def step(name):
    if name == sys.argv[3]:
        print(name, flush=True)
        sys.stdin.readline()
        raise UnwritableOutput("no room")


state, output = Path(sys.argv[1]), Path(sys.argv[2])
with commit(pickle.loads(sys.stdin.buffer.read(int(sys.argv[4]))), open_ledger(state)) as receipt:
    step("counted")
    with receipt.staged(output, overwrite=False) as put:
        step("staged")
        receipt.put(put, lambda: step("appeared"))
"""


def ended(
    ledger: Ledger, output: Path, step: str, how: str, other_output: Path | None = None
) -> None:
    """A process that comes as far as a step, and fails there or is killed.

    beside: what another run of the same request writes while it waits there.
    """
    pickled = pickle.dumps(MADE)
    words = (str(ledger.folder), str(output), step, str(len(pickled)))
    with subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(pickled)
        run.stdin.flush()
        assert run.stdout.readline().decode() == f"{step}\n"
        if other_output is not None:
            publish(MADE, ledger, other_output)
        if how == "killed":
            run.kill()
        run.communicate(b"go on\n", timeout=PATIENCE)


def standing(ledger: Ledger) -> int:
    with ledger.open() as book:
        return len(book.standing())


@pytest.mark.parametrize("how", ["fails", "killed"])
@pytest.mark.parametrize("step", ["counted", "staged"])
def test_what_one_run_does_not_finish_takes_nothing_of_another_back(
    ledger: Ledger, tmp_path: Path, step: str, how: str
) -> None:
    """Two runs of one request: the first ends after the second has appeared."""
    ended(ledger, tmp_path / "a.gpx", step, how, other_output=tmp_path / "b.gpx")
    assert not (tmp_path / "a.gpx").exists()
    assert (tmp_path / "b.gpx").exists()
    assert standing(ledger) == 1
    with pytest.raises(Refused, match="must be released once"):
        publish(OTHER, ledger, tmp_path / "c.gpx")
    publish(MADE, ledger, tmp_path / "d.gpx")
    assert (tmp_path / "d.gpx").read_bytes() == (tmp_path / "b.gpx").read_bytes()
    assert ledger.verify() == 1


def failing(ledger: Ledger) -> None:
    with commit(MADE, ledger):
        raise UnwritableOutput("no room")


@pytest.mark.parametrize("how", ["fails", "killed"])
@pytest.mark.parametrize("step", ["counted", "staged", "appeared"])
def test_a_file_that_is_there_is_counted_however_its_run_ended(
    ledger: Ledger, tmp_path: Path, step: str, how: str
) -> None:
    """And a run that fails takes the row of one that was killed, of which nothing is known, not."""
    ended(ledger, tmp_path / "a.gpx", step, how)
    assert (tmp_path / "a.gpx").exists() == (step == "appeared")
    counted = int(step == "appeared" or how == "killed")
    assert standing(ledger) == counted
    with pytest.raises(UnwritableOutput):
        failing(ledger)
    assert standing(ledger) == counted


def test_a_row_without_claims_is_relied_on_by_somebody(ledger: Ledger) -> None:
    with ledger.open() as book:
        number = book.add(entry())
    rows(ledger, "DELETE FROM claims")
    with ledger.open() as book:
        book.let_go(number)
        assert len(book.standing()) == 1
