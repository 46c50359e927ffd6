"""The shape of the code: which file may import which.

Every import statement counts, those inside functions and under TYPE_CHECKING too.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# One row of the design for each line. A file imports only from rows above its own; within a row,
# only across an arrow, from what stands before it. A subpackage (slash) may import from itself.
# Rows 1 to 5 are mathematics, and know nothing of traces, which begin at row 6.
ROWS = """
 0  errors version > wording threads
 1  arithmetic clocks > gaussian > extended randomness balls
 2  kernels secrets mechanism privacy/
 3  statespace > chains > filtering > markov > residual > points > prior
 4  extended_loss parallel coupled fix_losses > precision > loss rows conditional
 4  stationary > anytime guarantee composition values_beside > adversary > adversaries marginals fit
 4  priors recurring misspecification theorems calibration/ certified/
 5  designer/
 6  activities fields strays > trace > traces/ zones > readings projection > cleaning stops formats/
 6  datasets/ prior_file visits loading frames streets/ > returns
 7  arrays output stated_times > selection
 7  cutting design_cache kept keys crops retiming common > ledger/ demands
 7  designing request > place_noise release > halving drawing > readings_release > places
 7  everywhere recorded beside utility > unions > place_accounts > accounting > published > counting
 7  protecting calibrating
 7  releasing scan/ > attacks/ > verifying
 8  plots/ > report/
 9  batch/ experiments/ > page/ api
10  cli/ __init__ > __main__
"""
MAY_IMPORT_MATPLOTLIB = ("plots", "report")

PACKAGE = Path(__file__).parents[1] / "trailveil"


def steps() -> dict[str, int]:
    """How far down each module or subpackage stands: it may import from smaller numbers."""
    rows = [line.split(maxsplit=1)[1] for line in ROWS.strip().splitlines()]
    groups = [group for row in rows for group in row.split(">")]
    return {name.strip("/"): step for step, group in enumerate(groups) for name in group.split()}


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
        ({"loss.py": "from trailveil.gaussian import x"}, ""),
        ({"designer/a.py": "from trailveil.designer.b import x", "designer/b.py": ""}, ""),
        ({"cleaning.py": "from trailveil.trace import Trace"}, ""),
        ({"loss.py": "from trailveil.designer import x"}, "loss imports trailveil.designer, which"),
        (
            {"loss.py": "def f():\n    from trailveil.trace import x"},
            "trailveil.trace, which is not",
        ),
        ({"kernels.py": "from trailveil.secrets import x"}, "trailveil.secrets, which is not"),
        ({"kernels.py": "from trailveil.kernels import x"}, "cycle: kernels"),
        ({"loss.py": "import trailveil.gaussian"}, "says import trailveil.gaussian"),
        ({"loss.py": "from trailveil import gaussian"}, "says from trailveil import"),
        ({"loss.py": "from .gaussian import x"}, "has a relative import"),
        ({"formats/x.py": "from .y import x"}, "formats.x has a relative import"),
        ({"loss.py": "import matplotlib.pyplot as plt"}, "loss imports matplotlib"),
        ({"plots.py": "import matplotlib.pyplot as plt"}, ""),
        ({"report/html.py": "from matplotlib.figure import Figure"}, ""),
        ({"novelty.py": ""}, "novelty is in no row: add it"),
        ({"loss.py": "from trailveil.novelty import x"}, "trailveil.novelty, which is in no row"),
        (
            {
                "designer/__init__.py": "from trailveil.designer.a import x",
                "designer/a.py": "def f():\n    from trailveil.designer import x",
            },
            "cycle: designer",
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
