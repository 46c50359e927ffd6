"""From a file to a protected file: read, clean, select, plan, remember, draw, write."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from trailveil.cleaning import Cleaning, clean, clean_readings
from trailveil.errors import Refused, TrailveilError, UnwritableOutput
from trailveil.formats import read, write
from trailveil.formats.series import read_series, write_series
from trailveil.formats.source import beginning, named
from trailveil.formats.table import format_of, format_to_write
from trailveil.keys import name_of
from trailveil.memory import Entry, Memory
from trailveil.output import Put, staged
from trailveil.projection import frame_for
from trailveil.randomness import derive
from trailveil.readings import Readings, Timed
from trailveil.readings_release import (
    DECIMALS,
    ReadingsPlan,
    ReadingsRequest,
    draw_readings,
    identity_of,
)
from trailveil.release import Plan, Request, draw, identity
from trailveil.retiming import AS_RECORDED, Retiming, retimed
from trailveil.selection import Chosen
from trailveil.trace import Trace

Beside = Callable[[bool], contextlib.AbstractContextManager[Put]]
"""Stages a file that appears with the release, told whether that is a further one."""

Write = Callable[[BinaryIO], None]
"""Writes what was drawn."""


def load(
    source: Path,
    *,
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
    every: float | None = None,
    keep: Sequence[str] = (),
) -> tuple[Trace, Cleaning]:
    """A cleaned trace from a file, within one frame; every refusal names the file.

    keep: names of fields to read besides, of `trailveil.fields`.
    """
    recording = read(source, keep)
    with _about(source):
        trace, cleaning = clean(recording, assume_utc=assume_utc, zone=zone, every=every)
        frame_for(trace.positions)
    return trace, cleaning


def requested(trace: Trace, chosen: Chosen, request: Request) -> Request:
    """The request for what was chosen of a trace."""
    return replace(request, stretches=tuple(chosen.stretches(trace)))


def check_released(
    memory: Memory, trace: Trace, request: Request, *, again: bool, key: bytes | None = None
) -> None:
    """Refuse a different release of a recording before any work is done, unless `again`."""
    _check(memory, trace, identity(trace, request), again=again, key=key)


def _check(
    memory: Memory, recording: Timed, whole: Iterable[bytes], *, again: bool, key: bytes | None
) -> None:
    wanted = memory.request_id((*whole, *_named(key)))
    earlier = memory.earlier(recording)
    if earlier and not again and all(one.request != wanted for one in earlier):
        raise _released_before()


def publish(
    made: Plan,
    memory: Memory,
    output: Path,
    *,
    again: bool = False,
    overwrite: bool = False,
    beside: Beside | None = None,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
) -> bool:
    """Remember the release, draw its noise and write it; True if there was another release before.

    It is remembered durably first; then its file appears whole or not at all, and with it what is
    written beside it. key: 32 secret bytes that make the noise the same wherever it is asked for;
    without, it is random, and the same again where it is remembered. Raises Refused for a different
    release of the recording unless `again`.
    """

    def drawn(seed: bytes) -> Write:
        trace, grid = retimed(*draw(made, seed), retiming)
        return lambda out: write(trace, out, output.suffix, grid=grid)

    return _publish(
        made.trace,
        (*identity(made.trace, made.request), *_named(key)),
        made.mechanism.noise_trace,
        drawn,
        memory,
        output,
        again=again,
        overwrite=overwrite,
        beside=beside,
        key=key,
    )


def _publish(
    recording: Timed,
    whole: Iterable[bytes],
    noise_trace: float,
    drawn: Callable[[bytes], Write],
    memory: Memory,
    output: Path,
    *,
    again: bool,
    overwrite: bool,
    beside: Beside | None,
    key: bytes | None,
) -> bool:
    """Remember, then let appear what is drawn with the seed of the whole request."""
    whole = tuple(whole)
    wanted = memory.request_id(whole)
    entry = Entry(wanted, noise_trace)
    write_drawn = drawn(memory.seed(wanted) if key is None else seed_of(key, whole))
    with memory.exclusive():
        earlier = memory.earlier(recording)
        known = any(one.is_like(entry) for one in earlier)
        further = any(not one.is_like(entry) for one in earlier)
        if further and not known and not again:
            raise _released_before()
        with (
            _remembered(memory, recording, entry, known=known) as appears,
            contextlib.ExitStack() as files,
        ):
            put = files.enter_context(staged(output, write_drawn, overwrite=overwrite))
            put_beside = files.enter_context(beside(further)) if beside else None
            appears()
            put()
            if put_beside:
                put_beside()
    return further


def load_readings(
    source: Path,
    *,
    column: str | None,
    unit: str | None,
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
) -> tuple[Readings, Cleaning]:
    """Cleaned readings from a table; every refusal names the file."""
    recorded = read_series(source, column=column, unit=unit)
    with _about(source):
        return clean_readings(recorded, assume_utc=assume_utc, zone=zone)


def check_released_readings(
    memory: Memory,
    readings: Readings,
    request: ReadingsRequest,
    *,
    again: bool,
    key: bytes | None = None,
) -> None:
    """As `check_released`, of readings."""
    _check(memory, readings, identity_of(readings, request), again=again, key=key)


def publish_readings(
    made: ReadingsPlan,
    memory: Memory,
    output: Path,
    *,
    again: bool = False,
    overwrite: bool = False,
    beside: Beside | None = None,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
) -> bool:
    """As `publish`, of readings: their file is a table of times and values."""

    def drawn(seed: bytes) -> Write:
        readings, grid = retimed(*draw_readings(made, seed), retiming)
        return lambda out: write_series(readings, out, decimals=DECIMALS, grid=grid)

    return _publish(
        made.readings,
        (*identity_of(made.readings, made.request), *_named(key)),
        made.mechanism.noise_trace,
        drawn,
        memory,
        output,
        again=again,
        overwrite=overwrite,
        beside=beside,
        key=key,
    )


def seed_of(key: bytes, whole: Iterable[bytes]) -> bytes:
    """The seed of a release under a key: of all that it depends on, and never of the key alone."""
    return derive(key, [b"release with a key", *whole])


def _named(key: bytes | None) -> tuple[bytes, ...]:
    """Which key, without telling it: under another one it is another release."""
    return () if key is None else (b"key", name_of(key))


def default_output(source: Path) -> Path:
    """ride.gpx -> ride.private.gpx; GPX, too, where a format is none that is written.

    A format may share its suffix with one that is written: then the content tells, if there is one.
    Raises Refused for a name that is none of a file.
    """
    if not source.name:
        raise Refused(f"the input must be a file, got a folder: {named(source)}; name the file")
    try:
        row = format_to_write(source.suffix)
    except UnwritableOutput:
        return source.with_name(f"{source.name}.private.gpx")
    found = format_of(source, beginning(source))
    if found.read is row.read and found.write is None:
        return source.with_name(f"{source.name}.private.gpx")
    return source.with_name(f"{source.stem}.private{source.suffix}")


@contextlib.contextmanager
def _remembered(
    memory: Memory, trace: Timed, entry: Entry, *, known: bool
) -> Iterator[Callable[[], None]]:
    """Remember a release; forget it again where it fails before it appears, as is told."""
    record = None if known else memory.remember(trace, entry)
    told = []
    try:
        yield lambda: told.append(True)
    except TrailveilError:
        if record and not told:
            memory.forget(record)
        raise


@contextlib.contextmanager
def _about(source: Path) -> Iterator[None]:
    """Name the file in front of what is refused about it."""
    try:
        yield
    except TrailveilError as error:
        raise type(error)(f"{named(source)}: {error}") from error


def _released_before() -> Refused:
    return Refused(
        "a recording must be released once, got one that was released before with other noise: two "
        "different releases together can give its protected places away to a few metres; ask for "
        "the same as before to get the same file again, or add --again to accept that"
    )
