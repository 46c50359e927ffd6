"""What is left of a protected part of a whole recording, by its definition.

With full matrices of the series without its level, which is an unknown mean of stated variance
(kriging): nothing cancels, and none of it is shared with the package but kernels and clocks.
"""

import math

import numpy as np
from scipy.linalg import eigh

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, latent, split
from trailveil.privacy.adversary import Adversary, _each_value, exposures, judge_of
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

Span = tuple[float, float]


def variances_left(
    kernel: Kernel,
    times: FloatArray,
    noise: FloatArray,
    moments: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Of sums of the true places (weights (k, m) at moments (m,)), given values with noise (k,)."""
    base, level = split(kernel)
    place = split(latent(kernel) or kernel)[0]
    assert base is not None
    assert place is not None
    own = np.einsum("ki,ij,kj->k", weights, place(moments, moments), weights)
    sums = weights.sum(axis=1)
    if not times.size:
        return np.asarray(own + level * sums**2)
    cross = place(times, moments) @ weights.T
    ones = np.ones((times.size, 1))
    solved = np.linalg.solve(base(times, times) + noise, np.hstack([cross, ones]))
    missed = sums - ones[:, 0] @ solved[:, :-1]
    own = own - np.sum(cross * solved[:, :-1], axis=0)
    return np.asarray(own + missed**2 / (1.0 / level + np.sum(solved[:, -1])))


def exposed(prior: Prior, mechanism: Mechanism, span: Span) -> tuple[float, float]:
    """The largest loss of any value of a part, and of their mean, and the least deviation left."""
    begin, end = span
    inside = prior.times[(prior.times >= begin) & (prior.times <= end)]
    places = np.unique([begin, *inside, end])
    weights = np.eye(places.size)
    if begin < end and inside.size:
        weights = np.vstack([weights, np.isin(places, inside) / inside.size])
    times, nothing = prior.times[mechanism.rows], np.empty(0)
    before = variances_left(prior.kernel, nothing, np.empty((0, 0)), places, weights)
    after = variances_left(prior.kernel, times, mechanism.covariance(), places, weights)
    return float(np.max(1 / after - 1 / before)), float(np.sqrt(np.min(after)))


def share(exposure: Exposure, bound: float) -> float:
    """The posterior deviation over the one that a loss of `bound` asks for, where it is least."""
    required = exposure.known + bound * np.eye(exposure.known.shape[0])
    precisions = eigh(exposure.known + exposure.learnt, required, eigvals_only=True)
    return 1.0 / math.sqrt(float(precisions[-1]))


def least_share(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary, bound: float
) -> float:
    """The deviation that an adversary is left with over what the bound asks for: 1 is safe.

    The least over what it may know, and over directions of the secret.
    """
    shares = [share(each, bound) for each in exposures(prior, secret, mechanism, adversary)]
    each = _each_value(judge_of(prior, secret, adversary), mechanism, adversary)
    if each is not None and secret.size == 1:
        known, learnt = each.known[:, 0, 0], each.learnt[:, 0, 0]
        shares.append(float(np.sqrt(np.min((known + bound) / (known + learnt)))))
    return min(shares)
