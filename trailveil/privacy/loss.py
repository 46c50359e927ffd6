"""The loss matrix of a secret: how much more precisely an adversary knows it after the release.

    L = Q^-1 - P^-1        posterior precision minus prior precision of the secret
    D_lambda( P(Z | s = a) || P(Z | s = b) ) = lambda/2 (a - b)^T L (a - b)

Source: the paper, lemma 3.2 and theorem 3.4, in the form that stays exact for any Gamma (see
docs/paper.md). P and Q are both given what the adversary knows besides the release.

Every figure is an upper bound: the numerical error of Q is bounded and taken against us; where the
bound is too wide (priors without measurement noise) the whole is done again in extended precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.errors import NumericalError
from trailveil.gp.extended import LARGEST_EXTENDED
from trailveil.gp.gaussian import (
    EXTENDED_AGREEMENT,
    LARGEST_LOSS_SLACK,
    LOSS_SLACK,
    UNIT_ROUNDOFF,
    FloatArray,
    Posterior,
    inverse_of,
    largest_eigenvalue,
)
from trailveil.gp.kernels import Scaled
from trailveil.privacy.extended_loss import extended_loss
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.precision import known_precision, known_variances
from trailveil.privacy.prior import (
    NOTHING_KNOWN,
    Observation,
    Prior,
    SideInformation,
    check_times,
    observe,
)
from trailveil.privacy.secrets import Secret

# Units of rounding of a few operations with numbers of one size.
_FEW = 16.0


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """L (k, k) of one secret against one adversary: an upper bound in the semidefinite order.

    slack: how far above the truth it may be, relative to the largest posterior precision.
    """

    matrix: FloatArray
    slack: float

    @property
    def largest(self) -> float:
        """maxeig L; at least 0."""
        return max(0.0, largest_eigenvalue(self.matrix))


def loss_matrix(
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    *,
    known: SideInformation = NOTHING_KNOWN,
) -> Loss:
    """The loss matrix of a secret under a mechanism.

    known: what the adversary knows besides. Raises NumericalError where no trustworthy figure can
    be computed; the loss is infinite (NumericalError says so) where the release determines the
    secret.
    """
    return losses(prior, [secret], mechanism, known=known)[0]


def losses(
    prior: Prior,
    secrets: Sequence[Secret],
    mechanism: Mechanism,
    *,
    known: SideInformation = NOTHING_KNOWN,
) -> list[Loss]:
    """The loss matrices of several secrets; secrets judged by one prior share the factorisation."""
    check_times(prior, mechanism)
    observations: dict[tuple[float, float] | None, Observation | None] = {}
    matrices = []
    for secret in secrets:
        if share := proportional(prior, secret, mechanism, known):
            matrices.append(_loss_of_share(prior, secret, share))
            continue
        judge = prior.for_secret(secret)
        if secret.window not in observations:
            observations[secret.window] = _try_observe(judge, mechanism, known)
        observation = observations[secret.window]
        loss = None if observation is None else _double(observation, secret)
        if loss is None or loss.slack > LOSS_SLACK:
            loss = _finer(loss, judge, secret, mechanism, known)
        matrices.append(loss)
    return matrices


def marginal_losses(
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
) -> FloatArray:
    """The losses (k,) of the locations of a secret, each judged as a secret of its own."""
    check_times(prior, mechanism)
    if share := proportional(prior, secret, mechanism, NOTHING_KNOWN):
        return np.asarray((1.0 + _FEW * UNIT_ROUNDOFF) / (share * prior.variances(secret)))
    judge = prior.for_secret(secret)
    observation = _try_observe(judge, mechanism, NOTHING_KNOWN)
    values, hidden = np.empty(0), float("inf")
    if observation is not None:
        values, hidden = _double_marginals(observation, secret)
    if hidden <= LOSS_SLACK:
        return values
    if mechanism.rows.size + secret.size <= LARGEST_EXTENDED:
        return np.diagonal(extended_loss(judge, secret, mechanism, NOTHING_KNOWN, apart=True))
    if hidden > LARGEST_LOSS_SLACK:
        raise _untrusted()
    return values


def _double_marginals(observation: Observation, secret: Secret) -> tuple[FloatArray, float]:
    """Marginal losses in double precision and the largest relative caution in them."""
    after = observation.posterior(secret)
    lowered = np.diagonal(after.covariance) - after.slack
    if np.any(lowered <= 0):
        return np.full(secret.size, np.inf), float("inf")
    before = known_variances(observation.prior, secret, observation.known)
    precision = 1.0 / before
    caution = _FEW * UNIT_ROUNDOFF * (1.0 / lowered + precision)
    hidden = 2 * after.slack / lowered**2 + 2 * caution
    return 1.0 / lowered - precision + caution, float(np.max(hidden * lowered))


def loss_given(observation: Observation, secret: Secret) -> Loss:
    """The loss matrix from a factorised observation (of the prior that judges the secret)."""
    loss = _double(observation, secret)
    if loss is None or loss.slack > LARGEST_LOSS_SLACK:
        raise _untrusted()
    return loss


def proportional(
    prior: Prior, secret: Secret, mechanism: Mechanism, known: SideInformation
) -> float:
    """c > 0 where Gamma = c Sigma and the secret is recorded: then L = P^-1 / c."""
    process = mechanism.process
    alone = not mechanism.factor.shape[1] and mechanism.floor == 0.0 and known.times.size == 0
    if not (isinstance(process, Scaled) and process.kernel == prior.kernel and alone):
        return 0.0
    recorded = secret.recorded and secret.window is None
    return process.factor if recorded and np.all(mechanism.released) else 0.0


def _loss_of_share(prior: Prior, secret: Secret, share: float) -> Loss:
    """P^-1 / share, from above."""
    inverse, doubt = known_precision(prior, secret)
    size = float(np.linalg.norm(inverse))
    caution = (doubt + _FEW * UNIT_ROUNDOFF * size) / share
    return Loss(inverse / share + caution * np.eye(secret.size), 2 * caution * share / size)


def _try_observe(prior: Prior, mechanism: Mechanism, known: SideInformation) -> Observation | None:
    if mechanism.refinement is not None:
        return None
    try:
        return observe(prior, mechanism, known)
    except NumericalError:
        return None


def _double(observation: Observation, secret: Secret) -> Loss | None:
    """The loss in double precision, or None where double precision is lost altogether."""
    before = known_precision(observation.prior, secret, observation.known)
    return loss_between(observation.posterior(secret), *before)


def loss_between(posterior: Posterior, before: FloatArray, hidden: float) -> Loss | None:
    """Q^-1 - P^-1 in double precision, its numerical error bounded and taken against us.

    before: P^-1 (k, k), whose error has at most the norm `hidden`. None where Q cannot be inverted.
    """
    doubt, identity = posterior.doubt, np.eye(before.shape[0])
    try:
        after, error = inverse_of(posterior.covariance - doubt * identity)
    except NumericalError:
        return None
    size = float(np.linalg.norm(after, 2))
    # What is subtracted and what eigenvalues of it round to.
    rounded = _FEW * len(before) * UNIT_ROUNDOFF * (size + float(np.linalg.norm(before)))
    caution = hidden + error + rounded
    matrix = after - before + caution * identity
    return Loss((matrix + matrix.T) / 2, 2 * (doubt * size + caution / size))


def _finer(
    loss: Loss | None,
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    known: SideInformation,
) -> Loss:
    """The loss in extended precision where that is in reach, else the cautious one or none."""
    reach = mechanism.rows.size + known.times.size + secret.size <= LARGEST_EXTENDED
    if reach:
        exact = extended_loss(prior, secret, mechanism, known)
        caution = 2 * EXTENDED_AGREEMENT * float(np.linalg.norm(exact))
        return Loss(exact + caution * np.eye(secret.size), 2 * EXTENDED_AGREEMENT)
    if loss is None or loss.slack > LARGEST_LOSS_SLACK:
        raise _untrusted()
    return loss


def _untrusted() -> NumericalError:
    return NumericalError(
        "the loss must be known to 0.1 %, got a wider numerical error; "
        "state a measurement noise (--noise-std) or an independent noise floor (--floor)"
    )
