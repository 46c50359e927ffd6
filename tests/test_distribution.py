"""The wheel and the sdist: built, checked, and used without the repository."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is made of it, as an index would have them."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def test_an_index_would_take_them(built: tuple[Path, Path]) -> None:
    assert run(sys.executable, "-m", "twine", "check", "--strict", *built).count("PASSED") == 2


def test_the_sdist_holds_what_the_tests_and_documents_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "docs/paper.md"} <= names
    assert "tests/test_distribution.py" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".part")]


def test_the_wheel_works_without_the_repository(built: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")  # what was just built
    assert {"trailveil/designer/table.zip", "trailveil/py.typed"} <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"trailveil"}
    here = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "installed"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    where = "import trailveil; print(trailveil.__file__)"
    assert run(sys.executable, "-c", where, cwd=tmp_path, env=here).startswith(
        str(tmp_path / "installed")
    )
    make = "import trailveil as tv;tv.write(tv.datasets.simulated_day(), 'ride.gpx')"
    run(sys.executable, "-c", make, cwd=tmp_path, env=here)
    words = ("protect", "ride.gpx", "--mechanism", "noise", "--at", "start+2h")
    run(sys.executable, "-m", "trailveil", *words, cwd=tmp_path, env=here)
    assert (tmp_path / "ride.private.gpx").exists()
