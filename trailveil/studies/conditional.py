"""A series given its secret under two priors, and how far the two laws are apart.

Given the secret s, released rows are Gaussian under each prior, of mean A s + b and covariance C,

    A = B P^-1,    C = S - B P^-1 B^T,    S = Cov(rows),  B = Cov(rows, s),  P = Var(s)

and the Renyi divergence of order l from the law of one prior (1) to that of the other (2) is

    l/2 d^T M^-1 d + (log|M| - (1 - l) log|C_1| - l log|C_2|) / (2 (1 - l)),
    M = l C_2 + (1 - l) C_1,    d the difference of the means,

finite if and only if M > 0. Source: Gil, Alajaji and Linder (2013), Renyi divergence measures for
commonly used univariate continuous distributions, Inf. Sci. 249, table 2. Here d = E h with E = A_1
- A_2: see trailveil.studies.misspecification. Double precision with bounds of its own error, and
extended precision for priors without measurement noise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, eigh, null_space, qr

from trailveil.errors import NumericalError
from trailveil.gp.extended import LAST_BITS, START_BITS, Extended, Objects, zero_pivot
from trailveil.gp.gaussian import EXTENDED_AGREEMENT, UNIT_ROUNDOFF, FloatArray, cholesky_factor
from trailveil.gp.kernels import latent, noise_variance, split
from trailveil.privacy.extended_loss import joint_covariance
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import NOTHING_KNOWN, Prior
from trailveil.privacy.secrets import Secret

# An eigenvalue is known by its sign where it is this many times above what rounding may have done.
_CLEAR = 1e3
# Operations behind each number, generously.
_UNIT = 16 * UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two priors at the same times, and the secret on which both are conditioned.

    noise: what is added to the rows before they are compared; rows it withholds do not count.
    """

    first: Prior
    second: Prior
    secret: Secret
    noise: Mechanism

    @property
    def times(self) -> FloatArray:
        """Of the released rows (n,), seconds."""
        return self.first.times[self.noise.rows]

    @property
    def exact(self) -> bool:
        """Whether the rows are compared without noise."""
        return not np.any(self.noise.variances)

    def determined(self, prior: Prior) -> NDArray[np.intp]:
        """Rows that this prior knows exactly from the secret and the other rows."""
        same = self.secret.recorded or noise_variance(prior.kernel, self.times) == 0.0
        return _determined(self.secret, self.times) if same and self.exact else np.arange(0)

    @property
    def compared(self) -> NDArray[np.intp]:
        """The rows that are compared: all that the secret does not determine."""
        return np.setdiff1d(np.arange(self.times.size), self.determined(self.first))

    def comparable(self) -> bool:
        """Whether the secret determines the same rows under both priors."""
        return np.array_equal(self.determined(self.first), self.determined(self.second))


def without_noise(mechanism: Mechanism) -> Mechanism:
    """The same released rows, with nothing added."""
    withheld = np.ones(mechanism.times.size, dtype=np.bool_)
    withheld[mechanism.rows] = False
    return no_noise(mechanism.times).withholding(withheld)


def _determined(secret: Secret, times: FloatArray) -> NDArray[np.intp]:
    """As many rows as combinations of the secret's locations are over released times alone."""
    inside = np.isin(secret.times, times)
    free = null_space(secret.weights[:, ~inside].T) if not np.all(inside) else np.eye(secret.size)
    combinations = free.T @ secret.weights[:, inside]
    if combinations.size == 0:
        return np.arange(0)
    upper, order = qr(combinations, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(upper))
    rank = int(np.sum(sizes > max(combinations.shape) * UNIT_ROUNDOFF * sizes[0]))
    return np.searchsorted(times, secret.times[inside][order[:rank]])


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A divergence as constant + order/2 h^T quadratic h; infinite where `constant` is.

    hidden: how much caution against rounding is in the constant and (times I) in the quadratic.
    """

    constant: float
    quadratic: FloatArray
    hidden: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """Rows given the secret: regression (n, k), less what both priors have in common; C (n, n).

    slip: a bound of the rounding in C, in the spectral norm; regression_slip: in the regression.
    """

    regression: FloatArray
    covariance: FloatArray
    slip: float
    regression_slip: float


def apart(pair: Pair, order: float) -> tuple[Apart, Apart] | None:
    """D(one || two) and D(two || one) in double precision, from above; None where that is lost."""
    law, two = _given(pair.first, pair), _given(pair.second, pair)
    if law is None or two is None:
        return None
    first, second = _apart(law, two, order), _apart(two, law, order)
    return None if first is None or second is None else (first, second)


def _given(prior: Prior, pair: Pair) -> _Given | None:
    """The law of the rows given the secret; None where a large level would drown it.

    T s is taken off the rows, with T = 1 h^T / h^T h and h what a level adds to the secret: the
    level cancels before anything is rounded.
    """
    secret, times, moved = pair.secret, pair.times, pair.secret.level
    base, level = split(prior.kernel)
    shared = prior.kernel if secret.recorded else latent(prior.kernel)
    smooth = None if shared is None else split(shared)[0]
    if base is None or smooth is None or (level > 0 and not np.any(moved)):
        return None
    weights = secret.weights.T
    rows, cross = base(times, times), smooth(times, secret.times) @ weights
    variance = weights.T @ smooth(secret.times, secret.times) @ weights
    noise = pair.noise.covariance()
    size = float(max(np.max(np.diagonal(part)) for part in (rows, variance, noise)))
    taken = np.tile(moved / (float(moved @ moved) or 1.0), (times.size, 1))
    rows = rows - taken @ cross.T - cross @ taken.T + taken @ variance @ taken.T + noise
    cross = cross - taken @ variance
    variance = variance + level * np.outer(moved, moved)
    lowest, highest = eigh(variance, eigvals_only=True)[[0, -1]]
    if lowest <= _CLEAR * _UNIT * highest:
        return None
    compared = pair.compared
    regression = cho_solve((cholesky_factor(variance), True), cross.T).T
    covariance = rows - regression @ cross.T
    norm = float(np.linalg.norm(regression))
    slip = _UNIT * (np.sqrt(cross.size) * size / lowest + norm * highest / lowest)
    total = _UNIT * times.size * size + 3 * slip * float(np.linalg.norm(cross))
    return _Given(
        regression[compared],
        covariance[np.ix_(compared, compared)],
        float(total),
        float(slip),
    )


def _apart(law: _Given, two: _Given, order: float) -> Apart | None:
    """D(one || two), its rounding bounded and added; None where a sign is not clear."""
    mixed = order * two.covariance + (1 - order) * law.covariance
    slips = (law.slip, two.slip, 2 * order * (law.slip + two.slip))
    logs, loose, share = [], 0.0, 0.0
    values, vectors = np.empty(0), np.empty((0, 0))
    weights = ((order - 1), order, 1.0)
    for matrix, slip, weight in zip(
        (law.covariance, two.covariance, mixed), slips, weights, strict=True
    ):
        values, vectors = eigh((matrix + matrix.T) / 2)
        if matrix is mixed and np.any(values < -_CLEAR * slip):
            return Apart(float("inf"), np.zeros((law.regression.shape[1],) * 2))
        if np.any(values <= _CLEAR * slip):
            return None
        logs.append(float(np.sum(np.log(values))))
        share = 2 * slip / float(np.min(values, initial=np.inf))
        loose += weight * 2 * slip * float(np.sum(1 / values)) / (2 * (order - 1))
    constant = (logs[2] - (1 - order) * logs[0] - order * logs[1]) / (2 * (1 - order))
    pulled = vectors.T @ (law.regression - two.regression)
    quadratic = pulled.T @ (pulled / values[:, None])
    slip, size = law.regression_slip + two.regression_slip, float(np.linalg.norm(pulled))
    wide = (2 * size * slip + slip**2) / float(np.min(values, initial=np.inf))
    wide += share * float(np.linalg.norm(quadratic))
    quadratic = (quadratic + quadratic.T) / 2 + wide * np.eye(quadratic.shape[0])
    return Apart(constant + loose, quadratic, (loose, wide))


def extended_apart(pair: Pair, order: float) -> tuple[Apart, Apart]:
    """D(one || two) and D(two || one), correct to double precision; O(n^3) in Python integers.

    A difference of regressions that is zero to this precision is zero. NumericalError where a sign
    stays undecided: the divergence is then at the border of where it is finite.
    """
    bits, earlier = START_BITS, None
    while bits <= LAST_BITS:
        pair_apart = _extended(Extended(bits), pair, order)
        if pair_apart is not None and earlier is not None and all(map(_agree, pair_apart, earlier)):
            return pair_apart
        bits, earlier = 2 * bits, pair_apart
    raise NumericalError(
        "the divergence must be stable in extended precision, got other values up to "
        f"{LAST_BITS} bits; state a measurement noise (--noise-std)"
    )


def _agree(apart: Apart, two: Apart) -> bool:
    if not np.isfinite(apart.constant):
        return apart.constant == two.constant
    near = abs(apart.constant - two.constant) <= EXTENDED_AGREEMENT * (1 + abs(apart.constant))
    size = float(np.max(np.abs(apart.quadratic)))
    apart_by = np.abs(apart.quadratic - two.quadratic)
    return near and bool(np.all(apart_by <= EXTENDED_AGREEMENT * size))


def _extended(m: Extended, pair: Pair, order: float) -> tuple[Apart, Apart] | None:
    """Both divergences in the arithmetic m, or None where it does not decide a sign."""
    first, covariance = _extended_given(m, pair.first, pair)
    second, two = _extended_given(m, pair.second, pair)
    shift = first - second
    small = m.context.ldexp(_largest(np.hstack([first, second])), -int(0.75 * m.bits))
    if _largest(shift) <= small:
        shift = shift * m.number(0.0)
    log_one, log_two = (_reduced(m, matrix, shift[:, :0]) for matrix in (covariance, two))
    divergences = []
    for law, other, of_own, of_other in (
        (covariance, two, log_one, log_two),
        (two, covariance, log_two, log_one),
    ):
        mixed = _reduced(m, m.number(order) * other + m.number(1 - order) * law, shift)
        if mixed is None or of_own is None or of_other is None:
            return None
        if mixed[0] == float("inf"):
            divergences.append(Apart(float("inf"), mixed[1]))
            continue
        constant = mixed[0] - m.number(1 - order) * of_own[0] - m.number(order) * of_other[0]
        divergences.append(Apart(float(constant / m.number(2 * (1 - order))), mixed[1]))
    return divergences[0], divergences[1]


def _extended_given(m: Extended, prior: Prior, pair: Pair) -> tuple[Objects, Objects]:
    """The regression (n, k) and covariance (n, n) of the kept rows given the secret."""
    joint = joint_covariance(m, prior, pair.secret, pair.noise, NOTHING_KNOWN)
    count, compared = pair.times.size, pair.compared
    cross = joint[compared, count:]
    inverse = m.context.matrix(joint[count:, count:].tolist()) ** -1
    regression = cross.dot(np.array(inverse.tolist(), dtype=object).reshape(pair.secret.size, -1))
    return regression, joint[np.ix_(compared, compared)] - regression.dot(cross.T)


def _largest(values: Objects) -> Any:
    return max((abs(value) for value in values.flat), default=0)


def _reduced(m: Extended, matrix: Objects, shift: Objects) -> tuple[Any, FloatArray] | None:
    """log|M| and shift^T M^-1 shift; infinity for the first where M has a negative direction.

    None where a pivot is zero as far as this precision can tell.
    """
    size, columns = shift.shape
    scale, length = _largest(matrix) or m.number(1.0), _largest(shift) or m.number(1.0)
    corner = np.full((columns, columns), m.number(0.0), dtype=object)
    whole = np.block([[matrix / scale, shift / length], [shift.T / length, corner]])
    work, zero, log = m.fixed(whole), zero_pivot(m.bits), m.number(0.0)
    for i in range(size):
        pivot = work[i, i]
        if abs(pivot) <= zero:
            return None
        if pivot < 0:
            return float("inf"), np.zeros((columns, columns))
        log += m.context.log(m.context.ldexp(m.context.mpf(pivot), -m.bits)) + m.context.log(scale)
        ratios = (work[i, i + 1 :] << m.bits) // pivot
        for j in range(i + 1, size + columns):
            work[j, j:] -= (ratios[j - i - 1] * work[i, j:]) >> m.bits
    product = np.frompyfunc(lambda v: m.context.ldexp(m.context.mpf(-v), -m.bits), 1, 1)(
        work[size:, size:]
    )
    upper = (product * (length * length / scale)).astype(np.float64)
    return log, np.triu(upper) + np.triu(upper, 1).T
