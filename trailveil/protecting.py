"""From a file to a protected file: read, clean, select, plan, count, draw, write."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trailveil.accounting import Account, account, check_total, told_by
from trailveil.common import Common
from trailveil.errors import Refused, TrailveilError, UnwritableOutput
from trailveil.formats import write
from trailveil.formats.series import write_series
from trailveil.formats.source import beginning, named
from trailveil.formats.table import format_of, format_to_write
from trailveil.keys import name_of
from trailveil.ledger import Book, Entry, Ledger, Mark, Recorded
from trailveil.mechanism import Mechanism
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
from trailveil.recorded import known_visits, packed
from trailveil.release import Plan, Request, draw, identity
from trailveil.retiming import AS_RECORDED, Retiming, retimed
from trailveil.selection import Chosen
from trailveil.trace import Trace

ME = "me"
"""Whose recordings they are where nobody says."""

# Relative: releases of one request whose noise differs by more than this are not the same.
_SAME_NOISE = 1e-6


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
        earlier = _earlier(book, recording, series, subject)
    if earlier and not again and all(one.request != wanted for one in earlier):
        raise _released_before(subject)


def _earlier(book: Book, recording: Timed, series: str, subject: str) -> list[Recorded]:
    """Releases that share time with a recording; that one begins where another ends is none."""
    begin, end = int(recording.times[0]), int(recording.times[-1])
    return [
        one
        for one in book.overlapping(subject, series, begin, end)
        if min(end, one.end) > max(begin, one.begin)
    ]


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
    marks = told_by(made, there)

    def drawn(seed: bytes) -> Drawn:
        own, whole = draw(made, seed)
        trace, grid = retimed(own, whole, retiming)
        return own, trace, lambda out: write(trace, out, output.suffix, grid=grid)

    def counted(book: Book, entry: Entry) -> tuple[Entry, Account]:
        return _with_account(book, entry, made, there, marks, limit)

    return _publish(
        _Counted(made.trace, "", subject, made.request.noise.value, made.mechanism, counted),
        (*identity(made.trace, made.request, made.common), *_named(key)),
        drawn,
        ledger,
        output,
        again=again,
        overwrite=overwrite,
        beside=beside,
        key=key,
    )


def _with_account(
    book: Book,
    entry: Entry,
    made: Plan,
    there: Sequence[Visited],
    marks: Sequence[Mark],
    limit: float | None,
) -> tuple[Entry, Account]:
    """The entry of a release of a trace, whole, and its account; refused beyond the limit."""
    others = [one.number for one in _earlier(book, made.trace, "", entry.subject)]
    found, told = account(book, made, there, marks, entry.subject, others)
    check_total(found, limit, made.request.epsilon)
    body = {
        **entry.body,
        "epsilon": found.epsilon,
        "total": found.total,
        "parts": [one.stretch.label for one in made.findings],
        "places": [one.place.name for one in there],
    }
    whole = replace(entry, epsilon=found.epsilon, body=body, marks=told)
    return replace(whole, blob=packed(made, there)), found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Counted:
    """What the ledger is told of a release: `counted` makes an entry whole, and its account."""

    recording: Timed
    series: str
    subject: str
    name: str
    mechanism: Mechanism
    counted: Callable[[Book, Entry], tuple[Entry, Account | None]]

    def entry(self, request: bytes) -> Entry:
        """The entry, as far as it is the same for every kind of recording."""
        begin, end = int(self.recording.times[0]), int(self.recording.times[-1])
        body = {"mechanism": self.name, "noise_trace": self.mechanism.noise_trace}
        return Entry(self.subject, self.series, begin, end, request, 0.0, body)


def _publish(
    told: _Counted,
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
    number = None
    with ledger.open() as book:
        earlier = _earlier(book, told.recording, told.series, told.subject)
        noise = told.mechanism.noise_trace
        alike = [one for one in earlier if _is_like(book, one, wanted, noise)]
        found = Published(len(earlier) > len(alike), None, own, leaves)
        if found.further and not alike and not again:
            raise _released_before(told.subject)
        if not alike:
            entry, of_it = told.counted(book, told.entry(wanted))
            found = replace(found, account=of_it)
            number = book.add(entry)
    with _withdrawn(ledger, number) as appears, contextlib.ExitStack() as files:
        put = files.enter_context(staged(output, write_drawn, overwrite=overwrite))
        put_beside = files.enter_context(beside(found)) if beside else None
        appears()
        put()
        if put_beside:
            put_beside()
    return found


def _is_like(book: Book, one: Recorded, wanted: bytes, noise_trace: float) -> bool:
    """Whether a recorded release is of this request, and was answered with the same noise."""
    if one.request != wanted:
        return False
    before = float(book.body(one.number)["noise_trace"])
    return abs(before - noise_trace) <= _SAME_NOISE * before


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

    return _publish(
        _Counted(made.readings, series, subject, "readings", made.mechanism, counted),
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


def _released_before(subject: str) -> Refused:
    return Refused(
        "a recording must be released once, got one of times that were released before with other "
        "noise: two different releases together can give its protected places away to a few "
        "metres; ask for the same as before to get the same file again, add --again to accept "
        f"that, or name whose it is (--subject) if it is not of the one called {subject!r}"
    )
