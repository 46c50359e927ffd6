"""The program run in this process, as the tests of several commands need it."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trailveil.cli import main


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run the program with some words, in a folder of its own: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def once(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trailveil", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capfd.readouterr()

    return once
