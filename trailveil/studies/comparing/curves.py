"""Distances between two curves of points: Hausdorff, discrete Frechet, dynamic time warping."""

import numpy as np
from scipy.spatial.distance import cdist

from trailveil.gp.gaussian import FloatArray


def hausdorff(first: FloatArray, other: FloatArray) -> float:
    """The largest distance from a point of either (n, 2), (m, 2) to the nearest of the other."""
    apart = cdist(first, other)
    return float(max(apart.min(axis=0).max(), apart.min(axis=1).max()))


def frechet(first: FloatArray, other: FloatArray) -> float:
    """The discrete Frechet distance of two curves, O(n m).

    The shortest leash for two who walk the points in order and never go back. Source: Eiter and
    Mannila (1994), Computing discrete Frechet distance, CD-TR 94/64, TU Vienna.
    """
    return _walked(cdist(first, other), np.maximum)


def warping(first: FloatArray, other: FloatArray) -> float:
    """The mean distance along the best alignment of two curves, O(n m).

    Dynamic time warping with steps of one in either or both, its sum divided by the points of the
    longer curve. Source: Sakoe and Chiba (1978), IEEE Trans. ASSP 26.
    """
    return _walked(cdist(first, other), np.add) / max(len(first), len(other))


def _walked(apart: FloatArray, joined: np.ufunc) -> float:
    """The least of the costs (n, m), joined along a walk from the first pair to the last.

    A diagonal of pairs depends on the two before it alone, so each is one step.
    """
    rows, columns = apart.shape
    nothing = np.full(rows + 1, np.inf)
    before, latest = nothing.copy(), nothing.copy()
    # Row i of a diagonal stands at i + 1; the pair before the first costs nothing.
    before[0] = 0.0 if joined is np.add else -np.inf
    for diagonal in range(rows + columns - 1):
        low, high = max(0, diagonal - columns + 1), min(rows, diagonal + 1)
        at = np.arange(low, high)
        cheapest = np.minimum(np.minimum(latest[at], latest[at + 1]), before[at])
        new = nothing.copy()
        new[at + 1] = joined(apart[at, diagonal - at], cheapest)
        before, latest = latest, new
    return float(latest[rows])
