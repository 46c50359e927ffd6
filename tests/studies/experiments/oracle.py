"""The experiments once more, by mpmath and the formulas themselves: nothing of the package in it.

Matrices are object arrays of mpmath numbers with 250 digits, solved by plain elimination.
"""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
from scipy.optimize import brentq

mp = mpmath.mp.clone()
mp.dps = 250

Matrix = Any  # an object array of mpmath numbers

KERNELS: dict[str, Callable[[Any, Any], Any]] = {
    "rbf": lambda d, scale: mp.exp(-d * d / (2 * scale**2)),
    "periodic": lambda d, scale: mp.exp(-2 * mp.sin(mp.pi * (d % 24) / 24) ** 2 / scale**2),
}


def covariance(kernel: str, count: int, scale: float) -> Matrix:
    """Sigma of unit variance at 0, 1, ..., count - 1."""
    values = [KERNELS[kernel](mp.mpf(d), mp.mpf(scale)) for d in range(count)]
    return np.array([[values[abs(i - j)] for j in range(count)] for i in range(count)])


def eliminated(matrix: Matrix, rhs: Matrix) -> Matrix:
    """[L^T D, L^-1 rhs] for a symmetric matrix = L D L^T (n, n) and rhs (n, m)."""
    work = np.concatenate([matrix, rhs], axis=1)
    for i in range(matrix.shape[0]):
        for j in range(i + 1, matrix.shape[0]):
            work[j, j:] = work[j, j:] - work[i, j] / work[i, i] * work[i, j:]
    return work


def solved(matrix: Matrix, rhs: Matrix) -> Matrix:
    """matrix^-1 rhs for a symmetric matrix (n, n) and rhs (n, m)."""
    size = matrix.shape[0]
    work = eliminated(matrix, rhs)
    x = work[:, size:]
    for i in reversed(range(size)):
        x[i] = (x[i] - work[i, i + 1 : size].dot(x[i + 1 :])) / work[i, i]
    return x


def identity(size: int) -> Matrix:
    return np.array([[mp.mpf(int(i == j)) for j in range(size)] for i in range(size)])


def posterior(sigma: Matrix, gamma: Matrix, at: Sequence[int]) -> Matrix:
    """Q of the values `at` (of many, only the diagonal).

    Fixes released twice with the same noise count once.
    """
    observed = sigma + gamma
    distinct: list[int] = []
    for i in range(sigma.shape[0]):
        if not any(same(observed[i], observed[j]) for j in distinct):
            distinct.append(i)
    work = eliminated(observed[np.ix_(distinct, distinct)], sigma[np.ix_(distinct, at)])
    shown, pivots = work[:, len(distinct) :], np.diagonal(work)
    if len(at) > 2:  # the variances are all that is asked for
        return np.diag(np.diagonal(sigma)[at] - (shown * shown / pivots[:, None]).sum(axis=0))
    return sigma[np.ix_(at, at)] - (shown.T / pivots).dot(shown)


def same(row: Matrix, other: Matrix) -> bool:
    return all(abs(x - y) < mp.mpf(10) ** -200 for x, y in zip(row, other, strict=True))


def least_eigenvalue(matrix: Matrix) -> Any:
    """Of a symmetric matrix of one or two rows; accurate where it is tiny."""
    if matrix.shape[0] == 1:
        return matrix[0, 0]
    half = (matrix[0, 0] + matrix[1, 1]) / 2
    spread = mp.sqrt(((matrix[0, 0] - matrix[1, 1]) / 2) ** 2 + matrix[0, 1] ** 2)
    return half - spread


def interval(sigma: Matrix, gamma: Matrix, secret: Sequence[int]) -> float:
    """2 sqrt(mineig Q), or for no secret, 2 sqrt(mean of all variances)."""
    if secret:
        return float(2 * mp.sqrt(abs(least_eigenvalue(posterior(sigma, gamma, list(secret))))))
    variances = np.diagonal(posterior(sigma, gamma, list(range(sigma.shape[0]))))
    return float(2 * mp.sqrt(sum(variances) / len(variances)))


def sdp_a(sigma: Matrix, secret: Sequence[int], budget: float, factor: float) -> Matrix:
    """Gamma of SDP_A in closed form, designed at `factor` times the budget.

    M = beta I - K0, K0 = R^-1 A^T Sigma_{u|s} A R^-1, beta = (T + tr(R K0)) / tr(R); the secret
    gets the mean of diag(M), the rest A M A^T. Only for M >= 0, which is checked.
    """
    size, at = sigma.shape[0], list(secret)
    others = [i for i in range(size) if i not in at]
    a = solved(sigma[np.ix_(at, at)], sigma[np.ix_(at, others)]).T
    conditional = sigma[np.ix_(others, others)] - a.dot(sigma[np.ix_(at, others)])
    strength = identity(len(at)) + a.T.dot(a)
    inverse = solved(strength, identity(len(at)))
    open_part = inverse.dot(a.T.dot(conditional).dot(a)).dot(inverse)
    total = mp.mpf(factor) * mp.mpf(budget)
    trace = np.trace(strength.dot(open_part))
    m = (total + trace) / np.trace(strength) * identity(len(at)) - open_part
    if least_eigenvalue(m) < 0:
        raise ValueError("M is not positive semidefinite: this closed form does not hold")
    m = m / mp.mpf(factor)
    gamma = identity(size) * 0
    gamma[np.ix_(others, others)] = a.dot(m).dot(a.T)
    for i in at:
        gamma[i, i] = np.trace(m) / len(at)
    return gamma


def independent(size: int, secret: Sequence[int], trace: float) -> Matrix:
    """Independent noise of one variance on these values."""
    gamma = identity(size) * 0
    for i in secret:
        gamma[i, i] = mp.mpf(trace) / len(secret)
    return gamma


def one_direction(sigma: Matrix, cross: Matrix, trace: Any) -> Matrix:
    """T v v^T / v^T v, v = (Sigma + T I)^-1 b: the optimum for one value, b (n,)."""
    size = sigma.shape[0]
    v = solved(sigma + mp.mpf(trace) * identity(size), cross[:, None])[:, 0]
    return mp.mpf(trace) * np.outer(v, v) / v.dot(v)


def optimum(sigma: Matrix, secret: Sequence[int], trace: float) -> Matrix:
    """The noise of least loss for one value, or for two that a symmetry of Sigma exchanges.

    For two, averaging a noise with its mirror image costs nothing and loses no privacy, so the loss
    is diagonal for (s1 + s2) / sqrt 2 and (s1 - s2) / sqrt 2, whose own optima do not disturb each
    other: what is left is the share of the trace at which their losses are equal.
    """
    if len(secret) == 1:
        return one_direction(sigma, sigma[:, secret[0]], trace)
    first, second = (sigma[:, i] for i in secret)
    crosses = [(first + second) / mp.sqrt(2), (first - second) / mp.sqrt(2)]
    variances = [1 + sigma[secret[0], secret[1]], 1 - sigma[secret[0], secret[1]]]
    spectrum, basis = np.linalg.eigh(sigma.astype(np.float64))
    squares = [(basis.T @ cross.astype(np.float64)) ** 2 for cross in crosses]

    def loss(part: int, noise: float) -> float:
        remaining = float(variances[part]) - float(np.sum(squares[part] / (spectrum + noise)))
        return 1 / remaining - 1 / float(variances[part])

    share = brentq(
        lambda x: loss(0, x * trace) - loss(1, (1 - x) * trace), 1e-9, 1 - 1e-9, xtol=1e-14
    )
    parts = zip(crosses, (share, 1 - share), strict=True)
    return sum(one_direction(sigma, cross, mp.mpf(x) * mp.mpf(trace)) for cross, x in parts)
