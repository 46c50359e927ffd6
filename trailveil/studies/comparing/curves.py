"""Distances between two curves of points: Hausdorff, discrete Frechet, dynamic time warping."""

import numpy as np
from scipy.spatial.distance import cdist

from trailveil.gp.gaussian import FloatArray


def distances(first: FloatArray, other: FloatArray) -> tuple[float, float, float]:
    """Hausdorff, discrete Frechet and dynamic time warping of curves (n, 2) and (m, 2), O(n m).

    Hausdorff: the largest distance from a point of either to the nearest of the other. Frechet: the
    shortest leash for two who walk the points in order and never go back; Eiter and Mannila (1994),
    Computing discrete Frechet distance, CD-TR 94/64, TU Vienna. Warping: the mean distance along
    the best alignment with steps of one in either or both, its sum divided by the points of the
    longer curve; Sakoe and Chiba (1978), IEEE Trans. ASSP 26.
    """
    apart = cdist(first, other)
    leash, way = _walked(apart)
    nearest = max(apart.min(axis=0).max(), apart.min(axis=1).max())
    return float(nearest), leash, way / max(len(first), len(other))


def _walked(apart: FloatArray) -> tuple[float, float]:
    """The least largest, and the least sum, of the costs (n, m) along a walk from first to last.

    A diagonal of pairs depends on the two before it alone, so each is one step, of both at once.
    """
    rows, columns = apart.shape
    flat = np.ascontiguousarray(apart).ravel()
    # Row i of a diagonal stands at i + 1; the pair before the first costs nothing.
    before, latest, new = (np.full((2, rows + 1), np.inf) for _ in range(3))
    before[:, 0] = -np.inf, 0.0
    for diagonal in range(rows + columns - 1):
        low, high = max(0, diagonal - columns + 1), min(rows, diagonal + 1)
        begin = diagonal + low * (columns - 1)
        end = begin + (high - low - 1) * (columns - 1) + 1
        costs = flat[begin : end : max(columns - 1, 1)]
        cheapest = np.minimum(latest[:, low:high], latest[:, low + 1 : high + 1])
        np.minimum(cheapest, before[:, low:high], out=cheapest)
        new[:] = np.inf
        np.maximum(costs, cheapest[0], out=new[0, low + 1 : high + 1])
        np.add(costs, cheapest[1], out=new[1, low + 1 : high + 1])
        before, latest, new = latest, new, before
    return float(latest[0, rows]), float(latest[1, rows])
