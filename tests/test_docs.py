"""Documents say what the code does: their examples run, each command has a page.

The demo's output is real.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from trailveil.cli import COMMANDS, cli
from trailveil.studies.datasets.day import simulated_day
from trailveil.traces.formats import write
from trailveil.traces.streets.town import write_example

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples(text: str) -> list[str]:
    """The commands after `$ ` in console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def readings(seed: int) -> str:
    """A room for two days, every half hour."""
    random = np.random.default_rng(seed)
    rows = [
        f"2024-05-{14 + row // 48}T{row % 48 // 2:02}:{30 * (row % 2):02}:00Z,{value:.2f}"
        for row, value in enumerate(21 + np.cumsum(random.normal(0, 0.2, 96)))
    ]
    return "\n".join(["time,temperature (degC)", *rows])


def run(line: str) -> str:
    words = shlex.split(line)
    assert words[0] == "trailveil", line
    result = CliRunner().invoke(cli, words[1:], catch_exceptions=False)
    assert result.exit_code == 0, f"{line}: {result.output}"
    return result.output


WITH_EXAMPLES = [page for page in PAGES if examples(page.read_text(encoding="utf-8"))]
TOGETHER = [page for page in WITH_EXAMPLES if page.name in {"README.md", "demo.md"}]
# Tutorials make their own files, and are run by test_tutorials.py.
ELSEWHERE = [page for page in WITH_EXAMPLES if page.parent.name == "tutorials"]
OTHERS = [page for page in WITH_EXAMPLES if page not in [*TOGETHER, *ELSEWHERE]]


def test_documents_have_examples() -> None:
    assert ROOT / "README.md" in WITH_EXAMPLES
    assert len(WITH_EXAMPLES) >= len(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(page)


@pytest.mark.slow
def test_examples_of_the_readme_and_the_demo_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other in one folder; and the README shows what the demo prints."""
    monkeypatch.chdir(tmp_path)
    for page in TOGETHER:
        run_examples(page)
    shown = re.search(
        r"<!-- demo -->\n```text\n(.*?)```\n<!-- end of demo -->",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    assert shown is not None
    assert run("trailveil demo -o demo").strip() == shown[1].strip()


def run_examples(page: Path) -> None:
    """In the working folder, which holds the files that examples are about."""
    with Path("ride.gpx").open("wb") as out:
        write(simulated_day(), out, ".gpx")
    for number, name in enumerate(("room.csv", "other-room.csv")):
        Path(name).write_text(readings(number))
    write_example(Path())
    text = page.read_text(encoding="utf-8")
    settings = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    Path("settings.toml").write_text("".join(settings), encoding="utf-8")
    for line in examples(text):
        # The demo is run with a folder of its own, and the page waits for a person (tests/browser).
        if line != "trailveil demo" and not line.startswith("trailveil open"):
            run(line)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_page_and_an_example(name: str) -> None:
    pages = [page for page in PAGES if page.stem == name]
    assert pages, f"docs/commands/{name}.md is missing"
    assert f"$ trailveil {name}" in pages[0].read_text(encoding="utf-8")
    help_text = CliRunner().invoke(cli, [name, "--help"]).output
    assert "Example" in help_text
    assert f"trailveil {name}" in help_text


def test_links_between_documents_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_documents_name_are_there() -> None:
    folders = ("trailveil", "tests", "benchmarks")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    files = [f"/{path.relative_to(ROOT)}" for path in paths]
    for page in PAGES:
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8")):
            # A path is from the root, or from one of these folders; a name alone is of any file.
            whole = [f"/{name}", *(f"/{folder}/{name}" for folder in folders)]
            named = files if "/" not in name else [file for file in files if file in whole]
            assert any(file.endswith(f"/{name}") for file in named), f"{page.name} names {name}"


def test_code_that_the_page_of_the_paper_names_is_there() -> None:
    """Each row names a definition, or a field of a class: the last part of a dotted name."""
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    rows = page.split("## Row by row")[1].split("\n\n## ")[0]
    names = {name.split(".")[-1] for name in re.findall(r"`([\w.]+)`", rows)} - {"py"}
    assert len(names) > 15
    files = [path for folder in ("trailveil", "tests") for path in (ROOT / folder).rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    defined = set(re.findall(r"(?:def |class |^    )(\w+)(?=[(:])", code, flags=re.MULTILINE))
    assert names - defined == set()
