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

from trailveil.adversaries import DEFAULT, Named
from trailveil.adversary import PLAIN
from trailveil.anytime import Worst
from trailveil.common import Common, named_in_full
from trailveil.crops import Crop, crops
from trailveil.demands import Left, Target
from trailveil.designing import LARGEST_STD, Designed, only_withheld, optimal, part_of, uniform
from trailveil.errors import BeyondPrior, InvalidValue, Refused
from trailveil.guarantee import CIRCLE_68, Guarantee, loss_bound_for
from trailveil.kept import MOVEMENT, with_fields_left_out
from trailveil.kernels import Kernel
from trailveil.kind_designs import later
from trailveil.kind_store import Kept
from trailveil.kind_use import UsedDesign, used_design
from trailveil.kinds import DesignFor
from trailveil.mechanism import Mechanism, no_noise
from trailveil.priors import BUILT_IN
from trailveil.projection import Frame, placed
from trailveil.selection import Stretch, within
from trailveil.trace import Trace
from trailveil.unasked import Unasked, unasked
from trailveil.version import DESIGN_VERSION
from trailveil.withholding import Price, cheapest, price

DEFAULT_KERNEL = BUILT_IN["default"].kernel
"""The prior of movement where none is stated; metres and seconds."""

# Metres per coordinate: the most that an adversary can be left with, well below the prior's level.
_MOST_UNSURE = 20_000.0
AUTO = "auto"
"""To withhold as long as is cheapest."""

RATE = 500.0
"""Metres: a minute of which nothing is released is as bad as a minute moved by so many."""


class Noise(StrEnum):
    """The mechanisms of `protect`."""

    OPTIMAL = "optimal"
    UNIFORM = "uniform"
    WITHHOLD = "withhold"
    EVERYWHERE = "everywhere"
    """For every place at once: see trailveil.everywhere, which plans such a release."""


_MAKERS: dict[Noise, Callable[[Sequence[Crop], Mechanism, Target], Designed]] = {
    Noise.OPTIMAL: optimal,
    Noise.UNIFORM: uniform,
    Noise.WITHHOLD: only_withheld,
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a release.

    stretches: what to protect. radius: metres. withhold: None, or the seconds around each stretch
    within which nothing is released, or AUTO for what is cheapest at the exchange rate: metres that
    a minute may be moved by to be as bad as one withheld. who: the adversaries, by name. leave:
    metres around the true place, the 68 % circle that each of them must be left with, in place of
    epsilon. design_for: what noise is designed for, see `trailveil.kinds`. Raises InvalidValue for
    numbers out of range.
    """

    stretches: tuple[Stretch, ...]
    radius: float = 200.0
    epsilon: float = 1.0
    order: float = 5.0
    withhold: float | str | None = None
    who: tuple[Named, ...] = DEFAULT
    noise: Noise = Noise.OPTIMAL
    kernel: Kernel = DEFAULT_KERNEL
    leave: float | None = None
    rate: float = RATE
    design_for: DesignFor = DesignFor.AUTO

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, least in (
            ("radius", 0.0),
            ("epsilon", 0.0),
            ("order", 1.0),
            ("rate", 0.0),
            ("leave", 0.0),
        ):
            if getattr(self, name) is None:
                continue
            value = float(getattr(self, name))
            if not least < value < 1e9:
                raise InvalidValue(f"{name} must be a number above {least:g}, got {value:g}")
            object.__setattr__(self, name, value)
        if self.withhold is not None and self.withhold != AUTO:
            object.__setattr__(self, "withhold", float(self.withhold))
            if not 0 <= float(self.withhold) < 1e9:
                raise InvalidValue(f"withhold must be seconds of 0 or more, got {self.withhold}")
        if self.withhold == AUTO and self.noise is not Noise.OPTIMAL:
            raise InvalidValue("withhold must be seconds with noise of this kind, got auto")

    @property
    def bound(self) -> float:
        """The most that the loss of one location may be, 1 / m^2, at the frame's worst scale."""
        return loss_bound_for(self.epsilon, self.radius * (1 + Frame.SCALE_ERROR), self.order)

    @property
    def target(self) -> Target:
        """What the design must meet: speeds are those around the average of the default prior."""
        average = self.kernel == DEFAULT_KERNEL
        who = tuple(one for one in self.who if one is not Named.SPEEDS or average)
        # Distances in the frame are a little longer than they are.
        frame = 1 + Frame.SCALE_ERROR
        left = None if self.leave is None else self.leave * frame / CIRCLE_68
        return Target(self.bound, who, left)

    @property
    def design(self) -> str:
        """All of it that the noise depends on, in one line: not what stretches are called."""
        when = tuple((one.begin, one.end) for one in self.stretches)
        rest = tuple(getattr(self, one.name) for one in fields(self) if one.name != "stretches")
        return repr((DESIGN_VERSION, when, *rest))


@dataclass(frozen=True, slots=True)
class Finding:
    """What the release guarantees of one stretch, and what it leaves.

    fixes: recorded in it. withheld: of those. guarantee: against all adversaries of the request.
    deviation: metres per coordinate that an adversary with no idea of the place is left with. left:
    what each adversary is left with. after_learning: (seconds away, metres) for somebody who learns
    one true place that far away, where noise was not made for them; seen_still: the same of who
    sees that a stay stands still. displacement_epsilon: of the way from begin to end of a stay,
    reported and not constrained.
    """

    stretch: Stretch
    fixes: int
    withheld: int
    guarantee: Guarantee
    deviation: float
    left: tuple[Left, ...] = ()
    after_learning: tuple[tuple[float, float], ...] = ()
    seen_still: float | None = None
    displacement_epsilon: float | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A designed release, before any noise is drawn. It holds the true trace: keep it private.

    lattice: the places (n, 2) in micrometres. mechanism: the noise of each coordinate.
    gap: how far above the least noise it may be, or None where no bound is claimed. withheld_for:
    seconds around each stretch of which nothing is released, and the prices it was chosen by.
    everywhere: of noise for every place at once, the worst case of each kind of adversary.
    common: noise shared with other releases, the last columns of the mechanism. of_kind: the design
    that its own noise is of, if that is one of a kind.
    """

    trace: Trace
    frame: Frame
    lattice: NDArray[np.int64]
    request: Request
    mechanism: Mechanism
    findings: tuple[Finding, ...]
    gap: float | None = None
    withheld_for: float | None = None
    prices: tuple[Price, ...] = ()
    everywhere: tuple[Worst, ...] = ()
    common: tuple[Common, ...] = ()
    of_kind: UsedDesign | None = None

    @property
    def components(self) -> int:
        """How many single mechanisms the noise is the sum of."""
        return int(self.mechanism.factor.shape[1]) + (self.mechanism.floor > 0)

    @property
    def own_columns(self) -> int:
        """How many columns of the mechanism are of this release alone: the first ones."""
        shared = sum(one.columns.shape[1] for one in self.common)
        return int(self.mechanism.factor.shape[1]) - int(shared)


def identity(trace: Trace, request: Request, common: Sequence[Common] = ()) -> tuple[bytes, ...]:
    """All that a release depends on: times, places, the whole design. To be hashed with a key."""
    frame, places = placed(trace.positions)
    whole = (repr(frame).encode(), request.design.encode(), *named_in_full(common))
    return (trace.times.astype("<i8").tobytes(), places.astype("<i8").tobytes(), *whole)


def plan(
    trace: Trace, request: Request, common: Sequence[Common] = (), kept: Kept | None = None
) -> Plan:
    """Design the noise for a trace and compute what it guarantees.

    common: noise that other releases share, such as that of places that are visited again. What is
    found of the parts of the request counts on none of it. Fields of the trace are left out around
    what is protected: see `trailveil.kept`. kept: where designs of kinds are kept, if anywhere but
    in this process; it makes no difference but of time. Raises Refused where nothing would be left
    to release, the kind of noise cannot meet the target, or fields are not reckoned with;
    InvalidValue where nothing is to be protected.
    """
    if not (request.stretches or common) or request.noise is Noise.EVERYWHERE:
        raise InvalidValue("something must be protected, got nothing: state a time or a stay")
    check_target(request)
    base = no_noise(trace.seconds)
    for one in common:
        base = base.withholding(one.withheld)
    used = _of_kind(trace, request, kept)
    if used is None:
        made, findings = _for_recording(trace, request, base, common)
    else:
        made, findings = _for_kind(trace, request, base, common, used)
    return with_common(replace(made, findings=tuple(findings)), common)


def _for_recording(
    trace: Trace, request: Request, base: Mechanism, common: Sequence[Common]
) -> tuple[Plan, list[Finding]]:
    """The release with noise designed for it alone, and what is found of its parts."""
    target = request.target
    spans = [one.seconds(trace) for one in request.stretches]
    found = crops(request.kernel, trace.seconds, spans, target.deviation) if spans else []
    seconds, prices = _how_long(trace, request, found, base)
    base = base.withholding(within(trace.times, request.stretches, seconds))
    trace = _leaving(trace, request, base, common)
    designed = _designed(found, base, request) if found else Designed(base, (), None)
    mechanism = designed.mechanism
    if mechanism.max_std > LARGEST_STD:
        raise Refused(
            f"the noise must stay below {LARGEST_STD / 1000:g} km, got more: state a smaller "
            "radius, a larger epsilon, or shorter parts"
        )
    if prices:
        prices = (*prices[:-1], price("both", seconds, mechanism, request.rate))
    where = placed(trace.positions)
    made = Plan(trace, *where, request, mechanism, (), designed.gap, seconds, prices)
    parts = {part: (crop, i) for crop in found for i, part in enumerate(crop.parts)}
    findings = [
        _finding(made, stretch, designed.left[part], unasked(crop, own, number, request.who))
        for part, stretch in enumerate(request.stretches)
        for crop, number in [parts[part]]
        for own in [part_of(mechanism, crop)]
    ]
    return made, findings


def _for_kind(
    trace: Trace,
    request: Request,
    base: Mechanism,
    common: Sequence[Common],
    used: UsedDesign,
) -> tuple[Plan, list[Finding]]:
    """The release with noise designed for its kind, and what is found of its part."""
    trace = _leaving(trace, request, base, common)
    # As trailveil.recorded has it, to the last digit.
    factor = used.scale * used.design.columns[used.rows]
    mechanism = replace(base, factor=factor)
    made = Plan(trace, *placed(trace.positions), request, mechanism, (), of_kind=used)
    (stretch,) = request.stretches
    begin, _ = stretch.seconds(trace)
    left, duration = tuple(later(one, begin) for one in used.left), trace.duration
    beside = used.design.unasked
    _, end = stretch.seconds(trace)
    after = tuple(
        (away, metres)
        for away, metres in beside.after_learning
        if begin - away >= 0 or end + away <= duration
    )
    return made, [_finding(made, stretch, left, replace(beside, after_learning=after))]


def _leaving(trace: Trace, request: Request, base: Mechanism, common: Sequence[Common]) -> Trace:
    """The trace as it is released, of which enough must be left."""
    if base.rows.size < 2:
        raise Refused(
            "at least two fixes must remain to be released, got fewer: protect or withhold a "
            "shorter part"
        )
    first = int(trace.times[base.rows[0]])
    around = [part for one in common for part in one.around]
    trace = with_fields_left_out(trace, around, request.who, first)
    # Where withholding alone protects, released places are exact: but how one moves is not.
    told = MOVEMENT if request.noise is Noise.WITHHOLD else None
    return with_fields_left_out(trace, request.stretches, request.who, first, only=told)


def _of_kind(trace: Trace, request: Request, kept: Kept | None) -> UsedDesign | None:
    """The design of the kind of the one part that a request has; None where there is none."""
    simple = request.noise is Noise.OPTIMAL and request.withhold is None
    if not simple or len(request.stretches) != 1:
        return None
    about = (request.kernel, request.target, request.design_for)
    return used_design(trace, request.stretches[0], *about, kept)


def with_common(made: Plan, common: Sequence[Common]) -> Plan:
    """The plan with noise besides that other releases share."""
    mechanism = made.mechanism
    for one in common:
        columns = Mechanism(mechanism.times, one.columns, released=~one.withheld)
        mechanism = mechanism.plus(columns)
    return replace(made, mechanism=mechanism, common=(*made.common, *common))


def _designed(found: Sequence[Crop], base: Mechanism, request: Request) -> Designed:
    try:
        return _MAKERS[request.noise](found, base, request.target)
    except BeyondPrior as error:
        raise _too_much(request, error) from error


def _too_much(request: Request, error: BeyondPrior) -> Refused:
    most = int(CIRCLE_68 * error.most / (1 + Frame.SCALE_ERROR))
    return Refused(
        f"metres to leave must be below {most}, got {request.leave:g}: somebody whom the noise "
        "is made against knows the place that well without any release; ask for less (--leave), or "
        "for fewer adversaries (--adversary)"
    )


def _how_long(
    trace: Trace, request: Request, found: Sequence[Crop], base: Mechanism
) -> tuple[float | None, tuple[Price, ...]]:
    """The seconds to withhold around each stretch, and what the ways to choose from cost."""
    if request.withhold != AUTO or not found:
        stated = None if request.withhold in (None, AUTO) else float(request.withhold)
        return stated, ()
    try:
        prices = cheapest(
            found,
            base,
            request.target,
            lambda seconds: within(trace.times, request.stretches, seconds),
            request.rate,
        )
    except BeyondPrior as error:
        raise _too_much(request, error) from error
    return min(prices, key=lambda one: one.total).seconds, prices


def check_target(request: Request) -> None:
    """Refuse a target that would leave adversaries with more than the prior's level allows for."""
    deviation = max(request.bound**-0.5, request.target.deviation)
    if deviation > _MOST_UNSURE:
        raise Refused(
            f"an adversary must be left with at most {_MOST_UNSURE / 1000:g} km, got "
            f"{deviation / 1000:.4g} km: state a smaller radius or a larger epsilon"
        )


def _finding(made: Plan, stretch: Stretch, left: tuple[Left, ...], beside: Unasked) -> Finding:
    request = made.request
    inside = stretch.rows(made.trace)
    loss = max(one.loss for one in left)
    plain = next(one for one in left if one.adversary == PLAIN.name)
    way = None
    if beside.way_loss is not None:
        way = Guarantee(_radius(request) * float(np.sqrt(beside.way_loss)), request.order).epsilon
    return Finding(
        stretch,
        int(inside.sum()),
        int((inside & ~np.asarray(made.mechanism.released)).sum()),
        Guarantee(_radius(request) * float(np.sqrt(loss)), request.order),
        plain.after if plain.loss > 0 else float("inf"),
        left,
        beside.after_learning,
        beside.seen_still,
        way,
    )


def _radius(request: Request) -> float:
    return request.radius * (1 + Frame.SCALE_ERROR)
