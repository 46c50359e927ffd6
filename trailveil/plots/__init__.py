"""Pictures, by matplotlib: the only importer of it besides trailveil.report.

`trace`, `covariance`, `posterior`, `trade_off` and `density` draw on axes, and return them; see
docs/gallery.md. No global state is touched, and equal data give equal bytes: no dates, no random
names.
"""

from trailveil.plots.curves import (
    Series,
    chances_figure,
    covariance,
    noise_figure,
    posterior,
    series_figure,
    trade_off,
)
from trailveil.plots.drawing import THEME, check_available, inline
from trailveil.plots.maps import Ring, Shown, density, lines_of, map_figure, metres, trace
from trailveil.plots.sheets import (
    LOOKS,
    Band,
    Chart,
    CoverageCurve,
    CoveragePanel,
    Line,
    NoiseCase,
    PlaneMap,
    charts,
    covariances,
    coverages,
    maps,
)

__all__ = [
    "LOOKS",
    "THEME",
    "Band",
    "Chart",
    "CoverageCurve",
    "CoveragePanel",
    "Line",
    "NoiseCase",
    "PlaneMap",
    "Ring",
    "Series",
    "Shown",
    "chances_figure",
    "charts",
    "check_available",
    "covariance",
    "covariances",
    "coverages",
    "density",
    "inline",
    "lines_of",
    "map_figure",
    "maps",
    "metres",
    "noise_figure",
    "posterior",
    "series_figure",
    "trace",
    "trade_off",
]
