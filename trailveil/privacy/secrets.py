"""Secrets: quantities jointly Gaussian with the trace, as frozen values.

A secret is k weighted sums of the series at stated times (seconds, the prior's clock): s = H
f(times). It is either *recorded* (s = HX: the recorded values, measurement noise included, as in
the paper) or a true place, with a fix at that time or not, without the noise. A stay is the one
place of somebody who stands still during its window; it is judged by a prior whose clock stops
there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue
from trailveil.gp.arrays import numbers_in, read_only, seconds_in
from trailveil.gp.gaussian import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Secret:
    """k linear functionals of one coordinate of the series.

    kind: what it is, in a word. times: (m,) seconds. weights: H (k, m), one row a location.
    recorded: whether the measurement noise of those fixes is part of the secret.
    window: (start, end) in seconds where the clock stands still, for a stay.
    """

    kind: str
    times: FloatArray
    weights: FloatArray
    recorded: bool = False
    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Check shapes and values, and make the arrays read-only."""
        times = read_only(seconds_in(self.times))
        weights = read_only(numbers_in("weights must be numbers", self.weights))
        if times.ndim != 1 or weights.ndim != 2 or weights.shape[1] != times.size:
            raise InvalidValue(
                f"weights must have a column a time, got {weights.shape} for {times.shape}"
            )
        if times.size == 0 or not np.all(np.isfinite(times)) or not np.all(np.isfinite(weights)):
            raise InvalidValue("a secret must have at least one time, and finite times and weights")
        if np.unique(times).size != times.size:
            raise InvalidValue("the times of a secret must differ, got one twice")
        if weights.shape[0] == 0 or not np.all(np.any(weights != 0, axis=1)):
            raise InvalidValue(
                "every location of a secret must weigh something, got none that does"
            )
        if self.window is not None and not -np.inf < self.window[0] < self.window[1] < np.inf:
            raise InvalidValue(
                f"a window must be finite and end after it starts, got {self.window}"
            )
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def at(cls, times: float | Sequence[float] | FloatArray, *, recorded: bool = False) -> "Secret":
        """The values at one time, or at several in any combination (basic, compound)."""
        several = np.atleast_1d(seconds_in(times))
        kind = "basic" if np.ndim(times) == 0 else "compound"
        return cls(kind, several, np.eye(several.size), recorded)

    @classmethod
    def stay(cls, start: float, end: float) -> "Secret":
        """The place of somebody who stands still during [start, end]."""
        if not np.subtract(*seconds_in([end, start])) > 0:
            raise InvalidValue(f"a stay must end after it starts, got {start} to {end} s")
        return cls("stay", np.array([start]), np.eye(1), window=(float(start), float(end)))

    @classmethod
    def mean(cls, times: Sequence[float] | FloatArray, *, recorded: bool = False) -> "Secret":
        """The mean of the series over several times."""
        values = np.atleast_1d(seconds_in(times))
        count = values.size
        if count == 0:
            raise InvalidValue("the mean of a window must have at least one time, got none")
        return cls("mean", values, np.full((1, count), 1.0 / count), recorded)

    @classmethod
    def difference(cls, first: float, second: float, *, recorded: bool = False) -> "Secret":
        """The displacement from one time to another: a direction of motion."""
        return cls("difference", seconds_in([first, second]), np.array([[-1.0, 1.0]]), recorded)

    @classmethod
    def of(cls, weights: ArrayLike, times: ArrayLike, *, recorded: bool = False) -> "Secret":
        """H f(times) for any weights H (k, m), one row a location, at times (m,)."""
        rows = np.atleast_2d(numbers_in("weights must be numbers", weights))
        return cls("weighted", np.atleast_1d(seconds_in(times)), rows, recorded)

    @property
    def size(self) -> int:
        """k, the number of locations that must not be told apart."""
        return int(self.weights.shape[0])

    @property
    def is_of_values(self) -> bool:
        """Whether each location is one value of the series, not a weighted sum."""
        square = self.weights.shape[0] == self.weights.shape[1]
        return square and bool(np.array_equal(self.weights, np.eye(self.size)))

    @property
    def level(self) -> FloatArray:
        """What a common level of the series adds to each location: the row sums of H, (k,)."""
        return np.array([math.fsum(row) for row in self.weights])
