"""The exact programs, by a conic solver: the oracle for faster ones.

The loss itself, not the approximation of SDP_A: the least loss for a budget, or the least noise for
bounds, against any set of adversaries.

An adversary is one more prior of a secret s, conditioned on what it knows; whoever knows any one
true place is as many of them as there are places. Each is a requirement of its own, with At =
Cov(X, s) Var(s)^-1 and Ct = Cov(X | s), both given what is known, and a floor f of noise:

    L = At^T (Ct + f I + Gamma)^-1 At <= diag(y)
    iff   [[Ct + f I + Gamma, At], [At^T, diag(y)]] >= 0,

linear in Gamma and y. The tight bound of a compound secret is sum(y), with a y for each
requirement, and is minimised together with Gamma. All of this is written with full matrices, and
shares nothing with the faster solvers but kernels, and what secrets and adversaries state.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.linalg import eigh

from tests.oracles.conic import AGREEMENT, solve, symmetric
from trailveil.designer.columns import symmetric_root
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, latent, stopped
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.guarantee import tight_bound
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

# Where the answer is under this share of the unit of the program, it is solved again in its own.
_SMALL = 0.1
# Where the solver is not sure of its answer, it is asked again in units so many times as large.
_UNITS = (1.0, 0.3, 3.0, 0.1)
# Variances, in units of the noise, above which the solver sees no more than that they are large.
_HUGE = 1e4
# A loss so many times its bound is not worth a tight bound, which is no less.
_FAR = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class ConicOptimum:
    """The optimum of an exact program.

    value: the solver's word: the least trace(W Gamma), a floor included, or the least of the
    largest loss / bound.
    losses: the largest eigenvalue of each secret's loss matrix, recomputed from the mechanism; the
    largest of all adversaries.
    """

    mechanism: Mechanism
    value: float
    losses: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ExactRequirement:
    """One secret (by number) against one adversary who knows one set of things.

    tall: At (n, k). conditional: Ct (n, n), the floor included. bound: of the largest eigenvalue of
    the loss, or (tight) of sum(y).
    """

    secret: int
    tall: FloatArray
    conditional: FloatArray
    bound: float
    tight: bool

    def loss(self, gamma: FloatArray) -> FloatArray:
        """L (k, k) under this noise."""
        product = self.tall.T @ np.linalg.solve(self.conditional + gamma, self.tall)
        return np.asarray(symmetric(product))

    def share(self, gamma: FloatArray) -> float:
        """The loss of this noise over its bound."""
        try:
            loss = self.loss(gamma)
        except np.linalg.LinAlgError:  # recorded values, released as they are
            return float("inf")
        largest = float(np.linalg.norm(loss, 2)) / self.bound
        if not self.tight or largest > _FAR:
            return largest
        return tight_bound([loss], 1.0) / self.bound


def requirements(
    prior: Prior,
    secrets: Sequence[Secret],
    bounds: Sequence[float],
    adversaries: Sequence[Adversary] = (PLAIN,),
    *,
    floor: float = 0.0,
    tight: bool = False,
) -> list[ExactRequirement]:
    """Every secret against every adversary, for each thing that it may know."""
    needed = []
    for number, (secret, bound) in enumerate(zip(secrets, bounds, strict=True)):
        for adversary in adversaries:
            for joint in _joints(prior, secret, adversary):
                count = prior.times.size
                sigma, cross = joint[:count, :count], joint[:count, count:]
                tall = np.asarray(np.linalg.solve(joint[count:, count:], cross.T).T, np.float64)
                conditional = symmetric(sigma - tall @ cross.T) + floor * np.eye(count)
                needed.append(
                    ExactRequirement(number, tall, conditional, bound, tight and secret.size > 1)
                )
    return needed


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
    """The optimum over all Gamma >= floor I: nothing is approximated.

    With a budget: the least of the largest loss / bound, at trace(W Gamma) <= budget (bounds 1
    where not given). Without: the least trace(W Gamma) at which every loss is within its bound.
    bounds: of the largest eigenvalue of each loss matrix, in 1 / unit^2; or (tight) of the tight
    bound mu^2 / radius^2. weights: the diagonal of W (n,). adversaries: each secret is held to its
    bound against every one of them. floor: of independent noise that is there at any rate, and
    counts in trace(W Gamma). Raises NumericalError where the solver does not say "optimal", or its
    noise does not keep its word.
    """
    given = [1.0] * len(secrets) if bounds is None else list(bounds)
    count = prior.times.size
    cost = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    needed = requirements(prior, secrets, given, adversaries, floor=floor, tight=tight)
    program = _Program(prior, needed, cost, floor)
    if budget is None:
        return program.least_noise()
    return program.least_loss(budget - floor * float(np.sum(cost)))


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    prior: Prior
    needed: Sequence[ExactRequirement]
    cost: FloatArray
    floor: float

    def least_noise(self) -> ConicOptimum:
        """The least trace(W Gamma) at which everything is within its bound."""
        count = self.cost.size
        fixed, mean = self.floor * float(np.sum(self.cost)), float(np.mean(self.cost))
        if self.worst(np.zeros((count, count))) <= 1:
            return self.optimum(np.zeros((count, count)), fixed)
        # A noise of this variance everywhere is enough.
        scale = max(
            float(np.linalg.norm(requirement.tall, 2)) ** 2 / requirement.bound
            for requirement in self.needed
        )
        gamma, scale, spent = self._sure(self._noise_in, scale)
        if spent < _SMALL:
            gamma, scale, spent = self._sure(self._noise_in, scale * max(spent, 1e-6))
        value, noise = spent * scale * mean, scale * gamma
        if abs(self.worst(noise) - 1) > AGREEMENT:
            raise _broken(self.worst(noise), 1.0)
        for _ in range(20):
            if (worst := self.worst(noise)) <= 1:
                return self.optimum(noise, fixed + value)
            noise *= 1 + 1.5 * (worst - 1) + 1e-15  # to the safe side, and check again
        raise NumericalError("no noise was found whose recomputed losses are within their bounds")

    def least_loss(self, available: float) -> ConicOptimum:
        """The least of the largest loss / bound, at trace(W Gamma) <= rest besides the floor."""
        count = self.cost.size
        mean = float(np.mean(self.cost))
        scale = available / mean
        unit = self.worst(scale / count * np.eye(count))  # within reach
        solved = partial(self._loss_in, scale)
        noise, unit, ratio = self._sure(solved, unit)
        if ratio < _SMALL:
            noise, unit, ratio = self._sure(solved, unit * max(ratio, 1e-6))
        value = ratio * unit
        noise *= available / float(self.cost @ np.diagonal(noise))
        if abs(self.worst(noise) - value) > AGREEMENT * value:
            raise _broken(self.worst(noise), value)
        return self.optimum(noise, value)

    def _noise_in(self, scale: float) -> tuple[FloatArray, float]:
        """Gamma / scale of the least trace, and that trace by the mean weight."""
        count = self.cost.size
        gamma = cp.Variable((count, count), PSD=True)
        trace = cp.sum(cp.multiply(self.cost / np.mean(self.cost), cp.diag(gamma)))
        cones = [
            cone for requirement in self.needed for cone in _cones(requirement, gamma, scale, 1.0)
        ]
        solve(cp.Problem(cp.Minimize(trace), cones))
        return _covariance(gamma.value), float(trace.value)

    def _loss_in(self, scale: float, unit: float) -> tuple[FloatArray, float]:
        """Gamma / scale of the least loss, and that loss / unit."""
        count = self.cost.size
        gamma, ratio = cp.Variable((count, count), PSD=True), cp.Variable()
        trace = cp.sum(cp.multiply(self.cost / np.mean(self.cost), cp.diag(gamma)))
        cones = [
            cone
            for requirement in self.needed
            for cone in _cones(requirement, gamma, scale, unit, ratio)
        ]
        solve(cp.Problem(cp.Minimize(ratio), [*cones, trace <= 1]))
        return _covariance(gamma.value), float(ratio.value)

    @staticmethod
    def _sure(
        solved: Callable[[float], tuple[FloatArray, float]], unit: float
    ) -> tuple[FloatArray, float, float]:
        """Gamma, unit and value in the first unit in which the solver says "optimal"."""
        for times in _UNITS[:-1]:
            try:
                gamma, value = solved(unit * times)
            except NumericalError:
                continue
            return gamma, unit * times, value
        gamma, value = solved(unit * _UNITS[-1])
        return gamma, unit * _UNITS[-1], value

    def worst(self, gamma: FloatArray) -> float:
        """The largest loss over its bound."""
        return max(requirement.share(gamma) for requirement in self.needed)

    def optimum(self, gamma: FloatArray, value: float) -> ConicOptimum:
        """The noise as a mechanism, with the losses that are recomputed from it."""
        mechanism = Mechanism(self.prior.times, symmetric_root(gamma), self.floor)
        if not np.any(gamma):
            mechanism = replace(no_noise(self.prior.times), floor=self.floor)
        worst = [0.0] * (1 + max(need.secret for need in self.needed))
        for requirement in self.needed:
            largest = float(np.linalg.norm(requirement.loss(gamma), 2))
            worst[requirement.secret] = max(worst[requirement.secret], largest)
        return ConicOptimum(mechanism, value, tuple(worst))


def _covariance(solved: FloatArray) -> FloatArray:
    """Of the solver's Gamma what is a covariance: rounding left it eigenvalues below zero."""
    root = symmetric_root(solved)
    return np.asarray(symmetric(root @ root.T))


def _cones(
    exact_requirement: ExactRequirement, gamma: Any, scale: float, unit: float, ratio: Any = 1.0
) -> Iterator[Any]:
    """L <= unit ratio bound, with Gamma = scale gamma; rows over their deviations with this noise.

    What varies by far more than all noise (a level) would hide the rest: it is made smaller first.
    """
    size = exact_requirement.tall.shape[1]
    conditional, turned = (
        exact_requirement.conditional / scale,
        np.eye(exact_requirement.tall.shape[0]),
    )
    spectrum, axes = eigh(conditional)
    if spectrum[-1] > _HUGE:
        turned = (axes / np.sqrt(np.maximum(spectrum / _HUGE, 1.0))) @ axes.T
        conditional = (axes * np.minimum(spectrum, _HUGE)) @ axes.T
    rows = np.diag(1.0 / np.sqrt(np.diagonal(conditional) + 1.0))
    shown = rows @ (conditional + turned @ gamma @ turned.T) @ rows
    across = (
        rows @ turned @ exact_requirement.tall / np.sqrt(exact_requirement.bound * unit * scale)
    )
    if exact_requirement.tight:
        variable = cp.Variable(size)
        yield cp.sum(variable) <= ratio
        allowed = cp.diag(variable)
    else:
        allowed = ratio * np.eye(size)
    yield symmetric(cp.bmat([[shown, across], [across.T, allowed]])) >> 0


def _joints(prior: Prior, secret: Secret, adversary: Adversary) -> Iterator[FloatArray]:
    """Cov([X, s]) (n + k, n + k) given what is known: alone, and with each one true value."""
    kernel = prior.kernel if adversary.kernel is None else adversary.kernel
    if windows := adversary.still + (() if secret.window is None else (secret.window,)):
        kernel = kernel.warp(stopped(windows))
    joint = _joint(kernel, prior.times, secret)
    start, end = _span(secret, adversary)
    times = prior.times
    if adversary.path is not None:
        away = adversary.path.away
        far = np.flatnonzero((times <= start - away) | (times >= end + away))
        if far.size:
            joint = _given(joint, far, adversary.path.accuracy)
    yield joint
    if adversary.point is not None:
        away = adversary.point.away
        for index in np.flatnonzero((times <= start - away) | (times >= end + away)):
            yield _given(joint, np.array([index]), adversary.point.accuracy)


def _joint(kernel: Kernel, times: FloatArray, secret: Secret) -> FloatArray:
    """Cov([X, s]) under a kernel; a true place has none of the measurement noise."""
    shared = kernel if secret.recorded else latent(kernel)
    if shared is None:
        raise InvalidValue("a true place must vary, got a prior of measurement noise alone")
    cross = shared(times, secret.times) @ secret.weights.T
    variance = secret.weights @ shared(secret.times, secret.times) @ secret.weights.T
    return np.block([[kernel(times, times), cross], [cross.T, variance]])


def _span(secret: Secret, adversary: Adversary) -> tuple[float, float]:
    """The time of the secret, over all of every window of standing still that it meets."""
    start, end = secret.window or (float(np.min(secret.times)), float(np.max(secret.times)))
    for first, last in sorted(adversary.still):
        if first <= end and start <= last:
            start, end = min(start, first), max(end, last)
    return start, end


def _given(joint: FloatArray, rows: Any, accuracy: float) -> FloatArray:
    """What is left of a joint covariance once these values are known to an accuracy."""
    inner = joint[np.ix_(rows, rows)] + accuracy**2 * np.eye(rows.size)
    remaining = joint - joint[:, rows] @ np.linalg.solve(inner, joint[rows])
    return np.asarray(symmetric(remaining))


def _broken(recomputed: float, word: float) -> NumericalError:
    return NumericalError(
        f"the loss of the solver's noise must be what it says, got {recomputed:.6g} for "
        f"{word:.6g}; state a measurement noise (--noise-std)"
    )
