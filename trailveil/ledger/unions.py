"""Cuts of one recording together: who publishes two of them publishes all that is in either.

All that a cut releases is exact, so what two cuts of one recording tell is what is told by the
fixes that are in either: of each part, what the shorter silence around it leaves.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.ledger import NO_ID, Book, Mark
from trailveil.ledger.identity import content_in
from trailveil.ledger.nearby import EVERYTHING
from trailveil.ledger.recorded import StoredRelease, unpacked
from trailveil.release.cutting import Window
from trailveil.release.places import Visited
from trailveil.release.plan import Finding, Plan
from trailveil.release.request import Method
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Trace


def findings_of(plan: Plan, visit: Visited) -> list[Finding]:
    """What a cut guarantees of each visit to a place with a name."""
    named = [finding for finding in plan.findings if finding.stretch.variance]
    return [finding for finding in named if finding.stretch.label == visit.place.name]


def cuts_before(
    book: Book, numbers: Sequence[int], begin: int, prints: bytes
) -> list[StoredRelease]:
    """What was kept of releases, where all are cuts alone of one very recording; else nothing.

    begin, prints: of that recording, which must have the same positions at the same times.
    """
    content = content_in(prints)
    for row in (book.rows[number - 1] for number in numbers):
        same = row.begin == begin and not row.series and content_in(row.prints) == content
        if not content or not same or book.body(row.number)["noise_trace"] != 0:
            return []
    stored = [unpacked(book.blob(number)) for number in numbers]
    return [] if any(release.roots or release.mechanism is None for release in stored) else stored


def is_in(plan: Plan, before: Sequence[StoredRelease]) -> bool:
    """Whether a release is a cut alone of which every fix was released before."""
    alone = plan.request.method is Method.CUT and not plan.common
    return alone and all_in(plan.trace.times[plan.mechanism.rows], before)


def all_in(times: NDArray[np.int64], before: Sequence[StoredRelease]) -> bool:
    """Whether fixes at these times were all released before."""
    released = [release.times[release.released] for release in before]
    return bool(released) and bool(np.all(np.isin(times, np.concatenate(released))))


def told_by_union(
    book: Book,
    plan: Plan,
    marks: Sequence[Mark],
    before: dict[int, StoredRelease],
) -> tuple[tuple[Mark, ...], float]:
    """What a cut tells more of each place than earlier ones of its recording did, and of any time.

    marks: of it alone. before: what was kept of the earlier ones, by their numbers. The second is
    the loss (1 / m^2) of the worst part of all of them.
    """
    released = [release.times[release.released] for release in before.values()]
    times = np.unique(np.concatenate([plan.trace.times[plan.mechanism.rows], *released]))
    union = Trace(times, np.zeros((times.size, 2)), np.zeros(times.size, dtype=np.intp), (0,))
    losses = {
        finding.stretch: max(finding.exposures[0].loss, _loss(plan, union, finding.stretch))
        for finding in plan.findings
    }
    known = {(loss.begin, loss.end) for loss in losses}
    others = {part for release in before.values() for part in release.unnamed} - known
    more = [_loss(plan, union, Stretch("", *part)) for part in sorted(others)]
    of_places = {
        visit.place.ident: [sum(losses[part.stretch] for part in parts), float(len(parts))]
        for visit in plan.visited
        for parts in [findings_of(plan, visit)]
    }
    groups: dict[int, float] = {}
    for finding in plan.findings:
        if not finding.stretch.variance:
            groups[finding.place] = groups.get(finding.place, 0.0) + losses[finding.stretch]
    # Nobody knows here where the parts of earlier ones are: any of them may be at one place.
    of_places[NO_ID] = [max(groups.values(), default=0.0) + sum(more)]
    earlier = _earlier(book, list(before))
    fresh = [
        replace(mark, information=np.maximum(np.array(of_places[mark.place]) - counted, 0.0))
        for mark in marks
        for counted in [earlier.get((mark.place, mark.draw), 0.0)]
    ]
    return tuple(fresh), max([*losses.values(), *more])


def _loss(plan: Plan, union: Trace, part: Stretch) -> float:
    """The loss of a part (1 / m^2) where all fixes of a trace are exact and nothing else is out."""
    window = Window.of(union, part, plan.request.uncertain)
    silent = float(np.nextafter(window.silence, 0.0))
    if silent <= 0:
        return EVERYTHING
    return min(EVERYTHING, plan.request.wide**2 / window.variance(plan.request.paces, silent))


def _earlier(book: Book, numbers: Sequence[int]) -> dict[tuple[bytes, bytes], NDArray[np.float64]]:
    """What releases are counted for, by place and draw."""
    sums: dict[tuple[bytes, bytes], NDArray[np.float64]] = {}
    for number in numbers:
        for mark in book.entry(number, b"").marks:
            pair = mark.place, mark.draw
            sums[pair] = sums.get(pair, np.zeros(mark.information.size)) + mark.information
    return sums
