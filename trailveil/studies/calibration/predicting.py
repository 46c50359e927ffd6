"""What a kernel says of a fix that was left out.

With S = K(t, t) + noise over the kept fixes and k = Cov(kept, left out), the value has mean
k^T S^-1 y and variance K(t*, t*) - k^T S^-1 k. A level of deviation c that all have in common is
never added into S, where it would drown the rest: with g = S^-1 1, m = g^T y / (1/c^2 + 1^T g) and
u = 1 - 1^T S^-1 k,

    mean = m u + k^T S^-1 y,     variance = K(t*, t*) - k^T S^-1 k + u^2 / (1/c^2 + 1^T g).

The evidence is the log density of the kept values themselves, by which one prior can be weighed
against another: that of trailveil.studies.fit.likelihood.

Source: Rasmussen and Williams (2006), eqs. 2.23 to 2.24 and 2.41 to 2.42.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray, cholesky_factor
from trailveil.gp.kernels import Kernel, split
from trailveil.studies.calibration.left_out import LeftOut


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """One prediction. mean: (d,). std: of each coordinate. evidence: nats, of the kept values."""

    mean: FloatArray
    std: float
    evidence: float


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Of m fixes. errors: (m, d), value less mean. stds: (m,), the deviation that was promised.

    evidence: (m,) nats, of the values that were kept for each.
    """

    errors: FloatArray
    stds: FloatArray
    evidence: FloatArray

    def only(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Predictions":
        """Those of some fixes, or in another order."""
        return Predictions(self.errors[rows], self.stds[rows], self.evidence[rows])

    @property
    def standardised(self) -> FloatArray:
        """Errors in units of the promised deviation (m, d): standard normal if the prior holds."""
        return self.errors / self.stds[:, None]

    @property
    def log_densities(self) -> FloatArray:
        """Of each coordinate, in nats (m, d)."""
        spread = np.log(2 * np.pi * self.stds**2)[:, None]
        return np.asarray(-(self.standardised**2 + spread) / 2)


def predicted(kernel: Kernel, times: FloatArray, values: FloatArray, time: float) -> Predicted:
    """The recorded value at `time`, from values (k, d) at times (k,), without any but these.

    Values are looked at from their mean: a prior without a level is about it. A kernel that starts
    at an origin starts at the first of all the times. Raises InvalidValue for no kept fix or a
    kernel of nothing but a level, and NumericalError where double precision cannot compute it.
    """
    if not len(times):
        raise InvalidValue("a prediction must have one kept fix or more, got none")
    varying, level = split(kernel)
    if varying is None:
        raise InvalidValue("a prior must have more than a level for a prediction, got none")
    begin = min(float(times[0]), time)
    relative, at = times - begin, np.array([time - begin])
    factor = cholesky_factor(varying(relative, relative))
    across = varying(relative, at)[:, 0]
    middle = values.mean(axis=0)
    apart = values - middle
    columns = np.column_stack([across, np.ones(len(relative)), apart])
    solved = np.asarray(cho_solve((factor, True), columns, check_finite=False))
    weights, ones, pulled = solved[:, 0], solved[:, 1], solved[:, 2:]
    mean = across @ pulled
    variance = float(varying.diagonal(at)[0] - across @ weights)
    fit = float(np.sum(apart * pulled))
    volume = 2 * float(np.sum(np.log(np.diagonal(factor)))) + len(relative) * math.log(2 * math.pi)
    if level > 0:
        precision = 1 / level + float(np.sum(ones))
        missing = 1.0 - float(np.sum(weights))
        total = np.sum(pulled, axis=0)
        mean = mean + missing * total / precision
        variance += missing**2 / precision
        fit -= float(total @ total) / precision
        volume += math.log(precision * level)
    evidence = -(fit + values.shape[1] * volume) / 2
    return Predicted(np.asarray(middle + mean), math.sqrt(max(variance, 0.0)), evidence)


def predictions(kernel: Kernel, cases: Sequence[LeftOut]) -> Predictions:
    """What a kernel says of each of m fixes. Raises as `predicted`; InvalidValue for none."""
    if not cases:
        raise InvalidValue("predictions must be of one fix or more, got none")
    outcomes = [predicted(kernel, case.times, case.values, case.time) for case in cases]
    return Predictions(
        np.stack(
            [case.value - prediction.mean for case, prediction in zip(cases, outcomes, strict=True)]
        ),
        np.array([prediction.std for prediction in outcomes]),
        np.array([prediction.evidence for prediction in outcomes]),
    )
