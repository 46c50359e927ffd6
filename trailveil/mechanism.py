"""The mechanism: Gaussian noise added to a series, described in full by a frozen value.

    Z_i = X_i + G_i for the released rows,     G ~ N(0, Gamma)
    Gamma = F F^T + floor I + K(times, times)

F: a factor of low rank; floor: the variance of independent noise at every row; K: a process, noise
that is itself a Gaussian process. Rows that are not released are withheld: nothing of them leaves.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.arithmetic import Arithmetic
from trailveil.errors import InvalidValue
from trailveil.gaussian import FloatArray


class Process(Protocol):
    """A covariance function, as trailveil.kernels writes them."""

    def __call__(self, a: ArrayLike, b: ArrayLike) -> FloatArray:
        """The covariance matrix at inputs a and b."""

    def diagonal(self, a: ArrayLike) -> FloatArray:
        """The variance at inputs a."""

    def formula(self, a: NDArray, b: NDArray, m: Arithmetic) -> NDArray:  # type: ignore[type-arg]  # any dtype
        """The covariance in the arithmetic m."""


@dataclass(frozen=True, slots=True, eq=False)
class Mechanism:
    """Noise for n rows of one coordinate, in the unit of the series.

    times: (n,) seconds. factor: F (n, r). floor: variance. process: K, or None. released: (n,)
    booleans.
    refinement: (p, n, r), further terms of F beyond double precision (F = factor + sum of these): a
    noise of low rank for a prior without measurement noise is destroyed by rounding its factor to
    53 bits.
    """

    times: FloatArray
    factor: FloatArray
    floor: float = 0.0
    process: Process | None = None
    released: NDArray[np.bool_] | None = None
    refinement: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check the parts against each other and make the arrays read-only."""
        times, factor = np.array(self.times, np.float64), np.array(self.factor, np.float64)
        count = times.size
        if factor.ndim != 2 or factor.shape[0] != count:
            raise InvalidValue(f"the factor must have {count} rows, got shape {factor.shape}")
        if not (np.all(np.isfinite(factor)) and np.isfinite(self.floor) and self.floor >= 0):
            raise InvalidValue("the noise must be finite and its floor not negative")
        given = np.ones(count, bool) if self.released is None else np.array(self.released, bool)
        if given.shape != (count,):
            raise InvalidValue(f"released must have {count} entries, got shape {given.shape}")
        factor[~given] = 0.0  # what is withheld has no noise: it is not there
        for name, array in (("times", times), ("factor", factor), ("released", given)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The indices of the released rows."""
        return np.flatnonzero(self.released)  # type: ignore[arg-type]  # set in __post_init__

    @property
    def variances(self) -> FloatArray:
        """The variance of the noise at each row (n,); 0 where withheld."""
        total = np.sum(self.factor**2, axis=1)
        rows = self.rows
        total[rows] += self.floor
        if self.process is not None:
            total[rows] += self.process.diagonal(self.times[rows])
        return np.asarray(total)

    @property
    def noise_trace(self) -> float:
        """trace(Gamma) over the released rows: the paper's total utility loss."""
        return float(np.sum(self.variances))

    @property
    def rms(self) -> float:
        """Root mean square noise over the released rows; 0 where all are withheld."""
        return float(np.sqrt(self.noise_trace / max(self.rows.size, 1)))

    @property
    def max_std(self) -> float:
        """The largest standard deviation of the noise at any row."""
        return float(np.sqrt(np.max(self.variances, initial=0.0)))

    def covariance(self) -> FloatArray:
        """Gamma over the released rows, as a full matrix."""
        rows = self.rows
        gamma = self.factor[rows] @ self.factor[rows].T
        if self.process is not None:
            gamma = gamma + self.process(self.times[rows], self.times[rows])
        return np.asarray(gamma + self.floor * np.eye(rows.size))

    def scaled(self, ratio: float) -> "Mechanism":
        """Gamma times `ratio` (of variances): more than 1 is never less private."""
        if self.process is not None or self.refinement is not None:
            raise InvalidValue("only a mechanism of factor and floor can be scaled in place")
        return replace(self, factor=self.factor * float(np.sqrt(ratio)), floor=self.floor * ratio)

    def plus(self, other: "Mechanism") -> "Mechanism":
        """The sum of two independent noises; what either withholds is withheld."""
        if self.process is not None and other.process is not None:
            raise InvalidValue("at most one of two added mechanisms may have a process")
        return Mechanism(
            self.times,
            np.hstack([self.factor, other.factor]),
            self.floor + other.floor,
            self.process or other.process,
            self.released & other.released,  # type: ignore[operator]  # set in __post_init__
        )

    def withholding(self, withheld: NDArray[np.bool_]) -> "Mechanism":
        """The same noise, with more rows withheld (n,)."""
        return replace(self, released=self.released & ~withheld)  # type: ignore[operator]  # set


def no_noise(times: ArrayLike) -> Mechanism:
    """The mechanism that adds nothing at any of the times (n,)."""
    points = np.asarray(times, dtype=np.float64)
    return Mechanism(points, np.empty((points.size, 0)))
