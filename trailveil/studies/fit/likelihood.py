"""The log likelihood of series under a kernel, and its exact gradient.

The log likelihood of values y (n, d), d coordinates that vary
independently with one covariance, is

    l = -1/2 tr(r^T S^-1 r) - d/2 log|S| - n d/2 log(2 pi),      S = K + noise_std^2 I,  r = y,

and with a common level of deviation c in each coordinate (S + c^2 1 1^T for S, by Woodbury: c^2 is
never added into S, where it would drown what is small)

    l = -1/2 tr(r^T S^-1 r) - |m|^2 / (2 c^2) - d/2 (log|S| + log(1 + c^2 1^T S^-1 1)) - ...,
    m = 1^T S^-1 y / (1/c^2 + 1^T S^-1 1),  r = y - 1 m.

The gradient by the logarithm of each parameter is exact, dl = 1/2 tr((a a^T - d T) dS) with T the
inverse of the whole covariance and a = T y (Rasmussen and Williams 2006, eq. 5.9). dS comes from
the kernel's own formula, evaluated at theta (1 + i h): for h below rounding the imaginary part over
h is the derivative to rounding (Squire and Trapp 1998, SIAM Review 40); no equation stands twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.arithmetic import FLOAT, Float64
from trailveil.gp.gaussian import FloatArray, cholesky_factor
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


MOST_POINTS: Final = 2_000
"""Points a series may have: the work grows with the cube. Longer ones are cut into windows."""

_COMPLEX_STEP = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class FitSeries:
    """Values at times: what a likelihood is of.

    times: (n,) seconds, or any scalar side information. values: (n,) or (n, d), d coordinates that
    vary independently with the same covariance. Kept as (n, d), both read-only. Raises InvalidValue
    for other shapes, for values that are not finite, and for more than MOST_POINTS points.
    """

    times: FloatArray
    values: FloatArray

    def __post_init__(self) -> None:
        """Check and copy both."""
        times, values = (np.array(x, dtype=np.float64) for x in (self.times, self.values))
        values = values[:, None] if values.ndim == 1 else values
        if times.ndim != 1 or values.ndim != 2 or len(times) != len(values) or not values.size:
            raise InvalidValue(
                "a series must have one row of values for each time, one at least, got shapes "
                f"{times.shape} and {values.shape}"
            )
        if not (np.isfinite(times).all() and np.isfinite(values).all()):
            raise InvalidValue("times and values of a series must be finite, got others")
        if len(times) > MOST_POINTS:
            raise InvalidValue(
                f"a series must have at most {MOST_POINTS} points, got {len(times)}: cut it first"
            )
        for name, array in (("times", times), ("values", values)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)


def log_likelihood(
    series: FitSeries, family: Family, values: Sequence[float], level_std: float | None = None
) -> tuple[float, FloatArray]:
    """l in nats, and its gradient (p,) by the logarithm of each parameter of the family.

    Raises NumericalError where double precision cannot compute it.
    """
    covariance, slopes = _covariance(series.times, family, values)
    factor = cholesky_factor(covariance)
    n, d = series.values.shape
    inverse = np.asarray(cho_solve((factor, True), np.eye(n), check_finite=False))
    ones = np.asarray(cho_solve((factor, True), np.ones(n), check_finite=False))
    residual, penalty, spread = series.values, 0.0, 0.0
    if level_std is not None:
        precision = level_std**-2 + float(np.sum(ones))
        mean = ones @ series.values / precision
        residual = series.values - mean
        penalty = float(mean @ mean) / level_std**2
        spread = float(np.log(precision * level_std**2))
        inverse = inverse - np.outer(ones, ones) / precision
    pulled = cho_solve((factor, True), residual, check_finite=False)
    volume = 2 * float(np.sum(np.log(np.diagonal(factor)))) + spread + n * np.log(2 * np.pi)
    value = -(float(np.sum(residual * pulled)) + penalty + d * volume) / 2
    weight = pulled @ pulled.T - d * inverse
    gradient = np.array([np.sum(weight * slope) for slope in slopes]) / 2
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise NumericalError("the log likelihood must be finite, got one that is not")
    return value, gradient


class _Step(Float64):
    """Arithmetic on numbers whose imaginary part, far below rounding, is a derivative."""

    def remainder(self, x: Any, period: Any) -> Any:
        return x - period * np.trunc(np.real(x) / np.real(period))

    def expm1_remainder(self, x: Any) -> Any:
        real = super().expm1_remainder(np.real(x))
        return real + 1j * np.imag(x) * np.expm1(np.real(x)) if np.iscomplexobj(x) else real


_STEP = _Step()


def _covariance(
    times: FloatArray, family: Family, values: Sequence[float]
) -> tuple[FloatArray, list[FloatArray]]:
    """S, and its derivative by the logarithm of each parameter (zeros for those that are known)."""
    a, b = times[:, None] - times[0], times[None, :] - times[0]
    covariance = np.array(family.kernel(*values[:-1]).formula(a, b, FLOAT))
    slopes = []
    for index, parameter in enumerate(family.parameters[:-1]):
        if parameter.known:
            slopes.append(np.zeros_like(covariance))
            continue
        moved: list[Any] = list(values[:-1])
        moved[index] *= 1 + 1j * _COMPLEX_STEP
        slope = family.kernel(*moved).formula(a, b, _STEP)
        slopes.append(np.imag(slope) / _COMPLEX_STEP)
    noise = np.eye(len(times)) * values[-1] ** 2
    return covariance + noise, [*slopes, 2 * noise]


Rows: TypeAlias = NDArray[np.intp]


def cut(times: ArrayLike, window: float, points: int, gap: float = np.inf) -> list[Rows]:
    """Rows of each window of times (n,) increasing, at most `points` of them, evenly thinned.

    A window is as long as it can be, up to `window` seconds from its first point, and ends before a
    pause of more than `gap` seconds. Windows do not overlap. Raises InvalidValue for limits that
    are not positive.
    """
    if not (window > 0 and points > 1 and gap > 0):
        raise InvalidValue(
            "a window must be longer than 0 s, with two points or more and a pause over 0 s, got "
            f"{window:g} s, {points} points, {gap:g} s"
        )
    seconds = np.asarray(times, dtype=np.float64)
    return list(_windows(seconds, window, points, gap))


def _windows(seconds: FloatArray, window: float, points: int, gap: float) -> Iterator[Rows]:
    breaks = np.append(np.flatnonzero(np.diff(seconds) > gap) + 1, len(seconds))
    first = 0
    while first < len(seconds):
        end = int(np.searchsorted(seconds, seconds[first] + window, side="right"))
        end = min(end, int(breaks[np.searchsorted(breaks, first, side="right")]))
        count = min(points, end - first)
        yield first + np.round(np.linspace(0, end - first - 1, count)).astype(np.intp)
        first = end
