"""The paper's programs as a conic solver (cvxpy, Clarabel) answers them.

Slow, and right to about 1e-6. The names keep apart what differs:

    sdp_a_as_in_code     SDP_A, full Gamma in the program, its cross block dropped afterwards
    sdp_a_as_printed     SDP_A with Gamma_su = 0 and Gamma_ss = sigma_s^2 I inside: degenerate
    sdp_b_conic          SDP_B

and in tests.oracles.exact, without any approximation, exact_sdp. A status other than optimal is an
error, "optimal_inaccurate" included. Source: the paper, appendix.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.linalg import eigh

from trailveil.designer.columns import symmetric_root
from trailveil.designer.paper import Indices, check_indices, regression
from trailveil.designer.stepping import positive
from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray, check_covariance
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior

# Relative: what the solver says and what its noise does may differ by this.
AGREEMENT = 1e-4
# Share of the budget under which a variance on the secret is the solver's way to say none.
_NO_NOISE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class ProgramA:
    """SDP_A as solved. mechanism: what is released. covariance: Gamma (n, n) as the solver left it.

    beta: the value of the program, recomputed from that Gamma.
    """

    mechanism: Mechanism
    covariance: FloatArray
    beta: float


def sdp_a_as_in_code(
    prior: Prior, indices: Sequence[int] | Indices, budget: float, *, factor: float = 1.0
) -> ProgramA:
    """SDP_A as the authors solve it: trailveil.designer.paper.sdp_a without the closed form.

    Arguments and errors as there. The noise on the other fixes is the solver's, right to its
    accuracy: a prior without measurement noise undoes that, as it would undo the authors'.
    """
    program = _ProgramA.of(prior, indices, budget, factor)
    gamma = cp.Variable((prior.times.size,) * 2, PSD=True)
    solved = program.solve(gamma, [cp.trace(gamma) <= 1])
    variance = float(np.mean(np.diagonal(solved.covariance)[program.at])) / factor
    return ProgramA(program.release(solved.covariance, variance), solved.covariance, solved.beta)


def sdp_a_as_printed(
    prior: Prior, indices: Sequence[int] | Indices, budget: float, *, factor: float = 1.0
) -> ProgramA:
    """SDP_A as printed: no cross block, and sigma_s^2 I on the secret, inside the program.

    Noise on the others, along A, pays |A|^2 times better in this program than noise on the secret,
    so that it leaves sigma_s^2 = 0 on a single index whenever |A| > 1: the secret is then released
    as it is. Raises Refused where it does; otherwise as `sdp_a_as_in_code`.
    """
    program = _ProgramA.of(prior, indices, budget, factor)
    at, others, size = program.at, program.others, prior.times.size
    variance = cp.Variable(nonneg=True)
    open_noise = cp.Variable((others.size,) * 2, PSD=True) if others.size else None
    secret_part, open_part = np.eye(size)[:, at], np.eye(size)[:, others]
    gamma = variance * (secret_part @ secret_part.T)
    total = at.size * variance
    if open_noise is not None:
        gamma, total = gamma + open_part @ open_noise @ open_part.T, total + cp.trace(open_noise)
    solved = program.solve(gamma, [total <= 1])
    on_secret = float(np.mean(np.diagonal(solved.covariance)[at])) / factor
    if on_secret <= _NO_NOISE * budget:
        raise Refused(
            "the program as printed must leave noise on the secret, got none: an infinite loss; "
            "use sdp-a (as in the authors' code), or exact-block, which has the printed structure"
        )
    return ProgramA(program.release(solved.covariance, on_secret), solved.covariance, solved.beta)


def sdp_b_conic(covariances: Sequence[FloatArray]) -> FloatArray:
    """SDP_B by the solver: Y (n, n) of least trace with Y >= each of the covariances."""
    checked = [check_covariance(gamma, "a noise covariance") for gamma in covariances]
    scale = max(float(np.trace(gamma)) for gamma in checked)
    cover = cp.Variable(checked[0].shape, PSD=True)
    above = [cover - gamma / scale >> 0 for gamma in checked]
    solve(cp.Problem(cp.Minimize(cp.trace(cover)), above))
    return np.asarray(scale * symmetric(cover.value))


@dataclass(frozen=True, slots=True, eq=False)
class _ProgramA:
    """max beta s.t. U^T (Ct + Gamma) U >= beta R: the paper's constraint between R^1/2 and R^1/2.

    axes: U = At R^-1/2 (n, k). strength: R (k, k). conditional: U^T Ct U (k, k). total: factor
    times the budget.
    """

    prior: Prior
    at: Indices
    others: Indices
    axes: FloatArray
    strength: FloatArray
    conditional: FloatArray
    total: float
    factor: float

    @classmethod
    def of(
        cls, prior: Prior, indices: Sequence[int] | Indices, budget: float, factor: float
    ) -> "_ProgramA":
        sigma = check_covariance(prior.covariance, "the prior covariance")
        at = check_indices(indices, sigma.shape[0])
        total = positive(budget, "the noise budget") * positive(factor, "the factor of the budget")
        _, a = regression(sigma, at)
        others = np.setdiff1d(np.arange(sigma.shape[0]), at)
        tall = np.zeros((sigma.shape[0], at.size))
        tall[at], tall[others] = np.eye(at.size), a
        strength = tall.T @ tall
        axes = tall @ symmetric_root(inverse(strength))
        low = axes[others]
        conditional = low.T @ (sigma[np.ix_(others, others)] - a @ sigma[np.ix_(at, others)]) @ low
        return cls(prior, at, others, axes, strength, symmetric(conditional), total, factor)

    def solve(self, gamma: Any, budget: list[Any]) -> ProgramA:
        """gamma: the expression of Gamma / total. The mechanism is left to the caller."""
        beta, scale = cp.Variable(), float(np.linalg.norm(self.strength, 2))
        shown = self.conditional / self.total + self.axes.T @ gamma @ self.axes
        above = shown - beta * (self.strength / scale) >> 0
        solve(cp.Problem(cp.Maximize(beta), [above, *budget]))
        covariance = self.total * symmetric(gamma.value)
        covariance *= min(1.0, self.total / float(np.trace(covariance)))
        reached = self.conditional + self.axes.T @ covariance @ self.axes
        recomputed = float(eigh(symmetric(reached), self.strength, eigvals_only=True)[0])
        word = float(beta.value) * self.total / scale
        if abs(recomputed - word) > AGREEMENT * abs(word):
            raise NumericalError(
                f"beta of the solver must be that of its noise, got {word:.6g} for {recomputed:.6g}"
            )
        return ProgramA(no_noise(self.prior.times), covariance, recomputed)

    def release(self, covariance: FloatArray, variance: float) -> Mechanism:
        """Without the cross block, at the budget: `variance` on the secret, the rest as it is."""
        open_part = covariance.copy()
        open_part[self.at], open_part[:, self.at] = 0.0, 0.0
        direct = np.sqrt(variance) * np.eye(open_part.shape[0])[:, self.at]
        root = symmetric_root(open_part / self.factor)
        root[self.at] = 0.0  # not even by rounding
        return Mechanism(self.prior.times, np.hstack([direct, root]))


def solve(problem: Any) -> None:
    """Solve it, or raise NumericalError: a solver that is not sure is a solver that failed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # "Solution may be inaccurate"
            problem.solve(solver=cp.CLARABEL)
        status = str(problem.status)
    except (UserWarning, cp.SolverError) as error:
        status = f"{problem.status or 'a failure'} ({str(error).split('.', maxsplit=1)[0]})"
    if status != cp.OPTIMAL:
        raise NumericalError(
            f"the solver must report optimal, got {status}; "
            "state a measurement noise (--noise-std), or take fewer fixes"
        )


def inverse(matrix: FloatArray) -> FloatArray:
    """The inverse of a small positive definite matrix, symmetric."""
    return np.asarray(symmetric(np.linalg.inv(matrix)), dtype=np.float64)


def symmetric(matrix: Any) -> Any:
    """The symmetric part of a matrix, or of an expression."""
    return (matrix + matrix.T) / 2
