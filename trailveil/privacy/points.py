"""How a secret and every single fix vary together once a release is seen, in O(n).

Whoever knows any one true place besides the release knows the secret to within

    Q - q q^T / (v + accuracy^2),     v = Var(x | Z), q = Cov(s, x | Z) for that place x,

so all of them are judged at the price of a few (trailveil.privacy.adversary).
"""

from dataclasses import dataclass

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.filtering import smoothed_variances
from trailveil.gp.gaussian import (
    POINT_SLACK,
    FloatArray,
    Joint,
    Posterior,
    cholesky_factor,
    posterior,
    triangular_solve,
)
from trailveil.gp.kernels import latent, split
from trailveil.privacy.markov import MarkovSystem, fix_starts
from trailveil.privacy.prior import Observation
from trailveil.privacy.residual import SingleValues, Sources, residual_of
from trailveil.privacy.secrets import Secret

# Columns of the loadings worked off at once.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, eq=False)
class PointsPosterior:
    """Of a secret of k locations and p points, given the observed rows.

    secret: Q with its slack. covariances: (p, k), Cov(point, s | Z). variances: (p,),
    Var(point | Z), to rounding, but without a bound of it.
    """

    secret: Posterior
    covariances: FloatArray
    variances: FloatArray


def points_posterior(joint: Joint, secret: Secret, points: SingleValues) -> PointsPosterior:
    """What the rows tell of a secret and of each of many points, in O(n + p).

    joint: of the secret, with rows observed as a MarkovSystem. Raises InvalidValue where they are
    not, or where a time is before the origin of an integrated series.
    """
    if not isinstance(joint.system, MarkovSystem):
        raise InvalidValue("the rows must be observed as a Markov system, got full matrices")
    sources = Sources(joint, secret, points)
    found, covariances = residual_of(sources, joint)
    variances = _own_variances(joint.system, points) + _shared(joint, sources)
    return PointsPosterior(found, covariances, variances)


def _shared(joint: Joint, sources: Sources) -> FloatArray:
    """What the loadings add to the variances of the points (p,): b^T (I + U^T S^-1 U)^-1 b.

    b: the point's own loading less what the rows, which share the loadings, tell of it.
    """
    loadings, points = joint.loadings, sources.points
    if loadings.shape[1] == 0:
        return np.zeros(points.times.size)
    directions = joint.system.solve(loadings)
    capacity = cholesky_factor(np.eye(loadings.shape[1]) + loadings.T @ directions)
    own = np.tile(points.loading[:, None], points.times.size)
    for i in range(0, loadings.shape[1], _AT_ONCE):
        columns = directions[:, i : i + _AT_ONCE]
        nothing = np.zeros((sources.secret.times.size, columns.shape[1]))
        for share in sources.own_shares(columns, nothing):
            own[i : i + _AT_ONCE] += share.cross[joint.system.size :].T
    return np.asarray(np.sum(triangular_solve(capacity, own) ** 2, axis=0))


def _own_variances(system: MarkovSystem, points: SingleValues) -> FloatArray:
    """Var(point | Z) with the loadings known (p,)."""
    rows, whitening = system.rows, system.whitening
    sought, left = _sought(system, points)
    times = np.concatenate([rows.times, points.times])
    order = np.argsort(times, kind="stable")
    nothing = np.zeros_like(sought)
    smoothed = smoothed_variances(
        rows.components,
        times[order],
        np.concatenate([system.factor.loadings, nothing])[order],
        np.concatenate([whitening.variances, np.ones(points.times.size)])[order],
        np.concatenate([np.zeros_like(system.factor.loadings), sought])[order],
    )
    return left + smoothed[np.argsort(order)[rows.times.size :]]


def _sought(system: MarkovSystem, points: SingleValues) -> tuple[FloatArray, FloatArray]:
    """Each point as a functional of the joint state (p, d), and what is left besides (p,).

    The measurement noise w of a fix, given the state z and its rows y = h^T z + w + noise, is known
    as the mean of y - h^T z by their precisions, to the precision that they and w have together.
    """
    rows = system.rows
    sought = np.tile(rows.of_series, (points.times.size, 1))
    if not points.recorded or rows.series.white == 0:
        return sought, np.zeros(points.times.size)
    own = system.noise[rows.order] + rows.process.white * rows.heard
    starts = fix_starts(rows.times)
    sizes = np.diff(starts, append=rows.times.size)
    # A row without noise of its own tells w exactly, the others then tell nothing.
    exact = np.repeat(np.minimum.reduceat(own, starts) == 0, sizes)
    precision = 1 / np.where(own > 0, own, 1.0)
    left = 1 / (1 / rows.series.white + np.add.reduceat(precision, starts))
    shares = np.where(exact, own == 0, precision * np.repeat(left, sizes))
    told = np.add.reduceat(shares[:, None] * rows.loadings, starts, axis=0)
    left = np.where(exact[starts], 0.0, left)
    fix = np.minimum(np.searchsorted(rows.times[starts], points.times), starts.size - 1)
    observed = rows.times[starts][fix] == points.times
    sought -= observed[:, None] * told[fix]
    return sought, np.where(observed, left[fix], rows.series.white)


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


def value_variances(observation: Observation, times: FloatArray) -> FloatArray:
    """Var(value | all that is observed) of the true values at some times (p,), to rounding.

    Without a bound of the rounding: so use this to find the least of many, and
    `Observation.posterior` to judge it. O(n + p) for a Markov prior, else O(n^2 p).
    """
    if not isinstance(observation.system, MarkovSystem):
        every = Secret("values", times, np.eye(times.size))
        return np.diagonal(observation.posterior(every).covariance)
    first = Secret.at(float(times[0]))
    joint = observation.joint(first)
    values = SingleValues(times, False, joint.secret_loadings[0])
    return points_posterior(joint, first, values).variances
