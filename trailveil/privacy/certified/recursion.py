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
        scale = BALLS.number(1.0)
        for factor in self.factors:
            scale = scale * factor
        return scale

    def rate(self) -> Any:
        """r of e^(-r d), per second."""
        kernel, unit = self.kernel, BALLS.number(1.0)
        match kernel:
            case Matern12():
                return unit / kernel.length_scale
            case Matern32():
                return BALLS.sqrt(3 * unit) / kernel.length_scale
            case Matern52():
                return BALLS.sqrt(5 * unit) / kernel.length_scale
            case IntegratedOU():
                return unit / kernel.time_constant
        return 0 * unit

    def reads(self) -> list[Any]:
        """What each of the sums counts for."""
        kernel, scale, rate = self.kernel, self.scale(), self.rate()
        if isinstance(kernel, IntegratedOU):
            tau = BALLS.number(kernel.time_constant)
            strength = scale * BALLS.number(kernel.std) ** 2 * tau
            return [strength * tau, -strength, -strength * tau]
        strength = scale * BALLS.number(kernel.std) ** 2  # type: ignore[attr-defined]  # all have one
        return [strength, strength * rate, strength * rate**2 / 3][: self.size]

    def transition(self, step: Any) -> list[list[Any]]:
        """What a step (seconds of its clock) makes of the sums."""
        zero, unit = BALLS.number(0.0), BALLS.number(1.0)
        fading = BALLS.exp(-self.rate() * step)
        match self.kernel:
            case Constant():
                return [[unit]]
            case IntegratedOU():
                return [[unit, zero, zero], [step, unit, zero], [zero, zero, fading]]
        full = [[unit, zero, zero], [step, unit, zero], [step**2, 2 * step, unit]]
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
        strength = self.scale() * BALLS.number(kernel.std) ** 2 * tau
        return list(strength * (apart + tau * BALLS.expm1(-apart / tau)))


def parts(kernel: Kernel | None) -> list[Part] | None:
    """The terms of a kernel, or None where one of them has no sums in O(n)."""
    terms = []
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
        terms.append(Part(inner, clock, tuple(factors)))
    return terms


def product(
    parts: Sequence[Part], to: FloatArray, of: FloatArray, rows: Sequence[Any]
) -> list[Any]:
    """sum_j k(to_i, of_j) x_j, n rows (1, m), for p rows x of balls: O((n + p) m)."""
    coloured = [term for term in parts if not isinstance(term.kernel, White)]
    white = [term for term in parts if isinstance(term.kernel, White)]
    sums = [0 * rows[0]] * to.size if rows else []
    if coloured and to.size and of.size:
        _sweep(coloured, to, of, rows, sums)
        for part in coloured:
            _ends(part, to, of, rows, sums)
    for part in white:
        _same(part, to, of, rows, sums)
    return sums


def _sweep(
    terms: Sequence[Part], to: FloatArray, of: FloatArray, rows: Sequence[Any], out: list[Any]
) -> None:
    """What the sums before and after each time tell, added to `found`."""
    moments = np.unique(np.concatenate([to, of]))
    heard, asked = _indices(moments, of), _indices(moments, to)
    steps = _steps(terms, moments)
    takes = matrix(sum(part.size for part in terms), 1, [v for part in terms for v in part.takes()])
    reads = matrix(1, takes.nrows(), [v for part in terms for v in part.reads()])
    nothing = takes * (0 * rows[0])
    sums = nothing
    for i in range(moments.size):
        sums = steps[i - 1] * sums if i else sums
        for j in heard[i]:
            sums = sums + takes * rows[j]
        for j in asked[i]:
            out[j] = out[j] + reads * sums
    sums = nothing
    for i in reversed(range(moments.size)):
        sums = steps[i] * sums if i < moments.size - 1 else sums
        for j in asked[i]:
            out[j] = out[j] + reads * sums
        for j in heard[i]:
            sums = sums + takes * rows[j]


def _indices(moments: FloatArray, times: FloatArray) -> list[list[int]]:
    indices: list[list[int]] = [[] for _ in range(moments.size)]
    for index, at in enumerate(np.searchsorted(moments, times).tolist()):
        indices[at].append(index)
    return indices


def _steps(terms: Sequence[Part], moments: FloatArray) -> list[Any]:
    """What the step from each time to the next makes of all sums (d, d)."""
    balls = BALLS.numbers(moments)
    faces = [part.clock(balls) for part in terms]
    passed = [face[1:] - face[:-1] for face in faces]
    known: dict[tuple[Any, ...], Any] = {}
    steps = []
    for step in zip(*passed, strict=True):
        key = tuple(step)
        if key not in known:
            known[key] = _block([part.transition(s) for part, s in zip(terms, step, strict=True)])
        steps.append(known[key])
    return steps


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


def _ends(part: Part, to: FloatArray, of: FloatArray, rows: Sequence[Any], out: list[Any]) -> None:
    """(g(a - o) + g(b - o)) / 2: of either end alone."""
    if not isinstance(part.kernel, IntegratedOU):
        return
    total, weighted = 0 * rows[0], 0 * rows[0]
    for row, end in zip(rows, part.ends(of), strict=True):
        total, weighted = total + row, weighted + row * end
    for i, end in enumerate(part.ends(to)):
        out[i] = out[i] + total * end + weighted


def _same(part: Part, to: FloatArray, of: FloatArray, rows: Sequence[Any], out: list[Any]) -> None:
    """std^2 where the times are the same."""
    variance = part.scale() * BALLS.number(part.kernel.std) ** 2  # type: ignore[attr-defined]  # white
    at: dict[float, Any] = {}
    for time, row in zip(of.tolist(), rows, strict=True):
        at[time] = at[time] + row if time in at else row
    for i, time in enumerate(to.tolist()):
        if time in at:
            out[i] = out[i] + at[time] * variance


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
