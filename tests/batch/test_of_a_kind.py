"""Many traces of one kind: one design, the same bytes alone and together, whoever designed it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from trailveil.kind_store import forget

from tests.batch.fleets import outputs
from trailveil.cli import cli
from trailveil.formats import write
from trailveil.keys import new_key
from trailveil.ledger import user_ledger
from trailveil.trace import NANOSECONDS, Trace

STAY = ("--between", "start+40m", "start+50m", "--adversary", "plain", "--design-for", "kind")


def walk(number: int, begin: int, count: int = 160) -> Trace:
    """A fix every 30 s, of somebody who begins so many seconds after others."""
    random = np.random.default_rng(number)
    metres = np.cumsum(random.normal(0, 30, (count, 2)), axis=0)
    times = (1_715_672_400 + begin + 30 * np.arange(count)) * NANOSECONDS
    degrees = np.array([46.2, -33.0]) + metres / 111_000
    return Trace(times, degrees, np.zeros(count, np.intp), (0,))


def invoked(*words: str | Path) -> dict[str, Any]:
    done = CliRunner().invoke(cli, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_one_design_serves_all_and_gives_the_bytes_of_protect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, rides = tmp_path / "key", tmp_path / "rides"
    new_key(key)
    for number in range(4):
        own = rides / f"p{number}"
        own.mkdir(parents=True)
        with (own / "ride.parquet").open("wb") as out:
            write(walk(number, 977 * number), out, ".parquet")
    asked = ("--key", key, *STAY)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "one"))
    whole = ("batch", rides, "--subject-from", "folder", "--whole-files", *asked)
    assert invoked(*whole, "-o", tmp_path / "out", "--workers", "2")["protected"] == 4
    designs = list((user_ledger().folder / "designs").iterdir())
    assert [one.suffix for one in designs] == [".design"]
    with user_ledger().open() as book:
        rows = [book.blob(one.number) for one in book.standing("p0")]
        assert len(rows) == 1
    made = outputs(tmp_path / "out")

    forget()
    warm = invoked(*whole, "-o", tmp_path / "again", "--workers", "1")
    assert warm["protected"] == 4
    assert outputs(tmp_path / "again") == made

    # Elsewhere, where nothing is known, each is protected by itself.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "two"))
    for number in range(4):
        forget()
        source, alone = rides / f"p{number}" / "ride.parquet", tmp_path / f"{number}.parquet"
        said = invoked("protect", source, "-o", alone, "--subject", f"p{number}", *asked)
        assert (
            alone.read_bytes()
            == (tmp_path / "out" / f"p{number}" / "ride.private.parquet").read_bytes()
        )
        assert said["mechanism"]["designed_for"] == "kind"
