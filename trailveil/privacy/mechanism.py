"""The mechanism: Gaussian noise added to a series, described in full by a frozen value.

    Z_i = X_i + G_i for the released rows,     G ~ N(0, Gamma)
    Gamma = F F^T + floor I + K(times, times) + diag(independent)

F: a factor of low rank; floor: the variance of independent noise at every row; K: a process, noise
that is itself a Gaussian process; independent: further independent noise, row by row, which hides
what is exact in a recording (trailveil.traces). No loss counts on the last: more independent noise
never raises a loss, so what is computed without it holds with it. Rows that are not released are
withheld: nothing of them leaves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue, check_kind, check_number
from trailveil.gp.arithmetic import Arithmetic
from trailveil.gp.arrays import check_increasing, numbers_in, seconds_in
from trailveil.gp.gaussian import FloatArray

_NOISE, _NO_ROWS, _ROWS = {"factor", "refinement", "independent"}, np.empty(0, np.intp), 65_536

# Radians a row, that have no period, and seconds.
_TURNS, _LAGS = (0.0, 1.0, 2**0.5), (1.0, 10.0, 100.0, 1e3, 1e4)

LARGEST_STD = 300_000.0
"""Metres: deviations above which noise would carry fixes out of their frame."""


class Process(Protocol):
    """A covariance function, as trailveil.gp.kernels writes them."""

    def __call__(self, a: ArrayLike, b: ArrayLike) -> FloatArray:
        """The covariance matrix at inputs a and b."""

    def diagonal(self, a: ArrayLike) -> FloatArray:
        """The variance at inputs a."""

    def formula(self, a: NDArray, b: NDArray, m: Arithmetic) -> NDArray:  # type: ignore[type-arg]  # any dtype
        """The covariance in the arithmetic m."""


@dataclass(frozen=True, slots=True, eq=False)
class Mechanism:
    """Noise for n rows of one coordinate, in the unit of the series.

    times: (n,) seconds, strictly increasing. factor: F (n, r). floor: variance. process: K, or
    None. released: (n,) booleans.
    refinement: (p, n, r), further terms of F beyond double precision (F = factor + sum of these): a
    noise of low rank for a prior without measurement noise is destroyed by rounding its factor to
    53 bits.
    independent: (n,) variances of noise besides, 0 where None. It is drawn, and no loss counts it:
    `exposure` and `compose` say the same with it and without. What is to count is stated as
    floor=variance, or as factor=np.diag(deviations) where it differs from row to row.
    """

    times: FloatArray
    factor: FloatArray
    floor: float = 0.0
    process: Process | None = None
    released: NDArray[np.bool_] | None = None
    refinement: FloatArray | None = None
    independent: FloatArray | None = None
    _variances: FloatArray | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parts against each other and make the arrays read-only."""
        count = np.size(self.times)
        released = np.ones(count, bool) if self.released is None else self.released
        self._freeze("times", seconds_in(self.times), (count,))
        check_increasing(self.times)
        self._freeze("released", np.asarray(released, bool), (count,), bool)
        columns = np.shape(self.factor)[-1:]
        self._freeze("factor", self.factor, (count, *columns))
        if self.refinement is not None:
            terms = np.shape(self.refinement)[:1]
            self._freeze("refinement", self.refinement, (*terms, count, *columns))
        if self.process is not None and not callable(self.process):
            raise InvalidValue(f"process must be a kernel, got {type(self.process).__name__}")
        check_number("floor", self.floor)
        if not 0 <= self.floor < np.inf:
            raise InvalidValue(f"the floor must be finite and not negative, got {self.floor}")
        independent = np.zeros(count) if self.independent is None else self.independent
        self._freeze("independent", independent, (count,))
        if np.any(self.independent_variances < 0):
            raise InvalidValue("independent must be variances, got negative numbers")

    def _freeze(
        self, name: str, values: ArrayLike, shape: tuple[int, ...], kind: type = float
    ) -> None:
        """An array of the right shape that nobody can write to; rows of noise are 0 where withheld.

        One that is so already is no copy: most rows of a long factor are zeros that take no memory
        until they are written to.
        """
        array: NDArray[Any] = np.asarray(
            values if kind is bool else numbers_in(f"{name} must be numbers", values), kind
        )
        if array.shape != shape:
            raise InvalidValue(f"{name} must have shape {shape}, got {array.shape}")
        if not all(np.isfinite(part).all() for part in _parts(array)):
            raise InvalidValue(f"{name} must be finite, got infinite or missing numbers")
        silent = np.flatnonzero(~np.asarray(self.released)) if name in _NOISE else _NO_ROWS
        rows = (silent,) if name == "independent" else (..., silent, slice(None))
        if not _is_frozen(array) or (silent.size and np.any(array[rows])):
            array = array.copy()
            if silent.size:
                array[rows] = 0.0
            array.flags.writeable = False
        object.__setattr__(self, name, array)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The indices of the released rows."""
        return np.flatnonzero(self.released)  # type: ignore[arg-type]  # set in __post_init__

    @property
    def independent_variances(self) -> FloatArray:
        """The variances of the independent noise of each row (n,), besides the floor."""
        return self.independent  # type: ignore[return-value]  # set in __post_init__

    @property
    def variances(self) -> FloatArray:
        """The variance of the noise at each row (n,), read-only; 0 where withheld."""
        if self._variances is not None:
            return self._variances
        total = np.einsum("ij,ij->i", self.factor, self.factor) + self.independent_variances
        rows = self.rows
        total[rows] += self.floor
        if self.process is not None:
            total[rows] += self.process.diagonal(self.times[rows])
        total.flags.writeable = False
        object.__setattr__(self, "_variances", total)
        return np.asarray(total)

    @property
    def fingerprint(self) -> tuple[bytes, ...]:
        """What is the same for noise that differs by rounding alone, and for hardly any other.

        Sums of variances, a sum of F over their root, and what K is at some lags, to seven digits;
        nothing where nothing is added. A release is drawn from it as well: two draws of the same
        random numbers with other factors, be they turned alone, would tell these numbers.
        """
        if self.max_std == 0:
            return ()
        phases = np.arange(self.variances.size)
        sums = [np.cos(turn * phases) ** 2 @ self.variances for turn in _TURNS]
        turned = np.cos(phases) @ self.factor @ np.cos(np.arange(self.factor.shape[1]) + 1)
        sums.append(round(float(turned) / sums[0] ** 0.5, 7))
        if self.process is not None:
            sums += self.process([0.0], _LAGS)[0].tolist()
        return (" ".join(f"{number:.6e}" for number in sums).encode(),)

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
        return np.asarray(gamma + np.diag(self.floor + self.independent_variances[rows]))

    def with_column(self, column: FloatArray) -> "Mechanism":
        """One more column (n,) of the factor, the last."""
        alone = Mechanism(self.times, np.reshape(column, (-1, 1)), released=self.released)
        return self.plus(alone)

    def scaled(self, ratio: float) -> "Mechanism":
        """Gamma times `ratio` (of variances): more than 1 is never less private."""
        if self.process is not None or self.refinement is not None:
            raise InvalidValue("only a mechanism of factor and floor can be scaled in place")
        check_number("the ratio of variances", ratio)
        if not (np.isfinite(ratio) and ratio >= 0):
            raise InvalidValue(f"the ratio of variances must be a number from 0 on, got {ratio}")
        return replace(
            self,
            factor=self.factor * float(np.sqrt(ratio)),
            floor=self.floor * ratio,
            independent=self.independent_variances * ratio,
        )

    def hiding(self, deviation: float) -> "Mechanism":
        """With independent noise of at least so much at each row that has any noise at all."""
        check_number("deviation", deviation)
        if not 0 <= deviation < np.inf:
            raise InvalidValue(f"deviation must be a number from 0 on, got {deviation}")
        variances = np.einsum("ij,ij->i", self.factor, self.factor)
        moved = (variances > 0) | (self.floor > 0) | (self.process is not None)
        missing = max(0.0, deviation**2 - self.floor)
        return replace(
            self, independent=np.where(moved, np.maximum(self.independent_variances, missing), 0.0)
        )

    def plus(self, other: "Mechanism") -> "Mechanism":
        """The sum of two independent noises; what either withholds is withheld."""
        check_kind("what is added to a mechanism", other, Mechanism)
        if self.process is not None and other.process is not None:
            raise InvalidValue("at most one of two added mechanisms may have a process")
        if not np.array_equal(self.times, other.times):
            raise InvalidValue("added mechanisms must be for the same times, got different ones")
        return Mechanism(
            self.times,
            np.hstack([self.factor, other.factor]),
            self.floor + other.floor,
            other.process if self.process is None else self.process,
            self.released & other.released,  # type: ignore[operator]  # set in __post_init__
            _side_by_side(self, other),
            self.independent_variances + other.independent_variances,
        )

    def withholding(self, withheld: NDArray[np.bool_]) -> "Mechanism":
        """The same noise, with more rows withheld (n,)."""
        if np.shape(withheld) != self.times.shape:
            raise InvalidValue(
                f"withheld must have {self.times.size} entries, got shape {np.shape(withheld)}"
            )
        return replace(self, released=self.released & ~withheld)  # type: ignore[operator]  # set


def _is_frozen(array: NDArray[Any]) -> bool:
    """Whether nobody can write to an array, nor to the one that it is a part of."""
    if array.flags.writeable:
        return False
    base: Any = array.base
    return base is None or (isinstance(base, np.ndarray) and _is_frozen(base))


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """An array in parts along its first axis: what is computed of each takes little memory."""
    for first in range(0, max(1, len(array)), _ROWS):
        yield array[first : first + _ROWS]


def _side_by_side(mechanism: Mechanism, other: Mechanism) -> FloatArray | None:
    """The refinements of two factors that stand side by side; the shorter one ends in zeros."""
    if mechanism.refinement is None and other.refinement is None:
        return None
    finer = [
        np.empty((0, *m.factor.shape)) if m.refinement is None else m.refinement
        for m in (mechanism, other)
    ]
    terms = max(part.shape[0] for part in finer)
    padded = [np.pad(part, ((0, terms - part.shape[0]), (0, 0), (0, 0))) for part in finer]
    return np.concatenate(padded, axis=2)


def no_noise(times: ArrayLike) -> Mechanism:
    """The mechanism that adds nothing at any of the times (n,)."""
    points = seconds_in(times)
    return Mechanism(points, np.empty((points.size, 0)))


def no_release(times: ArrayLike) -> Mechanism:
    """The mechanism that withholds everything at the times (n,)."""
    return no_noise(times).withholding(np.ones(np.shape(times), bool))
