"""What a release depends on, and is drawn from: `Plan.identity`."""

from dataclasses import replace
from typing import Any

import numpy as np

from tests.release.test_plan import DRIVE, MADE, TRACE, protected, stretch
from trailveil.gp.kernels import Constant, IntegratedOU, White
from trailveil.privacy.adversaries import Named
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.projection import placed
from trailveil.traces.trace import Trace

OTHERS: dict[str, Any] = {
    "radius": 201.0,
    "epsilon": 1.0000001,
    "order": 4.0,
    "withhold": 0.0,
    "who": (Named.PLAIN,),
    "leave": 300.0,
    "method": Method.BOTH,
    **dict.fromkeys(("floor", "middle"), 0.92),
    "uncertain": 61,
    "steady": 301,
    "kernel": IntegratedOU(3.0, 60.0) + Constant(100_000.0) + White(2.5),
    "stretches": (stretch(TRACE, 0, 1), *protected()[1:]),
    "public": ((1, 0.0),),
    "longest_stay": 7200.0,
}


def identity(trace: Trace, request: Request) -> tuple[bytes, ...]:
    """Of the same noise for another recording or request."""
    frame, lattice = placed(trace.positions)
    plan = replace(MADE, trace=trace, frame=frame, lattice=lattice, request=request)
    return plan.identity


def test_everything_that_decides_the_noise_is_in_the_identity() -> None:
    request = Request(protected())
    # How stretches were chosen is for the report, the scale that of the frame, readings are apart.
    assert {*OTHERS, "returns", "scale", "unit"} == set(Request.__dataclass_fields__)
    assert replace(request, returns=True).design == request.design
    nudged = TRACE.positions.copy()
    nudged[30, 1] += 1e-9
    later = TRACE.times.copy()
    later[30] += 1
    identities = {
        identity(TRACE, request),
        *(identity(TRACE, replace(request, **{name: value})) for name, value in OTHERS.items()),
        identity(replace(TRACE, positions=nudged), request),
        identity(replace(TRACE, times=later), request),
    }
    assert len(identities) == 3 + len(OTHERS)


def test_noise_that_differs_by_more_than_rounding_is_drawn_anew() -> None:
    """Two draws of the same numbers with other factors differ by these numbers alone."""
    with_rounding, other = (
        replace(MADE, mechanism=MADE.mechanism.scaled(factor)) for factor in (1 + 1e-11, 1 + 1e-5)
    )
    assert with_rounding.identity == MADE.identity != other.identity
    # The same law, from the same numbers otherwise: as eigenvectors of another sign would give.
    factor = MADE.mechanism.factor * np.where(np.arange(MADE.mechanism.factor.shape[1]) == 3, -1, 1)
    turned = replace(MADE, mechanism=replace(MADE.mechanism, factor=factor))
    assert turned.identity != MADE.identity
    cut = protect(TRACE, Request(protected(), **DRIVE))
    assert cut.mechanism.fingerprint == ()


def test_what_stretches_are_called_does_not_decide_it() -> None:
    request = Request(protected())
    named = tuple(replace(stretch, label="home", by_place=True) for stretch in request.stretches)
    assert identity(TRACE, replace(request, stretches=named)) == identity(TRACE, request)
    assert identity(TRACE, replace(request, radius=100)) == identity(TRACE, request)
