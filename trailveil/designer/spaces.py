"""Columns that noise is sought in, with what each prior's inverse covariance makes of them.

Against several adversaries they are smooth bumps around what is secret.

One adversary's optimum is spanned by the columns of trailveil.designer.optimal; that of many by
combinations nobody knows beforehand. But noise finer than the series itself moves is wasted, and
what is far from a secret need not be told apart: so cubic splines, whose knots are dense where a
secret begins and ends, and ever wider apart from there. They are functions of time, so that noise
designed at some of the fixes is noise at all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import eigh

from trailveil.designer.views import View
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel

# Knots are this far apart at a secret's edges, in units of the lag within which the series moves
# by what is to be left; further away, by this share of the distance besides, and by another within
# a stay, where noise is nearly constant.
FINEST = 0.14
_FINE = (FINEST, 0.33, 1.0)
# The same where columns are only to find what binds.
_COARSE = (0.4, 0.6, 2.0)
# Whatever the lag, knots at the edges are this near (in the shares above) compared with how near
# something may be known.
_OF_KNOWN = 2.5
# Splines are continuous, and no more, at the edges of a stay: a clock stops there.
_AT_EDGES, _DEGREE = 3, 3
# More knots than so many are never laid: they are laid less densely instead.
_MOST_KNOTS = 72
# Where noise must end, it does so with its slope: without the last splines, as many as this.
_ENDING = 2
_GRID = 200
# The lag is looked for on so many lags, the least of them (seconds) at most this share of the
# longest.
_LAGS, _LEAST_LAG, _LEAST_SHARE = 1000, 0.1, 1e-5

# Directions with a Gram eigenvalue below this share of the largest are combinations of others: for
# one prior, which spans them itself, and for several, which must each solve for them.
_DEPENDENT, _DEPENDENT_OF_SEVERAL = 1e-9, 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Splines:
    """Cubic splines on some knots (k,), seconds; zero outside of them.

    ends: how many are left out at the beginning and at the end, so that noise fades to nothing.
    """

    knots: FloatArray
    ends: tuple[int, int]

    def at(self, times: FloatArray) -> FloatArray:
        """Their values (n, p) at times (n,)."""
        count = self.knots.size - _DEGREE - 1
        values = np.zeros((times.size, count))
        inside = (times >= self.knots[0]) & (times <= self.knots[-1])
        if np.any(inside):
            from scipy.interpolate import BSpline  # heavy, as all of scipy.interpolate

            values[inside] = BSpline.design_matrix(times[inside], self.knots, _DEGREE).toarray()
        return values[:, self.ends[0] : count - self.ends[1]]


def splines(
    reach: tuple[float, float],
    spans: Sequence[tuple[float, float]],
    lag: float,
    away: Sequence[float] = (),
    *,
    coarse: bool = False,
    fading: tuple[bool, bool] = (False, False),
) -> Splines:
    """Splines on a stretch of time (from, to), for secrets that last over some spans (start, end).

    lag: seconds within which the series moves by the deviation that is to be left. away: what is
    known of the series begins this far (seconds) from each span, and so may a bend of the noise.
    coarse: fewer of them, to find what binds. fading: whether noise must end at either end.
    """
    first, last = reach
    edges = np.unique(np.clip(np.array(spans), first, last))
    both = [(a, -1.0) for a, _ in spans] + [(b, 1.0) for _, b in spans]
    known = [edge + side * far for edge, side in both for far in away]
    anchors = np.unique(np.clip([first, last, *edges, *known], first, last))
    share, widening, within = _COARSE if coarse else _FINE
    inside = edges[(edges > first) & (edges < last)]
    finest = share * shortest(lag, away)
    between = _between(anchors, edges, spans, (finest, widening, within))
    while between.size + inside.size > _MOST_KNOTS and finest < last - first:
        finest *= 1.5
        between = _between(anchors, edges, spans, (finest, widening, within))
    ends = np.repeat([first, last], _DEGREE)
    knots = np.sort(np.concatenate([between, np.repeat(inside, _AT_EDGES - 1), ends]))
    return Splines(knots, (_ENDING * fading[0], _ENDING * fading[1]))


def shortest(lag: float, away: Sequence[float]) -> float:
    """The lag (seconds) that matters: no more than what may be known near a secret allows for."""
    return min([lag, *(_OF_KNOWN * far for far in away if far > 0)])


def _between(
    anchors: FloatArray,
    edges: FloatArray,
    spans: Sequence[tuple[float, float]],
    density: tuple[float, float, float],
) -> FloatArray:
    """The anchors, and knots between them, as dense as is asked for."""
    finest, widening, within = density
    knots = [anchors[:1]]
    for start, end in pairwise(anchors):
        grid = np.linspace(start, end, _GRID)
        inside = any(a <= start and end <= b for a, b in spans)
        nearest = np.min(np.abs(grid[:, None] - edges), axis=1)
        widths = finest + (within if inside else widening) * nearest
        steps = np.concatenate([[0.0], np.cumsum(np.diff(grid) * 2 / (widths[1:] + widths[:-1]))])
        count = max(1, int(np.ceil(steps[-1])))
        knots.append(np.interp(np.linspace(0, steps[-1], count + 1)[1:], steps, grid))
    return np.concatenate(knots)


def lag_of(base: Kernel | None, begin: float, deviation: float, longest: float) -> float:
    """Seconds within which a series moves by a deviation from time `begin` on; `longest` at most.

    base: the kernel without measurement noise and level. Where it never does: when it has moved
    furthest.
    """
    if base is None or longest <= 0:
        return max(longest, 1.0)
    here = np.array([begin])

    def moved(lags: FloatArray) -> FloatArray:
        later = begin + lags
        apart = base.diagonal(later) + base.diagonal(here) - 2 * base(later, here)[:, 0]
        return np.asarray(apart - deviation**2)

    lags = np.geomspace(min(_LEAST_LAG, longest * _LEAST_SHARE), longest, _LAGS)
    moves = moved(lags)
    enough = np.flatnonzero(moves >= 0)
    if not enough.size:
        return float(lags[np.argmax(moves)])
    if enough[0] == 0:
        return float(lags[0])
    # To the last digits: a longer recording is looked at with other lags, and has the same.
    low, high = lags[enough[0] - 1], lags[enough[0]]
    from scipy.optimize import brentq  # heavy, as all of scipy.optimize

    return float(brentq(lambda lag: float(moved(np.array([lag]))[0]), low, high))


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Columns D (n, p), and Sigma_j^-1 D (n, p) for each view j."""

    columns: FloatArray
    spanned: tuple[FloatArray, ...]

    def combined(self, coefficients: FloatArray) -> "Space":
        """D A, with Sigma_j^-1 D A."""
        spanned = tuple(columns @ coefficients for columns in self.spanned)
        return Space(self.columns @ coefficients, spanned)

    def plus(self, other: "Space") -> "Space":
        """The sum, column by column."""
        spanned = tuple(a + b for a, b in zip(self.spanned, other.spanned, strict=True))
        return Space(self.columns + other.columns, spanned)


def orthonormal(
    views: Sequence[View],
    cost: FloatArray,
    pieces: Sequence[Space],
    *,
    alone: bool,
) -> Space:
    """One space with D^T W D = I for several, W the costs (n,) of the rows.

    What depends on others to rounding is dropped. alone: for one prior and nothing known, pieces
    come with what they are spanned by (a prior without measurement noise could not solve for it);
    for several it is solved for.
    """
    columns = np.hstack([piece.columns for piece in pieces])
    sizes = np.sqrt(cost @ columns**2)
    columns = columns[:, sizes > 0] / sizes[sizes > 0]
    gram, basis = eigh(columns.T @ (cost[:, None] * columns))
    least = _DEPENDENT if alone else _DEPENDENT_OF_SEVERAL
    independent = gram > least * gram[-1]
    turn = basis[:, independent] / np.sqrt(gram[independent])
    columns = columns @ turn
    if alone:
        spanned = np.hstack([piece.spanned[0] for piece in pieces])
        return Space(columns, ((spanned[:, sizes > 0] / sizes[sizes > 0]) @ turn,))
    return Space(columns, tuple(view.at(0.0).solve(columns) for view in views))


def root(matrix: FloatArray) -> FloatArray:
    """The symmetric square root (k, k); negative eigenvalues are rounding, and count as zero."""
    spectrum, basis = eigh(matrix)
    return np.asarray((basis * np.sqrt(np.maximum(spectrum, 0.0))) @ basis.T)
