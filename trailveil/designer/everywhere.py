"""Noise for every place at once, at any time, for a prior of movement: it wanders as people do.

The noise is a sum of stationary Markov processes whose time constants are geometric: fast ones for
who knows a true place, slow ones for who sees a long stay, and one rough process, so that the kinks
of a path (a stop) are hidden, too. Its variances are the smallest of this family that hold every
loss of trailveil.privacy.anytime to the bound: it looks at no position and, but for the longest
stay, at no time. 1 / L is concave in the variances (the parallel sum of Anderson and Duffin, 1969),
so that

    min sum a     s.t.     1 / L_j(a) >= 1 / bound for all j,     a >= 0

is convex; it is solved on a few points of the grids, and scaled until the losses on the fine ones
meet the bound. No optimality over all noise is claimed.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from trailveil.designer.stepping import positive, until_met
from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, Matern12, Matern32, Scaled, Sum
from trailveil.privacy.anytime import (
    Assumed,
    PriorMovement,
    Worst,
    movement_of,
    stationary_variances,
    worst,
)
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior

# The fastest smooth process, in time constants of the velocity; each next one is slower by a
# factor; the rough one is faster than all.
_FASTEST, _SLOWER, _ROUGH = 2.0, 4.0, 1.0
_LEAST_TERMS, _MOST_TERMS = 5, 12
# Least variance of a term in units of 1 / bound: all stay in reach of the search ...
_LEAST = 1e-4
# ... and how a variance is moved to see what that does, relative and in those units.
_MOVED = 1e-4
# Relative: where the search for the least ends, and the digits to which deviations are rounded up.
_FOUND, _DIGITS = 1e-5, 4
_MOST_STEPS = 60
# Relative: variances that differ by no more are one.
_CONSTANT = 1e-12
# How near (relative) losses are brought to what is allowed before the last step, and in how many.
_NEARLY, _MOST_NEARER = 1e-3, 12


@dataclass(frozen=True, slots=True)
class Everywhere:
    """A noise for every place at once, and what it leaves.

    kernel: of the noise. worst: of each kind of adversary, recomputed from the kernel itself.
    """

    kernel: Kernel
    worst: tuple[Worst, ...]

    @property
    def loss(self) -> float:
        """The largest loss of any place, at any time, to any of them: an upper bound."""
        return max(case.exposure.loss for case in self.worst)

    def mechanism(self, times: FloatArray) -> Mechanism:
        """The noise at the times (n,) of a series."""
        return Mechanism(times, np.empty((np.size(times), 0)), process=self.kernel)


@lru_cache(maxsize=8)
def noise_everywhere(person: PriorMovement, assumed: Assumed, bound: float) -> Everywhere:
    """The least noise of the family under which no loss is above `bound` (1 / unit^2).

    Raises NumericalError where none is found, InvalidValue for numbers out of range.
    """
    positive(bound, "the bound of the loss")
    if not assumed.speeds or min(assumed.speeds) <= 0:
        raise InvalidValue(f"speeds must be positive, got {assumed.speeds}")
    noise = _family(person, assumed)
    least = _least(person, assumed, noise, bound)
    total = float(np.sum(least))

    def made(trace: float) -> Everywhere:
        deviations = [_rounded_up(math.sqrt(variance * trace / total)) for variance in least]
        terms = [
            type(term)(term.length_scale, std) for term, std in zip(noise, deviations, strict=True)
        ]
        variances = np.array([term.std**2 for term in terms])
        return Everywhere(Sum(tuple(terms)), tuple(worst(person, assumed, noise, variances)))

    def excess(everywhere: Everywhere) -> float:
        return everywhere.loss / bound - 1.0

    # Losses fall at most as fast as the noise grows: these steps come near from above.
    trace = total
    for _ in range(_MOST_NEARER):
        if (above := excess(made(trace))) <= _NEARLY:
            break
        trace *= 1.0 + above
    return until_met(made, excess, trace)


def every_value(prior: Prior, per_point: float, *, budget: bool) -> Mechanism:
    """Noise for every recorded value at once, against the prior alone.

    The loss of X_i is at least 1 / Gamma_ii, so that no noise of this mean variance has all losses
    below 1 / per_point, and none of smaller mean variance holds them to it. With constant prior
    variance that is met exactly, by noise that is shaped like the prior; for a prior of movement to
    a little, and what is held exactly is the variance (`budget`) or the loss (else). Raises
    Refused for another prior.
    """
    variances = prior.kernel.diagonal(prior.times)
    if float(np.ptp(variances)) <= _CONSTANT * float(variances.max()):
        share = positive(per_point, "the noise variance per point") / float(variances[0])
        kernel: Kernel = Scaled(prior.kernel, share)
    else:
        try:
            person = movement_of(prior.kernel)
        except Refused:
            raise Refused(
                "noise for every value must be of a prior of one variance at all times, or of one "
                "integrated-ou with a level, got another: state secrets for some of the values"
            ) from None
        kernel = noise_everywhere(person, alone(person), 1.0 / per_point).kernel
        if budget:
            kernel = Scaled(kernel, per_point / float(kernel.diagonal([0.0])[0]))
    return Mechanism(prior.times, np.empty((prior.times.size, 0)), process=kernel)


def alone(person: PriorMovement) -> Assumed:
    """Nobody but who knows the prior and nothing else."""
    return Assumed((person.std,), know=False)


def _family(person: PriorMovement, assumed: Assumed) -> tuple[Matern12 | Matern32, ...]:
    """Kernels of deviation one: smooth ones up to the longest stay, then the rough one."""
    fastest = _FASTEST * person.time_constant
    longest = max(assumed.longest_stay / fastest, 1.0)
    count = 1 + math.ceil(math.log(longest) / math.log(_SLOWER))
    count = min(max(count, _LEAST_TERMS), _MOST_TERMS)
    smooth = [Matern32(fastest * _SLOWER**k) for k in range(count)]
    return (*smooth, Matern12(_ROUGH * person.time_constant))


def _least(
    person: PriorMovement, assumed: Assumed, noise: tuple[Matern12 | Matern32, ...], bound: float
) -> FloatArray:
    """The variances (m,) of the convex program on a few points, to a few digits.

    In units of 1 / bound; what is found is made to meet every bound later.
    """
    computed: dict[bytes, tuple[FloatArray, FloatArray]] = {}

    def rooms(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """bound / L_j (c,), and its derivatives (c, m)."""
        key = x.tobytes()
        if key not in computed:
            steps = np.maximum(_MOVED * x, _MOVED * _LEAST)
            moved = np.vstack([x, x + np.diag(steps)])
            kinds = stationary_variances(person, assumed, noise, moved / bound, fine=False)
            losses = [kind.losses(person.level).reshape(len(moved), -1) for kind in kinds]
            values = bound / np.concatenate(losses, axis=1)
            computed[key] = values[0], ((values[1:] - values[0]) / steps[:, None]).T
        return computed[key]

    start = np.ones(len(noise))
    start /= min(1.0, float(np.min(rooms(start)[0])))
    size = float(np.sum(start))
    met: Any = {"type": "ineq", "fun": lambda x: rooms(x)[0] - 1, "jac": lambda x: rooms(x)[1]}
    options: Any = {"maxiter": _MOST_STEPS, "ftol": _FOUND}
    from scipy.optimize import Bounds, minimize  # heavy, as all of scipy.optimize

    optimum = minimize(  # type: ignore[call-overload]  # the stubs do not know jac=True with bounds
        lambda x: (float(np.sum(x)) / size, np.full(start.size, 1 / size)),
        start,
        jac=True,
        bounds=Bounds(_LEAST, np.inf),
        constraints=[met],
        method="SLSQP",
        options=options,
    )
    return np.asarray(np.maximum(optimum.x, _LEAST) / bound)


def _rounded_up(value: float) -> float:
    """To a few digits: the same on every computer, whatever the last bits of a search were."""
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return math.ceil(value / unit) * unit
