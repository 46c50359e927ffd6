"""Kernels: how a series varies with itself. Equations, matrices, and kernels of other packages."""

from trailveil.gp.clocks import Clock, Numbers, StoppedClock, stopped
from trailveil.gp.kernels.adapters import (
    Conditioned,
    Function,
    Tabulated,
    from_gpytorch,
    from_sklearn,
)
from trailveil.gp.kernels.equations import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    Scaled,
    Sum,
    Warped,
    White,
    latent,
    split,
)

__all__ = [
    "RBF",
    "Clock",
    "Conditioned",
    "Constant",
    "Function",
    "IntegratedOU",
    "Kernel",
    "Matern12",
    "Matern32",
    "Matern52",
    "Numbers",
    "Periodic",
    "Product",
    "Scaled",
    "StoppedClock",
    "Sum",
    "Tabulated",
    "Warped",
    "White",
    "from_gpytorch",
    "from_sklearn",
    "latent",
    "split",
    "stopped",
]
