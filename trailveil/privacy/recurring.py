"""Places visited again: what a recording tells of one place that it visits, once or more often.

A place is one unknown position p. A recording that visits it is, in each coordinate,

    X(t) = p + A(t),      A = 0 while a visit lasts,

with A the prior's movement, its clock stopped in the visits and tied to 0 at each of them: a
recording that leaves and comes back is a bridge. Given p, recordings move independently. So with
noise of their own, what they tell of a place with a flat level adds up.
"""

from collections.abc import Sequence

import numpy as np

from trailveil.errors import InvalidValue, Unavailable
from trailveil.gp.gaussian import (
    DenseSystem,
    FloatArray,
    cholesky_factor,
    cholesky_solve,
    dense_system,
)
from trailveil.gp.kernels import Kernel, latent, split, stopped
from trailveil.gp.statespace import is_markov
from trailveil.privacy.markov import MarkovSystem, markov_system
from trailveil.privacy.prior import noise_variance

Window = tuple[float, float]

SAME_PLACE = 1.0
"""Metres: how far apart visits of one place may lie (deviation). More would only tell less."""

# Full matrices, for priors that are not Markov.
_LARGEST_FULL = 5_000


def information(
    kernel: Kernel,
    times: FloatArray,
    visits: Sequence[Window],
    factor: FloatArray,
    *,
    noise: float = 0.0,
) -> float:
    """What the released fixes of one recording tell of a place: 1 / variance.

    kernel: the prior, measurement noise included; its level counts as flat. times: (n,) seconds of
    the released fixes, increasing. visits: (begin, end) in seconds, one or more, within the
    recording or outside. factor: (n, u) of its noise. noise: variance of independent noise.
    Raises InvalidValue where nothing is visited, or shapes differ; Unavailable for a prior that is
    not Markov and too many fixes.
    """
    if not visits:
        raise InvalidValue("a recording must visit the place to tell of it, got no visit")
    if factor.shape[0] != times.size:
        raise InvalidValue(f"the factor must have {times.size} rows, got {factor.shape[0]}")
    if times.size == 0:
        return 0.0
    ties = np.array([begin for begin, _ in visits])
    moments = np.concatenate([ties, times])
    start = float(moments.min())
    windows = [(begin - start, end - start) for begin, end in visits]
    white = noise_variance(kernel, times) + noise
    variances = np.concatenate([np.full(ties.size, SAME_PLACE**2), np.full(times.size, white)])
    system = _system(kernel, moments - start, windows, variances)
    # A level is added to all rows; what is released less p is what the place is not moved by.
    columns = np.zeros((moments.size, 2 + factor.shape[1]))
    columns[:, 0] = 1.0
    columns[ties.size :, 1] = 1.0
    columns[ties.size :, 2:] = factor
    whitened = system.whitened(columns)
    gram = whitened.T @ whitened
    conditional = gram[1:, 1:] - np.outer(gram[1:, 0], gram[0, 1:]) / gram[0, 0]
    conditional = (conditional + conditional.T) / 2
    drawn = cholesky_factor(conditional[1:, 1:] + np.eye(factor.shape[1]))
    return float(
        conditional[0, 0] - conditional[0, 1:] @ cholesky_solve(drawn, conditional[1:, :1])[:, 0]
    )


def _system(
    kernel: Kernel, moments: FloatArray, windows: Sequence[Window], variances: FloatArray
) -> DenseSystem | MarkovSystem:
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
