"""The least noise that holds every false track: the smallest ellipsoid around them.

    min trace(M K)   over K > 0   so that for each limit some w in {fixed + span(free)} has
                                  w^T K^-1 w + w^T form w <= bound

The left side, least over w, is convex in K. A log barrier with Newton steps on K itself; the
multipliers of its centre prove how far above the least the noise may be: for any l, u with
sum l u u^T <= M,

    trace(M K) >= sum l (min over w of 2 u^T w + w^T form w - bound)

Source: ENGINE of the project, section 3; docs/paper.md, "Noise in continuous time".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_solve, cholesky, solve_triangular

from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray

# The barrier's weight grows by this from centre to centre; Newton steps end at these decrements, on
# the way and at the last centre; how many steps there may be.
_FASTER, _NEAR, _AT, _MOST_STEPS = 15.0, 0.3, 1e-7, 400
# Relative to the bounds and to the unit of the objective: where noise counts as beyond all bounds.
_ENDLESS = 1e12


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """What one false track may cost. form: (m, m). fixed: (m,). free: (m, k), may be added."""

    form: FloatArray
    fixed: FloatArray
    free: FloatArray
    bound: float


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """The covariance K (m, m) that was found. least: trace(M K) is never below that."""

    covariance: FloatArray
    trace: float
    least: float

    @property
    def gap(self) -> float:
        """How far above the least the trace is, relative."""
        return self.trace / self.least - 1 if self.least > 0 else float("inf")


def smallest_ellipsoid(
    objective: FloatArray, limits: Sequence[Limit], blocks: Sequence[int], gap: float = 2e-3
) -> Ellipsoid:
    """K of least trace(M K) that is block diagonal, with blocks of these sizes.

    objective: M (m, m), with the same blocks. Scale lengths so that the bounds are about 1.
    Raises Refused where no noise meets all limits; NumericalError where the search does not end.
    """
    problem = _Problem(objective, limits, blocks)
    size, count = objective.shape[0], len(limits)
    covariance = problem.start()
    weight = (count + size) / float(np.trace(covariance))
    for _ in range(_MOST_STEPS):
        last = (count + size) / weight < 0.5 * gap * float(np.trace(covariance))
        covariance, decrement = problem.step(covariance, weight)
        if decrement > (_AT if last else _NEAR):
            continue
        if last:
            ellipsoid = problem.proved(covariance, weight)
            if ellipsoid.gap < gap:
                return ellipsoid
        weight *= _FASTER
    raise NumericalError("the search for the least noise must end, got no end: report this request")


class _Problem:
    """The same in coordinates in which M is the identity."""

    def __init__(
        self, objective: FloatArray, limits: Sequence[Limit], blocks: Sequence[int]
    ) -> None:
        ends = np.cumsum([0, *blocks])
        self.blocks = [slice(a, b) for a, b in pairwise(ends)]
        self.root = self._factor(objective)
        inverse = solve_triangular(self.root, np.eye(objective.shape[0]), lower=True)
        self.back = inverse
        self.limits = [
            Limit(
                inverse @ limit.form @ inverse.T,
                self.root.T @ limit.fixed,
                np.linalg.qr(self.root.T @ limit.free)[0],
                limit.bound,
            )
            for limit in limits
        ]
        self.bounds = np.array([limit.bound for limit in limits])
        self.pairs = [np.triu_indices(size) for size in blocks]
        self.twice = np.concatenate([np.where(i == j, 1.0, 2.0) for i, j in self.pairs])

    def _factor(self, matrix: FloatArray) -> FloatArray:
        return np.asarray(block_diag(*(cholesky(matrix[b, b], lower=True) for b in self.blocks)))

    def start(self) -> FloatArray:
        """Much of the same noise everywhere: enough for all limits."""
        size, much = self.root.shape[0], 1e-2
        while np.any(self.costs(much * np.eye(size))[0] >= 0.9999 * self.bounds):
            much *= 4
            if much > _ENDLESS:
                raise Refused(
                    "some noise must be able to hide so much, got none that can: ask for a smaller "
                    "radius, a larger epsilon, or use --mechanism cut"
                )
        return 4 * much * np.eye(size)

    def costs(self, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least that each false track costs (n,), and the factor of K."""
        factor = self._factor(covariance)
        costs = []
        for limit in self.limits:
            fixed = solve_triangular(factor, limit.fixed, lower=True)
            free = solve_triangular(factor, limit.free, lower=True)
            gram = free.T @ free + limit.free.T @ limit.form @ limit.free
            along = free.T @ fixed + limit.free.T @ (limit.form @ limit.fixed)
            whole = fixed @ fixed + limit.fixed @ limit.form @ limit.fixed
            costs.append(float(whole - along @ np.linalg.solve(gram, along)))
        return np.array(costs), factor

    def _local(self, factor: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Costs (n,), tracks (n, m) and curvatures (n, m, m), where K is the identity."""
        size = factor.shape[0]
        costs, tracks, curved = [], [], []
        for limit in self.limits:
            form = factor.T @ limit.form @ factor
            fixed = solve_triangular(factor, limit.fixed, lower=True)
            free = np.linalg.qr(solve_triangular(factor, limit.free, lower=True))[0]
            moved = free + form @ free
            root = cholesky(free.T @ moved, lower=True)
            track = fixed - free @ cho_solve((root, True), moved.T @ fixed)
            away = solve_triangular(root, free.T, lower=True)
            costs.append(track @ track + track @ form @ track)
            tracks.append(track)
            curved.append(np.eye(size) - away.T @ away)
        return np.array(costs), np.array(tracks), np.array(curved)

    def step(self, covariance: FloatArray, weight: float) -> tuple[FloatArray, float]:
        """One Newton step on the barrier, with its decrement."""
        _, factor = self.costs(covariance)
        costs, tracks, curved = self._local(factor)
        pull = 1 / (self.bounds - costs)
        gradient, products = [], []
        for block, (i, j) in zip(self.blocks, self.pairs, strict=True):
            w, root = tracks[:, block], factor[block, block]
            whole = weight * root.T @ root - (w.T * pull) @ w - np.eye(w.shape[1])
            gradient.append(whole[i, j])
            products.append(w[:, i] * w[:, j])
        slope, each = np.concatenate(gradient), np.hstack(products)
        # Coordinates in which the barrier of K itself has the identity for its second derivative.
        scale = np.sqrt(self.twice)
        hessian = (
            self._curvature(tracks, curved, pull)
            + np.diag(self.twice)
            + ((each * self.twice).T * pull**2) @ (each * self.twice)
        ) / (scale[:, None] * scale)
        try:
            root = cholesky(hessian, lower=True)
        except LinAlgError as error:
            raise NumericalError(
                "the search for noise must stay within double precision, got beyond it: ask for a "
                "smaller radius or a larger epsilon"
            ) from error
        move = -cho_solve((root, True), slope * scale)
        decrement = float(-(slope * scale) @ move)
        direction = self._matrix(move / scale)
        return self._along(covariance, factor, direction, weight, decrement), decrement

    def _curvature(
        self, tracks: FloatArray, curved: FloatArray, pull: FloatArray
    ) -> NDArray[np.float64]:
        """The second derivative of the costs, weighted: 2 (X w)^T S (X w) for each, in pairs."""
        rows = []
        for a, (i, j) in zip(self.blocks, self.pairs, strict=True):
            row = []
            for b, (k, m) in zip(self.blocks, self.pairs, strict=True):
                p, q = a.stop - a.start, b.stop - b.start
                outer = np.einsum("ni,nj->nij", tracks[:, a], tracks[:, b]).reshape(-1, p * q)
                bend = curved[:, a, b].reshape(-1, p * q) * (2 * pull)[:, None]
                whole = (bend.T @ outer).reshape(p, q, p, q).transpose(0, 2, 1, 3)
                whole = whole + whole.transpose(1, 0, 2, 3)
                whole = whole + whole.transpose(0, 1, 3, 2)
                row.append(whole[i, j][:, k, m] / 4)
            rows.append(row)
        curvature: NDArray[np.float64] = np.block(rows)
        return np.asarray(curvature * self.twice[:, None] * self.twice)

    def _matrix(self, entries: FloatArray) -> FloatArray:
        """The symmetric matrix of its entries on and above the diagonals of the blocks."""
        parts, used = [], 0
        for block, pair in zip(self.blocks, self.pairs, strict=True):
            part = np.zeros((block.stop - block.start,) * 2)
            part[pair] = entries[used : used + pair[0].size]
            used += pair[0].size
            parts.append(part + part.T - np.diag(np.diag(part)))
        return np.asarray(block_diag(*parts))

    def _along(
        self,
        covariance: FloatArray,
        factor: FloatArray,
        direction: FloatArray,
        weight: float,
        decrement: float,
    ) -> FloatArray:
        """As far along a direction as the barrier falls, and all limits hold."""
        now, size = self._barrier(covariance, weight), 1.0
        while size > 1e-10:
            moved = factor @ (np.eye(factor.shape[0]) + size * direction) @ factor.T
            then = self._barrier(moved, weight)
            if then <= now - 1e-4 * size * decrement + 1e-9 * abs(now):
                return np.asarray(moved)
            size /= 2
        return covariance

    def _barrier(self, covariance: FloatArray, weight: float) -> float:
        try:
            costs, factor = self.costs(covariance)
        except LinAlgError:
            return float("inf")
        if np.any(costs >= self.bounds):
            return float("inf")
        trace = weight * float(np.trace(covariance))
        logs = np.sum(np.log(self.bounds - costs)) + 2 * np.sum(np.log(np.diag(factor)))
        return trace - float(logs)

    def proved(self, covariance: FloatArray, weight: float) -> Ellipsoid:
        """K in the caller's coordinates, with what its multipliers prove."""
        _, factor = self.costs(covariance)
        costs, tracks, _ = self._local(factor)
        forces = solve_triangular(factor, tracks.T, lower=True, trans="T").T
        pull = 1 / (weight * (self.bounds - costs))
        pull /= max(
            float(np.linalg.eigvalsh((forces[:, b].T * pull) @ forces[:, b])[-1])
            for b in self.blocks
        )
        least = 0.0
        for limit, force, share in zip(self.limits, forces, pull, strict=True):
            gram = limit.free.T @ limit.form @ limit.free
            along = np.linalg.solve(gram, limit.free.T @ (force + limit.form @ limit.fixed))
            w = limit.fixed - limit.free @ along
            least += share * float(2 * force @ w + w @ limit.form @ w - limit.bound)
        whole = self.back.T @ covariance @ self.back
        return Ellipsoid((whole + whole.T) / 2, float(np.trace(covariance)), least)
