"""Kernels: how a series varies with itself. One equation a class; sums, products, clocks compose.

A kernel is a frozen value. Its equation is written once, in `formula`, for whatever arithmetic the
inputs carry: float64 arrays, or object arrays of extended-precision numbers
(trailveil.gp.extended). Inputs are times in seconds (or any scalar side information per point); a
standard deviation has the unit of the series. A new kernel is a class, an export and a row in the
contract test.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue, check_kind, check_number
from trailveil.gp.arithmetic import FLOAT, Arithmetic
from trailveil.gp.arrays import numbers_in
from trailveil.gp.clocks import Clock, Numbers, StoppedClock, stopped
from trailveil.gp.gaussian import FloatArray


class Kernel(ABC):
    """Covariance of a series at any two inputs. The one abstract base of the package.

    Every field that is a number must be finite, and positive unless it is an `origin`.
    """

    def __post_init__(self) -> None:
        """Check the parameters; InvalidValue names the one that is wrong."""
        for field in fields(self):  # type: ignore[arg-type]  # every final kernel is a dataclass
            value = getattr(self, field.name)
            # Gradients are taken by a complex step: see trailveil.studies.fit.likelihood.
            if field.type in (float, "float") and not isinstance(value, complex):
                check_number(f"{field.name} of {type(self).__name__}", value)
            if isinstance(value, Real):
                _check_number(type(self).__name__, field.name, float(value))
                object.__setattr__(self, field.name, float(value))  # 3 and 3.0 are one kernel

    @abstractmethod
    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """The covariance for inputs a and b, broadcast against each other, in the arithmetic m."""

    def __call__(self, a: ArrayLike, b: ArrayLike) -> FloatArray:
        """The covariance matrix (n, m) of the series at inputs a (n,) and b (m,)."""
        first, second = _inputs(a), _inputs(b)
        shape = (first.size, second.size)
        value = self.formula(first[:, None], second[None, :], FLOAT)
        return np.array(np.broadcast_to(value, shape), dtype=np.float64)

    def diagonal(self, a: ArrayLike) -> FloatArray:
        """The variance (n,) of the series at inputs a (n,)."""
        inputs = _inputs(a)
        value = self.formula(inputs, inputs, FLOAT)
        return np.array(np.broadcast_to(value, inputs.shape), dtype=np.float64)

    def terms(self) -> tuple["Kernel", ...]:
        """The kernels of which this one is the sum, with products and scales multiplied out."""
        return (self,)

    def is_white(self) -> bool:
        """Whether values at different inputs are independent."""
        return False

    def level_variance(self) -> float:
        """The variance if this kernel is a mere level (the same value everywhere), else 0."""
        return 0.0

    def warp(self, clock: Clock) -> "Kernel":
        """This kernel on another clock; measurement noise stays with each fix."""
        return Warped(self, clock)

    def __add__(self, other: "Kernel") -> "Kernel":
        """The sum of two independent series."""
        check_kind("what is added to a kernel", other, Kernel, "White(std) is a noise")
        return Sum((*self.terms(), *other.terms()))

    __radd__ = __add__

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        """The product of two kernels, or this kernel with its variance scaled by a number."""
        if isinstance(other, Kernel):
            return Product(self, other)
        check_number("what a kernel is multiplied by", other)
        return Scaled(self, float(other))

    __rmul__ = __mul__


@dataclass(frozen=True)
class RBF(Kernel):
    """Squared exponential: std^2 exp(-d^2 / (2 length_scale^2)). Source: the paper, section 4."""

    length_scale: float
    std: float = 1.0

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """std^2 exp(-d^2 / 2 l^2)."""
        scaled = (a - b) / m.number(self.length_scale)
        return m.number(self.std) ** 2 * m.exp(-scaled * scaled / 2)


@dataclass(frozen=True)
class Periodic(Kernel):
    """std^2 exp(-2 sin^2(pi d / period) / length_scale^2). Source: the paper, section 4."""

    length_scale: float
    period: float
    std: float = 1.0

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """std^2 exp(-2 sin^2(pi d / p) / l^2)."""
        period = m.number(self.period)
        apart = m.remainder(a, period) - m.remainder(b, period)
        wave = m.sin(m.pi * (apart / period)) / m.number(self.length_scale)
        return m.number(self.std) ** 2 * m.exp(-2 * wave * wave)


@dataclass(frozen=True)
class Matern12(Kernel):
    """std^2 exp(-d / length_scale), Ornstein-Uhlenbeck. Source: Rasmussen and Williams, 4.2.1."""

    length_scale: float
    std: float = 1.0

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """std^2 exp(-d / l)."""
        return m.number(self.std) ** 2 * m.exp(-abs(a - b) / m.number(self.length_scale))


@dataclass(frozen=True)
class Matern32(Kernel):
    """std^2 (1 + x) exp(-x), x = sqrt(3) d / length_scale. Source: as for Matern12."""

    length_scale: float
    std: float = 1.0

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """std^2 (1 + x) exp(-x)."""
        x = m.sqrt(m.number(3)) * abs(a - b) / m.number(self.length_scale)
        return m.number(self.std) ** 2 * (1 + x) * m.exp(-x)


@dataclass(frozen=True)
class Matern52(Kernel):
    """std^2 (1 + x + x^2/3) exp(-x), x = sqrt(5) d / length_scale. Source: as for Matern12."""

    length_scale: float
    std: float = 1.0

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """std^2 (1 + x + x^2 / 3) exp(-x)."""
        x = m.sqrt(m.number(5)) * abs(a - b) / m.number(self.length_scale)
        return m.number(self.std) ** 2 * (1 + x + x * x / 3) * m.exp(-x)


@dataclass(frozen=True)
class IntegratedOU(Kernel):
    """Position whose velocity is an Ornstein-Uhlenbeck process; it is 0 at `origin`.

    std: of the velocity, units per second. time_constant: seconds. With the variance of a
    displacement
        g(h) = 2 std^2 tau (|h| - tau (1 - exp(-|h| / tau)))
    the covariance is (g(a - origin) + g(b - origin) - g(a - b)) / 2. Source: Johnson et al. (2008),
    Ecology 89.
    """

    std: float
    time_constant: float
    origin: float = 0.0

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """(g(a - origin) + g(b - origin) - g(a - b)) / 2, arranged so that nothing cancels."""
        tau, origin = m.number(self.time_constant), m.number(self.origin)
        since, other = a - origin, b - origin
        # From the origin to the nearer of the two, and on from there: all terms are positive.
        near = m.minimum(abs(since), abs(other)) / tau
        # e^-h - 1 + h of the nearer: it grows with h.
        start = m.minimum(
            m.expm1_remainder(-abs(since) / tau), m.expm1_remainder(-abs(other) / tau)
        )
        gone = m.expm1(-abs(a - b) / tau)
        value = start * (2 + gone) - near * gone
        if np.any(since < 0) or np.any(other < 0):
            apart = m.expm1(-abs(since) / tau) * m.expm1(-abs(other) / tau)
            value = np.where(since * other < 0, -apart, value)
        return (m.number(self.std) * tau) ** 2 * value


@dataclass(frozen=True)
class Constant(Kernel):
    """One unknown level, the same everywhere: std^2."""

    std: float

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """std^2."""
        return m.number(self.std) ** 2 + 0 * (a - b)

    def level_variance(self) -> float:
        """std^2."""
        return self.std * self.std

    def warp(self, clock: Clock) -> Kernel:
        """A level is the same on every clock."""
        return self


@dataclass(frozen=True)
class White(Kernel):
    """Measurement noise, independent at every fix: std^2 where a = b, else 0."""

    std: float

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """std^2 [a = b]."""
        return m.number(self.std) ** 2 * (a == b)

    def is_white(self) -> bool:
        """True."""
        return True

    def warp(self, clock: Clock) -> Kernel:
        """Two fixes have two measurement noises, whatever the clock says."""
        return self


@dataclass(frozen=True)
class Sum(Kernel):
    """The sum of independent series."""

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        """Refuse a sum of nothing."""
        if not self.parts:
            raise InvalidValue("a sum of kernels must have at least one, got none")

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """The parts, added."""
        total = self.parts[0].formula(a, b, m)
        for part in self.parts[1:]:
            total = total + part.formula(a, b, m)
        return total

    def terms(self) -> tuple[Kernel, ...]:
        """The terms of every part."""
        return tuple(term for part in self.parts for term in part.terms())

    def warp(self, clock: Clock) -> Kernel:
        """Each part on the other clock."""
        return Sum(tuple(part.warp(clock) for part in self.parts))


@dataclass(frozen=True)
class Product(Kernel):
    """The product of two kernels, such as a periodic routine that slowly decays."""

    kernel: Kernel
    other: Kernel

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """The two, multiplied."""
        return self.kernel.formula(a, b, m) * self.other.formula(a, b, m)

    def terms(self) -> tuple[Kernel, ...]:
        """The products of the terms of both."""
        pairs = [(term, two) for term in self.kernel.terms() for two in self.other.terms()]
        return (self,) if len(pairs) == 1 else tuple(Product(first, two) for first, two in pairs)

    def is_white(self) -> bool:
        """Whether either is."""
        return self.kernel.is_white() or self.other.is_white()

    def level_variance(self) -> float:
        """The product of two levels is one."""
        return self.kernel.level_variance() * self.other.level_variance()

    def warp(self, clock: Clock) -> Kernel:
        """Both on the other clock; a white product stays with each fix."""
        return self if self.is_white() else Product(self.kernel.warp(clock), self.other.warp(clock))


@dataclass(frozen=True)
class Scaled(Kernel):
    """A kernel with its variance multiplied by `factor`."""

    kernel: Kernel
    factor: float

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """factor times the kernel."""
        return m.number(self.factor) * self.kernel.formula(a, b, m)

    def terms(self) -> tuple[Kernel, ...]:
        """The scaled terms of the kernel."""
        terms = self.kernel.terms()
        return (self,) if len(terms) == 1 else tuple(Scaled(term, self.factor) for term in terms)

    def is_white(self) -> bool:
        """Whether the kernel is."""
        return self.kernel.is_white()

    def level_variance(self) -> float:
        """factor times the kernel's."""
        return self.factor * self.kernel.level_variance()

    def warp(self, clock: Clock) -> Kernel:
        """The kernel on the other clock."""
        return replace(self, kernel=self.kernel.warp(clock))


@dataclass(frozen=True)
class Warped(Kernel):
    """A kernel whose inputs pass through a monotone clock first. See `Kernel.warp`."""

    kernel: Kernel
    clock: Clock

    def __post_init__(self) -> None:
        """Refuse measurement noise: two fixes have two, even where the clock stands still."""
        if any(term.is_white() for term in self.kernel.terms()):
            raise InvalidValue(
                "measurement noise must not be put on a clock: use kernel.warp(clock)"
            )

    def formula(self, a: Numbers, b: Numbers, m: Arithmetic) -> Numbers:
        """The kernel at clock(a), clock(b)."""
        return self.kernel.formula(self.clock(a), self.clock(b), m)

    def warp(self, clock: Clock) -> Kernel:
        """On another clock, which reads the times first; a stop is one of this clock as well."""
        if not isinstance(clock, StoppedClock):
            return Warped(self, clock)
        if isinstance(self.clock, StoppedClock):
            return Warped(self.kernel, stopped([*self.clock.windows, *clock.windows]))
        return Warped(self.kernel.warp(clock.seen_on(self.clock)), self.clock)


def latent(kernel: Kernel) -> Kernel | None:
    """The kernel without its measurement noise (white terms); None where nothing is left."""
    return _gather([term for term in kernel.terms() if not term.is_white()])


def noise_variance(kernel: Kernel, times: ArrayLike) -> float:
    """The least variance of the white terms of a kernel over the times."""
    white = [term for term in kernel.terms() if term.is_white()]
    return float(sum(np.min(term.diagonal(times)) for term in white))


def split(kernel: Kernel) -> tuple[Kernel | None, float]:
    """The kernel without its levels, and the variance of those levels together."""
    level = sum(term.level_variance() for term in kernel.terms())
    return _gather([term for term in kernel.terms() if term.level_variance() == 0.0]), level


def _gather(terms: list[Kernel]) -> Kernel | None:
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def _inputs(values: ArrayLike) -> FloatArray:
    inputs = numbers_in("inputs must be seconds", values, "subtract the first")
    if inputs.ndim != 1 or not np.all(np.isfinite(inputs)):
        raise InvalidValue(f"inputs must be one finite number a point, got shape {inputs.shape}")
    return inputs


def _check_number(kernel: str, name: str, value: float) -> None:
    if not np.isfinite(value) or (value <= 0 and name != "origin"):
        raise InvalidValue(f"{name} of {kernel} must be a positive finite number, got {value}")
