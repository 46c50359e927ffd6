"""The picture of the comparison: what each attack is left with, a row a way of releasing."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks._attackers import BEYOND

# Okabe and Ito (2008), as in trailveil.plots; the shapes say the same again.
OF_THE_SET, SIMPLE, NOT_PROMISED = ("#0072B2", "o"), ("#009E73", "s"), ("#D55E00", "^")
WITH_MAP = ("#000000", "D")
GROUPS = {
    "posterior, as the default is made against": OF_THE_SET,
    "simple attacks": SIMPLE,
    "beyond any promise": NOT_PROMISED,
    "with a street map, which a cut alone is made against": WITH_MAP,
}
ABOUT: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
POSTERIORS = ("prior", "still", "place", "path", "speed")


@dataclass(frozen=True)
class Dots:
    """One way of releasing. moved: metres; lost: minutes; left: metres, by attack."""

    name: str
    moved: float
    lost: float
    left: Mapping[str, float]

    @property
    def cost(self) -> str:
        """In words."""
        if self.moved > 0:
            return f"moved {self.moved:,.0f} m"
        return f"{self.lost:.0f} min lost" if self.lost > 0 else ""


def drawn(panels: Mapping[str, Sequence[Dots]]) -> Iterator[tuple[str, bytes]]:
    """The picture as SVG and PNG, by suffix; the first row of a panel is what is promised."""
    style: Any = {"font.family": "sans-serif", "font.size": 8.5, "svg.hashsalt": "trailveil"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(4.9 * len(panels) + 1.2, 4.9), layout="constrained")
        grid = figure.subplots(1, len(panels), sharex=True, squeeze=False)[0]
        for axes, (name, rows) in zip(grid, panels.items(), strict=True):
            _panel(axes, name, rows, labelled=axes is grid[0])
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        for suffix, about in (
            ("svg", {"Date": None, "Creator": None}),
            ("png", {"Software": None}),
        ):
            out = io.BytesIO()
            figure.savefig(out, format=suffix, dpi=150, metadata=about)
            yield suffix, out.getvalue()


def _group(attack: str) -> tuple[str, str]:
    if attack == "map":
        return WITH_MAP
    if attack in BEYOND:
        return NOT_PROMISED
    return OF_THE_SET if attack in POSTERIORS else SIMPLE


def _panel(axes: Axes, name: str, rows: Sequence[Dots], *, labelled: bool) -> None:
    promise, ways = rows[0], rows[1:]
    for text, (color, marker) in GROUPS.items():
        axes.plot([], [], marker, color=color, label=text)
    bound = min(promise.left.values())
    axes.axvline(bound, color="#777777", linestyle="--", linewidth=1)
    axes.annotate(
        "least that the default promises",
        *((bound, -0.75),),
        ha="right",
        fontsize=7.5,
        color="#555555",
        xytext=(-3, 0),
        textcoords="offset points",
    )
    for row, way in enumerate(ways):
        axes.axhline(row, color="#EEEEEE", linewidth=1, zorder=0)
        for attack, value in way.left.items():
            color, marker = _group(attack)
            axes.plot(value, row, marker, color=color, markersize=5, alpha=0.8)
        nearest = min(way.left, key=lambda one: way.left[one])
        axes.annotate(
            nearest,
            (way.left[nearest], row),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=7.5,
        )
    axes.set_yticks(range(len(ways)), [f"{way.name}\n{way.cost}" for way in ways])
    axes.set_ylim(len(ways) - 0.4, -1.0)
    axes.set_xscale("log")
    axes.set_xlim(left=0.25)  # room for the words
    axes.set_xlabel("metres: circle that holds 68 % of the guesses")
    axes.set_title(f"{name} recordings", loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
