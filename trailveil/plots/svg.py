"""A figure of matplotlib as SVG inside a page: its text is text, its colours are the page's.

Equal figures give equal bytes. Nothing in it refers to anything outside, or to a name that another
picture of the page has.
"""

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

from trailveil.plots.drawing import (
    CIRCLE,
    GRID,
    INK,
    MUTED,
    NOISE,
    PAPER,
    RECORDED,
    RELEASED,
    STYLE,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME = {
    INK: "--ink",
    MUTED: "--muted",
    PAPER: "--paper",
    GRID: "--grid",
    RELEASED: "--released",
    RECORDED: "--recorded",
    CIRCLE: "--circle",
    NOISE: "--noise",
}
"""The names of colours in the style sheet of a page, by the colour that is drawn with."""

_OUTSIDE = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</defs>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_LONG = re.compile(r"-?\d+\.\d{3,}")
_FONT = re.compile(r"font: (\d+(?:\.\d+)?px)[^;\"]*")
_FAMILY = re.compile(r"font-family: [^;\"]*; ?")
_STILL = re.compile(r' transform="rotate\(-?0(?:\.0+)? [^)]*\)"')
_ID = re.compile(r'(\bid="|href="#|url\(#)')


def inline(figure: "Figure", name: str, title: str, description: str) -> str:
    """The figure as an element of a page. name: of it, on the page; letters alone.

    title, description: what a screen reader says in its place.
    """
    from matplotlib import rc_context

    about: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    out = io.StringIO()
    with rc_context({**STYLE, "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata=about, transparent=True)
    drawn = out.getvalue()
    size = re.search(r'viewBox="([^"]*)"', drawn)
    body = _OUTSIDE.sub("", drawn[drawn.index("<svg") :])
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    body = _TAG.sub(lambda tag: _tidy(tag[0], name), body)
    return (
        f'<svg class="chart" viewBox="{size[1] if size else ""}" role="img" '
        f'aria-labelledby="{name}-title {name}-words">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-words">{escape(description)}</desc>'
        f"{body.strip()}</svg>"
    )


def _tidy(tag: str, name: str) -> str:
    """A tag with fewer digits, colours and fonts of the page, and names of its own."""
    tag = tag.replace("xlink:href", "href")
    tag = _LONG.sub(lambda number: f"{float(number[0]):.2f}", tag)
    tag = _FAMILY.sub("", _FONT.sub(r"font-size: \1", _STILL.sub("", tag)))
    tag = " ".join(tag.split())
    for colour, variable in THEME.items():
        tag = tag.replace(colour, f"var({variable})")
    return _ID.sub(rf"\g<1>{name}-", tag)
