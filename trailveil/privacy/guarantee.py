"""The guarantee: what a loss matrix means as epsilon, odds, advantage and metres.

Two hypotheses on a secret give releases that are Gaussians with one covariance, so everything is in
one number, mu: the log-likelihood ratio is N(+-mu^2/2, mu^2), the release is mu-Gaussian
differentially private about the secret (over the prior, not for one fixed trace), and nothing is
lost in conversion. See docs/guarantees.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from trailveil.errors import InvalidValue, NumericalError, check_number
from trailveil.gp.gaussian import FloatArray, cholesky_factor, largest_eigenvalue

# Radius of the planar circle that holds 68 % of an isotropic Gaussian, in standard deviations per
# coordinate.
CIRCLE_68 = float(np.sqrt(-2 * np.log(1 - 0.68)))
# The largest number whose exponential is finite.
_LARGEST_LOG = float(np.log(np.finfo(np.float64).max))
# Below this mu the two terms of delta cancel; so many deviations out no number is small enough.
_CANCELS, _NEVER = 0.5, 40.0
# Relative duality gap at which the bound for compound secrets stops: it is valid at any gap.
_COMPOUND_GAP = 1e-10


def _phi(x: float) -> float:
    """Phi(x). Not scipy.special's, the import of which is half of the time that a cut takes."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


@dataclass(frozen=True, slots=True)
class Guarantee:
    """mu-Gaussian inferential privacy of one secret against one adversary, at a Renyi order.

    mu: sqrt of the greatest delta^T L delta over pairs that must not be told apart. order: > 1.
    """

    mu: float
    order: float = 5.0

    def __post_init__(self) -> None:
        """Check the values."""
        check_number("order", self.order)
        check_number("mu", self.mu)
        if not self.order > 1 or not np.isfinite(self.order):
            raise InvalidValue(f"order must be a number above 1, got {self.order}")
        if not 0 <= self.mu < np.inf:
            raise InvalidValue(f"mu must be a finite number of at least 0, got {self.mu}")

    @property
    def epsilon(self) -> float:
        """The Renyi divergence: order / 2 mu^2. Source: the paper, definition 3.2."""
        return self.order / 2 * self.mu**2

    def epsilon_at(self, order: float) -> float:
        """The bound at another order."""
        return Guarantee(self.mu, order).epsilon

    def delta(self, epsilon: float) -> float:
        """The least delta of (epsilon, delta)-indistinguishability.

        Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu). Source: Dong, Roth and Su (2022), cor. 2.13.
        """
        check_number("epsilon", epsilon)
        if not epsilon >= 0:
            raise InvalidValue(f"epsilon must be a number of at least 0, got {epsilon}")
        if self.mu == 0 or epsilon / self.mu > self.mu / 2 + _NEVER:
            return 0.0
        from scipy.special import erfcx, log_ndtr

        if self.mu < _CANCELS:
            # phi(mu/2 - eps/mu) times the fall of Mills' ratio m from there: m' = x m - 1.
            nodes, weights = np.polynomial.legendre.leggauss(8)
            x = epsilon / self.mu + self.mu / 2 * nodes
            falls = weights @ (1 - x * math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2)))
            density = math.exp(-((self.mu / 2 - epsilon / self.mu) ** 2) / 2)
            return float(self.mu / 2 * falls * density / math.sqrt(2 * math.pi))
        above = float(log_ndtr(self.mu / 2 - epsilon / self.mu))
        below = epsilon + float(log_ndtr(-self.mu / 2 - epsilon / self.mu))
        return float(max(0.0, -np.expm1(below - above)) * np.exp(above))

    def odds_exceed(self, factor: float) -> float:
        """The exact probability that posterior odds move by more than `factor` (> 1) either way."""
        check_number("the factor", factor)
        if not factor >= 1:
            raise InvalidValue(f"the factor must be at least 1, got {factor}")
        return self._moved_by(float(np.log(factor)))

    def _moved_by(self, t: float) -> float:
        """The probability that log odds move by more than t >= 0: Q((t - mu^2/2)/mu) + Q(...)."""
        if self.mu == 0:
            return 0.0
        half = self.mu**2 / 2
        return _phi((half - t) / self.mu) + _phi(-(half + t) / self.mu)

    def odds(self, confidence: float = 0.99) -> float:
        """The factor that posterior odds stay within with probability `confidence`, exactly.

        Infinite where it is beyond the largest floating-point number. Raises InvalidValue for a
        confidence below a half: `odds(0.99)` holds in 99 of 100 cases.
        """
        check_number("confidence", confidence)
        if not 0.5 <= confidence < 1:
            raise InvalidValue(
                "confidence must be at least 0.5 and below 1 (0.99 for 99 of 100 cases), got "
                f"{confidence}"
            )
        chance = 1 - confidence
        if self._moved_by(0.0) <= chance:
            return 1.0
        low, high = 0.0, self.mu**2 / 2 + self.mu * (1 - NormalDist().inv_cdf(chance / 2))
        while low < (middle := (low + high) / 2) < high:  # until no number is between
            low, high = (middle, high) if self._moved_by(middle) > chance else (low, middle)
        return float(np.exp(high)) if high < _LARGEST_LOG else float("inf")

    @property
    def advantage(self) -> float:
        """What the best test between two hypotheses gains over guessing: 2 Phi(mu/2) - 1."""
        return math.erf(self.mu / 8**0.5)

    def paper_gap(self, delta: float) -> float:
        """The paper's bound of the prior-posterior gap at probability 1 - delta, natural logarithm.

        epsilon + log(1/delta) / (order - 1). Source: the paper, theorem 3.1 (equal supports). It
        bounds how far the odds grow; `odds` is exact, and counts how far they fall, too.
        """
        check_number("delta", delta)
        if not 0 < delta < 1:
            raise InvalidValue(f"delta must be between 0 and 1, got {delta}")
        return self.epsilon + float(np.log(1 / delta)) / (self.order - 1)


def mu_for(epsilon: float, order: float = 5.0) -> float:
    """The mu at which the loss at `order` is `epsilon`: sqrt(2 epsilon / order)."""
    check_number("epsilon", epsilon)
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise InvalidValue(f"epsilon must be a positive number, got {epsilon}")
    Guarantee(0.0, order)
    return float(np.sqrt(2 * epsilon / order))


def loss_bound_for(epsilon: float, radius: float, order: float = 5.0) -> float:
    """The largest eigenvalue of L that one location may have: mu^2 / radius^2.

    >>> tv.loss_bound_for(epsilon=1.0, radius=2.0, order=5.0)
    0.1
    """
    check_number("radius", radius)
    if not (np.isfinite(radius) and radius > 0):
        raise InvalidValue(f"radius must be a positive number, got {radius}")
    return mu_for(epsilon, order) ** 2 / radius**2


def paper_bound(
    losses: Sequence[FloatArray], radius: float, *, locations: int | None = None
) -> float:
    """mu^2 <= S r^2 max over dimensions of maxeig(L). Source: the paper, theorem 3.4.

    locations: see `tight_bound`.
    """
    count = _locations(losses, locations)
    return float(count * radius**2 * max(0.0, *(largest_eigenvalue(loss) for loss in losses)))


def tight_bound(
    losses: Sequence[FloatArray], radius: float, *, locations: int | None = None
) -> float:
    """An upper bound of mu^2 = max delta^T L delta over pairs within `radius` at each location.

    losses: one L (S, S) a dimension, all dimensions independent; or, when the dimensions are
    coupled, one L (S d, S d) whose rows run location by location, with `locations` = S.
    The bound is r^2 sum(y) for the least y with diag(y) >= L in every dimension, one common y:
    exact for one location, and a certificate for every feasible y. Never above the paper's.
    """
    count = _locations(losses, locations)
    paper = paper_bound(losses, radius, locations=count)
    if count == 1 or paper == 0.0:
        return paper
    return min(paper, radius**2 * float(np.sum(_least_diagonal(losses, count))))


def feasible_diagonal(loss: FloatArray) -> FloatArray:
    """A y (S,) of nearly least sum with diag(y) above one loss matrix (S, S): see `tight_bound`."""
    most = max(largest_eigenvalue(loss), 0.0)
    if most == 0.0:
        return np.zeros(loss.shape[0])
    return _least_diagonal([loss], loss.shape[0])


def _locations(losses: Sequence[FloatArray], locations: int | None) -> int:
    """S, of losses that belong together."""
    if not losses:
        raise InvalidValue("a secret must have a loss matrix in at least one dimension, got none")
    size = losses[0].shape[0]
    count = size if locations is None else locations
    if any(loss.shape != (size, size) for loss in losses) or count < 1 or size % count:
        raise InvalidValue("the loss matrices of a secret must all have one shape, S or S d rows")
    if not all(np.all(np.isfinite(loss)) for loss in losses):
        raise InvalidValue("a loss matrix must be finite, got infinite or missing entries")
    return count


def _least_diagonal(losses: Sequence[FloatArray], count: int) -> FloatArray:
    """A y (count,) of nearly least sum with diag(y) >= L for all L, strictly feasible.

    Log-barrier Newton steps on t sum(y) - sum_j log det(diag(y) - L_j): the gap is rows / t, known
    at each step, so the last y is feasible and within the gap of the least.
    """
    repeat = losses[0].shape[0] // count
    scale = max(float(np.abs(loss).max()) for loss in losses)
    stacked = [loss / scale for loss in losses]
    rows = sum(loss.shape[0] for loss in losses)
    y = np.full(count, 1.1 * max(largest_eigenvalue(loss) for loss in stacked) + 0.1)
    t = rows / float(np.sum(y))
    while rows / t > _COMPOUND_GAP * max(1.0, float(np.sum(y))):
        t *= 8.0
        y = _centre(y, t, stacked, repeat)
    return np.asarray(scale * y)


def _centre(y: FloatArray, t: float, losses: list[FloatArray], repeat: int) -> FloatArray:
    for _ in range(60):
        gradient, hessian = np.full(y.size, t), np.zeros((y.size, y.size))
        for loss in losses:
            inverse = np.linalg.inv(np.diag(np.repeat(y, repeat)) - loss)
            blocks = inverse.reshape(y.size, repeat, y.size, repeat)
            gradient -= np.einsum("iaia->i", blocks)
            hessian += np.einsum("iajb,iajb->ij", blocks, blocks)
        step = -np.linalg.solve(hessian, gradient)
        size = 1.0
        while not _feasible(y + size * step, losses, repeat):
            size /= 2
            if size < 1e-12:
                return y
        y = y + size * step
        if float(-gradient @ step) < 1e-6:
            return y
    return y


def _feasible(y: FloatArray, losses: list[FloatArray], repeat: int) -> bool:
    from scipy.linalg import block_diag

    try:
        cholesky_factor(block_diag(*(np.diag(np.repeat(y, repeat)) - loss for loss in losses)))
    except NumericalError:
        return False
    return True
