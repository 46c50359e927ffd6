"""Releases of readings of one quantity, counted as those of traces are, but for their account."""

import contextlib
from collections.abc import Iterator
from typing import BinaryIO

from trailveil.ledger import Ledger
from trailveil.ledger.commit import (
    Identity,
    Receipt,
    all_of,
    committed,
    different,
    identity_of,
)
from trailveil.ledger.counting import Countable, span
from trailveil.ledger.identity import ME
from trailveil.release.readings_release import (
    DECIMALS,
    ReadingsPlan,
    ReadingsRequest,
    draw_readings,
)
from trailveil.release.readings_release import identity_of as design_of
from trailveil.traces.formats.series import write_series
from trailveil.traces.readings import Readings
from trailveil.traces.retiming import AS_RECORDED, Retiming, retimed


def check_released_readings(
    ledger: Ledger,
    readings: Readings,
    request: ReadingsRequest,
    *,
    series: str,
    again: bool,
    key: bytes | None = None,
    subject: str = ME,
) -> None:
    """As `trailveil.ledger.commit.check_released`. series: which of a subject's readings."""
    if again:
        return
    known_by = _identified(ledger, readings, request, key)
    if refusal := different(ledger, readings, known_by, subject, series)[0]:
        raise refusal


@contextlib.contextmanager
def commit_readings(
    plan: ReadingsPlan,
    ledger: Ledger,
    *,
    series: str,
    again: bool = False,
    instead: bool = False,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
    subject: str = ME,
) -> Iterator[Receipt[Readings]]:
    """As `trailveil.ledger.commit.commit`: the file is a table of times and values.

    series: which of a subject's readings they are: other ones are other recordings, unless all
    their values are the same.
    """
    epsilons = [finding.guarantee.epsilon for finding in plan.findings]
    worst = max(epsilons, default=plan.request.epsilon)
    known_by = _identified(ledger, plan.readings, plan.request, key)
    noise_trace, prints = plan.mechanism.noise_trace, known_by.prints
    release = Countable(*span(plan.readings), series, "readings", noise_trace, prints, worst)
    as_recorded, steps = draw_readings(plan, known_by.seed)
    leaves, grid = retimed(as_recorded, steps, retiming)

    def written(out: BinaryIO, _: str) -> None:
        write_series(leaves, out, decimals=DECIMALS, grid=grid)

    drawing = (as_recorded, leaves, written)
    with committed(
        ledger, release, known_by, drawing, subject=subject, again=again, instead=instead
    ) as receipt:
        yield receipt


def _identified(
    ledger: Ledger, readings: Readings, request: ReadingsRequest, key: bytes | None
) -> Identity:
    steps = readings.steps(DECIMALS)
    whole = all_of(readings.times, steps, design_of(readings, request), key)
    return identity_of(ledger, readings.times, steps, whole, key)
