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
from trailveil.gp.gaussian import EXTENDED_AGREEMENT, FloatArray

# Elimination on integers is O(n^3) Python operations: 10 s at this size.
LARGEST_EXTENDED = 300
START_BITS, LAST_BITS = 512, 8192
# Pivots below 2^-(share * bits) are zero to this precision: the row is a copy of rows before it.
_ZERO_PIVOT_SHARE = 0.75

Objects = NDArray[Any]


class TooFewBits(Exception):  # no failure: `stable` takes more
    """A precision cannot tell zero from what is not."""


@dataclass(frozen=True)
class Extended:
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
        return np.asarray(self._each(self.context.mpf, values.astype(object)), dtype=object)

    def exp(self, x: Any) -> Any:
        """e^x."""
        return self._each(self.context.exp, x)

    def sin(self, x: Any) -> Any:
        """The sine of x."""
        return self._each(self.context.sin, x)

    def sqrt(self, x: Any) -> Any:
        """The square root of x."""
        return self._each(self.context.sqrt, x)

    def expm1(self, x: Any) -> Any:
        """e^x - 1."""
        return self._each(self.context.expm1, x)

    def expm1_remainder(self, x: Any) -> Any:
        """e^x - 1 - x; the precision lost near 0 is seen when two precisions are compared."""
        return self.expm1(x) - x

    def remainder(self, x: Any, period: Any) -> Any:
        """What is left of x after whole periods."""
        return self._each(lambda value: self.context.fmod(value, period), x)

    def minimum(self, x: Any, other: Any) -> Any:
        """The smaller of the two."""
        return np.minimum(x, other)

    def fixed(self, values: Objects) -> Objects:
        """The values as integers in units of 2^-bits, rounded down."""
        shift = self.bits
        context = self.context
        whole = self._each(lambda v: int(context.floor(context.ldexp(v, shift))), values)
        return np.asarray(whole, dtype=object)

    def floats(self, fixed: Objects) -> FloatArray:
        """Integers in units of 2^-bits as float64."""
        ldexp = self.context.ldexp
        return np.asarray(
            self._each(lambda v: float(ldexp(v, -self.bits)), fixed), dtype=np.float64
        )

    @staticmethod
    def _each(function: Callable[[Any], Any], values: Any) -> Any:
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


def expansion(fixed: Objects, bits: int, terms: int) -> FloatArray:
    """Fixed-point numbers (n,) as sums of float64 numbers, largest first: (terms, n)."""
    context = _context(bits)
    remainder = np.frompyfunc(lambda v: context.ldexp(v, -bits), 1, 1)(fixed)
    parts = np.empty((terms, fixed.shape[0]))
    for k in range(terms):
        parts[k] = remainder.astype(np.float64)
        remainder = remainder - np.frompyfunc(context.mpf, 1, 1)(parts[k].astype(object))
    return parts
