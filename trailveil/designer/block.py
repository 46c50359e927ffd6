"""The paper's structure, solved exactly: noise on one recorded value independent of the rest.

With a = Sigma_us / Sigma_ss, C = Sigma_{u|s} and v = (C + tau I)^-1 a, the loss is

    1 / Gamma_ss + a^T (C + Gamma_uu)^-1 a  >=  1 / (T - tau) + a^T v

reached by Gamma_uu = tau v v^T / v^T v, and least where T - tau = 1 / |v|.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from trailveil.designer.refine import canonical, refined, undone_by_rounding
from trailveil.designer.stepping import positive, until_met
from trailveil.errors import InvalidValue
from trailveil.gp.extended import Extended, Objects, solve
from trailveil.gp.gaussian import UNIT_ROUNDOFF, FloatArray
from trailveil.privacy.extended_loss import joint_covariance
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import NOTHING_KNOWN, Prior
from trailveil.privacy.secrets import Secret


def exact_block(prior: Prior, secret: Secret, trace: float) -> Mechanism:
    """The least loss when the noise on one recorded value must be independent of the rest.

    The paper's structure. With a = Sigma_us / Sigma_ss, C = Sigma_{u|s} and v = (C + tau I)^-1 a:
    the minimum over tau of 1/(T - tau) + a^T v, where T - tau = 1/|v|; Gamma_ss = T - tau and
    Gamma_uu = tau v v^T / v^T v. Raises InvalidValue unless the secret is one recorded fix.
    """
    total = positive(trace, "the noise budget")
    block = _block(prior, secret)
    return block.mechanism(prior, secret, total, block.share_for(total))


def exact_block_noise(prior: Prior, secret: Secret, bound: float) -> Mechanism:
    """The least noise of that structure that holds the loss to `bound`."""
    bound, block = positive(bound, "the bound of the loss"), _block(prior, secret)
    return until_met(
        lambda trace: exact_block(prior, secret, trace),
        lambda mechanism: loss_matrix(prior, secret, mechanism).largest / bound - 1.0,
        block.trace_for(bound),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """a and C of `exact_block` in the eigenvectors of C.

    index: of the secret. spectrum: of C. basis: its eigenvectors. pull: a in them.
    """

    index: int
    spectrum: FloatArray
    basis: FloatArray
    pull: FloatArray

    def direction(self, tau: float) -> FloatArray:
        """v in the eigenvectors of C."""
        return self.pull / (self.spectrum + tau)

    @property
    def least(self) -> float:
        """What is above the rounding of the spectrum: a smaller tau has no meaning."""
        size = max(1, self.spectrum.size)
        return 4 * size * UNIT_ROUNDOFF * float(np.max(np.abs(self.spectrum), initial=1e-300))

    def trace(self, tau: float) -> float:
        """The T of which tau is the best share."""
        length = float(np.linalg.norm(self.direction(tau)))
        return tau + 1.0 / length if length > 0 else np.inf

    def loss(self, tau: float) -> float:
        """The loss at that T."""
        direction = self.direction(tau)
        return float(np.linalg.norm(direction) + self.pull @ direction)

    def share_for(self, total: float) -> float:
        """tau for a trace; 0 where all of it is best put on the secret."""
        if self.least >= total or self.trace(self.least) >= total:
            return 0.0
        return _log_root(lambda tau: self.trace(tau) / total, self.least, total)

    def trace_for(self, bound: float) -> float:
        """The T whose least loss is `bound`."""
        tau = self.least
        if self.loss(tau) <= bound:
            return 1.0 / (bound - float(self.pull @ self.direction(tau)))
        highest = tau
        while self.loss(highest) > bound:
            highest *= 1e3
        return self.trace(_log_root(lambda tau: bound / self.loss(tau), tau, highest))

    def mechanism(self, prior: Prior, secret: Secret, total: float, tau: float) -> Mechanism:
        """Gamma for a trace and a share of it."""
        factor = np.zeros((prior.times.size, 2))
        factor[self.index, 0] = np.sqrt(total - tau)
        if tau == 0.0:
            return Mechanism(prior.times, factor[:, :1])
        others = np.arange(prior.times.size) != self.index
        v = canonical(self.basis @ self.direction(tau))
        factor[others, 1] = v * np.sqrt(tau / float(v @ v))
        rough = Mechanism(prior.times, factor)
        if not undone_by_rounding(prior, no_noise(prior.times), tau):
            return rough
        direction = _block_direction(prior, secret, self.index, tau)
        inferential = float(self.pull @ self.direction(tau))
        return refined(prior, secret, rough, direction, tau, 1.0 / (total - tau) + inferential)


def _block(prior: Prior, secret: Secret) -> _Block:
    index = recorded_index(prior, secret)
    others = np.arange(prior.times.size) != index
    sigma = prior.covariance
    a = sigma[others, index] / sigma[index, index]
    spectrum, basis = np.empty(0), np.empty((0, 0))
    if a.size:
        conditional = sigma[np.ix_(others, others)] - np.outer(a, sigma[others, index])
        spectrum, basis = eigh((conditional + conditional.T) / 2)
    return _Block(index, np.maximum(spectrum, 0.0), basis, basis.T @ a)


def _log_root(ratio: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing ratio is 1, between two positive numbers."""
    root = brentq(lambda x: float(np.log(ratio(float(np.exp(x))))), np.log(low), np.log(high))
    return float(np.exp(root))


def recorded_index(prior: Prior, secret: Secret) -> int:
    """The index of a secret that is one recorded fix; InvalidValue for any other."""
    at = np.flatnonzero(prior.times == secret.times[0])
    if not secret.recorded or secret.times.size != 1 or at.size != 1:
        raise InvalidValue(f"the secret must be one recorded fix here, got a {secret.kind}")
    return int(at[0])


def _block_direction(
    prior: Prior, secret: Secret, index: int, tau: float
) -> Callable[[Extended], Objects]:
    """(Sigma_{u|s} + tau I)^-1 a over all rows, 0 at the secret, in fixed point."""

    def direction(m: Extended) -> Objects:
        nothing = no_noise(prior.times)
        sigma = joint_covariance(m, prior, secret, nothing, NOTHING_KNOWN)[:-1, :-1]
        others = np.arange(prior.times.size) != index
        variance, cross = sigma[index, index], sigma[others, index]
        conditional = sigma[np.ix_(others, others)] - np.outer(cross, cross) / variance
        for i in range(conditional.shape[0]):
            conditional[i, i] += m.number(tau)
        solved = solve(m.fixed(conditional), m.fixed(cross / variance), m.bits)
        return np.asarray(np.insert(solved, index, 0), dtype=object)

    return direction
