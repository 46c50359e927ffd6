"""Columns of noise: written alike on every computer, and in the digits that a smooth prior demands.

A covariance Gamma = F F^T has many factors F. A key must draw the same noise on every computer, so
the one taken here has no sign or order to choose: the symmetric square root of Gamma, or, for low
rank, the factor that a stated reference turns into a symmetric matrix.

A prior without measurement noise knows some combinations of the fixes to 1e-40 and undoes a factor
that is rounded to 53 bits. It does not undo combinations of its own columns, Sigma C with C in
double precision: an error in C only moves the noise to other combinations of the same columns.
Those are evaluated in extended precision, and written as sums of float64 terms
(Mechanism.refinement). The terms of columns already written may be combined again. A single best
direction, which is no such combination, is computed again in extended precision: at RBF length
scale 6.1 and 50 points, rounding it to 53 bits turns a loss of 7.7 into 1e9.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh, svd

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.extended import LARGEST_EXTENDED, Extended, Objects, solve
from trailveil.gp.gaussian import TARGET_TOLERANCE, UNIT_ROUNDOFF, FloatArray
from trailveil.privacy.extended_loss import joint_covariance
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, Prior
from trailveil.privacy.secrets import Secret

# Precision of the evaluation, and the float64 terms that hold nearly all of it: 18 x 53 = 954.
_BITS, _TERMS = 1024, 18
# Numbers of terms of one direction that are tried in turn.
_TRIED = (4, 8, _TERMS)


def symmetric_root(covariance: FloatArray) -> FloatArray:
    """The symmetric positive semidefinite square root (n, n): unique, and continuous.

    Eigenvalues that are zero or negative to rounding count as zero. An eigenvector factor would be
    smaller, but its signs, and where eigenvalues are equal its vectors, depend on the library.
    """
    spectrum, basis = eigh((covariance + covariance.T) / 2)
    least = spectrum.size * UNIT_ROUNDOFF * max(float(spectrum[-1]), 0.0) if spectrum.size else 0.0
    positive = np.where(spectrum > least, spectrum, 0.0)
    root = (basis * np.sqrt(positive)) @ basis.T
    return np.asarray((root + root.T) / 2)


def turn(factor: FloatArray, reference: FloatArray) -> FloatArray:
    """The orthogonal O (r, q) that makes reference^T factor O symmetric positive semidefinite.

    factor: F (n, r). reference: (n, q), q >= r. F O is a factor of the same covariance whatever
    orthogonal matrix was in F before.
    """
    u, _, right = svd(reference.T @ factor, full_matrices=False)
    return np.asarray(right.T @ u.T)


def canonical(direction: FloatArray) -> FloatArray:
    """The direction with its sign fixed: the sum positive, or the largest entry if that is about 0.

    Two computers must draw the same noise from the same key.
    """
    total, size = float(direction.sum()), float(np.abs(direction).sum())
    sign = total if abs(total) > 1e-6 * size else float(direction[np.argmax(np.abs(direction))])
    return direction if sign > 0 else -direction


def needs_digits(prior: Prior, variance: float, existing: Mechanism | None = None) -> bool:
    """Whether this prior undoes noise of this variance (the largest of any fix) rounded to 53 bits.

    existing: what is released, with noise that is there already; None for all, without any. False
    where the series is too long for extended precision: the loss then says what is left.
    """
    count = prior.times.size if existing is None else existing.rows.size
    independent = prior.noise_variance + (0.0 if existing is None else existing.floor)
    rounding = count * UNIT_ROUNDOFF * variance
    return count <= LARGEST_EXTENDED and rounding > TARGET_TOLERANCE * independent


def prior_columns(prior: Prior, coefficients: FloatArray) -> FloatArray:
    """Sigma C as float64 terms (terms, n, r), largest first. coefficients: C (n, r), exact."""
    m = Extended(_BITS)
    used = np.flatnonzero(np.any(coefficients != 0, axis=1))
    times, at = m.numbers(prior.times), m.numbers(prior.times[used])
    formula = prior.kernel.formula(times[:, None], at[None, :], m)
    sigma = np.array(np.broadcast_to(formula, (times.size, at.size)), dtype=object)
    return _terms(_product(m.fixed(sigma), _fixed(m, coefficients[used])))


def combined_columns(mechanisms: Sequence[Mechanism], coefficients: FloatArray) -> FloatArray:
    """[F_1 ... F_m] C as float64 terms (terms, n, r), every F_i with all of its digits.

    coefficients: C (columns of all F_i together, r). Floors and processes of the mechanisms are not
    read.
    """
    m = Extended(_BITS)
    columns = np.concatenate([_columns(m, mechanism) for mechanism in mechanisms], axis=1)
    return _terms(_product(columns, _fixed(m, coefficients)))


def spanned(prior: Prior, coefficients: FloatArray, columns: FloatArray) -> Mechanism:
    """The mechanism with the factor [columns, Sigma C], in more than 53 bits where it is needed.

    columns: (n, q), exact as they stand. coefficients: C (n, r); rows of Sigma C on which any of
    `columns` is not zero are left out (the paper's independent noise on the secret).
    """
    inside = np.any(columns != 0, axis=1)
    used = np.flatnonzero(np.any(coefficients != 0, axis=1))
    rough = prior.kernel(prior.times, prior.times[used]) @ coefficients[used]
    rough[inside] = 0.0
    mechanism = Mechanism(prior.times, np.hstack([columns, rough]))
    if not needs_digits(prior, mechanism.max_std**2):
        return mechanism
    terms = prior_columns(prior, coefficients)
    terms[:, inside] = 0.0
    padded = np.concatenate([np.zeros((len(terms), *columns.shape)), terms], axis=2)
    padded[0, :, : columns.shape[1]] = columns
    return written(prior.times, padded)


def written(times: FloatArray, terms: FloatArray) -> Mechanism:
    """The mechanism whose factor is the sum of these terms (p, n, r), largest first."""
    return Mechanism(times, terms[0], refinement=terms[1:])


def without_process(mechanism: Mechanism) -> Mechanism:
    """The same mechanism; InvalidValue where it has a process, or withholds rows."""
    if mechanism.process is not None or not np.all(mechanism.released):
        raise InvalidValue(
            "the noise must be a factor and a floor on every row, got a process or withheld rows"
        )
    return mechanism


def refined(
    prior: Prior,
    secret: Secret,
    mechanism: Mechanism,
    direction: Callable[[Extended], Objects],
    trace: float,
    ideal: float,
) -> Mechanism:
    """The mechanism with its last column in as many digits as its loss needs to be `ideal` to 1e-9.

    direction: the exact direction over the released rows, in fixed point. trace: of that column.
    Unchanged where double precision is enough, or where n is out of reach of extended precision.
    """
    if mechanism.rows.size > LARGEST_EXTENDED:
        return mechanism
    if _loss(prior, secret, mechanism) <= ideal * (1 + TARGET_TOLERANCE):
        return mechanism
    m = Extended(_BITS)
    vector = direction(m)
    squared = sum(v * v for v in vector)
    root = m.context.sqrt(m.number(trace) / m.context.mpf(int(squared)))
    exact = m.fixed(np.array([m.context.mpf(int(v)) * root for v in vector], dtype=object))
    rough = mechanism.factor[mechanism.rows, -1]
    largest = int(np.argmax(np.abs(rough)))
    if (exact[largest] > 0) != (rough[largest] > 0):
        exact = -exact
    for terms in _TRIED:
        finer = _with_column(mechanism, _terms(exact)[:terms])
        if _loss(prior, secret, finer) <= ideal * (1 + TARGET_TOLERANCE):
            return finer
    raise NumericalError(
        "the noise direction must keep its loss when written down, got none that does; "
        "state a measurement noise (--noise-std) or a noise floor (--floor)"
    )


def shifted_direction(
    prior: Prior, secret: Secret, existing: Mechanism, shift: float
) -> Callable[[Extended], Objects]:
    """(Sigma + Gamma_existing + shift I)^-1 b over the released rows, in fixed point."""

    def direction(m: Extended) -> Objects:
        joint = joint_covariance(m, prior, secret, existing, NOTHING_KNOWN)
        count = existing.rows.size
        matrix, cross = joint[:count, :count], joint[:count, count]
        for i in range(count):
            matrix[i, i] += m.number(shift)
        scale = max(abs(matrix[i, i]) for i in range(count))
        return solve(m.fixed(matrix / scale), m.fixed(cross / scale), m.bits)

    return direction


def _loss(prior: Prior, secret: Secret, mechanism: Mechanism) -> float:
    try:
        return loss_matrix(prior, secret, mechanism).largest
    except NumericalError:
        return float("inf")


def _with_column(mechanism: Mechanism, terms: FloatArray) -> Mechanism:
    """The mechanism with its last column replaced by the expansion (p, rows)."""
    factor = mechanism.factor.copy()
    finer = np.zeros((terms.shape[0] - 1, *factor.shape))
    factor[mechanism.rows, -1] = terms[0]
    finer[:, mechanism.rows, -1] = terms[1:]
    return replace(mechanism, factor=factor, refinement=finer)


def _columns(m: Extended, mechanism: Mechanism) -> Objects:
    """The factor with all of its terms, in fixed point."""
    terms = [mechanism.factor]
    if mechanism.refinement is not None:
        terms.extend(mechanism.refinement)
    total = _fixed(m, terms[0])
    for term in terms[1:]:
        total = total + _fixed(m, term)
    return total


def _fixed(m: Extended, values: FloatArray) -> Objects:
    """Floats as integers in units of 2^-bits."""
    return m.fixed(m.numbers(values))


def _product(first: Objects, right: Objects) -> Objects:
    """The product of two matrices in fixed point."""
    return np.asarray(first.dot(right) >> _BITS, dtype=object)


def _terms(fixed: Objects) -> FloatArray:
    """Fixed-point numbers (n, r) as sums of float64 terms (terms, n, r), largest first."""
    terms = [_split(int(value)) for value in fixed.ravel()]
    split = np.array(terms, dtype=np.float64).reshape(*fixed.shape, _TERMS)
    return np.moveaxis(split, -1, 0)


def _split(value: int) -> list[float]:
    """The leading 18 x 53 bits of an integer in units of 2^-bits, 53 bits a term."""
    sign, remainder, terms = (-1 if value < 0 else 1), abs(value), []
    for _ in range(_TERMS):
        shift = max(remainder.bit_length() - 53, 0)
        head = remainder >> shift
        terms.append(math.ldexp(sign * head, shift - _BITS))
        remainder -= head << shift
    return terms
