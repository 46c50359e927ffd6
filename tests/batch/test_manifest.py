"""What a run has in the folder of outputs is gone when it ends, however late a worker writes."""

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from trailveil.batch.manifest import alone


def test_what_a_worker_writes_while_a_run_is_cleared_away_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a run that was told to end, and one of a run that was killed."""
    out, rmdir = tmp_path / "out", os.rmdir
    folders = [out / ".trailveil-batch-killed.aside"]

    def late(folder: Any, **how: Any) -> None:
        """A worker puts its release aside as all that was there is removed."""
        for aside in folders:
            with contextlib.suppress(FileNotFoundError):
                (aside / "71-late.part").write_bytes(b"positions")
        rmdir(folder, **how)

    folders[0].mkdir(parents=True)
    monkeypatch.setattr(os, "rmdir", late)
    with alone(out) as aside:
        folders.append(aside)
        (aside / "70.part").write_bytes(b"positions")
    assert not list(out.iterdir())
