"""What the other mechanisms would cost, where that takes no new design of noise."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.release.cutting import way, withheld
from trailveil.release.plan import Plan, designed_before, plan_parts
from trailveil.release.request import Method

if TYPE_CHECKING:
    from trailveil.designer.table import Cache

HARDLY_MOVED = 10.0
"""Metres, root mean square in the plane: what is moved by less looks as it was recorded."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a mechanism costs: the fixes, minutes and kilometres that are not released.

    moved: metres, root mean square in the plane over the fixes that are released within so many
    seconds of a protected part; beyond them no fix is moved by HARDLY_MOVED. 0 without noise.
    """

    method: Method
    withheld_fixes: int
    released_fixes: int
    minutes: float
    kilometres: float
    moved: float
    within: float


def other_prices(chosen: Plan, cache: "Cache | None" = None) -> tuple[Price, ...]:
    """The prices of the mechanisms that a plan does not have, for the same promise.

    cache: where designs are kept beyond this process. What would be refused has no price. None of
    noise for every place, and beside noise that releases share.
    """
    if chosen.everywhere or chosen.common:
        return ()
    prices = []
    for method in (Method.CUT, Method.NOISE, Method.BOTH):
        request = replace(chosen.request, method=method)
        if method is chosen.request.method:
            continue
        try:
            if method is Method.CUT or designed_before(chosen.trace, request, cache):
                prices.append(_price_of(plan_parts(chosen.trace, request, cache=cache)))
        except (Refused, NumericalError):
            continue
    return tuple(prices)


def _price_of(plan: Plan) -> Price:
    mechanism, rows = plan.mechanism, plan.mechanism.rows
    spread = np.sqrt(2 * mechanism.variances)[rows]
    away = _away(plan)[rows]
    within = float(np.max(away[spread >= HARDLY_MOVED], initial=0.0))
    near = spread[away <= within]
    moved = float(np.sqrt(np.mean(near**2))) if near.size and spread.any() else 0.0
    return Price(
        plan.request.method,
        len(plan.trace) - rows.size,
        rows.size,
        withheld(plan.trace.seconds, rows) / 60,
        withheld(way(plan.lattice), rows) / 1000,
        moved,
        within,
    )


def _away(plan: Plan) -> FloatArray:
    """Seconds (n,) from each fix to the nearest protected part."""
    seconds = plan.trace.seconds
    away = np.full(seconds.size, np.inf)
    for finding in plan.findings:
        begin, end = finding.stretch.seconds(plan.trace)
        away = np.minimum(away, np.maximum(np.maximum(begin - seconds, seconds - end), 0.0))
    return away
