"""Symmetric matrices by their lower triangle, and quadratic forms over them."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray


@lru_cache(maxsize=64)
def triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Rows and columns of the lower triangle; 1/2 on the diagonal.

    Which occurs once and not twice.
    """
    rows, columns = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 0.5, 1.0)


@lru_cache(maxsize=4)
def _crossings(size: int) -> tuple[NDArray[np.intp], ...]:
    """Where the four products of the form are in T[b, c, d, a], for each two of the triangle."""
    rows, columns, _ = triangle(size)
    r, c = rows[:, None], columns[:, None]
    s, d = rows[None, :], columns[None, :]

    def place(
        b: NDArray[np.intp], c: NDArray[np.intp], d: NDArray[np.intp], a: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        flat = ((b * size + c) * size + d) * size + a
        return np.broadcast_to(flat, (rows.size, rows.size))

    return place(c, s, r, d), place(c, d, r, s), place(r, d, c, s), place(r, s, c, d)


def quadratic(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """The form sum trace(D P D Q) over the lower triangle of a symmetric D, of pairs (p, p)."""
    size = pairs[0][0].shape[0]
    first = np.stack([p.ravel() for p, _ in pairs])
    second = np.stack([q.ravel() for _, q in pairs])
    table = (first.T @ second).ravel()
    weights = triangle(size)[2]
    total = sum(table[where] for where in _crossings(size))
    return np.asarray(total * (weights[:, None] * weights))
