from pathlib import Path

import pytest

from trailveil.ledger import Ledger, open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "state")
