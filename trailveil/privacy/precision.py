"""What an adversary knows of a secret before the release: P^-1, P = Var(s | all that is known)."""

import numpy as np

from trailveil.errors import NumericalError
from trailveil.gp.extended import LARGEST_EXTENDED
from trailveil.gp.gaussian import UNIT_ROUNDOFF, FloatArray, inverse_of, rounding
from trailveil.gp.kernels import latent, split
from trailveil.privacy.extended_loss import extended_precision, no_secret
from trailveil.privacy.markov import covariance_product
from trailveil.privacy.mechanism import no_release
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation, observe
from trailveil.privacy.secrets import Secret

# Units of rounding of a few operations with numbers of one size.
_FEW = 16.0


def known_precision(
    judge: Prior, secret: Secret, known: SideInformation = NOTHING_KNOWN
) -> tuple[FloatArray, float]:
    """P^-1 (k, k) and a bound of the norm of its error; judge: the prior that judges the secret.

    Raises InvalidValue where a direction has no variance: there is no secret there.
    """
    if known.times.size == 0:
        return _prior_precision(judge, secret)
    before = observe(judge, no_release(judge.times), known).posterior(secret)
    try:
        precision, error = inverse_of(before.covariance + before.doubt * np.eye(secret.size))
    except NumericalError as singular:
        raise no_secret() from singular
    return precision, error + 2 * before.doubt * float(np.linalg.norm(precision, 2)) ** 2


def known_variances(
    judge: Prior, secret: Secret, known: SideInformation = NOTHING_KNOWN
) -> FloatArray:
    """The diagonal of P (k,), from above."""
    if known.times.size:
        before = observe(judge, no_release(judge.times), known).posterior(secret)
        return np.asarray(np.diagonal(before.covariance) + before.slack)
    variances, scale = judge.variances(secret), judge.scale(secret)
    variances = variances + rounding(secret.times.size) * (variances if scale is None else scale**2)
    return np.asarray(variances * (1 + _FEW * UNIT_ROUNDOFF))


def given_one_value(judge: Prior, secret: Secret, times: FloatArray, accuracy: float) -> FloatArray:
    """Var(s | one recorded value known to an accuracy) (p, k, k), for each of p times, from above.

    With x the value and s = v x + e, v the level of the secret, a common level is in x alone and
    cancels nothing:  Var(x) = a + l,  Cov(e, x) = c,  Var(e) = D,  T = a + l + accuracy^2,

        Var(s | y) = D - c c^T / T + (v c^T + c v^T) accuracy^2 / T + v v^T (a + l) accuracy^2 / T
    """
    base, _ = judge.spread(secret)
    kernel = judge.kernel if secret.recorded else latent(judge.kernel)
    smooth, level = (None, 0.0) if kernel is None else split(kernel)
    values, _ = split(judge.kernel)
    alone = np.zeros(times.size) if values is None else values.diagonal(times)
    shared = np.zeros((times.size, secret.size))
    if smooth is not None:
        shared = covariance_product(smooth, times, secret.times, secret.weights.T)
    v = secret.level if level > 0 else np.zeros(secret.size)
    size = np.trace(base) + alone * (1 + np.sum(v**2)) + np.sum(np.abs(shared), axis=1)
    doubt = rounding(secret.times.size) * size + _FEW * UNIT_ROUNDOFF * accuracy**2
    c, both = shared - alone[:, None] * v, v[:, None] * v
    row, column = c[:, :, None], c[:, None, :]
    known = shared[:, :, None] * v + shared[:, None, :] * v[:, None]
    alone, doubt = alone[:, None, None], doubt[:, None, None]
    total = alone + level + accuracy**2
    share = accuracy**2 / total
    conditional = base - known + alone * both - row * column / total
    conditional += share * (row * v + column * v[:, None] + (alone + level) * both)
    return np.asarray(conditional + doubt * np.eye(secret.size))


def _prior_precision(judge: Prior, secret: Secret) -> tuple[FloatArray, float]:
    base, loading = judge.spread(secret)
    scale = judge.scale(secret)
    variances = np.diagonal(base) if scale is None else scale**2
    rounded = rounding(secret.times.size) * float(np.sum(variances))
    try:
        return inverse_with_levels(base, loading[:, None], rounded)
    except NumericalError as error:
        if secret.times.size > LARGEST_EXTENDED:
            raise no_secret() from error
        exact = extended_precision(judge, secret)
        return exact, _FEW * UNIT_ROUNDOFF * float(np.linalg.norm(exact, 2))


def inverse_with_levels(
    base: FloatArray, moved: FloatArray, rounded: float
) -> tuple[FloatArray, float]:
    """(base + moved moved^T)^-1 (k, k) and a bound of the norm of its error.

    moved: how levels of the series move the secret (k, q). rounded: the norm of the rounding of the
    base. In a basis that ends with the directions of the levels, so that a large level meets
    nothing small. Raises NumericalError where double precision cannot invert it.
    """
    vectors, sizes, _ = np.linalg.svd(moved, full_matrices=True)
    rank = int(np.sum(sizes > 0)) if moved.shape[1] else 0
    basis = np.roll(vectors, -rank, axis=1)
    pulled = basis.T @ moved
    pulled[: basis.shape[1] - rank] = 0.0  # but for rounding it is
    inverse, error = inverse_of(basis.T @ base @ basis + pulled @ pulled.T)
    size = float(np.linalg.norm(inverse, 2))
    # Rounding of P0 by e I moves P^-1 by P^-1 e P^-1; the level's is relative to its own size.
    error += 2 * rounded * size**2 + _FEW * UNIT_ROUNDOFF * size
    return np.asarray(basis @ inverse @ basis.T), error
