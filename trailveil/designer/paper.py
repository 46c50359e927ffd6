"""The paper's own mechanism: SDP_A for one secret, and Multiple Secrets (Algorithm 1) for several.

SDP_A optimises an approximation of the loss, so it is not the optimum: that is in
trailveil.designer.closed_form and trailveil.designer.optimal. With recorded
secrets s = X_S and the other fixes u,

    A = Sigma_us Sigma_ss^-1,   At = [I; A],   Ct = blockdiag(0, Sigma_{u|s}),   R = At^T At
    max beta   s.t.   R^-1 At^T (Ct + Gamma) At R^-1 >= beta I,   trace(Gamma) <= T

and then, as in the authors' code, the cross block of Gamma is dropped, and each value of the secret
gets the mean of their variances, sigma_s^2. In closed form: with K0 = R^-1 A^T Sigma_{u|s} A R^-1,
the least noise that brings K0 up to beta I is Gamma = At X At^T of trace(R X),

    X = R^-1/2 (R^1/2 (beta I - K0) R^1/2)_+ R^-1/2,

and beta is such that trace(R X) = T; beta = (T + trace(R K0)) / trace(R) where beta I - K0 >= 0.
Source: the paper, appendix, SDP_A.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, eigh
from scipy.optimize import brentq

from trailveil.designer.columns import needs_digits, spanned, symmetric_root
from trailveil.designer.sdp_b import Cover, cover_mechanisms
from trailveil.designer.stepping import positive
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import (
    LARGEST_LOSS_SLACK,
    UNIT_ROUNDOFF,
    FloatArray,
    check_covariance,
    cholesky_factor,
)
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SdpA:
    """What SDP_A chooses for one secret of k recorded values among n.

    indices: of the secret (k,). others: of the rest (n - k,). regression: A (n - k, k).
    coefficients: Sigma_ss^-1 X^1/2 (k, k), so that Gamma_uu = (Sigma_us C)(Sigma_us C)^T = A X A^T.
    spread: X (k, k), the noise as if it were on the secret. beta: the value of the program that was
    solved (at `factor` times the budget, see `sdp_a`). clipped: whether beta I - K0 was not
    positive semidefinite.
    """

    indices: Indices
    others: Indices
    regression: FloatArray
    coefficients: FloatArray
    spread: FloatArray
    beta: float
    clipped: bool

    @property
    def secret_variance(self) -> float:
        """sigma_s^2, the variance of the independent noise on each value of the secret."""
        return float(np.mean(np.diagonal(self.spread)))

    @property
    def direct(self) -> FloatArray:
        """The columns (n, k) of the noise on the secret."""
        columns = np.zeros((self.indices.size + self.others.size, self.indices.size))
        columns[self.indices, np.arange(self.indices.size)] = np.sqrt(self.secret_variance)
        return columns

    @property
    def factor(self) -> FloatArray:
        """F (n, 2k), Gamma = F F^T: independent columns on the secret, then A X^1/2 on the rest."""
        indirect = np.zeros_like(self.direct)
        indirect[self.others] = self.regression @ symmetric_root(self.spread)
        return np.hstack([self.direct, indirect])

    @property
    def covariance(self) -> FloatArray:
        """Gamma (n, n)."""
        return self.factor @ self.factor.T


def sdp_a(
    prior: Prior, indices: Sequence[int] | Indices, budget: float, *, factor: float = 1.0
) -> Mechanism:
    """The mechanism of SDP_A, as in the authors' code, for the recorded values at these indices.

    budget: T = trace(Gamma), in unit^2. factor: the program is solved at `factor` times the budget
    and its noise divided by it, as the authors do (10 to 10,000): the larger, the less the
    approximation counts on what the prior leaves open. Raises InvalidValue for an empty or repeated
    secret, an index out of range, or a budget or factor that is not positive; NumericalError where
    double precision cannot regress on the secret.
    """
    sdp_a = sdp_a_noise(prior.covariance, indices, budget, factor=factor)
    return _mechanism(prior, sdp_a)


def sdp_a_noise(
    covariance: FloatArray, indices: Sequence[int] | Indices, budget: float, *, factor: float = 1.0
) -> SdpA:
    """The same from a prior covariance (n, n): InvalidValue where it is none."""
    sigma = check_covariance(covariance, "the prior covariance")
    return _closed_form(sigma, check_indices(indices, sigma.shape[0]), budget, factor)


@dataclass(frozen=True, slots=True, eq=False)
class MultipleSecrets:
    """One noise for several secrets.

    mechanism: at least as private for every secret as SDP_A alone. parts: SDP_A for each. cover:
    SDP_B.
    """

    mechanism: Mechanism
    parts: tuple[SdpA, ...]
    cover: Cover


def multiple_secrets(
    prior: Prior,
    secrets: Sequence[Sequence[int] | Indices],
    budget: float,
    *,
    factor: float = 1.0,
    exactly: bool = False,
) -> MultipleSecrets:
    """The paper's Algorithm 1: SDP_A for each of N secrets at budget / N, then SDP_B.

    secrets: the indices of each, any mixture of basic and compound ones, overlaps allowed. budget:
    of the whole, which is kept since the cover needs at most the sum. exactly: spend what the cover
    saves, by scaling it up. factor: see `sdp_a`. The claim on the sum is checked at every call
    (NumericalError). Raises InvalidValue for no secrets, or the same secret twice, and as `sdp_a`
    does.
    """
    sigma = check_covariance(prior.covariance, "the prior covariance")
    checked = _distinct([check_indices(indices, sigma.shape[0]) for indices in secrets])
    whole = positive(budget, "the noise budget")
    parts = tuple(_closed_form(sigma, indices, whole / len(checked), factor) for indices in checked)
    # With noise on every fix the cover has a floor, which no prior undoes.
    everywhere = np.unique(np.concatenate(checked)).size == sigma.shape[0]
    mechanism, cover = cover_mechanisms(
        [
            Mechanism(prior.times, part.factor) if everywhere else _mechanism(prior, part)
            for part in parts
        ],
        trace=whole if exactly else None,
    )
    return MultipleSecrets(mechanism, parts, cover)


def posterior_as_published(
    covariance: FloatArray, noise: FloatArray, indices: Sequence[int] | Indices, *, jitter: float
) -> FloatArray:
    """Q (k, k) as the authors compute it, with a jitter: to reproduce their figures, nothing else.

    jitter: what is added to the diagonals of the prior covariance (n, n) and of the noise
    covariance (n, n), as a share of the mean variance of each: 1e-6 in the authors' code. Their
    curves depend on it (docs/paper.md).
    """
    at = check_indices(indices, covariance.shape[0])
    sigma, gamma = (_jittered(matrix, jitter) for matrix in (covariance, noise))
    factor = cholesky_factor(sigma + gamma)
    gained = sigma[at] @ cho_solve((factor, True), sigma[:, at])
    return np.asarray(sigma[np.ix_(at, at)] - (gained + gained.T) / 2)


def check_indices(indices: Sequence[int] | Indices, count: int) -> Indices:
    """The indices (k,) of a secret among `count` fixes.

    Raises InvalidValue where there are none, one is repeated, or one is out of range.
    """
    checked = np.asarray(indices)
    if checked.ndim != 1 or checked.size == 0 or checked.dtype.kind not in "iu":
        raise InvalidValue(
            "a secret must be one or more whole numbers, got "
            f"{checked.dtype} of shape {checked.shape}"
        )
    if checked.min() < 0 or checked.max() >= count:
        wrong = int(checked.min() if checked.min() < 0 else checked.max())
        raise InvalidValue(f"an index of a secret must be from 0 to {count - 1}, got {wrong}")
    if np.unique(checked).size != checked.size:
        raise InvalidValue("a secret must name each index once, got one of them twice")
    return checked.astype(np.intp)


def regression(sigma: FloatArray, at: Indices) -> tuple[FloatArray, FloatArray]:
    """The Cholesky factor of Sigma_ss (k, k) and A = Sigma_us Sigma_ss^-1 (n - k, k).

    Raises NumericalError where Sigma_ss is too near singular for A to be known.
    """
    inner = sigma[np.ix_(at, at)]
    others = np.setdiff1d(np.arange(sigma.shape[0]), at)
    spectrum = eigh(inner, eigvals_only=True)
    if spectrum[0] * LARGEST_LOSS_SLACK <= spectrum[-1] * at.size * UNIT_ROUNDOFF:
        raise NumericalError(
            "the values of a secret must vary by themselves under the prior, got one that the "
            "others give away; name fewer, or state a measurement noise (--noise-std)"
        )
    factor = cholesky_factor(inner)
    return factor, np.asarray(cho_solve((factor, True), sigma[np.ix_(at, others)])).T


def _closed_form(sigma: FloatArray, at: Indices, budget: float, factor: float) -> SdpA:
    total = positive(budget, "the noise budget") * positive(factor, "the factor of the budget")
    chol, a = regression(sigma, at)
    others = np.setdiff1d(np.arange(sigma.shape[0]), at)
    strength, basis = eigh(np.eye(at.size) + a.T @ a)
    widened = a @ (basis / np.sqrt(strength))  # A R^-1/2, up to a rotation
    conditional = sigma[np.ix_(others, others)] @ widened - a @ (
        sigma[np.ix_(at, others)] @ widened
    )
    beta, clipped, positive_part = _level(strength, widened.T @ conditional, total)
    shrunk = basis / np.sqrt(strength)
    spread = shrunk @ (positive_part / factor) @ shrunk.T
    coefficients = np.asarray(cho_solve((chol, True), symmetric_root(spread)))
    return SdpA(at, others, a, coefficients, spread, beta, clipped)


def _level(
    strength: FloatArray, open_part: FloatArray, total: float
) -> tuple[float, bool, FloatArray]:
    """beta, whether beta R - H has a negative part, and its positive part, of trace `total`.

    In the eigenbasis of R. strength: its eigenvalues (k,). open_part: H = R^1/2 K0 R^1/2 (k, k).
    """
    diagonal, hidden = np.diag(strength), (open_part + open_part.T) / 2
    beta = (total + float(np.trace(hidden))) / float(np.sum(strength))
    clipped = bool(eigh(beta * diagonal - hidden, eigvals_only=True)[0] < 0)
    if clipped:
        beta = float(brentq(lambda b: _positive_trace(b * diagonal - hidden) - total, 0.0, beta))
    spectrum, basis = eigh(beta * diagonal - hidden)
    positive = np.maximum(spectrum, 0.0)
    positive *= total / float(np.sum(positive))
    return beta, clipped, np.asarray((basis * positive) @ basis.T)


def _positive_trace(matrix: FloatArray) -> float:
    return float(np.sum(np.maximum(eigh(matrix, eigvals_only=True), 0.0)))


def _mechanism(prior: Prior, sdp_a: SdpA) -> Mechanism:
    """The noise with all the digits that the prior asks for."""
    rough = Mechanism(prior.times, sdp_a.factor)
    if not needs_digits(prior, rough.max_std**2):
        return rough
    coefficients = np.zeros((prior.times.size, sdp_a.indices.size))
    coefficients[sdp_a.indices] = sdp_a.coefficients
    return spanned(prior, coefficients, sdp_a.direct)


def _distinct(secrets: list[Indices]) -> list[Indices]:
    if not secrets:
        raise InvalidValue("there must be at least one secret, got none")
    if len({frozenset(indices.tolist()) for indices in secrets}) < len(secrets):
        raise InvalidValue("the secrets must differ, got one of them twice")
    return secrets


def _jittered(matrix: FloatArray, jitter: float) -> FloatArray:
    return matrix + jitter * float(np.mean(np.diagonal(matrix))) * np.eye(matrix.shape[0])
