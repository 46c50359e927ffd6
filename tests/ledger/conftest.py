"""What holds for every test of the ledger: whatever happens to it, its file is let go of."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trailveil.ledger import Ledger, open_ledger


@pytest.fixture(autouse=True)
def every_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python before 3.13 says nothing of one that is left to the collector."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connected(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **kwargs))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", connected)
    yield
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            connection.total_changes  # noqa: B018


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "state")
