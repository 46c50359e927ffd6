"""The parallel sum of two noises: what is left of them when one recording is released twice.

Z1 = X + G1 and Z2 = X + G2 with independent noises tell of X what one release X + G tells, with

    Gamma = Gamma1 : Gamma2 = (Gamma1^-1 + Gamma2^-1)^-1            the parallel sum

For singular noises it is still exact, by what the difference Z1 - Z2 = G1 - G2 gives away. With
Gamma1 = F F^T, Gamma2 = H H^T and weights w = (w1, w2) ~ N(0, I), G1 = F w1, G2 = H w2, the
difference is D w, D = [F, -H], and is seen without noise. What is left of w is its part in the null
space of D: w = N u, N an orthonormal basis of it, u ~ N(0, I). So

    Gamma1 : Gamma2 = (F N1)(F N1)^T = (H N2)(H N2)^T,    N = [N1; N2]

Its range is the intersection of the two ranges: two different designs of one direction each leave
none, and X is known exactly. Source: Anderson and Duffin (1969), Series and parallel addition of
matrices, J. Math. Anal. Appl. 26.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.extended import START_BITS, Extended, Objects, zero_pivot
from trailveil.gp.gaussian import UNIT_ROUNDOFF, FloatArray, check_covariance

# A sum of squares needs twice the digits of what is squared.
_BITS = 2 * START_BITS
# Directions further apart than this are two, however ill-conditioned the noise.
_MOST_VAGUE = 1e-8


def parallel_sum(first: FloatArray, second: FloatArray) -> FloatArray:
    """A : B (n, n) for positive semidefinite A and B (n, n) of any rank, in their squared units.

    Right for singular matrices: it is the limit of (A^-1 + B^-1)^-1, and x^T (A : B) x is the least
    of (x - y)^T A (x - y) + y^T B y over y. Eigenvalues below rounding count as zero, which never
    makes the sum larger; directions are the same where double precision cannot tell them apart.
    (For the noises of mechanisms, whose factors are exact, `exact_null_space` decides that.)
    Raises InvalidValue for what is no covariance, or of another shape.
    """
    basis, spectrum = _spectrum(check_covariance(first, "the first noise"))
    two, other = _spectrum(check_covariance(second, "the second noise"))
    size = basis.shape[0]
    if two.shape[0] != size:
        raise InvalidValue(f"both noises must have as many rows, got {size} and {two.shape[0]}")
    if spectrum.size == 0 or other.size == 0:
        return np.zeros((size, size))
    # A range that is not everything is known to the rounding of the matrix over its least value.
    blur = max(
        (part.max() / part.min() for part in (spectrum, other) if part.size < size), default=1.0
    )
    vague = min(_MOST_VAGUE, 8 * size * UNIT_ROUNDOFF * blur)
    values, rows = svd(np.hstack([basis, -two]), full_matrices=True)[1:]
    common = rows[int(np.sum(values > vague)) :].T
    weights = qr(common / np.sqrt(np.concatenate([spectrum, other]))[:, None], mode="economic")[0]
    root = (basis * np.sqrt(spectrum)) @ weights[: spectrum.size]
    return np.asarray(root @ root.T)


def _spectrum(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvectors (n, r) and eigenvalues (r,), less those of the size of rounding."""
    values, vectors = eigh(matrix)
    above = values > 4 * matrix.shape[0] * UNIT_ROUNDOFF * np.max(np.abs(values), initial=0.0)
    return np.asarray(vectors[:, above]), np.asarray(values[above])


def exact_null_space(matrix: FloatArray) -> FloatArray:
    """An orthonormal basis (r, q) of the null space of a matrix (n, r), its rank decided exactly.

    The entries are taken as the numbers they are: two columns that differ in their last digit are
    two directions. (Entries below 2^-450 of their column's largest are rounded.) The null space of
    a few rows is found in Python integers, and tried on all rows; those that it misses join in.
    """
    count = matrix.shape[1]
    exponents = np.frexp(np.max(np.abs(matrix), axis=0, initial=0.0))[1]
    m = Extended(_BITS)
    # Columns are scaled by powers of two, which is exact; the basis is of the columns as they were.
    scaled = np.ldexp(matrix, -exponents)
    whole = m.fixed(m.numbers(scaled))
    order = qr(scaled.T, mode="r", pivoting=True)[1] if scaled.size else np.empty(0, np.intp)
    basis = _common_dependences(whole, np.asarray(order[:count]))
    rows = np.frompyfunc(lambda v: m.context.ldexp(m.context.mpf(v), -_BITS), 1, 1)(basis)
    rows = rows * m.numbers(np.ldexp(np.ones(count), -exponents))[:, None]
    return _gram_schmidt(rows, m)


def _gram_schmidt(columns: Objects, m: Extended) -> FloatArray:
    """An orthonormal basis of the span of independent columns (r, q) of extended numbers."""
    vectors: list[Objects] = []
    for vector in columns.T:
        residual = vector
        for earlier in vectors:
            residual = residual - earlier * (earlier * residual).sum()
        vectors.append(residual / m.context.sqrt((residual * residual).sum()))
    basis = np.empty(columns.shape)
    for place, vector in enumerate(vectors):
        basis[:, place] = vector.astype(np.float64)
    return basis


def _common_dependences(whole: Objects, chosen: NDArray[np.intp]) -> Objects:
    """The null space of the chosen rows, and of others as they are found not to be in it."""
    while True:
        basis = _dependences(whole[chosen])
        missed = np.flatnonzero(np.any(np.abs(whole.dot(basis) >> _BITS) > zero_pivot(_BITS), 1))
        more = np.union1d(chosen, missed[: whole.shape[1]])
        if missed.size == 0:
            return basis
        if more.size == chosen.size:
            raise NumericalError("the rank of the noise was not found in extended precision")
        chosen = more


def _dependences(rows: Objects) -> Objects:
    """Columns (r, q) in fixed point that span the null space of fixed-point rows (p, r)."""
    dependent, upper = _eliminated(_gram(rows))
    basis = np.full((rows.shape[1], int(dependent.sum())), 0, dtype=object)
    for place, column in enumerate(np.flatnonzero(dependent)):
        x = basis[:, place]
        x[column] = 1 << _BITS
        for i in reversed(range(column)):
            if not dependent[i]:
                x[i] = -((upper[i, i + 1 : column + 1] * x[i + 1 : column + 1]).sum() >> _BITS)
    return basis


def _gram(whole: Objects) -> Objects:
    """D^T D (r, r) in fixed point."""
    if whole.shape[0] == 0:
        return np.full((whole.shape[1],) * 2, 0, dtype=object)
    return np.asarray(whole.T.dot(whole) >> _BITS, dtype=object)


def _eliminated(work: Objects) -> tuple[NDArray[np.bool_], Objects]:
    """Which columns depend on those before them (r,), and the rows of ratios (r, r)."""
    size = work.shape[0]
    dependent = np.zeros(size, dtype=np.bool_)
    upper = np.full((size, size), 0, dtype=object)
    for i in range(size):
        if work[i, i] <= zero_pivot(_BITS):
            dependent[i] = True
            continue
        upper[i, i + 1 :] = (work[i, i + 1 :] << _BITS) // work[i, i]
        for j in range(i + 1, size):
            work[j, j:] -= (upper[i, j] * work[i, j:]) >> _BITS
    return dependent, upper
