"""The paper's theorems under the paper's names, where the program has no figure of them.

- theorem 3.1, prior-posterior gap: `trailveil.privacy.guarantee.Guarantee.paper_gap`; exactly:
`odds`
- lemma 3.2, direct and inferential loss: `direct_and_inferential`
- theorem 3.3, misspecification: `trailveil.studies.misspecification`
- theorem 3.4, loss bound for Gaussian process priors: `gp_loss_bound`
- corollary 3.4.1, composition: `trailveil.privacy.composition.joint_loss`
- appendix, independent dimensions: `independent_dimensions`; exactly: `trailveil.privacy.guarantee`
- appendix, more positive semidefinite, more private: `more_private`

Source: Meehan and Chaudhuri, Location Trace Privacy Under Conditional Priors, AISTATS 2021. Proofs
and tests: docs/paper.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import (
    NEGATIVE_EIGENVALUE_TOLERANCE,
    FloatArray,
    cholesky_factor,
    cholesky_solve,
    inverse_of,
)
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret


def direct_and_inferential(
    prior: Prior, indices: Sequence[int], mechanism: Mechanism
) -> tuple[FloatArray, FloatArray]:
    """The two parts of the loss of recorded values X_s whose noise is independent of the rest.

    Returns (Gamma_ss^-1, A^T (Sigma_{u|s} + Gamma_uu)^-1 A), A = Sigma_us Sigma_ss^-1: what the
    released secret tells of itself, and what the other fixes tell. Source: the paper, lemma 3.2 and
    theorem 3.4. Raises InvalidValue where the noise on the secret is not independent of the rest.
    """
    rows, chosen = mechanism.rows, np.asarray(indices, dtype=np.intp)
    if (
        not chosen.size
        or np.unique(chosen).size != chosen.size
        or not np.all(np.isin(chosen, rows))
    ):
        raise InvalidValue("every index of the secret must be a released fix, once each")
    secret = np.searchsorted(rows, chosen)
    others = np.setdiff1d(np.arange(rows.size), secret)
    sigma, gamma = prior.kernel(prior.times[rows], prior.times[rows]), mechanism.covariance()
    if np.any(gamma[np.ix_(secret, others)]):
        raise InvalidValue("the noise on the secret must be independent of the rest, got it shared")
    cross = sigma[np.ix_(others, secret)]
    regression = cholesky_solve(cholesky_factor(sigma[np.ix_(secret, secret)]), cross.T).T
    conditional = (
        sigma[np.ix_(others, others)] - regression @ cross.T + gamma[np.ix_(others, others)]
    )
    solved = cholesky_solve(cholesky_factor((conditional + conditional.T) / 2), regression)
    return inverse_of(gamma[np.ix_(secret, secret)])[0], np.asarray(regression.T @ solved)


@dataclass(frozen=True, slots=True)
class GpLossBound:
    """Theorem 3.4 for one coordinate: mu^2 <= S r^2 (1/sigma_s^2 + alpha*).

    direct: 1/sigma_s^2, what the released secret tells of itself. inferential: alpha*, what the
    other fixes tell: maxeig of A^T (Sigma_{u|s} + Gamma_uu)^-1 A. Both in 1 / unit^2. locations: S.
    radius: r, in the unit of the series.
    """

    direct: float
    inferential: float
    locations: int
    radius: float
    order: float

    @property
    def guarantee(self) -> Guarantee:
        """The bound as a guarantee; its epsilon is lambda/2 S r^2 (1/sigma_s^2 + alpha*)."""
        return _guarantee(self, self.direct + self.inferential)

    @property
    def epsilon(self) -> float:
        """The Renyi divergence between any two secrets within r, at most."""
        return self.guarantee.epsilon


def gp_loss_bound(
    prior: Prior, indices: Sequence[int], mechanism: Mechanism, radius: float, order: float = 5.0
) -> GpLossBound:
    """Theorem 3.4 for the recorded values at `indices`, with the paper's structure of the noise.

    alpha* comes from the loss matrix, which is exact for any condition of the prior: under this
    structure L = I/sigma_s^2 + A^T (Sigma_{u|s} + Gamma_uu)^-1 A (lemma 3.2). The bound of the
    same loss that is tight for several locations is `trailveil.privacy.guarantee.tight_bound`.
    Raises InvalidValue where the noise on the secret is not sigma_s^2 I, independent of the rest.
    """
    if not radius >= 0:
        raise InvalidValue(f"radius must be a number of at least 0, got {radius}")
    variance = _secret_variance(indices, mechanism)
    secret = Secret.at([float(prior.times[index]) for index in indices], recorded=True)
    direct = 1.0 / variance
    inferential = max(0.0, loss_matrix(prior, secret, mechanism).largest - direct)
    return GpLossBound(direct, inferential, secret.size, radius, order)


def independent_dimensions(bounds: Sequence[GpLossBound]) -> Guarantee:
    """The paper's corollary: mu^2 <= S r^2 (1/sigma_s^2 + alpha_x + alpha_y + ...).

    bounds: of the same secret, one a dimension. Valid, since no pair within r is further apart in
    several dimensions together; and looser than the largest of the bounds, which holds for the same
    reason. Source: the paper, appendix.
    """
    first = bounds[0]
    if any((bound.locations, bound.radius, bound.order) != _kind(first) for bound in bounds):
        raise InvalidValue("all bounds must be of one secret, radius and order, got others")
    return _guarantee(
        first, max(bound.direct for bound in bounds) + sum(bound.inferential for bound in bounds)
    )


def more_private(mechanism: Mechanism, other: Mechanism) -> bool:
    """Whether `mechanism` is at least as private as `other`, for every prior and every secret.

    That is so where every fix it releases is released by the other, and its Gamma less the other's
    on these fixes is positive semidefinite (to 1e-12 of their size). Source: the paper, appendix,
    more PSD, more private.
    """
    if mechanism.times.size != other.times.size:
        raise InvalidValue(
            f"both mechanisms must be of the same fixes, got {mechanism.times.size} and "
            f"{other.times.size}"
        )
    rows = mechanism.rows
    if not np.all(np.isin(rows, other.rows)):
        return False
    if rows.size == 0:
        return True
    place = np.searchsorted(other.rows, rows)
    gamma, less = mechanism.covariance(), other.covariance()[np.ix_(place, place)]
    scale = float(np.trace(gamma) + np.trace(less))
    lowest = float(eigh(gamma - less, eigvals_only=True)[0])
    return lowest >= -NEGATIVE_EIGENVALUE_TOLERANCE * scale


def _kind(bound: GpLossBound) -> tuple[int, float, float]:
    return bound.locations, bound.radius, bound.order


def _guarantee(bound: GpLossBound, loss: float) -> Guarantee:
    return Guarantee(float(np.sqrt(bound.locations * loss)) * bound.radius, bound.order)


def _secret_variance(indices: Sequence[int], mechanism: Mechanism) -> float:
    """sigma_s^2; InvalidValue where the noise is not of the paper's structure."""
    rows, chosen = mechanism.rows, np.asarray(indices, dtype=np.intp)
    if not chosen.size or np.unique(chosen).size != chosen.size:
        raise InvalidValue(f"a secret must have at least one index, each once, got {indices}")
    if not np.all(np.isin(chosen, rows)):
        raise InvalidValue(f"every index of the secret must be a released fix, got {indices}")
    place = np.searchsorted(rows, chosen)
    gamma = mechanism.covariance()[place]
    variance = float(gamma[0, place[0]])
    expected = np.zeros_like(gamma)
    expected[np.arange(place.size), place] = variance
    if not variance > 0 or not np.allclose(gamma, expected, rtol=1e-12, atol=0.0):
        raise InvalidValue(
            "the noise on the secret must be sigma_s^2 I, independent of the rest: "
            "for other noise take the loss matrix"
        )
    return variance
