"""How the documents become a site: `make docs`. The pages themselves know nothing of it.

The root of the repository is the source, so that links in the pages lead where they lead on any
other reader. What only the site has is added as pages are read: the navigation, which is on the
start page, and behind each page of a command the table of its options.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.site.gallery import gallery  # noqa: E402 - only now it can be found
from docs.site.notebooks import notebook  # noqa: E402
from docs.site.options import all_options  # noqa: E402
from docs.site.reference import reference  # noqa: E402
from trailveil.cli import COMMANDS  # noqa: E402
from trailveil.version import __version__  # noqa: E402

project = "Trailveil"
version = release = __version__
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "docs/**.md"]
exclude_patterns = [".*", "build", "trailveil", "tests", "benchmarks"]
myst_heading_anchors = 4  # as GitHub names them
nitpicky = True

html_theme = "furo"
html_title = f"Trailveil {__version__}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None

# What each part of the navigation holds, as far as there are such pages.
NAVIGATION = {
    "Tutorials": ["tutorials/share-a-ride", "tutorials/protect-a-study", "tutorials/compare"],
    "Commands": [f"commands/{name}" for name in COMMANDS],
    "What is promised": [
        *("guarantees", "activities", "security", "report", "recurring-places", "validation")
    ],
    "Python": ["api", "gallery"],
    "Priors and files": ["priors", "formats", "scaling"],
    "Background": ["paper", "decisions"],
    "Help": ["glossary", "troubleshooting"],
}
START = """\
<!doctype html><meta charset="utf-8"><title>Trailveil</title>
<meta http-equiv="refresh" content="0; url=README.html"><a href="README.html">Trailveil</a>
"""


def navigation() -> str:
    """The tables of contents, of the pages that there are; pages that nobody named come last."""
    there = {
        page.relative_to(ROOT).with_suffix("").as_posix() for page in ROOT.glob("docs/**/*.md")
    }
    parts = {
        title: [f"docs/{name}" for name in names if f"docs/{name}" in there]
        for title, names in NAVIGATION.items()
    }
    parts["Help"] += sorted(there - {name for names in parts.values() for name in names})
    parts["Help"] += ["CONTRIBUTING"]
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(names) + "\n```\n"
        for title, names in parts.items()
        if names
    )


def add(app: Sphinx, docname: str, content: list[str]) -> None:
    """Add to a page what only the site has."""
    folder, _, name = docname.rpartition("/")
    if docname == root_doc:
        content[0] += navigation()
    elif folder == "docs/commands" and name in COMMANDS:
        content[0] += "\n" + all_options(name)
    elif docname == "docs/api":
        content[0] += "\n" + reference()
    elif folder == "docs/tutorials":
        whole = notebook(content[0])
        (place := Path(app.outdir) / folder).mkdir(parents=True, exist_ok=True)
        (place / f"{name}.ipynb").write_text(whole, encoding="utf-8")
        content[0] += f'\n<a href="{name}.ipynb" download>This page as a notebook</a>\n'
    elif docname == "docs/gallery":
        content[0] += "\n" + gallery(Path(app.outdir) / "docs" / "gallery")


def finish(app: Sphinx, exception: Exception | None) -> None:
    """The site begins where people look for it."""
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / "index.html").write_text(START, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """What Sphinx calls with the application that it has made."""
    app.connect("source-read", add)
    app.connect("build-finished", finish)
