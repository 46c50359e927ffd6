"""The package's description, its locks and its imports agree."""

import ast
import re
import sys
import tomllib
from importlib.metadata import Distribution, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repo_review.processor import process

from trailveil.version import __version__

ROOT = Path(__file__).parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUN_TIME: list[str] = PYPROJECT["project"]["dependencies"]
GROUPS: dict[str, list[Any]] = PYPROJECT["dependency-groups"]
BUILD: list[str] = GROUPS["build"]
DEV: list[str] = [item for item in GROUPS["dev"] if isinstance(item, str)]
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
DEMO = RUN_TIME + BUILD + EXTRAS["plots"] + EXTRAS["page"]
LOCKED_LINE = re.compile(r"#.*|\S+==[^ ]+( ; [^/]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
OPTIONAL_MODULES = {"flint", "geopandas", "matplotlib", "movingpandas"}
OPTIONAL_MODULES |= {"dask", "distributed", "pandas", "pyarrow", "starlette"}
OPTIONAL_MODULES |= {"osmium", "uvicorn"}


def lock(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "asked"),
    [("requirements.txt", DEMO), ("requirements-dev.txt", RUN_TIME + BUILD + DEV)],
)
def test_a_lock_pins_all_that_is_asked_for_and_names_no_place(name: str, asked: list[str]) -> None:
    assert [line for line in lock(name).splitlines() if not LOCKED_LINE.fullmatch(line)] == []
    pins = re.findall(r"^(\S+)==(\S+)", lock(name), flags=re.MULTILINE)
    pinned = {canonicalize_name(package): release for package, release in pins}
    assert len(pinned) == len(pins), "one version of each, whatever the Python"
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])


def test_both_locks_pin_the_same_versions() -> None:
    small, large = (
        set(re.findall(r"^\S+==\S+", lock(name), flags=re.MULTILINE))
        for name in ("requirements.txt", "requirements-dev.txt")
    )
    assert small <= large


def test_the_version_is_written_once() -> None:
    assert version("trailveil") == __version__


def test_nothing_needed_at_run_time_is_copyleft() -> None:
    pending, seen = [Requirement(line) for line in RUN_TIME], set()
    while pending:
        requirement = pending.pop()
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate()):
            continue
        seen.add(requirement.name)
        found = Distribution.from_name(requirement.name)
        headers = found.metadata
        stated = headers.get_all("License-Expression") or headers.get_all("License") or []
        stated = [text.split("\n")[0] for text in stated]
        stated += [line for line in headers.get_all("Classifier") or [] if "License ::" in line]
        assert "GPL" not in "".join(stated), f"{requirement.name}: {stated}"
        pending += [Requirement(line) for line in found.requires or [] if "extra ==" not in line]
    assert len(seen) >= len(RUN_TIME) - 1


def test_every_import_of_the_package_is_declared() -> None:
    declared = {Requirement(line).name for line in RUN_TIME} | OPTIONAL_MODULES | {"trailveil"}
    imported = set()
    for path in (ROOT / "trailveil").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.split(".")[0])
    assert imported - declared - set(sys.stdlib_module_names) == set()


def test_the_scientific_python_review_has_no_finding_that_is_not_answered() -> None:
    review = process(ROOT)
    assert len(review.results) > 40
    assert [check.name for check in review.results if check.result is False] == []
