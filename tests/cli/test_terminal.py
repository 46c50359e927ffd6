"""What a terminal shows besides: a sketch and colours; nothing of them is in a pipe or in JSON."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.rides import ride, written
from trailveil.cli import waiting
from trailveil.report.brief import LEGEND, MOST_LINES

pty = pytest.importorskip("pty", reason="of systems with terminals of this kind")
WORDS = ("protect", "ride.gpx", "--activity", "drive", "--no-returns")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path / "ride.gpx", ride(900, 5.0))
    return tmp_path


def environment(folder: Path, **more: str) -> dict[str, str]:
    variables = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm"}
    bare = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return bare | variables | {"PYTHONIOENCODING": "utf-8"} | more


def on_terminal(folder: Path, *words: str, **more: str) -> str:
    """What is printed where stdout is a terminal."""
    reading, writing = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "trailveil", *WORDS, *words],
        cwd=folder,
        env=environment(folder, **more),
        stdout=writing,
        stdin=subprocess.DEVNULL,
    ) as run:
        os.close(writing)
        shown = b""
        while True:
            try:
                piece = os.read(reading, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(reading)
    assert run.returncode == 0
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_shows_a_sketch_and_colours(folder: Path) -> None:
    shown = on_terminal(folder)
    above, legend, below = shown.partition(f"  {LEGEND}\n")
    assert legend
    assert above.count("\n") <= 7
    assert below.count("\n") <= MOST_LINES
    assert below.startswith("\x1b[1mBoth ends: hidden in ride.private.gpx\x1b[0m\n")
    assert "\x1b[33m  Not protected: " in below


def test_no_color_dumb_terminals_and_ascii_are_respected(folder: Path) -> None:
    shown = on_terminal(folder, NO_COLOR="1")
    assert LEGEND in shown
    assert "\x1b" not in shown
    again = ("--overwrite",)
    shown = on_terminal(folder, *again, TERM="dumb")
    assert LEGEND not in shown
    assert "\x1b" not in shown
    shown = on_terminal(folder, *again, PYTHONIOENCODING="ascii")
    assert LEGEND not in shown
    assert "\x1b[1mBoth ends" in shown
    shown = on_terminal(folder, *again, "--json")
    assert shown.startswith("{")
    assert "\x1b" not in shown


def test_a_pipe_has_neither(folder: Path) -> None:
    command = [sys.executable, "-m", "trailveil", *WORDS]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, check=True
    )
    assert done.stdout.startswith(b"Both ends: hidden in ride.private.gpx\n")
    assert b"\x1b" not in done.stdout
    assert done.stdout.isascii()


def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "_PATIENCE", -1.0)
    assert list(waiting.watched("abc", 3, "computing")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert list(waiting.watched("abc", 3, "computing")) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "computing" in captured.err
