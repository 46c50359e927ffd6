"""How the noise varies together: a heat map of its covariance, and draws from it."""

from typing import TYPE_CHECKING

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.plots.drawing import NOISE, dressed, new_figure
from trailveil.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows of a heat map at most: more are no pixels.
_MOST = 400


def covariance(
    mechanism: Mechanism,
    *,
    samples: int = 3,
    generator: np.random.Generator | None = None,
    ax: "tuple[Axes, Axes] | None" = None,
) -> "tuple[Axes, Axes]":
    """The covariance of the noise over the released rows as a heat map, above draws from it.

    The draws are of the picture alone, and are never those of a release. generator: of the draws;
    None for fresh ones. ax: for the map and for the draws. Of many rows about 400 are shown, evenly
    chosen. Returns both axes. Raises InvalidValue where nothing is released.
    """
    rows = mechanism.rows
    if not rows.size:
        raise InvalidValue("a mechanism must release something to be drawn, got no row")
    rows = rows[:: max(1, -(-rows.size // _MOST))]
    few = np.zeros(mechanism.times.size, bool)
    few[rows] = True
    gamma = mechanism.withholding(~few).covariance()
    upper, lower = ax or _two()
    times = mechanism.times[rows]
    top = float(np.max(np.abs(gamma))) or 1.0
    box = (float(times[0]), float(times[-1]), float(times[-1]), float(times[0]))
    shown = upper.imshow(gamma / top, cmap="RdBu_r", vmin=-1, vmax=1, extent=box, aspect="auto")
    bar = upper.figure.colorbar(shown, ax=upper, aspect=12)
    bar.set_label(f"covariance / {top:.3g}")
    draws = _draws(gamma, samples, generator or np.random.default_rng())
    for draw, dashes in zip(draws, ("-", "--", ":", "-.") * (samples // 4 + 1), strict=False):
        lower.plot(times, draw, dashes, color=NOISE, linewidth=1)
    dressed(upper, "", "seconds")
    dressed(lower, "seconds", "noise")
    return upper, lower


def _draws(gamma: FloatArray, count: int, generator: np.random.Generator) -> FloatArray:
    """Draws (count, n) from N(0, Gamma), by its eigenvectors: Gamma may be of any rank."""
    values, vectors = np.linalg.eigh(gamma)
    root = vectors * np.sqrt(np.where(values > 0, values, 0.0))
    return np.asarray((root @ generator.standard_normal((values.size, count))).T)


def _two() -> "tuple[Axes, Axes]":
    figure = new_figure(3.5, 4.4)
    upper, lower = figure.subplots(2, 1, height_ratios=[1.4, 1.0])
    return upper, lower
