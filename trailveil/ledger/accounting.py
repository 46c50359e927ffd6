"""What a release costs beside everything that was released before.

Three things are counted, each against the worst of the adversaries' priors:

- *protected times*: of each, what all releases tell whose times are near it, by their joint prior;
- *places with names*: what all visits of all releases tell: each ride counts as if by ways of its
  own (trailveil.release.place_noise); of visits that were cut, the sum of what each cut tells:
  given the place, the ways from it are independent;
- *parts without a name*, such as the ends of a ride: the ledger knows only the whole degree that
  each is in, so all in one of these may be one place. What the releases tell of it would then add
  up (trailveil.designer.joint_tracks). Nobody knows that it is so: only a limit is held against it.

What of this is not computed counts as all that can be told. Not in it: of who knows a true place or
a path, what other releases add; recordings of --everywhere, of which one visit to a place is
counted (two where they end where they began), and nothing of what is released beside them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trailveil.ledger import NO_ID, Book, Mark
from trailveil.ledger.identity import content_in
from trailveil.ledger.marks import findings_of
from trailveil.ledger.places import EVERYTHING, OfPlace, epsilon_of, place_told
from trailveil.ledger.public import count_public
from trailveil.ledger.recorded import StoredRelease, tells_nothing_new, unpacked
from trailveil.ledger.relatives import Relatives, coarser_ones, finest_of, name_in
from trailveil.release.cutting import Window
from trailveil.release.plan import Plan
from trailveil.release.request import Method
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Trace

NO_VERSIONS = Relatives()


class Stated(NamedTuple):
    """What a release promises: radius (m) and order that its epsilon is for.

    deviation: metres per coordinate that it leaves a stranger of its worst part; 0 if not known.
    """

    radius: float
    order: float
    deviation: float = 0.0

    @classmethod
    def of(cls, plan: Plan) -> "Stated":
        """That of a plan."""
        deviation = plan.worst[1] if plan.findings else 0.0
        return cls(plan.request.radius, plan.request.order, deviation)

    def epsilon(self, loss: float) -> float:
        """Epsilon for a loss, 1 / m^2."""
        return epsilon_of(self.radius, loss, self.order)


@dataclass(frozen=True, slots=True)
class Account:
    """What a release tells together with all before it, as epsilon.

    releases: how many there are with it. epsilon: of it alone. times: of its protected times, the
    worst, or of those of an overlapping release. one_place: if all parts without a name that are
    near enough are one place; fresh: what it adds to that. overlapping: how many earlier ones share
    moments with it, or are of the same recording. before: the most of `known` of all before it.
    finest: of versions, the one that tells all that they tell together. All but `epsilon` and
    places is stated as for that, and so is the same after whichever of them: what is computed from
    a release changes no total.
    """

    subject: str
    releases: int
    epsilon: float
    times: float
    one_place: float
    places: tuple[OfPlace, ...]
    overlapping: int
    fresh: float
    before: float
    stated: "Stated"
    finest: str = ""

    @property
    def total(self) -> float:
        """The largest of them: what a limit is held against."""
        places = [place.at_most for place in self.places]
        return max(self.times, self.one_place, *places)

    @property
    def alone(self) -> float:
        """What is known to be told of its times and places."""
        return max(self.times, 0.0, *(place.total for place in self.places))

    @property
    def known(self) -> float:
        """What is known to be told: without the parts that may be one place, or elsewhere."""
        return max(self.alone, self.before)


def account(
    book: Book,
    plan: Plan,
    marks: Sequence[Mark],
    subject: str,
    overlapping: Sequence[int],
    *,
    nearby: bool = True,
    prints: bytes = b"",
    kin: Relatives = NO_VERSIONS,
) -> tuple[Account, tuple[Mark, ...]]:
    """What a release costs beside all in the book, and the marks that count it.

    overlapping: the numbers of releases that share time with it. The marks are those of `marks_of`,
    but for what these tell already, or tell besides. nearby: whether what releases at other times
    tell of its times is reckoned, which takes long; without, `times` and the total are without it.
    prints: what the recording is recognised by. kin: which of the overlapping ones are versions.
    """
    request = plan.request
    alone = max((finding.guarantee.epsilon for finding in plan.findings), default=0.0)
    if plan.request.method is Method.EVERYWHERE:
        alone = request.epsilon
    versions = kin if {*overlapping} == {*kin.finer, *kin.coarser} else NO_VERSIONS
    finest = finest_of(book, versions.finer)
    times = promised = alone if finest is None else book.rows[finest - 1].epsilon
    stated = stated_in(book, finest, plan)
    if nearby and any(not row.series for row in book.standing(subject)):
        from trailveil.ledger.joint import with_nearby  # a first release is counted without it

        times = max(times, with_nearby(book, plan, subject, versions, stated.epsilon(1.0)))
    marks, shared = _of_recording(book, plan, marks, overlapping, prints, kin)
    times = max(times, stated.epsilon(shared))
    if times > promised:  # what a slower pace or other times tell, no circle of it is free of
        stated = stated._replace(deviation=stated.deviation * (promised / times) ** 0.5)
    count = len(plan.visited)
    fresh, unnamed = _unnamed(book, marks[count:], subject)
    places = tuple(
        place_told(book, visit.place, mark, subject, marks[count:])
        for visit, mark in zip(plan.visited, marks[:count], strict=True)
    )
    account = Account(
        subject,
        len(book.standing(subject)) - count_public(book, subject) + 1,
        max(alone, *(place.alone for place in places), 0.0),
        times,
        stated.epsilon(unnamed),
        places,
        len(overlapping),
        stated.epsilon(fresh),
        _known_before(book, subject, versions) if nearby or overlapping else 0.0,
        stated,
        (plan.version if versions.coarser else "") if finest is None else name_in(book, finest),
    )
    return account, tuple(marks)


def _of_recording(
    book: Book,
    plan: Plan,
    marks: Sequence[Mark],
    overlapping: Sequence[int],
    prints: bytes,
    kin: Relatives,
) -> tuple[Sequence[Mark], float]:
    """What a release tells besides others of its recording, and the loss of any time with them.

    As of `account`; 1 / m^2. The second is 0 where no other is of its recording, and of versions
    with noise, which protect the same parts.
    """
    loss = 0.0
    cuts = cuts_before(book, overlapping, int(plan.trace.times[0]), prints)
    alone = plan.request.method is Method.CUT and not plan.common
    nothing_new = bool(kin.finer) or (alone and is_in(plan, cuts))
    nothing_new |= any(tells_nothing_new(book, number, plan) for number in overlapping)
    others = [number for number in overlapping if number not in kin.coarser]
    versions = {*overlapping} == {*kin.finer, *kin.coarser}
    finest = finest_of(book, kin.finer)
    exact = alone if finest is None else unpacked(book.blob(finest)).exact
    if overlapping and exact and (versions or (cuts and alone)):
        before = {number: unpacked(book.blob(number)) for number in overlapping}
        marks, loss = told_by_union(book, plan, marks, before)
        # At a slower pace than was stated before, earlier ones tell more than they count for. What
        # they show as it was, they did not count: this release does not show it.
        shown = [nothing_new and mark.information[0] >= EVERYTHING for mark in marks]
        return tuple(map(_cleared, marks, shown)), loss
    if others and not versions and not (nothing_new and plan.common):
        from trailveil.ledger.joint import of_one_recording

        joint, loss = of_one_recording(book, others, plan)
        marks = tuple(
            replace(mark, information=np.array(whole))
            for mark in marks
            for whole in [[joint] if mark.place == NO_ID else [EVERYTHING, mark.information[1]]]
        )
    elif kin.coarser:  # they are functions of it: it is counted for what it tells besides
        earlier = _earlier(book, kin.coarser)
        marks = tuple(_less(mark, earlier) for mark in marks)
    return tuple(_cleared(mark, nothing_new) for mark in marks), loss


def _cleared(mark: Mark, cleared: bool) -> Mark:
    return replace(mark, information=np.zeros_like(mark.information)) if cleared else mark


def stated_in(book: Book, finest: int | None, plan: Plan) -> Stated:
    """What the finest version promises: a release in the book, or the plan itself."""
    said = None if finest is None else book.body(finest).get("stated")
    return Stated.of(plan) if said is None else Stated(*said)


def _known_before(book: Book, subject: str, versions: Relatives) -> float:
    """The most that is known to be told by the releases before: what is out stays out.

    Each row says it of all before it, with such as were withdrawn since, or are coarser versions of
    a later one, which stand for nothing: of such a row, what it tells itself is taken, and the one
    before it is asked. versions: of the release that is counted.
    """
    rows = [row for row in book.standing(subject) if not row.series]
    coarser = dict.fromkeys(versions.coarser, len(book.rows) + 1) | coarser_ones(book, rows)
    gone = [*coarser.items(), *((row.withdraws, row.number) for row in book.rows if row.withdraws)]
    most = [row.epsilon for row in rows if row.number not in coarser]
    for row in reversed(rows):
        stale = row.number < coarser.get(row.number, 0)
        stale |= any(first < row.number < last for first, last in gone)
        if stale and row.number in coarser:  # what it told was of a finer one, or is told by it
            continue
        known = book.body(row.number).get("alone" if stale else "known")
        most += [] if known is None else [float(known)]
        if known is not None and not stale:
            break
    return max(most, default=0.0)


def _unnamed(book: Book, marks: Sequence[Mark], subject: str) -> tuple[float, float]:
    """What a release tells of a place that has no name, and all with it: where that is the most.

    marks: of the regions that it has such parts in. Those of earlier versions may be anywhere.
    """
    before = {name: float(total[0]) for name, (_, total) in book.totals(subject, NO_ID).items()}
    anywhere = before.get(NO_ID, 0.0)
    pairs = [(float(mark.information[0]), before.get(mark.draw, 0.0)) for mark in marks]
    fresh, earlier = max(pairs, key=sum, default=(0.0, 0.0))
    return fresh, fresh + earlier + anywhere


# Of cuts of one recording: all that a cut releases is exact, so two of them tell what is told by
# the fixes that are in either: of each part, what the shorter silence around it leaves.


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
        _less(replace(mark, information=np.array(of_places[mark.place])), earlier) for mark in marks
    ]
    return tuple(fresh), max([*losses.values(), *more])


def _less(mark: Mark, earlier: dict[tuple[bytes, bytes], NDArray[np.float64]]) -> Mark:
    """A mark without what earlier releases are counted for."""
    counted = earlier.get((mark.place, mark.draw), 0.0)
    return replace(mark, information=np.maximum(mark.information - counted, 0.0))


def _loss(plan: Plan, union: Trace, part: Stretch) -> float:
    """The loss of a part (1 / m^2) where all fixes of a trace are exact and nothing else is out."""
    window = Window.of(union, part, plan.request.uncertain, plan.request.public_in_frame)
    silent = float(np.nextafter(window.silence, 0.0))
    if silent <= 0:
        return EVERYTHING
    left = window.variance(plan.request.paces, silent)
    return min(EVERYTHING, plan.request.wide**2 / left) if left > 0 else EVERYTHING


def _earlier(book: Book, numbers: Iterable[int]) -> dict[tuple[bytes, bytes], NDArray[np.float64]]:
    """What releases are counted for, by place and draw."""
    sums: dict[tuple[bytes, bytes], NDArray[np.float64]] = {}
    for number in numbers:
        for mark in book.entry(number, b"").marks:
            pair = mark.place, mark.draw
            sums[pair] = sums.get(pair, np.zeros(mark.information.size)) + mark.information
    return sums
