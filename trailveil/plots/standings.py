"""A row for each mechanism, a mark for each attack: how near it comes, on a scale of metres."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trailveil.plots.drawing import CIRCLE, GRID, MUTED, NOISE, RECORDED, RELEASED, dressed
from trailveil.plots.drawing import new_figure as empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS = ((RELEASED, "o"), (CIRCLE, "^"), (NOISE, "s"), (RECORDED, "D"))
_WIDTH, _ROW = 6.4, 0.3  # inches


@dataclass(frozen=True, slots=True)
class Standing:
    """A mechanism, and how near attacks come: (metres, low, high) by attack, low and high 95 %."""

    name: str
    attacks: Mapping[str, tuple[float, float, float]]


def standings(rows: Sequence[Standing]) -> "Figure":
    """The picture. The nearest attack of each mechanism has its name and its interval."""
    figure = empty_figure(_WIDTH, 1.0 + _ROW * len(rows))
    axes = dressed(figure.add_subplot(), "metres: circle that holds 68 % of the guesses", "")
    names = list(dict.fromkeys(attack for row in rows for attack in row.attacks))
    for height, row in enumerate(rows):
        axes.axhline(height, color=GRID, linewidth=0.8, zorder=0)
        finite = {name: x for name, x in row.attacks.items() if np.isfinite(x[0])}
        for name, (value, _, _) in finite.items():
            colour, mark = _LOOKS[names.index(name) % len(_LOOKS)]
            axes.plot(max(value, 0.1), height, mark, color=colour, markersize=3.5, alpha=0.7)
        if not finite:
            continue
        nearest = min(finite, key=lambda name: finite[name][0])
        value, low, high = finite[nearest]
        if np.isfinite(low) and np.isfinite(high):
            axes.plot([max(low, 0.1), max(high, 0.1)], [height, height], color=CIRCLE, linewidth=2)
        axes.annotate(
            nearest,
            (max(value, 0.1), height),
            xytext=(-5, 3),
            textcoords="offset points",
            ha="right",
            fontsize=7,
            color=MUTED,
        )
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.8)
    axes.set_xscale("log")
    axes.set_xlim(left=0.1)
    return figure
