"""Observed rows: values of a series as several releases show them, and what they say of a secret.

A row is one coordinate of one fix of one recording, as one release shows it. Rows of one
fix share what is true of it and the measurement noise of its recording; two recordings of one
moment (another device) share the truth alone. So the joint prior of the rows of two releases of one
recording is singular, as it should be, and nothing is added to it:

    Cov(Z) = E Sigma E^T + blockdiag(Gamma_1, Gamma_2, ...),    E: which fix each row is of

Where two rows of one fix have no noise of their own beyond low rank, their difference gives away
weights of that noise exactly (gp.extended): the rows are reduced to one a fix, and the
noise to what is left of it. What double precision cannot hold is done again in extended precision.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh

from trailveil.gp.extended import Extended, Objects, exact_null_space
from trailveil.gp.gaussian import UNIT_ROUNDOFF, FloatArray, System, dense_system
from trailveil.gp.kernels import Kernel, noise_variance, split
from trailveil.gp.statespace import is_markov
from trailveil.privacy.coupled import Coupling
from trailveil.privacy.markov import markov_rows
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import LARGEST_DENSE

# float64 arrays, or object arrays of extended-precision numbers.
Numbers: TypeAlias = Any
Evaluate: TypeAlias = Callable[[Kernel, FloatArray, FloatArray], Numbers]
# The recording of what carries no measurement noise: a true place.
TRUTH = -1


@dataclass(frozen=True, slots=True, eq=False)
class SeriesPoints:
    """SeriesPoints of a series: times (n,) s, dimension (n,), and of which recording (n,)."""

    times: FloatArray
    dimension: NDArray[np.intp]
    recording: NDArray[np.intp]

    def at(self, kept: NDArray[Any]) -> "SeriesPoints":
        """Some of them, by mask or index."""
        return SeriesPoints(self.times[kept], self.dimension[kept], self.recording[kept])

    def and_then(self, other: "SeriesPoints") -> "SeriesPoints":
        """These, then the others."""
        return SeriesPoints(
            np.concatenate([self.times, other.times]),
            np.concatenate([self.dimension, other.dimension]),
            np.concatenate([self.recording, other.recording]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The noise of one release that is not of low rank, on rows [start, stop): D (m, m).

    matrix: D, or None where it is `floor` I. floor: a lower bound of the eigenvalues of D.
    """

    start: int
    stop: int
    floor: float
    matrix: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class ObservedRows:
    """Observed rows and their noise, blockdiag(D_1, D_2, ...) + F F^T.

    points: of each row. own: (n,), for each row the lower bound of the eigenvalues of its D.
    factor: F (n, r). drift: how far rounding may have moved F (Frobenius).
    """

    points: SeriesPoints
    blocks: tuple[Block, ...]
    own: FloatArray
    factor: FloatArray
    drift: float = 0.0

    def and_then(self, other: "ObservedRows") -> "ObservedRows":
        """These rows, then others whose noise is independent of theirs."""
        size = self.own.size
        moved = (
            replace(block, start=block.start + size, stop=block.stop + size)
            for block in other.blocks
        )
        return ObservedRows(
            self.points.and_then(other.points),
            (*self.blocks, *moved),
            np.concatenate([self.own, other.own]),
            block_diag(self.factor, other.factor),
            self.drift + other.drift,
        )


def everywhere(times: FloatArray, dimensions: int, recording: int) -> SeriesPoints:
    """All coordinates at each time (m,), time by time: (m d) points."""
    return SeriesPoints(
        np.repeat(times, dimensions),
        np.tile(np.arange(dimensions), times.size),
        np.full(times.size * dimensions, recording),
    )


def covariance(
    prior: Coupling, a: SeriesPoints, b: SeriesPoints, evaluate: Evaluate, *, levels: bool
) -> Numbers:
    """Cov of the prior between points a and b, (n, m), in the arithmetic of `evaluate`.

    levels: whether mere levels are counted; in double precision they are loadings instead.
    """
    same = (a.recording[:, None] == b.recording[None, :]) & (a.recording[:, None] != TRUTH)
    total: Numbers = np.zeros(same.shape)
    for kernel, matrix in prior.parts:
        between = matrix[np.ix_(a.dimension, b.dimension)]
        for term in kernel.terms():
            if term.level_variance() > 0 and not levels:
                continue
            value = between * evaluate(term, a.times, b.times)
            total = total + (np.where(same, value, 0.0) if term.is_white() else value)
    return total


def double(kernel: Kernel, a: FloatArray, b: FloatArray) -> FloatArray:
    """A kernel in double precision, for `covariance`."""
    return kernel(a, b)


def extended(m: Extended) -> Evaluate:
    """Kernels in the arithmetic m, for `covariance`."""

    def evaluate(kernel: Kernel, a: FloatArray, b: FloatArray) -> Objects:
        value = kernel.formula(m.numbers(a)[:, None], m.numbers(b)[None, :], m)
        return np.array(np.broadcast_to(value, (a.size, b.size)), dtype=object)

    return evaluate


def levels(prior: Coupling, points: SeriesPoints) -> FloatArray:
    """The loadings (n, q) of points on the common levels of the series."""
    columns = []
    for kernel, matrix in prior.parts:
        level = split(kernel)[1]
        if level > 0:
            values, vectors = eigh(matrix)
            root = vectors * np.sqrt(level * np.maximum(values, 0.0))
            columns.append(root[points.dimension])
    return np.hstack(columns) if columns else np.zeros((points.times.size, 0))


def released_rows(mechanism: Mechanism, recording: int, dimension: int) -> ObservedRows:
    """The rows of one mechanism: one coordinate of one recording, by their numbers."""
    times = mechanism.times[mechanism.rows]
    points = SeriesPoints(times, np.full(times.size, dimension), np.full(times.size, recording))
    block, factor = _noise(mechanism)
    return ObservedRows(points, (block,), np.full(times.size, block.floor), factor)


def _noise(mechanism: Mechanism) -> tuple[Block, FloatArray]:
    """The noise of one mechanism as a block and a factor.

    A factor of full rank joins the block, where the block has no noise of its own otherwise.
    """
    times, factor = mechanism.times[mechanism.rows], mechanism.factor[mechanism.rows]
    floor, size = mechanism.floor, times.size
    base, level = mechanism.process, 0.0
    if isinstance(base, Kernel):
        base, level = split(base)
        floor += 0.0 if base is None else noise_variance(base, times)
    if level > 0:
        factor = np.column_stack([factor, np.full(size, np.sqrt(level))])
    matrix = None if base is None else base(times, times) + mechanism.floor * np.eye(size)
    if floor == 0.0 and (matrix is not None or 0 < size <= factor.shape[1]):
        whole = factor @ factor.T + (0.0 if matrix is None else matrix)
        if 0 < size <= factor.shape[1] and (least := _least(whole)) > 0:
            return Block(0, size, least, whole), np.zeros((size, 0))
        floor = 0.0 if matrix is None else _least(matrix)
    return Block(0, size, floor, matrix), factor


def _least(matrix: FloatArray) -> float:
    """A lower bound of the eigenvalues, at least 0: what rounding may have added is taken off."""
    if matrix.size == 0:
        return 0.0
    size = matrix.shape[0]
    caution = 4 * size * UNIT_ROUNDOFF * float(np.trace(matrix))
    lowest = float(eigh(matrix, eigvals_only=True)[0])
    return lowest - caution if lowest > caution else 0.0


def known_rows(points: SeriesPoints, variance: float) -> ObservedRows:
    """SeriesPoints that are known, with independent noise of a variance (> 0)."""
    size = points.times.size
    block = Block(0, size, variance, None)
    return ObservedRows(points, (block,), np.full(size, variance), np.zeros((size, 0)))


def reduced(rows: ObservedRows) -> ObservedRows:
    """The same knowledge with at most one row a fix among those without noise beyond low rank.

    Each further such row is told apart from the first by the noise alone: their difference is a sum
    of the weights of F that is seen exactly, and leaves of the weights what is in a null space.
    """
    bare = np.ones(rows.own.size, dtype=np.bool_)
    for block in rows.blocks:
        bare[block.start : block.stop] = block.floor == 0.0 and block.matrix is None
    first, group = _fixes(rows.points, bare)
    candidates = np.flatnonzero(bare)
    further = candidates[first[group] != candidates]
    if further.size == 0:
        return rows
    differences = rows.factor[first[group[np.searchsorted(candidates, further)]]]
    left = exact_null_space(differences - rows.factor[further])
    kept = np.setdiff1d(np.arange(rows.own.size), further)
    return ObservedRows(
        rows.points.at(kept),
        _kept_blocks(rows.blocks, kept),
        rows.own[kept],
        rows.factor[kept] @ left,
        drift=_drift(rows, left),
    )


def _drift(rows: ObservedRows, left: FloatArray) -> float:
    """How far rounding may have moved the product of factor and weights, in the factor's unit."""
    return float(4 * max(left.shape, default=0) * UNIT_ROUNDOFF * np.linalg.norm(rows.factor))


def _fixes(
    points: SeriesPoints, among: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each fix among some rows, and the number of the fix of each of these."""
    chosen = np.flatnonzero(among)
    keys = np.stack([points.recording, points.dimension, points.times], axis=1)[chosen]
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return chosen[first], np.reshape(group, -1)


def _kept_blocks(blocks: tuple[Block, ...], kept: NDArray[np.intp]) -> tuple[Block, ...]:
    """The blocks over the rows that are kept; only those without a matrix ever lose rows."""
    edges = np.searchsorted(kept, [(block.start, block.stop) for block in blocks])
    return tuple(
        replace(block, start=int(start), stop=int(stop))
        for block, (start, stop) in zip(blocks, edges, strict=True)
    )


def least_eigenvalue(prior: Coupling, rows: ObservedRows) -> float:
    """A lower bound of the eigenvalues of E Sigma E^T + blockdiag(D); 0 where none is known.

    Rows of one fix share measurement noise of variance w, and each has noise of at least
    d_i: M = w 1 1^T + diag(d). With d_0 the least, M - d_0 I has an inverse of trace 1/w + 2 sum
    over i > 0 of 1/(d_i - d_0), whose reciprocal is below its least eigenvalue.
    """
    white = sum(
        (noise_variance(kernel, rows.points.times) * matrix for kernel, matrix in prior.parts),
        start=np.zeros((prior.dimensions,) * 2),
    )
    shared = float(white[0, 0]) if white.size == 1 else _least(white)
    _, group = _fixes(rows.points, np.ones(rows.own.size, dtype=np.bool_))
    order = np.lexsort((rows.own, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    own = rows.own[order]
    least = np.repeat(own[starts], np.diff(starts, append=own.size))
    gaps = np.delete(own - least, starts)
    with np.errstate(divide="ignore"):
        spread = 2.0 / gaps
    sums = np.zeros(starts.size)
    np.add.at(sums, np.delete(group[order], starts), spread)
    if shared == 0.0:
        return float(np.min(own[starts]))
    return float(np.min(own[starts] + 1.0 / (1.0 / shared + sums)))


def system(prior: Coupling, rows: ObservedRows, least: float) -> System:
    """E Sigma E^T + blockdiag(D) without levels and factor: dense, or in O(n) where that is meant.

    O(n) for one coordinate of a Markov prior whose rows at one time are all of one recording, and
    noises that are mere floors. Raises NumericalError where double precision cannot factorise it.
    """
    points, kernel = rows.points, split(prior.parts[0][0])[0]
    plain = all(block.matrix is None for block in rows.blocks)
    if plain and points.times.size > LARGEST_DENSE and prior.dimensions == len(prior.parts) == 1:
        scaled = None if kernel is None else float(prior.parts[0][1][0, 0]) * kernel
        recorded_once = np.unique(points.times).size == _fixes(points, rows.own >= 0)[0].size
        if recorded_once and is_markov(scaled, points.times):
            return markov_rows(scaled, points.times).system(rows.own, least)
    matrix = covariance(prior, points, points, double, levels=False)
    for block in rows.blocks:
        part = slice(block.start, block.stop)
        if block.matrix is not None:
            matrix[part, part] += block.matrix
        else:
            matrix[np.arange(block.start, block.stop), np.arange(block.start, block.stop)] += (
                block.floor
            )
    return dense_system(np.asarray(matrix), least)


def extended_noise(m: Extended, mechanism: Mechanism) -> Objects:
    """Gamma over the released rows of one mechanism, in the arithmetic m."""
    rows = mechanism.rows
    factor = m.numbers(mechanism.factor[rows])
    for term in () if mechanism.refinement is None else mechanism.refinement:
        factor = factor + m.numbers(term[rows])
    gamma = m.numbers(np.diag(np.full(rows.size, mechanism.floor)))
    if factor.shape[1]:
        gamma = gamma + factor.dot(factor.T)
    if mechanism.process is not None:
        at = m.numbers(mechanism.times[rows])
        gamma = gamma + mechanism.process.formula(at[:, None], at[None, :], m)
    return np.asarray(gamma, dtype=object)
