"""Columns that noise against several adversaries is sought in: smooth bumps around what is secret.

One adversary's optimum is spanned by the columns of trailveil.design.optimal; that of many by
combinations nobody knows beforehand. But noise finer than the series itself moves is wasted, and
what is far from a secret need not be told apart: so cubic splines, whose knots are dense where a
secret begins and ends, and ever wider apart from there.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.interpolate import BSpline

from trailveil.gaussian import FloatArray

# Rows up to which every row has a column of its own: no spline is better than that.
FEW_ROWS = 40
# Knots are this far apart at a secret's edges, in units of the lag within which the series moves
# by what is to be left; further away, by this share of the distance besides; within a stay, where
# noise is nearly constant, at least by this share of its length.
_FINEST, _WIDENING, _WITHIN = 0.14, 0.25, 0.5
# The same where columns are only to find what binds.
_COARSE = (0.4, 0.6, 0.5)
# Splines are continuous, and no more, at the edges of a stay: a clock stops there.
_AT_EDGES, _DEGREE = 3, 3
# More knots than so many are never laid: they are laid less densely instead.
_MOST_KNOTS = 72


def splines(
    times: FloatArray,
    spans: Sequence[tuple[float, float]],
    lag: float,
    away: Sequence[float] = (),
    *,
    coarse: bool = False,
) -> FloatArray:
    """Columns (n, p) at times (n,) seconds, for secrets that last over some spans (start, end).

    lag: seconds within which the series moves by the deviation that is to be left. away: what is
    known of the series begins this far (seconds) from each span, and so may a bend of the noise.
    coarse: fewer of them, to find what binds.
    """
    if times.size <= FEW_ROWS:
        return np.eye(times.size)
    first, last = float(times[0]), float(times[-1])
    edges = np.unique(np.clip(np.array(spans), first, last))
    known = [
        edge + side * far for a, b in spans for far in away for edge, side in ((a, -1), (b, 1))
    ]
    anchors = np.unique(np.clip([first, last, *edges, *known], first, last))
    share, widening, within = _COARSE if coarse else (_FINEST, _WIDENING, _WITHIN)
    finest = max(share * lag, float(np.min(np.diff(times))))
    inside, between = [], np.zeros(0)
    while True:
        between = _between(anchors, edges, spans, (finest, widening, within))
        inside = [edge for edge in edges if first < edge < last]
        if between.size + len(inside) <= _MOST_KNOTS:
            break
        finest *= 1.5
    kinks = np.repeat(np.array(inside), _AT_EDGES - 1)
    knots = np.sort(np.concatenate([between, kinks, np.repeat([first, last], _DEGREE)]))
    return np.asarray(BSpline.design_matrix(times, knots, _DEGREE).toarray())


def _between(
    anchors: FloatArray,
    edges: FloatArray,
    spans: Sequence[tuple[float, float]],
    density: tuple[float, float, float],
) -> FloatArray:
    """The anchors, and knots between them, as dense as is asked for."""
    finest, widening, within = density
    found = [anchors[:1]]
    for start, end in pairwise(anchors):
        grid = np.linspace(start, end, 200)
        nearest = np.min(np.abs(grid[:, None] - edges), axis=1) if edges.size else np.zeros(200)
        widths = finest + widening * nearest
        for a, b in spans:
            if a <= start and end <= b and a < b:
                widths = np.maximum(widths, within * (b - a))
        steps = np.concatenate([[0.0], np.cumsum(np.diff(grid) * 2 / (widths[1:] + widths[:-1]))])
        count = max(1, int(np.ceil(steps[-1])))
        at = np.interp(np.linspace(0, steps[-1], count + 1)[1:-1], steps, grid)
        found += [at, np.array([end])]
    return np.concatenate(found)
