"""What observed rows leave open of a secret, as a sum of squares: sharp for series of any length.

The variance of the residual s - W^T Z of any weights W is at least Var(s | Z), and exceeds it by

    R^T S^-1 R,     R = Cov(Z, s - W^T Z),     S the covariance of Z

(trailveil.gp.gaussian.posterior). As a difference of covariances it loses what cancels: the square
of the kilometres that somebody may have gone since the origin, times the rounding of a sum over all
rows. But a Markov series is made of independent steps, and the variance of the residual is the sum

    sum_k l_k^T Q_k l_k,     l_k the pull of the residual on the state at k, by recursion backwards,

in which every term is positive, and in which the pull is felt near the secret only.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from trailveil.errors import InvalidValue
from trailveil.gp.chains import Chain, applied, chain
from trailveil.gp.gaussian import (
    MOST_REFINEMENTS,
    REFINEMENT_GAIN,
    UNIT_ROUNDOFF,
    FloatArray,
    Joint,
    Posterior,
    System,
    cholesky_factor,
    posterior,
)
from trailveil.gp.statespace import begins_in_time
from trailveil.privacy.markov import MarkovSystem, fix_starts
from trailveil.privacy.secrets import Secret

# How an error of a state spreads: no transition F(h) has a spectral norm above sqrt 2.
_GROWTH = 1.5
# Operations behind each number of a recursion, sums over its state included, rounded up.
_OPERATIONS = 16
# What relative errors of the entries of Q may do to l^T Q l, relative: Q of a short step of
# Matern 5/2 is as near to singular as this.
_CANCELLING = 1_000
# Sums of so many products are left to the library, in whatever order it likes.
_BLOCK = 128


@dataclass(frozen=True, slots=True, eq=False)
class _Share:
    """One source's share in a residual: its variance (k, k), its covariance with rows and points.

    cross: (n + p, k). spread: (k,), the deviation by which rounding may have moved the residual.
    slip: (n + p, k), the rounding of `cross` beyond that.
    """

    variance: FloatArray
    cross: FloatArray
    spread: FloatArray
    slip: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class SingleValues:
    """Single values of the series, asked for besides the secret.

    times: (p,) seconds. recorded: with the measurement noise of their fixes. loading: (m,), what
    each of them has of the joint's loadings: the common level.
    """

    times: FloatArray
    recorded: bool
    loading: FloatArray


def markov_posterior(joint: Joint, secret: Secret) -> Posterior:
    """Var(s | Z) as `gp.gaussian.posterior` gives it, with far smaller error bounds; O(n).

    joint: of this secret, with rows that are observed as a MarkovSystem. The weights are refined by
    their residual as it is evaluated here, as long as that helps. A secret from before the origin
    of an integrated series has no such form, and is left to the general one.
    """
    if not isinstance(joint.system, MarkovSystem):
        raise InvalidValue("the rows must be observed as a Markov system, got full matrices")
    if not all(
        begins_in_time(part, np.sort(secret.times)) for part in joint.system.rows.components
    ):
        return posterior(joint)
    return residual_of(Sources(joint, secret), joint)[0]


def residual_of(sources: "Sources", joint: Joint) -> tuple[Posterior, FloatArray]:
    """The posterior, and the posterior covariance of secret and points (p, k)."""
    solve, count = _solver(joint), joint.system.size
    weights = solve(joint.cross, joint.secret_loadings.T)
    nothing = np.zeros_like(joint.secret_loadings.T)
    shares = sources.shares(weights)
    for _ in range(MOST_REFINEMENTS):
        residual = _total(shares)[:count]
        finer = weights + solve(residual, nothing)
        trial = sources.shares(finer)
        if not np.sum(_total(trial)[:count] ** 2) < REFINEMENT_GAIN * np.sum(residual**2):
            break
        weights, shares = finer, trial
    covariance = np.sum([share.variance for share in shares], axis=0)
    covariance = (covariance + covariance.T) / 2  # both halves are the same sums, rounded apart
    posterior = Posterior(covariance, _slack(shares, joint.system), weights)
    return posterior, _total(shares)[count:] - sources.of_points(
        solve(_total(shares)[:count], nothing)
    )


def _solver(joint: Joint) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """(C, Y) -> (S + U U^T)^-1 (C + U Y), by Woodbury around S.

    The columns of U are turned until they are orthogonal, which U U^T does not see: noise that is
    alike at every row has the direction of the level, and would be lost beside it.
    """
    system, turn = joint.system, np.linalg.svd(joint.loadings, full_matrices=False)[2]
    loadings = joint.loadings @ turn.T
    directions = system.solve(loadings)
    capacity = cholesky_factor(np.eye(loadings.shape[1]) + loadings.T @ directions)

    def solve(cross: FloatArray, loaded: FloatArray) -> FloatArray:
        base = system.solve(cross)
        pulled = cho_solve((capacity, True), turn @ loaded - loadings.T @ base)
        return np.asarray(base + directions @ pulled)

    return solve


def _total(shares: list[_Share]) -> FloatArray:
    """R, then the covariance of the residual with the points (n + p, k)."""
    return np.asarray(np.sum([share.cross for share in shares], axis=0))


def _slack(shares: list[_Share], system: System) -> FloatArray:
    """How far the variance of the residual may be from Var(s | Z), (k,).

    Rounding moves the residual by at most `spread`, as if other weights had been meant: variances
    follow by the triangle inequality, and so does R in the norm of S^-1.
    """
    spread = np.sqrt(np.sum([share.spread**2 for share in shares], axis=0))
    residual = np.abs(_total(shares)[: system.size])
    residual += np.sum([share.slip[: system.size] for share in shares], axis=0)
    missed = np.sqrt(np.sum(residual**2, axis=0) / system.least) + spread
    deviation = np.sqrt(np.sum([np.diagonal(share.variance) for share in shares], axis=0))
    summing = (np.log2(system.size + 1) + _BLOCK + _CANCELLING) * UNIT_ROUNDOFF
    return np.asarray(missed**2 + spread * (2 * deviation + spread) + summing * deviation**2)


class Sources:
    """Where a residual's variance comes from: terms, noises, loadings; chains are made once."""

    def __init__(self, joint: Joint, secret: Secret, points: SingleValues | None = None) -> None:
        """Sort rows, points and the times of the secret together."""
        if not isinstance(joint.system, MarkovSystem):
            raise InvalidValue("the rows must be observed as a Markov system, got full matrices")
        loading = np.zeros(joint.loadings.shape[1])
        points = SingleValues(np.empty(0), False, loading) if points is None else points
        rows, count = joint.system.rows, points.times.size
        times = np.concatenate([rows.as_given(rows.times), points.times, secret.times])
        self.joint, self.system, self.secret, self.points = joint, joint.system, secret, points
        self.order = np.argsort(times, kind="stable")
        self.place, self.times = (
            np.argsort(self.order)[: rows.times.size + count],
            times[self.order],
        )
        unheard = np.zeros(count + secret.times.size)
        self.heard = np.concatenate([rows.as_given(rows.heard), unheard])[self.order, None]
        self.series = [chain(part, self.times) for part in rows.series.components]
        self.process = [chain(part, self.times) for part in rows.process.components]

    def shares(self, weights: FloatArray) -> list[_Share]:
        """The shares of all sources in s - W^T Z, for weights W (n, k)."""
        return [*self.own_shares(weights, self.secret.weights.T), self._loaded(weights)]

    def own_shares(self, weights: FloatArray, secret: FloatArray) -> list[_Share]:
        """The same for secret^T f - W^T Z (secret (h, k) at its h times), the loadings left out."""
        between = np.zeros((self.points.times.size, weights.shape[1]))
        x = np.concatenate([-weights, between, secret])[self.order]
        shares = [self._placed(_chained(part, x)) for part in self.series]
        for part in self.process:
            share = _chained(part, self.heard * x)
            heard = (self.heard * share.cross, share.spread, self.heard * share.slip)
            shares.append(self._placed(_Share(share.variance, *heard)))
        if self.system.rows.series.white > 0:
            recorded = secret * self.secret.recorded
            shares.append(self._measured(np.concatenate([-weights, between, recorded])[self.order]))
        return [*shares, self._own(weights, between)]

    def of_points(self, weights: FloatArray) -> FloatArray:
        """The covariance of the points with W^T Z (p, k), for weights W (n, k)."""
        unsought = np.zeros((self.secret.times.size, weights.shape[1]))
        noises = _total(self.own_shares(weights, unsought))[self.system.size :]
        return self.points.loading @ (self.joint.loadings.T @ weights) - noises

    def _placed(self, share: _Share) -> _Share:
        cross, slip = share.cross[self.place], share.slip[self.place]
        return _Share(share.variance, cross, share.spread, slip)

    def _own(self, weights: FloatArray, between: FloatArray) -> _Share:
        """Of the rows' own noise, the process's white noise included."""
        rows = self.system.rows
        variances = self.system.noise + rows.process.white * rows.as_given(rows.heard)
        heard = -variances[:, None] * weights
        cross = np.concatenate([heard, between])
        slip = _OPERATIONS * UNIT_ROUNDOFF * np.abs(cross)
        return _Share(_gram(weights.T, -heard.T), cross, np.zeros(weights.shape[1]), slip)

    def _measured(self, x: FloatArray) -> _Share:
        """Of the measurement noise, common to all recorded values of a fix."""
        white, starts = self.system.rows.series.white, fix_starts(self.times)
        sums = np.add.reduceat(x, starts, axis=0)
        errors = _OPERATIONS * UNIT_ROUNDOFF * np.add.reduceat(np.abs(x), starts, axis=0)
        fix = np.searchsorted(starts, self.place, side="right") - 1
        felt = np.full((self.place.size, 1), white)
        felt[self.system.size :] *= self.points.recorded
        spread = np.sqrt(white * np.sum(errors**2, axis=0))
        return _Share(white * _gram(sums.T, sums.T), felt * sums[fix], spread, felt * errors[fix])

    def _loaded(self, weights: FloatArray) -> _Share:
        """Of the loadings: the common level, and noise of low rank."""
        joint = self.joint
        sizes = np.abs(joint.secret_loadings.T) + np.abs(joint.loadings).T @ np.abs(weights)
        misfit = joint.secret_loadings.T - _product(joint.loadings.T, weights.T)
        unit = (np.log2(weights.shape[0] + 1) + _OPERATIONS) * UNIT_ROUNDOFF
        of_points = np.tile(self.points.loading, (self.points.times.size, 1))
        loadings = np.concatenate([joint.loadings, of_points])
        return _Share(
            misfit.T @ misfit,
            loadings @ misfit,
            unit * np.sqrt(np.sum(sizes**2, axis=0)),
            _OPERATIONS * UNIT_ROUNDOFF * np.abs(loadings) @ np.abs(misfit),
        )


def _chained(part: Chain, x: FloatArray) -> _Share:
    """x^T K x and K x for coefficients x (n, k) at the times of a chain, term by term positive."""
    pull = part.pull(x)
    moved = applied(part.noise, pull)
    state = part.recursion.run(moved.copy())
    unit = _GROWTH * _OPERATIONS * UNIT_ROUNDOFF
    # An error made at one step reaches all states before it, in the recursion backwards.
    errors = np.sum(np.abs(pull), axis=2) + np.abs(x.T)
    reach = unit * np.cumsum(errors[:, ::-1], axis=1)[:, ::-1]
    trace = np.einsum("nii->n", part.noise)
    after = unit * np.cumsum(np.sum(np.abs(state) + np.abs(moved), axis=2), axis=1)
    return _Share(
        _gram(pull.reshape(x.shape[1], -1), moved.reshape(x.shape[1], -1)),
        state[:, :, 0].T,
        np.sqrt(np.sum(reach**2 * trace, axis=1)),
        after.T,
    )


def _gram(a: FloatArray, b: FloatArray) -> FloatArray:
    """a b^T (p, q) for a (p, n), b (q, n), in blocks: products of _BLOCK numbers, then in pairs."""
    count = -(-a.shape[1] // _BLOCK)
    products = np.empty((count, a.shape[0], b.shape[0]))
    for block in range(count):
        part = slice(block * _BLOCK, (block + 1) * _BLOCK)
        products[block] = a[:, part] @ b[:, part].T
    while len(products) > 1:
        half = len(products) // 2
        pairs = products[:half] + products[half : 2 * half]
        products = np.concatenate([pairs, products[2 * half :]])
    return np.asarray(products[0]) if count else np.zeros((a.shape[0], b.shape[0]))


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    """The same, in pairs from the first number on: as sharp as it can be, for few rows of a."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return np.array([np.sum(row * b, axis=1) for row in a]).reshape(a.shape[0], b.shape[0])
