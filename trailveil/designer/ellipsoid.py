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
from itertools import combinations_with_replacement, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_solve, cholesky, solve_triangular

from trailveil.designer.cancelling import check_cancelled
from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray

# The barrier's weight grows by this from centre to centre; Newton steps end at these decrements, on
# the way and, in units of the squared gap, at the last centre; how many steps there may be.
_FASTER, _NEAR, _AT, _MOST_STEPS = 15.0, 0.3, 0.025, 400
# So many times the gap that is asked for may be left where rounding ends the search.
_AT_MOST = 5.0
# How much more noise (relative) than what was near the search goes on from.
_SLIGHTLY = (0.02, 0.1, 0.5, 2.0)
# Relative to the bounds and to the unit of the objective: where noise counts as beyond all bounds.
_ENDLESS = 1e12


Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Rows and columns of the entries on and above the diagonal of a block."""


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
    objective: FloatArray,
    limits: Sequence[Limit],
    blocks: Sequence[int],
    gap: float = 2e-3,
    near: FloatArray | None = None,
) -> Ellipsoid:
    """K of least trace(M K) that is block diagonal, with blocks of these sizes.

    objective: M (m, m), with the same blocks. near: K for some of the limits, from which the search
    goes on. Scale lengths so that the bounds are about 1. Raises Refused where no noise meets all
    limits; NumericalError where the search does not end. Where rounding ends it, the gap is up to
    five times what is asked for.
    """
    problem = _Problem(objective, limits, blocks)
    size, count = objective.shape[0], len(limits)
    covariance, excess = problem.start(near)
    weight = (count + size) / float(np.trace(covariance)) / excess
    for _ in range(_MOST_STEPS):
        check_cancelled()
        last = (count + size) / weight < 0.5 * gap * float(np.trace(covariance))
        before = covariance
        covariance, decrement = problem.step(before, weight)
        stuck = covariance is before  # by rounding: more steps at this weight change nothing
        if decrement > (_AT * gap**2 if last else _NEAR) and not stuck:
            continue
        if last:
            ellipsoid = problem.proved(covariance, weight)
            if ellipsoid.gap < (_AT_MOST * gap if stuck else gap):
                return ellipsoid
        weight *= _FASTER
    raise NumericalError("the search for the least noise must end, got no end: report this request")


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """Limits with as many free directions, at once: forms (n, m, m), fixed (n, m), free (n, m, k).

    bent: free^T form free (n, k, k). pulled: free^T form fixed (n, k). stiff: fixed^T form fixed.
    """

    forms: FloatArray
    fixed: FloatArray
    free: FloatArray
    bent: FloatArray
    pulled: FloatArray
    stiff: FloatArray

    @classmethod
    def of(cls, limits: Sequence[Limit]) -> "_Family":
        forms, fixed, free = (
            np.array([getattr(limit, name) for limit in limits])
            for name in ("form", "fixed", "free")
        )
        moved = np.einsum("nij,nj->ni", forms, fixed)
        across = free.transpose(0, 2, 1)
        return cls(
            *(forms, fixed, free),
            *(across @ forms @ free, _each(across, moved), np.sum(fixed * moved, axis=1)),
        )

    def solved(self, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L^-1 fixed (n, m) and L^-1 free (n, m, k)."""
        count, size, width = self.free.shape
        columns = np.concatenate([self.fixed[:, :, None], self.free], axis=2)
        flat = columns.transpose(1, 0, 2).reshape(size, -1)
        solved = solve_triangular(factor, flat, lower=True).reshape(size, count, width + 1)
        return solved[:, :, 0].T, solved[:, :, 1:].transpose(1, 0, 2)

    def costs(self, factor: FloatArray) -> FloatArray:
        """The least that each false track costs (n,)."""
        fixed, free = self.solved(factor)
        across = free.transpose(0, 2, 1)
        along = _each(across, fixed) + self.pulled
        added = _solved(across @ free + self.bent, along)
        return np.asarray(np.sum(fixed**2, axis=1) + self.stiff - np.sum(along * added, axis=1))

    def local(self, factor: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Costs (n,), tracks (n, m) and curvatures (n, m, m), where K is the identity."""
        forms = factor.T @ self.forms @ factor
        fixed, free = self.solved(factor)
        free = np.linalg.qr(free)[0]
        moved = free + forms @ free
        gram = free.transpose(0, 2, 1) @ moved
        along = _each(moved.transpose(0, 2, 1), fixed)
        tracks = fixed - _each(free, _solved(gram, along))
        away = np.linalg.solve(np.linalg.cholesky(gram), free.transpose(0, 2, 1))
        curved = np.eye(factor.shape[0]) - away.transpose(0, 2, 1) @ away
        costs = np.sum(tracks**2, axis=1) + np.sum(tracks * _each(forms, tracks), axis=1)
        return costs, tracks, curved

    def supported(self, forces: FloatArray) -> FloatArray:
        """The least of 2 force^T w + w^T form w over each false track w (n,)."""
        across = self.free.transpose(0, 2, 1)
        along = _each(across, forces + _each(self.forms, self.fixed))
        w = self.fixed - _each(self.free, _solved(self.bent, along))
        return np.asarray(np.sum(w * (2 * forces + _each(self.forms, w)), axis=1))


def _each(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """The product of each matrix (n, p, q) with its vector (n, q): (n, p)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _solved(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """The solution (n, q) of each system (n, q, q)."""
    return np.asarray(np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0])


def _entries(
    first: Pairs, second: Pairs, same: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Where the entries of sums of S x w w^T are for pairs of two blocks, or of one and the same.

    The products (of rows and columns) that are needed: of one block, those of pairs, as they are
    symmetric. Then, of pairs (i, j) and (k, m), S_ik w_j w_m and S_jk w_i w_m among the entries
    of the sum over those products, as flat arrays.
    """
    (i, j), (k, m) = first, second
    p, q = i[-1] + 1, k[-1] + 1
    columns = (i * q + j) if same else np.arange(p * q)
    table = np.zeros((p, q), dtype=np.intp)
    table.ravel()[columns] = np.arange(columns.size)
    if same:
        table = np.maximum(table, table.T)
    near, far = table[i][:, k] * columns.size, table[j][:, k] * columns.size
    return columns, near + table[j][:, m], far + table[i][:, m]


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
        limits = [
            Limit(
                inverse @ limit.form @ inverse.T,
                self.root.T @ limit.fixed,
                np.linalg.qr(self.root.T @ limit.free)[0],
                limit.bound,
            )
            for limit in sorted(limits, key=lambda limit: limit.free.shape[1])
        ]
        self.families = [
            _Family.of([limit for limit in limits if limit.free.shape[1] == width])
            for width in sorted({limit.free.shape[1] for limit in limits})
        ]
        self.bounds = np.array([limit.bound for limit in limits])
        self.pairs = [np.triu_indices(size) for size in blocks]
        self.entries = {
            (i, j): _entries(self.pairs[i], self.pairs[j], i == j)
            for i, j in combinations_with_replacement(range(len(blocks)), 2)
        }
        self.twice = np.concatenate([np.where(i == j, 1.0, 2.0) for i, j in self.pairs])

    def _factor(self, matrix: FloatArray) -> FloatArray:
        return np.asarray(block_diag(*(cholesky(matrix[b, b], lower=True) for b in self.blocks)))

    def start(self, near: FloatArray | None) -> tuple[FloatArray, float]:
        """Noise that is enough for all limits, and by how much it may be too much, relative.

        A little more than K = `near` where that is enough; else much of the same everywhere.
        """
        if near is not None:
            turned = self.root.T @ near @ self.root
            for more in _SLIGHTLY:
                if np.all(self.costs((1 + more) * turned)[0] < self.bounds):
                    return (1 + more) * turned, more
        size, much = self.root.shape[0], 1e-2
        while np.any(self.costs(much * np.eye(size))[0] >= 0.9999 * self.bounds):
            much *= 4
            if much > _ENDLESS:
                raise Refused(
                    "some noise must be able to hide so much, got none that can: ask for a smaller "
                    "radius, a larger epsilon, or use --mechanism cut"
                )
        return 4 * much * np.eye(size), 1.0

    def costs(self, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least that each false track costs (n,), and the factor of K."""
        factor = self._factor(covariance)
        return np.concatenate([family.costs(factor) for family in self.families]), factor

    def _local(self, factor: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Costs (n,), tracks (n, m) and curvatures (n, m, m), where K is the identity."""
        costs, tracks, curved = zip(
            *(family.local(factor) for family in self.families), strict=True
        )
        return np.concatenate(costs), np.concatenate(tracks), np.concatenate(curved)

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
        whole: list[list[FloatArray]] = [[] for _ in self.blocks]
        for (i, a), (j, b) in combinations_with_replacement(enumerate(self.blocks), 2):
            bend = curved[:, a, b].reshape(pull.size, -1) * (2 * pull)[:, None]
            outer = (tracks[:, a, None] * tracks[:, None, b]).reshape(pull.size, -1)
            columns, first, second = self.entries[i, j]
            product = bend[:, columns].T @ outer[:, columns]
            product = (product + product.T).ravel()
            whole[i].append((product[first] + product[second]) / 4)
            if i != j:
                whole[j].append(whole[i][-1].T)
        return np.asarray(np.block(whole) * self.twice[:, None] * self.twice)

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
        ends = np.cumsum([0, *(len(family.fixed) for family in self.families)])
        least = sum(
            float(pull[a:b] @ (family.supported(forces[a:b]) - self.bounds[a:b]))
            for family, a, b in zip(self.families, ends[:-1], ends[1:], strict=True)
        )
        whole = self.back.T @ covariance @ self.back
        return Ellipsoid((whole + whole.T) / 2, float(np.trace(covariance)), least)
