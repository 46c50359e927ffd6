"""From a file to a protected file: read, clean, select, plan, count, draw, write."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import NumericalError, Refused, TrailveilError, UnwritableOutput
from trailveil.files.keys import name_of
from trailveil.files.source import beginning, named
from trailveil.gp.randomness import derive
from trailveil.ledger import Book, Entry, Ledger
from trailveil.ledger.accounting import told_by
from trailveil.ledger.counting import (
    Countable,
    count,
    countable,
    earlier,
    released_before,
    span,
)
from trailveil.ledger.identity import content_of, prints_of
from trailveil.ledger.places import Visited, check_known, load_places, visited
from trailveil.ledger.published import Drawn, Published, Receipt
from trailveil.ledger.recorded import StoredRelease, known_visits
from trailveil.ledger.unions import all_in, cuts_before
from trailveil.release.common import Common
from trailveil.release.design_cache import DesignCache
from trailveil.release.drawing import draw
from trailveil.release.everywhere import plan_everywhere
from trailveil.release.halving import leaving_half
from trailveil.release.plan import Plan, identity, plan, released_rows, with_common
from trailveil.release.readings_release import (
    DECIMALS,
    ReadingsPlan,
    ReadingsRequest,
    draw_readings,
    identity_of,
)
from trailveil.release.request import Method, Request
from trailveil.traces.formats import write
from trailveil.traces.formats.series import write_series
from trailveil.traces.formats.table import format_of, format_to_write
from trailveil.traces.projection import EXTENT, placed
from trailveil.traces.readings import Readings, Timed
from trailveil.traces.retiming import AS_RECORDED, Retiming, retimed
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

ME = "me"
"""Whose recordings they are where nobody says."""

_LONGEST_GAP = 366.0  # days


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
    """The request for what was chosen of a trace, besides the places that it visits.

    Where it is cut, each visit of one of these is a part, too.
    """
    request = request.at_pace_of(trace)
    if request.method is Method.EVERYWHERE and not chosen.states:
        return request
    known = [interval for one in there for interval in one.intervals]
    stretches = chosen.stretches(trace, known)
    if request.method.cuts:
        stretches += [p for one in there for p in one.parts(request.paces, request.uncertain)]
        stretches.sort(key=lambda one: (one.begin, one.end))
    return replace(request, stretches=tuple(stretches), returns=chosen.returns)


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
    """Refuse a different release of a recording before any work is done, unless `again`.

    A cut of which all was released before is none.
    """

    def is_in(before: Sequence[StoredRelease]) -> bool:
        if request.method is not Method.CUT or common or not before:
            return False
        framed = request.framed(placed(trace.positions)[0])
        return all_in(trace.times[released_rows(trace, framed)], before)

    whole = _whole(trace, request, common, key)
    _check(ledger, trace, whole, "", again, key, subject, is_in)


def _check(
    ledger: Ledger,
    recording: Timed,
    whole: Sequence[bytes],
    series: str,
    again: bool,
    key: bytes | None,
    subject: str,
    is_in: Callable[[Sequence[StoredRelease]], bool] = lambda _: False,
) -> None:
    wanted = ledger.request_id(seed_of(ledger.key if key is None else key, whole))
    prints = recognised(ledger, recording, whole)
    with ledger.open() as book:
        before = earlier(book, subject, series, *span(recording), prints)
        numbers = [one.number for one in before]
        cuts = cuts_before(book, numbers, span(recording)[0], prints)
    other = before and not again and all(one.request != wanted for one in before)
    if other and not is_in(cuts):
        raise released_before(subject, before, *span(recording), series=series)


def planned(
    trace: Trace,
    request: Request,
    common: Sequence[Common] = (),
    cache: DesignCache | None = None,
) -> Plan:
    """The release of a trace as it is designed: the one place where noise of any kind is sought.

    cache: where designs are kept beyond this process. Raises as `trailveil.release.plan.plan` and
    `trailveil.release.everywhere.plan_everywhere` do.
    """
    if common:
        placed(trace.positions, furthest=EXTENT)  # noise for places is made for such frames
    try:
        if request.method is Method.EVERYWHERE:
            return with_common(plan_everywhere(trace, request), common)
        return plan(trace, request, common, cache)
    except NumericalError as error:
        raise _with_its_gap(error, trace) from error
    except Refused as error:
        if request.method is Method.EVERYWHERE:
            raise
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


def cache_of(ledger: Ledger) -> DesignCache:
    """Where designs are kept: beside the ledger, under a key made from its own."""
    return DesignCache(ledger.folder / "designs", derive(ledger.key, [b"design cache"]))


def whole_of(plan: Plan, key: bytes | None) -> tuple[bytes, ...]:
    """All that a release depends on, and under which key it is drawn; never to be stored."""
    return _whole(plan.trace, plan.request, plan.common, key)


def _whole(
    trace: Trace, request: Request, common: Sequence[Common], key: bytes | None
) -> tuple[bytes, ...]:
    content = content_of(trace.times, _steps(trace))
    return (content, *identity(trace, request, common), *_named(key))


def recognised(ledger: Ledger, recording: Timed, whole: Sequence[bytes]) -> bytes:
    """What the ledger knows a recording by. whole: of `whole_of`."""
    return prints_of(ledger.key, whole[0], recording.times, _steps(recording))


def _steps(recording: Timed) -> NDArray[np.int64]:
    """The recording on its lattice, (n,) or (n, 2)."""
    if isinstance(recording, Readings):
        return recording.steps(DECIMALS)
    return placed(recording.positions)[1]


def drawn(plan: Plan, seed: bytes, retiming: Retiming) -> Drawn:
    """Draw the noise of a release, and make what writes it in the format of a suffix."""
    own, whole = draw(plan, seed)
    trace, grid = retimed(own, whole, retiming)
    return own, trace, lambda out, suffix: write(trace, out, suffix, grid=grid)


def publish(
    plan: Plan, ledger: Ledger, output: Path, *, overwrite: bool = False, **how: Any
) -> Published:
    """Count a release, draw its noise and write it. how: as of `commit`, which see."""
    with (
        commit(plan, ledger, **how) as receipt,
        receipt.staged(output, overwrite=overwrite) as put,
    ):
        receipt.put(put)
    return receipt.published


@contextlib.contextmanager
def commit(
    plan: Plan,
    ledger: Ledger,
    *,
    again: bool = False,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
    subject: str = ME,
    there: Sequence[Visited] = (),
    limit: float | None = None,
) -> Iterator[Receipt]:
    """Count a release durably and draw its noise; within, its files are staged and appear.

    Where that fails before `Receipt.put`, it counts no more, unless another run relies on it. key:
    32 secret bytes that make the noise the same wherever it is asked for; without, it is the same
    again where it is recorded. there: the places that the plan counts on. limit: of epsilon in
    total. Raises Refused for a different release of the recording unless `again`, and for one
    beyond the limit.
    """
    whole = whole_of(plan, key)
    prints = recognised(ledger, plan.trace, whole)
    release = countable(plan, there, told_by(plan, there), subject, limit, prints)
    seed = seed_of(ledger.key if key is None else key, whole)
    with _committed(release, seed, drawn(plan, seed, retiming), ledger, again=again) as receipt:
        yield receipt


@contextlib.contextmanager
def _committed(
    release: Countable, seed: bytes, drawn: Drawn, ledger: Ledger, *, again: bool
) -> Iterator[Receipt]:
    own, leaves, write_drawn = drawn
    with ledger.open() as book:
        found, number = count(book, release, ledger.request_id(seed), again=again)
    receipt = Receipt(replace(found, drawn=own, released=leaves), write_drawn)
    try:
        yield receipt
    except TrailveilError:
        if not receipt.appeared:
            with ledger.open() as book:
                book.let_go(number)
        raise


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
    whole = _whole_readings(readings, request, key)
    _check(ledger, readings, whole, series, again, key, subject)


@contextlib.contextmanager
def commit_readings(
    readings_plan: ReadingsPlan,
    ledger: Ledger,
    *,
    series: str,
    again: bool = False,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
    subject: str = ME,
) -> Iterator[Receipt]:
    """As `commit`, of readings: their file is a table of times and values.

    series: which of a subject's readings they are: other ones are other recordings, unless all
    their values are the same.
    """

    def counted(book: Book, entry: Entry) -> tuple[Entry, None]:
        found = [finding.guarantee.epsilon for finding in readings_plan.findings]
        worst = max(found, default=readings_plan.request.epsilon)
        return replace(entry, epsilon=worst, body={**entry.body, "epsilon": worst}), None

    whole = _whole_readings(readings_plan.readings, readings_plan.request, key)
    prints = recognised(ledger, readings_plan.readings, whole)
    begin, end = span(readings_plan.readings)
    noise_trace = readings_plan.mechanism.noise_trace
    release = Countable(begin, end, series, subject, "readings", noise_trace, counted, prints)
    seed = seed_of(ledger.key if key is None else key, whole)
    own, steps = draw_readings(readings_plan, seed)
    leaves, grid = retimed(own, steps, retiming)

    def written(out: BinaryIO, _: str) -> None:
        write_series(leaves, out, decimals=DECIMALS, grid=grid)

    with _committed(release, seed, (own, leaves, written), ledger, again=again) as receipt:
        yield receipt


def _whole_readings(
    readings: Readings, request: ReadingsRequest, key: bytes | None
) -> tuple[bytes, ...]:
    content = content_of(readings.times, _steps(readings))
    return (content, *identity_of(readings, request), *_named(key))


def seed_of(key: bytes, whole: Iterable[bytes]) -> bytes:
    """The seed of a release under a key: of all that it depends on, and never of the key alone.

    whole: of `whole_of`, true positions among it: nothing that is stored gives the seed back.
    """
    return derive(key, [b"noise of a release", *whole])


def _named(key: bytes | None) -> tuple[bytes, ...]:
    """Which key, without telling it: under another one it is another release."""
    return () if key is None else (b"key", name_of(key))


def default_output(source: Path, content: bytes | None = None) -> Path:
    """ride.gpx -> ride.private.gpx; GPX, too, where a format is none that is written.

    content: of the file, where it is at hand. A format may share its suffix with one that is
    written: then the content tells, if there is one.
    Raises Refused for a name that is none of a file.
    """
    if not source.name:
        raise Refused(f"the input must be a file, got a folder: {named(source)}; name the file")
    try:
        row = format_to_write(source.suffix)
    except UnwritableOutput:
        return source.with_name(f"{source.name}.private.gpx")
    found = format_of(source, beginning(source) if content is None else content)
    if found.read is row.read and found.write is None:
        return source.with_name(f"{source.name}.private.gpx")
    return source.with_name(f"{source.stem}.private{source.suffix}")
