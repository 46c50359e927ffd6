"""The losses of the true places at many fixes, each for itself, in O(n) all together.

Given the level and the factors of the noise, xi ~ N(0, I), the rows are Z = y + e + U xi with y the
series and e independent noise of variances r, and S = Cov(y + e). So with X = S^-1 U

    Var(y_i | Z) = r_i - r_i^2 (S^-1)_ii + d_i^T (I + U^T X)^-1 d_i,    d_i = V_i - U_i + r_i X_i

V_i being the level alone. The diagonal of S^-1 is what the smoother of the filter gives in O(n): a
recursion of sums of squares. A withheld fix is taken as released with noise of a variance so large
that it tells nothing: what little it tells is against us.

The rounding of this is small and is not bounded; that of `trailveil.privacy.loss` is bounded, but
costs a solve a fix. So use this to find the worst fixes and that to judge them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.chains import Recursion, fill_band
from trailveil.gp.filtering import Factor
from trailveil.gp.gaussian import (
    FloatArray,
    System,
    cholesky_factor,
    dense_system,
    triangular_solve,
)
from trailveil.gp.kernels import Kernel, latent, split
from trailveil.gp.statespace import is_markov
from trailveil.privacy.markov import markov_rows
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, observed_loadings

# Variance of the noise of a withheld fix, in units of the variance that it is to be compared with.
_SILENT = 1e8


def fix_losses(
    prior: Prior, mechanism: Mechanism, chosen: NDArray[np.bool_], bound: float
) -> FloatArray:
    """The loss of the true place at each chosen fix (of n booleans), in the order of time, flat.

    bound: the loss that they are to be compared with (1 / unit^2): where a fix is withheld, losses
    far below it are overstated. Against an adversary with no idea of the common level. O(n) for a
    Markov kernel, else O(n^3). Raises InvalidValue for noise with a process.
    """
    if mechanism.process is not None or mechanism.refinement is not None:
        raise InvalidValue("losses of many fixes must be of noise that is a factor and a floor")
    released = np.asarray(mechanism.released)
    heard = replace(mechanism, released=released | chosen)
    rows = heard.rows
    noise = np.where(released[rows], mechanism.floor, _SILENT / bound)
    smooth, noise = _smooth_part(prior, prior.times[rows], noise)
    system, diagonal = _system(smooth, prior.times[rows], noise)
    loadings, levels = _loadings(prior, heard)
    told = system.solve(loadings)
    capacity = cholesky_factor(np.eye(loadings.shape[1]) + loadings.T @ told)
    common = levels - loadings + noise[:, None] * told
    places = chosen[rows]
    pulled = triangular_solve(capacity, common[places].T)
    left = (noise - noise**2 * diagonal)[places] + np.sum(pulled**2, axis=0)
    return np.asarray(1.0 / left)


def _smooth_part(
    prior: Prior, times: FloatArray, noise: FloatArray
) -> tuple[Kernel | None, FloatArray]:
    """The kernel without levels and measurement noise; all the noise of the rows (n,)."""
    base, _ = split(prior.kernel)
    for term in prior.kernel.terms():
        noise = noise + term.diagonal(times) if term.is_white() else noise
    return None if base is None else latent(base), noise


def _loadings(prior: Prior, heard: Mechanism) -> tuple[FloatArray, FloatArray]:
    """U of the rows, and V: the same without the factors of the noise.

    Both are turned until the columns of U are orthogonal, which U U^T does not see: noise that is
    alike at every row has the direction of the level, and would be lost beside it.
    """
    found = observed_loadings(prior.kernel, heard, NOTHING_KNOWN)
    levels = np.zeros_like(found)
    if split(prior.kernel)[1] > 0:
        levels[:, 0] = found[:, 0]
    turn = np.linalg.svd(found, full_matrices=False)[2]
    return found @ turn.T, levels @ turn.T


def _system(
    smooth: Kernel | None, times: FloatArray, noise: FloatArray
) -> tuple[System, FloatArray]:
    """S of rows with noise of these variances (n,), and the diagonal of S^-1."""
    least = float(noise.min())
    if is_markov(smooth, times):
        chained = markov_rows(smooth, times).system(noise, least)
        return chained, inverse_diagonal(chained.factor)
    matrix = np.zeros((times.size, times.size)) if smooth is None else smooth(times, times)
    dense = dense_system(matrix + np.diag(noise), least)
    return dense, np.diagonal(dense.solve(np.eye(times.size)))


def inverse_diagonal(factor: Factor) -> FloatArray:
    """The diagonal (n,) of S^-1 = L^-T D^-1 L^-1, for rows that are sorted by time.

    Row k of L^-T D^-1/2 is 1 / sqrt(D_k) at k, then what the pull of the later innovations carries
    back: their covariance N follows N_k = h h^T / D_k + F^T N_(k+1) F, a recursion on n vectors of
    d^2 numbers. Source: de Jong (1989), Smoothing and interpolation with the state-space model.
    """
    count, size = factor.loadings.shape
    h = factor.loadings
    pulls = h[:, :, None] * h[:, None, :] / factor.innovations[:, None, None]
    pulls = _squared(factor.recursion).run(pulls.reshape(1, count, size**2), backwards=True)
    after = pulls.reshape(count, size, size)[1:]
    found = 1.0 / factor.innovations
    carried = factor.carried[:-1]
    found[:-1] += np.einsum("ni,nij,nj->n", carried, after, carried)
    return np.asarray(found)


def _squared(recursion: Recursion) -> Recursion:
    """The recursion of products of two states: F (x) F in place of F."""
    count, size, _ = recursion.band.shape
    transitions = np.empty((size, size, count))
    for to in range(size):
        for start in range(size):
            transitions[to, start] = -recursion.band[:, start, size + to - start]
    both = np.einsum("ikn,jln->ijkln", transitions, transitions)
    band = np.zeros((count, size**2, 2 * size**2))
    fill_band(band, both.reshape(size**2, size**2, count))
    return Recursion(band)
