"""What a command loads: the ledger is read without what designs releases, a cut without noise."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ledger.test_accounting import HOME
from tests.rides import ride, written
from trailveil.ledger import open_ledger
from trailveil.ledger.places import save_places

# Runs the command of its arguments; the modules that are loaded then, on stderr.
RUN = """
import contextlib, sys
from trailveil.cli import main
with contextlib.suppress(SystemExit):
    main()
print(*sorted(sys.modules), file=sys.stderr)
"""
NOTHING_OF = ("designer", "plots", "studies", "traces.formats", "ledger.joint")


def loaded(state: Path, *words: str, of: tuple[str, ...] = ("trailveil",)) -> list[str]:
    """The modules of some packages that a run has loaded. state: the folder of its ledger."""
    run = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout
    return [name for name in run.stderr.split() if name.startswith(of)]


def test_the_ledger_is_shown_by_few_modules(tmp_path: Path) -> None:
    source = written(tmp_path / "a.gpx", ride(60, 30.0))
    cut = loaded(tmp_path, "protect", str(source), "--activity", "drive", of=("trailveil", "scipy"))
    assert sum(name.startswith("trailveil") for name in cut) <= 100
    assert not {"trailveil.designer.table", "trailveil.privacy.loss", "scipy.special"} & set(cut)
    shown = loaded(tmp_path, "ledger", "show")
    assert len(shown) <= 40
    assert [name for name in shown if any(f"trailveil.{no}" in name for no in NOTHING_OF)] == []


def test_what_counts_a_batch_loads_no_linear_algebra(tmp_path: Path) -> None:
    """Workers do: so a batch begins sooner."""
    for name in ("a", "b"):
        (tmp_path / "rides" / name).mkdir(parents=True)
        written(tmp_path / "rides" / name / "ride.gpx", ride(60, 30.0))
    words = ["--mechanism", "noise", "--workers", "2", "--subject-from", "folder"]
    asked = ["batch", str(tmp_path / "rides"), "-o", str(tmp_path / "out"), *words]
    assert loaded(tmp_path, *asked, of=("scipy.linalg",)) == []
    assert len([*(tmp_path / "out").rglob("*.gpx")]) == 2


def test_a_place_with_a_name_is_shown_without_what_designs_it(tmp_path: Path) -> None:
    save_places(open_ledger(tmp_path / "trailveil"), [HOME])
    shown = loaded(tmp_path, "ledger", "show")
    assert "trailveil.release.place_noise" in shown
    assert len(shown) <= 60
    assert [name for name in shown if any(f"trailveil.{no}" in name for no in NOTHING_OF)] == []


ROOT = Path(__file__).parents[2]
MOST = 50
EXAMPLES = [
    line.removeprefix("$ trailveil ")
    for line in (ROOT / "docs/commands/design.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("$ trailveil design")
]
COUNT = """
import sys
from trailveil.cli import main
try:
    main()
finally:
    print(sum(name.split(".")[0] == "trailveil" for name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("example", EXAMPLES)
def test_design_loads_few_modules(example: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNT, *shlex.split(example)]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert int(done.stderr.split()[-1]) <= MOST


def test_parquet_is_written_without_pandas(tmp_path: Path) -> None:
    """Which pyarrow loads where it is installed: half a second of each process."""
    source, out = written(tmp_path / "a.gpx", ride(60, 30.0)), tmp_path / "a.parquet"
    words = ("protect", str(source), "-o", str(out), "--activity", "drive")
    modules = loaded(tmp_path, *words, of=("pandas", "pyarrow"))
    assert out.exists()
    assert "pyarrow" in modules
    assert "pandas" not in modules


def test_shipped_noise_takes_no_designer_and_no_linear_algebra(tmp_path: Path) -> None:
    source = written(tmp_path / "a.gpx", ride(240, 30.0))
    words = ("protect", str(source), "--mechanism", "noise", "--no-returns")
    modules = loaded(tmp_path, *words, of=("trailveil", "scipy"))
    assert "trailveil.designer.table" in modules
    assert not {"trailveil.designer.window", "scipy.linalg"} & set(modules)
