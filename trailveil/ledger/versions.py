"""Versions of one recording: which of its releases tell all that others do, and the next one.

A version is a function of each finer one and of independent noise, so all of them together tell
what the finest tells (docs/paper.md, "Versions"). Each entry says which others are finer and which
are coarser; of cuts, the fixes say it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Refused
from trailveil.ledger import Book, LedgerRow
from trailveil.ledger.identity import content_in
from trailveil.ledger.recorded import StoredRelease, columns_around, unpacked
from trailveil.ledger.relatives import Relatives, is_finer_version, versions_in
from trailveil.privacy.mechanism import Mechanism
from trailveil.release.layers import Layer
from trailveil.release.plan import Plan
from trailveil.release.request import Method
from trailveil.release.versions import as_before, between, coarser, finer, layer_of, not_nested
from trailveil.traces.stops import Interval


def relatives(
    book: Book, plan: Plan, prints: bytes, bases: Sequence[bytes], before: Sequence[LedgerRow]
) -> Relatives:
    """Which of the releases before it are finer and coarser versions of a release.

    prints: what its recording is recognised by. bases: the requests of `Layer.bases`. before: of
    its recording. None are, for a release that is no version.
    """
    if not plan.version:
        return Relatives()
    times, parts = plan.trace.times[plan.mechanism.rows], _parts_of(plan)
    content, begin = content_in(prints), int(plan.trace.times[0])
    more, less = set(), set()
    for row in before:
        stored = unpacked(book.blob(row.number))
        if _parts_in(stored) != parts:  # what it hides elsewhere, no version may give away
            continue
        same = bool(content) and row.begin == begin and content_in(row.prints) == content
        if same and not book.body(row.number)["noise_trace"]:
            fixes = _released(stored)
            if np.isin(times, fixes).all():
                more.add(row.number)
            elif plan.request.method is Method.CUT and np.isin(fixes, times).all():
                less.add(row.number)
        elif same and plan.request.method is Method.CUT:
            fixes = _released(stored)
            less |= {row.number} if np.isin(fixes, times).all() else set()
        elif row.request in bases and plan.layer is not None:
            base = plan.layer.bases[bases.index(row.request)]
            (more if base is plan.layer.finer else less).add(row.number)
    said = {row.number: versions_in(book.body(row.number)) for row in before}
    for number, each in said.items():
        more |= {number} if any(number in said[x].finer for x in more) else set()
        more |= {number} if any(x in each.coarser for x in more) else set()
        less |= {number} if any(number in said[x].coarser for x in less) else set()
        less |= {number} if any(x in each.finer for x in less) else set()
    return Relatives(tuple(sorted(more)), tuple(sorted(less - more)))


def _released(stored: StoredRelease) -> NDArray[np.int64]:
    return stored.times[stored.released]


def _parts_of(plan: Plan) -> set[Interval]:
    """What a plan protects, visits of places with a name too, nanoseconds."""
    parts = {(finding.stretch.begin, finding.stretch.end) for finding in plan.findings}
    return parts | {(int(a), int(b)) for visit in plan.visited for a, b in visit.intervals}


def _parts_in(stored: StoredRelease) -> set[Interval]:
    """The same of a release in the ledger."""
    return {*stored.parts}.union(*stored.visits.values())


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A version that is published, or about to be.

    request: its keyed hash. released: times (m,), nanoseconds. parts: that it protects, likewise.
    cut: whether all of it is exact. layer: its noise; None for a cut, or noise that cannot be drawn
    again.
    """

    request: bytes
    released: NDArray[np.int64]
    parts: set[Interval]
    cut: bool
    layer: Layer | None

    @classmethod
    def of(cls, plan: Plan, request: bytes) -> "Member":
        """That of a plan."""
        cut = plan.request.method is Method.CUT and not plan.common
        released = plan.trace.times[plan.mechanism.rows]
        return cls(request, released, _parts_of(plan), cut, layer_of(plan))


def chain_of(book: Book, rows: Sequence[LedgerRow]) -> list[Member]:
    """Releases of one recording as versions of one another, the finest first.

    Raises Refused where they are no such versions.
    """
    said = {row.number: versions_in(book.body(row.number)) for row in rows}
    stored = {row.number: unpacked(book.blob(row.number)) for row in rows}

    def is_finer(a: int, b: int) -> bool:
        exact = stored[a].exact and stored[b].exact
        within = exact and bool(np.isin(_released(stored[b]), _released(stored[a])).all())
        return within or is_finer_version(said, a, b)

    ranks = {a: sum(is_finer(b, a) for b in said if b != a) for a in said}
    order = sorted(said, key=lambda number: ranks[number])
    if any(not is_finer(a, b) for i, a in enumerate(order) for b in order[i + 1 :]):
        raise Refused(
            "versions must be of one chain, got a recording of which releases are out that are no "
            "versions of each other: add --replace if nobody has them"
        )
    layers: dict[int, Layer | None] = {}
    for row in rows:  # a base comes before what is drawn from it
        version = book.body(row.number).get("version") or {}
        below, above = (layers.get(base or 0) for base in version.get("bases", (None, None)))
        layers[row.number] = _layer(stored[row.number], below, above, version.get("share", 0.0))
    by_number = {row.number: row for row in rows}
    return [
        Member(by_number[n].request, _released(each), _parts_in(each), each.exact, layers[n])
        for n in order
        for each in [stored[n]]
    ]


def _layer(
    stored: StoredRelease, below: Layer | None, above: Layer | None, share: float
) -> Layer | None:
    """The noise of a release as it was drawn; None for what cannot be drawn again."""
    if stored.mechanism is None or not stored.about or (share and above is None):
        return None
    law: Mechanism = stored.mechanism
    fresh = law.factor if above is None else above.law.factor
    if below is not None:
        from trailveil.designer.nesting import added

        whole = stored.noises if above is None else above.noises
        more = [added(*pair) for pair in zip(whole, below.noises, strict=True)]
        fresh = columns_around(stored.times, stored.windows, more)
    if above is not None:
        fresh = (share * (1 - share)) ** 0.5 * fresh
    about = (stored.about, law, stored.windows, stored.noises, stored.bound)
    return Layer(*about, fresh, below, above, share)


def as_version(plan: Plan, request: bytes, chain: list[Member]) -> Plan:
    """A plan that was designed alone, as a version beside those of a chain, the finest first.

    request: the keyed hash of the plan alone. Raises Refused where it does not nest.
    """
    if any(member.request == request for member in chain):
        return plan
    if any(member.parts != _parts_of(plan) for member in chain):
        raise Refused(
            "versions must protect the same parts, got others than an earlier version: state the "
            "same times, places, ends and returns, add --replace if nobody has the earlier "
            "version, or --again to accept both"
        )
    times = plan.trace.times[plan.mechanism.rows]
    if plan.request.method is Method.CUT and not plan.common:
        for member in chain:
            larger = member.cut and np.isin(times, member.released).all()
            if not larger and not np.isin(member.released, times).all():
                raise not_nested("a cut of other fixes than an earlier version")
        return plan
    for member in chain:
        if member.cut and not np.isin(times, member.released).all():
            raise not_nested("noise at fixes that an earlier cut withholds")
        if not member.cut and member.layer is None:
            raise Refused(
                "a version must be drawn from the earlier one, got noise that cannot be drawn "
                "again: of a place with a name, or of an earlier program; state all versions in "
                "one run, with --replace if nobody has the earlier one"
            )
    layers = [member.layer for member in chain if member.layer is not None]
    about = plan.identity[2:]
    same = (layer for layer in layers if layer.bases and layer.about[: len(about)] == about)
    again = next(same, None)
    if again is not None or not layers:
        return plan if again is None else as_before(plan, again)
    below = sum(layer.bound >= plan.request.noise_bound for layer in layers)  # the finest first
    if below == len(layers):
        return coarser(plan, layers[-1])
    if below == 0:
        return finer(plan, layers[0])
    return between(plan, layers[below - 1], layers[below])


def place_in(chain: Sequence[Member], plan: Plan) -> int:
    """Where a version that is drawn from those of a chain goes in it: cuts at the end."""
    layers = [member.layer for member in chain]
    if plan.layer is None:
        return len(layers)
    if plan.layer.finer is not None:
        return layers.index(plan.layer.finer) + 1
    return layers.index(plan.layer.coarser)
