"""Every line of the tutorials runs, in order, and prints what the page shows."""

import contextlib
import io
import re
import shlex
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest
from click.testing import CliRunner

from trailveil.cli import cli

TUTORIALS = sorted((Path(__file__).parent.parent / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def printed_by(kind: str, block: str, names: dict[str, object], where: str) -> str:
    """Run a block of Python in the page's namespace, or the commands of a console."""
    if kind == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, where, "exec"), names)
        return out.getvalue()
    said = ""
    for line in block.splitlines():
        assert line.startswith("$ trailveil "), f"{where}: {line}"
        result = CliRunner().invoke(cli, shlex.split(line)[2:], catch_exceptions=False)
        assert result.exit_code == 0, f"{where}: {line}: {result.output}"
        said += result.output
    return said


def run_page(text: str, where: str) -> int:
    """Run all blocks; a text block shows what the one above it printed ("..." for anything)."""
    names: dict[str, object] = {}
    printed, shown = "", 0
    for kind, block in BLOCK.findall(text):
        if kind != "text":
            printed = printed_by(kind, block, names, where)
            continue
        same = OutputChecker().check_output(block, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
        assert same, f"{where} shows\n{block}\nand prints\n{printed}"
        shown += 1
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"^```(\w+)$", text, flags=re.MULTILINE)) <= {"python", "console", "text"}
    assert run_page(text, page.name) >= 3


def test_a_page_that_shows_something_else_is_noticed() -> None:
    page = "```python\nprint(1 + 1)\n```\n\n```text\n{}\n```\n"
    assert run_page(page.format("2"), "page") == 1
    with pytest.raises(AssertionError, match="shows"):
        run_page(page.format("3"), "page")


def test_tutorials_import_the_public_interface_alone() -> None:
    for page in TUTORIALS:
        imports = re.findall(r"^(?:import|from) trailveil.*$", page.read_text(), flags=re.MULTILINE)
        assert set(imports) <= {"import trailveil as tv"}, page.name
