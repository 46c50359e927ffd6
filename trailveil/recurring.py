"""Places visited again: what many recordings tell together of one place that all of them visit.

A place is one unknown position p. A recording j that visits it is, in each coordinate,

    X_j(t) = p + A_j(t),      A_j = 0 while a visit lasts,

with A_j the prior's movement, its clock stopped in the visits and tied to 0 at each of them: a
recording that leaves and comes back is a bridge. Given p, recordings move independently. What is
released of one is

    Z_j = p 1 + A_j + B_j c + G_j u_j + measurement noise,

c the *common* part of the noise, the same draw at every visit of every recording, and u_j its own.
So Z_1, Z_2, ... are independent given (p, c), what they tell of these two adds up as matrices of
information J_j, and the loss of the place is the information on p alone, with c ~ N(0, Gamma)
unknown and the level of p flat (trailveil.ways.loss_of_shapes). The joint noise of all recordings
is not block diagonal, B_j Gamma B_k^T everywhere: this is its loss, exactly, in O(n) a recording
under a Markov prior and a matrix of (1 + r)^2 numbers to remember.

Ways. Recordings that follow w ways, each a draw R of the movement, and differ from them by what
does not depend on the place, tell together no more than w recordings of exactly these ways:
granting the differences only adds. And w ways of one common noise tell no more than one way of
movement with 1/w of its variance: their average is sufficient for (p, c). So noise that holds for
one visit of somebody who moves w times less (in variance) holds for any number of visits by w ways.
More cannot be had from noise near the place: where a fix of each of N new ways is released as it
is, at a time at which the movement has variance V, the place is known to sqrt(V / N) at least.
"""

from collections.abc import Sequence

import numpy as np

from trailveil.errors import InvalidValue, Unavailable
from trailveil.gaussian import (
    FloatArray,
    System,
    cholesky_factor,
    cholesky_solve,
    dense_system,
)
from trailveil.kernels import Kernel, Matern12, Periodic, latent, split, stopped
from trailveil.markov import markov_system
from trailveil.prior import noise_variance
from trailveil.statespace import is_markov

Window = tuple[float, float]

SAME_PLACE = 1.0
"""Metres: how far apart visits of one place may lie (deviation). More would only tell less."""

DAY = 86_400.0
# Full matrices, for priors that are not Markov.
_LARGEST_FULL = 5_000


def information(
    kernel: Kernel,
    times: FloatArray,
    visits: Sequence[Window],
    design: FloatArray,
    own: FloatArray | None = None,
    *,
    noise: float = 0.0,
) -> FloatArray:
    """What the released fixes of one recording tell of a place and what all have in common (q, q).

    kernel: the prior, measurement noise included; its level counts as flat. times: (n,) seconds of
    the released fixes, increasing. visits: (begin, end) in seconds, one or more, within the
    recording or outside. design: (n, q), how the unknowns, p first, move what is released. own:
    columns (n, u) of noise of this recording alone, or None. noise: variance of independent noise.
    In (unit of the series)^-2 where the unknowns are in that unit.
    Raises InvalidValue where nothing is visited, or shapes differ; Unavailable for a prior that is
    not Markov and too many fixes.
    """
    columns = design if own is None else np.hstack([design, own])
    if not visits:
        raise InvalidValue("a recording must visit the place to tell of it, got no visit")
    if columns.shape[0] != times.size:
        raise InvalidValue(f"the design must have {times.size} rows, got {columns.shape[0]}")
    kept = design.shape[1]
    if times.size == 0:
        return np.zeros((kept, kept))
    ties = np.array([begin for begin, _ in visits])
    moments = np.concatenate([ties, times])
    start = float(moments.min())
    windows = [(begin - start, end - start) for begin, end in visits]
    white = noise_variance(kernel, times) + noise
    variances = np.concatenate([np.full(ties.size, SAME_PLACE**2), np.full(times.size, white)])
    system = _system(kernel, moments - start, windows, variances)
    # A level is added to all rows; what is released less p is what the place is not moved by.
    seen = np.zeros((moments.size, 1 + columns.shape[1]))
    seen[:, 0] = 1.0
    seen[ties.size :, 1:] = columns
    told = seen.T @ system.solve(seen)
    found = told[1:, 1:] - np.outer(told[1:, 0], told[0, 1:]) / told[0, 0]
    return _marginal((found + found.T) / 2, kept)


def _system(
    kernel: Kernel, moments: FloatArray, windows: Sequence[Window], variances: FloatArray
) -> System:
    smooth = latent(kernel)
    base = None if smooth is None else split(smooth)[0]
    still = None if base is None else base.warp(stopped(windows))
    least = float(variances.min())
    if still is None or is_markov(still, moments):
        return markov_system(still, moments, variances, least)
    if moments.size > _LARGEST_FULL:
        raise Unavailable(
            f"a place under a prior that is not Markov must have at most {_LARGEST_FULL} fixes "
            f"around it, got {moments.size}: take a Matern or integrated-ou prior"
        )
    return dense_system(still(moments, moments) + np.diag(variances), least)


def _marginal(told: FloatArray, kept: int) -> FloatArray:
    """What is told of the first `kept` unknowns (kept, kept), the others being N(0, I)."""
    rest = told.shape[0] - kept
    if rest == 0:
        return told
    cross = told[:kept, kept:]
    factor = cholesky_factor(told[kept:, kept:] + np.eye(rest))
    solved = cholesky_solve(factor, np.ascontiguousarray(cross.T))
    return np.asarray(told[:kept, :kept] - cross @ solved)


def routine(std: float, length_scale: float, decay: float, period: float = DAY) -> Kernel:
    """What comes back every day, and slowly changes: periodic times Matern 1/2.

    std: unit of the series. length_scale: of the periodic part, without unit. decay, period:
    seconds. Releases of different days do not compose as independent under it.
    """
    return Periodic(length_scale, period, std) * Matern12(decay, 1.0)
