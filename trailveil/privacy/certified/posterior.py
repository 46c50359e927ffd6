"""What is left of a secret, as balls that hold it: by no factorisation, or by one that is proved.

With r = B - S X for any X at all,

    Q = K - B^T X - X^T r - r^T S^-1 r,      0 <= r^T S^-1 r <= |r|^2 / least eigenvalue of S

so X may come from double precision, refined with residuals computed in balls, and nothing in the
proof rests on how it was found. S has its independent noise as a least eigenvalue. Where it has
none, it is inverted in balls, with as many bits as that takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trailveil.errors import NumericalError
from trailveil.gp.balls import (
    BALLS,
    floats,
    lower,
    matrix,
    matrix_of,
    middle,
    rows_of,
    within,
    working_bits,
)
from trailveil.gp.gaussian import FloatArray, regression
from trailveil.privacy.certified.observed import Observed, between
from trailveil.privacy.prior import observe
from trailveil.privacy.secrets import Secret

# Rows up to which S is inverted in balls: a minute where a thousand bits are enough.
LARGEST_INVERTED = 400
# Refinements of X for each bit, each of which must make the residual smaller by this factor.
_STEPS, _GAIN = 0.1, 0.25
# Bits, of those that are carried, that a residual must have gone down by to be as good as none:
# where its square counts, and where it does; and that it may miss by where S can be inverted.
_SQUARED, _ITSELF, _MISSED = 0.28, 0.45, 20


class TooWide(Exception):  # no failure: more bits are taken
    """The balls of a precision say nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class BallBlock:
    """A secret of k locations given what is observed, as balls.

    covariance: Q (k, k). cross: Cov(recorded values at other times, secret) (p, k).
    """

    covariance: Any
    cross: Any


def block(observed: Observed, secret: Secret, others: FloatArray) -> BallBlock:
    """A secret, and recorded values at other times (p,), given what is observed.

    In the precision that is set. Raises TooWide where the balls are as good as nothing, and
    NumericalError where more bits would not help.
    """
    kernel = observed.kernel_of(secret)
    prior = matrix_of(secret.weights) * between(kernel, secret.times, secret)
    cross_others = between(kernel, others, secret)
    if not observed.size:
        return BallBlock(prior, cross_others)
    cross = between(kernel, observed.times, secret)
    small = 2.0 ** -((_ITSELF if others.size else _SQUARED) * working_bits())
    independent = lower(observed.least()) > 0
    refined = _refined(observed, secret, cross, small) if independent else None
    if refined is None:
        weights = _inverted(observed, cross)
        return BallBlock(
            prior - cross.transpose() * weights, cross_others - observed.values(others, weights)
        )
    weights, residual = refined
    covariance = prior - cross.transpose() * weights - weights.transpose() * residual
    missed = _missed(residual, observed.least())
    shared = cross_others - observed.values(others, weights)
    return BallBlock(
        covariance + _outer(missed, missed), shared + _outer(deviations(observed, others), missed)
    )


def deviations(observed: Observed, times: FloatArray) -> list[Any]:
    """The deviations of recorded values at some times under the prior."""
    at = BALLS.numbers(times)
    values = np.broadcast_to(observed.prior.kernel.formula(at, at, BALLS), times.shape)
    return [variance.sqrt() for variance in values.tolist()]


def _missed(residual: Any, least: Any) -> list[Any]:
    """Upper bounds of the square roots of |r|^2 / least, of each column."""
    zero = BALLS.number(0.0)
    squares = [sum((v * v for v in row), zero) for row in rows_of(residual.transpose())]
    return [(square / least).abs_upper().sqrt() for square in squares]


def _outer(first: list[Any], other: list[Any]) -> Any:
    """Balls around 0 (p, k): no covariance is larger than the product of the two deviations."""
    return matrix(len(first), len(other), [within(a * b) for a in first for b in other])


def _inverted(observed: Observed, cross: Any) -> Any:
    """S^-1 B in balls; of rows that are the same all but one count for nothing."""
    if observed.size > LARGEST_INVERTED:
        raise NumericalError(
            f"a certificate for more than {LARGEST_INVERTED} points must have independent noise in "
            "them that doubles can resolve, got none: state a measurement noise (--noise-std) or a "
            "floor (--floor)"
        )
    distinct = observed.distinct
    whole, sides = rows_of(observed.matrix()), rows_of(cross)
    size, width = len(distinct), cross.ncols()
    gram = matrix(size, size, [whole[i][j] for i in distinct for j in distinct])
    try:
        solved = rows_of(gram.solve(matrix(size, width, [v for i in distinct for v in sides[i]])))
    except ZeroDivisionError as error:
        raise TooWide from error
    every: list[list[Any]] = [[0] * width] * observed.size
    for i, row in zip(distinct, solved, strict=True):
        every[i] = row
    return matrix(observed.size, width, [value for row in every for value in row])


def _refined(
    observed: Observed, secret: Secret, cross: Any, small: float
) -> tuple[Any, Any] | None:
    """X and B - S X; None where double precision is no help. small: what S X may miss, relative."""
    if observed.mechanism.refinement is not None:
        return None
    try:
        weights, solve = _started(observed, secret)
    except NumericalError:
        return None
    x = matrix_of(weights)
    residual = cross - observed.apply(x)
    sizes = _sizes(residual)
    enough = small * lower(observed.least().sqrt()) * _scale(observed, secret)
    for _ in range(int(_STEPS * working_bits())):
        if np.all(sizes <= enough):
            break
        finer = middle(x + matrix_of(solve(floats(residual))))
        remaining = cross - observed.apply(finer)
        finer_sizes = _sizes(remaining)
        if not np.sum(finer_sizes) < _GAIN * np.sum(sizes):
            break
        x, residual, sizes = finer, remaining, finer_sizes
    if observed.size <= LARGEST_INVERTED and np.any(sizes > 2.0**_MISSED * enough):
        return None
    return x, residual


def _scale(observed: Observed, secret: Secret) -> FloatArray:
    """About the deviations (k,) of the locations, the level left out."""
    base, loading = observed.prior.spread(secret)
    spread = np.sqrt(np.maximum(np.diagonal(base), 0.0))
    return np.where(spread > 0, spread, np.abs(loading))


def _sizes(balls: Any) -> FloatArray:
    """About the norms of the columns (m,)."""
    values = floats(balls)
    return np.asarray(np.sqrt(np.sum(values * values, axis=0)))


def _started(
    observed: Observed, secret: Secret
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """S^-1 B in double precision (n, k), and S^-1 as a function of columns."""
    observation = observe(observed.prior, observed.mechanism, observed.known)
    joint = observation.joint(secret)
    inverse = regression(joint)

    def solve(residual: FloatArray) -> FloatArray:
        nothing = np.zeros((joint.loadings.shape[1], residual.shape[1]))
        return inverse(residual, nothing)

    return inverse(joint.cross, joint.secret_loadings.T), solve
