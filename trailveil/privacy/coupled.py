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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import (
    NEGATIVE_EIGENVALUE_TOLERANCE,
    FloatArray,
    check_covariance,
    read_only,
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


def decoupled(kernel: Kernel, matrix: ArrayLike) -> tuple[FloatArray, list[Kernel]]:
    """The coordinates in which Sigma = K kron R falls apart: V (d, d) and a kernel for each.

    With R = V diag(rho) V^T, V orthogonal, the coordinates X V (n, d) are independent with kernels
    rho_a K. So they can be designed for one by one; noise Gamma_a on the a-th of them is the noise
    sum_a Gamma_a kron v_a v_a^T on X. Where every coordinate gets the same Gamma, its loss matrix
    on X is sum_a L_a kron v_a v_a^T, L_a the loss matrix under rho_a K.

    Raises InvalidValue where R is singular: a direction without variance holds no secret.
    """
    values, vectors = eigh(_coupling_matrix(np.asarray(matrix, dtype=np.float64)))
    if values[0] <= NEGATIVE_EIGENVALUE_TOLERANCE * values[-1]:
        raise InvalidValue(
            f"the matrix between coordinates must be positive definite, got an eigenvalue of "
            f"{values[0]:.3g}: no secret can be kept in a direction without variance"
        )
    return np.asarray(vectors), [float(value) * kernel for value in values]


def blocks(losses: Sequence[FloatArray]) -> FloatArray:
    """Loss matrices (S, S) of independent coordinates as one (S d, S d), location by location."""
    count, size = len(losses), losses[0].shape[0]
    whole = np.zeros((size, count, size, count))
    for place, loss in enumerate(losses):
        whole[:, place, :, place] = loss
    return whole.reshape(size * count, size * count)


def _coupling_matrix(matrix: FloatArray) -> FloatArray:
    matrix = check_covariance(matrix, "the matrix between coordinates")
    if matrix.size == 0 or not np.any(np.diagonal(matrix) > 0):
        raise InvalidValue("the matrix between coordinates must have some variance, got none")
    return read_only(matrix)
