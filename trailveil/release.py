"""The main job: a trace in, a protected trace and its guarantee out.

`plan` designs the noise and computes what it guarantees; `draw` adds it. The noise never meets a
coordinate in floating point: coordinates and noise are integers of one micrometre, their sum is
exact, and it is rounded to a public grid of degrees. Coordinates are lattice points and rounding is
floor(x + 1/2), so X + round(G) is round(X + G): what leaves is a function of X + G, and the
guarantee carries over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from trailveil.anytime import Worst
from trailveil.chains import normals_needed, sample_process
from trailveil.demands import (
    LARGEST_STD,
    Demands,
    demands,
    loss_of,
    only_withheld,
    optimal,
    single_losses,
    uniform,
)
from trailveil.errors import InvalidValue, NumericalError, Refused
from trailveil.gaussian import TARGET_TOLERANCE, FloatArray
from trailveil.guarantee import Guarantee, loss_bound_for
from trailveil.kernels import Kernel
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import Prior, observe
from trailveil.priors import BUILT_IN
from trailveil.projection import MICRO, Frame, frame_for
from trailveil.randomness import normals
from trailveil.secrets import Secret, basic, difference, stay
from trailveil.selection import Stretch
from trailveil.trace import NANOSECONDS, Trace

DEFAULT_KERNEL = BUILT_IN["default"].kernel
"""The prior of movement where none is stated; metres and seconds."""

# Raised whenever the same request would get other noise: draws are never shared between designs.
DESIGN_VERSION = 1
# Metres per coordinate: the most that an adversary can be left with, well below the prior's level.
_MOST_UNSURE = 20_000.0
# Seconds to a true place that somebody learns, and how well (metres), for the report's warning.
KNOWN_AWAY = (60.0, 300.0, 600.0, 1200.0)
_KNOWN_ACCURACY = 10.0


class Noise(StrEnum):
    """The mechanisms of `protect`."""

    OPTIMAL = "optimal"
    UNIFORM = "uniform"
    WITHHOLD = "withhold"
    EVERYWHERE = "everywhere"
    """For every place at once: see trailveil.everywhere, which plans such a release."""


_MAKERS: dict[Noise, Callable[[Prior, Mechanism, Sequence[Demands], float], Mechanism]] = {
    Noise.OPTIMAL: optimal,
    Noise.UNIFORM: uniform,
    Noise.WITHHOLD: only_withheld,
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a release.

    stretches: what to protect. radius: metres. withhold: None, or the seconds around each stretch
    within which nothing is released. sees_stillness: whether adversaries see that a stay stands
    still. Raises InvalidValue for numbers out of range.
    """

    stretches: tuple[Stretch, ...]
    radius: float = 200.0
    epsilon: float = 1.0
    order: float = 5.0
    withhold: float | None = None
    sees_stillness: bool = True
    noise: Noise = Noise.OPTIMAL
    kernel: Kernel = DEFAULT_KERNEL

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, least in (("radius", 0.0), ("epsilon", 0.0), ("order", 1.0)):
            value = float(getattr(self, name))
            if not least < value < 1e9:
                raise InvalidValue(f"{name} must be a number above {least:g}, got {value:g}")
            object.__setattr__(self, name, value)
        if self.withhold is not None:
            object.__setattr__(self, "withhold", float(self.withhold))
            if not 0 <= self.withhold < 1e9:
                raise InvalidValue(f"withhold must be seconds of 0 or more, got {self.withhold:g}")

    @property
    def bound(self) -> float:
        """The most that the loss of one location may be, 1 / m^2, at the frame's worst scale."""
        return loss_bound_for(self.epsilon, self.radius * (1 + Frame.SCALE_ERROR), self.order)

    @property
    def design(self) -> str:
        """All of it that the noise depends on, in one line: not what stretches are called."""
        when = tuple((one.begin, one.end) for one in self.stretches)
        rest = tuple(getattr(self, one.name) for one in fields(self) if one.name != "stretches")
        return repr((DESIGN_VERSION, when, *rest))


@dataclass(frozen=True, slots=True)
class Finding:
    """What the release guarantees of one stretch, and what it leaves.

    fixes: recorded in it. withheld: of those. guarantee: against the adversaries of the request.
    deviation: metres per coordinate that an adversary with no idea of the place is left with.
    after_learning: (seconds away, metres) for somebody who learns one true place that far away.
    seen_still: metres left to who sees that a stay stands still, where noise was not made for them.
    displacement_epsilon: of the way from begin to end of a stay, reported and not constrained.
    """

    stretch: Stretch
    fixes: int
    withheld: int
    guarantee: Guarantee
    deviation: float
    after_learning: tuple[tuple[float, float], ...] = ()
    seen_still: float | None = None
    displacement_epsilon: float | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A designed release, before any noise is drawn. It holds the true trace: keep it private.

    lattice: the places (n, 2) in micrometres. mechanism: the noise of each coordinate.
    everywhere: of noise for every place at once, the worst case of each kind of adversary.
    """

    trace: Trace
    frame: Frame
    lattice: NDArray[np.int64]
    request: Request
    mechanism: Mechanism
    findings: tuple[Finding, ...]
    everywhere: tuple[Worst, ...] = ()

    @property
    def components(self) -> int:
        """How many single mechanisms the noise is the sum of."""
        return int(self.mechanism.factor.shape[1]) + (self.mechanism.floor > 0)


def identity(trace: Trace, request: Request) -> tuple[bytes, ...]:
    """All that a release depends on: times, places, the whole design. To be hashed with a key."""
    frame = frame_for(trace.positions)
    places = frame.to_lattice(trace.positions)
    whole = (repr(frame).encode(), request.design.encode())
    return (trace.times.astype("<i8").tobytes(), places.astype("<i8").tobytes(), *whole)


def plan(trace: Trace, request: Request) -> Plan:
    """Design the noise for a trace and compute what it guarantees.

    Raises Refused where nothing would be left to release or the kind of noise cannot meet the
    target; InvalidValue where nothing is to be protected.
    """
    if not request.stretches or request.noise is Noise.EVERYWHERE:
        raise InvalidValue("something must be protected, got nothing: state a time or a stay")
    check_target(request)
    frame = frame_for(trace.positions)
    prior = Prior(request.kernel, trace.seconds)
    base = no_noise(prior.times).withholding(_withheld(trace, request))
    if base.rows.size < 2:
        raise Refused(
            "at least two fixes must remain to be released, got fewer: protect or withhold a "
            "shorter part"
        )
    wanted = [
        demands(prior, one.rows(trace), *one.seconds(trace), sees_stillness=request.sees_stillness)
        for one in request.stretches
    ]
    mechanism = _MAKERS[request.noise](prior, base, wanted, request.bound)
    if mechanism.max_std > LARGEST_STD:
        raise Refused(
            f"the noise must stay below {LARGEST_STD / 1000:g} km, got more: state a smaller "
            "radius, a larger epsilon, or shorter parts"
        )
    made = Plan(trace, frame, frame.to_lattice(trace.positions), request, mechanism, ())
    pairs = zip(request.stretches, wanted, strict=True)
    return replace(made, findings=tuple(_finding(prior, made, *pair) for pair in pairs))


def check_target(request: Request) -> None:
    """Refuse a target that would leave adversaries with more than the prior's level allows for."""
    if request.bound**-0.5 > _MOST_UNSURE:
        raise Refused(
            f"an adversary must be left with at most {_MOST_UNSURE / 1000:g} km, got "
            f"{request.bound**-0.5 / 1000:.4g} km: state a smaller radius or a larger epsilon"
        )


def draw(made: Plan, seed: bytes) -> tuple[Trace, NDArray[np.int64]]:
    """The released fixes: their trace, and their places in whole microdegrees (n, 2).

    seed: 32 secret bytes that belong to this plan alone. Positions of the trace are those released.
    """
    noise = np.column_stack([noise_of(made.mechanism, seed, axis) for axis in ("east", "north")])
    moved = made.lattice + on_lattice(noise)
    grid = made.frame.to_degrees(moved[made.mechanism.rows])
    kept = made.trace.only(np.asarray(made.mechanism.released))
    return replace(kept, positions=grid / MICRO), grid


def on_lattice(noise: FloatArray) -> NDArray[np.int64]:
    """Metres in whole micrometres: floor(x + 1/2), a function of the noise alone."""
    return np.floor(noise * MICRO + 0.5).astype(np.int64)


def noise_of(mechanism: Mechanism, seed: bytes, axis: str) -> FloatArray:
    """One draw of G (n,), in the unit of the series, for one coordinate; O(n) for a process.

    A process is part of the name of its normals: two of them never share a draw, and their
    difference is no multiple of it. Raises InvalidValue for a process that is not Markov.
    """
    if mechanism.refinement is not None:
        raise InvalidValue("noise to release must be in double precision, got finer noise")
    columns = normals(seed, f"{axis} factor", mechanism.factor.shape[1])
    total = mechanism.factor @ columns
    if mechanism.floor > 0:
        total = total + np.sqrt(mechanism.floor) * normals(seed, f"{axis} floor", total.size)
    if mechanism.process is not None:
        shape = (total.size, normals_needed(mechanism.process))
        kicks = normals(seed, f"{axis} process {mechanism.process!r}", shape[0] * shape[1])
        total = total + sample_process(mechanism.process, mechanism.times, kicks.reshape(shape))
    return np.asarray(total)


def _withheld(trace: Trace, request: Request) -> NDArray[np.bool_]:
    """The fixes within the stated seconds of any stretch, (n,)."""
    found = np.zeros(len(trace), dtype=np.bool_)
    if request.withhold is not None:
        around = round(request.withhold * NANOSECONDS)
        for one in request.stretches:
            found |= (trace.times >= one.begin - around) & (trace.times <= one.end + around)
    return found


def _finding(prior: Prior, made: Plan, stretch: Stretch, demand: Demands) -> Finding:
    request, mechanism = made.request, made.mechanism
    loss = loss_of(prior, mechanism, demand, request.bound)
    if loss > request.bound * (1 + TARGET_TOLERANCE):
        raise NumericalError("a designed release must meet its own target, got one that does not")
    inside = stretch.rows(made.trace)
    begin, end = stretch.seconds(made.trace)
    place = stay(begin, end) if stretch.is_stay and request.sees_stillness else basic(begin)
    found = Finding(
        stretch,
        int(inside.sum()),
        int((inside & ~np.asarray(mechanism.released)).sum()),
        Guarantee(_radius(request) * float(np.sqrt(loss)), request.order),
        float("inf") if loss == 0 else loss**-0.5,
        _after_learning(prior, mechanism, place),
    )
    return _with_stay(prior, made, found, begin, end) if stretch.is_stay else found


def _with_stay(prior: Prior, made: Plan, found: Finding, begin: float, end: float) -> Finding:
    """What is reported of a stay besides: the way within it, and what stillness would tell."""
    request, mechanism = made.request, made.mechanism
    secrets = [difference(begin, end), stay(begin, end)]
    way, still = single_losses(prior, mechanism, secrets, request.bound)
    epsilon = Guarantee(_radius(request) * float(np.sqrt(way)), request.order).epsilon
    unmade = None if request.sees_stillness else float(still**-0.5)
    return replace(found, seen_still=unmade, displacement_epsilon=epsilon)


def _radius(request: Request) -> float:
    return request.radius * (1 + Frame.SCALE_ERROR)


def _after_learning(
    prior: Prior, mechanism: Mechanism, secret: Secret
) -> tuple[tuple[float, float], ...]:
    """What is left of the place to who learns one true place some time before or after it.

    Q - q^2 / (Q_kk + accuracy^2), Q the joint posterior covariance of the place and such places.
    """
    start, end = secret.window or (float(secret.times[0]), float(secret.times[0]))
    known = [
        (away, float(time))
        for away in KNOWN_AWAY
        for time in (
            *prior.times[prior.times <= start - away][-1:],
            *prior.times[prior.times >= end + away][:1],
        )
    ]
    points = np.unique([time for _, time in known])
    if points.size == 0:
        return ()
    times = np.concatenate([secret.times, points])
    places = Secret("place and others", times, np.eye(times.size))
    found = observe(prior.for_secret(secret), mechanism).posterior(places).covariance
    told = found[0, 1:] ** 2 / (np.diagonal(found)[1:] + _KNOWN_ACCURACY**2)
    left = dict(zip(points.tolist(), np.sqrt(np.maximum(found[0, 0] - told, 0.0)), strict=True))
    return tuple(
        (away, min(float(left[time]) for other, time in known if other == away))
        for away in KNOWN_AWAY
        if any(other == away for other, _ in known)
    )
