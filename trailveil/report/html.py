"""A page of HTML in one file: titles, sentences, tables and pictures, and no request to anywhere.

It is well-formed XML, too. There is no script in it, and its content policy forbids all but its own
style sheet. Every text goes through `escaped`; what cannot be seen in a text (controls, marks of
direction) is shown as a replacement character, so that a name is read as it is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

from trailveil.report.html_style import STYLE
from trailveil.report.parts import Item, Line

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_UNSEEN = "\ufffd"
# Lists by the mark of their items: of warnings, and of what belongs to the item before.
_KINDS = {"! ": ' class="warn"', "   - ": ' class="of"'}


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a table, as it is shown; value: as it stands in the JSON report, or None."""

    shown: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a caption. head: names of the columns; the first cell names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture. svg: of trailveil.plots.inline. words: which say the same as it shows."""

    svg: str
    words: str


@dataclass(frozen=True, slots=True)
class Section:
    """A section: lines of a report, then pictures, lines below them, tables."""

    title: str
    lines: tuple[Line, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    below: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """All of a page. lead: what is said first. private: whether it is for its owner alone."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
    foot: tuple[str, ...]
    private: bool
    lines: tuple[Line, ...] = field(default=())


def rendered(page: Page) -> bytes:
    """The page as a file. Equal pages are equal bytes."""
    title = f"PRIVATE: {page.title}" if page.private else page.title
    mark = "private" if page.private else "note"
    lead = "".join(f"<p>{escaped(sentence)}</p>\n" for sentence in page.lead)
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
        f'<div class="{mark}">\n{lead}</div>',
        *_lines(page.lines),
        *(line for section in page.sections for line in _section(section)),
        "</main>",
        "<footer>",
        *(f"<p>{escaped(sentence)}</p>" for sentence in page.foot),
        "</footer>",
        "</body>",
        "</html>",
    ]
    return ("\n".join(body) + "\n").encode()


def escaped(text: str) -> str:
    """A text as it may stand anywhere in a page, in an attribute, too."""
    return escape("".join(c if c.isprintable() else _UNSEEN for c in text), quote=True)


def sections_of(lines: Sequence[Line]) -> tuple[tuple[Line, ...], list[Section]]:
    """A report as sections: what stands before the first title, and each title with its lines."""
    before: list[Line] = []
    sections: list[tuple[str, list[Line]]] = []
    for line in lines:
        if line == "":
            continue
        if isinstance(line, str):
            sections.append((line, []))
        else:
            (sections[-1][1] if sections else before).append(line)
    return tuple(before), [Section(title, tuple(below)) for title, below in sections]


def _section(section: Section) -> list[str]:
    lines = ["<section>", f"<h2>{escaped(section.title)}</h2>", *_lines(section.lines)]
    for picture in section.pictures:
        words = f"<figcaption>{escaped(picture.words)}</figcaption>"
        lines += ["<figure>", picture.svg, words, "</figure>"]
    lines += _lines(section.below)
    return [*lines, *(line for table in section.tables for line in _table(table)), "</section>"]


def _lines(lines: Sequence[Line]) -> list[str]:
    """Paragraphs, lists, and a heading for what is numbered."""
    elements: list[str] = []
    items = [line for line in lines if isinstance(line, Item)]
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
