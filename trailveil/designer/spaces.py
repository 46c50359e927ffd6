"""Columns that Gamma is sought in, with what each prior's inverse covariance makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from trailveil.designer.views import View
from trailveil.gp.gaussian import FloatArray

# Directions with a Gram eigenvalue below this share of the largest are combinations of others: for
# one prior, which spans them itself, and for several, which must each solve for them.
_DEPENDENT, _DEPENDENT_OF_SEVERAL = 1e-9, 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Columns D (n, p), and Sigma_j^-1 D (n, p) for each view j."""

    columns: FloatArray
    spanned: tuple[FloatArray, ...]

    def combined(self, coefficients: FloatArray) -> "Space":
        """D A, with Sigma_j^-1 D A."""
        spanned = tuple(columns @ coefficients for columns in self.spanned)
        return Space(self.columns @ coefficients, spanned)

    def plus(self, other: "Space") -> "Space":
        """The sum, column by column."""
        spanned = tuple(a + b for a, b in zip(self.spanned, other.spanned, strict=True))
        return Space(self.columns + other.columns, spanned)


def orthonormal(
    views: Sequence[View],
    cost: FloatArray,
    pieces: Sequence[Space],
    *,
    alone: bool,
) -> Space:
    """One space with D^T W D = I for several, W the costs (n,) of the rows.

    What depends on others to rounding is dropped. alone: for one prior and nothing known, pieces
    come with what they are spanned by (a prior without measurement noise could not solve for it);
    for several it is solved for.
    """
    columns = np.hstack([piece.columns for piece in pieces])
    sizes = np.sqrt(cost @ columns**2)
    columns = columns[:, sizes > 0] / sizes[sizes > 0]
    gram, basis = eigh(columns.T @ (cost[:, None] * columns))
    least = _DEPENDENT if alone else _DEPENDENT_OF_SEVERAL
    independent = gram > least * gram[-1]
    turn = basis[:, independent] / np.sqrt(gram[independent])
    columns = columns @ turn
    if alone:
        spanned = np.hstack([piece.spanned[0] for piece in pieces])
        return Space(columns, ((spanned[:, sizes > 0] / sizes[sizes > 0]) @ turn,))
    return Space(columns, tuple(view.at(0.0).solve(columns) for view in views))


def root(matrix: FloatArray) -> FloatArray:
    """The symmetric square root (k, k); negative eigenvalues are rounding, and count as zero."""
    spectrum, basis = eigh(matrix)
    return np.asarray((basis * np.sqrt(np.maximum(spectrum, 0.0))) @ basis.T)
