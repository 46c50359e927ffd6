"""Coupled dimensions: a prior of d coordinates that vary together, Sigma = K kron R.

    Cov(X_a(t), X_b(t')) = sum over parts of K(t, t') R_ab

K: a kernel of times. R: a d x d covariance between coordinates, such as that of a road that runs
north-east. Several parts let the measurement noise be independent between coordinates where the
motion is not. Independent dimensions are R = I, and are better judged one by one: their loss
matrices go to `trailveil.privacy.guarantee.tight_bound` as a list.

One secret of S locations then has one loss matrix L (S d, S d), whose rows run location by
location: `tight_bound([L], radius, locations=S)`. It comes from
`trailveil.privacy.composition.joint_loss`. Source: the paper treats independent dimensions only
(appendix); the loss matrix and its bound carry over as they stand, since only joint Gaussians are
used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue
from trailveil.gp.arrays import read_only
from trailveil.gp.gaussian import (
    FloatArray,
    check_covariance,
)
from trailveil.gp.kernels import Clock, Kernel


@dataclass(frozen=True, slots=True, eq=False)
class Coupling:
    """A Gaussian process prior of d coordinates, as a sum of independent parts (kernel, R).

    parts: each a kernel (its variance in squared units of the series) and R (d, d), symmetric
    positive semidefinite and without a unit. Raises InvalidValue where there is no part, or one R
    is not such a matrix or has another shape.
    """

    parts: tuple[tuple[Kernel, FloatArray], ...]

    def __post_init__(self) -> None:
        """Check the matrices and make them read-only."""
        if not self.parts:
            raise InvalidValue("a prior of several coordinates must have at least one part")
        checked = tuple((kernel, _coupling_matrix(matrix)) for kernel, matrix in self.parts)
        shapes = {matrix.shape for _, matrix in checked}
        if len(shapes) > 1:
            raise InvalidValue(f"all parts must couple as many coordinates, got shapes {shapes}")
        object.__setattr__(self, "parts", checked)

    @property
    def dimensions(self) -> int:
        """d, the number of coordinates."""
        return int(self.parts[0][1].shape[0])

    def warp(self, clock: Clock) -> "Coupling":
        """The same prior on another clock; measurement noise stays with each fix."""
        return Coupling(tuple((kernel.warp(clock), matrix) for kernel, matrix in self.parts))

    def __add__(self, other: "Coupling") -> "Coupling":
        """The sum of two independent series."""
        return Coupling((*self.parts, *other.parts))


def coupled(kernel: Kernel, matrix: ArrayLike) -> Coupling:
    """Sigma = K kron R for one kernel and R (d, d)."""
    return Coupling(((kernel, np.asarray(matrix, dtype=np.float64)),))


def independent(kernel: Kernel, dimensions: int = 1) -> Coupling:
    """`dimensions` independent coordinates of one kernel: R = I."""
    if dimensions < 1:
        raise InvalidValue(f"there must be at least one coordinate, got {dimensions}")
    return coupled(kernel, np.eye(dimensions))


def _coupling_matrix(matrix: FloatArray) -> FloatArray:
    matrix = check_covariance(matrix, "the matrix between coordinates")
    if matrix.size == 0 or not np.any(np.diagonal(matrix) > 0):
        raise InvalidValue("the matrix between coordinates must have some variance, got none")
    return read_only(matrix)
