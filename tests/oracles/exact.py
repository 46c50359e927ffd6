"""The exact programs: the least loss for a budget, the least noise for bounds, by a conic solver.

The loss itself, not the approximation of SDP_A. For any Gaussian secret s, with At = Cov(X, s)
Var(s)^-1 and Ct = Cov(X | s), the loss is L = At^T (Ct + Gamma)^-1 At, so that

    L <= l I   iff   [[Ct + Gamma, At], [At^T, l I]] >= 0,

linear in Gamma and in l. Where the noise on a secret of recorded values is sigma_s^2 I, independent
of the rest, its rows drop out and l - 1 / sigma_s^2 takes the place of l (the direct loss is then 1
/ sigma_s^2). Seconds at 50 points: the oracle for faster solvers. The loss of the noise that is
returned is computed again by trailveil.privacy.loss, and held against the solver's word. Sets of
adversaries, a floor and the tight bound are for tests.oracles.exact_set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.linalg import cho_solve, eigh, pinv, qr

from tests.oracles.conic import AGREEMENT, inverse, solve, symmetric
from tests.oracles.exact_set import ConicOptimum, exact_set
from trailveil.designer.columns import needs_digits, spanned, symmetric_root, turn
from trailveil.designer.paper import Indices, check_indices, positive
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray, check_covariance, cholesky_factor
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.loss import losses
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import NOTHING_KNOWN, Prior
from trailveil.privacy.secrets import Secret

# Directions in which the prior varies by less than this share are seen as they are: the solver
# could not tell them from zero. What they tell of recorded values is of that size. Where the solver
# is not sure of its answer, the next share is tried.
_UNSEEN = (1e-8, 1e-7, 1e-10)
# Share of its largest under which an eigenvalue of Gamma is the solver's rounding.
_ROUNDING = 1e-7
# From this many secrets on, one large cone for all is faster than one of moderate size for each.
_MANY = 5


def exact_sdp(
    prior: Prior,
    secrets: Sequence[Secret],
    *,
    bounds: Sequence[float] | None = None,
    budget: float | None = None,
    weights: FloatArray | None = None,
    adversaries: Sequence[Adversary] = (PLAIN,),
    floor: float = 0.0,
    tight: bool = False,
) -> ConicOptimum:
    """The optimum over all Gamma >= floor I, for any secrets: nothing is approximated.

    With a budget: the least of the largest loss / bound, at trace(W Gamma) <= budget (bounds 1
    where not given). Without: the least trace(W Gamma) at which every loss is within its bound.
    bounds: of the largest eigenvalue of each loss matrix, in 1 / unit^2; or (tight) of the tight
    bound mu^2 / radius^2. weights: the diagonal of W (n,), default 1. adversaries: each secret is
    held to its bound against every one of them. floor: of independent noise that is there at any
    rate, and counts in trace(W Gamma). Raises InvalidValue for what is out of range, NumericalError
    where the solver does not say "optimal", or where its noise does not keep its word (priors
    without measurement noise, for secrets that are not recorded values).
    """
    if tuple(adversaries) != (PLAIN,) or floor or tight:
        return exact_set(
            prior,
            secrets,
            bounds=bounds,
            budget=budget,
            weights=weights,
            adversaries=adversaries,
            floor=floor,
            tight=tight,
        )
    return _ExactProgram(prior, secrets, bounds, budget, weights).solve(
        lambda view: _free(view, len(secrets))
    )


def exact_block_sdp(
    prior: Prior,
    secrets: Sequence[Sequence[int] | Indices],
    *,
    bounds: Sequence[float] | None = None,
    budget: float | None = None,
    weights: FloatArray | None = None,
) -> ConicOptimum:
    """The optimum with the paper's structure: Gamma_su = 0, Gamma_ss = sigma_s^2 I of each secret.

    secrets: the indices of recorded values of each. All else as `exact_sdp`.
    """
    count = prior.times.size
    checked = [check_indices(indices, count) for indices in secrets]
    recorded = [
        Secret("recorded", prior.times[at], np.eye(at.size), recorded=True) for at in checked
    ]
    program = _ExactProgram(prior, recorded, bounds, budget, weights)
    return program.solve(lambda view: _block(view, checked))


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """The directions of the prior that the solver is asked about.

    basis: V (n, p), orthonormal. variances: D (p,) where V are eigenvectors of Sigma, None where V
    = I.
    """

    basis: FloatArray
    variances: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """What noise may look like: Gamma = B gamma B^T. basis: B (n, q), orthonormal. gamma: (q, q).

    secret: the rows (of X) on which the noise is independent, sorted; none where it is free.
    coordinates: for each secret its coordinates among the q; none where it is free. Their gamma is
    a variance times I.
    """

    basis: FloatArray
    gamma: Any
    secret: Indices
    coordinates: list[Indices]


def _free(view: _Kept, count: int) -> _Shape:
    gamma = cp.Variable((view.basis.shape[1],) * 2, PSD=True)
    nothing = np.empty(0, np.intp)
    return _Shape(view.basis, gamma, nothing, [nothing] * count)


def _block(view: _Kept, secrets: list[Indices]) -> _Shape:
    union = np.unique(np.concatenate(secrets))
    size = view.basis.shape[0]
    others = np.setdiff1d(np.arange(size), union)
    coordinates = [np.searchsorted(union, secret) for secret in secrets]
    groups = _groups(union.size, coordinates)
    variances = cp.diag(groups @ cp.Variable(groups.shape[1], nonneg=True))
    unit = np.eye(size)
    if not others.size:
        return _Shape(unit[:, union], variances, union, coordinates)
    inner: FloatArray = np.eye(others.size)
    if view.basis.shape[1] < others.size:
        inner = np.asarray(qr(view.basis[others], mode="economic")[0], dtype=np.float64)
    variable = cp.Variable((inner.shape[1],) * 2, PSD=True)
    empty = np.zeros((union.size, inner.shape[1]))
    gamma = cp.bmat([[variances, empty], [empty.T, variable]])
    basis = np.hstack([unit[:, union], unit[:, others] @ inner])
    return _Shape(basis, gamma, union, coordinates)


def _groups(count: int, coordinates: list[Indices]) -> FloatArray:
    """Which of the variances of secrets that overlap are one: (count, groups) of zeros and ones."""
    label = np.arange(count)
    for _ in coordinates:  # each round joins what overlaps; as many rounds as secrets are enough
        for at in coordinates:
            label[np.isin(label, label[at])] = label[at].min()
    return np.asarray(label[:, None] == np.unique(label), dtype=np.float64)


class _ExactProgram:
    """One exact program: checked arguments, the cones, and the noise with its recomputed losses."""

    def __init__(
        self,
        prior: Prior,
        secrets: Sequence[Secret],
        bounds: Sequence[float] | None,
        budget: float | None,
        weights: FloatArray | None,
    ) -> None:
        if not secrets:
            raise InvalidValue("there must be at least one secret, got none")
        if bounds is None and budget is None:
            raise InvalidValue("there must be a noise budget or bounds of the losses, got neither")
        given = [1.0] * len(secrets) if bounds is None else list(bounds)
        if len(given) != len(secrets):
            raise InvalidValue(f"there must be {len(secrets)} bounds, got {len(given)}")
        self.prior, self.secrets = prior, secrets
        self.bounds = [positive(bound, "the bound of a loss") for bound in given]
        self.budget = None if budget is None else positive(budget, "the noise budget")
        self.weights = _checked_weights(weights, prior.times.size)
        check_covariance(prior.covariance, "the prior covariance")
        self.parts = [_conditional(prior.for_secret(secret), secret) for secret in secrets]

    def solve(self, shape_of: Callable[[_Kept], _Shape]) -> ConicOptimum:
        """The optimum over noise of one shape."""
        *others, last = self._views()
        for other in others:
            try:
                return self._solve(shape_of(other), other)
            except NumericalError:
                continue
        return self._solve(shape_of(last), last)

    def _solve(self, shape: _Shape, view: _Kept) -> ConicOptimum:
        hardest = [
            float(np.linalg.norm(tall.T @ tall, 2)) / bound
            for (tall, _), bound in zip(self.parts, self.bounds, strict=True)
        ]
        scale = max(hardest) if self.budget is None else self.budget
        spread = shape.basis.T @ (self.weights[:, None] * shape.basis)
        trace = cp.trace(spread @ shape.gamma)
        ratio = cp.Variable()
        unit = max(hardest) / scale
        cones = self._cones(shape, view, scale, ratio * unit if self.budget else 1.0)
        if self.budget is None:
            solve(cp.Problem(cp.Minimize(trace), cones))
            return self._least_noise(shape, view, scale, float(trace.value) * scale)
        solve(cp.Problem(cp.Minimize(ratio), [*cones, trace <= 1]))
        return self._least_loss(shape, view, scale, float(ratio.value) * unit)

    def _views(self) -> list[_Kept]:
        """All directions; for recorded values the eigenvectors of Sigma that the solver can see."""
        size = self.prior.times.size
        if not all(secret.recorded and secret.window is None for secret in self.secrets):
            return [_Kept(np.eye(size), None)]
        spectrum, basis = eigh(self.prior.covariance)
        counts = [int(np.sum(spectrum > share * spectrum[-1])) for share in _UNSEEN]
        distinct = list(dict.fromkeys(counts))
        return [_Kept(basis[:, -count:], spectrum[-count:]) for count in distinct]

    def _cones(self, shape: _Shape, view: _Kept, scale: float, ratio: Any) -> list[Any]:
        """loss_i <= ratio bound_i, with Gamma = scale B gamma B^T.

        In the basis R^-1/2 of the secret, R = At^T At, so that entries are of size one.
        """
        if view.variances is not None and not shape.secret.size and len(self.secrets) >= _MANY:
            return self._shared_cones(shape, view.variances, scale, ratio)
        cones = []
        for coordinates, (tall, conditional), bound in zip(
            shape.coordinates, self.parts, self.bounds, strict=True
        ):
            unit = inverse(tall.T @ tall)
            allowed = ratio * (bound * scale)
            if coordinates.size:
                direct, cone = _direct(shape.gamma[int(coordinates[0]), int(coordinates[0])], unit)
                allowed = allowed - direct
                cones.append(cone)
            cut = np.delete(np.eye(shape.basis.shape[1]), coordinates, axis=1)
            basis = shape.basis @ cut
            axes = basis.T @ (tall @ symmetric_root(unit))
            shown = basis.T @ conditional @ basis / scale + cut.T @ shape.gamma @ cut
            cones.append(cp.bmat([[symmetric(shown), axes], [axes.T, allowed * unit]]) >> 0)
        return cones

    def _shared_cones(
        self, shape: _Shape, variances: FloatArray, scale: float, ratio: Any
    ) -> list[Any]:
        """The same by one cone for all secrets: M <= Sigma - Sigma (Sigma + Gamma)^-1 Sigma."""
        prior = np.diag(variances / scale)
        known = cp.Variable(prior.shape, symmetric=True)
        cones = [cp.bmat([[prior - known, prior], [prior, prior + shape.gamma]]) >> 0]
        for secret, bound in zip(self.secrets, self.bounds, strict=True):
            at = np.searchsorted(self.prior.times, secret.times)
            rows = secret.weights @ shape.basis[at]
            variance = (rows * variances) @ rows.T
            root = symmetric_root(variance / scale)
            whitened = np.linalg.inv(root) @ rows
            upper, identity = whitened @ known @ whitened.T, np.eye(secret.size)
            right = identity + ratio * (bound * variance)
            cones.append(cp.bmat([[upper, identity], [identity, right]]) >> 0)
        return cones

    def _least_noise(self, shape: _Shape, view: _Kept, scale: float, value: float) -> ConicOptimum:
        for step in range(20):
            mechanism = self._mechanism(shape, view, scale)
            recomputed = self._losses(mechanism)
            worst = max(loss / bound for loss, bound in zip(recomputed, self.bounds, strict=True))
            if step == 0 and worst > 1 + AGREEMENT:
                raise _broken(worst, 1.0)
            if worst <= 1:
                return ConicOptimum(mechanism, value, recomputed)
            scale *= 1 + 1.5 * (worst - 1) + 1e-15  # to the safe side, and check again
        raise NumericalError("no noise was found whose recomputed losses are within their bounds")

    def _least_loss(self, shape: _Shape, view: _Kept, scale: float, value: float) -> ConicOptimum:
        first = self._mechanism(shape, view, scale)
        spent = float(self.weights @ first.variances)
        mechanism = self._mechanism(shape, view, scale * scale / spent)
        recomputed = self._losses(mechanism)
        worst = max(loss / bound for loss, bound in zip(recomputed, self.bounds, strict=True))
        if abs(worst - value) > AGREEMENT * value:
            raise _broken(worst, value)
        return ConicOptimum(mechanism, value, recomputed)

    def _losses(self, mechanism: Mechanism) -> tuple[float, ...]:
        return tuple(loss.largest for loss in losses(self.prior, self.secrets, mechanism))

    @staticmethod
    def _gamma(shape: _Shape, scale: float) -> FloatArray:
        """Gamma (n, n) as the solver left it, at this scale."""
        inner = symmetric(shape.gamma.value)
        return np.asarray(scale * (shape.basis @ inner @ shape.basis.T))

    def _mechanism(self, shape: _Shape, view: _Kept, scale: float) -> Mechanism:
        """The noise, in the digits that the prior asks for: as columns of Sigma if need be."""
        gamma = self._gamma(shape, scale)
        on_secret = np.sqrt(np.maximum(np.diagonal(gamma)[shape.secret], 0.0))
        direct = np.eye(gamma.shape[0])[:, shape.secret] * on_secret
        gamma[shape.secret], gamma[:, shape.secret] = 0.0, 0.0
        largest = float(np.max(np.diagonal(gamma), initial=0.0))
        if view.variances is None or not needs_digits(self.prior, largest):
            root = symmetric_root(gamma)
            root[shape.secret] = 0.0  # not even by rounding
            return Mechanism(self.prior.times, np.hstack([direct, root]))
        rows = view.basis.copy()
        rows[shape.secret] = 0.0
        inner = pinv(rows, rtol=1e-6) @ self._thin_root(gamma)
        return spanned(self.prior, view.basis @ (inner / view.variances[:, None]), direct)

    def _thin_root(self, gamma: FloatArray) -> FloatArray:
        """A canonical factor of Gamma without the solver's rounding: of low rank where Gamma is."""
        spectrum, basis = eigh(gamma)
        above = spectrum > _ROUNDING * max(float(spectrum[-1]), 0.0)
        factor = basis[:, above] * np.sqrt(spectrum[above])
        at = np.isin(self.prior.times, np.concatenate([secret.times for secret in self.secrets]))
        reference = self.prior.covariance[:, at]
        if factor.shape[1] > reference.shape[1]:
            return symmetric_root(factor @ factor.T)
        return factor @ turn(factor, reference)


def _direct(variance: Any, unit: FloatArray) -> tuple[Any, Any]:
    """An expression that is at least 1 / variance, of size one in the solver, and its cone."""
    size = 1.0 / float(np.linalg.norm(unit, -2))
    direct, root = cp.Variable(nonneg=True), np.full((1, 1), size**-0.5)
    corner = [cp.reshape(entry, (1, 1), order="C") for entry in (variance, direct)]
    return size * direct, cp.bmat([[corner[0], root], [root, corner[1]]]) >> 0


def _conditional(judge: Prior, secret: Secret) -> tuple[FloatArray, FloatArray]:
    """At = Cov(X, s) Var(s)^-1 (n, k) and Ct = Cov(X | s) (n, n), the prior's level included."""
    nothing = no_noise(judge.times)
    cross, variance, loading = judge.secret_parts(secret, nothing, NOTHING_KNOWN)
    cross = cross + judge.loadings(nothing, NOTHING_KNOWN) @ loading.T
    factor = cholesky_factor(variance + loading @ loading.T)
    tall = np.asarray(cho_solve((factor, True), cross.T)).T
    return tall, symmetric(judge.covariance - tall @ cross.T)


def _checked_weights(weights: FloatArray | None, count: int) -> FloatArray:
    checked = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if checked.shape != (count,) or not np.all(np.isfinite(checked)) or np.any(checked < 0):
        raise InvalidValue(
            f"there must be {count} utility weights of 0 or more, got {checked.shape}"
        )
    return checked


def _broken(recomputed: float, word: float) -> NumericalError:
    return NumericalError(
        f"the loss of the solver's noise must be what it says, got {recomputed:.6g} for "
        f"{word:.6g}; state a measurement noise (--noise-std)"
    )
