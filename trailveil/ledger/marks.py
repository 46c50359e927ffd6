"""What one release tells of places: of those with names, and of the one that its parts may be.

Marks are information (1 / m^2), which the ledger adds up. A part without a name, such as an end of
a ride, may be anywhere in the whole degree that it is in, and at the place of any other part there.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, Sum
from trailveil.ledger import NO_ID, Mark
from trailveil.ledger.places import EVERYTHING, NEAR_BORDER, degrees_near
from trailveil.privacy.adversaries import Named, at_speed, kernels_of
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.movement import movement_of
from trailveil.privacy.priors import LEVEL_STD
from trailveil.release.places import Visited
from trailveil.release.plan import Finding, Plan
from trailveil.release.request import DEFAULT_KERNEL, Method, Request
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import NANOSECONDS

# Metres: with every place protected, ends that are this near, or within the radius, may be one.
_ONE_PLACE = 500.0
# Of recordings of more fixes than this, only so many seconds around protected parts are looked at,
# and so many fixes more.
_LONG, _AROUND, _MARGIN = 20_000, 3 * 3600.0, 60
MOST_JOINT = 1500
"""Rows that are taken together exactly; more count as everything."""


def marks_of(plan: Plan) -> tuple[Mark, ...]:
    """What a release tells of each place, and of the one that its unnamed parts may be."""
    named = of_cuts if plan.request.method.cuts else of_visited
    return (*(named(plan, visit) for visit in plan.visited), *_of_unnamed(plan))


def of_visited(plan: Plan, visit: Visited) -> Mark:
    """What the ways of a recording tell of a place by noise that its visits share."""
    place = visit.place
    released = plan.trace.seconds[plan.mechanism.rows]
    spans = [span_of(plan, *interval) for interval in visit.intervals]
    share = place.noise.ways(released, spans, place.request) / place.ways
    information = [share * place.request.bound, share] if np.isfinite(share) else [EVERYTHING, 1.0]
    return Mark(place.ident, visit.draw, np.array(information))


def of_cuts(plan: Plan, visit: Visited) -> Mark:
    """What the cuts around all visits tell of a place, 1 / m^2, and how many visits these are."""
    losses = [finding.exposures[0].loss for finding in findings_of(plan, visit)]
    return Mark(visit.place.ident, visit.place.ident, np.array([sum(losses), len(losses)]))


def findings_of(plan: Plan, visit: Visited) -> list[Finding]:
    """What a cut guarantees of each visit to a place with a name."""
    named = [finding for finding in plan.findings if finding.stretch.variance]
    return [finding for finding in named if finding.stretch.label == visit.place.name]


def _of_unnamed(plan: Plan) -> list[Mark]:
    """The most that it tells of one place that its parts without a name may be, in each region."""
    wide = plan.request.wide**2  # told of true metres, as of frames that are not wide
    if plan.request.method is Method.EVERYWHERE:
        ends = (plan.lattice[-1] - plan.lattice[0]) / MICRO
        visits = 2 if np.hypot(*ends) <= max(_ONE_PLACE, plan.request.radius) else 1
        regions = {
            name
            for place in _coarsely(plan)
            for name in degrees_near(plan.frame, place, plan.request.radius)
        }
        return _marks(dict.fromkeys(regions, visits * plan.request.bound * wide))
    information: dict[bytes, float] = {}
    for middle, findings in _one_place_each(plan):
        # What is proved of each: it adds up where all but the cuts is known, and where a false
        # track of one part ends before that of another begins. Elsewhere, what is proved of all.
        most = sum(finding.exposures[0].loss for finding in findings)
        if plan.request.method is Method.NOISE and _meet(plan, findings):
            most = max(most, wide * _joint(plan, findings))
        for name in degrees_near(plan.frame, middle, plan.request.radius):
            information[name] = max(information.get(name, 0.0), most)
    return _marks(information)


def _meet(plan: Plan, parts: Sequence[Finding]) -> bool:
    """Whether the noises of two of these parts may reach the same fix."""
    far = (
        max((design.knots.end for design in plan.designs), default=np.inf) + plan.request.uncertain
    )
    edges = sorted((part.stretch.begin, part.stretch.end) for part in parts)
    return any(b - a < 2 * far * NANOSECONDS for (_, a), (b, _) in pairwise(edges))


def _joint(plan: Plan, parts: Sequence[Finding]) -> float:
    """What one release tells of a place (1 / m^2) at most, where all these parts are visits of it.

    Of its noise, that of other parts is left out: without it, no less is told.
    """
    from trailveil.designer.joint_tracks import VisitNoise, told_of_one_place

    sure, visits = plan.request.uncertain, []
    for finding, noise in zip(plan.findings, plan.designs, strict=True):
        if finding in parts:
            begin, end = span_of(plan, finding.stretch.begin, finding.stretch.end)
            visits.append(VisitNoise(begin - sure, end + sure, noise))
    rows, moved = plan.mechanism.rows, plan.mechanism.independent_variances
    movements = [movement_of(kernel) for kernel in kernels_for(plan.request)]
    most = told_of_one_place(visits, plan.trace.seconds[rows], moved[rows], movements)
    return min(most, EVERYTHING)


def _marks(information: dict[bytes, float]) -> list[Mark]:
    return [Mark(NO_ID, name, np.array([most])) for name, most in sorted(information.items())]


def _coarsely(plan: Plan) -> FloatArray:
    """Places (k, 2), metres in the frame, one of which is within some 1.5 km of each fix."""
    metres = plan.lattice / MICRO
    return np.asarray(np.unique(np.round(metres / NEAR_BORDER), axis=0) * NEAR_BORDER)


def own_noise(plan: Plan, spans: Sequence[tuple[float, float]]) -> Mechanism:
    """The noise of a release that is its own; of a long one, some hours around the spans.

    What lies beyond tells no more than where it begins: there, fixes have next to no noise.
    """
    mechanism = replace(plan.mechanism, factor=plan.mechanism.factor[:, : plan.own_columns])
    if mechanism.times.size <= _LONG:
        return mechanism
    near = np.zeros(mechanism.times.size, dtype=np.bool_)
    for begin, end in spans:
        first, last = np.searchsorted(mechanism.times, [begin - _AROUND, end + _AROUND])
        near[max(0, first - _MARGIN) : last + _MARGIN] = True
    released = np.asarray(mechanism.released)[near]
    return Mechanism(
        mechanism.times[near], mechanism.factor[near], mechanism.floor, mechanism.process, released
    )


def _one_place_each(plan: Plan) -> list[tuple[FloatArray, list[Finding]]]:
    """The parts without a name, those together that may be one place, and where, in metres."""
    groups: dict[int, list[Finding]] = {}
    for without_name in unnamed_parts(plan):
        groups.setdefault(without_name.place, []).append(without_name)
    places = []
    for group in groups.values():
        inside = np.flatnonzero(group[0].stretch.rows(plan.trace))
        if inside.size == 0:
            inside = np.array([np.argmin(np.abs(plan.trace.times - group[0].stretch.begin))])
        places.append((np.mean(plan.lattice[inside], axis=0) / MICRO, group))
    return places


def unnamed_parts(plan: Plan) -> list[Finding]:
    """What is guaranteed of the parts that are no visit of a place with a name."""
    return [finding for finding in plan.findings if not finding.stretch.variance]


def kernels_for(request: Request) -> list[Kernel]:
    """The priors that what is told is counted against: the slowest pace that is promised, too."""
    kernels = usual_kernels(request)
    slowest = request.slowest if request.method is Method.NOISE else request.paces.middle
    slow = at_speed(request.kernel, slowest.speed)
    if slow is None:  # a prior without a speed: a stranger reckons with a pace all the same
        white = [term for term in request.kernel.terms() if term.is_white()]
        moving = IntegratedOU(slowest.speed, slowest.time_constant)
        slow = Sum((moving, Constant(LEVEL_STD), *white))
    return kernels if slow in kernels else [*kernels, slow]


def usual_kernels(request: Request) -> list[Kernel]:
    """The priors that what is told of a place with a name is counted against."""
    average = request.kernel == DEFAULT_KERNEL
    who = [adversary for adversary in request.who if adversary is not Named.SPEEDS or average]
    return kernels_of(who, request.kernel)


def span_of(plan: Plan, begin: int, end: int) -> tuple[float, float]:
    """Nanoseconds since 1970 as seconds of the recording."""
    first = int(plan.trace.times[0])
    return (begin - first) / NANOSECONDS, (end - first) / NANOSECONDS
