"""From a file to a protected file: read, clean, select, plan, count, draw, write."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trailveil.accounting import told_by
from trailveil.common import Common
from trailveil.counting import (
    Countable,
    count,
    countable,
    earlier,
    released_before,
    span,
)
from trailveil.design_cache import DesignCache
from trailveil.drawing import draw
from trailveil.errors import Refused, TrailveilError, UnwritableOutput
from trailveil.everywhere import plan_everywhere
from trailveil.formats import write
from trailveil.formats.series import write_series
from trailveil.formats.source import beginning, named
from trailveil.formats.table import format_of, format_to_write
from trailveil.keys import name_of
from trailveil.ledger import Book, Entry, Ledger
from trailveil.output import staged
from trailveil.places import Visited, check_known, load_places, visited
from trailveil.published import Beside, Drawn, Published
from trailveil.randomness import derive
from trailveil.readings import Readings, Timed
from trailveil.readings_release import (
    DECIMALS,
    ReadingsPlan,
    ReadingsRequest,
    draw_readings,
    identity_of,
)
from trailveil.recorded import known_visits
from trailveil.release import Method, Plan, Request, identity, plan, with_common
from trailveil.retiming import AS_RECORDED, Retiming, retimed
from trailveil.selection import Chosen
from trailveil.trace import Trace

ME = "me"
"""Whose recordings they are where nobody says."""


def known_places(
    ledger: Ledger, trace: Trace, *, subject: str = ME, key: bytes | None = None
) -> list[Visited]:
    """The places with names that a trace visits, or was near in time to a released visit of."""
    whole = load_places(ledger)
    places = [one for one in whole if not one.gone]
    begin, end = int(trace.times[0]), int(trace.times[-1])
    with ledger.open() as book:
        check_known(ledger, book, whole)
        before = known_visits(book, subject, places, begin, end)
    return visited(trace, places, ledger.key if key is None else key, before)


def requested(
    trace: Trace, chosen: Chosen, request: Request, there: Sequence[Visited] = ()
) -> Request:
    """The request for what was chosen of a trace, besides the places that it visits."""
    if request.method is Method.EVERYWHERE and replace(chosen, zone=None) == Chosen():
        return request
    known = [interval for one in there for interval in one.intervals]
    return replace(request, stretches=tuple(chosen.stretches(trace, known)))


def check_released(
    ledger: Ledger,
    trace: Trace,
    request: Request,
    *,
    again: bool,
    key: bytes | None = None,
    subject: str = ME,
    common: Sequence[Common] = (),
) -> None:
    """Refuse a different release of a recording before any work is done, unless `again`."""
    _check(ledger, trace, identity(trace, request, common), "", again, key, subject)


def _check(
    ledger: Ledger,
    recording: Timed,
    whole: Iterable[bytes],
    series: str,
    again: bool,
    key: bytes | None,
    subject: str,
) -> None:
    wanted = ledger.request_id((*whole, *_named(key)))
    with ledger.open() as book:
        before = earlier(book, subject, series, *span(recording))
    if before and not again and all(one.request != wanted for one in before):
        raise released_before(subject)


def planned(
    trace: Trace,
    request: Request,
    common: Sequence[Common] = (),
    cache: DesignCache | None = None,
) -> Plan:
    """The release of a trace as it is designed: the one place where noise of any kind is sought.

    cache: where designs are kept beyond this process. Raises as `trailveil.release.plan` and
    `trailveil.everywhere.plan_everywhere` do.
    """
    if request.method is Method.EVERYWHERE:
        return with_common(plan_everywhere(trace, request), common)
    return plan(trace, request, common, cache)


def cache_of(ledger: Ledger) -> DesignCache:
    """Where designs are kept: beside the ledger, under a key made from its own."""
    return DesignCache(ledger.folder / "designs", derive(ledger.key, [b"design cache"]))


def whole_of(made: Plan, key: bytes | None) -> tuple[bytes, ...]:
    """All that a release depends on, and under which key it is drawn."""
    return (*identity(made.trace, made.request, made.common), *_named(key))


def drawn(made: Plan, seed: bytes, retiming: Retiming, suffix: str) -> Drawn:
    """Draw the noise of a release, and make what writes it in the format of a suffix."""
    own, whole = draw(made, seed)
    trace, grid = retimed(own, whole, retiming)
    return own, trace, lambda out: write(trace, out, suffix, grid=grid)


def publish(
    made: Plan,
    ledger: Ledger,
    output: Path,
    *,
    again: bool = False,
    overwrite: bool = False,
    beside: Beside | None = None,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
    subject: str = ME,
    there: Sequence[Visited] = (),
    limit: float | None = None,
) -> Published:
    """Count the release, draw its noise and write it.

    It is counted durably first; then its file appears whole or not at all, and with it what is
    written beside it. key: 32 secret bytes that make the noise the same wherever it is asked for;
    without, it is random, and the same again where it is recorded. there: the places that the plan
    counts on. limit: of epsilon in total. Raises Refused for a different release of the recording
    unless `again`, and for one beyond the limit.
    """
    return _publish(
        countable(made, there, told_by(made, there), subject, limit),
        whole_of(made, key),
        lambda seed: drawn(made, seed, retiming, output.suffix),
        ledger,
        output,
        again=again,
        overwrite=overwrite,
        beside=beside,
        key=key,
    )


def _publish(
    told: Countable,
    whole: Iterable[bytes],
    drawn: Callable[[bytes], Drawn],
    ledger: Ledger,
    output: Path,
    *,
    again: bool,
    overwrite: bool,
    beside: Beside | None,
    key: bytes | None,
) -> Published:
    """Count, then let appear what is drawn with the seed of the whole request."""
    whole = tuple(whole)
    wanted = ledger.request_id(whole)
    own, leaves, write_drawn = drawn(ledger.seed(wanted) if key is None else seed_of(key, whole))
    with ledger.open() as book:
        found, number = count(book, told, wanted, again=again)
    found = replace(found, drawn=own, released=leaves)
    with _withdrawn(ledger, number) as appears, contextlib.ExitStack() as files:
        put = files.enter_context(staged(output, write_drawn, overwrite=overwrite))
        put_beside = files.enter_context(beside(found)) if beside else None
        appears()
        put()
        if put_beside:
            put_beside()
    return found


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
    """As `check_released`, of readings. series: which of a subject's readings they are."""
    _check(ledger, readings, identity_of(readings, request), series, again, key, subject)


def publish_readings(
    made: ReadingsPlan,
    ledger: Ledger,
    output: Path,
    *,
    series: str,
    again: bool = False,
    overwrite: bool = False,
    beside: Beside | None = None,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
    subject: str = ME,
) -> Published:
    """As `publish`, of readings: their file is a table of times and values.

    series: which of a subject's readings they are: other ones are other recordings.
    """

    def drawn(seed: bytes) -> Drawn:
        own, whole = draw_readings(made, seed)
        readings, grid = retimed(own, whole, retiming)
        return own, readings, lambda out: write_series(readings, out, decimals=DECIMALS, grid=grid)

    def counted(book: Book, entry: Entry) -> tuple[Entry, None]:
        found = [one.guarantee.epsilon for one in made.findings]
        worst = max(found, default=made.request.epsilon)
        return replace(entry, epsilon=worst, body={**entry.body, "epsilon": worst}), None

    about = ("readings", made.mechanism.noise_trace)
    return _publish(
        Countable(*span(made.readings), series, subject, *about, counted),
        (*identity_of(made.readings, made.request), *_named(key)),
        drawn,
        ledger,
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
def _withdrawn(ledger: Ledger, number: int | None) -> Iterator[Callable[[], None]]:
    """Take a row back where its release fails before it appears, as is told."""
    told: list[bool] = []
    try:
        yield lambda: told.append(True)
    except TrailveilError:
        if number is not None and not told:
            with ledger.open() as book:
                book.withdraw(number)
        raise
