"""The arithmetic a formula is evaluated in: float64, or any number of bits.

A formula written against `Arithmetic` and NumPy's operators works on float64 arrays and on object
arrays of mpmath numbers or of balls alike, so each equation stands once.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Below this the series is used: its first term left out is x^14/14!, under 2e-18 of x^2/2. Above it
# the difference cancels at most three bits; at a tenth of it, six.
_SERIES_BELOW = 0.25
_SERIES = np.array([2.0 / np.prod(np.arange(1.0, k + 1)) for k in range(13, 1, -1)])


class Arithmetic(ABC):
    """What a formula may use beside + - * / ** abs and comparisons, on arrays of its numbers."""

    @property
    @abstractmethod
    def pi(self) -> Any:
        """Pi."""

    @abstractmethod
    def number(self, value: float) -> Any:
        """A parameter as a number of this arithmetic, exactly."""

    @abstractmethod
    def each(self, name: str, x: Any) -> Any:
        """The function of this name, such as exp, of each number of x."""

    def exp(self, x: Any) -> Any:
        """e^x."""
        return self.each("exp", x)

    def sin(self, x: Any) -> Any:
        """The sine of x."""
        return self.each("sin", x)

    def sqrt(self, x: Any) -> Any:
        """The square root of x."""
        return self.each("sqrt", x)

    def expm1(self, x: Any) -> Any:
        """e^x - 1, without cancellation near 0."""
        return self.each("expm1", x)

    def expm1_remainder(self, x: Any) -> Any:
        """e^x - 1 - x. What cancels near 0 widens a ball, and is a matter of more digits else."""
        return self.expm1(x) - x

    @abstractmethod
    def remainder(self, x: Any, period: Any) -> Any:
        """What is left of x after whole periods, exactly; of the sign of x."""

    def minimum(self, x: Any, other: Any) -> Any:
        """The smaller of x and other."""
        return np.minimum(x, other)


@dataclass(frozen=True)
class Float64(Arithmetic):
    """Double precision, on arrays."""

    @property
    def pi(self) -> float:
        """Pi."""
        return float(np.pi)

    def number(self, value: float) -> float:
        """The same value."""
        return value

    def each(self, name: str, x: NDArray[np.float64]) -> Any:
        """NumPy's function of this name."""
        return getattr(np, name)(x)

    def expm1_remainder(self, x: NDArray[np.float64]) -> Any:
        """e^x - 1 - x, by its series near 0."""
        x = np.asarray(x, dtype=np.float64)
        near = np.abs(x) < _SERIES_BELOW
        value = np.array(np.expm1(x) - x)
        small = x[near]
        value[near] = small * small / 2 * np.polyval(_SERIES, small)
        return value

    def remainder(self, x: NDArray[np.float64], period: float) -> Any:
        """What is left of x after whole periods."""
        return np.fmod(x, period)


FLOAT = Float64()
