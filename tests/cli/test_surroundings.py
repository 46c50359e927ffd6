"""Real processes in hostile surroundings: streams, locales, folders, signals, full disks."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Sweep
from tests.rides import PATIENCE, command, environment, ride, written

pytestmark = pytest.mark.slow

TRACE = ride(12, 60.0)
# Of a few minutes something is left.
AT_ONCE = ("--activity", "drive", "--radius", "1")
PRIVATE = "ride.private.gpx"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    written(folder / "ride.gpx", TRACE)
    return folder


def shell(
    line: str, place: Path, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash, where "$@" is the program with its words."""
    completed = subprocess.run(
        ["bash", "-c", line, "bash", *command(*words)],
        cwd=place,
        env=environment(env),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert b"Traceback" not in completed.stderr
    return completed


@pytest.mark.parametrize(
    ("streams", "status"), [("<&- >&- 2>&-", 0), (">/dev/full 2>/dev/full", 1)]
)
def test_streams_that_are_closed(streams: str, status: int, place: Path) -> None:
    completed = shell(f'"$@" {streams}', place, "protect", "ride.gpx", *AT_ONCE)
    assert completed.returncode == status
    text = (place / PRIVATE).read_bytes()
    assert text.startswith(b"<?xml")  # nothing said went into the file in place of the stream
    assert text.endswith(b"</gpx>\n")


@pytest.mark.parametrize("streams", ["2>/dev/full", ">&- 2>&- <&-"])
def test_a_refusal_that_nobody_hears(streams: str, place: Path) -> None:
    assert shell(f'"$@" {streams}', place, "key", "new", "ride.gpx").returncode == 1
    assert shell(f'"$@" {streams}', place, "key", "new", "--nonsense").returncode == 2


def test_a_key_of_the_ledger_that_has_no_end(place: Path) -> None:
    state = place / "state" / "trailveil"
    state.mkdir(parents=True)
    state.chmod(0o700)
    os.mkfifo(state / "key")
    env = {"XDG_STATE_HOME": os.fspath(place / "state")}
    completed = shell('"$@"', place, "ledger", "show", env=env)
    assert completed.returncode == 1
    assert b"the key of the ledger must be a file" in completed.stderr
    assert len(completed.stderr.splitlines()) == 1


def test_a_folder_that_is_gone(place: Path) -> None:
    line = 'mkdir gone; cd gone; rmdir ../gone; "$@"'
    source = os.fspath(place / "ride.gpx")
    completed = shell(line, place, "protect", source, *AT_ONCE, "-o", "x.gpx")
    assert completed.returncode == 1
    assert len(completed.stderr.splitlines()) == 1


def test_odd_variables_and_an_open_mask(place: Path) -> None:
    state = place / "state"
    odd = {"TZ": "No/Where", "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "20", "HOME": "/none"}
    ascii_only = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"}
    env = {**odd, **ascii_only, "XDG_STATE_HOME": os.fspath(state)}
    completed = shell('umask 0; "$@"', place, "protect", "ride.gpx", *AT_ONCE, env=env)
    assert completed.returncode == 0, completed.stderr
    completed.stdout.decode("ascii")
    stored = [path for path in (state / "trailveil").iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in stored} == {0o600}
    assert stat.S_IMODE((state / "trailveil").stat().st_mode) == 0o700


ENDS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
# Stops itself in the middle of designing, where nothing is being written.
MIDDLE = """
import os, signal, sys
number = int(sys.argv.pop(1))
signal.signal(signal.SIGINT, signal.default_int_handler)
import trailveil.cli.protect as module
def stopped(*_, **__):
    os.kill(os.getpid(), number)
    raise RuntimeError("it went on")
module.designed, _ = stopped, module.designed
from trailveil.cli import main
main()
"""


def test_a_run_that_is_told_to_end_says_so(place: Path, sweep: Sweep) -> None:
    for number, status in sweep(ENDS, short=2):
        completed = subprocess.run(
            [sys.executable, "-c", MIDDLE, str(int(number)), "protect", "ride.gpx", *AT_ONCE],
            cwd=place,
            env=environment(),
            capture_output=True,
            check=False,
            timeout=PATIENCE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # not as under nohup
        )
        assert completed.returncode == status, completed.stderr
        # After Ctrl-C a line begins anew, since a terminal has shown ^C.
        assert completed.stderr.lstrip() == b"trailveil: stopped; no file was left half-written\n"
        assert [path.name for path in place.iterdir()] == ["ride.gpx"]
