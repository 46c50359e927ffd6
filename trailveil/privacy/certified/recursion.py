"""Sums of covariances in O(n), in balls, straight from the formulas of Markov kernels.

    y_i = sum_j k(a_i, b_j) x_j

A Matern kernel is a polynomial of the distance times an exponential, and an integrated Ornstein-
Uhlenbeck kernel is, with g the variance of a displacement,

    k(a, b) = g(a - o)/2 + g(b - o)/2 - s^2 tau (|a - b| - tau + tau e^(-|a - b| / tau))

so that the sums over j before i, and those after, are read off sums of x_j d^q e^(-r d), d the
distance, which go on from one time to the next. Each is a sum with positive weights that shrinks or
keeps what it had: the balls widen no faster than the rounding of a sum does. Nothing here is shared
with trailveil.gp.statespace, which it is to judge.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trailveil.gp.balls import BALLS, matrix
from trailveil.gp.clocks import StoppedClock
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Scaled,
    Warped,
    White,
)

_STANDING = StoppedClock(())


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a kernel: on a clock, scaled, a Matern, integrated, constant or white one."""

    kernel: Kernel
    clock: StoppedClock
    factors: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many sums it needs."""
        match self.kernel:
            case Matern32():
                return 2
            case Matern52() | IntegratedOU():
                return 3
        return 1

    def scale(self) -> Any:
        """What all of it is multiplied by."""
        found = BALLS.number(1.0)
        for factor in self.factors:
            found = found * factor
        return found

    def rate(self) -> Any:
        """r of e^(-r d), per second."""
        kernel, one = self.kernel, BALLS.number(1.0)
        match kernel:
            case Matern12():
                return one / kernel.length_scale
            case Matern32():
                return BALLS.sqrt(3 * one) / kernel.length_scale
            case Matern52():
                return BALLS.sqrt(5 * one) / kernel.length_scale
            case IntegratedOU():
                return one / kernel.time_constant
        return 0 * one

    def reads(self) -> list[Any]:
        """What each of the sums counts for."""
        kernel, scale, rate = self.kernel, self.scale(), self.rate()
        if isinstance(kernel, IntegratedOU):
            tau = BALLS.number(kernel.time_constant)
            own = scale * BALLS.number(kernel.std) ** 2 * tau
            return [own * tau, -own, -own * tau]
        own = scale * BALLS.number(kernel.std) ** 2  # type: ignore[attr-defined]  # all have one
        return [own, own * rate, own * rate**2 / 3][: self.size]

    def transition(self, step: Any) -> list[list[Any]]:
        """What a step (seconds of its clock) makes of the sums."""
        zero, one = BALLS.number(0.0), BALLS.number(1.0)
        fading = BALLS.exp(-self.rate() * step)
        match self.kernel:
            case Constant():
                return [[one]]
            case IntegratedOU():
                return [[one, zero, zero], [step, one, zero], [zero, zero, fading]]
        full = [[one, zero, zero], [step, one, zero], [step**2, 2 * step, one]]
        return [[fading * value for value in row[: self.size]] for row in full[: self.size]]

    def takes(self) -> list[int]:
        """What is added to each of the sums where there is a value."""
        return [1, 0, 1] if isinstance(self.kernel, IntegratedOU) else [1, 0, 0][: self.size]

    def ends(self, times: FloatArray) -> list[Any]:
        """g(t - origin) / 2 of an integrated series, at each of some times."""
        kernel = self.kernel
        if not isinstance(kernel, IntegratedOU):
            return []
        tau, origin = BALLS.number(kernel.time_constant), BALLS.number(kernel.origin)
        apart = abs(self.clock(BALLS.numbers(times)) - origin)
        own = self.scale() * BALLS.number(kernel.std) ** 2 * tau
        return list(own * (apart + tau * BALLS.expm1(-apart / tau)))


def parts(kernel: Kernel | None) -> list[Part] | None:
    """The terms of a kernel, or None where one of them has no sums in O(n)."""
    found = []
    for term in () if kernel is None else kernel.terms():
        clock, factors, inner = _STANDING, [], term
        while isinstance(inner, Scaled | Warped):
            if isinstance(inner, Scaled):
                factors.append(inner.factor)
            elif isinstance(inner.clock, StoppedClock) and clock is _STANDING:
                clock = inner.clock
            else:
                return None
            inner = inner.kernel
        if not isinstance(inner, Constant | White | Matern12 | Matern32 | Matern52 | IntegratedOU):
            return None
        found.append(Part(inner, clock, tuple(factors)))
    return found


def product(
    parts: Sequence[Part], to: FloatArray, of: FloatArray, rows: Sequence[Any]
) -> list[Any]:
    """sum_j k(to_i, of_j) x_j, n rows (1, m), for p rows x of balls: O((n + p) m)."""
    own = [one for one in parts if not isinstance(one.kernel, White)]
    white = [one for one in parts if isinstance(one.kernel, White)]
    found = [0 * rows[0]] * to.size if rows else []
    if own and to.size and of.size:
        _sweep(own, to, of, rows, found)
        for one in own:
            _ends(one, to, of, rows, found)
    for one in white:
        _same(one, to, of, rows, found)
    return found


def _sweep(
    own: Sequence[Part], to: FloatArray, of: FloatArray, rows: Sequence[Any], found: list[Any]
) -> None:
    """What the sums before and after each time tell, added to `found`."""
    moments = np.unique(np.concatenate([to, of]))
    heard, told = _indices(moments, of), _indices(moments, to)
    steps = _steps(own, moments)
    takes = matrix(sum(one.size for one in own), 1, [v for one in own for v in one.takes()])
    reads = matrix(1, takes.nrows(), [v for one in own for v in one.reads()])
    nothing = takes * (0 * rows[0])
    sums = nothing
    for i in range(moments.size):
        sums = steps[i - 1] * sums if i else sums
        for j in heard[i]:
            sums = sums + takes * rows[j]
        for j in told[i]:
            found[j] = found[j] + reads * sums
    sums = nothing
    for i in reversed(range(moments.size)):
        sums = steps[i] * sums if i < moments.size - 1 else sums
        for j in told[i]:
            found[j] = found[j] + reads * sums
        for j in heard[i]:
            sums = sums + takes * rows[j]


def _indices(moments: FloatArray, times: FloatArray) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(moments.size)]
    for index, at in enumerate(np.searchsorted(moments, times).tolist()):
        found[at].append(index)
    return found


def _steps(own: Sequence[Part], moments: FloatArray) -> list[Any]:
    """What the step from each time to the next makes of all sums (d, d)."""
    balls = BALLS.numbers(moments)
    faces = [one.clock(balls) for one in own]
    passed = [face[1:] - face[:-1] for face in faces]
    known: dict[tuple[Any, ...], Any] = {}
    found = []
    for step in zip(*passed, strict=True):
        key = tuple(step)
        if key not in known:
            known[key] = _block([one.transition(s) for one, s in zip(own, step, strict=True)])
        found.append(known[key])
    return found


def _block(blocks: Sequence[list[list[Any]]]) -> Any:
    size = sum(len(block) for block in blocks)
    entries: list[Any] = [0] * (size * size)
    begin = 0
    for block in blocks:
        for i, row in enumerate(block):
            for j, value in enumerate(row):
                entries[(begin + i) * size + begin + j] = value
        begin += len(block)
    return matrix(size, size, entries)


def _ends(
    part: Part, to: FloatArray, of: FloatArray, rows: Sequence[Any], found: list[Any]
) -> None:
    """(g(a - o) + g(b - o)) / 2: of either end alone."""
    if not isinstance(part.kernel, IntegratedOU):
        return
    total, weighted = 0 * rows[0], 0 * rows[0]
    for row, end in zip(rows, part.ends(of), strict=True):
        total, weighted = total + row, weighted + row * end
    for i, end in enumerate(part.ends(to)):
        found[i] = found[i] + total * end + weighted


def _same(
    part: Part, to: FloatArray, of: FloatArray, rows: Sequence[Any], found: list[Any]
) -> None:
    """std^2 where the times are the same."""
    own = part.scale() * BALLS.number(part.kernel.std) ** 2  # type: ignore[attr-defined]  # white
    at: dict[float, Any] = {}
    for time, row in zip(of.tolist(), rows, strict=True):
        at[time] = at[time] + row if time in at else row
    for i, time in enumerate(to.tolist()):
        if time in at:
            found[i] = found[i] + at[time] * own


def bits_of_times(numbers: FloatArray) -> int:
    """The bits in which sums of some of these numbers are exact: times, edges of clocks, origins.

    All are multiples of the lowest bit set in any of them; the sums that clocks make are below
    their number times the largest.
    """
    low, high = math.inf, -math.inf
    for value in np.unique(np.abs(numbers[numbers != 0])).tolist():
        part, exponent = math.frexp(value)
        whole = int(math.ldexp(part, 53))
        low = min(low, exponent - 53 + (whole & -whole).bit_length() - 1)
        high = max(high, exponent)
    return 0 if high < low else int(high - low) + 4
