"""From a recording and what was asked for to a plan: the only place that knows the order of steps.

What to protect (`requested`), the noise of places with names, the cut or the noise of everything
else; of readings, noise or what is withheld. The ledger counts a plan, and draws it, in
`trailveil.ledger.commit`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

import numpy as np

from trailveil.errors import NumericalError, Refused
from trailveil.release.places import Common, Visited, shared_noise
from trailveil.release.plan import (
    Plan,
    cuts_of,
    of_one_place,
    plan_parts,
    released_rows,
    with_common,
)
from trailveil.release.public import Position, check_noise, relevant
from trailveil.release.request import Method, Request
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.projection import EXTENT, placed
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS, Trace

if TYPE_CHECKING:
    from trailveil.designer.table import Cache
    from trailveil.release.readings_release import ReadingsPlan


_LONGEST_GAP = 366.0  # days


def requested(
    trace: Trace,
    chosen: Chosen,
    request: Request,
    places: Sequence[Visited] = (),
    public: Sequence[Position] = (),
) -> Request:
    """The request for what was chosen of a trace, besides the places that it visits.

    Where it is cut, each visit of one of these is a part, too. public: positions that are public
    already; Refused where noise does not reckon with them.
    """
    if request.method is Method.EVERYWHERE and not chosen.states:
        if public:
            check_noise(trace, None, public, ())
        return request  # at any pace, unless one was stated
    request = request.at_pace_of(trace)
    known = [interval for visit in places for interval in visit.intervals]
    stretches = chosen.stretches(trace, known)
    if request.method.cuts:
        stretches += [
            part for visit in places for part in visit.parts(request.paces, request.uncertain)
        ]
        stretches.sort(key=lambda part: (part.begin, part.end))
    spans = [(part.begin, part.end) for part in stretches]
    if public and request.method is not Method.CUT:
        check_noise(trace, request.path_from, public, [*spans, *known])
    request = replace(request, stretches=tuple(stretches), returns=chosen.returns)
    if request.method.cuts and (told := relevant(public, spans, request.uncertain)):
        request = replace(request, public=_that_matter(trace, replace(request, public=told)))
    return request


def _that_matter(trace: Trace, request: Request) -> tuple[Position, ...]:
    """Of positions that are public, those that a cut has to do with: others are of no release."""
    _, cuts = cuts_of(trace, request.framed(placed(trace.positions)[0]))
    first, last = int(trace.times[0]), int(trace.times[-1])
    parts = [
        (part.begin, part.end, round(((cut or 0.0) + request.uncertain) * NANOSECONDS))
        for part, cut in zip(request.stretches, cuts, strict=True)
    ]
    return tuple(
        position
        for position in request.public
        for when in [position.when]
        if not first <= when <= last or any(a - c < when < b + c for a, b, c in parts)
    )


@overload
def protect(trace: Readings, request: Request) -> "ReadingsPlan": ...


@overload
def protect(
    trace: Trace,
    request: Request,
    *,
    places: Sequence[Visited] = (),
    cache: "Cache | None" = None,
    at_once: bool = False,
) -> Plan: ...


def protect(
    trace: Trace | Readings,
    request: Request,
    *,
    places: Sequence[Visited] = (),
    cache: "Cache | None" = None,
    at_once: bool = False,
) -> "Plan | ReadingsPlan":
    """Design the release of a trace, or of readings. request: with the parts to protect.

    places: those with names that the trace visits, whose noise it shares. cache: where designs are
    kept beyond this process. at_once: show more noise than is needed where the least is not
    designed yet: never release that. Raises as `trailveil.release.plan.plan_parts`,
    `trailveil.release.everywhere.plan_everywhere` and
    `trailveil.release.readings_release.plan_readings` do.
    """
    if isinstance(trace, Readings):
        from trailveil.release.readings_release import plan_readings  # it takes long to import

        return plan_readings(trace, request)
    common = shared_noise(places, trace, request.method)
    if common:
        placed(trace.positions, furthest=EXTENT)  # noise for places is made for such frames
    try:
        return replace(_planned(trace, request, common, cache, at_once), visited=tuple(places))
    except NumericalError as error:
        raise _with_its_gap(error, trace) from error


def _planned(
    trace: Trace,
    request: Request,
    common: Sequence[Common],
    cache: "Cache | None",
    at_once: bool,
) -> Plan:
    if request.method is Method.EVERYWHERE:
        from trailveil.release.everywhere import plan_everywhere

        return with_common(plan_everywhere(trace, request), common)
    try:
        return plan_parts(trace, request, common, cache, at_once=at_once)
    except Refused as error:
        if instead := leaving_half(trace, request, common):
            raise Refused(f"{error}; half is left with {' or '.join(instead)}") from None
        raise


def _with_its_gap(error: NumericalError, trace: Trace) -> NumericalError:
    """The same error, which names a gap of more than a year, of which it may come."""
    gaps = np.diff(trace.seconds)
    longest = float(gaps.max(initial=0.0)) / 86_400
    if longest <= _LONGEST_GAP:
        return error
    after = int(gaps.argmax()) + 1
    return NumericalError(
        f"a recording must have no gap of more than a year where numbers would be that large, got "
        f"one of {longest:,.0f} days after fix {after} of {len(trace)}: split the file there"
    )


def leaving_half(
    trace: Trace, request: Request, common: Sequence[Common] = (), slowest: float = math.inf
) -> tuple[str, ...]:
    """The options that would leave half of the fixes: the largest radius, the slowest activity.

    None where half is left as it is, where there is no cut, where none of them would, and of a
    recording of one place. What is tried depends on when the fixes and the protected parts are.
    """

    def leaves_half(other: Request) -> bool:
        try:
            return 2 * released_rows(trace, other, common).size >= len(trace)
        except Refused:
            return False

    if not request.method.cuts or of_one_place(trace) or leaves_half(request):
        return ()
    found = (
        next((words for words, other in tried if leaves_half(other)), None)
        for tried in (_smaller(request), _faster(request, slowest))
    )
    return tuple(words for words in found if words is not None)


def _smaller(request: Request) -> Iterator[tuple[str, Request]]:
    """Nine tenths of the metres that were asked for, eight, and so on."""
    for tenths in range(9, 0, -1):
        if request.leave is not None:
            metres = float(f"{request.leave * tenths / 10:.2g}")
            yield f"--leave {metres:g}", replace(request, leave=metres)
        else:
            metres = float(f"{request.radius * tenths / 10:.2g}")
            yield f"--radius {metres:g}", replace(request, radius=metres)


def _faster(request: Request, slowest: float) -> Iterator[tuple[str, Request]]:
    """Each activity that is faster, the slowest first; none that the recording is slower than."""
    for name, floor in ACTIVITIES.items():
        if request.slowest.speed < floor <= slowest:
            other = replace(request, floor=floor, middle=MIDDLE[name])
            yield f"--activity {name} (if you were never slower)", other
