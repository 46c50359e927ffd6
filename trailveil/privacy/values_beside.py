"""A secret beside recorded values that may be known besides, given what is observed."""

from dataclasses import dataclass

import numpy as np

from trailveil.gp.gaussian import POINT_SLACK, FloatArray, Joint, posterior
from trailveil.gp.kernels import latent, split
from trailveil.privacy.markov import MarkovSystem
from trailveil.privacy.points import points_posterior
from trailveil.privacy.prior import Observation
from trailveil.privacy.residual import SingleValues
from trailveil.privacy.secrets import Secret


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """A secret of k locations beside p recorded values, given what is observed.

    own: Q (k, k). shared: (k, p). variances, slack: (k + p,), of secret and values.
    """

    own: FloatArray
    shared: FloatArray
    variances: FloatArray
    slack: FloatArray


def beside_values(observation: Observation, secret: Secret, points: FloatArray) -> Beside:
    """A secret beside the recorded values at some times (p,), given what is observed."""
    if not isinstance(observation.system, MarkovSystem):
        return _side_by_side(observation, secret, points)
    loading = observation.joint(Secret.at(float(points[0]), recorded=True)).secret_loadings[0]
    found = points_posterior(observation.joint(secret), secret, SingleValues(points, True, loading))
    own = np.diagonal(found.secret.covariance)
    # The values are known to rounding, with no bound of it: to what the secret is, and at least so.
    relative = max(float(np.max(found.secret.slack / own)), POINT_SLACK)
    return Beside(
        found.secret.covariance,
        found.covariances.T,
        np.concatenate([own, found.variances]),
        np.concatenate([found.secret.slack, relative * found.variances]),
    )


def _side_by_side(observation: Observation, secret: Secret, points: FloatArray) -> Beside:
    """With full matrices: secret and values are one secret of two kinds."""
    known = Secret("points", points, np.eye(points.size), recorded=True)
    first, second = observation.joint(secret), observation.joint(known)
    kernel, size = observation.prior.kernel, secret.size
    seen = kernel if secret.recorded else latent(kernel)
    base = None if seen is None else split(seen)[0]
    between = np.zeros((size, points.size))
    if base is not None:
        between = secret.weights @ base(secret.times, points)
    joint = Joint(
        observation.system,
        np.hstack([first.cross, second.cross]),
        np.block([[first.variance, between], [between.T, second.variance]]),
        observation.loadings,
        np.vstack([first.secret_loadings, second.secret_loadings]),
        np.concatenate([first.size, second.size]),
    )
    found = posterior(joint)
    own, shared = found.covariance[:size, :size], found.covariance[:size, size:]
    return Beside(own, shared, np.diagonal(found.covariance), found.slack)
