"""A place and the ways from it: what noise common to all visits leaves of it, however often.

One way is p + R(tau), tau >= 0 the seconds since a visit (or until one: both are ways), R the
prior's movement from 0 on, seen at every time of a grid without measurement noise to speak of,
which averages out where a way is taken again and again. Noise is B(tau) c with B cubic splines that
add up to 1 near the place, c ~ N(0, Gamma). Any number of recordings along w ways tells no more
than w ways do (trailveil.recurring), which is w times the information of one.

Unknowns are p and d = c + p: near the place p is in d alone, so nothing large is subtracted.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from trailveil.gaussian import FloatArray, cholesky_factor, cholesky_solve
from trailveil.kernels import Kernel, latent, split

# Metres: what is left of the measurement noise, deviation, where a way is taken again and again.
_AVERAGED = 0.05
_DEGREE = 3


@dataclass(frozen=True, eq=False)
class Shapes:
    """The splines of a common noise: knots (m,) seconds to the nearest visit, from 0 on."""

    knots: FloatArray

    @property
    def size(self) -> int:
        """How many splines: the last ones, which would not fade to 0, are left out."""
        return int(self.knots.size) - 1

    def at(self, away: FloatArray) -> FloatArray:
        """B (n, r) at seconds to the nearest visit (n,): rows add up to 1 near 0, are 0 far off."""
        first, last = self.knots[0], self.knots[-1]
        whole = np.concatenate([[first] * _DEGREE, self.knots, [last] * _DEGREE])
        from scipy.interpolate import BSpline  # heavy, as all of scipy.interpolate

        found = BSpline.design_matrix(np.clip(away, first, last), whole, _DEGREE).toarray()
        found[away > last] = 0.0
        return np.asarray(found[:, : self.size])

    def design(self, away: FloatArray) -> FloatArray:
        """How p, and d = c + p, move what is released (n, 1 + r)."""
        shapes = self.at(away)
        return np.column_stack([1.0 - shapes.sum(axis=1), shapes])


@dataclass(frozen=True, eq=False)
class Way:
    """One way of a prior, seen at times (n,) since the visit, with noise of these shapes."""

    kernel: Kernel
    times: FloatArray
    shapes: Shapes

    @cached_property
    def _moved(self) -> FloatArray:
        return movement(self.kernel, self.times)

    @cached_property
    def _factor(self) -> FloatArray:
        return cholesky_factor(self._moved + _AVERAGED**2 * np.eye(self.times.size))

    @cached_property
    def _design(self) -> FloatArray:
        return self.shapes.design(self.times)

    @cached_property
    def told(self) -> FloatArray:
        """What a way tells of (p, d) (1 + r, 1 + r)."""
        return _product(self._design, cholesky_solve(self._factor, self._design))

    def told_with_points(
        self, times: FloatArray, accuracy: float
    ) -> list[tuple[FloatArray, float]]:
        """The same with one true place known besides, at each of some times, and 1 / its variance.

        times: seconds (m,), of those of the way. accuracy: metres.
        """
        rows = np.searchsorted(self.times, times)
        shared = np.ascontiguousarray(self._moved[:, rows])
        solved = cholesky_solve(self._factor, shared)
        variances = np.diagonal(self._moved)[rows] + accuracy**2
        left = variances - np.sum(shared * solved, axis=0)
        beyond = -self._design.T @ solved
        beyond[0] += 1.0
        return [
            (self.told + np.outer(one, one) / rest, 1.0 / float(variance))
            for one, rest, variance in zip(beyond.T, left, variances, strict=True)
        ]

    def told_with_path(self, away: float, accuracy: float) -> tuple[FloatArray, float]:
        """The same with all true places known from some seconds away on, and what they tell."""
        far = np.flatnonzero(self.times >= away)
        if far.size == 0:
            return self.told, 0.0
        rows = np.concatenate([np.arange(self.times.size), far])
        own = np.full(rows.size, accuracy**2)
        own[: self.times.size] = _AVERAGED**2
        design = np.vstack([self._design, np.zeros((far.size, self._design.shape[1]))])
        design[self.times.size :, 0] = 1.0
        joint = cholesky_factor(self._moved[np.ix_(rows, rows)] + np.diag(own))
        path = cholesky_factor(self._moved[np.ix_(far, far)] + accuracy**2 * np.eye(far.size))
        ones = np.ones((far.size, 1))
        known = float(_product(ones, cholesky_solve(path, ones))[0, 0])
        return _product(design, cholesky_solve(joint, design)), known


def movement(kernel: Kernel, times: FloatArray) -> FloatArray:
    """How far ways lead from where they began: Cov(X(t) - X(0), X(t') - X(0)) (n, n)."""
    smooth = latent(kernel)
    base = None if smooth is None else split(smooth)[0]
    if base is None:
        return np.zeros((times.size, times.size))
    zero = np.zeros(1)
    away = base(times, zero)
    return np.asarray(base(times, times) - away - away.T + base(zero, zero))


def loss_of_shapes(told: FloatArray, root: FloatArray) -> tuple[float, FloatArray]:
    """The information on p alone, d = c + p, c ~ N(0, Gamma), and how it falls with Gamma.

    told: of (p, d) (1 + r, 1 + r). root: lower triangular, Gamma = root root^T. Second: u (r,) with
    d loss = -u^T dGamma u.
    """
    precise = solve_triangular(root, np.eye(root.shape[0]), lower=True)
    ones = precise @ np.ones(root.shape[0])
    whole = told.copy()
    whole[0, 0] += ones @ ones
    whole[0, 1:] -= precise.T @ ones
    whole[1:, 0] = whole[0, 1:]
    whole[1:, 1:] += precise.T @ precise
    best = -cholesky_solve(cholesky_factor(whole[1:, 1:]), whole[1:, :1])[:, 0]
    loss = whole[0, 0] + whole[0, 1:] @ best
    return float(loss), precise.T @ (precise @ (1.0 - best))


def seconds_to(times: NDArray[np.int64], visits: list[tuple[int, int]]) -> FloatArray:
    """Seconds from each time to the nearest visit (n,), 0 within one; all in nanoseconds."""
    away = np.full(times.size, np.inf)
    for begin, end in visits:
        gap = np.maximum(np.maximum(begin - times, times - end), 0)
        away = np.minimum(away, gap / 1e9)
    return away


def _product(design: FloatArray, solved: FloatArray) -> FloatArray:
    found = design.T @ solved
    return np.asarray((found + found.T) / 2)
