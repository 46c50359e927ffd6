"""The least noise of a few stated shapes: a small convex program, by Newton steps on a barrier.

    min trace(C Gamma)   s.t.   loss_i(Gamma) <= most_i,   Gamma > 0        (r x r)

Each loss is a^T (Gamma + S)^-1 a + const, convex in Gamma, and so is its barrier. Noise is within
(number of limits + r) / stiffness of the least: the duality gap of the barrier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.errors import NumericalError
from trailveil.gaussian import FloatArray, cholesky_factor, cholesky_solve
from trailveil.ways import loss_of_shapes

# How much stiffer the barrier becomes a round; relative gap at which it is enough; Newton steps.
_STIFFER, _GAP, _STEPS = 6.0, 3e-3, 40
# Noise of less cost than this, in the unit that is to be left, is as good as none.
_NONE = 1e-6
# A round is done when a step would gain so little.
_GAINS = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """told: information on (p, d) (1 + r, 1 + r); most: what may be known of p with it."""

    told: FloatArray
    most: float


def least_noise(cost: FloatArray, limits: Sequence[Limit], start: FloatArray) -> FloatArray:
    """A lower triangular root (r, r) of about the least Gamma; from a start that meets all limits.

    cost: C (r, r), positive definite. Raises NumericalError where the steps do not settle.
    """
    size = cost.shape[0]
    pairs = np.tril_indices(size)
    spread = np.zeros((size * size, pairs[0].size))
    for k, (i, j) in enumerate(zip(*pairs, strict=True)):
        spread[i * size + j, k] = spread[j * size + i, k] = 1.0
    gamma = start @ start.T
    weight = (len(limits) + size) / float(np.sum(cost * gamma))
    while True:
        for _ in range(_STEPS):
            value, slope, bend = _barrier(gamma, cost, limits, weight)
            gradient = spread.T @ slope.ravel()
            step = -np.linalg.solve(spread.T @ bend @ spread, gradient)
            gain = -float(gradient @ step)
            if gain < _GAINS:
                break
            change = (spread @ step).reshape(size, size)
            share = 1.0
            while _value(gamma + share * change, cost, limits, weight) > value - 0.1 * share * gain:
                share /= 2
                if share < 1e-10:
                    raise NumericalError("the search for the noise of a place did not settle")
            gamma = gamma + share * change
        if (len(limits) + size) / weight <= max(_NONE, _GAP * float(np.sum(cost * gamma))):
            return cholesky_factor(gamma)
        weight *= _STIFFER


def _value(gamma: FloatArray, cost: FloatArray, limits: Sequence[Limit], weight: float) -> float:
    try:
        root = cholesky_factor(gamma)
        spare = [1.0 - loss_of_shapes(one.told, root)[0] / one.most for one in limits]
    except NumericalError:
        return float("inf")
    if min(spare) <= 0:
        return float("inf")
    volume = 2 * float(np.sum(np.log(np.diagonal(root))))
    return weight * float(np.sum(cost * gamma)) - float(np.sum(np.log(spare))) - volume


def _barrier(
    gamma: FloatArray, cost: FloatArray, limits: Sequence[Limit], weight: float
) -> tuple[float, FloatArray, FloatArray]:
    """The barrier, its gradient (r, r) and its Hessian on vec(Gamma) (r^2, r^2)."""
    root = cholesky_factor(gamma)
    one = np.eye(gamma.shape[0])
    precise = cholesky_solve(root, one)
    slope = weight * cost - precise
    bend = np.kron(precise, precise)
    for limit in limits:
        loss, fall = loss_of_shapes(limit.told, root)
        spare = limit.most - loss
        inner = cholesky_factor(limit.told[1:, 1:] + precise)
        left = precise - precise @ cholesky_solve(inner, precise)
        square = np.outer(fall, fall)
        slope = slope - square / spare
        vector = square.ravel()
        bend = bend + np.outer(vector, vector) / spare**2 + 2 * np.kron(square, left) / spare
    return _value(gamma, cost, limits, weight), slope, np.asarray(bend)
