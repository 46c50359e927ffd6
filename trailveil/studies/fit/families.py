"""Kernels whose parameters are to be found: a row of the table for each, ranges included."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import (
    RBF,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A positive parameter: its name, where to look for it, and from where. low = high: known."""

    name: str
    low: float
    start: float
    high: float

    def __post_init__(self) -> None:
        """Check the order; InvalidValue names the parameter."""
        if not 0 < self.low <= self.start <= self.high < np.inf:
            raise InvalidValue(
                f"{self.name} must have 0 < low <= start <= high, finite, got {self.low:g}, "
                f"{self.start:g}, {self.high:g}"
            )

    @property
    def known(self) -> bool:
        """Whether there is nothing to find."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class Family:
    """A kernel with parameters to be found, and independent measurement noise at every fix.

    parameters: those of `kernel`, in its order, then `noise_std`, per coordinate.
    """

    name: str
    kernel: Callable[..., Kernel]
    parameters: tuple[Parameter, ...]

    def set(self, **changes: float | tuple[float, float, float]) -> "Family":
        """This family with parameters known (a number), or with other (low, start, high).

        Raises InvalidValue for a name the family does not have, or an impossible range.
        """
        if unknown := set(changes) - {p.name for p in self.parameters}:
            names = ", ".join(p.name for p in self.parameters)
            raise InvalidValue(
                f"parameters of {self.name} must be among {names}, got {', '.join(sorted(unknown))}"
            )
        ranges = {n: c if isinstance(c, tuple) else (c, c, c) for n, c in changes.items()}
        changed = (
            Parameter(p.name, *ranges[p.name]) if p.name in ranges else p for p in self.parameters
        )
        return replace(self, parameters=tuple(changed))

    def __getitem__(self, name: str) -> Parameter:
        """The parameter of that name; KeyError for none."""
        return {p.name: p for p in self.parameters}[name]

    def build(self, values: Sequence[float]) -> Kernel:
        """The kernel with these parameters, measurement noise included."""
        return self.kernel(*values[:-1]) + White(values[-1])


_NOISE = Parameter("noise_std", 0.05, 2.0, 1_000.0)
_STD = Parameter("std", 0.1, 200.0, 1e5)
_LENGTH = Parameter("length_scale", 0.5, 60.0, 1e5)


def _stationary(name: str, kernel: type[Kernel]) -> Family:
    return Family(name, kernel, (_LENGTH, _STD, _NOISE))


_ROWS = (
    Family(
        "integrated-ou",
        IntegratedOU,
        (
            Parameter("std", 1e-3, 3.0, 300.0),
            Parameter("time_constant", 0.5, 60.0, 1e5),
            _NOISE,
        ),
    ),
    _stationary("matern12", Matern12),
    _stationary("matern32", Matern32),
    _stationary("matern52", Matern52),
    _stationary("rbf", RBF),
    Family(
        "periodic",
        Periodic,
        (
            Parameter("length_scale", 0.01, 1.0, 100.0),
            Parameter("period", 60.0, 86_400.0, 1e6),
            _STD,
            _NOISE,
        ),
    ),
)

FAMILIES: Final[Mapping[str, Family]] = {row.name: row for row in _ROWS}
"""By the names of the command line. Ranges suit traces in metres and seconds: else use `set`."""
