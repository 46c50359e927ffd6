"""From the kernel options of the command line to a kernel."""

from collections.abc import Callable

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)

KERNELS = ("rbf", "periodic", "matern12", "matern32", "matern52", "integrated-ou")


def kernel_from(
    name: str,
    length_scale: float,
    *,
    period: float | None = None,
    std: float = 1.0,
    noise_std: float = 0.0,
    level_std: float = 0.0,
    origin: float = 0.0,
) -> Kernel:
    """The kernel of that name with measurement noise and a level where they are not zero.

    For integrated-ou, length_scale is the time constant and std that of the velocity. Raises
    InvalidValue for an unknown name, a period that is missing or out of place, a number out of
    range.
    """
    if (name == "periodic") != (period is not None):
        raise InvalidValue("--period must be given for the periodic kernel, and only for it")
    stationary: dict[str, Callable[[float, float], Kernel]] = {
        "rbf": RBF,
        "matern12": Matern12,
        "matern32": Matern32,
        "matern52": Matern52,
    }
    kernel: Kernel
    if name in stationary:
        kernel = stationary[name](length_scale, std)
    elif period is not None:
        kernel = Periodic(length_scale, period, std)
    elif name == "integrated-ou":
        kernel = IntegratedOU(std, length_scale, origin)
    else:
        raise InvalidValue(f"kernel must be one of {', '.join(KERNELS)}, got {name}")
    if level_std > 0:
        kernel = kernel + Constant(level_std)
    return kernel + White(noise_std) if noise_std > 0 else kernel
