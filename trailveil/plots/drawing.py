"""What all pictures share: how they look, and what they are drawn on.

matplotlib is optional and slow to import, so nothing here imports it before something is drawn.
"""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Unavailable, installing
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.projection import MICRO, Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "trailveil",
}
"""Settings of matplotlib that hold while something is drawn."""

INK, MUTED, PAPER, GRID = "#1b1f24", "#57606a", "#fffffe", "#d0d7de"
RELEASED, RECORDED, CIRCLE, NOISE = "#005f9e", "#8a4b08", "#b3261e", "#5b3cc4"
"""Text, lesser text, background and lines; what is released, what is true, what is left, noise.

Told apart by lightness and by dashes, too. All but GRID have a contrast of 4.5 or more on PAPER.
"""

_WIDTH, _HEIGHT = 3.5, 2.4


def check_available(instead: str = ", or --csv-only") -> None:
    """Unavailable, with the command that installs it, where matplotlib is missing.

    instead: what else can be done, for the end of the message.
    """
    try:
        import matplotlib  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise Unavailable(
            "pictures must have matplotlib, got an installation without; say: "
            f"{installing('plots')}{instead}"
        ) from error


def new_figure(width: float = _WIDTH, height: float = _HEIGHT, *, layout: bool = True) -> "Figure":
    """An empty figure of so many inches, that no list of open figures knows."""
    check_available("")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        return Figure(figsize=(width, height), layout="constrained" if layout else None)


def on(axes: "Axes | None", width: float = _WIDTH, height: float = _HEIGHT) -> "Axes":
    """The axes given, or new ones alone on a figure."""
    if axes is not None:
        return axes
    from matplotlib import rc_context

    figure = new_figure(width, height)
    with rc_context(STYLE):
        return figure.add_subplot()


def dressed(axes: "Axes", x_label: str, y_label: str) -> "Axes":
    """Axes in the colours of pages: labels, ticks and lines around. Returns them."""
    axes.set_xlabel(x_label, color=INK, fontsize=9.5)
    axes.set_ylabel(y_label, color=INK, fontsize=9.5)
    axes.tick_params(colors=MUTED, labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.patch.set_visible(False)
    return axes


def legend(axes: "Axes", columns: int = 2) -> None:
    """A legend above the axes, in so many columns."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=columns,
        fontsize=9,
        labelcolor=INK,
        frameon=False,
        handlelength=1.6,
        columnspacing=1.0,
    )


# Degrees of latitude beyond which meridians are no grid.
_POLAR = 88.0
# Points of a line, which may be bent.
_POINTS = 9
# Lines of one kind at most, and inches of a character of their names.
_MOST, CHARACTER = 6, 0.075


@dataclass(frozen=True, slots=True)
class Extent:
    """West, east, south and north, in metres of a frame."""

    west: float
    east: float
    south: float
    north: float

    @property
    def width(self) -> float:
        """East to west."""
        return self.east - self.west

    @property
    def height(self) -> float:
        """South to north."""
        return self.north - self.south


@dataclass(frozen=True, slots=True, eq=False)
class Graticule:
    """Where meridians are named along the lower edge, and parallels along the left one.

    east, north: metres (k,). names: of each. lines: (p, 2) metres each.
    """

    east: FloatArray
    east_names: tuple[str, ...]
    north: FloatArray
    north_names: tuple[str, ...]
    lines: tuple[FloatArray, ...]

    @property
    def room(self) -> float:
        """Inches that the longest name of a parallel takes."""
        return CHARACTER * max((len(north_name) for north_name in self.north_names), default=0)


def graticule(frame: Frame, extent: Extent, inches: float) -> Graticule:
    """The lines for a map that is so many inches wide; none near a pole."""
    along = np.linspace(0.0, 1.0, _POINTS)
    east, north = extent.west + along * extent.width, extent.south + along * extent.height
    middle = _POINTS // 2
    centre = to_degrees(frame, east[middle], north[middle])
    if abs(centre[0]) > _POLAR:
        return Graticule(np.empty(0), (), np.empty(0), (), ())
    bottom = np.array([to_degrees(frame, x, extent.south)[1] for x in east])
    bottom = centre[1] + _wrapped(bottom - centre[1])
    at_left = np.array([to_degrees(frame, extent.west, y)[0] for y in north])
    longitudes, across = _chosen(bottom, lambda name: CHARACTER * len(name) + 0.12, inches)
    latitudes, up = _chosen(at_left, lambda _: 0.35, inches * extent.height / extent.width)
    wide = np.linspace(bottom[0] - across, bottom[-1] + across, _POINTS)
    high = np.clip(np.linspace(at_left[0] - up, at_left[-1] + up, _POINTS), -90.0, 90.0)
    lines = [(high, np.full(_POINTS, longitude)) for longitude in longitudes]
    lines += [(np.full(_POINTS, latitude), wide) for latitude in latitudes]
    return Graticule(
        np.interp(longitudes, bottom, east),
        tuple(_named(float(_wrapped(longitude)), across) for longitude in longitudes),
        np.interp(latitudes, at_left, north),
        tuple(_named(float(latitude), up) for latitude in latitudes),
        tuple(
            np.asarray(frame.to_lattice(np.stack([a, _wrapped(b)], axis=1)) / MICRO)
            for a, b in lines
        ),
    )


def to_degrees(frame: Frame, east: float, north: float) -> FloatArray:
    """Latitude and longitude (2,) of a point in metres of a frame."""
    lattice: NDArray[np.int64] = np.round(np.array([[east, north]]) * MICRO).astype(np.int64)
    return np.asarray(frame.to_degrees(lattice)[0] / MICRO)


def nice(size: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above a size."""
    unit = 10.0 ** np.floor(np.log10(size))
    return float(max(digit for digit in (1, 2, 5) if digit * unit <= size * (1 + 1e-9)) * unit)


def _chosen(
    over: FloatArray, wide: Callable[[str], float], inches: float
) -> tuple[FloatArray, float]:
    """Multiples of a step within a range, as many as their names have room for; and the step."""
    step = nice(float(np.ptp(over)) / _MOST)
    while True:
        first, last = np.ceil(over.min() / step), np.floor(over.max() / step)
        ticks = np.arange(first, last + 1) * step
        needed = sum(wide(_named(float(tick), step)) for tick in ticks)
        if ticks.size <= 1 or (needed <= inches and ticks.size <= _MOST):
            return ticks, step
        step = nice(2.5 * step)


def _wrapped(longitude: FloatArray | float) -> FloatArray:
    return np.asarray((np.asarray(longitude) + 180.0) % 360.0 - 180.0)


def _named(value: float, step: float) -> str:
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    return f"{round(value, digits) + 0.0:.{digits}f}°"


# A figure of matplotlib as SVG inside a page: its text is text, its colours are the page's.
#
# Equal figures give equal bytes. Nothing in it refers to anything outside, or to a name that
# another picture of the page has.

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
