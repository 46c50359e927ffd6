"""Sheets of several panels, for the experiments of the paper and for calibration."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.plots.drawing import STYLE, check_available

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008): told apart by the colour-blind, too. Markers and dashes say the same again.
LOOKS = {
    "sdp": ("#0072B2", "o"),
    "optimum": ("#D55E00", "s"),
    "uniform": ("#009E73", "^"),
    "concentrated": ("#CC79A7", "v"),
}
_DASHES = {1.0: "-", 0.5: "--", 1.5: ":"}
_DPI = 160
_ABOUT: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve. look: a key of LOOKS. adversary: 1, 0.5 or 1.5, drawn whole, dashed and dotted."""

    label: str
    x: FloatArray
    y: FloatArray
    look: str
    adversary: float = 1.0


@dataclass(frozen=True, slots=True)
class Band:
    """Fitted values: a grey band from `low` to `high`, a dashed `median`. name: of the data."""

    name: str
    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Curves over one axis."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    band: Band


@dataclass(frozen=True, slots=True, eq=False)
class NoiseCase:
    """A noise covariance (n, n), draws of the noise (m, n), and the indices of the secret."""

    title: str
    covariance: FloatArray
    samples: FloatArray
    secret: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class PlaneMap:
    """A release in the plane.

    released: (n, 2). secrets: true places (k, 2). centres, radii: (k, 2) and (k,), where an
    adversary looks for them and how widely.
    """

    title: str
    released: FloatArray
    secrets: FloatArray
    centres: FloatArray
    radii: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CoverageCurve:
    """Shares of intervals that held (k,) at nominal shares (k,). order: from 0, near, to 1, far.

    bar: nominal share, and the interval of what held there; None for none.
    """

    label: str
    nominal: FloatArray
    held: FloatArray
    order: float
    bar: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True, eq=False)
class CoveragePanel:
    """Curves over one square, with what they are of."""

    title: str
    curves: Sequence[CoverageCurve]


def charts(name: str, rows: Sequence[Sequence[Chart]], title: str) -> Iterator[tuple[str, bytes]]:
    """Charts in rows that share the vertical axis, one legend below: NAME.png and NAME.svg."""
    wide = len(rows[0])

    def draw(figure: "Figure") -> None:
        figure.suptitle(title)
        grid = figure.subplots(len(rows), wide, sharey=True, squeeze=False)
        for line_of_axes, row in zip(grid, rows, strict=True):
            line_of_axes[0].set_ylabel(row[0].y_label)
            for axes, chart in zip(line_of_axes, row, strict=True):
                _draw_chart(axes, chart)
        _legend_below(figure, grid.ravel().tolist(), columns=max(2, wide))

    yield from _rendered(name, 3.0 * max(wide, 2) + 0.6, 2.6 * len(rows) + 1.3, draw)


def covariances(name: str, cases: Sequence[NoiseCase], title: str) -> Iterator[tuple[str, bytes]]:
    """Heat maps of noise covariances above draws from them, a column a case."""

    def draw(figure: "Figure") -> None:
        figure.suptitle(title)
        grid = figure.subplots(2, len(cases), sharey="row", height_ratios=[1.0, 0.9])
        shown: Any = None
        for upper, lower, case in zip(*grid, cases, strict=True):
            top = float(np.max(np.abs(case.covariance)))
            shown = upper.imshow(case.covariance / top, cmap="RdBu_r", vmin=-1, vmax=1)
            upper.set_title(f"{case.title}\nmax {top:.2g}")
            for index in case.secret:
                lower.axvline(index, color="#AAAAAA", linestyle=":", linewidth=1)
            for sample, dashes in zip(case.samples, ("-", "--", ":"), strict=False):
                lower.plot(sample, dashes, color=LOOKS["sdp"][0], linewidth=1)
            lower.set_xlabel("index")
        grid[0, 0].set_ylabel("index")
        grid[1, 0].set_ylabel("noise")
        bar = figure.colorbar(shown, ax=list(grid[0]), aspect=12, pad=0.01)
        bar.set_label("covariance / max")

    yield from _rendered(name, 1.55 * len(cases) + 1.2, 4.3, draw)


def maps(
    name: str, shown: Sequence[PlaneMap], path: FloatArray, unit: str, title: str
) -> Iterator[tuple[str, bytes]]:
    """One path (n, 2) under several releases, each with its circles, side by side."""

    def draw(figure: "Figure") -> None:
        figure.suptitle(title)
        grid = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
        for axes, panel in zip(grid, shown, strict=True):
            _draw_map(axes, panel, path)
            axes.set_xlabel(f"east ({unit})")
        grid[0].set_ylabel(f"north ({unit})")
        _legend_below(figure, grid.tolist(), columns=5)

    yield from _rendered(name, 3.6 * len(shown) + 0.6, 4.7, draw)


def coverages(
    name: str, rows: Sequence[tuple[str, Sequence[CoveragePanel]]], title: str
) -> Iterator[tuple[str, bytes]]:
    """What held against what was promised: a row a prior, with its name; a panel a pace."""
    wide = len(rows[0][1])

    def draw(figure: "Figure") -> None:
        figure.suptitle(title)
        grid = figure.subplots(len(rows), wide, sharex=True, sharey=True, squeeze=False)
        for line_of_axes, (prior, panels) in zip(grid, rows, strict=True):
            line_of_axes[0].set_ylabel(prior)
            for axes, panel in zip(line_of_axes, panels, strict=True):
                _draw_coverage(axes, panel)
        for axes in grid[-1]:
            axes.set_xlabel("promised")
        _legend_below(figure, grid.ravel().tolist(), columns=4)

    yield from _rendered(name, 1.9 * max(wide, 3) + 0.9, 2.1 * len(rows) + 1.2, draw)


def _rendered(
    name: str, width: float, height: float, draw: Callable[["Figure"], None]
) -> Iterator[tuple[str, bytes]]:
    """A figure of so many inches as PNG and as SVG."""
    check_available()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        for ending, about in _ABOUT.items():
            out = io.BytesIO()
            figure.savefig(out, format=ending, dpi=_DPI, metadata=about)
            yield f"{name}.{ending}", out.getvalue()


def _draw_chart(axes: "Axes", chart: Chart) -> None:
    for line in chart.lines:
        color, marker = LOOKS[line.look]
        axes.plot(
            line.x,
            line.y,
            color=color,
            linestyle=_DASHES[line.adversary],
            marker=marker,
            markersize=3,
            linewidth=1.3,
            label=line.label,
            clip_on=False,  # a marker on the axis is a value of 0, and must be seen
            zorder=3,
        )
    band = chart.band
    axes.axvspan(band.low, band.high, color="#DDDDDD", linewidth=0, label="fits: middle half")
    axes.axvline(band.median, color="#777777", linestyle="--", linewidth=1, label="fits: median")
    axes.set_title(chart.title, loc="left")
    axes.set_xlabel(f"{chart.x_label} (fits: {band.name})")
    axes.set_ylim(bottom=0)
    axes.set_xlim(float(np.min(chart.lines[0].x)), float(np.max(chart.lines[0].x)))


def _draw_coverage(axes: "Axes", panel: CoveragePanel) -> None:
    from matplotlib import colormaps

    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, label="as promised", zorder=1)
    for number, curve in enumerate(panel.curves):
        color = colormaps["viridis"](0.9 * curve.order)
        marker = "os^vDP"[number % 6]
        axes.plot(
            curve.nominal,
            curve.held,
            color=color,
            marker=marker,
            markersize=3,
            markevery=3,
            linewidth=1.2,
            label=curve.label,
            zorder=2,
        )
        if curve.bar is not None:
            at, low, high = curve.bar
            at += 0.018 * (number - (len(panel.curves) - 1) / 2)
            axes.plot([at, at], [low, high], color=color, linewidth=1.6, alpha=0.6, zorder=1)
    axes.set_title(panel.title, loc="left")
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))


def _draw_map(axes: "Axes", plane_map: PlaneMap, path: FloatArray) -> None:
    from matplotlib.patches import Circle

    axes.plot(*path.T, color="#777777", linewidth=1.2, label="true path (private)")
    axes.plot(
        *plane_map.released.T,
        ".",
        color="#0072B2",
        markersize=2.5,
        alpha=0.7,
        label="released fixes",
    )
    for centre, radius in zip(plane_map.centres, plane_map.radii, strict=True):
        circle = Circle((centre[0], centre[1]), radius, color="#D55E00", alpha=0.25, linewidth=0)
        axes.add_patch(circle)
    axes.plot(
        *plane_map.centres.T, "+", color="#D55E00", markersize=7, label="where an adversary looks"
    )
    axes.plot(
        [], [], "o", color="#D55E00", alpha=0.25, markersize=10, label="and how widely (68 %)"
    )
    axes.plot(
        *plane_map.secrets.T,
        "*",
        color="black",
        markersize=7,
        label="sensitive times: the true place",
    )
    axes.set_title(plane_map.title, loc="left")
    axes.set_aspect("equal")


def _legend_below(figure: "Figure", every: Sequence["Axes"], columns: int) -> None:
    handles: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)
