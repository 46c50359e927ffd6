"""Noise directions beyond double precision, for priors without measurement noise.

Such a prior knows some combinations of the fixes so well that a direction rounded to 53 bits is
undone by
them: at RBF length scale 6.1 and 50 points, a loss of 7.7 becomes 1e9. The direction is computed
again in extended precision and kept as a sum of float64 terms, as many as the recomputed loss asks
for.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from trailveil.errors import NumericalError
from trailveil.gp.extended import LARGEST_EXTENDED, Extended, Objects, expansion, solve
from trailveil.gp.gaussian import TARGET_TOLERANCE, UNIT_ROUNDOFF, FloatArray
from trailveil.privacy.extended_loss import joint_covariance
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, Prior
from trailveil.privacy.secrets import Secret

# Numbers of float64 terms that are tried in turn, and the precision the direction is computed in.
_TERMS = (4, 8, 18)
_BITS = 1024


def refined(
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    direction: Callable[[Extended], Objects],
    trace: float,
    ideal: float,
) -> Mechanism:
    """The mechanism with its last column in as many digits as its loss needs to be `ideal` to 1e-9.

    direction: the exact direction over the released rows, in fixed point. trace: of that column.
    Unchanged where double precision is enough, or where n is out of reach of extended precision.
    """
    if mechanism.rows.size > LARGEST_EXTENDED:
        return mechanism
    if _loss(prior, secret, mechanism) <= ideal * (1 + TARGET_TOLERANCE):
        return mechanism
    m = Extended(_BITS)
    vector = direction(m)
    squared = sum(v * v for v in vector)
    root = m.context.sqrt(m.number(trace) / m.context.mpf(int(squared)))
    exact = m.fixed(np.array([m.context.mpf(int(v)) * root for v in vector], dtype=object))
    rough = mechanism.factor[mechanism.rows, -1]
    largest = int(np.argmax(np.abs(rough)))
    if (exact[largest] > 0) != (rough[largest] > 0):
        exact = -exact
    for terms in _TERMS:
        finer = _with_column(mechanism, expansion(exact, _BITS, terms))
        if _loss(prior, secret, finer) <= ideal * (1 + TARGET_TOLERANCE):
            return finer
    raise NumericalError(
        "the noise direction must keep its loss when written down, got none that does; "
        "state a measurement noise (--noise-std) or a noise floor (--floor)"
    )


def shifted_direction(
    prior: Prior, secret: Secret, existing: Mechanism, shift: float
) -> Callable[[Extended], Objects]:
    """(Sigma + Gamma_existing + shift I)^-1 b over the released rows, in fixed point."""

    def direction(m: Extended) -> Objects:
        joint = joint_covariance(m, prior, secret, existing, NOTHING_KNOWN)
        count = existing.rows.size
        matrix, cross = joint[:count, :count], joint[:count, count]
        for i in range(count):
            matrix[i, i] += m.number(shift)
        scale = max(abs(matrix[i, i]) for i in range(count))
        return solve(m.fixed(matrix / scale), m.fixed(cross / scale), m.bits)

    return direction


def _loss(prior: Prior, secret: Secret, mechanism: Mechanism) -> float:
    try:
        return loss_matrix(prior, secret, mechanism).largest
    except NumericalError:
        return float("inf")


def _with_column(mechanism: Mechanism, terms: FloatArray) -> Mechanism:
    """The mechanism with its last column replaced by the expansion (p, rows)."""
    factor = mechanism.factor.copy()
    finer = np.zeros((terms.shape[0] - 1, *factor.shape))
    factor[mechanism.rows, -1] = terms[0]
    finer[:, mechanism.rows, -1] = terms[1:]
    return replace(mechanism, factor=factor, refinement=finer)


def undone_by_rounding(judge: Prior, existing: Mechanism, trace: float) -> bool:
    """Whether a direction of this size, rounded to 53 bits, may be undone by the prior."""
    rounded = existing.rows.size * UNIT_ROUNDOFF * trace
    return rounded > TARGET_TOLERANCE * (judge.noise_variance + existing.floor)


def canonical(direction: FloatArray) -> FloatArray:
    """The direction with its sign fixed: the sum positive, or the largest entry if that is about 0.

    Two computers must draw the same noise from the same key.
    """
    total, size = float(direction.sum()), float(np.abs(direction).sum())
    sign = total if abs(total) > 1e-6 * size else float(direction[np.argmax(np.abs(direction))])
    return direction if sign > 0 else -direction
