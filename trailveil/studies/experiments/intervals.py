"""Posterior intervals, as the paper's figures plot them: as published, and exactly.

    one value           2 sqrt(Q)
    several together    2 sqrt(mineig Q)
    each of all         2 sqrt(mean of the variances)

Source: the paper, section 6. The authors add 1e-6 of the mean variance to the diagonals of prior
and noise before they invert, and some of their curves rest on it: `published` does so, `exact` adds
nothing and computes in as many digits as that takes.
"""

import numpy as np
from scipy.linalg import eigh

from trailveil.designer.paper import posterior_as_published
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.loss import loss_matrix, marginal_losses
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.studies.experiments.scenes import FigureScene, secret_of

JITTER = 1e-6


def published(scene: FigureScene, prior: Prior, mechanism: Mechanism) -> float:
    """The interval as the authors' code computes it. prior: of the adversary."""
    at = scene.secret or tuple(range(scene.points))
    after = posterior_as_published(
        prior.covariance, mechanism.covariance(), np.array(at, dtype=np.intp), jitter=JITTER
    )
    if not scene.secret:
        return _mean_interval(np.diagonal(after))
    return 2.0 * float(np.sqrt(eigh(after, eigvals_only=True)[0]))


def exact(scene: FigureScene, prior: Prior, mechanism: Mechanism) -> float:
    """The interval of this prior and this noise, nothing added. prior: of the adversary.

    0 where a value of the secret is released without noise under another index (a period later).
    """
    secret = secret_of(scene, prior)
    if not scene.secret:
        spread = np.diagonal(prior.variance(secret))
        return _mean_interval(1.0 / (1.0 / spread + marginal_losses(prior, secret, mechanism)))
    if _given_away(scene, prior, mechanism):
        return 0.0
    before = np.linalg.inv(prior.variance(secret))
    after = before + loss_matrix(prior, secret, mechanism).matrix
    return 2.0 / float(np.sqrt(eigh(after, eigvals_only=True)[-1]))


def _mean_interval(variances: FloatArray) -> float:
    return 2.0 * float(np.sqrt(np.mean(variances)))


def _given_away(scene: FigureScene, prior: Prior, mechanism: Mechanism) -> bool:
    """Whether a point released as it is always has the same value as one of the secret."""
    bare = np.flatnonzero(mechanism.variances == 0.0)
    secret_times = prior.times[list(scene.secret)]
    variance = prior.kernel.diagonal(secret_times)[:, None]  # the same everywhere
    return bool(np.any(prior.kernel(secret_times, prior.times[bare]) == variance))
