"""Gaussian densities written out, in 50 digits: the oracle of the theorems.

A law is its log density, a quadratic -z^T L z / 2 + h^T z + c. A conditional law is the joint
density with the secret held at a value, as a function of what is left; a divergence is its
defining integral, by completing the square. So there is no conditioning formula of covariances,
and no formula of a divergence between Gaussians.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

DIGITS = 50
mp = mpmath.MPContext()
mp.dps = DIGITS

Covariance = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Law:
    """log density of z: -z^T precision z / 2 + linear^T z + constant."""

    precision: Any
    linear: Any
    constant: Any


def matrix(values: Any) -> Any:
    """An array or nested list as a matrix of extended numbers, exactly."""
    rows = values.tolist() if isinstance(values, np.ndarray) else values
    return mp.matrix([[mp.mpf(value) for value in row] for row in rows])


def joint(covariance: Any) -> Law:
    """The normal density of mean zero."""
    size = covariance.rows
    constant = -(size * mp.log(2 * mp.pi) + mp.log(mp.det(covariance))) / 2
    return Law(covariance**-1, mp.zeros(size, 1), constant)


def held(law: Law, at: Sequence[int], values: Sequence[Any]) -> Law:
    """The density of the rest with some variables held at values, normalised."""
    rest = [i for i in range(law.precision.rows) if i not in at]
    precision = mp.matrix([[law.precision[i, j] for j in rest] for i in rest])
    linear = mp.matrix(
        [
            law.linear[i] - sum(law.precision[i, j] * v for j, v in zip(at, values, strict=True))
            for i in rest
        ]
    )
    free = Law(precision, linear, mp.mpf(0))
    return Law(precision, linear, -log_integral(free))


def shifted(law: Law, by: Any) -> Law:
    """The density of z + by."""
    moved = law.linear + law.precision * by
    change = (law.linear.T * by)[0] + (by.T * law.precision * by)[0] / 2
    return Law(law.precision, moved, law.constant - change)


def log_integral(law: Law) -> Any:
    """The logarithm of the integral over all z; infinite where it diverges."""
    size = law.precision.rows
    try:
        factor = mp.cholesky(law.precision)
    except ValueError:
        return mp.inf
    log_det = 2 * sum(mp.log(factor[i, i]) for i in range(size))
    square = (law.linear.T * mp.lu_solve(law.precision, law.linear))[0]
    return law.constant + square / 2 + (size * mp.log(2 * mp.pi) - log_det) / 2


def divergence(p: Law, q: Law, order: Any) -> Any:
    """log of the integral of p^order q^(1 - order), over order - 1."""
    order = mp.mpf(order)
    mixed = Law(
        order * p.precision + (1 - order) * q.precision,
        order * p.linear + (1 - order) * q.linear,
        order * p.constant + (1 - order) * q.constant,
    )
    return log_integral(mixed) / (order - 1)


def precision_of(covariance: Any, last: int) -> Any:
    """The precision (last, last) of the last variables when all others are held: log density's."""
    law = joint(covariance)
    size = covariance.rows
    return law.precision[size - last : size, size - last : size]


def loss(covariance: Any, last: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Posterior less prior precision of the last variables, as floats."""
    size = covariance.rows
    prior = covariance[size - last : size, size - last : size] ** -1
    found = precision_of(covariance, last) - prior
    return np.array([[float(found[i, j]) for j in range(last)] for i in range(last)])


def kernel_rbf(length: float, std: float = 1.0) -> Covariance:
    """Squared exponential."""
    return lambda a, b: mp.mpf(std) ** 2 * mp.exp(-(((a - b) / mp.mpf(length)) ** 2) / 2)


def kernel_exponential(length: float, std: float = 1.0) -> Covariance:
    """Ornstein-Uhlenbeck."""
    return lambda a, b: mp.mpf(std) ** 2 * mp.exp(-abs(a - b) / mp.mpf(length))


def kernel_periodic(length: float, period: float, std: float = 1.0) -> Covariance:
    """Periodic."""
    return lambda a, b: (
        mp.mpf(std) ** 2
        * mp.exp(-2 * (mp.sin(mp.pi * (a - b) / mp.mpf(period)) / mp.mpf(length)) ** 2)
    )
