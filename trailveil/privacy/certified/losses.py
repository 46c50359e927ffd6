"""Losses in balls, against somebody who knows nothing besides, or any one recorded value.

With a value k known to an accuracy, Q becomes Q - q q^T / (Q_kk + accuracy^2).

From loss matrices to mu^2: mu^2 <= r^2 sum(y) for every y with diag(y) - L positive definite. y
comes from double precision; that diag(y) - L is positive definite is shown by a Cholesky
factorisation in balls, in which every pivot is surely positive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trailveil.gp.balls import BALLS, floats, lower, matrix, rows_of, upper
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.certified.observed import Remaining, TooWide
from trailveil.privacy.guarantee import feasible_diagonal

# What y is made larger by, relative, until the factorisation shows that it is large enough; where
# hardly anything is lost, the size of the balls is much of it.
_LEAST_SHARE, _MOST_SHARE = 1e-12, 1e3


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """mu^2 / r^2 of one secret, at most `upper` and at least `lower`, as balls' ends.

    variance: a lower bound of the least variance that is left, in any direction. radius: how wide
    the balls are. at: the time of the value that was known besides, where it is worst, or None.
    """

    upper: float
    lower: float
    variance: float
    radius: float
    at: float | None = None


def worst(
    after: Remaining, before: Remaining, group: Sequence[int], times: FloatArray, accuracy: float
) -> Lost:
    """The worst of nothing known besides and of each of the values known, of one secret.

    after, before: with what is observed, and without. group: its locations. times: of the values
    (p,), each of which may be known to an accuracy. Raises TooWide.
    """
    posterior, known = (
        [[part.covariance[i][j] for j in group] for i in group] for part in (after, before)
    )
    largest = _lost(posterior, known, None, -1.0)
    if largest is None:
        raise TooWide
    accurate = BALLS.number(accuracy) ** 2
    for k, time in enumerate(times.tolist()):
        matrices = [
            _less(rows, [part.shared[k][i] for i in group], part.variances[k] + accurate)
            for rows, part in ((posterior, after), (known, before))
        ]
        lost = _lost(matrices[0], matrices[1], time, largest.upper)
        largest = largest if lost is None else _worse(largest, lost)
    return largest


def _worse(lost: Lost, other: Lost) -> Lost:
    """The worse of two in every respect."""
    more = other if other.upper > lost.upper else lost
    return Lost(
        more.upper,
        max(lost.lower, other.lower),
        min(lost.variance, other.variance),
        max(lost.radius, other.radius),
        more.at,
    )


def _less(rows: list[list[Any]], shared: list[Any], divisor: Any) -> list[list[Any]]:
    """C - c c^T / divisor."""
    return [
        [value - a * b / divisor for value, b in zip(row, shared, strict=True)]
        for row, a in zip(rows, shared, strict=True)
    ]


def _lost(
    posterior: list[list[Any]], known: list[list[Any]], at: float | None, least: float
) -> Lost | None:
    """mu^2 / r^2 from Q and P in balls; None where several lose surely at most `least`."""
    if len(posterior) > 1:
        return _lost_of_several(posterior, known, at, least)
    after, before = posterior[0][0], known[0][0]
    if not after > 0 or not before > 0:
        raise TooWide
    loss = 1 / after - 1 / before
    return Lost(max(0.0, upper(loss)), max(0.0, lower(loss)), lower(after), _radius([loss]), at)


def _radius(balls: Sequence[Any]) -> float:
    """How wide the widest is."""
    return max(upper(2 * ball.rad()) for ball in balls)


def _lost_of_several(
    posterior: list[list[Any]], known: list[list[Any]], at: float | None, least: float
) -> Lost | None:
    size = len(posterior)
    try:
        after, before = (
            matrix(size, size, [v for row in rows for v in row]).inv()
            for rows in (posterior, known)
        )
    except ZeroDivisionError as error:
        raise TooWide from error
    loss = after - before
    traces = [
        sum((precision[i, i] for i in range(size)), BALLS.number(0.0))
        for precision in (loss, after)
    ]
    if size * traces[0] < least:
        return None
    if (bound := effective(loss)) is None:
        raise TooWide
    wide = size * _radius(loss.entries())
    return Lost(upper(bound), max(0.0, lower(at_least(loss))), lower(1 / traces[1]), wide, at)


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
    share = _LEAST_SHARE
    while share < _MOST_SHARE:
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
