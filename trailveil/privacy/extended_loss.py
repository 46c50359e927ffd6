"""The loss matrix in extended precision: for priors without measurement noise."""

from typing import Any

import numpy as np

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.arithmetic import Arithmetic
from trailveil.gp.extended import (
    START_BITS,
    Extended,
    Objects,
    TooFewBits,
    eliminate,
    stable,
    zero_pivot,
)
from trailveil.gp.gaussian import LARGEST_LOSS, FloatArray
from trailveil.gp.kernels import (
    RBF,
    Constant,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    Scaled,
    Sum,
    White,
    latent,
)
from trailveil.privacy.mechanism import Mechanism, no_release
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation
from trailveil.privacy.secrets import Secret

# What vanishes in this many bits is zero.
_DECIDED = 4 * START_BITS

_STATIONARY = (RBF, Periodic, Matern12, Matern32, Matern52, Constant, White)


def extended_loss(
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    known: SideInformation,
    *,
    apart: bool = False,
) -> FloatArray:
    """L (k, k), correct to double precision whatever the condition of the prior.

    apart: each location judged as a secret of its own, so that L is diagonal. O((n + k)^3) in
    Python integers.
    """

    def compute(bits: int) -> FloatArray:
        m = Extended(bits)
        joint = joint_covariance(m, prior, secret, mechanism, known)
        return loss_in(m, joint, mechanism.rows.size, known.times.size, apart=apart)

    loss = stable(compute)
    if not np.max(np.abs(loss)) < LARGEST_LOSS:
        raise _determined()
    return loss


def loss_in(
    m: Extended, joint: Objects, released: int, known: int, *, apart: bool = False
) -> FloatArray:
    """L (k, k) from the joint covariance of released values, known values and a secret.

    apart: each location judged as a secret of its own. Raises TooFewBits where this precision
    cannot tell whether the secret is determined, NumericalError where it is, InvalidValue where it
    is without the release.
    """
    scale = max(abs(value) for value in np.diagonal(joint))
    fixed = m.fixed(joint / scale)
    before = _inverse(m, eliminate(fixed[released:, released:], known, m.bits), apart=apart)
    after = _inverse(m, eliminate(fixed, released + known, m.bits), apart=apart)
    if (before is None or after is None) and m.bits < _DECIDED:
        raise TooFewBits
    if before is None:
        raise no_secret()
    if after is None:
        raise _determined()
    return np.asarray(((after - before) / scale).astype(np.float64))


def extended_precision(prior: Prior, secret: Secret) -> FloatArray:
    """P^-1 (k, k), correct to double precision; InvalidValue where P is singular."""
    nothing = no_release(prior.times)

    def compute(bits: int) -> FloatArray:
        m = Extended(bits)
        matrix = joint_covariance(m, prior, secret, nothing, NOTHING_KNOWN)
        scale = max(abs(v) for v in np.diagonal(matrix))
        if not scale:
            raise no_secret()
        inverse = _inverse(m, m.fixed(matrix / scale), apart=False)
        if inverse is None:
            raise no_secret()
        return np.asarray((inverse / scale).astype(np.float64))

    return stable(compute)


def joint_covariance(
    m: Extended, prior: Prior, secret: Secret, mechanism: Mechanism, known: SideInformation
) -> Objects:
    """The joint covariance of released values, known values and secret, in the arithmetic m."""
    rows, count = mechanism.rows, mechanism.rows.size
    times = np.concatenate([prior.times[rows], known.times])
    shared = prior.kernel if secret.recorded else latent(prior.kernel)
    if shared is None:
        raise InvalidValue(
            "a place must vary under the prior, got a prior of measurement noise alone"
        )
    observed, at = m.numbers(times), m.numbers(secret.times)
    data = evaluated(prior.kernel, observed, observed, m)
    data[:count, :count] += _noise(m, mechanism)
    for i in range(count, times.size):
        data[i, i] += m.number(known.accuracy) ** 2
    weights = m.numbers(secret.weights.T)
    cross = evaluated(shared, observed, at, m).dot(weights)
    variance = weights.T.dot(evaluated(shared, at, at, m)).dot(weights)
    return np.block([[data, cross], [cross.T, variance]])


def _noise(m: Extended, mechanism: Mechanism) -> Objects:
    """Gamma over the released rows."""
    rows = mechanism.rows
    factor = m.numbers(mechanism.factor[rows])
    if mechanism.refinement is not None:
        for term in mechanism.refinement:
            factor = factor + m.numbers(term[rows])
    gamma = _outer(factor, m)
    if mechanism.process is not None:
        at = m.numbers(mechanism.times[rows])
        gamma = gamma + mechanism.process.formula(at[:, None], at[None, :], m)
    for i in range(rows.size):
        gamma[i, i] += m.number(mechanism.floor)
    return gamma


def _outer(factor: Objects, m: Extended) -> Objects:
    size = factor.shape[0]
    if factor.shape[1] == 0:
        return np.full((size, size), m.number(0.0), dtype=object)
    return np.asarray(factor.dot(factor.T), dtype=object)


def evaluated(kernel: Kernel, a: Objects, b: Objects, m: Arithmetic) -> Objects:
    """kernel(a, b) (n, m) for numbers of m; a stationary kernel once for each distance."""
    shape = (a.size, b.size)
    if not a.size or not b.size or not _is_stationary(kernel):
        return _array(kernel.formula(a[:, None], b[None, :], m), shape)
    distances = abs(a[:, None] - b[None, :])
    places: dict[Any, int] = {}
    which = [places.setdefault(distance, len(places)) for distance in distances.ravel()]
    zero = np.array([m.number(0.0)], dtype=object)
    values = _array(kernel.formula(np.array(list(places), dtype=object), zero, m), (len(places),))
    return np.asarray(values[which].reshape(shape))


def _array(values: Any, shape: tuple[int, ...]) -> Objects:
    return np.array(np.broadcast_to(values, shape), dtype=object)


def _is_stationary(kernel: Kernel) -> bool:
    """Whether the kernel is known to depend on the distance of its inputs alone."""
    match kernel:
        case Sum(parts):
            return all(_is_stationary(part) for part in parts)
        case Product(one, other):
            return _is_stationary(one) and _is_stationary(other)
        case Scaled(inner, _):
            return _is_stationary(inner)
    return isinstance(kernel, _STATIONARY)


def _inverse(m: Extended, fixed: Objects, *, apart: bool) -> Objects | None:
    """The inverse of a fixed-point covariance, as numbers; None where it is singular.

    Of [[A, I], [I, 0]] it is what elimination of A leaves, with the other sign. apart: the inverse
    of the diagonal alone.
    """
    size, bits = fixed.shape[0], m.bits
    unit = np.full((size, size), 0, dtype=object)
    unit[np.diag_indices(size)] = 1 << bits
    if apart:
        variances = np.diagonal(fixed)
        if min(variances) <= zero_pivot(bits):
            return None
        inverse = np.where(unit, (1 << 2 * bits) // variances, 0)
    else:
        try:  # a pivot of 0 meets the 1 beside it
            inverse = -eliminate(np.block([[fixed, unit], [unit, 0 * unit]]), size, bits)
        except TooFewBits:
            return None
        inverse = np.triu(inverse) + np.triu(inverse, 1).T  # no more is right
    return np.asarray(
        np.frompyfunc(lambda v: m.context.ldexp(m.context.mpf(v), -bits), 1, 1)(inverse)
    )


def _determined() -> NumericalError:
    return NumericalError(
        "the secret must be uncertain after what is released, got one that is known (infinite loss)"
    )


def no_secret() -> InvalidValue:
    """The refusal of a secret that the prior knows already."""
    return InvalidValue(
        "every direction of the secret must have variance, got one without: "
        "it is known already, so there is no secret in it"
    )
