"""What adversaries are left with of a protected part of a whole recording, by its definition.

With full matrices of the series without its level, which is an unknown mean of stated variance
(kriging): nothing cancels, and none of it is shared with the package but kernels and clocks.
"""

from collections.abc import Sequence

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, latent, split
from trailveil.privacy.adversaries import Named, moving, seeing_stillness
from trailveil.privacy.adversary import Adversary, _each_value, exposures, judge_of
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


def exposed_to(
    prior: Prior,
    mechanism: Mechanism,
    adversary: Adversary,
    span: Span,
    moments: FloatArray,
    weights: FloatArray,
) -> tuple[float, float]:
    """The largest loss, and the least deviation left, over places and all that is known."""
    kernel, times = adversary.prior(prior).kernel, prior.times
    rows, gamma = mechanism.rows, mechanism.covariance()
    known: list[tuple[FloatArray, float]] = [(np.empty(0), 1.0)]
    if adversary.path is not None:
        known = [(_far(times, span, adversary.path.away), adversary.path.accuracy)]
    if adversary.point is not None:
        far = _far(times, span, adversary.point.away)
        known += [(far[[i]], adversary.point.accuracy) for i in range(far.size)]
    losses, left = [], []
    for what, accuracy in known:
        nothing = accuracy**2 * np.eye(what.size)
        before = variances_left(kernel, what, nothing, moments, weights)
        both = np.zeros((rows.size + what.size,) * 2)
        both[: rows.size, : rows.size], both[rows.size :, rows.size :] = gamma, nothing
        seen = np.concatenate([times[rows], what])
        after = variances_left(kernel, seen, both, moments, weights)
        losses.append(float(np.max(1 / after - 1 / before)))
        left.append(float(np.sqrt(np.min(after))))
    return max(losses), min(left)


def exposed(
    prior: Prior,
    mechanism: Mechanism,
    span: Span,
    who: Sequence[Named],
    stays: Sequence[Span] | None = None,
) -> dict[str, tuple[float, float]]:
    """For each adversary by name, the largest loss of a part and the least deviation left.

    stays: all that are seen, where there are more than this part.
    """
    begin, end = span
    stay = [span] if begin < end else []
    seen = stay if stays is None else list(stays)
    inside = prior.times[(prior.times >= begin) & (prior.times <= end)]
    places = np.unique([begin, *inside, end])
    weights = np.eye(places.size)
    if stay and inside.size:
        weights = np.vstack([weights, np.isin(places, inside) / inside.size])
    found = {}
    for one in moving(who, prior.kernel, stay):
        found[one.name] = exposed_to(prior, mechanism, one, span, places, weights)
    for one in seeing_stillness(who, prior.kernel, seen):
        found[one.name] = exposed_to(prior, mechanism, one, span, np.array([begin]), np.eye(1))
    return found


def _far(times: FloatArray, span: Span, away: float) -> FloatArray:
    return times[(times <= span[0] - away) | (times >= span[1] + away)]


def least_share(
    prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary, bound: float
) -> float:
    """The deviation that an adversary is left with over what the bound asks for: 1 is safe.

    The least over what it may know, and over directions of the secret.
    """
    shares = [exposed.share(bound) for exposed in exposures(prior, secret, mechanism, adversary)]
    each = _each_value(judge_of(prior, secret, adversary), mechanism, adversary)
    if each is not None and secret.size == 1:
        known, learnt = each.known[:, 0, 0], each.learnt[:, 0, 0]
        shares.append(float(np.sqrt(np.min((known + bound) / (known + learnt)))))
    return min(shares)
