"""What an adversary observes, in balls, and what it leaves of a secret.

    S = Sigma + Gamma over the released rows, Sigma + accuracy^2 I over the known ones

With r = B - S X for any X at all,

    Q = K - B^T X - X^T r - r^T S^-1 r,      0 <= r^T S^-1 r <= |r|^2 / least eigenvalue of S

so X may come from double precision, refined with residuals computed in balls, and nothing in the
proof rests on how it was found. S has its independent noise as a least eigenvalue. Where it has
none, it is inverted in balls, with as many bits as that takes.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trailveil.errors import NumericalError, Unavailable
from trailveil.gp.balls import (
    BALLS,
    floats,
    lower,
    matrix,
    matrix_of,
    rows_of,
    within,
    working_bits,
)
from trailveil.gp.clocks import StoppedClock
from trailveil.gp.gaussian import FloatArray, regression
from trailveil.gp.kernels import (
    Constant,
    IntegratedOU,
    Kernel,
    Periodic,
    Product,
    Scaled,
    Warped,
    latent,
)
from trailveil.privacy.extended_loss import evaluated
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior, SideInformation, observe
from trailveil.privacy.secrets import Secret

# Rows up to which matrices of balls are made, and inverted: a minute where a thousand bits are
# enough.
LARGEST, LARGEST_INVERTED = 1_000, 400
# Refinements of X for each bit, each of which must make the residual smaller by this factor.
_STEPS, _GAIN = 0.1, 0.25
# Bits, of those that are carried, that a residual must have gone down by to be as good as none; and
# that it may miss by where S can be inverted.
_SQUARED, _MISSED = 0.28, 20


class TooWide(Exception):  # no failure: more bits are taken
    """The balls of a precision say nothing."""


@dataclass(frozen=True, eq=False)
class Observed:
    """The rows that an adversary sees: released ones, then those it knows to an accuracy."""

    prior: Prior
    mechanism: Mechanism
    known: SideInformation

    def __post_init__(self) -> None:
        """Refuse what the balls cannot hold."""
        process = self.mechanism.process
        if process is not None and not isinstance(process, Kernel):
            raise Unavailable("a certificate must be for noise of a known kernel, got another one")
        if self.size > LARGEST:
            raise Unavailable(
                f"a certificate must be for at most {LARGEST} points, got {self.size}: take a "
                "shorter series, or leave --certify out"
            )

    @property
    def size(self) -> int:
        """n."""
        return int(self.times.size)

    @cached_property
    def released(self) -> FloatArray:
        """The times of the released rows."""
        return np.asarray(self.prior.times[self.mechanism.rows])

    @cached_property
    def times(self) -> FloatArray:
        """The times of all rows (n,)."""
        return np.concatenate([self.released, self.known.times])

    def least(self) -> Any:
        """A lower bound of the eigenvalues of S, 0 where there is no independent noise.

        See trailveil.privacy.prior.least_eigenvalue for the formula.
        """
        white, added = self._white(), BALLS.number(self.mechanism.floor)
        if not self.known.times.size:
            return white + added
        accurate = BALLS.number(self.known.accuracy) ** 2
        if not self.released.size:
            return accurate
        most = int(np.max(np.unique(self.known.times, return_counts=True)[1]))
        second = most * white + accurate
        shared = (white * accurate + added * second) / (white + added + second)
        return shared.min(accurate).min(white + added)

    def _white(self) -> Any:
        """The least measurement noise of any row."""
        total = BALLS.number(0.0)
        at = BALLS.numbers(self.times)
        for term in self.prior.kernel.terms():
            if term.is_white():
                values = np.atleast_1d(term.formula(at, at, BALLS))
                least = values[0]
                for value in values[1:] if isinstance(term, Product) else ():
                    least = least.min(value)
                total = total + least
        return total

    @cached_property
    def matrix(self) -> Any:
        """S (n, n), from the formula alone, in the precision that is set."""
        size, count = self.size, self.released.size
        whole = rows_of(covariance(self.prior.kernel, self.times, self.times))
        factor = matrix_of(self.mechanism.factor[self.mechanism.rows])
        if self.mechanism.refinement is not None:
            for term in self.mechanism.refinement[:, self.mechanism.rows]:
                factor = factor + matrix_of(term)
        noises = [factor * factor.transpose()] if factor.ncols() else []
        if isinstance(self.mechanism.process, Kernel):
            noises.append(covariance(self.mechanism.process, self.released, self.released))
        for noise in noises:
            for row, added in zip(whole, rows_of(noise), strict=False):
                row[:count] = [a + b for a, b in zip(row, added, strict=False)]
        floor, accurate = self.mechanism.floor, BALLS.number(self.known.accuracy) ** 2
        for i in range(size):
            whole[i][i] = whole[i][i] + (floor if i < count else accurate)
        return matrix(size, size, [value for row in whole for value in row])


@dataclass(frozen=True, slots=True, eq=False)
class Remaining:
    """A secret of k locations, and p recorded values, given what is observed, as balls.

    covariance: Q (k, k). shared: Cov(value, secret) (p, k). variances: of the values (p,).
    """

    covariance: list[list[Any]]
    shared: list[list[Any]]
    variances: list[Any]


def remaining(observed: Observed, secret: Secret, points: FloatArray) -> Remaining:
    """A secret, and recorded values at some times (p,), given what is observed.

    In the precision that is set. Raises TooWide where the balls are as good as nothing, and
    NumericalError where more bits would not help.
    """
    kernel = observed.prior.kernel if secret.recorded else latent(observed.prior.kernel)
    of_values, size = observed.prior.kernel, secret.size
    weights = matrix_of(secret.weights)
    whole = rows_of(weights * _between(kernel, secret.times, secret))
    shared = rows_of(_between(kernel, points, secret))
    at = BALLS.numbers(points)
    variances = np.broadcast_to(of_values.formula(at, at, BALLS), points.shape).tolist()
    if not observed.size:
        return Remaining(whole, shared, variances)
    rows = zip(
        rows_of(_between(kernel, observed.times, secret)),
        rows_of(covariance(of_values, observed.times, points)) or [[]] * observed.size,
        strict=True,
    )
    cross = matrix(
        observed.size, size + points.size, [value for both in rows for row in both for value in row]
    )
    independent = lower(observed.least()) > 0
    refined = _refined(observed, secret, points, cross) if independent else None
    x, residual = refined or (_inverted(observed, cross), cross * 0)
    missed = _missed(residual, observed.least()) if refined else [BALLS.number(0.0)] * cross.ncols()
    # Q = K - B^T X - X^T r, of the secret with everything, and of each value with itself.
    sides, solved, residuals = (rows_of(part.transpose()) for part in (cross, x, residual))

    def after(i: int, j: int, before: Any) -> Any:
        explained = sum(map(_times, sides[i], solved[j])) + sum(
            map(_times, solved[i], residuals[j])
        )
        return before - explained + within(missed[i] * missed[j])

    k = range(size)
    return Remaining(
        [[after(i, j, whole[i][j]) for j in k] for i in k],
        [[after(i, size + p, shared[p][i]) for i in k] for p in range(points.size)],
        [after(size + p, size + p, variances[p]) for p in range(points.size)],
    )


def _times(value: Any, other: Any) -> Any:
    return value * other


def _missed(residual: Any, least: Any) -> list[Any]:
    """Upper bounds of the square roots of |r|^2 / least, of each column."""
    squares = [sum(map(_times, row, row)) for row in rows_of(residual.transpose())]
    return [(square / least).abs_upper().sqrt() for square in squares]


def _inverted(observed: Observed, cross: Any) -> Any:
    """S^-1 B in balls; of rows that are the same all but one count for nothing."""
    if observed.size > LARGEST_INVERTED:
        raise NumericalError(
            f"a certificate for more than {LARGEST_INVERTED} points must have independent noise in "
            "them that doubles can resolve, got none: state a measurement noise (--noise-std) or a "
            "floor (--floor)"
        )
    chosen = [
        *distinct(observed.prior.kernel, observed.mechanism, observed.released),
        *range(observed.released.size, observed.size),
    ]
    whole, sides = rows_of(observed.matrix), rows_of(cross)
    size, width = len(chosen), cross.ncols()
    gram = matrix(size, size, [whole[i][j] for i in chosen for j in chosen])
    try:
        solved = rows_of(gram.solve(matrix(size, width, [v for i in chosen for v in sides[i]])))
    except ZeroDivisionError as error:
        raise TooWide from error
    every: list[list[Any]] = [[0] * width] * observed.size
    for i, row in zip(chosen, solved, strict=True):
        every[i] = row
    return matrix(observed.size, width, [value for row in every for value in row])


def _refined(
    observed: Observed, secret: Secret, points: FloatArray, cross: Any
) -> tuple[Any, Any] | None:
    """X and B - S X; None where double precision is no help."""
    if observed.mechanism.refinement is not None:
        return None
    secrets = [secret]
    if points.size:
        secrets.append(Secret("values", points, np.eye(points.size), recorded=True))
    try:
        weights, solve = _started(observed, secrets)
    except NumericalError:
        return None
    x = matrix_of(weights)
    residual = cross - observed.matrix * x
    sizes = _sizes(residual)
    scale = np.concatenate([_scale(observed, each) for each in secrets])
    enough = 2.0 ** (-_SQUARED * working_bits()) * lower(observed.least().sqrt()) * scale
    for _ in range(int(_STEPS * working_bits())):
        if np.all(sizes <= enough):
            break
        finer = (x + matrix_of(solve(floats(residual)))).mid()
        remaining = cross - observed.matrix * finer
        finer_sizes = _sizes(remaining)
        if not np.sum(finer_sizes) < _GAIN * np.sum(sizes):
            break
        x, residual, sizes = finer, remaining, finer_sizes
    if observed.size <= LARGEST_INVERTED and np.any(sizes > 2.0**_MISSED * enough):
        return None
    return x, residual


def _scale(observed: Observed, secret: Secret) -> FloatArray:
    """About the deviations (k,) of the locations, the level left out."""
    base, loading = observed.prior.spread(secret)
    spread = np.sqrt(np.maximum(np.diagonal(base), 0.0))
    return np.where(spread > 0, spread, np.abs(loading))


def _sizes(balls: Any) -> FloatArray:
    """About the norms of the columns (m,)."""
    values = floats(balls)
    return np.asarray(np.sqrt(np.sum(values * values, axis=0)))


def _started(
    observed: Observed, secrets: list[Secret]
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """S^-1 B in double precision (n, k), and S^-1 as a function of columns."""
    observation = observe(observed.prior, observed.mechanism, observed.known)
    joints = [observation.joint(secret) for secret in secrets]
    inverse = regression(joints[0])

    def solve(residual: FloatArray) -> FloatArray:
        nothing = np.zeros((joints[0].loadings.shape[1], residual.shape[1]))
        return inverse(residual, nothing)

    cross = np.hstack([joint.cross for joint in joints])
    return inverse(cross, np.hstack([joint.secret_loadings.T for joint in joints])), solve


def _between(kernel: Kernel | None, times: FloatArray, secret: Secret) -> Any:
    """Cov(values at some times, secret) (n, k); kernel: that the two share."""
    if kernel is None or not times.size:
        return matrix(times.size, secret.size, [0] * (times.size * secret.size))
    weights = matrix_of(np.ascontiguousarray(secret.weights.T))
    return covariance(kernel, times, secret.times) * weights


def covariance(kernel: Kernel, a: FloatArray, b: FloatArray) -> Any:
    """kernel(a, b) (n, m) as a matrix of balls."""
    values = evaluated(kernel, BALLS.numbers(a), BALLS.numbers(b), BALLS)
    return matrix(a.size, b.size, list(values.ravel()))


def bits_needed(prior: Prior, times: FloatArray, process: object) -> int:
    """The bits in which the times of a prior and other ones are exact, on all clocks.

    Raises Unavailable for a clock that is not one that stands still now and then.
    """
    numbers = [prior.times, times]
    terms = list(prior.kernel.terms())
    terms += list(process.terms()) if isinstance(process, Kernel) else []
    while terms:
        match terms.pop():
            case Scaled(inner, _):
                terms.append(inner)
            case Product(one, other):
                terms += [one, other]
            case Warped(inner, clock):
                if not isinstance(clock, StoppedClock):
                    raise Unavailable("a certificate must be for clocks that stop, got another one")
                numbers.append(np.array(clock.windows).ravel())
                terms.append(inner)
            case IntegratedOU(origin=origin):
                numbers.append(np.array([origin]))
    edges = sum(number.size for number in numbers[2:])
    return bits_of_times(np.concatenate(numbers)) + int(np.ceil(np.log2(edges + 2)))


def bits_of_times(numbers: FloatArray) -> int:
    """The bits in which sums of some of these numbers are exact: times, edges of clocks, origins.

    All are multiples of the lowest bit set in any of them; the sums that clocks make are below
    their number times the largest.
    """
    low, high = math.inf, -math.inf
    for value in np.unique(np.abs(numbers[numbers != 0])).tolist():
        part, exponent = math.frexp(value)
        whole = int(math.ldexp(part, 53))
        low = min(low, exponent - 53 + (whole & -whole).bit_length() - 1)
        high = max(high, exponent)
    return 0 if high < low else int(high - low) + 4


def distinct(kernel: Kernel, mechanism: Mechanism, times: FloatArray) -> list[int]:
    """The released rows, at times (r,), without those that are surely the same as one before.

    Those are rows at which every term of the kernel reads the same, on a clock that stands still or
    after a whole period, with the same noise.
    """
    rows = mechanism.rows
    if mechanism.floor > 0 or mechanism.process is not None:
        return list(range(rows.size))
    terms = [mechanism.factor[rows]]
    if mechanism.refinement is not None:
        terms += list(mechanism.refinement[:, rows])
    known: set[Hashable] = set()
    indices = []
    for i, time in enumerate(times.tolist()):
        key = (_read(kernel, time), *(term[i].tobytes() for term in terms))
        if key not in known:
            indices.append(i)
        known.add(key)
    return indices


def _read(kernel: Kernel, time: float) -> Hashable:
    """What a kernel depends on at a time: two times with the same have the same value there."""
    terms = kernel.terms()
    if len(terms) > 1:
        return tuple(_read(term, time) for term in terms)
    reading: Hashable = time
    match kernel:
        case Constant():
            reading = ()
        case Periodic(period=period):
            reading = math.fmod(time, period)
        case Scaled(inner, _):
            reading = _read(inner, time)
        case Product(one, other):
            reading = _read(one, time), _read(other, time)
        case Warped(_, clock):
            reading = str(clock(BALLS.number(time)).man_exp())
    return reading
