"""A page of HTML in one file: titles, sentences, tables and pictures, and no request to anywhere.

It is well-formed XML, too. There is no script in it, and its content policy forbids all but its own
style sheet. Every text goes through `escaped`; what cannot be seen in a text (controls, marks of
direction) is shown as a replacement character, so that a name is read as it is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from trailveil.plots import THEME
from trailveil.report.parts import Cell, Item, Section, Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_UNSEEN = "\ufffd"
# Lists by the mark of their items: of warnings, and of what belongs to the item before.
_KINDS = {"! ": ' class="warn"', "   - ": ' class="of"'}


@dataclass(frozen=True, slots=True)
class Page:
    """All of a page. private: whether it is for its owner alone.

    lead: what is said first. items: above all sections.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    foot: str
    private: bool
    items: Sequence[Item] = ()


def rendered(page: Page) -> bytes:
    """The page as a file. Equal pages are equal bytes."""
    title = f"PRIVATE: {page.title}" if page.private else page.title
    mark = "private" if page.private else "note"
    body = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8" />',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}" />',
        '<meta name="viewport" content="width=device-width, initial-scale=1" />',
        '<meta name="referrer" content="no-referrer" />',
        '<meta name="color-scheme" content="light dark" />',
        f"<title>{escaped(title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        '<a class="skip" href="#content">Skip to the content</a>',
        '<main id="content" tabindex="-1">',
        f"<h1>{escaped(title)}</h1>",
        f'<div class="{mark}">\n<p>{escaped(page.lead)}</p>\n</div>',
        *_elements(page.items),
        *(line for section in page.sections for line in _section(section)),
        "</main>",
        "<footer>",
        f"<p>{escaped(page.foot)}</p>",
        "</footer>",
        "</body>",
        "</html>",
    ]
    return ("\n".join(body) + "\n").encode()


def escaped(text: str) -> str:
    """A text as it may stand anywhere in a page, in an attribute, too."""
    return escape("".join(c if c.isprintable() else _UNSEEN for c in text), quote=True)


def _section(section: Section) -> list[str]:
    lines = ["<section>", f"<h2>{escaped(section.title)}</h2>", *_elements(section.items)]
    for picture in section.pictures:
        words = f"<figcaption>{escaped(picture.words)}</figcaption>"
        lines += ["<figure>", picture.svg, words, "</figure>"]
    lines += _elements(section.below)
    return [*lines, *(line for table in section.tables for line in _table(table)), "</section>"]


def _elements(items: Sequence[Item]) -> list[str]:
    """Paragraphs, lists, and a heading for what is numbered."""
    elements: list[str] = []
    for mark, group in groupby(items, key=lambda item: item.mark or ""):
        words = [escaped(item.words) for item in group]
        if not mark.strip():
            elements += [f"<p>{word}</p>" for word in words]
        elif mark[0].isdigit():
            elements += [f"<h3>{escaped(mark.strip())} {word}</h3>" for word in words]
        else:
            kind = _KINDS.get(mark, "")
            elements += [f"<ul{kind}>", *(f"<li>{word}</li>" for word in words), "</ul>"]
    return elements


def _table(table: Table) -> list[str]:
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in table.head)
    return [
        "<table>",
        f"<caption>{escaped(table.caption)}</caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
        *(_row(row) for row in table.rows),
        "</tbody>",
        "</table>",
    ]


def _row(row: tuple[Cell, ...]) -> str:
    first, *others = (_cell(cell) for cell in row)
    cells = "".join(f"<td>{other}</td>" for other in others)
    return f'<tr><th scope="row">{first}</th>{cells}</tr>'


def _cell(cell: Cell) -> str:
    shown, value = escaped(cell.shown), cell.value
    if value is None:
        return shown
    exact = value if isinstance(value, int) else float(value)  # numpy's write their type
    return f'<data value="{exact!r}">{shown}</data>'


DARK = {
    "--ink": "#e8eaed",
    "--muted": "#a8b0b8",
    "--paper": "#14171a",
    "--grid": "#39414a",
    "--released": "#6cb8ff",
    "--recorded": "#f0a85c",
    "--circle": "#ff8a80",
    "--noise": "#b9a5ff",
}


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"{name}: {value};" for name, value in colours.items())


LIGHT = {name: colour for colour, name in THEME.items()}
"""Colours by name on a light background; each that stands for something has 4.5 to 1 on it."""
STYLE = f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
main:focus {{ outline: none; }}
main, footer {{ max-width: 44rem; margin: 0 auto; padding: 0 1rem; overflow-wrap: break-word; }}
h1, h2, h3, p, li {{ overflow-wrap: anywhere; }}
h1 {{ font-size: 1.45rem; line-height: 1.25; margin: 1.2rem 0 .6rem; }}
h2 {{ font-size: 1.15rem; line-height: 1.3; margin: 2rem 0 .5rem; padding-top: .8rem;
  border-top: 1px solid var(--grid); }}
h3 {{ font-size: 1rem; margin: 1.2rem 0 .3rem; }}
p, ul, ol {{ margin: .5rem 0; }}
ul {{ padding-left: 1.2rem; }}
li {{ margin: .25rem 0; }}
.note {{ border-left: .3rem solid var(--released); padding: .1rem 0 .1rem .8rem; }}
.private {{ border: .2rem solid var(--circle); padding: .4rem .8rem; font-weight: 600; }}
.warn {{ list-style: none; padding-left: 0; }}
.warn li {{ border-left: .3rem solid var(--circle); padding-left: .7rem; margin: .6rem 0; }}
.of {{ margin-left: .8rem; }}
figure {{ margin: .8rem 0; }}
figcaption {{ color: var(--muted); font-size: .9rem; }}
svg.chart {{ display: block; width: 100%; max-width: 32rem; height: auto; }}
svg.chart[aria-labelledby^="map"] {{ max-width: 44rem; }}
svg.chart text {{ font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
svg.chart * {{ stroke-linejoin: round; stroke-linecap: butt; }}
table {{ border-collapse: collapse; width: 100%; max-width: 32rem; font-size: .95rem; }}
caption {{ text-align: left; color: var(--muted); font-size: .9rem; padding-bottom: .3rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .5rem .3rem 0;
  border-bottom: 1px solid var(--grid); font-weight: 400; }}
thead th {{ color: var(--muted); white-space: nowrap; }}
td {{ font-variant-numeric: tabular-nums; min-width: 4.2rem; }}
footer {{ color: var(--muted); font-size: .85rem; margin-top: 2rem; padding-bottom: 2rem; }}
.skip {{ position: absolute; left: -100rem; }}
.skip:focus {{ left: 1rem; top: 1rem; background: var(--paper); color: var(--ink);
  padding: .5rem; outline: .2rem solid var(--released); }}
@media print {{
  :root {{ {_variables(LIGHT)} }}
  body {{ font-size: 10pt; }}
  main, footer {{ max-width: none; padding: 0; }}
  .skip {{ display: none; }}
  svg.chart {{ max-width: 22rem; }}
  table, figcaption {{ font-size: 9pt; }}
  figure, table, li {{ break-inside: avoid; }}
  h2, h3 {{ break-after: avoid; }}
}}
"""
"""No address is in it, so a page asks nothing of any network."""
