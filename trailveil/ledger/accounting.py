"""What a release costs beside everything that was released before.

Three things are counted, each against the worst of the adversaries' priors:

- *protected times*: of each, what all releases tell whose times are near it, by their joint prior;
- *places with names*: what all visits of all releases tell: each ride counts as if by ways of its
  own (trailveil.release.place_noise); of visits that were cut, the sum of what each cut tells:
  given the place, the ways from it are independent;
- *parts without a name*, such as the ends of a ride: the ledger knows only the whole degree that
  each is in, so all in one of these may be one place. What the releases tell of it would then add
  up (trailveil.privacy.recurring). Nobody knows that it is so: only a limit is held against it.

What of this is not computed counts as all that can be told. Not in it: of who knows a true place or
a path, what other releases add; recordings of --everywhere, of which one visit to a place is
counted (two where they end where they began), and nothing of what is released beside them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from trailveil.errors import InvalidValue, NumericalError, Unavailable
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import stopped
from trailveil.ledger import ID_BYTES, NO_ID, Book, LedgerRow, Mark
from trailveil.ledger.nearby import EVERYTHING, NearbyRelease, worst_nearby
from trailveil.ledger.place_accounts import (
    OfPlace,
    epsilon_of,
    kernels_for,
    of_cuts,
    of_visited,
    place_told,
    span_of,
)
from trailveil.ledger.recorded import StoredRelease, reach_of, tells_nothing_new, unpacked
from trailveil.ledger.unions import cuts_before, is_in, told_by_union
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.loss import largest_eigenvalue
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.movement import Matern, Movement, movement_of
from trailveil.privacy.recurring import information
from trailveil.privacy.secrets import Secret
from trailveil.release.plan import Finding, Plan
from trailveil.release.request import Method
from trailveil.traces.projection import MICRO
from trailveil.traces.retiming import SHIFTED_TO
from trailveil.traces.trace import NANOSECONDS

# Metres: with every place protected, ends that are this near, or within the radius, may be one.
_ONE_PLACE = 500.0
# Metres, and the corners of a square around a place: so near to a whole degree, it may be in it.
_NEAR_BORDER = 2000.0
_CORNERS = np.array([[0.0, 0.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
# Of recordings of more fixes than this, only so many seconds around protected parts are looked at,
# and so many fixes more.
_LONG, _AROUND, _MARGIN = 20_000, 3 * 3600.0, 60
# An epsilon from which on a place is as good as told: no more digits are computed.
_DISCLOSED = 1e3
# Rows that are taken together exactly; more count as everything.
_MOST_JOINT = 1500


@dataclass(frozen=True, slots=True)
class Account:
    """What a release tells together with all before it, as epsilon.

    releases: how many there are with it. epsilon: of it alone. times: of its protected times, the
    worst, or of those of an overlapping release. one_place: if all parts without a name that are
    near enough are one place; fresh: what it adds to that. overlapping: how many earlier ones share
    moments with it, or are of the same recording. before: the most of `known` of all before it.
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

    @property
    def total(self) -> float:
        """The largest of them: what a limit is held against."""
        places = [place.at_most for place in self.places]
        return max(self.times, self.one_place, *places)

    @property
    def known(self) -> float:
        """What is known to be told: without the parts that may be one place, or elsewhere."""
        return max(self.epsilon, self.times, self.before, *(place.total for place in self.places))


def marks_of(plan: Plan) -> tuple[Mark, ...]:
    """What a release tells of each place, and of the one that its unnamed parts may be."""
    named = of_cuts if plan.request.method.cuts else of_visited
    return (*(named(plan, visit) for visit in plan.visited), *_of_unnamed(plan))


def account(
    book: Book,
    plan: Plan,
    marks: Sequence[Mark],
    subject: str,
    overlapping: Sequence[int],
    *,
    nearby: bool = True,
    prints: bytes = b"",
) -> tuple[Account, tuple[Mark, ...]]:
    """What a release costs beside all in the book, and the marks that count it.

    overlapping: the numbers of releases that share time with it. The marks are those of `marks_of`,
    but for what these tell already, or tell besides. nearby: whether what releases at other times
    tell of its times is reckoned, which takes long; without, `times` and the total are without it.
    prints: what the recording is recognised by.
    """
    request = plan.request
    alone = max((finding.guarantee.epsilon for finding in plan.findings), default=0.0)
    if plan.request.method is Method.EVERYWHERE:
        alone = request.epsilon
    times = _nearby(book, plan, subject) if nearby else alone
    cuts: list[StoredRelease] = []
    if request.method is Method.CUT and not plan.common:
        cuts = cuts_before(book, overlapping, int(plan.trace.times[0]), prints)
    nothing_new = is_in(plan, cuts) or any(
        tells_nothing_new(book, number, plan) for number in overlapping
    )
    if cuts:
        before = dict(zip(overlapping, cuts, strict=True))
        marks, worst = told_by_union(book, plan, marks, before)
        times = max(times, epsilon_of(request.radius, worst, request.order))
    elif overlapping and not (nothing_new and plan.common):
        joint, times = _together(book, overlapping, plan)
        marks = tuple(
            replace(mark, information=np.array(whole))
            for mark in marks
            for whole in [[joint] if mark.place == NO_ID else [EVERYTHING, mark.information[1]]]
        )
    if nothing_new:
        marks = tuple(replace(mark, information=np.zeros_like(mark.information)) for mark in marks)
    count = len(plan.visited)
    fresh, unnamed = _unnamed(book, marks[count:], subject)
    places = tuple(
        place_told(book, visit.place, mark, subject, unnamed)
        for visit, mark in zip(plan.visited, marks[:count], strict=True)
    )
    account = Account(
        subject,
        len(book.standing(subject)) + 1,
        max(alone, *(place.alone for place in places), 0.0),
        max(times, alone),
        epsilon_of(request.radius, unnamed, request.order),
        places,
        len(overlapping),
        epsilon_of(request.radius, fresh, request.order),
        _known_before(book, subject) if nearby or overlapping else 0.0,
    )
    return account, tuple(marks)


def _known_before(book: Book, subject: str) -> float:
    """The most that is known to be told by the releases before: what is out stays out."""
    rows = [row for row in book.standing(subject) if not row.series]
    bodies = (book.body(row.number) for row in reversed(rows))
    known = next((body["known"] for body in bodies if body.get("known") is not None), 0.0)
    return max(float(known), *(row.epsilon for row in rows), 0.0)


def _unnamed(book: Book, marks: Sequence[Mark], subject: str) -> tuple[float, float]:
    """What a release tells of a place that has no name, and all with it: where that is the most.

    marks: of the regions that it has such parts in. Those of earlier versions may be anywhere.
    """
    before = {name: float(total[0]) for name, (_, total) in book.totals(subject, NO_ID).items()}
    anywhere = before.get(NO_ID, 0.0)
    pairs = [(float(mark.information[0]), before.get(mark.draw, 0.0)) for mark in marks]
    fresh, earlier = max(pairs, key=sum, default=(0.0, 0.0))
    return fresh, fresh + earlier + anywhere


def _of_unnamed(plan: Plan) -> list[Mark]:
    """The most that it tells of one place that its parts without a name may be, in each region."""
    wide = plan.request.wide**2  # told of true metres, as of frames that are not wide
    if plan.request.method is Method.EVERYWHERE:
        ends = (plan.lattice[-1] - plan.lattice[0]) / MICRO
        visits = 2 if np.hypot(*ends) <= max(_ONE_PLACE, plan.request.radius) else 1
        regions = {name for place in _coarsely(plan) for name in _regions(plan, place)}
        return _marks(dict.fromkeys(regions, visits * plan.request.bound * wide))
    information: dict[bytes, float] = {}
    for middle, findings in _one_place_each(plan):
        # What is proved of each: it adds up where all but the cuts is known, and where a false
        # track of one part ends before that of another begins.
        most = sum(finding.exposures[0].loss for finding in findings)
        if plan.request.method is Method.NOISE and _meet(plan, findings):
            most = max(most, wide * _by_conditioning(plan, findings))
        for name in _regions(plan, middle):
            information[name] = max(information.get(name, 0.0), most)
    return _marks(information)


def _meet(plan: Plan, parts: Sequence[Finding]) -> bool:
    """Whether the noises of two of these parts may reach the same fix."""
    far = (
        max((design.knots.end for design in plan.designs), default=np.inf) + plan.request.uncertain
    )
    edges = sorted((part.stretch.begin, part.stretch.end) for part in parts)
    return any(b - a < 2 * far * NANOSECONDS for (_, a), (b, _) in pairwise(edges))


def _by_conditioning(plan: Plan, parts: Sequence[Finding]) -> float:
    """What one release tells of a place (1 / m^2) where all these parts are visits of it.

    Nobody moves in a window: of any other movement there, less is told. Of the priors that have a
    speed, the slowest tells the most. One that returns to a mean is conditioned as it is.
    """
    sure = plan.request.uncertain
    spans = [span_of(plan, part.stretch.begin, part.stretch.end) for part in parts]
    spans = [(begin - sure, end + sure) for begin, end in spans]
    mechanism = _own(plan, spans)
    seconds, factor = mechanism.times[mechanism.rows], mechanism.factor[mechanism.rows]
    movements = [(movement_of(kernel), kernel) for kernel in kernels_for(plan.request)]
    paces = [
        (movement.speed, kernel) for movement, kernel in movements if isinstance(movement, Movement)
    ]
    slowest = min(paces, key=lambda pace: pace[0])[1]
    losses = [information(slowest, seconds, spans, factor, noise=mechanism.floor)]
    for kernel in (kernel for movement, kernel in movements if isinstance(movement, Matern)):
        if mechanism.rows.size > _MOST_JOINT:
            return EVERYTHING
        still = stopped(spans)
        places = Secret.at([begin for begin, _ in still.windows])
        losses.append(
            float(np.sum(joint_loss(kernel.warp(still), [Release(mechanism)], places).matrix))
        )
    return max(losses)


def _marks(information: dict[bytes, float]) -> list[Mark]:
    return [Mark(NO_ID, name, np.array([most])) for name, most in sorted(information.items())]


def _coarsely(plan: Plan) -> FloatArray:
    """Places (k, 2), metres in the frame, one of which is within some 1.5 km of each fix."""
    metres = plan.lattice / MICRO
    return np.asarray(np.unique(np.round(metres / _NEAR_BORDER), axis=0) * _NEAR_BORDER)


def _regions(plan: Plan, middle: FloatArray) -> set[bytes]:
    """The whole degrees that a place (2,), metres in the frame, is in or near, by their names."""
    around = middle + max(_NEAR_BORDER, 4 * plan.request.radius) * _CORNERS
    degrees = np.floor(plan.frame.to_degrees(np.round(around * MICRO).astype(np.int64)) / MICRO)
    return {
        f"{int(north):+03d}{int((east + 180) % 360):03d}".rjust(ID_BYTES).encode()
        for north, east in degrees
    }


def _own(plan: Plan, spans: Sequence[tuple[float, float]]) -> Mechanism:
    """The noise of a release that is its own; of a long one, some hours around the spans.

    What lies beyond tells no more than where it begins: there, fixes have next to no noise.
    """
    mechanism = replace(plan.mechanism, factor=plan.mechanism.factor[:, : plan.own_columns])
    if mechanism.times.size <= _LONG:
        return mechanism
    near = np.zeros(mechanism.times.size, dtype=np.bool_)
    for begin, end in spans:
        first, last = np.searchsorted(mechanism.times, [begin - _AROUND, end + _AROUND])
        near[max(0, first - _MARGIN) : last + _MARGIN] = True
    released = np.asarray(mechanism.released)[near]
    return Mechanism(
        mechanism.times[near], mechanism.factor[near], mechanism.floor, mechanism.process, released
    )


def _one_place_each(plan: Plan) -> list[tuple[FloatArray, list[Finding]]]:
    """The parts without a name, those together that may be one place, and where, in metres."""
    groups: dict[int, list[Finding]] = {}
    for without_name in _without_names(plan):
        groups.setdefault(without_name.place, []).append(without_name)
    places = []
    for group in groups.values():
        inside = np.flatnonzero(group[0].stretch.rows(plan.trace))
        if inside.size == 0:
            inside = np.array([np.argmin(np.abs(plan.trace.times - group[0].stretch.begin))])
        places.append((np.mean(plan.lattice[inside], axis=0) / MICRO, group))
    return places


def _without_names(plan: Plan) -> list[Finding]:
    """What is guaranteed of the parts that are no visit of a place with a name."""
    return [finding for finding in plan.findings if not finding.stretch.variance]


def _together(book: Book, numbers: Sequence[int], plan: Plan) -> tuple[float, float]:
    """What a release and those that overlap it tell more of one place, and epsilon of any time.

    The first in 1 / m^2. Everything, where that is not computed: see the module.
    """
    request = plan.request
    everything = EVERYTHING, epsilon_of(request.radius, EVERYTHING, request.order)
    stored = [unpacked(book.blob(number)) for number in numbers]
    if (
        plan.common
        or plan.mechanism.process is not None
        or any(release.roots for release in stored)
    ):
        return everything
    first, last = int(plan.trace.times[0]), int(plan.trace.times[-1])
    others = [book.rows[number - 1] for number in numbers]
    if any(
        other.end <= first
        or other.begin >= last
        or (other.begin == SHIFTED_TO and other.end != last)
        for other in others
    ):
        return everything  # of the same recording, as if at other times
    latest = replace(plan.mechanism, times=plan.trace.times / NANOSECONDS)
    noises = [latest, *(release.mechanism for release in stored)]
    parts = [(finding.stretch.begin, finding.stretch.end) for finding in plan.findings]
    parts += [part for release in stored for part in release.parts]
    mechanisms = [noise for noise in noises if noise is not None]
    rows = sum(mechanism.rows.size for mechanism in mechanisms)
    if len(mechanisms) < len(noises) or rows > _MOST_JOINT or not parts:
        return everything
    shift = min(first, *(int(release.times[0]) for release in stored)) / NANOSECONDS
    releases = [
        Release(replace(mechanism, times=mechanism.times - shift)) for mechanism in mechanisms
    ]
    sure = shift - request.uncertain, shift + request.uncertain
    spans = [(a / NANOSECONDS, b / NANOSECONDS) for a, b in parts]
    # Of any movement within the time that is uncertain, no more is told than of none.
    windows = stopped([(a - sure[1], b - sure[0]) for a, b in spans])
    worst, one_place, radius = 0.0, 0.0, request.radius * request.wide
    moments = [begin for begin, _ in windows.windows]
    for kernel in kernels_for(request):
        still = kernel.warp(windows)
        try:
            loss = joint_loss(still, releases, Secret.at(moments)).matrix
            if epsilon_of(radius, largest_eigenvalue(loss), request.order) > _DISCLOSED:
                return everything
            singles = [
                largest_eigenvalue(joint_loss(still, releases, Secret.at([moment])).matrix)
                for moment in moments
            ]
        except (NumericalError, Unavailable, InvalidValue):
            return everything
        worst, one_place = max(worst, *singles), max(one_place, float(np.sum(loss)))
    return one_place * request.wide**2, epsilon_of(radius, worst, request.order)


def _nearby(book: Book, plan: Plan, subject: str) -> float:
    """Epsilon of the worst protected time of this release and of those near it: see there."""
    request = plan.request
    rows = [row for row in book.standing(subject) if not row.series]
    first = int(plan.trace.times[0])
    parts = _without_names(plan)  # the others are counted for their places
    spans = [part.stretch.seconds(plan.trace) for part in parts]
    mechanism = _own(plan, spans)
    new = NearbyRelease(
        first,
        int(plan.trace.times[-1]),
        replace(mechanism, times=mechanism.times + first / NANOSECONDS)
        if mechanism.process is None
        else None,
        tuple((part.stretch.begin, part.stretch.end) for part in parts),
        tuple(part.guarantee.epsilon for part in parts),
        float(request.steady),
        reach_of(plan),
    )

    def load(row: LedgerRow) -> NearbyRelease:
        stored = unpacked(book.blob(row.number))
        parts = tuple(stored.unnamed)
        epsilons = (row.epsilon,) * len(parts)
        return NearbyRelease(row.begin, row.end, stored.mechanism, parts, epsilons, *stored.proved)

    radius = request.radius * request.wide
    return worst_nearby(
        new, rows, load, kernels_for(request), epsilon_of(radius, 1.0, request.order)
    )
