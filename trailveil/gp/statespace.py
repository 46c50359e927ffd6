"""Kernels of Markov series as state-space models.

A series is Markov when it is the first component of a state z that forgets its past:

    z(t + h) = F(h) z(t) + w,     w ~ N(0, Q(h)) independent of the past,     z(first) ~ N(0, P0)

Matern kernels of order p + 1/2 have p + 1 components, an integrated Ornstein-Uhlenbeck series two,
a level one. Components are derivatives in units of the kernel's own rate and deviation: F and Q are
pure numbers of size one. Q vanishes with the step, and is nowhere inverted: clocks may stand still.
Source: Hartikainen and Sarkka (2010), Kalman filtering and smoothing solutions to temporal Gaussian
process regression models; Sarkka and Solin (2019), Applied Stochastic Differential Equations, 12.3.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue
from trailveil.gp.arithmetic import FLOAT
from trailveil.gp.gaussian import UNIT_ROUNDOFF, FloatArray
from trailveil.gp.kernels import (
    Clock,
    Constant,
    IntegratedOU,
    Matern12,
    Matern32,
    Matern52,
    Scaled,
    Sum,
    Warped,
    White,
)

# exp(-x) is 0 in double precision from here on; beyond, powers of x would overflow.
_FORGOTTEN = 800.0
# Below this many time constants the closed form of an integrated series cancels.
_SHORT = 0.5


class Term(Protocol):
    """The state of one series of unit deviation, with d components, the series first."""

    @property
    def size(self) -> int:
        """d."""

    def transition(self, steps: FloatArray) -> FloatArray:
        """F (d, d, ...) for steps (...) in seconds, none negative."""

    def noise(self, steps: FloatArray) -> FloatArray:
        """Q (d, d, ...) for steps (...) in seconds, none negative; to a few units of rounding."""

    def start(self, first: float) -> FloatArray:
        """P0 (d, d), the covariance of the state at the first time."""


@dataclass(frozen=True)
class MaternState:
    """Matern of order p + 1/2: derivatives 0 to p in units of rate^k, driven through the last.

    With x = rate * step, M the companion matrix of (s + 1)^(p + 1) plus 1, so that M^(p + 1) = 0,
        F = e^-x sum_k M^k x^k / k!,     Q_ij = q int_0^x phi_i phi_j du,     phi = F's last column.
    """

    p: int
    rate: float

    @property
    def size(self) -> int:
        """p + 1."""
        return self.p + 1

    @cached_property
    def _powers(self) -> FloatArray:
        """M^k / k! for k = 0 to p."""
        shifted = np.eye(self.size) + np.eye(self.size, k=1)
        shifted[-1] -= [math.comb(self.size, j) for j in range(self.size)]
        powers = [np.linalg.matrix_power(shifted, k) / math.factorial(k) for k in range(self.size)]
        return np.stack(powers)

    @cached_property
    def _products(self) -> FloatArray:
        """The polynomials phi_i phi_j e^2u (d, d, 2p + 1), for a stationary variance of one."""
        phi = self._powers[:, :, -1].T
        products = np.array([[np.convolve(a, b) for b in phi] for a in phi])
        return np.asarray(products / (products[0, 0] @ self._whole))

    @property
    def _whole(self) -> FloatArray:
        """int_0^infinity u^m e^(-2u) du for m = 0 to 2p."""
        return np.array([math.factorial(m) / 2 ** (m + 1) for m in range(2 * self.p + 1)])

    def transition(self, steps: FloatArray) -> FloatArray:
        """F (d, d, ...)."""
        x = np.minimum(steps * self.rate, _FORGOTTEN)
        fading = [np.exp(-x)]
        for _ in range(self.p):
            fading.append(fading[-1] * x)
        return np.asarray(np.einsum("kij,k...->ij...", self._powers, np.array(fading)))

    def noise(self, steps: FloatArray) -> FloatArray:
        """Q (d, d, ...), from int_0^x u^m e^-2u du by the recurrence in which nothing cancels."""
        x = np.minimum(steps * self.rate, _FORGOTTEN)
        top = 2 * self.p
        fading = [np.exp(-2 * x)]
        for _ in range(top):
            fading.append(fading[-1] * x)
        from scipy.special import gammainc  # heavy, and only needed for noise

        integrals = [gammainc(top + 1, 2 * x) * self._whole[top]]
        for m in range(top, 0, -1):
            integrals.append((2 * integrals[-1] + fading[m]) / m)
        return np.asarray(np.einsum("ijk,k...->ij...", self._products, np.array(integrals[::-1])))

    def start(self, first: float) -> FloatArray:
        """The stationary covariance, at any time."""
        return np.asarray(self._products @ self._whole)


@dataclass(frozen=True)
class IntegratedState:
    """Position and velocity of an integrated Ornstein-Uhlenbeck series, in units of std tau, std.

    With x = rate * step: F = [[1, 1 - e^-x], [0, e^-x]], Q = 2 int_0^x phi phi^T du, phi = F's last
    column.
    """

    rate: float
    origin: float

    @property
    def size(self) -> int:
        """2."""
        return 2

    def transition(self, steps: FloatArray) -> FloatArray:
        """F (2, 2, ...)."""
        x = steps * self.rate
        ones = np.ones_like(x)
        return np.array([[ones, -np.expm1(-x)], [0 * ones, np.exp(-x)]])

    def noise(self, steps: FloatArray) -> FloatArray:
        """Q (2, 2, ...)."""
        x = steps * self.rate
        gone = -np.expm1(-x)
        crossed = gone * gone
        return np.array([[_wandered(x), crossed], [crossed, -np.expm1(-2 * x)]])

    def start(self, first: float) -> FloatArray:
        """Zero position at the origin, then wandered from there."""
        x = (first - self.origin) * self.rate
        crossed = -math.expm1(-x)
        return np.array([[2 * float(FLOAT.expm1_remainder(np.array(-x))), crossed], [crossed, 1.0]])


@dataclass(frozen=True)
class LevelState:
    """One value that never changes."""

    @property
    def size(self) -> int:
        """1."""
        return 1

    def transition(self, steps: FloatArray) -> FloatArray:
        """One (1, 1, ...)."""
        return np.ones((1, 1, *steps.shape))

    def noise(self, steps: FloatArray) -> FloatArray:
        """Zero (1, 1, ...)."""
        return np.zeros((1, 1, *steps.shape))

    def start(self, first: float) -> FloatArray:
        """One (1, 1)."""
        return np.ones((1, 1))


_GAUSS_LEGENDRE = np.polynomial.legendre.leggauss(8)


def _wandered(x: FloatArray) -> FloatArray:
    """2 int_0^x (1 - e^-u)^2 du = 2x - 3 + 4 e^-x - e^-2x, without cancellation."""
    near = x < _SHORT
    short, long = np.where(near, x, 0.0), np.where(near, _SHORT, x)
    gone = -np.expm1(-long)
    nodes, weights = _GAUSS_LEGENDRE
    places = zip((1 + nodes) / 2, weights, strict=True)
    mean = sum(weight * np.expm1(-short * place) ** 2 for place, weight in places)
    return np.asarray(np.where(near, short * mean, 2 * long - 2 * gone - gone * gone))


@dataclass(frozen=True)
class Component:
    """A term with its variance and the clocks that its times pass through, in that order."""

    term: Term
    variance: float
    clocks: tuple[Clock, ...] = ()

    def inputs(self, times: FloatArray) -> FloatArray:
        """The times (n,) on the component's own clock; increasing times must come out in order.

        Rounding may let a clock that stands still slip by a unit or two; that is put right.
        """
        inputs = times
        for clock in self.clocks:
            inputs = np.asarray(clock(inputs), dtype=np.float64)
        ordered = np.maximum.accumulate(inputs)
        if np.any(ordered - inputs > 8 * UNIT_ROUNDOFF * np.max(np.abs(times), initial=0.0)):
            raise InvalidValue("a clock must never run backwards, got one that does")
        return ordered


@dataclass(frozen=True)
class StateSpace:
    """A Markov kernel taken apart: independent components, and the variance of its white noise."""

    components: tuple[Component, ...]
    white: float = 0.0


def state_space(kernel: object) -> StateSpace | None:
    """The kernel as a state-space model, or None where it is not Markov."""
    model: StateSpace | None = None
    match kernel:
        case Matern12(scale, std):
            model = _single(MaternState(0, 1 / scale), std**2)
        case Matern32(scale, std):
            model = _single(MaternState(1, math.sqrt(3) / scale), std**2)
        case Matern52(scale, std):
            model = _single(MaternState(2, math.sqrt(5) / scale), std**2)
        case IntegratedOU(std, tau, origin):
            model = _single(IntegratedState(1 / tau, origin), (std * tau) ** 2)
        case Constant(std):
            model = _single(LevelState(), std**2)
        case White(std):
            model = StateSpace((), std**2)
        case Scaled(inner, factor):
            model = _scaled(state_space(inner), factor)
        case Warped(inner, clock):
            model = _warped(state_space(inner), clock)
        case Sum(parts):
            model = _summed([state_space(part) for part in parts])
    return model


def is_markov(kernel: object, times: ArrayLike | None = None) -> bool:
    """Whether a kernel has the O(n) form; with times (n,), whether it has it there.

    An integrated series has it from its origin on only, where it is zero.
    """
    model = state_space(kernel)
    if model is None or times is None:
        return model is not None
    ordered = np.unique(np.asarray(times, dtype=np.float64))
    return all(begins_in_time(component, ordered) for component in model.components)


def required_state_space(kernel: object) -> StateSpace:
    """The kernel as a state-space model, empty for None; InvalidValue where it is not Markov."""
    model = StateSpace(()) if kernel is None else state_space(kernel)
    if model is None:
        raise InvalidValue(
            f"the kernel must be a sum of Markov kernels on clocks of their own, got {kernel}"
        )
    return model


def begins_in_time(component: Component, times: FloatArray) -> bool:
    """Whether a component has begun at the first of these ordered times (n,)."""
    term = component.term
    if not isinstance(term, IntegratedState) or times.size == 0:
        return True
    return bool(component.inputs(times[:1])[0] >= term.origin)


def _single(term: Term, variance: float) -> StateSpace:
    return StateSpace((Component(term, variance),))


def _scaled(model: StateSpace | None, factor: float) -> StateSpace | None:
    if model is None:
        return None
    parts = tuple(replace(part, variance=factor * part.variance) for part in model.components)
    return StateSpace(parts, factor * model.white)


def _warped(model: StateSpace | None, clock: Clock) -> StateSpace | None:
    """The outermost clock reads the times first. White noise on a clock is no noise of one fix."""
    if model is None or model.white > 0:
        return None
    return StateSpace(
        tuple(replace(part, clocks=(clock, *part.clocks)) for part in model.components)
    )


def _summed(models: list[StateSpace | None]) -> StateSpace | None:
    known = [model for model in models if model is not None]
    if len(known) < len(models):
        return None
    parts = tuple(part for model in known for part in model.components)
    return StateSpace(parts, sum(model.white for model in known))
