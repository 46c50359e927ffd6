"""How little noise can hold what noise for every place must: a lower bound over all Gaussian noise.

What is asked for is the same at every time. What an adversary is left with is concave in the
covariance of the noise, as the least over estimators of what is linear in it. So the mean of a
noise over all shifts in time holds what the noise holds, with the same mean variance: no
Gaussian noise has less than the least stationary one, whose law is a spectrum S(w) >= 0. Against an
adversary who estimates a place from all that is released by some linear rule, what is left is

    G(S) = integral of |1 - c e^iwh|^2 X S / (X + S) + |m|^2 S  + k   >=  1 / (bound + 1 / P)

X being the spectrum of the movement at one speed: the parallel sum is what is left of it given the
release. Whoever knows one true place h seconds away adds it with a weight c (k = c^2 accuracy^2);
whoever sees a stay takes the mean over it with a weight m. G is concave in S, so for weights u >= 0

    variance  >=  integral of min over S of S - sum u G(S)   +   sum u (1 / (bound + 1 / P) - k)

by weak duality, whatever u and c are; they are chosen so that it says most. Every adversary and
rule that is left out makes the bound smaller, and never wrong. Integrals are sums over a grid of
frequencies, to some 0.1 %. Source: reverse water-filling, Cover and Thomas (2006), 10.3.3.
"""

import math
from dataclasses import dataclass

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, Matern12, Matern32
from trailveil.privacy.anytime import Assumed, PriorMovement, wandered

# Radians a second: decades of the grid, and points in it.
_DECADES, _POINTS = (-7.5, 1.5), 900
_ROUNDS, _STEPS, _NEWTON = 4, 100, 12
# Weights of means may add up to this at most: at 1 the least over S is minus infinity.
_MOST_OF_MEANS = 1 - 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """What a adversaries do, at n frequencies, in units of 1 / bound and of G at frequency 0.

    movement: X (a, n), infinite where G has S alone. weights: |1 - c e^iwh|^2 or |m|^2 (a, n).
    due: what must be left, less k (a,). measure: of each frequency (n,).
    """

    movement: FloatArray
    weights: FloatArray
    due: FloatArray
    measure: FloatArray

    def left(self, spectrum: FloatArray) -> FloatArray:
        """G (a,) of a spectrum (n,), without k."""
        share = spectrum / (1 + spectrum / self.movement)
        return np.asarray((self.weights * share) @ self.measure)

    def least(self, u: FloatArray) -> FloatArray:
        """The spectrum (n,) at which S - sum u G(S) is least.

        By Newton's method on 1 / sqrt of its slope, which is nearly straight.
        """
        pull, means = u[:, None] * self.weights, np.isinf(self.movement)
        room = np.maximum(1 - np.sum(pull * means, axis=0), 1 - _MOST_OF_MEANS)
        pull = np.where(means, 0.0, pull)
        spectrum = np.zeros(self.measure.size)
        for _ in range(_NEWTON):
            share = pull / (1 + spectrum / self.movement) ** 2
            slope, bend = (np.sum(x, axis=0) for x in (share, share / (self.movement + spectrum)))
            step = slope * (np.sqrt(slope / room) - 1) / np.where(bend > 0, bend, 1.0)
            spectrum = np.where(slope > 0, np.maximum(spectrum + step, 0.0), 0.0)
        return spectrum

    def dual(self, u: FloatArray) -> tuple[float, FloatArray]:
        """The bound of the variance for weights (a,), and its derivatives (a,)."""
        spectrum = self.least(u)
        missing = self.due - self.left(spectrum)
        return float(spectrum @ self.measure + u @ missing), missing

    def most(self, u: FloatArray) -> FloatArray:
        """The weights (a,) that say most, searched from those that are given."""
        from scipy.optimize import Bounds, LinearConstraint, minimize  # heavy

        means = np.isinf(self.movement[:, 0])
        room = LinearConstraint(means[None].astype(np.float64), -np.inf, _MOST_OF_MEANS)
        optimum = minimize(  # type: ignore[call-overload]  # as in designer.everywhere
            lambda x: tuple(-part for part in self.dual(x)),
            u,
            jac=True,
            bounds=Bounds(0.0, np.inf),
            constraints=[room] if np.any(means) else [],
            method="SLSQP",
            options={"maxiter": _STEPS, "ftol": 1e-8},
        )
        weights = np.maximum(optimum.x, 0.0)
        return np.asarray(weights * min(1.0, _MOST_OF_MEANS / max(weights[means].sum(), 1e-9)))


def least_variance(person: PriorMovement, assumed: Assumed, bound: float, kernel: Kernel) -> float:
    """A lower bound of the variance of any noise under which no loss is above `bound`.

    Of each coordinate, against all of `Assumed` but an adversary who knows the path. kernel: of a
    noise that holds them, near which the rules of adversaries are chosen.
    """
    frequency = np.logspace(*_DECADES, _POINTS)
    measure = frequency * np.gradient(np.log(frequency)) / math.pi
    spectrum = _spectrum(kernel, frequency) * bound
    stays = assumed.longest_stay / 2.0 ** np.arange(8 if assumed.longest_stay else 0)
    means = np.sinc(frequency * stays[:, None] / (2 * math.pi)) ** 2
    motions = [bound * _movement(person, speed, frequency) for speed in assumed.speeds]
    plain = [(motion, np.ones(frequency.size), 1.0) for motion in motions]
    rules = [*plain, *((np.full(frequency.size, np.inf), mean, 1.0) for mean in means)]
    u, best = np.full(len(rules), 0.5 / len(rules)), 0.0
    for _ in range(_ROUNDS):
        if assumed.know:
            rules += [
                _point(person, assumed, bound, speed, frequency, measure * share)
                for speed, motion in zip(assumed.speeds, motions, strict=True)
                for share in [spectrum / (1 + spectrum / motion)]
            ]
        movement, weights, due = (np.array(parts) for parts in zip(*rules, strict=True))
        whole = _Rules(movement, weights, due, measure)
        u = whole.most(np.append(u, np.zeros(len(rules) - u.size)))
        best, spectrum = max(best, whole.dual(u)[0]), whole.least(u)
    return best / bound


def _point(
    person: PriorMovement,
    assumed: Assumed,
    bound: float,
    speed: float,
    frequency: FloatArray,
    left: FloatArray,
) -> tuple[FloatArray, FloatArray, float]:
    """X, the weights and what is due of an adversary who knows one true place, at its best rule.

    left: the spectrum of what the release leaves of the movement, times the measure.
    """
    away, error = assumed.point_away, bound * assumed.accuracy**2
    along = np.cos(frequency * away)
    c = float(left @ along) / (float(np.sum(left)) + error)
    before = error + bound * float(wandered(speed, person.time_constant, np.array(away)))
    unit = (1 - c) ** 2
    weights = (1 + c**2 - 2 * c * along) / unit
    due = (1 / (1 + 1 / before) - c**2 * error) / unit
    return bound * _movement(person, speed, frequency), weights, due


def _movement(person: PriorMovement, speed: float, frequency: FloatArray) -> FloatArray:
    """The spectrum of places of a movement at a speed."""
    tau = person.time_constant
    return np.asarray(2 * speed**2 * tau / (1 + (frequency * tau) ** 2) / frequency**2)


def _spectrum(kernel: Kernel, frequency: FloatArray) -> FloatArray:
    """That of a sum of Matern 1/2 and 3/2 kernels."""
    whole = np.zeros(frequency.size)
    for term in kernel.terms():
        match term:
            case Matern12(scale, std):
                whole += 2 * std**2 / scale / (scale**-2 + frequency**2)
            case Matern32(scale, std):
                rate = math.sqrt(3) / scale
                whole += 4 * std**2 * rate**3 / (rate**2 + frequency**2) ** 2
    return whole
