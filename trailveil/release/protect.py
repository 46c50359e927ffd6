"""From a recording and what was asked for to a plan: the only place that knows the order of steps.

What to protect (`requested`), the noise of places with names, the cut or the noise of everything
else. The ledger counts a plan, and draws it, in `trailveil.ledger.commit`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trailveil.errors import NumericalError, Refused
from trailveil.release.common import Common
from trailveil.release.places import Visited, shared_noise
from trailveil.release.plan import Plan, plan_parts, with_common
from trailveil.release.request import Method, Request
from trailveil.traces.projection import EXTENT, placed
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

if TYPE_CHECKING:
    from trailveil.designer.table import Cache

_LONGEST_GAP = 366.0  # days


def requested(
    trace: Trace, chosen: Chosen, request: Request, places: Sequence[Visited] = ()
) -> Request:
    """The request for what was chosen of a trace, besides the places that it visits.

    Where it is cut, each visit of one of these is a part, too.
    """
    if request.method is Method.EVERYWHERE and not chosen.states:
        return request  # at any pace, unless one was stated
    request = request.at_pace_of(trace)
    known = [interval for visit in places for interval in visit.intervals]
    stretches = chosen.stretches(trace, known)
    if request.method.cuts:
        stretches += [
            part for visit in places for part in visit.parts(request.paces, request.uncertain)
        ]
        stretches.sort(key=lambda part: (part.begin, part.end))
    return replace(request, stretches=tuple(stretches), returns=chosen.returns)


def protect(
    trace: Trace,
    request: Request,
    *,
    places: Sequence[Visited] = (),
    cache: "Cache | None" = None,
) -> Plan:
    """Design the release of a trace. request: of `requested`, with the parts to protect.

    places: those with names that the trace visits, whose noise it shares. cache: where designs are
    kept beyond this process. Raises as `trailveil.release.plan.plan_parts` and
    `trailveil.release.everywhere.plan_everywhere` do.
    """
    common = shared_noise(places, trace, request.method)
    if common:
        placed(trace.positions, furthest=EXTENT)  # noise for places is made for such frames
    try:
        return replace(_planned(trace, request, common, cache), visited=tuple(places))
    except NumericalError as error:
        raise _with_its_gap(error, trace) from error


def _planned(
    trace: Trace, request: Request, common: Sequence[Common], cache: "Cache | None"
) -> Plan:
    if request.method is Method.EVERYWHERE:
        from trailveil.release.everywhere import plan_everywhere

        return with_common(plan_everywhere(trace, request), common)
    try:
        return plan_parts(trace, request, common, cache)
    except Refused as error:
        from trailveil.release.halving import leaving_half

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
