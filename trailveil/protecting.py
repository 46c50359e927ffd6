"""From a file to a protected file: read, clean, select, plan, remember, draw, write."""

from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from trailveil.cleaning import Cleaning, clean
from trailveil.errors import Refused
from trailveil.formats import read, write
from trailveil.formats.table import format_to_write
from trailveil.memory import Entry, Memory, request_id
from trailveil.output import check_output, write_atomically
from trailveil.projection import frame_for
from trailveil.randomness import derive
from trailveil.release import Plan, Request, draw, plan
from trailveil.selection import Stretch, at, between, ends, merged
from trailveil.trace import Trace

# Relative: the same request must have the same noise; more than this apart it is another design.
_SAME_NOISE = 1e-6


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to protect, as it was asked for: times in the words of trailveil.selection."""

    at: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()
    zone: tzinfo | None = None

    def stretches(self, trace: Trace) -> list[Stretch]:
        """The parts of the trace to protect; both its ends where nothing is stated."""
        stated = [at(text, trace, self.zone) for text in self.at]
        stated += [between(first, second, trace, self.zone) for first, second in self.between]
        if not stated:
            stated = ends(trace, frame_for(trace.positions).to_lattice(trace.positions))
        return merged(stated)


def load(
    source: Path, *, assume_utc: bool = False, zone: ZoneInfo | None = None
) -> tuple[Trace, Cleaning]:
    """A cleaned trace from a file."""
    return clean(read(source), assume_utc=assume_utc, zone=zone)


def is_further(made: Plan, memory: Memory, *, again: bool) -> tuple[Entry, bool]:
    """The entry of this release, and whether the recording was released before with other noise.

    Raises Refused for such a release unless `again`: it is the worst thing that can be done to a
    recording.
    """
    entry = Entry(
        request_id(memory.key(), made.trace, made.lattice, made.design), made.mechanism.noise_trace
    )
    others = [one for one in memory.earlier(made.trace) if not _same(one, entry)]
    if others and not again:
        raise Refused(
            "a recording must be released once, got one that was released before with other "
            "noise: two "
            "different releases together can give its protected places away to a few metres; ask "
            "for the "
            "same as before to get the same file again, or add --again to accept that"
        )
    return entry, bool(others)


def release_to(made: Plan, entry: Entry, memory: Memory, output: Path, *, overwrite: bool) -> None:
    """Draw and write: remembered durably first, then the file appears whole or not at all."""
    seed = derive(memory.key(), [b"noise", entry.request])
    trace, grid = draw(made, seed)

    def emit(stream: BinaryIO) -> None:
        write(trace, stream, output.suffix, grid=grid)

    memory.remember(made.trace, entry)
    write_atomically(output, emit, overwrite=overwrite)


def default_output(source: Path) -> Path:
    """ride.gpx -> ride.private.gpx."""
    return source.with_name(f"{source.stem}.private{source.suffix}")


def check_target(output: Path, source: Path, *, overwrite: bool) -> None:
    """Refuse an output that cannot or must not be written, before any work is done."""
    format_to_write(output.suffix)
    check_output(output, source, overwrite=overwrite)


def design_release(trace: Trace, chosen: Chosen, request: Request) -> Plan:
    """Plan a release of what was chosen; the stretches of `request` are replaced by it."""
    return plan(trace, replace(request, stretches=tuple(chosen.stretches(trace))))


def _same(one: Entry, other: Entry) -> bool:
    close = abs(one.noise_trace - other.noise_trace) <= _SAME_NOISE * other.noise_trace
    return one.request == other.request and close
