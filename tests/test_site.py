"""The documents as a site: it is built without a warning, whole, and asks no host for anything."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
from click.testing import CliRunner

import trailveil as tv
from docs.site.gallery import EXAMPLES, ORDER, picture
from docs.site.notebooks import notebook
from docs.site.options import all_options
from trailveil.cli import COMMANDS, cli

ROOT = Path(__file__).parent.parent
PAGES = [page.relative_to(ROOT).with_suffix("") for page in ROOT.glob("docs/**/*.md")]
# What a browser fetches by itself, unlike `a href`.
FETCHED = {"src", "srcset", "data", "poster", "background", "action", "formaction"}


class Page(HTMLParser):
    """What a page links to, what it fetches, and the names of its places."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.places.add(value or "")
            elif name in FETCHED or (tag == "link" and name == "href"):
                self.fetched.add(value or "")
            elif name == "style":
                self.fetched.update(urls(value or ""))
            elif tag == "a" and name == "href":
                self.links.add(value or "")


def urls(css: str) -> list[str]:
    found = re.findall(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""", css)
    return [one or other for one, other in found if not (one or other).startswith("data:")]


def elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, trees = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("trees")
    asked = ["-W", "--keep-going", "-q", "-c", "docs/site", "-d", str(trees), ".", str(made)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return made


@pytest.mark.slow
def test_the_site_has_every_page_and_its_navigation_leads_to_each(site: Path) -> None:
    assert "README.html" in (site / "index.html").read_text(encoding="utf-8")
    navigation = {urlsplit(link).path for link in Page(site / "README.html").links}
    for page in PAGES:
        assert (site / page).with_suffix(".html").is_file(), page
        assert page.with_suffix(".html").as_posix() in navigation


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    checked = 0
    for path, page in pages.items():
        for link in [*page.links, *page.fetched]:
            parts = urlsplit(link)
            if elsewhere(link) or parts.scheme in {"mailto", "data"}:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].places, f"{path.name}: {link}"
                checked += 1
    assert checked > 100


@pytest.mark.slow
def test_no_page_of_the_site_asks_another_host_for_anything(site: Path) -> None:
    fetched = {one for path in site.rglob("*.html") for one in Page(path).fetched}
    styles = {url for path in site.rglob("*.css") for url in urls(path.read_text("utf-8"))}
    drawn = {
        one
        for path in site.rglob("*.svg")
        for one in re.findall(r"""(?:href|src)=["']([^"'#]+)""", path.read_text("utf-8"))
    }
    assert len(fetched) > 5
    assert [one for one in fetched | styles | drawn if elsewhere(one)] == []
    for path in site.rglob("*.js"):
        loads = re.findall(r"""(?:fetch|import|open|src=)\(?["'](?:https?:)?//""", path.read_text())
        assert loads == [], path.name


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ('<link rel="preconnect" href="https://fonts.example">', ["https://fonts.example"]),
        ('<script src="//cdn.example/x.js"></script>', ["//cdn.example/x.js"]),
        ('<p style="background: url(http://a.example/b)">', ["http://a.example/b"]),
        ('<a href="https://a.example">read</a><img src="data:image/png;base64,AA">', []),
    ],
)
def test_what_a_browser_would_fetch_is_noticed(
    address: str, found: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(address, encoding="utf-8")
    assert [one for one in Page(path).fetched if elsewhere(one)] == found


def commands(command: click.Command, words: list[str]) -> list[list[str]]:
    below = command.commands if isinstance(command, click.Group) else {}
    return [words, *(line for name, one in below.items() for line in commands(one, [*words, name]))]


def every_command() -> list[list[str]]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    return [line for name, one in found.items() if one for line in commands(one, [name])]


def said_by_help(words: list[str]) -> dict[str, str | None]:
    """Each option that `--help` lists, and the default that it states."""
    text = CliRunner().invoke(cli, [*words, "--help"], terminal_width=10_000).output
    listed = re.search(r"\nOptions:\n(.*?)(\n\n|\Z)", text, flags=re.DOTALL)
    assert listed is not None
    items = re.split(r"\n  (?=-)", "\n" + listed[1])[1:]
    stated = {}
    for item in items:
        names = re.findall(r"--[a-z-]+", item.split("  ")[0])
        text = " ".join(item.split())
        default = re.search(r"\[default: (.*?)(?:;|\])|[Dd]efault: (.*?)\.( |$)", text)
        stated[names[0]] = (default[1] or default[2]) if default else None
    return stated


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_the_table_of_a_command_is_what_its_help_says(words: list[str]) -> None:
    section = all_options(words[0])
    part = re.search(
        rf"^trailveil {' '.join(words)} .*?\n```\n\n(.*?)(?=\n```|\Z)", section, re.DOTALL | re.M
    )
    assert part is not None
    rows = {}
    for line in part[1].splitlines()[2:]:
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) == 5:
            names = re.findall(r"--[a-z-]+", cells[1])
            rows[names[0]] = re.sub(r"\\(.)", r"\1", cells[3].strip())
    stated = said_by_help(words)
    assert rows.keys() == stated.keys()
    for name, default in stated.items():
        assert rows[name] == default if default else rows[name] != ""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_names_every_option(name: str, site: Path) -> None:
    text = (site / "docs" / "commands" / f"{name}.html").read_text(encoding="utf-8")
    tables = "".join(re.findall(r"<table.*?</table>", text, flags=re.DOTALL))
    plain = re.sub(r"<[^>]+>", "", tables)
    for words in every_command():
        if words[0] == name:
            assert [option for option in said_by_help(words) if option not in plain] == []


def test_the_reference_has_every_public_name(site: Path) -> None:
    page = (site / "docs/api.html").read_text(encoding="utf-8")
    for name in set(tv.__all__) - {"__version__"}:
        assert f"tv.{name}<" in page
    text = re.sub(r"<[^>]+>", "", page)
    assert "tv.Secret.at(times, *, recorded)" in text
    assert "metres of the 68 % circle that is left" in text


def test_the_gallery_has_every_example_by_the_public_interface_alone() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(ORDER)
    listed = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    for name in ORDER:
        program = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert "import trailveil as tv" in program
        assert "from trailveil" not in program
        assert f"gallery/{name}.py" in listed


@pytest.mark.slow
def test_the_gallery_shows_the_picture_that_each_example_makes(site: Path) -> None:
    page = (site / "docs/gallery.html").read_text(encoding="utf-8")
    for name in ORDER:
        assert f'src="gallery/{name}.svg"' in page
        assert (site / f"docs/gallery/{name}.svg").read_text(encoding="utf-8").count("<path") > 10


def test_an_example_that_fails_ends_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong.py").write_text("raise ValueError('no picture')", encoding="utf-8")
    monkeypatch.setattr("docs.site.gallery.EXAMPLES", tmp_path)
    with pytest.raises(
        RuntimeError, match="the example wrong must run, got: ValueError: no picture"
    ):
        picture("wrong")


@pytest.mark.slow
def test_each_tutorial_is_a_notebook_as_well(site: Path) -> None:
    for page in (ROOT / "docs/tutorials").glob("*.md"):
        assert f'href="{page.stem}.ipynb"' in (site / f"docs/tutorials/{page.stem}.html").read_text(
            encoding="utf-8"
        )
        held = json.loads((site / f"docs/tutorials/{page.stem}.ipynb").read_text(encoding="utf-8"))
        code = [cell["source"] for cell in held["cells"] if cell["cell_type"] == "code"]
        blocks = re.findall(r"^```(?:python|console)$", page.read_text(), flags=re.MULTILINE)
        assert len(code) == len(blocks) > 2
        assert held["nbformat"] == 4
        assert len({cell["id"] for cell in held["cells"]}) == len(held["cells"])


def test_a_notebook_has_the_lines_of_its_page_and_not_what_they_print() -> None:
    page = "# Title\n\n```python\nx = 1\n```\n\n```text\n1\n```\n\nThen\n\n```console\n$ ls\n```\n"
    cells = json.loads(notebook(page))["cells"]
    assert [(cell["cell_type"], cell["source"]) for cell in cells] == [
        ("markdown", "# Title"),
        ("code", "x = 1"),
        ("markdown", "Then"),
        ("code", "!ls"),
    ]
