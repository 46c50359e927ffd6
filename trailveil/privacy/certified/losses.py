"""Losses in balls, against somebody who knows nothing besides, or any one recorded value.

With a value k known to an accuracy, Q becomes Q - q q^T / (Q_kk + accuracy^2). q, the covariance
with the secret, comes with the secret's own weights, for all values at once. Q_kk is computed for
some of them, the columns; for the others it is at least what the columns tell of it (Cauchy and
Schwarz), and what follows is a bound of the loss. Values that are still in question then
become columns, until the worst of all is one.

From loss matrices to mu^2: mu^2 <= r^2 sum(y) for every y with diag(y) - L positive definite. y
comes from double precision; that diag(y) - L is positive definite is shown by a Cholesky
factorisation in balls, in which every pivot is surely positive.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trailveil.gp.balls import BALLS, floats, lower, matrix, matrix_of, rows_of, upper
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.certified.observed import Observed, secret_of_values
from trailveil.privacy.certified.posterior import BallBlock, TooWide, block, deviations
from trailveil.privacy.guarantee import feasible_diagonal

# Columns to begin with on each side of a secret, at doubling distances; more a round; rounds.
_FIRST, _MORE, _ROUNDS = 10, 12, 12
# Relative: what variances of the columns together are made larger by, to find weights.
_RIDGE = 2.0**-40
# Relative: values that are no worse than the worst column but for so much are not in question.
_ALIKE = 1e-12
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


@dataclass(frozen=True, eq=False)
class BallView:
    """Some secrets, side by side, with what is observed and without.

    posterior, known: Q and P of each of the groups of locations that are one secret.
    """

    after: BallBlock
    before: BallBlock
    groups: tuple[tuple[int, ...], ...]

    @cached_property
    def posterior(self) -> dict[tuple[int, ...], list[list[Any]]]:
        """Q of each group."""
        return _parts(self.after, self.groups)

    @cached_property
    def known(self) -> dict[tuple[int, ...], list[list[Any]]]:
        """P of each group."""
        return _parts(self.before, self.groups)

    def alone(self, group: tuple[int, ...]) -> Lost:
        """Of one secret, with nothing known besides."""
        lost = _lost(self.posterior[group], self.known[group], None, -1.0)
        if lost is None:
            raise TooWide
        return lost


def _parts(
    ball_block: BallBlock, groups: tuple[tuple[int, ...], ...]
) -> dict[tuple[int, ...], list[list[Any]]]:
    rows = rows_of(ball_block.covariance)
    return {group: [[rows[i][j] for j in group] for i in group] for group in groups}


class KnownValues:
    """The recorded values (p,) that an adversary may know one of, to an accuracy."""

    def __init__(
        self, after: Observed, before: Observed, view: BallView, times: FloatArray, accuracy: float
    ) -> None:
        """Nothing is computed yet of their own variances."""
        self.after, self.before, self.view, self.times = after, before, view, times
        self.accurate = BALLS.number(accuracy) ** 2
        self.shared = rows_of(view.after.cross)
        self.knew = rows_of(view.before.cross)
        self.most = [deviation * deviation for deviation in deviations(before, times)]
        self.columns: list[int] = []
        self.variances: dict[int, Any] = {}
        self.cross: list[list[Any]] = [[] for _ in range(times.size)]

    def add(self, columns: Sequence[int]) -> None:
        """Compute the variances of some more values."""
        new = sorted(set(columns) - set(self.columns))
        if not new:
            return
        secret = secret_of_values(self.times[new])
        ball_block = block(self.after, secret, self.times)
        known = self.most
        if self.before.size:
            known = [None] * self.times.size
            knew = rows_of(block(self.before, secret, np.empty(0)).covariance)
            for i, k in enumerate(new):
                known[k] = knew[i][i]
        variances = rows_of(ball_block.covariance)
        for i, k in enumerate(new):
            self.variances[k] = (variances[i][i], known[k])
        for row, more in zip(self.cross, rows_of(ball_block.cross), strict=True):
            row.extend(more)
        self.columns += new

    def spreads(self) -> list[Any]:
        """A lower bound of Q_kk of every value, from what the columns G tell of it.

        (w^T Q_Gk)^2 / w^T Q_GG w, for any w: about Q_GG^-1 Q_Gk, from double precision, where noise
        of low rank makes Q_GG all but singular.
        """
        size = len(self.columns)
        between = [[self.cross[i][b] for b in range(size)] for i in self.columns]
        for a, i in enumerate(self.columns):
            between[a][a] = self.variances[i][0]
        covariance = matrix(size, size, [v for row in between for v in row])
        cross = matrix(self.times.size, size, [v for row in self.cross for v in row])
        weights = matrix_of(_weights(floats(covariance), floats(cross)))
        bounds = []
        for k, (row, pulled) in enumerate(
            zip(rows_of(weights), rows_of(weights * covariance), strict=True)
        ):
            if k in self.variances:
                bounds.append(self.variances[k][0])
                continue
            zero = BALLS.number(0.0)
            shared = sum((a * b for a, b in zip(row, self.cross[k], strict=True)), zero)
            spread = sum((a * b for a, b in zip(row, pulled, strict=True)), zero)
            bounds.append(BALLS.number(lower(shared**2 / spread)) if spread > 0 else zero)
        return bounds

    def lost(self, group: tuple[int, ...], k: int, spread: Any, least: float) -> Lost | None:
        """Of one secret, with value k known; None where several lose surely at most `least`."""
        shared, knew = ([row[k][i] for i in group] for row in (self.shared, self.knew))
        before = self.variances[k][1] if k in self.variances else self.most[k]
        after = _less(self.view.posterior[group], shared, spread + self.accurate)
        known = _less(self.view.known[group], knew, before + self.accurate)
        try:
            return _lost(after, known, float(self.times[k]), least)
        except TooWide:
            if k in self.variances:
                raise
            return Lost(math.inf, 0.0, 0.0, 0.0, float(self.times[k]))  # not settled yet


def worst(values: KnownValues | None, view: BallView, enough: float) -> list[Lost]:
    """The worst of nothing known besides and of each of the values known, for each secret."""
    losses = [view.alone(group) for group in view.groups]
    if values is None:
        return losses
    values.add(_first(values.times))
    opened, spreads = [list(range(values.times.size)) for _ in view.groups], values.spreads()
    for attempt in range(_ROUNDS):
        for i, group in enumerate(view.groups):
            losses[i], opened[i] = _closed(values, group, losses[i], opened[i], spreads, enough)
        asked = [k for each in opened for k in each]
        if not asked or attempt == _ROUNDS - 1:
            break
        values.add(_some(opened))
        spreads = values.spreads()
    return [
        _bounded(values, *each, spreads) for each in zip(view.groups, losses, opened, strict=True)
    ]


def _closed(
    values: KnownValues,
    group: tuple[int, ...],
    best: Lost,
    opened: list[int],
    spreads: list[Any],
    enough: float,
) -> tuple[Lost, list[int]]:
    """The worst bound of one secret where it is settled, and the values in question."""
    for k in opened:
        if k in values.variances and (lost := values.lost(group, k, spreads[k], 0.0)) is not None:
            best = _worse(best, lost)
    limit = max(best.upper * (1 + _ALIKE), enough)
    asked = []
    for k in opened:
        if k in values.variances or (lost := values.lost(group, k, spreads[k], best.upper)) is None:
            continue
        if lost.upper > limit:
            asked.append((lost.upper, k))
        else:
            best = _worse(best, replace(lost, lower=0.0))
    return best, [k for _, k in sorted(asked, reverse=True)]


def _bounded(
    values: KnownValues, group: tuple[int, ...], best: Lost, opened: list[int], spreads: list[Any]
) -> Lost:
    """The same with the bounds of the values that are still in question."""
    for k in opened:
        if (lost := values.lost(group, k, spreads[k], best.upper)) is not None:
            best = _worse(best, replace(lost, lower=0.0))
    return best


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


def _weights(covariance: FloatArray, cross: FloatArray) -> FloatArray:
    """About told own^-1 (p, g), small where own is all but singular."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    ridge = _RIDGE * float(np.max(np.abs(values))) + np.finfo(np.float64).tiny
    return np.asarray((cross @ vectors) / (np.maximum(values, 0.0) + ridge) @ vectors.T)


def _some(opened: Sequence[Sequence[int]]) -> list[int]:
    """The worst of the values in question of each secret, and some evenly among all of them."""
    few = list(dict.fromkeys(each[0] for each in opened if each))
    step = max(1, len(few) // (_MORE // 2))
    every = sorted({k for each in opened for k in each})
    among = max(1, len(every) // (_MORE // 2))
    return [*few[::step], *every[::among]]


def _first(times: FloatArray) -> list[int]:
    """The nearest values on each side of the gap around the secret, and on at doubling steps."""
    count = times.size
    gap = int(np.argmax(np.diff(times))) if count > 1 else 0
    chosen = {0, count - 1, gap, gap + 1}
    for i in range(_FIRST):
        chosen |= {gap - 2**i, gap + 1 + 2**i}
    return sorted(index for index in chosen if 0 <= index < count)


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
