"""Misspecification: what a mechanism made for one prior promises when another one is true.

The noise was chosen for a class P of priors (one kernel, any mean); the truth R is a Gaussian
process of another kernel. What people should read is `guarantee_under`: the loss under R, exactly.
The paper's theorem bounds it without knowing what R says of the secret, by how far R is from P:

    eps'(lambda) = (lambda - 1/2)/(lambda - 1) D(2 lambda) + D(4 lambda - 3)
                   + (2 lambda - 3/2)/(2 lambda - 2) eps(4 lambda - 2)

    D(l) = inf over the means of P, sup over secret values s, of the larger of
           D_l( P(X_u | s) || R(X_u | s) )   and   D_l( R(X_u | s) || P(X_u | s) )

Source: the paper, theorem 3.3. Proof, and the same with Z for X_u: docs/paper.md. In closed form:
given s, both are Gaussians, of covariances C_P, C_R and of means that differ by E s + b, with
E = A_P - A_R the difference of the regressions on s and b free, since the mean of P is. With s
confined to within `confinement` of some place at each location, the b that centres E s is best for
every order and in both directions at once: +h and -h are both allowed, and the mean of a quadratic
form over the two is no less than at b = 0. So

    D_l(P || R) = l/2 max over h of h^T W h + c,        W = E^T M^-1 E,   M = l C_R + (1 - l) C_P
    c = (log|M| - (1 - l) log|C_P| - l log|C_R|) / (2 (1 - l))

finite if and only if M > 0 (and infinite where s is not confined and E is not 0). The maximum over
several locations is bounded as a loss is (`trailveil.privacy.guarantee.tight_bound`), from above.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.extended import LARGEST_EXTENDED
from trailveil.gp.gaussian import LARGEST_LOSS_SLACK, LOSS_SLACK, FloatArray
from trailveil.privacy.guarantee import Guarantee, tight_bound
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.studies.conditional import Apart, Pair, apart, extended_apart, without_noise

# Rows up to which extended precision takes a second or two, and so is had for a sharper figure.
_QUICK = 60

Form: TypeAlias = Literal["values", "release"]
"""Whether D compares the other fixes X_u, as the paper does, or all that is released, Z."""


@dataclass(frozen=True, slots=True)
class Divergences:
    """How far the truth R is from the class P given the secret, at one Renyi order, in nats.

    believed_first: D(P || R). truth_first: D(R || P). Infinite where the integral is.
    """

    order: float
    believed_first: float
    truth_first: float

    @property
    def larger(self) -> float:
        """D(order) of the theorem."""
        return max(self.believed_first, self.truth_first)


@dataclass(frozen=True, slots=True)
class Misspecified:
    """Theorem 3.3 for one secret, and the exact figure beside it.

    first: at 2 lambda. second: at 4 lambda - 3. believed: what the class P promises; its order is
    lambda. true: what holds under R, exactly.
    """

    first: Divergences
    second: Divergences
    believed: Guarantee
    true: Guarantee

    @property
    def epsilon(self) -> float:
        """eps'(lambda): the paper's bound of `true.epsilon`; infinite where D is."""
        return self._bound(self.first.larger, self.second.larger)

    @property
    def epsilon_one_way(self) -> float:
        """The same with only the direction of each divergence that the proof uses: never larger."""
        return self._bound(self.first.truth_first, self.second.believed_first)

    def _bound(self, first: float, second: float) -> float:
        order = self.believed.order
        promised = self.believed.epsilon_at(4 * order - 2)
        outer = (order - 0.5) / (order - 1) * first
        return outer + second + (2 * order - 1.5) / (2 * order - 2) * promised


def guarantee_of(losses: Sequence[FloatArray], radius: float, order: float = 5.0) -> Guarantee:
    """The guarantee of a secret whose loss matrices, one a dimension, are given: the tight bound.

    radius: in the unit of the series.
    """
    return Guarantee(float(np.sqrt(tight_bound(losses, radius))), order)


def guarantee_under(
    truth: Prior,
    secret: Secret,
    mechanism: Mechanism,
    radius: float,
    order: float = 5.0,
    *,
    dimensions: int = 1,
) -> Guarantee:
    """What a mechanism promises if this prior is the truth, whatever it was made for. Exact.

    D_lambda( R(Z | s = a) || R(Z | s = b) ) = lambda/2 (a - b)^T L_R (a - b) for any mean of R.
    radius: in the unit of the series. dimensions: of as many independent coordinates, each with
    this prior and mechanism. Raises as `trailveil.privacy.loss.loss_matrix` does.
    """
    loss = loss_matrix(truth, secret, mechanism).matrix
    return guarantee_of([loss] * _count(dimensions), radius, order)


def misspecified(
    believed: Prior,
    truth: Prior,
    secret: Secret,
    mechanism: Mechanism,
    radius: float,
    order: float = 5.0,
    *,
    confinement: float = float("inf"),
    form: Form = "values",
    dimensions: int = 1,
) -> Misspecified:
    """The paper's bound on the loss under the truth, and the exact loss.

    believed, truth: one coordinate at the same times; their means do not matter. radius: of the
    pairs that must not be told apart. confinement: the greatest distance of each location of the
    secret from some place known beforehand, same unit; the bound is infinite without it unless the
    two regressions on the secret are equal. form: "values" for the paper's, "release" for Z in the
    place of X_u: never larger. dimensions: of independent coordinates, all alike.
    """
    first, second = (
        divergences(
            believed,
            truth,
            secret,
            mechanism,
            of_order,
            confinement=confinement,
            form=form,
            dimensions=dimensions,
        )
        for of_order in (2 * order, 4 * order - 3)
    )
    known, true = (
        guarantee_under(prior, secret, mechanism, radius, order, dimensions=dimensions)
        for prior in (believed, truth)
    )
    return Misspecified(first, second, known, true)


def divergences(
    believed: Prior,
    truth: Prior,
    secret: Secret,
    mechanism: Mechanism,
    order: float,
    *,
    confinement: float = float("inf"),
    form: Form = "values",
    dimensions: int = 1,
) -> Divergences:
    """D(order) of theorem 3.3, both directions: arguments as for `misspecified`.

    Never below the truth: rounding is bounded and added, to 0.1 % of 1 + D at most, and what double
    precision cannot decide is decided in extended precision. Only released fixes count. Raises
    NumericalError where that is out of reach.
    """
    if not (order > 1 and np.isfinite(order)):
        raise InvalidValue(f"order must be a number above 1, got {order}")
    if not confinement >= 0:
        raise InvalidValue(f"confinement must be a distance of at least 0, got {confinement}")
    if not np.array_equal(believed.times, truth.times):
        raise InvalidValue("both priors must be at the same times, got others")
    noise = mechanism if form == "release" else without_noise(mechanism)
    pair = Pair(believed.for_secret(secret), truth.for_secret(secret), secret, noise)
    if not pair.comparable():
        return Divergences(order, float("inf"), float("inf"))
    count = _count(dimensions)
    pair_apart = apart(pair, order) if np.isfinite(confinement) else None
    values = (
        None
        if pair_apart is None
        else [_value(divergence, order, confinement, count) for divergence in pair_apart]
    )
    hidden = float("inf") if values is None else max(caution for _, caution in values)
    size = mechanism.rows.size + secret.size
    if values is None or hidden > (LOSS_SLACK if size <= _QUICK else LARGEST_LOSS_SLACK):
        if size > LARGEST_EXTENDED:
            raise NumericalError(
                "the divergence must be known to 0.1 %, got a wider numerical error; state a "
                "measurement noise (--noise-std) and a finite confinement"
            )
        finer = extended_apart(pair, order)
        values = [_value(divergence, order, confinement, count) for divergence in finer]
    return Divergences(order, values[0][0], values[1][0])


def _value(apart: Apart, order: float, confinement: float, dimensions: int) -> tuple[float, float]:
    """dimensions times c, and l/2 max h^T W h over h confined in all of them; caution in it.

    The caution is relative to 1 + the value: a divergence is in nats.
    """
    value, hidden = dimensions * apart.constant, dimensions * apart.hidden[0]
    if np.any(apart.quadratic) and np.isfinite(value):
        if not np.isfinite(confinement):
            return float("inf"), 0.0
        size = apart.quadratic.shape[0]
        value += order / 2 * tight_bound([apart.quadratic], confinement)
        hidden += order / 2 * size * confinement**2 * apart.hidden[1]
    return value, hidden / (1 + value) if np.isfinite(value) else 0.0


def _count(dimensions: int) -> int:
    if dimensions < 1:
        raise InvalidValue(f"there must be at least one dimension, got {dimensions}")
    return dimensions
