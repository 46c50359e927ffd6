"""The arithmetic a formula is evaluated in: float64, or any number of bits.

A formula written against `Arithmetic` and NumPy's operators works on float64 arrays and on object
arrays of mpmath numbers or of balls alike, so each equation stands once.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Arithmetic(Protocol):
    """What a formula may use beside + - * / ** abs and comparisons."""

    @property
    def pi(self) -> Any:
        """Pi."""

    def number(self, value: float) -> Any:
        """A parameter as a number of this arithmetic, exactly."""

    def exp(self, x: Any) -> Any:
        """e^x."""

    def sin(self, x: Any) -> Any:
        """The sine of x."""

    def sqrt(self, x: Any) -> Any:
        """The square root of x."""

    def expm1(self, x: Any) -> Any:
        """e^x - 1, without cancellation near 0."""

    def expm1_remainder(self, x: Any) -> Any:
        """e^x - 1 - x, without cancellation near 0."""

    def remainder(self, x: Any, period: Any) -> Any:
        """What is left of x after whole periods, exactly; of the sign of x."""

    def minimum(self, x: Any, other: Any) -> Any:
        """The smaller of x and other."""


# Below this the series is used: its first term left out is x^14/14!, under 2e-18 of x^2/2. Above it
# the difference cancels at most three bits; at a tenth of it, six.
_SERIES_BELOW = 0.25
_SERIES = np.array([2.0 / np.prod(np.arange(1.0, k + 1)) for k in range(13, 1, -1)])


@dataclass(frozen=True)
class Float64:
    """Double precision, on arrays."""

    pi: float = float(np.pi)

    def number(self, value: float) -> float:
        """The same value."""
        return value

    def exp(self, x: NDArray[np.float64]) -> Any:
        """e^x."""
        return np.exp(x)

    def sin(self, x: NDArray[np.float64]) -> Any:
        """The sine of x."""
        return np.sin(x)

    def sqrt(self, x: NDArray[np.float64]) -> Any:
        """The square root of x."""
        return np.sqrt(x)

    def expm1(self, x: NDArray[np.float64]) -> Any:
        """e^x - 1."""
        return np.expm1(x)

    def expm1_remainder(self, x: NDArray[np.float64]) -> Any:
        """e^x - 1 - x."""
        x = np.asarray(x, dtype=np.float64)
        near = np.abs(x) < _SERIES_BELOW
        value = np.array(np.expm1(x) - x)
        small = x[near]
        value[near] = small * small / 2 * np.polyval(_SERIES, small)
        return value

    def remainder(self, x: NDArray[np.float64], period: float) -> Any:
        """What is left of x after whole periods."""
        return np.fmod(x, period)

    def minimum(self, x: NDArray[np.float64], other: NDArray[np.float64]) -> Any:
        """The smaller of the two."""
        return np.minimum(x, other)


FLOAT = Float64()
