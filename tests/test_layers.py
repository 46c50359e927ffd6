"""The shape of the code: which file may import which.

Every import statement counts, those inside functions and under TYPE_CHECKING too.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# The floors of the house. A package imports from floors above its own in this list; on one floor,
# only across an arrow, from what stands before it. A package may import from itself.
ROWS = """
1  errors version
2  gp > files
3  privacy > designer traces
4  release
5  ledger checks
6  plots > studies
7  report > batch live > page api
8  cli __init__ > __main__
"""
MAY_IMPORT_MATPLOTLIB = ("plots", "report")

PACKAGE = Path(__file__).parents[1] / "trailveil"


def steps() -> dict[str, int]:
    """How far down each module or subpackage stands: it may import from smaller numbers."""
    rows = [line.split(maxsplit=1)[1] for line in ROWS.strip().splitlines()]
    groups = [group for row in rows for group in row.split(">")]
    return {name: step for step, group in enumerate(groups) for name in group.split()}


STEPS = steps()


def modules(package: Path) -> dict[str, ast.Module]:
    """The syntax tree of each file by its dotted name in the package: `design.optimal`, `cli`."""
    trees = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def imports(tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Each import as (what is wrong with its form, or nothing; the module imported)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                inside = alias.name.split(".")[0] == "trailveil"
                yield f"says import {alias.name}" if inside else "", alias.name
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "has a relative import", "trailveil"
        elif isinstance(node, ast.ImportFrom) and node.module == "trailveil":
            yield "says from trailveil import", "trailveil"
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                longer = f"{module}.{alias.name}"
                yield "", longer if longer.removeprefix("trailveil.") in known else module


def violation(name: str, target: str) -> str:
    """What is wrong with module `name` importing `target`, or nothing."""
    top = name.split(".")[0]
    if target.split(".")[0] == "matplotlib" and top not in MAY_IMPORT_MATPLOTLIB:
        return "imports matplotlib, which only plots and report/ may"
    if not target.startswith("trailveil."):
        return ""
    target_top = target.split(".")[1]
    if target_top not in STEPS:
        return f"imports {target}, which is in no row: add it to ROWS in tests/test_layers.py"
    if target_top == top or STEPS[target_top] < STEPS[top]:
        return ""
    return f"imports {target}, which is not above it"


def violations(package: Path) -> list[str]:
    """Everything in the package that breaks the rules, one line each."""
    trees = modules(package)
    found, graph = [], {}
    for name, tree in trees.items():
        if name.split(".")[0] not in STEPS:
            found.append(f"{name} is in no row: add it to its row in ROWS in tests/test_layers.py")
            continue
        # The public interface names modules, too.
        targets = [
            ("", to) if name == "__init__" else (form, to) for form, to in imports(tree, trees)
        ]
        found += [f"{name} {form}: say from trailveil.x import y" for form, _ in targets if form]
        wrong = [violation(name, target) for form, target in targets if not form]
        found += [f"{name} {what}" for what in wrong if what]
        graph[name] = {target.removeprefix("trailveil.") for _, target in targets} & trees.keys()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append("cycle: " + " imports ".join(error.args[1]))
    return found


def test_every_import_points_to_a_row_above() -> None:
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"privacy/loss.py": "from trailveil.gp.gaussian import x"}, ""),
        ({"gp/a.py": "from trailveil.gp.b import x", "gp/b.py": ""}, ""),
        ({"traces/cleaning.py": "from trailveil.privacy.loss import x"}, ""),
        ({"gp/a.py": "from trailveil.privacy import x"}, "gp.a imports trailveil.privacy, which"),
        (
            {"gp/a.py": "def f():\n    from trailveil.traces.trace import x"},
            "trailveil.traces.trace, which is not",
        ),
        ({"checks/a.py": "from trailveil.ledger.book import x"}, "trailveil.ledger.book, which is"),
        ({"gp/a.py": "from trailveil.gp.a import x"}, "cycle: gp.a"),
        ({"gp/a.py": "import trailveil.gp.gaussian"}, "says import trailveil.gp.gaussian"),
        ({"gp/a.py": "from trailveil import gp"}, "says from trailveil import"),
        ({"gp/a.py": "from .gaussian import x"}, "has a relative import"),
        ({"gp/a.py": "import matplotlib.pyplot as plt"}, "gp.a imports matplotlib"),
        ({"plots/a.py": "import matplotlib.pyplot as plt"}, ""),
        ({"report/html.py": "from matplotlib.figure import Figure"}, ""),
        ({"novelty.py": ""}, "novelty is in no row: add it"),
        ({"gp/a.py": "from trailveil.novelty import x"}, "trailveil.novelty, which is in no row"),
        (
            {
                "gp/__init__.py": "from trailveil.gp.a import x",
                "gp/a.py": "def f():\n    from trailveil.gp import x",
            },
            "cycle: gp",
        ),
        (
            {
                "cli/a.py": "from trailveil.cli import b",
                "cli/b.py": "from trailveil.cli.a import x",
            },
            "cycle: cli.",
        ),
    ],
)
def test_the_check_can_fail(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = violations(tmp_path)
    assert len(found) == bool(expected)
    assert expected in "".join(found)


# A module of so many lines that one other of its folder alone imports is a chapter of that one,
# where both fit in a file; unless the other is a table, of which it is a row, or for a reason.
A_CHAPTER, A_FILE = 150, 400
TABLES = ("studies.comparing.tables", "traces.formats.jsons")
ALONE = {
    "live.state": "keeps a file under a lock; what leaves when is another matter",
    "studies.comparing.tables": "contributors add rows to it",
    "studies.comparing.workers": "starts processes; the comparison is the same in any",
}


def chapters(package: Path) -> list[str]:
    """Modules that should stand in the one that imports them."""
    trees = modules(package)
    users: dict[str, set[str]] = {name: set() for name in trees}
    for name, tree in trees.items():
        for _, target in imports(tree, trees):
            users.get(target.removeprefix("trailveil."), set()).add(name)
    found = []
    for name, by in users.items():
        if len(by) != 1 or name in ALONE:
            continue
        (user,) = by
        near = name.rpartition(".")[0] in (user, user.rpartition(".")[0])
        path = package / Path(*name.split(".")).with_suffix(".py")
        other = package / Path(*user.split("."))
        other = other / "__init__.py" if other.is_dir() else other.with_suffix(".py")
        if not near or user in TABLES or not path.exists():
            continue
        lines = [len(each.read_text(encoding="utf-8").splitlines()) for each in (path, other)]
        if lines[0] <= A_CHAPTER and sum(lines) <= A_FILE:
            found.append(f"{name} is a chapter of {user}")
    return found


def test_a_short_module_is_no_chapter_of_another() -> None:
    assert chapters(PACKAGE) == []


def test_a_chapter_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "gp").mkdir()
    (tmp_path / "gp/a.py").write_text("from trailveil.gp.b import x\n", encoding="utf-8")
    (tmp_path / "gp/b.py").write_text("x = 1\n" * A_CHAPTER, encoding="utf-8")
    assert chapters(tmp_path) == ["gp.b is a chapter of gp.a"]
    (tmp_path / "gp/a.py").write_text("x = 1\n" * A_FILE, encoding="utf-8")
    assert chapters(tmp_path) == []
