"""Extended precision, for priors without measurement noise: double may be wrong by orders there.

A smooth prior knows some combinations of the fixes to 1e-40; a noise vector rounded to 1e-16 shows
in them. Kernels are evaluated by mpmath; the elimination runs on Python integers in fixed point,
since every quantity in it is at most of size one after scaling. Precision is doubled until two
results agree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import NumericalError
from trailveil.gp.arithmetic import Arithmetic
from trailveil.gp.gaussian import EXTENDED_AGREEMENT, FloatArray

# Elimination on integers is O(n^3) Python operations: 10 s at this size.
LARGEST_EXTENDED = 300
START_BITS, LAST_BITS = 512, 8192
# Pivots below 2^-(share * bits) are zero to this precision: the row is a copy of rows before it.
_ZERO_PIVOT_SHARE = 0.75
# Of a null space: a sum of squares needs twice the digits of what is squared.
_NULL_BITS = 2 * START_BITS

Objects = NDArray[Any]


class TooFewBits(Exception):  # no failure: `stable` takes more
    """A precision cannot tell zero from what is not."""


@dataclass(frozen=True)
class Extended(Arithmetic):
    """Arithmetic on object arrays of mpmath numbers with `bits` bits, in a context of its own."""

    bits: int

    @property
    def context(self) -> Any:
        """The mpmath context that carries the precision."""
        return _context(self.bits)

    @property
    def pi(self) -> Any:
        """Pi."""
        return +self.context.pi

    def number(self, value: float) -> Any:
        """The value, exactly."""
        return self.context.mpf(value)

    def numbers(self, values: FloatArray) -> Objects:
        """An array of floats as an object array of numbers, exactly."""
        return np.asarray(self._map(self.context.mpf, values.astype(object)), dtype=object)

    def each(self, name: str, x: Any) -> Any:
        """mpmath's function of this name."""
        return self._map(getattr(self.context, name), x)

    def remainder(self, x: Any, period: Any) -> Any:
        """What is left of x after whole periods."""
        return self._map(lambda value: self.context.fmod(value, period), x)

    def fixed(self, values: Objects) -> Objects:
        """The values as integers in units of 2^-bits, rounded down."""
        shift = self.bits
        context = self.context
        whole = self._map(lambda v: int(context.floor(context.ldexp(v, shift))), values)
        return np.asarray(whole, dtype=object)

    @staticmethod
    def _map(function: Callable[[Any], Any], values: Any) -> Any:
        return np.frompyfunc(function, 1, 1)(values)


@lru_cache(maxsize=16)
def _context(bits: int) -> Any:
    import mpmath  # heavy, and seldom needed

    context = mpmath.MPContext()
    context.prec = bits
    return context


def zero_pivot(bits: int) -> int:
    """The size up to which a variance in fixed point is zero, as far as this precision can tell."""
    return 1 << int(bits * (1 - _ZERO_PIVOT_SHARE))


def eliminate(matrix: Objects, count: int, bits: int) -> Objects:
    """The Schur complement of the first `count` rows of a symmetric fixed-point matrix (n, n).

    For a joint covariance this is the covariance of the last rows given the first. A pivot that is
    zero to this precision is skipped: that value is a function of the ones before it. Only upper
    triangles are read. Raises TooFewBits where this precision cannot tell whether that is so.
    """
    work = matrix.copy()
    size = work.shape[0]
    zero = zero_pivot(bits)
    for i in range(count):
        pivot = work[i, i]
        row = work[i, i + 1 :]
        if pivot <= zero:
            # A variance of zero has covariances of zero: others are beyond this precision.
            if pivot < -zero or any(abs(value) > zero for value in row):
                raise TooFewBits
            continue
        ratios = (row << bits) // pivot
        for j in range(i + 1, size):
            ratio = ratios[j - i - 1]
            if ratio:
                work[j, j:] -= (ratio * row[j - i - 1 :]) >> bits
    return work[count:, count:]


def solve(matrix: Objects, rhs: Objects, bits: int) -> Objects:
    """matrix^-1 rhs in fixed point, for a positive definite matrix (n, n) and rhs (n,)."""
    size = matrix.shape[0]
    work, x = matrix.copy(), rhs.copy()
    for i in range(size):
        ratios = (work[i, i + 1 :] << bits) // work[i, i]
        for j in range(i + 1, size):
            work[j, j:] -= (ratios[j - i - 1] * work[i, j:]) >> bits
        x[i + 1 :] -= (ratios * x[i]) >> bits
    for i in reversed(range(size)):
        known = ((work[i, i + 1 :] * x[i + 1 :]) >> bits).sum() if i + 1 < size else 0
        x[i] = ((x[i] - known) << bits) // work[i, i]
    return x


def stable(compute: Callable[[int], FloatArray]) -> FloatArray:
    """compute(bits) at doubling precision until two results agree, else NumericalError."""
    bits, earlier = START_BITS, None
    while bits <= LAST_BITS:
        try:
            result = compute(bits)
        except TooFewBits:
            result = None
        if result is not None and earlier is not None:
            agreed = np.abs(result - earlier) <= EXTENDED_AGREEMENT * np.abs(result).max()
            if np.all(agreed):
                return result
        bits, earlier = 2 * bits, result
    raise NumericalError(
        f"the loss must be stable in extended precision, got other values up to {LAST_BITS} bits; "
        "state a measurement noise (--noise-std) or a noise floor (--floor)"
    )


def exact_null_space(matrix: FloatArray) -> FloatArray:
    """An orthonormal basis (r, q) of the null space of a matrix (n, r), its rank decided exactly.

    The entries are taken as the numbers they are: two columns that differ in their last digit are
    two directions. (Entries below 2^-450 of their column's largest are rounded.) The null space of
    a few rows is found in Python integers, and tried on all rows; those that it misses join in.
    """
    from scipy.linalg import qr

    count = matrix.shape[1]
    exponents = np.frexp(np.max(np.abs(matrix), axis=0, initial=0.0))[1]
    m = Extended(_NULL_BITS)
    # Columns are scaled by powers of two, which is exact; the basis is of the columns as they were.
    scaled = np.ldexp(matrix, -exponents)
    whole = m.fixed(m.numbers(scaled))
    order = qr(scaled.T, mode="r", pivoting=True)[1] if scaled.size else np.empty(0, np.intp)
    basis = _common_dependences(whole, np.asarray(order[:count]))
    rows = np.frompyfunc(lambda v: m.context.ldexp(m.context.mpf(v), -_NULL_BITS), 1, 1)(basis)
    rows = rows * m.numbers(np.ldexp(np.ones(count), -exponents))[:, None]
    return _gram_schmidt(rows, m)


def _gram_schmidt(columns: Objects, m: Extended) -> FloatArray:
    """An orthonormal basis of the span of independent columns (r, q) of extended numbers."""
    basis = columns.copy()
    for i in range(basis.shape[1]):
        for earlier in basis.T[:i]:
            basis[:, i] -= earlier * (earlier * basis[:, i]).sum()
        basis[:, i] /= m.context.sqrt((basis[:, i] * basis[:, i]).sum())
    return basis.astype(np.float64)


def _common_dependences(whole: Objects, chosen: NDArray[np.intp]) -> Objects:
    """The null space of the chosen rows, and of others as they are found not to be in it."""
    while True:
        basis = _dependences(whole[chosen])
        missed = np.flatnonzero(
            np.any(np.abs(whole.dot(basis) >> _NULL_BITS) > zero_pivot(_NULL_BITS), 1)
        )
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
        x[column] = 1 << _NULL_BITS
        for i in reversed(range(column)):
            if not dependent[i]:
                x[i] = -((upper[i, i + 1 : column + 1] * x[i + 1 : column + 1]).sum() >> _NULL_BITS)
    return basis


def _gram(whole: Objects) -> Objects:
    """D^T D (r, r) in fixed point."""
    if whole.shape[0] == 0:
        return np.full((whole.shape[1],) * 2, 0, dtype=object)
    return np.asarray(whole.T.dot(whole) >> _NULL_BITS, dtype=object)


def _eliminated(work: Objects) -> tuple[NDArray[np.bool_], Objects]:
    """Which columns depend on those before them (r,), and the rows of ratios (r, r)."""
    size = work.shape[0]
    dependent = np.zeros(size, dtype=np.bool_)
    upper = np.full((size, size), 0, dtype=object)
    for i in range(size):
        if work[i, i] <= zero_pivot(_NULL_BITS):
            dependent[i] = True
            continue
        upper[i, i + 1 :] = (work[i, i + 1 :] << _NULL_BITS) // work[i, i]
        for j in range(i + 1, size):
            work[j, j:] -= (upper[i, j] * work[i, j:]) >> _NULL_BITS
    return dependent, upper
