"""What is told of the places with names: by one release, and by all that were counted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, Sum
from trailveil.ledger import Book, Mark
from trailveil.ledger.nearby import EVERYTHING
from trailveil.ledger.recorded import unpacked
from trailveil.ledger.unions import findings_of
from trailveil.privacy.adversaries import Named, at_speed, kernels_of
from trailveil.privacy.priors import LEVEL_STD
from trailveil.release.places import Place, Visited
from trailveil.release.plan import Plan
from trailveil.release.request import DEFAULT_KERNEL, Method, Request
from trailveil.traces.projection import Frame
from trailveil.traces.trace import NANOSECONDS

# Of cuts: what they tell, and how many they are. Of noise: what its bound allows for each way, and
# ways as a share of those that it is made for. Earlier versions counted matrices of information.
_NUMBERS = 2


@dataclass(frozen=True, slots=True)
class OfPlace:
    """What is told of one place with a name, as epsilon.

    releases: how many visited it. alone: this release. total: all so far. at_most: all, with every
    part without a name, which may be there, too. after: metres per coordinate that are then left.
    visits: how many were cut. moved: how many ways have the latest noise. stated: the epsilon that
    was stated for so many ways.
    """

    name: str
    releases: int
    alone: float
    total: float
    at_most: float
    after: float
    ways: int
    visits: int
    moved: float
    stated: float

    @property
    def more(self) -> int:
        """How many visits more the stated epsilon holds for; of noise alone, how many ways."""
        spent = self.ways * self.total / self.stated if self.visits else self.moved
        return max(0, int(min(self.ways - spent, self.ways) + 1e-3))


def of_visited(plan: Plan, visit: Visited) -> Mark:
    """What the ways of a recording tell of a place by noise that its visits share."""
    place = visit.place
    released = plan.trace.seconds[plan.mechanism.rows]
    spans = [span_of(plan, *interval) for interval in visit.intervals]
    share = place.noise.ways(released, spans, place.request) / place.ways
    information = [share * place.request.bound, share] if np.isfinite(share) else [EVERYTHING, 1.0]
    return Mark(place.ident, visit.draw, np.array(information))


def of_cuts(plan: Plan, visit: Visited) -> Mark:
    """What the cuts around all visits tell of a place, 1 / m^2, and how many visits these are."""
    losses = [finding.exposures[0].loss for finding in findings_of(plan, visit)]
    return Mark(visit.place.ident, visit.place.ident, np.array([sum(losses), len(losses)]))


def places_told(book: Book, places: Sequence[Place], subject: str) -> tuple[OfPlace, ...]:
    """What all releases of a subject tell of the places that they visited."""
    marked = [place for place in places if book.count_of(subject, place.ident)]
    return tuple(place_told(book, place, None, subject, 0.0) for place in marked)


def place_told(
    book: Book, place: Place, mark: Mark | None, subject: str, unnamed: float
) -> OfPlace:
    """What is told of a place by all in the book, and by one more release that has a mark."""
    sums = book.totals(subject, place.ident)
    last = max(((n, draw) for draw, (n, _) in sums.items() if draw != place.ident), default=None)
    newest = None if last is None else last[1]
    alone, total, visits = 0.0, 0.0, 0
    if mark is not None:
        number, before = sums.get(mark.draw, (0, np.zeros(mark.information.size)))
        sums[mark.draw] = number, before + mark.information
        if mark.draw == place.ident:
            alone = float(mark.information[0])
        else:
            newest, alone = mark.draw, _of_ways(place, mark.information, place.noise.root)
    for draw, (number, flat) in sums.items():
        if draw == place.ident:
            total, visits = total + float(flat[0]), round(flat[1])
            continue
        fresh = mark is not None and draw == mark.draw
        root = place.noise.root if fresh else unpacked(book.blob(number)).roots[draw]
        total += _of_ways(place, flat, root) if flat.size == _NUMBERS else _of_earlier(flat, root)
    moved = sums[newest][1] if newest is not None else np.zeros(_NUMBERS)
    scale = epsilon_of(place.radius, 1.0, place.order)
    return OfPlace(
        place.name,
        book.count_of(subject, place.ident) + (mark is not None),
        scale * alone,
        scale * total,
        scale * (total + unnamed),
        total**-0.5 if total > 0 else float("inf"),
        place.ways,
        visits,
        place.ways * float(moved[1]) if moved.size == _NUMBERS else 0.0,
        place.epsilon,
    )


def _of_ways(place: Place, information: FloatArray, root: FloatArray) -> float:
    """The most that a place loses by noise that visits share, by its root.

    Of noise that was stated otherwise: its bound, and in proportion beyond its ways. What n ways
    tell is concave in n, and nothing of none.
    """
    by_way, share = (float(number) for number in information)
    if share == 0 or by_way >= EVERYTHING:
        return by_way
    noise = place.designed_noise
    if noise is not None and np.array_equal(noise.root, root):
        return noise.loss(share * place.ways, place.request)
    return max(by_way, by_way / share)


def _of_earlier(flat: FloatArray, root: FloatArray) -> float:
    """The same by noise c ~ N(0, root root^T) of an earlier version, of the worst of its priors.

    flat: for each prior, information on p and d = c + p: (1 + r, 1 + r).
    """
    size, precise = root.shape[0] + 1, np.linalg.inv(root)
    less = np.hstack([-precise.sum(axis=1, keepdims=True), precise])
    whole = flat.reshape(-1, size, size) + less.T @ less
    return max(0.0, *(1 / float(np.linalg.inv(matrix)[0, 0]) for matrix in whole))


def kernels_for(request: Request) -> list[Kernel]:
    """The priors that what is told is counted against: the slowest pace that is promised, too."""
    kernels = usual_kernels(request)
    slowest = request.slowest if request.method is Method.NOISE else request.paces.middle
    slow = at_speed(request.kernel, slowest.speed)
    if slow is None:  # a prior without a speed: a stranger reckons with a pace all the same
        white = [term for term in request.kernel.terms() if term.is_white()]
        moving = IntegratedOU(slowest.speed, slowest.time_constant)
        slow = Sum((moving, Constant(LEVEL_STD), *white))
    return kernels if slow in kernels else [*kernels, slow]


def usual_kernels(request: Request) -> list[Kernel]:
    """The priors that what is told of a place with a name is counted against."""
    average = request.kernel == DEFAULT_KERNEL
    who = [adversary for adversary in request.who if adversary is not Named.SPEEDS or average]
    return kernels_of(who, request.kernel)


def span_of(plan: Plan, begin: int, end: int) -> tuple[float, float]:
    """Nanoseconds since 1970 as seconds of the recording."""
    first = int(plan.trace.times[0])
    return (begin - first) / NANOSECONDS, (end - first) / NANOSECONDS


def epsilon_of(radius: float, loss: float, order: float) -> float:
    """Epsilon for a loss (1 / m^2) of two places so many metres apart."""
    return order / 2 * (radius * (1 + Frame.SCALE_ERROR)) ** 2 * loss
