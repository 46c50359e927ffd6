"""Habits that no linter holds: short files and functions, names that are explained, plain text."""

import ast
import re
import subprocess
from codecs import decode
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_FILE_LINES = 400
MAX_BODY_LINES = 50

UNEXPLAINED_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[[\w, -]+\]\s+#\s*\w)")
# Text says what is so, not who wrote it and on which machine. In ROT13, to pass its own check.
PATHS = decode("/jbex/|/ebbg/", "rot13")
WORDS = decode("nffvfgnagf?|ynathntr zbqryf?|YYZf?|NVf?|pungobgf?|fhontragf?", "rot13")
SESSIONS = decode("(?:guvf|rneyvre|yngre|arkg) frffvba", "rot13")
OUT_OF_PLACE = re.compile(rf"(?<![\w.])(?:{PATHS})|\b(?:{WORDS}|{SESSIONS})\b")
TEXT = {"", ".cfg", ".html", ".ini", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}

Finder = Callable[[str], Iterator[str]]


@cache
def repository() -> list[Path]:
    """Every file of the repository, or about to be added to it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for name in names.split("\0") if name and (path := ROOT / name).is_file())


def code(*folders: str) -> list[Path]:
    """The Python files in these folders."""
    files = [path for path in repository() if path.suffix == ".py"]
    return [path for path in files if path.relative_to(ROOT).parts[0] in folders]


def asserts(text: str) -> Iterator[str]:
    """Assertions: they vanish under `python -O`, and say nothing to the user."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assert):
            yield f"{node.lineno}: assert; raise an error of trailveil.errors"


def long_files(text: str) -> Iterator[str]:
    """A file that is too long to be read at a sitting."""
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        yield f"1: {lines} lines; at most {MAX_FILE_LINES}"


def long_functions(text: str) -> Iterator[str]:
    """Functions whose body, docstring aside, is too long."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > MAX_BODY_LINES:
                yield f"{node.lineno}: {node.name} has {lines} lines; at most {MAX_BODY_LINES}"


def undocumented(text: str) -> Iterator[str]:
    """Public modules, classes, functions and methods without a docstring."""
    pending: list[ast.Module | ast.stmt] = [ast.parse(text)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (
            node.name.startswith("_") or "overload" in map(ast.unparse, node.decorator_list)
        ):
            continue
        if "overload" in map(ast.unparse, getattr(node, "decorator_list", [])):
            continue
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if not ast.get_docstring(node):
                name = getattr(node, "name", "the module")
                yield f"{getattr(node, 'lineno', 1)}: {name} has no docstring"
            pending += [] if isinstance(node, ast.FunctionDef) else node.body


def unexplained_ignores(text: str) -> Iterator[str]:
    """Type errors that are ignored without their code, or without a reason beside it."""
    for number, line in enumerate(text.splitlines(), 1):
        if UNEXPLAINED_IGNORE.search(line):
            yield f"{number}: say `type: ignore[code]  # why`"


def out_of_place(text: str) -> Iterator[str]:
    """Text about how the text came about."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := OUT_OF_PLACE.search(line):
            yield f"{number}: {found.group()!r} does not belong here"


CHECKS: list[tuple[Finder, Callable[[], list[Path]]]] = [
    (asserts, lambda: code("trailveil")),
    (long_files, lambda: code("trailveil", "tests", "benchmarks")),
    (long_functions, lambda: code("trailveil", "tests", "benchmarks")),
    (undocumented, lambda: code("trailveil")),
    (unexplained_ignores, lambda: code("trailveil", "tests", "benchmarks")),
    (out_of_place, lambda: [path for path in repository() if path.suffix in TEXT]),
]


@pytest.mark.parametrize(("find", "files"), CHECKS, ids=[find.__name__ for find, _ in CHECKS])
def test_habit(find: Finder, files: Callable[[], list[Path]]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{what}"
        for path in files()
        for what in find(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("find", "bad", "good"),
    [
        (asserts, "def f(x):\n    assert x", "def f(x):\n    raise ValueError"),
        (long_files, "\n" * 401, "\n" * 400),
        (long_functions, "def f():\n" + "    x\n" * 51, "def f():\n    'doc'\n" + "    x\n" * 50),
        (undocumented, "'doc'\ndef f(): pass", "'doc'\ndef f():\n    'doc'\n    def g(): pass"),
        (undocumented, "'doc'\nclass C:\n    'doc'\n    def f(self): pass", "'doc'\ndef _f(): 0"),
        (undocumented, "x = 1", "'doc'\nclass C:\n    'doc'\n    def __len__(self): return 0"),
        (unexplained_ignores, "x  # type: " + "ignore[misc]", "x  # type: ignore[misc]  # why"),
        (unexplained_ignores, "x  # type: " + "ignore", "x  # type of fix: ignored"),
        (out_of_place, "see " + PATHS.split("|")[0], "from home to work/study, ../root/"),
        (out_of_place, "as an " + WORDS.split("|")[0].strip("s?"), "it assists; session=3; PAIs"),
    ],
)
def test_the_check_can_fail(find: Finder, bad: str, good: str) -> None:
    assert len(list(find(bad))) == 1
    assert list(find(good)) == []


def test_no_class_name_stands_twice() -> None:
    """One idea has one type, which is found by its name. Private ones are of their file alone."""
    names = Counter(
        node.name
        for path in (ROOT / "trailveil").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    )
    assert [name for name, count in names.items() if count > 1] == []


FILLERS = re.compile("one|found|made|told|left|seen|kept|wanted|there|rest|beside|own")


def names(text: str) -> Iterator[str]:
    """Every identifier, as often as it stands."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


def test_names_say_what_they_hold() -> None:
    """Words that fit everything are less than one name in 200 of the package."""
    whole = [name for path in code("trailveil") for name in names(path.read_text("utf-8"))]
    assert sum(bool(FILLERS.fullmatch(name)) for name in whole) < 0.005 * len(whole)
