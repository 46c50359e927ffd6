"""The main job: a trace in, a protected trace and its guarantee out.

`plan` designs the noise and computes what it guarantees; `draw` adds it. The noise never meets a
coordinate in floating point: coordinates and noise are integers of one micrometre, their sum is
exact, and it is rounded to a public grid of degrees. Coordinates are lattice points and rounding is
floor(x + 1/2), so X + round(G) is round(X + G): what leaves is a function of X + G, and the
guarantee carries over.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from trailveil.design.closed_form import least_noise
from trailveil.errors import InvalidValue, NumericalError, Refused
from trailveil.gaussian import FloatArray
from trailveil.guarantee import Guarantee, loss_bound_for
from trailveil.kernels import Constant, IntegratedOU, Kernel, White
from trailveil.loss import loss_matrix, marginal_losses
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import Prior, SideInformation, observe
from trailveil.projection import MICRO, Frame, frame_for
from trailveil.randomness import normals
from trailveil.secrets import Secret, basic, difference, stay, window_mean
from trailveil.selection import Stretch
from trailveil.trace import Trace

# The prior for GPS where nothing better is stated: see docs/priors.md.
DEFAULT_KERNEL: Kernel = IntegratedOU(3.0, 60.0) + Constant(100_000.0) + White(2.0)
# Raised whenever the same request would get other noise: draws are never shared between designs.
DESIGN_VERSION = 1
# Seconds to a true place that somebody learns, for the report's warning.
KNOWN_AWAY = (60.0, 300.0, 600.0, 1200.0)
_KNOWN_ACCURACY = 10.0
# Fixes of one stay whose losses are computed at a time: memory is this many columns of the trace.
_CHUNK = 256
_LARGEST_STD = 1e6


class Noise(StrEnum):
    """The mechanisms of `protect`."""

    OPTIMAL = "optimal"
    UNIFORM = "uniform"
    WITHHOLD = "withhold"


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a release.

    stretches: what to protect, in order and apart. radius: metres. withhold: None, or the seconds
    around each stretch within which nothing is released. sees_stillness: whether adversaries see
    that a stay stands still.
    """

    stretches: tuple[Stretch, ...]
    radius: float = 200.0
    epsilon: float = 1.0
    order: float = 5.0
    withhold: float | None = None
    sees_stillness: bool = True
    noise: Noise = Noise.OPTIMAL
    kernel: Kernel = DEFAULT_KERNEL

    @property
    def bound(self) -> float:
        """The most that the loss of one location may be, 1 / m^2, at the frame's worst scale."""
        return loss_bound_for(self.epsilon, self.radius * (1 + Frame.SCALE_ERROR), self.order)


@dataclass(frozen=True, slots=True)
class Finding:
    """What the release guarantees of one stretch, and what it leaves.

    fixes: recorded in it. withheld: of those. guarantee: against the adversaries of the request.
    deviation: metres per coordinate that an adversary with no idea of the place is left with.
    after_learning: (seconds away, metres) for somebody who learns one true place that far away.
    displacement_epsilon: of the way from begin to end of a stay, which is reported and not
    constrained.
    """

    stretch: Stretch
    fixes: int
    withheld: int
    guarantee: Guarantee
    deviation: float
    after_learning: tuple[tuple[float, float], ...]
    displacement_epsilon: float | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A designed release, before any noise is drawn. It holds the true trace: keep it private.

    mechanism: the noise of each coordinate. components: how many single mechanisms it is the sum
    of.
    """

    trace: Trace
    frame: Frame
    lattice: NDArray[np.int64]
    request: Request
    mechanism: Mechanism
    components: int
    findings: tuple[Finding, ...]

    @property
    def design(self) -> str:
        """The whole design in one line, for the keyed hash of the request."""
        return repr((DESIGN_VERSION, self.frame, self.request))


def plan(trace: Trace, request: Request, *, frame: Frame | None = None) -> Plan:
    """Design the noise for a trace and compute what it guarantees.

    Raises Refused where nothing would be left to release or the kind of noise cannot meet the
    target; InvalidValue for a radius, epsilon or order out of range, or no stretch at all.
    """
    if not request.stretches:
        raise InvalidValue("something must be protected, got nothing: state a time or a stay")
    chosen = frame or frame_for(trace.positions)
    prior = Prior(request.kernel, trace.seconds)
    base = no_noise(prior.times).withholding(_withheld(trace, request))
    if base.rows.size < 2:  # a trace
        raise Refused(
            "at least two fixes must remain to be released, got fewer: protect or withhold a "
            "shorter part"
        )
    demands = [_demands(prior, trace, stretch, request) for stretch in request.stretches]
    mechanism = _MAKERS[request.noise](prior, base, demands, request)
    if mechanism.max_std > _LARGEST_STD:
        raise Refused(
            "the noise must stay below 1,000 km, got more: state a smaller radius or a larger "
            "epsilon"
        )
    findings = [
        _finding(prior, trace, mechanism, request, one)
        for one in zip(request.stretches, demands, strict=True)
    ]
    components = mechanism.factor.shape[1] + (mechanism.floor > 0)
    lattice = chosen.to_lattice(trace.positions)
    return Plan(trace, chosen, lattice, request, mechanism, components, tuple(findings))


def draw(made: Plan, seed: bytes) -> tuple[Trace, NDArray[np.int64]]:
    """The released fixes: their trace, and their places in whole microdegrees (n, 2).

    seed: 32 secret bytes that belong to this plan alone. The positions of the trace are those
    released.
    """
    noise = np.column_stack([noise_of(made.mechanism, seed, axis) for axis in ("east", "north")])
    moved = made.lattice + np.floor(noise * MICRO + 0.5).astype(np.int64)
    grid = made.frame.to_degrees(moved[made.mechanism.rows])
    kept = made.trace.only(np.asarray(made.mechanism.released))
    return replace(kept, positions=grid / MICRO), grid


def noise_of(mechanism: Mechanism, seed: bytes, axis: str) -> FloatArray:
    """One draw of G (n,), in the unit of the series, for one coordinate."""
    if mechanism.process is not None or mechanism.refinement is not None:
        raise InvalidValue("noise to release must be a factor and a floor in double precision")
    columns = normals(seed, f"{axis} factor", mechanism.factor.shape[1])
    total = mechanism.factor @ columns
    if mechanism.floor > 0:
        total = total + np.sqrt(mechanism.floor) * normals(seed, f"{axis} floor", total.size)
    return np.asarray(total)


@dataclass(frozen=True, slots=True, eq=False)
class _Demands:
    """The quantities of one stretch that must stay within the bound.

    single: one place each. fixes: the times of the fixes whose places must, each for itself.
    """

    single: tuple[Secret, ...]
    fixes: FloatArray


def _demands(prior: Prior, trace: Trace, stretch: Stretch, request: Request) -> _Demands:
    """A time is one place; a stay that of who stands still, the mean and every fix, together."""
    begin, end = stretch.seconds(trace)
    inside = prior.times[stretch.rows(trace)]
    if not stretch.is_stay:
        return _Demands((basic(begin),), np.empty(0))
    still = (stay(begin, end),) if request.sees_stillness else ()
    mean = (window_mean(inside),) if inside.size > 1 else ()
    return _Demands((*still, *mean, basic(begin), basic(end)), inside)


def _withheld(trace: Trace, request: Request) -> NDArray[np.bool_]:
    """The fixes within the stated seconds of any stretch, (n,)."""
    found = np.zeros(len(trace), dtype=np.bool_)
    if request.withhold is not None:
        around = round(request.withhold * 1e9)
        for one in request.stretches:
            found |= (trace.times >= one.begin - around) & (trace.times <= one.end + around)
    return found


def _optimal(prior: Prior, base: Mechanism, demands: list[_Demands], request: Request) -> Mechanism:
    """The sum of single optima, each on top of those before: more noise never raises a loss."""
    mechanism = base
    for demand in demands:
        for secret in demand.single:
            mechanism = least_noise(prior, secret, request.bound, existing=mechanism, flat=True)
    for demand in demands:
        mechanism = _cover_fixes(prior, mechanism, demand.fixes, request.bound)
    return mechanism


def _cover_fixes(prior: Prior, mechanism: Mechanism, fixes: FloatArray, bound: float) -> Mechanism:
    """Noise for the fix that loses most, until none loses too much."""
    for _ in range(fixes.size + 1):
        found = _fix_losses(prior, mechanism, fixes)
        if found.size == 0 or float(found.max()) <= bound:
            return mechanism
        worst = basic(float(fixes[int(np.argmax(found))]))
        mechanism = least_noise(prior, worst, bound, existing=mechanism, flat=True)
    raise NumericalError("noise for every fix of a stay must settle, got a fix that never does")


def _fix_losses(prior: Prior, mechanism: Mechanism, fixes: FloatArray) -> FloatArray:
    """The loss of the place at each of the fixes, against a flat prior of the level."""
    parts = [fixes[i : i + _CHUNK] for i in range(0, fixes.size, _CHUNK)]
    secrets = [Secret("fixes", part, np.eye(part.size)) for part in parts]
    found = [marginal_losses(prior, secret, mechanism, flat=True) for secret in secrets]
    return np.concatenate(found) if found else np.empty(0)


def _uniform(prior: Prior, base: Mechanism, demands: list[_Demands], request: Request) -> Mechanism:
    """Independent noise of one variance at every released fix: what people use, for comparison."""

    def excess(log_variance: float) -> float:
        mechanism = replace(base, floor=float(np.exp(log_variance)))
        return float(np.log(_worst(prior, mechanism, demands) / request.bound))

    low, high = np.log(1e-4), np.log(_LARGEST_STD**2)
    if excess(high) > 0:
        raise Refused("uniform noise must be able to meet the target, got one that it never meets")
    variance = float(np.exp(brentq(excess, low, high, xtol=1e-9))) if excess(low) > 0 else 1e-4
    while excess(float(np.log(variance))) > 0:
        variance *= 1 + 1e-8
    return replace(base, floor=variance)


def _only_withheld(
    prior: Prior, base: Mechanism, demands: list[_Demands], request: Request
) -> Mechanism:
    """No noise at all: what is withheld must be enough."""
    worst = _worst(prior, base, demands)
    if worst > request.bound:
        reached = request.epsilon * worst / request.bound
        raise Refused(
            f"withholding alone must reach epsilon {request.epsilon:g}, got {reached:.3g}; "
            "withhold longer "
            "(--withhold SECONDS), or leave --mechanism out to add the noise that is missing"
        )
    return base


_MAKERS: dict[Noise, Callable[[Prior, Mechanism, list[_Demands], Request], Mechanism]] = {
    Noise.OPTIMAL: _optimal,
    Noise.UNIFORM: _uniform,
    Noise.WITHHOLD: _only_withheld,
}


def _worst(prior: Prior, mechanism: Mechanism, demands: list[_Demands]) -> float:
    return max(_loss(prior, mechanism, demand) for demand in demands)


def _loss(prior: Prior, mechanism: Mechanism, demand: _Demands) -> float:
    """The largest loss of anything demanded of a stretch, recomputed from the mechanism."""
    single = [loss_matrix(prior, one, mechanism, flat=True).largest for one in demand.single]
    return float(max([*single, *_fix_losses(prior, mechanism, demand.fixes)]))


def _finding(
    prior: Prior,
    trace: Trace,
    mechanism: Mechanism,
    request: Request,
    one: tuple[Stretch, _Demands],
) -> Finding:
    stretch, demand = one
    inside = stretch.rows(trace)
    loss = _loss(prior, mechanism, demand)
    if loss > request.bound * (1 + 1e-9):
        raise NumericalError("a designed release must meet its own target, got one that does not")
    radius = request.radius * (1 + Frame.SCALE_ERROR)
    moved = None
    if stretch.is_stay:
        way = difference(*stretch.seconds(trace))
        moved = (
            loss_matrix(prior, way, mechanism, flat=True).largest * radius**2 * request.order / 2
        )
    return Finding(
        stretch,
        int(inside.sum()),
        int((inside & ~np.asarray(mechanism.released)).sum()),
        Guarantee(radius * float(np.sqrt(loss)), request.order),
        float("inf") if loss == 0 else loss**-0.5,
        _after_learning(prior, mechanism, demand.single[0]),
        moved,
    )


def _after_learning(
    prior: Prior, mechanism: Mechanism, secret: Secret
) -> tuple[tuple[float, float], ...]:
    """What is left of the place to who learns one true place some time before or after it."""
    judge = prior.for_secret(secret)
    start, end = secret.window or (float(secret.times[0]), float(secret.times[0]))
    place = replace(secret, window=None)
    found = []
    for away in KNOWN_AWAY:
        before = prior.times[prior.times <= start - away][-1:]
        after = prior.times[prior.times >= end + away][:1]
        left = [
            observe(judge, mechanism, SideInformation(at, _KNOWN_ACCURACY)).posterior(place)
            for at in (before, after)
            if at.size
        ]
        if left:
            found.append((away, min(float(np.sqrt(one.covariance[0, 0])) for one in left)))
    return tuple(found)
