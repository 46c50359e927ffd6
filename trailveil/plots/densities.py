"""Where people spend their time, as a map of cells."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from trailveil.checks.utility import CELL, Cell, bounds
from trailveil.errors import InvalidValue
from trailveil.plots.drawing import on

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
