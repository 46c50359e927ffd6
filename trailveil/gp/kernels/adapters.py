"""Kernels of scikit-learn and GPyTorch as ours. Neither package is imported here.

Where we have the same equation it becomes ours, with all that ours can do (any precision, O(n) for
Markov kernels). Any other kernel is called as it is, in double precision (`Function`).
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
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
from trailveil.gp.kernels.tabulated import Function, function_of

_MATERN: dict[float, Callable[[float], Kernel]] = {
    0.5: Matern12,
    1.5: Matern32,
    2.5: Matern52,
    math.inf: RBF,
}


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


def _called(kernel: Any, name: str) -> Function:
    """A kernel of GPyTorch, called with tensors of the precision of its own parameters."""

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
