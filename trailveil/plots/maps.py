"""Maps that are drawn, with no map behind: tracks, circles, a graticule, a scale bar, north.

Everything is in metres of a local frame (trailveil.traces.projection), so circles are circles and
one scale holds all over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from trailveil.checks.utility import CELL, Cell, bounds
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.plots.drawing import (
    CIRCLE,
    GRID,
    INK,
    MUTED,
    RECORDED,
    RELEASED,
    Extent,
    Graticule,
    dressed,
    graticule,
    legend,
    new_figure,
    nice,
    on,
    to_degrees,
)
from trailveil.traces.formats.grid import long_gaps
from trailveil.traces.projection import MICRO, Frame, frame_for
from trailveil.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Fixes of a line that are drawn at most: a page for a phone shows no more.
MOST_POINTS = 3000
# Metres that a map extends at least, and the share of it that is left free around what it shows.
_LEAST, _MARGIN = 200.0, 0.06
# Height over width, at least and at most.
_FLAT, _TALL = 0.55, 1.25
# Inches: width of a map, and the room for labels around it.
_WIDE, _LEFT, _BELOW, _ABOVE, _RIGHT = 2.8, 0.1, 0.3, 0.08, 0.14
# Columns of the legend, and inches of a line of it.
_COLUMNS, _LINE = 3, 0.19


Corner = tuple[bool, bool]
"""Of a map: whether it is a right one, and whether it is an upper one."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A circle of so many metres around a point (metres of the frame), and what it is called."""

    east: float
    north: float
    radius: float
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shown:
    """What a map shows, in metres of one frame (n, 2).

    released: fixes by time. recorded: the true ones, or None. rings: circles with a place. size: of
    a circle that stands beside the map, at its scale and at no place, or None. around: points
    (k, 2) that the map is limited to, or None for all.
    """

    frame: Frame
    released: Sequence[FloatArray]
    recorded: FloatArray | None = None
    rings: Sequence[Ring] = ()
    size: float | None = None
    around: FloatArray | None = None


def trace(before: Trace | None, after: Trace, *, ax: "Axes | None" = None) -> "Axes":
    """A recording before and after, on a map. Returns the axes; draws on `ax` if there is one.

    before: the true one, which makes the picture a private one, or None.
    """
    frame = frame_for(after.positions)
    axes = on(ax, _WIDE + _RIGHT + 0.6, 3.4)
    recorded = None if before is None else metres(frame, before.positions)
    draw_map(axes, Shown(frame, lines_of(frame, after), recorded))
    axes.set_aspect("equal", adjustable="box")
    return axes


def metres(frame: Frame, positions: FloatArray) -> FloatArray:
    """Positions (n, 2) in degrees as metres east and north (n, 2) in a frame."""
    return np.asarray(frame.to_lattice(positions) / MICRO)


def lines_of(frame: Frame, shown: Trace) -> list[FloatArray]:
    """The lines (k, 2) of a trace, thinned evenly to MOST_POINTS in all.

    One ends with its segment, and where no fix follows for long: what lies between is not shown.
    """
    places = metres(frame, shown.positions)
    step = max(1, -(-len(shown) // MOST_POINTS))
    long = long_gaps(np.diff(shown.seconds)) | (np.diff(shown.segments) != 0)
    cuts = [0, *(np.flatnonzero(long) + 1).tolist(), len(shown)]
    return [_thinned(places[first:last], step) for first, last in pairwise(cuts)]


def _thinned(places: FloatArray, step: int) -> FloatArray:
    indices = np.unique([*range(0, len(places), step), len(places) - 1])
    return np.asarray(places[indices])


def map_figure(shown: Shown) -> "Figure":
    """A map as a figure of its own, with the circle of `size` below it at the same scale."""
    extent = _extent(shown)
    tall = _WIDE * extent.height / extent.width
    radius = shown.size or 0.0
    strip = _WIDE * 2.2 * radius / extent.width + 0.06 if radius else 0.0
    named = 3 + (shown.recorded is not None) + bool(shown.rings)
    above = _ABOVE + _LINE * -(-named // _COLUMNS)
    room = _LEFT + graticule(shown.frame, extent, _WIDE).room
    width, height = room + _WIDE + _RIGHT, above + tall + _BELOW + strip
    figure = new_figure(width, height, layout=False)
    box = (room / width, (_BELOW + strip) / height, _WIDE / width, tall / height)
    draw_map(figure.add_axes(box), shown)
    if radius:
        below = figure.add_axes((room / width, 0.0, _WIDE / width, strip / height))
        _draw_size(below, radius, extent.width, extent.width * strip / _WIDE)
    return figure


def draw_map(axes: "Axes", shown: Shown) -> None:
    """Everything on one pair of axes, which get their limits from it."""
    extent = _extent(shown)
    axes.set(xlim=(extent.west, extent.east), ylim=(extent.south, extent.north))
    _draw_graticule(axes, graticule(shown.frame, extent, _WIDE))
    if shown.recorded is not None:
        line = _thinned(shown.recorded, max(1, -(-len(shown.recorded) // MOST_POINTS)))
        axes.plot(*line.T, color=RECORDED, linestyle="--", linewidth=1.2, label="recorded")
    for number, part in enumerate(shown.released):
        label = "" if number else "released"
        axes.plot(*part.T, color=RELEASED, linewidth=1.1, label=label or "_")
    ends = (("first fix", "o", shown.released[0][0]), ("last fix", "s", shown.released[-1][-1]))
    for label, mark, at in ends:
        axes.plot(*at, mark, color=RELEASED, markersize=4.5, markerfacecolor="none", label=label)
    for number, ring in enumerate(shown.rings):
        _draw_circle(axes, ring.east, ring.north, ring.radius)
        axes.plot(ring.east, ring.north, "+", color=CIRCLE, label="_" if number else "guess")
        if ring.name:
            _write(axes, ring.name, (ring.east, ring.north), (3, 3), color=CIRCLE)
    free = _free_corners(shown, extent)
    _draw_scale(axes, extent, free[0])
    _draw_north(axes, shown.frame, extent, free[1])
    legend(axes, _COLUMNS)


def _extent(shown: Shown) -> Extent:
    """The box of all that is shown, with a margin, neither too flat nor too tall."""
    corners = [*shown.released, *([] if shown.recorded is None else [shown.recorded])]
    corners += [
        np.array([[ring.east, ring.north]]) + ring.radius * np.array([[-1.0], [1.0]])
        for ring in shown.rings
    ]
    points = np.concatenate(corners) if shown.around is None else shown.around
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = (low + high) / 2, np.maximum(high - low, _LEAST) * (1 + 2 * _MARGIN)
    width = max(float(size[0]), float(size[1]) / _TALL, 2.1 * (shown.size or 0.0))
    height = max(float(size[1]), _FLAT * width)
    east, north = middle
    return Extent(east - width / 2, east + width / 2, north - height / 2, north + height / 2)


def _draw_graticule(axes: "Axes", lines: Graticule) -> None:
    """Meridians and parallels, named at the lower and at the left edge."""
    dressed(axes, "", "")
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(GRID)
    axes.set_xticks(lines.east, lines.east_names)
    axes.set_yticks(lines.north, lines.north_names)
    axes.tick_params(length=2, labelsize=8.5, colors=MUTED)
    for line in lines.lines:
        axes.plot(*line.T, color=GRID, linewidth=0.7, zorder=0, scalex=False, scaley=False)


def _free_corners(shown: Shown, extent: Extent) -> tuple[Corner, Corner]:
    """A corner for the scale bar and one for the arrow: those with the least drawn in them."""
    lines = [*shown.released, *([] if shown.recorded is None else [shown.recorded])]
    places = np.concatenate(lines)
    across = (places[:, 0] - extent.west) / extent.width
    up = (places[:, 1] - extent.south) / extent.height

    def drawn(corner: Corner, wide: float, tall: float) -> int:
        right, upper = corner
        near_side = (1 - across if right else across) < wide
        return int(np.sum(near_side & ((1 - up if upper else up) < tall)))

    every = [(right, upper) for upper in (False, True) for right in (False, True)]
    scale = min(every, key=lambda corner: drawn(corner, 0.4, 0.15))
    arrow = min(
        (corner for corner in every if corner != scale), key=lambda corner: drawn(corner, 0.14, 0.3)
    )
    return scale, arrow


def _draw_scale(axes: "Axes", extent: Extent, corner: Corner) -> None:
    length = nice(0.3 * extent.width)
    right, upper = corner
    x, y = extent.west + 0.05 * extent.width, extent.south + 0.05 * extent.height
    if right:
        x = extent.east - 0.05 * extent.width - length
    if upper:
        y = extent.north - 0.1 * extent.width
    axes.plot([x, x + length], [y, y], color=INK, linewidth=2, solid_capstyle="butt", label="_")
    name = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    _write(axes, name, (x + length / 2, y), (0, 3), ha="center")


def _draw_north(axes: "Axes", frame: Frame, extent: Extent, corner: Corner) -> None:
    """An arrow along the meridian."""
    right, upper = corner
    tip = np.array([extent.west + 0.07 * extent.width, extent.south + 0.22 * extent.width])
    if right:
        tip[0] = extent.east - 0.07 * extent.width
    if upper:
        tip[1] = extent.north - 0.05 * extent.width
    here = to_degrees(frame, tip[0], tip[1])
    step = 0.01 if here[0] < 89.9 else -0.01
    north = metres(frame, np.array([[here[0] + step, here[1]]]))[0]
    way = np.sign(step) * (north - tip) / np.hypot(*(north - tip))
    foot = tip - 0.1 * extent.width * way
    axes.annotate(
        "",
        (float(tip[0]), float(tip[1])),
        xytext=(float(foot[0]), float(foot[1])),
        arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.0},
    )
    _write(axes, "N", (float(foot[0]), float(foot[1])), (0, -1), ha="center", va="top")


def _draw_size(axes: "Axes", radius: float, wide: float, tall: float) -> None:
    """A circle at the scale of a map, and at no place of it."""
    axes.set(xlim=(0, wide), ylim=(-tall / 2, tall / 2))
    axes.axis("off")
    large = 2 * radius > 0.55 * wide
    x = wide / 2 if large else 1.1 * radius
    _draw_circle(axes, x, 0.0, radius)
    axes.plot([x, x + radius], [0, 0], color=CIRCLE, linewidth=0.9)
    # Short lines: beside a narrow map there is no room for more.
    words = "size of what is left\n(at no place of it)"
    if large:
        _write(axes, words, (x, 0.0), (0, 6), ha="center", va="bottom")
    else:
        _write(axes, words, (0.0, -1.1 * radius), (0, -4), ha="left", va="top")


def _draw_circle(axes: "Axes", x: float, y: float, radius: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), radius, color=CIRCLE, alpha=0.16, linewidth=0))
    axes.add_patch(Circle((x, y), radius, fill=False, color=CIRCLE, linewidth=0.9))


def _write(
    axes: "Axes", words: str, at: tuple[float, float], points: tuple[int, int], **how: Any
) -> None:
    """Words so many points from a place."""
    how.setdefault("color", INK)
    axes.annotate(words, at, xytext=points, textcoords="offset points", fontsize=9, **how)


def density(spent: Mapping[Cell, float], cell: float = CELL, *, ax: "Axes | None" = None) -> "Axes":
    """Hours spent in each cell, of `checks.utility.density`, darker for more, by its logarithm.

    cell: metres, as there. Two of them side by side, on axes that share their limits, are the
    density before and after. Raises InvalidValue where no time is spent, Unavailable without
    matplotlib.
    """
    hours_by_cell = {place: seconds / 3600 for place, seconds in spent.items() if seconds > 0}
    if not hours_by_cell:
        raise InvalidValue("a density must have a cell where time is spent, got none")
    axes = on(ax)
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    south, west, north, east = bounds(np.array(list(hours_by_cell)), cell).T
    places = np.stack([west, south, west, north, east, north, east, south], axis=1)
    corners = list(places.reshape(-1, 4, 2))
    hours = np.array(list(hours_by_cell.values()))
    drawn = PolyCollection(corners, cmap="viridis_r", norm=LogNorm(hours.min(), hours.max()))
    drawn.set_array(hours)
    axes.add_collection(drawn)
    axes.autoscale_view()
    axes.set_aspect(1 / np.cos(np.radians((south.min() + north.max()) / 2)))
    axes.set(xlabel="longitude", ylabel="latitude")
    axes.figure.colorbar(drawn, ax=axes, label="hours in a cell")
    return axes
