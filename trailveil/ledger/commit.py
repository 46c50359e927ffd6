"""From a plan to a file: a release is counted durably, then it is drawn, and its files appear.

with commit(plan, ledger) as receipt, receipt.staged(output, overwrite=False) as put:
receipt.put(put)
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Refused, TrailveilError
from trailveil.files.keys import name_of
from trailveil.files.output import Put, staged
from trailveil.gp.randomness import derive
from trailveil.ledger import Ledger
from trailveil.ledger.accounting import Account, all_in, cuts_before
from trailveil.ledger.counting import (
    count,
    countable,
    earlier,
    released_before,
    span,
)
from trailveil.ledger.identity import ME, content_of, prints_of
from trailveil.ledger.places import check_known, load_places
from trailveil.ledger.public import public_around
from trailveil.ledger.recorded import StoredRelease, known_visits
from trailveil.ledger.retractions import Retraction, listed_files, retractions
from trailveil.release.drawing import draw
from trailveil.release.places import Visited, visited
from trailveil.release.plan import Plan
from trailveil.release.public import Position
from trailveil.release.request import Method
from trailveil.traces.formats import write
from trailveil.traces.formats.grid import begun_after_cuts, begun_after_gaps
from trailveil.traces.formats.table import format_to_write
from trailveil.traces.projection import placed
from trailveil.traces.readings import Readings
from trailveil.traces.retiming import AS_RECORDED, Retiming, retimed
from trailveil.traces.stops import Interval
from trailveil.traces.trace import TimeSeries, Trace

if TYPE_CHECKING:  # traces are released without it
    from trailveil.release.readings_release import ReadingsPlan

T = TypeVar("T", Trace, Readings)
AnyPlan: TypeAlias = "Plan | ReadingsPlan"


@dataclass(frozen=True, slots=True, repr=False)
class Identity:
    """What a release is drawn from and known by.

    seed: of its noise, stored nowhere. request: its keyed hash, by which the same is known again.
    prints: what the ledger knows the recording by.
    """

    seed: bytes
    request: bytes
    prints: bytes


@dataclass(slots=True, eq=False, repr=False)
class Receipt(Generic[T]):
    """A release that is counted and drawn, and whose file is about to appear.

    drawn: the released fixes or readings, before their times are changed; released: as they leave.
    write: writes these in the format of a suffix. further: whether the recording, or a part of it,
    was released before with other noise. account: what it tells with all others; None for
    readings. retracted: the releases that it stands for, which count no more. appeared: whether a
    file of it may be there: then it counts for ever.
    """

    drawn: T
    released: T
    write: Callable[[BinaryIO, str], None]
    further: bool
    account: Account | None
    retracted: tuple[Retraction, ...] = ()
    appeared: bool = False

    def staged(self, output: Path, *, overwrite: bool) -> contextlib.AbstractContextManager[Put]:
        """Write the release beside its place: see `trailveil.files.output.staged`."""
        return staged(output, lambda out: self.write(out, output.suffix), overwrite=overwrite)

    def put(self, *puts: Put) -> None:
        """Let staged files appear, that of the release first."""
        self.appeared = True
        for put in puts:
            put()


def known_places(
    ledger: Ledger, trace: Trace, *, subject: str = ME, key: bytes | None = None
) -> list[Visited]:
    """The places with names that a trace visits, or was near in time to a released visit of."""
    whole = load_places(ledger)
    places = [place for place in whole if not place.gone]
    begin, end = int(trace.times[0]), int(trace.times[-1])
    with ledger.open() as book:
        check_known(ledger, book, whole)
        before = known_visits(book, subject, places, begin, end)
    return visited(trace, places, ledger.key if key is None else key, before)


def visits_known(ledger: Ledger, trace: Trace) -> list[Interval]:
    """When a trace was at places with names, or another release near it in time; nanoseconds."""
    return [when for visit in known_places(ledger, trace) for when in visit.intervals]


def known_public(ledger: Ledger, trace: Trace, subject: str = ME) -> tuple[Position, ...]:
    """What is public already of somebody around a trace."""
    with ledger.open() as book:
        return public_around(book, subject, *span(trace))


def check_released(
    ledger: Ledger,
    plan: AnyPlan,
    *,
    again: bool,
    key: bytes | None = None,
    subject: str = ME,
) -> None:
    """Refuse a different release of a recording, unless `again`.

    A cut of which all was released before is none.
    """
    if again:
        return
    known_by = identified(ledger, plan.trace, plan.identity, key)
    refusal, cuts = different(ledger, plan.trace, known_by, subject)
    is_cut = isinstance(plan, Plan) and plan.request.method is Method.CUT
    if refusal and not (is_cut and cuts and all_in(plan.trace.times[plan.mechanism.rows], cuts)):
        raise refusal


def different(
    ledger: Ledger, recording: TimeSeries, known_by: Identity, subject: str
) -> tuple[Refused | None, list[StoredRelease]]:
    """What is said of a recording that was released before, and never just so; and these cuts.

    The cuts are those of `cuts_before`.
    """
    begin, end = span(recording)
    series = recording.column if isinstance(recording, Readings) else ""
    with ledger.open() as book:
        before = earlier(book, subject, series, begin, end, known_by.prints)
        if not before or any(row.request == known_by.request for row in before):
            return None, []
        cuts = cuts_before(book, [row.number for row in before], begin, known_by.prints)
        files = listed_files(retractions(book, before))
        same = len(book.alike(subject, series, known_by.prints)) == len(before)
    how: dict[str, Any] = {"series": series, "replaceable": same}
    return released_before(subject, before, begin, end, files, **how), cuts


def identified(
    ledger: Ledger, recording: TimeSeries, design: Iterable[bytes], key: bytes | None
) -> Identity:
    """What a release is drawn from and known by. design, key: as of `whole_of`."""
    whole = whole_of(recording, design, key)
    seed = seed_of(ledger.key if key is None else key, whole)
    prints = prints_of(ledger.key, whole[0], recording.times, _steps(recording))
    return Identity(seed, ledger.request_id(seed), prints)


def whole_of(
    recording: TimeSeries, design: Iterable[bytes], key: bytes | None
) -> tuple[bytes, ...]:
    """All that a release depends on, and under which key it is drawn; never to be stored.

    design: what it depends on besides, such as `Plan.identity`. A key is named without telling it:
    under another one it is another release.
    """
    named = () if key is None else (b"key", name_of(key))
    return (content_of(recording.times, _steps(recording)), *design, *named)


def _steps(recording: TimeSeries) -> NDArray[np.int64]:
    """The recording on its lattice, (n,) or (n, 2)."""
    if isinstance(recording, Readings):
        from trailveil.release.readings_release import DECIMALS

        return recording.steps(DECIMALS)
    return placed(cast(Trace, recording).positions)[1]


def seed_of(key: bytes, whole: Iterable[bytes]) -> bytes:
    """The seed of a release under a key: of all that it depends on, and never of the key alone.

    whole: of `whole_of`, true positions among it: nothing that is stored gives the seed back.
    """
    return derive(key, [b"noise of a release", *whole])


def publish(
    plan: Plan, ledger: Ledger, output: Path, *, overwrite: bool = False, **how: Any
) -> Receipt[Trace]:
    """Count a release, draw its noise and write it. how: as of `commit`, which see."""
    with (
        commit(plan, ledger, output=output.name, **how) as receipt,
        receipt.staged(output, overwrite=overwrite) as put,
    ):
        receipt.put(put)
    return receipt


@contextlib.contextmanager
def commit(
    plan: AnyPlan,
    ledger: Ledger,
    *,
    again: bool = False,
    instead: bool | None = False,
    key: bytes | None = None,
    retiming: Retiming = AS_RECORDED,
    subject: str = ME,
    limit: float | None = None,
    output: str = "",
) -> Iterator[Receipt[Any]]:
    """Count a release durably and draw its noise; within, its files are staged and appear.

    Where that fails before `Receipt.put`, it counts no more, unless another run relies on it. key:
    32 secret bytes that make the noise the same wherever it is asked for; without, it is the same
    again where it is recorded. limit: of epsilon in total. output: the name of its file. Raises
    Refused for a different release of the recording unless `again` or `instead` (see
    `trailveil.ledger.counting.count`), and for one beyond the limit, and for noise of
    `trailveil.release.mixture`, which only stands in for it.
    """
    known_by = identified(ledger, plan.trace, plan.identity, key)
    base: list[Identity] = []
    bases: tuple[bytes, ...] = ()
    if isinstance(plan, Plan):
        if not all(design.proof for design in plan.designs):
            raise Refused("noise must be designed for its release, got a bound on it: plan it anew")
        layers = () if plan.layer is None else plan.layer.chain[1:]
        abouts = [(*plan.identity[:2], *layer.about) for layer in layers]
        base = [identified(ledger, plan.trace, about, key) for about in abouts]
        direct = 0 if plan.layer is None else len(plan.layer.bases)
        bases = tuple(each.request for each in base[:direct])
    release = countable(plan, known_by.prints, bases, output)
    drawing = drawn(plan, known_by.seed, retiming, *(each.seed for each in base))
    how: dict[str, Any] = {"subject": subject, "again": again, "instead": instead, "limit": limit}
    with ledger.open() as book:
        counted = count(book, release, known_by.request, **how)
    receipt = Receipt(*drawing, counted.further, counted.account, counted.retracted)
    try:
        yield receipt
    except TrailveilError:
        if not receipt.appeared:
            with ledger.open() as book:
                counted.let_go(book)
        raise


def drawn(
    plan: AnyPlan, seed: bytes, retiming: Retiming, *base: bytes
) -> tuple[Any, Any, Callable[[BinaryIO, str], None]]:
    """The drawn fixes or readings, before their times are changed and as they leave.

    And what writes these. seed, base: as of `trailveil.release.drawing.draw`.
    """
    if isinstance(plan, Plan):
        as_recorded, places = draw(plan, seed, *base)
        trace, grid = retimed(as_recorded, places, retiming)
        lines = trace
        if plan.mechanism.rows.size < len(plan.trace):
            cut, _ = retimed(begun_after_cuts(as_recorded, plan.mechanism.rows), places, retiming)
            lines = begun_after_gaps(cut)

        def written(out: BinaryIO, suffix: str) -> None:
            leaves = lines if format_to_write(suffix).lines else trace
            write(leaves, out, suffix, grid=grid)

        return as_recorded, trace, written
    from trailveil.release.readings_release import draw_readings
    from trailveil.traces.formats.series import write_series

    values, steps = draw_readings(plan, seed)
    readings, whole = retimed(values, steps, retiming)
    return values, readings, lambda out, _: write_series(readings, out, grid=whole)
