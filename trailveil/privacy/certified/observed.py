"""What an adversary observes, in balls: how the observed rows vary with each other and a secret.

    S = Sigma + Gamma over the released rows, Sigma + accuracy^2 I over the known ones

by the recursion where the kernel has one, else by full matrices.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue, Unavailable
from trailveil.gp.balls import BALLS, lines_of, matrix, matrix_of, stacked
from trailveil.gp.clocks import StoppedClock
from trailveil.gp.gaussian import FloatArray
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
from trailveil.privacy.certified.recursion import bits_of_times, parts, product
from trailveil.privacy.extended_loss import evaluated
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior, SideInformation
from trailveil.privacy.secrets import Secret

# Rows up to which full matrices of balls are made.
LARGEST_DENSE = 1_000


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
        fast = parts(self.prior.kernel) is not None and (
            process is None or parts(process) is not None
        )
        if not fast and self.size > LARGEST_DENSE:
            raise Unavailable(
                f"a certificate under a prior that is not Markov must have at most {LARGEST_DENSE} "
                f"points, got {self.size}: take a shorter series, or leave --certify out"
            )

    @property
    def size(self) -> int:
        """n."""
        return int(self.released.size + self.known.times.size)

    @cached_property
    def released(self) -> FloatArray:
        """The times of the released rows."""
        return np.asarray(self.prior.times[self.mechanism.rows])

    @cached_property
    def times(self) -> FloatArray:
        """The times of all rows (n,)."""
        return np.concatenate([self.released, self.known.times])

    @property
    def distinct(self) -> list[int]:
        """The rows (indices), without those that are the same as one before."""
        count = self.released.size
        released = distinct(self.prior.kernel, self.mechanism, self.released)
        return [*released, *range(count, self.size)]

    def kernel_of(self, secret: Secret) -> Kernel | None:
        """The kernel of the values that a secret is made of."""
        return self.prior.kernel if secret.recorded else latent(self.prior.kernel)

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

    def apply(self, x: Any) -> Any:
        """S x for x (n, m)."""
        rows = lines_of(x)
        products = self._sigma_times(x, rows)
        released = self.released.size
        self._add_noise(rows, products)
        accurate = BALLS.number(self.known.accuracy) ** 2
        for i in range(released, self.size):
            products[i] = products[i] + rows[i] * accurate
        return stacked(products, x.ncols())

    def _sigma_times(self, x: Any, rows: list[Any]) -> list[Any]:
        if (terms := parts(self.prior.kernel)) is not None:
            return product(terms, self.times, self.times, rows)
        return lines_of(self._sigma * x)

    @cached_property
    def _sigma(self) -> Any:
        return covariance(self.prior.kernel, self.times, self.times)

    @cached_property
    def _factor(self) -> tuple[list[int], Any]:
        """The released rows that hear the factor, and the factor there, with what refines it."""
        rows = self.mechanism.rows
        terms = [
            self.mechanism.factor[rows],
            *(self.mechanism.refinement[:, rows] if self.mechanism.refinement is not None else ()),
        ]
        heard = np.flatnonzero(np.any([np.any(term, axis=1) for term in terms], axis=0))
        total = matrix_of(terms[0][heard])
        for term in terms[1:]:
            total = total + matrix_of(term[heard])
        return heard.tolist(), total

    def _add_noise(self, rows: list[Any], sums: list[Any]) -> None:
        """Gamma times the first rows, which are the released ones, added to `found`."""
        count, floor = self.released.size, BALLS.number(self.mechanism.floor)
        if self.mechanism.floor > 0:
            for i in range(count):
                sums[i] = sums[i] + rows[i] * floor
        heard, factor = self._factor
        if heard and factor.ncols():
            columns = stacked([rows[i] for i in heard], rows[0].ncols())
            added = lines_of(factor * (factor.transpose() * columns))
            for i, row in zip(heard, added, strict=True):
                sums[i] = sums[i] + row
        process = self.mechanism.process
        if not isinstance(process, Kernel) or not count:
            return
        if (terms := parts(process)) is not None:
            added = product(terms, self.released, self.released, rows[:count])
        else:
            whole = covariance(process, self.released, self.released)
            added = lines_of(whole * stacked(rows[:count], rows[0].ncols()))
        for i, row in enumerate(added):
            sums[i] = sums[i] + row

    def matrix(self) -> Any:
        """S (n, n), in full, from the formula alone."""
        size = self.size
        units = [matrix(1, size, [int(i == j) for j in range(size)]) for i in range(size)]
        sums = lines_of(self._sigma)
        self._add_noise(units, sums)
        accurate = BALLS.number(self.known.accuracy) ** 2
        for i in range(self.released.size, size):
            sums[i] = sums[i] + units[i] * accurate
        return stacked(sums, size)

    def values(self, times: FloatArray, x: Any) -> Any:
        """Cov(recorded values at some times, rows) x (p, m), for x (n, m)."""
        if (terms := parts(self.prior.kernel)) is not None:
            return stacked(product(terms, times, self.times, lines_of(x)), x.ncols())
        return covariance(self.prior.kernel, times, self.times) * x


def between(kernel: Kernel | None, times: FloatArray, secret: Secret) -> Any:
    """Cov(values at some times, secret) (n, k); seen: the kernel that the two share."""
    weights = matrix_of(np.ascontiguousarray(secret.weights.T))
    if kernel is None or not times.size:
        return matrix(times.size, secret.size, [0] * (times.size * secret.size))
    if (terms := parts(kernel)) is not None:
        return stacked(product(terms, times, secret.times, lines_of(weights)), secret.size)
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


def secret_of_values(times: FloatArray) -> Secret:
    """The recorded values at some times (p,), each a location of one secret."""
    if not times.size:
        raise InvalidValue("there must be at least one value, got none")
    return Secret("values", times, np.eye(times.size), recorded=True)


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
