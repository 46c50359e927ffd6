"""From loss matrices in balls to mu^2: an upper bound that is proved, and what it cannot be below.

    mu^2 <= r^2 sum(y) for every y with diag(y) - L positive definite

y comes from double precision; that diag(y) - L is positive definite is shown by a Cholesky
factorisation in balls, in which every pivot is surely positive.
"""

from typing import Any

import numpy as np

from trailveil.gp.balls import BALLS, floats, rows_of, upper
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import feasible_diagonal

# What y is made larger by, relative, until the factorisation shows that it is large enough; where
# hardly anything is lost, the size of the balls is much of it.
_FIRST, _LAST = 1e-12, 1e3


def effective(loss: Any) -> Any | None:
    """A ball whose upper end mu^2 / r^2 is not above, for a loss matrix (k, k) in balls.

    For one location it is the loss itself, so that its lower end is a bound as well. None where no
    y can be shown to be large enough.
    """
    rows = rows_of(loss)
    if len(rows) == 1:
        return rows[0][0].max(BALLS.number(0.0))
    y = feasible_diagonal(_symmetric(floats(loss)))
    size = max(upper(abs(value)) for row in rows for value in row)
    if size == 0.0:
        return BALLS.number(0.0)
    share = _FIRST
    while share < _LAST:
        larger = [BALLS.number(float(value)) for value in y * (1 + share) + share * share * size]
        if _is_positive(
            [
                [(larger[i] if i == j else 0) - rows[i][j] for j in range(y.size)]
                for i in range(y.size)
            ]
        ):
            return sum(larger, BALLS.number(0.0))
        share *= 10
    return None


def at_least(loss: Any) -> Any:
    """A ball whose lower end the tight bound of mu^2 / r^2 is not below, for L (k, k) in balls.

    By the dual: the least sum(y) is at least tr(L W) for every correlation matrix W.
    """
    rows = rows_of(loss)
    if len(rows) == 1:
        return rows[0][0]
    middle = _symmetric(floats(loss))
    y = feasible_diagonal(middle)
    size = max(float(np.abs(middle).max()), np.finfo(np.float64).tiny)
    values, vectors = np.linalg.eigh((np.diag(y) - middle) / size)
    # The inverse of diag(y) - L is about V V^T. Its rows, of unit length, make a correlation matrix
    # whatever rounding does to them.
    vectors = vectors / np.sqrt(np.maximum(values, 1e-14))
    total = BALLS.number(0.0)
    balls = BALLS.numbers(np.asarray(vectors, dtype=np.float64))
    lengths = [BALLS.sqrt((row * row).sum()) for row in balls]
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            total = total + value * (balls[i] * balls[j]).sum() / (lengths[i] * lengths[j])
    return total


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2)


def _is_positive(rows: list[list[Any]]) -> bool:
    """Whether every symmetric matrix in the balls is positive definite: each pivot surely is."""
    size = len(rows)
    remainder = [[rows[i][j] for j in range(i + 1)] for i in range(size)]
    for i in range(size):
        pivot = remainder[i][i]
        if not pivot > 0:
            return False
        for j in range(i + 1, size):
            ratio = remainder[j][i] / pivot
            for k in range(i + 1, j + 1):
                remainder[j][k] = remainder[j][k] - ratio * remainder[k][i]
    return True
