"""What the command line and the page both do before a release: look at its target, design it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trailveil.files.output import check_output
from trailveil.ledger import Ledger
from trailveil.ledger.places import Visited, shared_noise
from trailveil.ledger.protecting import ME, cache_of, check_released, planned
from trailveil.release.plan import Plan
from trailveil.release.request import Request
from trailveil.traces.formats.table import format_to_write
from trailveil.traces.trace import Trace


def check_target(output: Path, *others: Path, overwrite: bool) -> None:
    """Refuse an output that cannot or must not be written, before any work is done.

    others: the files that are read, none of which it may be. Raises UnwritableOutput.
    """
    format_to_write(output.suffix)
    check_output(output, *others, overwrite=overwrite)


def designed(
    trace: Trace,
    request: Request,
    there: Sequence[Visited],
    ledger: Ledger,
    *,
    again: bool,
    subject: str = ME,
    key: bytes | None = None,
) -> Plan:
    """The release of a request, with the noise of the places that the trace visits.

    Raises Refused, before it is designed, where it must not be made: see `check_released`.
    """
    common = shared_noise(there, trace, request.method)
    check_released(ledger, trace, request, again=again, key=key, subject=subject, common=common)
    plan = planned(trace, request, common, cache_of(ledger))
    return replace(plan, visited=tuple(there), subject=subject, key=key)
