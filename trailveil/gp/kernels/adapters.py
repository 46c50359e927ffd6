"""Kernels that are given: a covariance matrix, any function of two sets of times, other packages'.

Neither scikit-learn nor GPyTorch is imported here. Where we have the same equation it becomes ours,
with all that ours can do (any precision, O(n) for Markov kernels). Any other kernel is called as it
is, in double precision (`Function`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue, Unavailable
from trailveil.gp.arithmetic import FLOAT, Arithmetic
from trailveil.gp.arrays import increasing_times, numbers_in, read_only, seconds_in
from trailveil.gp.clocks import Numbers
from trailveil.gp.extended import Extended
from trailveil.gp.gaussian import (
    FUNCTION_TOLERANCE,
    UNIT_ROUNDOFF,
    FloatArray,
    check_covariance,
    check_symmetric,
)
from trailveil.gp.kernels.equations import (
    RBF,
    Constant,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)

_PAIRS_AT_ONCE = 256
# Beyond it (of two deviations) a kernel given what is known is computed with as many bits as these:
# below it, what rounding adds stays within KERNEL_ROUNDING.
_LARGEST_GAIN, _EXACT = 4.0, Extended(320)
_MATERN: dict[float, Callable[[float], Kernel]] = {
    0.5: Matern12,
    1.5: Matern32,
    2.5: Matern52,
    math.inf: RBF,
}


@dataclass(frozen=True, eq=False)
class Tabulated(Kernel):
    """A covariance matrix (n, n) of values at stated times (n,); it says nothing of other times.

    Of a matrix that is symmetric to rounding the lower triangle counts. Raises InvalidValue where
    it is no covariance: not finite, not symmetric, or with an eigenvalue below 0.
    """

    times: FloatArray
    matrix: FloatArray

    def __post_init__(self) -> None:
        """Check the matrix, and make the arrays read-only."""
        times = increasing_times(self.times)
        matrix = check_covariance(self.matrix, "a covariance")
        if len(matrix) != times.size:
            raise InvalidValue(
                f"a covariance must have a row for each of {times.size} times, got {len(matrix)}"
            )
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "matrix", read_only(np.tril(matrix) + np.tril(matrix, -1).T))

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """The entry of the two times. Raises InvalidValue for a time that the matrix has not."""
        entries = self.matrix[self._places(a), self._places(b)]
        return entries if m is FLOAT else np.frompyfunc(m.number, 1, 1)(entries)

    def _places(self, inputs: Numbers) -> NDArray[np.intp]:
        times = np.asarray(inputs, dtype=np.float64)
        places = np.minimum(np.searchsorted(self.times, times), self.times.size - 1)
        if np.any(self.times[places] != times):
            raise InvalidValue("a time must be one that the covariance is stated for, got another")
        return places


@dataclass(frozen=True)
class Function(Kernel):
    """Any function (times (n,), times (m,)) -> covariance (n, m), in double precision.

    name: for messages. Raises Unavailable where a figure would take more than double precision: add
    a White of the measurement noise, or a larger one, with which double precision is enough.

    >>> kernel = tv.kernels.Function(lambda a, b: np.exp(-abs(a[:, None] - b)))
    >>> kernel([0.0], [0.0, 1.0]).shape
    (1, 2)
    """

    function: Callable[[FloatArray, FloatArray], FloatArray]
    name: str = field(default="a function")

    def __post_init__(self) -> None:
        """Check that it can be called."""
        if not callable(self.function):
            raise InvalidValue(f"a kernel must be a function, got {type(self.function).__name__}")

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """The covariance of a column a (n, 1) and a row b (1, m), or of pairs (n,) and (n,)."""
        if m is not FLOAT:
            raise Unavailable(
                f"a kernel must be an equation of ours for extended precision, got {self.name}: "
                "state more noise: White(std), or a larger std or floor where there is one"
            )
        first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if first.ndim == 2:
            return self._matrix(first[:, 0], second[0])
        blocks = [slice(i, i + _PAIRS_AT_ONCE) for i in range(0, first.size, _PAIRS_AT_ONCE)]
        pairs = [np.diagonal(self._matrix(first[rows], second[rows])) for rows in blocks]
        return np.concatenate(pairs) if pairs else np.empty(0)

    def _matrix(self, a: FloatArray, b: FloatArray) -> FloatArray:
        values = np.asarray(self.function(a, b), dtype=np.float64)
        if values.shape != (a.size, b.size) or not np.all(np.isfinite(values)):
            raise InvalidValue(
                f"{self.name} must give finite covariances {a.size, b.size}, got {values.shape}: "
                "it takes two arrays of times, compare them as a[:, None] - b"
            )
        if a.size == b.size > 1 and np.array_equal(a, b):
            check_symmetric(values, self.name, FUNCTION_TOLERANCE)
        return values


@dataclass(frozen=True, eq=False)
class Conditioned(Kernel):
    """A kernel given k observed sums H f(times) + N(0, V) of the series that it describes.

    times: (m,). weights: H (k, m). covariance: V (k, k). What was observed moves the mean alone.
    Raises InvalidValue for shapes that do not fit, or a V that is no positive definite covariance.
    """

    kernel: Kernel
    times: FloatArray
    weights: FloatArray
    covariance: FloatArray

    def __post_init__(self) -> None:
        """Check the shapes, and make the arrays read-only."""
        covariance = check_covariance(self.covariance, "the covariance of an observation")
        weights = read_only(numbers_in("weights must be finite numbers", self.weights))
        times = read_only(seconds_in(self.times))
        if weights.shape != (len(covariance), times.size) or not np.all(np.isfinite(weights)):
            raise InvalidValue(
                f"weights must be finite, {(len(covariance), times.size)}, got {weights.shape}"
            )
        if np.linalg.eigvalsh(covariance)[0] <= 0:
            raise InvalidValue("an observation must have a positive variance, got none of it")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "covariance", read_only(covariance))

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """k(a, b) - k(a, T) H^T (H k(T, T) H^T + V)^-1 H k(T, b)."""
        if m is not FLOAT:
            return self._given(a, b, m)
        value = self._given(a, b, m)
        lost = self._gain(a) * self._gain(b) > _LARGEST_GAIN
        if np.any(lost):
            # Two numbers that are nearly the same are subtracted: few digits of 53 bits are left.
            pairs = [np.broadcast_to(inputs, value.shape)[lost] for inputs in (a, b)]
            exact = self._given(_EXACT.numbers(pairs[0]), _EXACT.numbers(pairs[1]), _EXACT)
            value[lost] = exact.astype(np.float64)
        return value

    def _gain(self, inputs: Numbers) -> FloatArray:
        """By how much the deviation at each input fell, where double precision can tell."""
        flat = np.ravel(inputs)
        before = self.kernel.formula(flat, flat, FLOAT) * np.ones(flat.size)
        after = np.maximum(self._given(flat, flat, FLOAT), UNIT_ROUNDOFF * before)
        return np.asarray(np.sqrt(before / after)).reshape(np.shape(inputs))

    def _given(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        weights, covariance = self.weights, self.covariance
        if m is not FLOAT:
            exact = np.frompyfunc(m.number, 1, 1)
            weights, covariance = exact(weights), exact(covariance)
        observed = weights.dot(self._shared(self.times, m).dot(weights.T)) + covariance
        first = self._shared(a, m).dot(weights.T)
        second = _solved(observed, self._shared(b, m).dot(weights.T).T).T
        matrix = np.ndim(a) == 2
        explained = first.dot(second.T) if matrix else (first * second).sum(axis=1)
        return self.kernel.formula(a, b, m) - explained

    def _shared(self, inputs: Numbers, m: Arithmetic) -> Numbers:
        """The covariances of the series at inputs (n) and at the observed times, (n, m)."""
        column = np.reshape(inputs, (-1, 1))
        row = self.times[None, :]
        if m is not FLOAT:
            exact = np.frompyfunc(m.number, 1, 1)
            column, row = exact(column), exact(row)
        shape = (column.size, row.size)
        return np.broadcast_to(self.kernel.formula(column, row, m), shape)


def _solved(matrix: Numbers, rhs: Numbers) -> Numbers:
    """matrix^-1 rhs, of a positive definite matrix (k, k), in the arithmetic that it carries."""
    if matrix.dtype != object:
        from scipy.linalg import cho_factor, cho_solve

        return cho_solve(cho_factor(matrix, lower=True), rhs)
    work = np.hstack([matrix, rhs])
    size = len(matrix)
    for i in range(size):
        work[i] = work[i] / work[i, i]
        for j in range(size):
            if j != i:
                work[j] = work[j] - work[j, i] * work[i]
    return work[:, size:]


def function_of(call: Callable[[ArrayLike, ArrayLike], ArrayLike], name: str) -> Function:
    """A kernel from a function of two columns (n, 1) and (m, 1), as other packages have them."""
    _check_called(call, name)
    return Function(lambda a, b: np.asarray(call(a[:, None], b[:, None]), dtype=np.float64), name)


def from_sklearn(kernel: Any) -> Kernel:
    """A kernel of `sklearn.gaussian_process.kernels`, of times in seconds.

    Raises InvalidValue for one with a length scale for each of several inputs.
    """
    kind = type(kernel).__name__
    if kind in ("Sum", "Product"):
        parts = [from_sklearn(part) for part in (kernel.k1, kernel.k2)]
        return _added(parts) if kind == "Sum" else _multiplied(parts)
    equations: dict[str, Callable[[], Kernel]] = {
        "RBF": lambda: RBF(_number(kernel.length_scale)),
        "Matern": lambda: _MATERN[float(kernel.nu)](_number(kernel.length_scale)),
        "ExpSineSquared": lambda: Periodic(
            _number(kernel.length_scale), _number(kernel.periodicity)
        ),
        "ConstantKernel": lambda: Constant(math.sqrt(_number(kernel.constant_value))),
        "WhiteKernel": lambda: White(math.sqrt(_number(kernel.noise_level))),
    }
    if kind == "Matern" and float(kernel.nu) not in _MATERN:
        return function_of(kernel, f"{kind} of scikit-learn")
    return (
        equations[kind]() if kind in equations else function_of(kernel, f"{kind} of scikit-learn")
    )


def from_gpytorch(kernel: Any) -> Kernel:
    """A kernel of `gpytorch.kernels`, of times in seconds; its parameters as they are now.

    Raises InvalidValue for one with a length scale for each of several inputs, or of a batch.
    """
    kind = type(kernel).__name__
    if kind == "ScaleKernel":
        return from_gpytorch(kernel.base_kernel) * _number(kernel.outputscale)
    if kind in ("AdditiveKernel", "ProductKernel"):
        parts = [from_gpytorch(part) for part in kernel.kernels]
        return _added(parts) if kind == "AdditiveKernel" else _multiplied(parts)
    equations: dict[str, Callable[[], Kernel]] = {
        "RBFKernel": lambda: RBF(_number(kernel.lengthscale)),
        "MaternKernel": lambda: _MATERN[float(kernel.nu)](_number(kernel.lengthscale)),
        # Its length scale is the square of ours.
        "PeriodicKernel": lambda: Periodic(
            math.sqrt(_number(kernel.lengthscale)), _number(kernel.period_length)
        ),
        "ConstantKernel": lambda: Constant(math.sqrt(_number(kernel.constant))),
    }
    return equations[kind]() if kind in equations else _called(kernel, f"{kind} of GPyTorch")


def _check_called(kernel: Any, name: str) -> None:
    """Raise InvalidValue for what is no kernel of a package."""
    if not callable(kernel):
        raise InvalidValue(f"a kernel must be one that can be called, got {name}")


def _called(kernel: Any, name: str) -> Function:
    """A kernel of GPyTorch, called with tensors of the precision of its own parameters."""
    _check_called(kernel, name)

    def evaluated(a: FloatArray, b: FloatArray) -> FloatArray:
        like = next(iter(kernel.parameters()))
        first, second = (like.new_tensor(v[:, None].tolist()) for v in (a, b))
        return np.asarray(kernel(first, second).to_dense().detach().numpy(), dtype=np.float64)

    return Function(evaluated, name)


def _added(parts: list[Kernel]) -> Kernel:
    return reduce(lambda first, other: first + other, parts)


def _multiplied(parts: list[Kernel]) -> Kernel:
    """The product; a mere number among them scales the others, so that they stay Markov."""
    factors = [part.level_variance() for part in parts]
    others = [part for part, factor in zip(parts, factors, strict=True) if factor == 0.0]
    scale = math.prod(factor for factor in factors if factor)
    if not others:
        return Constant(math.sqrt(scale))
    product = reduce(lambda first, other: first * other, others)
    return product if scale == 1.0 else product * scale


def _number(value: Any) -> float:
    """A parameter as one number."""
    values = np.asarray(getattr(value, "detach", lambda: value)(), dtype=np.float64)
    if values.size != 1:
        raise InvalidValue(
            f"a kernel must have one length scale, of time, got {values.size}: state one number"
        )
    return float(values.reshape(()) if values.ndim == 0 else values.ravel()[0])
