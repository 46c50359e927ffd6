"""What somebody who moves is hidden by under noise that never ends, however densely recorded.

A place x moves with a velocity v that is an Ornstein-Uhlenbeck process; the noise g is a sum of
stationary Markov processes. All of Z = x + g, at every time, is an upper bound of any release: its
fixes are some values of it with measurement noise added. The level of x is flat, so Z_t says
nothing of g_t by itself, x_t = Z_t - g_t, and what is left open of x_t is what is left open of g_t.
The states xi (the velocity and those of the noise, each in units of its own stationary deviation)
are seen through

    dZ = h^T xi dt + k^T dW,     dxi = A xi dt + Q^1/2 dW,     S = Cov(dxi, dZ) / dt,  R = k^T k

a Kalman-Bucy filter, in which some noise must be rough (R > 0): a smooth one alone would give every
kink of the path away. A stretch of any length is summarised for a state known when it begins,

    P_end = C + A P (I + J P)^-1 A^T

and two stretches make one. All is worked off for many models at once (leading axis). Who stands
still keeps x and v for the length of the stay, and dZ is that of the noise alone. Source: Kailath,
Sayed and Hassibi (2000), Linear Estimation, 16 and 17 (scattering, doubling); for correlated
noises 16.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, Matern12, Matern32

# Doublings from a step of this many of the fastest time constants to a filter that has settled.
_FIRST_STEP = 1 / 16
_MOST_DOUBLINGS = 120
# What is left of the state that a filter began with, once it has settled.
_SETTLED = 1e-14

Element = tuple[FloatArray, FloatArray, FloatArray]
"""A, C, J of a stretch, each (b, d, d)."""


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """b models of one person and one family of noise, with d states.

    generator: A (d, d). driven: the diagonal of Q (d,). turned: (d,), -1 where a state changes its
    sign as time is reversed, else 1. place: g of the noise as xi gives it (b, d). loading: h (b,
    d). shared: S (b, d). rough: R (b,).
    """

    generator: FloatArray
    driven: FloatArray
    turned: FloatArray
    place: FloatArray
    loading: FloatArray
    shared: FloatArray
    rough: FloatArray

    def rates(
        self, *, still: bool = False, path: float | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Drift, driving noise and information of the filter (b, d, d).

        still: the clock stands still. path: the true path is seen as well, with white noise of
        this intensity (unit^2 seconds).
        """
        driven, loading, drift = np.diag(self.driven), self.loading, self.generator
        if still:
            moving = np.r_[0.0, np.ones(self.driven.size - 1)]
            driven, loading, drift = driven * moving, loading * moving, drift * moving[:, None]
        gain = self.shared / self.rough[:, None]
        drift = drift - _outer(gain, loading)
        noise = driven - _outer(gain, self.shared)
        information = _outer(loading, loading) / self.rough[:, None, None]
        if path is not None:
            information = information + _outer(self.place, self.place) / path
        return drift, noise, information

    def element(self, seconds: float, *, still: bool = False, path: float | None = None) -> Element:
        """A stretch of this length: a short one, doubled."""
        doublings = max(0, math.ceil(math.log2(seconds / self.step(path))))
        element = self.short(seconds / 2**doublings, still=still, path=path)
        for _ in range(doublings):
            element = joined(element, element)
        return element

    def step(self, path: float | None = None) -> float:
        """Seconds: a stretch short enough to be summarised by one exponential of a matrix."""
        information = np.sum(self.loading**2, axis=1) / self.rough
        if path is not None:
            information = information + np.sum(self.place**2, axis=1) / path
        return _FIRST_STEP / max(float(np.max(self.driven)), float(np.max(information)))

    def short(self, seconds: float, *, still: bool, path: float | None) -> Element:
        """A stretch of at most about `step`."""
        drift, noise, information = self.rates(still=still, path=path)
        size = self.driven.size
        upper = np.concatenate([-drift.swapaxes(1, 2), information], axis=2)
        lower = np.concatenate([noise, drift], axis=2)
        whole = expm(np.concatenate([upper, lower], axis=1) * seconds)
        inverse = np.asarray(np.linalg.inv(whole[:, :size, :size]))
        return (
            inverse.swapaxes(1, 2),
            whole[:, size:, :size] @ inverse,
            inverse @ whole[:, :size, size:],
        )

    def settled(self, *, path: float | None = None) -> FloatArray:
        """The covariance of the states given all that was seen so far (b, d, d).

        Raises NumericalError where the filter does not settle.
        """
        element = self.short(self.step(path), still=False, path=path)
        for _ in range(_MOST_DOUBLINGS):
            element = joined(element, element)
            if float(np.max(np.abs(element[0]))) < _SETTLED:
                return after(np.broadcast_to(np.eye(self.driven.size), element[1].shape), element)
        raise NumericalError("a filter must settle, got one that does not: other time constants")

    def both_sides(self, before: FloatArray, behind: FloatArray) -> FloatArray:
        """The covariance of the states given both sides (b, d, d).

        behind: given the other side, as a filter that runs against time finds it; each holds the
        stationary prior, which is counted once.
        """
        turned = np.linalg.inv(behind) * np.outer(self.turned, self.turned)
        whole = np.linalg.inv(before) + turned - np.eye(self.turned.size)
        return symmetric(np.asarray(np.linalg.inv(whole)))

    def smoothing(self, settled: FloatArray) -> FloatArray:
        """G (b, d, d): Cov(xi_(t-h), xi_t | all that is seen) = exp(G h) Var(xi_t | all).

        settled: of the filter up to t. Source: the Rauch-Tung-Striebel smoother in continuous time.
        """
        drift, noise, _ = self.rates()
        return np.asarray(-(drift + noise @ np.linalg.inv(settled)))


def motion(
    speeds: FloatArray, time_constant: float, noise: Sequence[Kernel], variances: FloatArray
) -> Motion:
    """Models of somebody of each speed (b,) under noise with the variances (b, m) of m terms.

    speeds: standard deviations of the velocity. noise: Matern 1/2 and 3/2 kernels of deviation one.
    Raises InvalidValue where no term is rough (Matern 1/2 of positive variance).
    """
    sizes = [2 if isinstance(term, Matern32) else 1 for term in noise]
    size = 1 + sum(sizes)
    generator, driven, turned = np.zeros((size, size)), np.zeros(size), np.ones(size)
    place, loading, shared = np.zeros((3, speeds.size, size))
    generator[0, 0], driven[0], turned[0] = -1 / time_constant, 2 / time_constant, -1.0
    loading[:, 0] = speeds
    deviations, rough = np.sqrt(variances), np.zeros(speeds.size)
    at = 1
    for term, width, deviation in zip(noise, sizes, deviations.T, strict=True):
        place[:, at] = deviation
        match term:
            case Matern12(scale):
                generator[at, at], driven[at] = -1 / scale, 2 / scale
                loading[:, at], shared[:, at] = -deviation / scale, 2 * deviation / scale
                rough += 2 * deviation**2 / scale
            case Matern32(scale):
                rate = math.sqrt(3) / scale
                generator[at : at + 2, at : at + 2] = [[0, rate], [-rate, -2 * rate]]
                driven[at + 1], turned[at + 1] = 4 * rate, -1.0
                loading[:, at + 1] = rate * deviation
            case _:
                raise InvalidValue(f"terms of noise must be Matern 1/2 or 3/2, got {term}")
        at += width
    if not np.all(rough > 0):
        raise InvalidValue("noise must hold a rough term (Matern 1/2), got smooth ones alone")
    return Motion(generator, driven, turned, place, loading, shared, rough)


def joined(first: Element, second: Element) -> Element:
    """One stretch after the other, as one."""
    carried_first, added, information = first
    other, further, heard = second
    inverse = np.linalg.inv(np.eye(carried_first.shape[-1]) + added @ heard)
    carried = other @ inverse
    return (
        carried @ carried_first,
        symmetric(further + carried @ added @ other.swapaxes(1, 2)),
        symmetric(information + carried_first.swapaxes(1, 2) @ heard @ inverse @ carried_first),
    )


def after(covariance: FloatArray, element: Element) -> FloatArray:
    """The covariance at the end of a stretch (b, d, d) from that at its beginning."""
    carried, added, information = element
    known = np.linalg.solve(np.eye(information.shape[-1]) + covariance @ information, covariance)
    return symmetric(added + carried @ known @ carried.swapaxes(1, 2))


def symmetric(matrices: FloatArray) -> FloatArray:
    """The symmetric part (..., d, d)."""
    return np.asarray((matrices + matrices.swapaxes(-1, -2)) / 2)


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[:, :, None] * b[:, None, :]
