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
from scipy.linalg import cho_solve, eigh

from trailveil.errors import InvalidValue, NumericalError
from trailveil.extended import LARGEST_EXTENDED
from trailveil.extended_loss import extended_loss
from trailveil.gaussian import (
    LARGEST_LOSS_SLACK,
    LOSS_SLACK,
    UNIT_ROUNDOFF,
    FloatArray,
    cholesky_factor,
)
from trailveil.kernels import Scaled
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import NOTHING_KNOWN, Observation, Prior, SideInformation, observe
from trailveil.secrets import Secret


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """L (k, k) of one secret against one adversary: an upper bound in the semidefinite order.

    slack: the numerical caution in it, relative to the largest posterior precision of the secret.
    """

    matrix: FloatArray
    slack: float

    @property
    def largest(self) -> float:
        """maxeig L; at least 0."""
        return max(0.0, float(eigh(self.matrix, eigvals_only=True)[-1]))

    @property
    def left(self) -> float:
        """1 / sqrt(maxeig L): what a flat-prior adversary is left with in the worst direction."""
        return float("inf") if self.largest == 0.0 else 1.0 / float(np.sqrt(self.largest))


def loss_matrix(
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    *,
    known: SideInformation = NOTHING_KNOWN,
    flat: bool = False,
) -> Loss:
    """The loss matrix of a secret under a mechanism.

    known: what the adversary knows besides. flat: judge against an adversary with no idea of the
    common level of the series (a finite level would understate that loss).
    Raises NumericalError where no trustworthy figure can be computed; the loss is infinite
    (NumericalError says so) where the release determines the secret.
    """
    return losses(prior, [secret], mechanism, known=known, flat=flat)[0]


def losses(
    prior: Prior,
    secrets: Sequence[Secret],
    mechanism: Mechanism,
    *,
    known: SideInformation = NOTHING_KNOWN,
    flat: bool = False,
) -> list[Loss]:
    """The loss matrices of several secrets; secrets judged by one prior share the factorisation."""
    seen: dict[tuple[float, float] | None, Observation | None] = {}
    found = []
    for secret in secrets:
        if (share := _proportional(prior, [secret], mechanism, known)) and not flat:
            found.append(
                Loss(prior_precision(prior.variance(secret), secret.level, flat=False) / share, 0.0)
            )
            continue
        judge = prior.for_secret(secret)
        if secret.window not in seen:
            seen[secret.window] = _try_observe(judge, mechanism, known)
        observation = seen[secret.window]
        loss = None if observation is None else _double(observation, secret, flat=flat)
        if loss is None or loss.slack > LOSS_SLACK:
            loss = _finer(loss, judge, secret, mechanism, known, flat=flat)
        found.append(loss)
    return found


def marginal_losses(
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    *,
    known: SideInformation = NOTHING_KNOWN,
    flat: bool = False,
) -> FloatArray:
    """The losses (k,) of the locations of a secret, each judged as a secret of its own."""
    if (share := _proportional(prior, [secret], mechanism, known)) and not flat:
        return np.asarray(1.0 / (share * np.diagonal(prior.variance(secret))))
    judge = prior.for_secret(secret)
    observation = _try_observe(judge, mechanism, known)
    found, hidden = np.empty(0), float("inf")
    if observation is not None:
        found, hidden = _double_marginals(observation, secret, flat=flat)
    if hidden <= LOSS_SLACK:
        return found
    if mechanism.rows.size + known.times.size + secret.size <= LARGEST_EXTENDED and not flat:
        return np.diagonal(extended_loss(judge, secret, mechanism, known, apart=True))
    if hidden > LARGEST_LOSS_SLACK:
        raise _untrusted()
    return found


def _double_marginals(
    observation: Observation, secret: Secret, *, flat: bool
) -> tuple[FloatArray, float]:
    """Marginal losses in double precision and the largest relative caution in them."""
    after = observation.posterior(secret)
    lowered = np.diagonal(after.covariance) - after.slack
    if np.any(lowered <= 0):
        return np.full(secret.size, np.inf), float("inf")
    before = np.diagonal(_known_variance(observation, secret))
    precision = np.where(flat & (secret.level != 0), 0.0, 1.0 / before)
    found = 1.0 / lowered - precision
    hidden = after.slack / lowered**2 + 8 * UNIT_ROUNDOFF * (1.0 / lowered + precision)
    found = found + 8 * UNIT_ROUNDOFF * (1.0 / lowered + precision)
    return found, float(np.max(hidden * lowered))


def loss_given(observation: Observation, secret: Secret, *, flat: bool = False) -> Loss:
    """The loss matrix from a factorised observation (of the prior that judges the secret)."""
    loss = _double(observation, secret, flat=flat)
    if loss is None or loss.slack > LARGEST_LOSS_SLACK:
        raise _untrusted()
    return loss


def prior_precision(variance: FloatArray, level: FloatArray, *, flat: bool) -> FloatArray:
    """P^-1 (k, k); with flat, the limit of an infinitely uncertain common level.

    level: how a common level moves each location (k,). In the limit only the directions that the
    level does not move keep a precision: N (N^T P N)^-1 N^T with N a basis of them.
    Raises InvalidValue where a direction has no prior variance: there is no secret there.
    """
    if not flat or not np.any(level):
        return _inverse(variance)
    if level.size == 1:
        return np.zeros((1, 1))
    basis = np.linalg.svd(level[None, :])[2][1:].T
    return np.asarray(basis @ _inverse(basis.T @ variance @ basis) @ basis.T)


def direct_and_inferential(
    prior: Prior, indices: Sequence[int], mechanism: Mechanism
) -> tuple[FloatArray, FloatArray]:
    """The two parts of the loss of recorded values X_s whose noise is independent of the rest.

    Returns (Gamma_ss^-1, A^T (Sigma_{u|s} + Gamma_uu)^-1 A), A = Sigma_us Sigma_ss^-1: what the
    released secret tells of itself, and what the other fixes tell. Source: the paper, lemma 3.2 and
    theorem 3.4.
    Raises InvalidValue where the noise on the secret is not independent of the rest.
    """
    rows = mechanism.rows
    inside = np.isin(rows, np.asarray(indices))
    if int(inside.sum()) != len(indices):
        raise InvalidValue("every index of the secret must be a released fix, once each")
    sigma, gamma = prior.kernel(prior.times[rows], prior.times[rows]), mechanism.covariance()
    if np.any(gamma[np.ix_(inside, ~inside)]):
        raise InvalidValue(
            "the noise on the secret must be independent of the rest, got a cross term"
        )
    cross = sigma[np.ix_(~inside, inside)]
    factor = cholesky_factor(sigma[np.ix_(inside, inside)])
    regression = cho_solve((factor, True), cross.T).T
    rest = sigma[np.ix_(~inside, ~inside)] - regression @ cross.T + gamma[np.ix_(~inside, ~inside)]
    told = cho_solve((cholesky_factor(rest), True), regression)
    return _inverse(gamma[np.ix_(inside, inside)]), np.asarray(regression.T @ told)


def _proportional(
    prior: Prior, secrets: Sequence[Secret], mechanism: Mechanism, known: SideInformation
) -> float:
    """c > 0 where Gamma = c Sigma and the secrets are recorded: then L = P^-1 / c."""
    process = mechanism.process
    alone = not mechanism.factor.shape[1] and mechanism.floor == 0.0 and known.times.size == 0
    if not (isinstance(process, Scaled) and process.kernel == prior.kernel and alone):
        return 0.0
    recorded = all(one.recorded and one.window is None for one in secrets)
    return process.factor if recorded and np.all(mechanism.released) else 0.0


def _try_observe(prior: Prior, mechanism: Mechanism, known: SideInformation) -> Observation | None:
    if mechanism.refinement is not None:
        return None
    try:
        return observe(prior, mechanism, known)
    except NumericalError:
        return None


def _double(observation: Observation, secret: Secret, *, flat: bool) -> Loss | None:
    """The loss in double precision, or None where double precision is lost altogether."""
    found = observation.posterior(secret)
    variance = _known_variance(observation, secret)
    lowered = found.covariance - float(np.sum(found.slack)) * np.eye(secret.size)
    lowest, highest = eigh(lowered, eigvals_only=True)[[0, -1]]
    if lowest <= 0.0:
        return None
    before = prior_precision(variance, secret.level, flat=flat)
    matrix = _inverse(lowered) - before
    # Inverting Q and P rounds by k u cond relative; 1x1 is exact to a few units.
    size = float(np.abs(before).max()) + 1.0 / lowest
    caution = 8 * secret.size * UNIT_ROUNDOFF * size * (highest / lowest)
    matrix = (matrix + matrix.T) / 2 + caution * np.eye(secret.size)
    hidden = caution + float(np.sum(found.slack)) / lowest**2
    return Loss(matrix, hidden * lowest)


def _known_variance(observation: Observation, secret: Secret) -> FloatArray:
    """P (k, k) given what the adversary knows already."""
    if observation.known.times.size == 0:
        return observation.prior.variance(secret)
    nothing = no_noise(observation.prior.times)
    nothing = nothing.withholding(np.ones(nothing.times.size, bool))
    before = observe(observation.prior, nothing, observation.known).posterior(secret)
    return before.covariance + float(np.sum(before.slack)) * np.eye(secret.size)


def _finer(
    loss: Loss | None,
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    known: SideInformation,
    *,
    flat: bool,
) -> Loss:
    """The loss in extended precision where that is in reach, else the cautious one or none."""
    if mechanism.rows.size + known.times.size <= LARGEST_EXTENDED and not flat:
        return Loss(extended_loss(prior, secret, mechanism, known), 0.0)
    if loss is None or loss.slack > LARGEST_LOSS_SLACK:
        raise _untrusted()
    return loss


def _untrusted() -> NumericalError:
    return NumericalError(
        "the loss must be known to 0.1 %, got a wider numerical error; "
        "state a measurement noise (--noise-std) or an independent noise floor (--floor)"
    )


def _inverse(matrix: FloatArray) -> FloatArray:
    """The inverse of a small positive definite matrix; InvalidValue where there is no variance."""
    try:
        factor = cholesky_factor(matrix)
    except NumericalError as error:
        raise InvalidValue(
            "every direction of the secret must have variance, got one without: "
            "it is known already, so there is no secret in it"
        ) from error
    return np.asarray(cho_solve((factor, True), np.eye(matrix.shape[0])))
