"""SDP_B: the least noise that is at least as private as each of several noises.

    min trace(Y)   subject to   Y >= Gamma_i for every i                     (the paper, appendix,
    SDP_B)
 More noise in the positive semidefinite order never loses more, so Y keeps every promise made for
any of the Gamma_i. With Gamma_i = G_i G_i^T the dual is

    max (trace (sum_i G_i W_i G_i^T)^1/2)^2   over W_i >= 0, sum trace W_i = 1,
    reached by Y = t (sum_i G_i W_i G_i^T)^1/2 with t its trace.
 With W_i = V_i V_i^T the square root of the dual is the nuclear norm of [G_1 V_1 ... G_m V_m] over
the Frobenius norm of the V_i: smooth, of full size (so without false maxima), and maximised by
quasi-Newton steps. Every V gives a lower bound, and a Y that a last scaling makes feasible: their
distance is the gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cholesky, eigh, qr, svd
from scipy.optimize import minimize

from trailveil.designer.columns import (
    combined_columns,
    symmetric_root,
    turn,
    without_process,
    written,
)
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import TARGET_TOLERANCE, UNIT_ROUNDOFF, FloatArray, check_covariance
from trailveil.privacy.mechanism import Mechanism

# Relative: a cover further than this from the least possible trace is not handed out.
LARGEST_GAP = 1e-5
# Relative to the largest eigenvalue: how far below a Gamma_i a cover may fall by rounding.
FEASIBILITY = 1e-12
_STEPS, _MEMORY = 2_000, 30
# Relative floors of the spectrum of Y: none is not safe, more costs noise, so the best is taken.
_FLOORS = (1e-14, 1e-12, 1e-10, 1e-8)
_SAFETY = 1 + 1e-10
# Squared singular values that spread less than this are taken from the matrix times its transpose.
_GRAM = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Y >= Gamma_i for all i, and what is proved of it.

    factor: F (n, q) with Y = F F^T, canonical (see trailveil.designer.columns). coefficients: C (R,
    q) with F = [G_1 ... G_m] C where Y is to cover the Gamma_i in exact arithmetic, else None.
    least_trace: no Y that covers all Gamma_i has a smaller trace (the dual). total: the sum of the
    traces of the Gamma_i.
    """

    factor: FloatArray
    coefficients: FloatArray | None
    least_trace: float
    total: float

    @property
    def covariance(self) -> FloatArray:
        """Y (n, n)."""
        return self.factor @ self.factor.T

    @property
    def trace(self) -> float:
        """The trace of Y."""
        return float(np.sum(self.factor * self.factor))

    @property
    def gap(self) -> float:
        """How far the trace can be above the least, relative to it."""
        return max(0.0, self.trace / self.least_trace - 1.0) if self.least_trace > 0 else 0.0

    def check(self) -> None:
        """NumericalError where the trace is not the least to 1e-5, or above the sum of traces.

        Source of the second: the paper's claim on the utility of Multiple Secrets (appendix,
        SDP_B).
        """
        if self.gap > LARGEST_GAP:
            raise NumericalError(
                f"the cover must be within {LARGEST_GAP:g} of the least trace, got {self.gap:.3g}; "
                "state a measurement noise (--noise-std), or ask for fewer secrets"
            )
        if self.trace > self.total * (1 + TARGET_TOLERANCE):
            raise NumericalError(
                "the noise for all secrets must be at most the sum of the noises for each, got "
                f"{self.trace:.6g} against {self.total:.6g}"
            )


def sdp_b(covariances: Sequence[FloatArray]) -> Cover:
    """The covariance of least trace that is at least each of these (n, n).

    Raises InvalidValue for what is no covariance, or sizes that differ; NumericalError where the
    answer is not within 1e-5 of the least, or does not cover one of them.
    """
    checked = [check_covariance(gamma, "a noise covariance") for gamma in covariances]
    return cover([_thin_root(gamma) for gamma in checked])


def cover(factors: Sequence[FloatArray], *, exactly: bool = False) -> Cover:
    """The same for Gamma_i = G_i G_i^T, their low rank put to use.

    factors: G_i (n, r_i), not all zero. exactly: Y = G C C^T G^T with C C^T at least every block
    identity, so that Y covers every Gamma_i in exact arithmetic and not just to rounding.
    """
    sizes = {factor.shape[0] for factor in factors}
    if len(sizes) != 1:
        raise InvalidValue(
            f"the noises must be one or more, of one size, got sizes {sorted(sizes)}"
        )
    columns = np.concatenate(list(factors), axis=1)
    total = float(np.sum(columns * columns))
    if not (np.isfinite(total) and total > 0):
        raise InvalidValue("the noises must be finite and not all zero, got none to cover")
    unit = columns / np.sqrt(total)
    dual = _maximise(unit, _blocks(factors))
    least = float(np.sum(svd(dual.columns @ dual.directions, compute_uv=False))) ** 2
    coefficients = _exact(dual) if exactly else None
    factor = _plain(dual) if coefficients is None else unit @ coefficients
    if float(np.sum(factor * factor)) >= 1.0:  # the sum of all covers all, too
        coefficients, factor = np.eye(unit.shape[1]) if exactly else None, unit
    if exactly or unit.shape[1] < unit.shape[0]:
        # A rotation is one to rounding: a little more keeps what covers exactly above all of it.
        turned = turn(factor, unit) * (np.sqrt(_SAFETY) if exactly else 1.0)
        factor = factor @ turned
        coefficients = None if coefficients is None else coefficients @ turned
    else:
        factor = symmetric_root(factor @ factor.T)
    cover = Cover(np.sqrt(total) * factor, coefficients, least * total, total)
    cover.check()
    _check_covers(cover.covariance, factors)
    return cover


def cover_mechanisms(
    mechanisms: Sequence[Mechanism], *, trace: float | None = None
) -> tuple[Mechanism, Cover]:
    """The least noise that is at least each of several mechanisms, with its proof.

    trace: scale that noise to this trace. Where one of the mechanisms needs more digits than 53
    (its refinement) so does the cover: it is then a combination of their exact columns that covers
    them exactly, whatever a prior can tell apart.
    """
    given = [_as_columns(without_process(mechanism)) for mechanism in mechanisms]
    exactly = any(mechanism.refinement is not None for mechanism in given)
    covering = cover([mechanism.factor for mechanism in given], exactly=exactly)
    times, scale = given[0].times, 1.0 if trace is None else float(np.sqrt(trace / covering.trace))
    if covering.coefficients is not None:
        return written(times, combined_columns(given, scale * covering.coefficients)), covering
    return _with_floor(times, scale * covering.factor), covering


@dataclass(frozen=True, slots=True, eq=False)
class _Dual:
    """A point of the dual.

    basis: (n, p), of the range of G. columns: G (p, R) in it. blocks: of the G_i. directions: V (R,
    R), block diagonal, of Frobenius norm 1.
    """

    basis: FloatArray
    columns: FloatArray
    blocks: list[slice]
    directions: FloatArray


def _blocks(factors: Sequence[FloatArray]) -> list[slice]:
    ends = np.cumsum([0, *(factor.shape[1] for factor in factors)]).tolist()
    return [slice(a, b) for a, b in pairwise(ends) if b > a]


def _maximise(columns: FloatArray, blocks: list[slice]) -> _Dual:
    """Quasi-Newton steps on log of the Frobenius norm of V less log of the nuclear norm of G V."""
    size, rank = columns.shape
    basis: FloatArray = np.eye(size)
    if rank < size:
        basis = np.asarray(qr(columns, mode="economic")[0], dtype=np.float64)
        columns = basis.T @ columns
    inside = _mask(rank, blocks)

    def spread(x: FloatArray) -> FloatArray:
        directions = np.zeros((rank, rank))
        directions[inside] = x
        return directions

    def value(x: FloatArray) -> tuple[float, FloatArray]:
        nuclear, direction = _nuclear(columns @ spread(x))
        squared, slope = float(x @ x), (columns.T @ direction)[inside]
        return 0.5 * np.log(squared) - np.log(nuclear), x / squared - slope / nuclear

    optimum = minimize(
        value,
        np.eye(rank)[inside],
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": _STEPS,
            "maxfun": 2 * _STEPS,
            "maxcor": _MEMORY,
            "ftol": 0,
            "gtol": 1e-10,
        },
    )
    directions = spread(optimum.x / np.linalg.norm(optimum.x))
    return _Dual(basis, columns, blocks, directions)


def _nuclear(matrix: FloatArray) -> tuple[float, FloatArray]:
    """The nuclear norm (the sum of singular values) and its gradient, the polar factor."""
    squared, basis = eigh(matrix @ matrix.T, check_finite=False)
    if squared[0] > _GRAM * squared[-1]:  # four times as fast, and precise enough
        strength = np.sqrt(squared)
        return float(np.sum(strength)), (basis / strength) @ (basis.T @ matrix)
    u, strength, right = svd(matrix, full_matrices=False, check_finite=False)
    return float(np.sum(strength)), np.asarray(u @ right)


def _mask(rank: int, blocks: list[slice]) -> NDArray[np.bool_]:
    inside = np.zeros((rank, rank), bool)
    for block in blocks:
        inside[block, block] = True
    return inside


def _plain(dual: _Dual) -> FloatArray:
    """A factor of t (G W G^T)^1/2, floored as is cheapest, scaled until G_i^T Y^-1 G_i <= I."""
    u, strength, _ = svd(dual.columns @ dual.directions, full_matrices=False)
    nuclear = float(np.sum(strength))
    best: tuple[float, FloatArray] | None = None
    for floor in _FLOORS:
        spectrum = nuclear * np.maximum(strength, floor * strength[0])
        whitened = (u / np.sqrt(spectrum)).T @ dual.columns
        spectrum = spectrum * _largest_block(whitened, dual.blocks)
        if best is None or float(np.sum(spectrum)) < best[0]:
            best = float(np.sum(spectrum)), spectrum
    if best is None:
        raise NumericalError("no cover was found")
    return np.asarray(dual.basis @ (u * np.sqrt(best[1])))


def _exact(dual: _Dual) -> FloatArray:
    """C such that C C^T >= E_i E_i^T for every block i: then Y covers every Gamma_i, exactly.

    C = sqrt(t) V Z s^-1/2 with G V = U s Z^T. A little is added to every W_i, and far less to s, so
    that C is invertible; where columns of G are nearly dependent that costs next to nothing. The
    condition is checked on C^-1 as it is.
    """
    best: tuple[float, FloatArray] | None = None
    for added in (1e-8, 1e-10):
        candidate = _invertible(dual, added)
        trace = float(np.sum((dual.columns @ candidate) ** 2))
        if best is None or trace < best[0]:
            best = trace, candidate
    if best is None:
        raise NumericalError("no cover was found")
    return best[1]


def _invertible(dual: _Dual, added: float) -> FloatArray:
    rank = dual.columns.shape[1]
    weights = dual.directions @ dual.directions.T + added / rank * np.eye(rank)
    roots = block_diag(*[symmetric_root(weights[block, block]) for block in dual.blocks])
    _, strength, right = svd(dual.columns @ roots)
    spectrum = np.zeros(rank)
    spectrum[: strength.size] = strength
    nuclear = float(np.sum(spectrum))
    spectrum = np.hypot(spectrum, 1e-4 * added * nuclear / rank)
    coefficients = roots @ (right.T * np.sqrt(nuclear / spectrum))
    for _ in range(3):
        short = _largest_block(np.linalg.inv(coefficients), dual.blocks)
        if short <= 1:
            break
        coefficients = coefficients * np.sqrt(short * _SAFETY)
    return np.asarray(coefficients)


def _largest_block(matrix: FloatArray, blocks: list[slice]) -> float:
    """The largest squared norm of any block of columns."""
    return max(float(np.linalg.norm(matrix[:, block], 2)) ** 2 for block in blocks)


def _with_floor(times: FloatArray, factor: FloatArray) -> Mechanism:
    """Y as independent noise of its least eigenvalue and a factor of the rest.

    The same noise; but independent noise is seen at once to be more than rounding, which spares
    extended precision where a prior has no measurement noise. Low rank stays a factor.
    """
    size, rank = factor.shape
    strength = svd(factor, compute_uv=False) ** 2
    if rank < size or strength[-1] * TARGET_TOLERANCE < size * UNIT_ROUNDOFF * strength[0]:
        return Mechanism(times, factor)
    floor = float(strength[-1]) * (1 - TARGET_TOLERANCE)
    return Mechanism(times, symmetric_root(factor @ factor.T - floor * np.eye(size)), floor)


def _check_covers(covariance: FloatArray, factors: Sequence[FloatArray]) -> None:
    """Each Y - Gamma_i once more, by its own factorisation."""
    slack = FEASIBILITY * float(np.linalg.norm(covariance, 2))
    raised = covariance + slack * np.eye(covariance.shape[0])
    for factor in factors:
        try:
            cholesky(raised - factor @ factor.T, lower=True, check_finite=False)
        except LinAlgError as error:
            raise NumericalError(
                "the noise for all secrets must cover that for each, got one that it does not; "
                "state a measurement noise (--noise-std)"
            ) from error


def _thin_root(covariance: FloatArray) -> FloatArray:
    spectrum, basis = eigh((covariance + covariance.T) / 2)
    above = spectrum > spectrum.size * UNIT_ROUNDOFF * float(np.max(spectrum, initial=0.0))
    return np.asarray(basis[:, above] * np.sqrt(spectrum[above]))


def _as_columns(mechanism: Mechanism) -> Mechanism:
    """The mechanism with its floor as columns."""
    if mechanism.floor == 0.0:
        return mechanism
    floor = np.sqrt(mechanism.floor) * np.eye(mechanism.times.size)
    finer = mechanism.refinement
    if finer is not None:
        finer = np.concatenate([finer, np.zeros((len(finer), *floor.shape))], axis=2)
    return replace(
        mechanism, factor=np.hstack([mechanism.factor, floor]), floor=0.0, refinement=finer
    )
