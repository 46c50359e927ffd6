"""What is told of the places with names: by one release, and by all that were counted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.adversaries import Named, at_speed, kernels_of
from trailveil.gaussian import FloatArray
from trailveil.kernels import Kernel
from trailveil.ledger import Book, Mark
from trailveil.places import Place, Visited
from trailveil.projection import Frame
from trailveil.recorded import unpacked
from trailveil.recurring import information
from trailveil.release import Plan
from trailveil.request import DEFAULT_KERNEL, Method, Request
from trailveil.trace import NANOSECONDS
from trailveil.unions import findings_of
from trailveil.ways import loss_of_shapes


@dataclass(frozen=True, slots=True)
class OfPlace:
    """What is told of one place with a name, as epsilon.

    releases: how many visited it. alone: this release. total: all so far. at_most: all, with every
    part without a name, which may be there, too. after: metres per coordinate that are then left.
    visits: how many were cut. stated: the epsilon that was stated for so many ways.
    """

    name: str
    releases: int
    alone: float
    total: float
    at_most: float
    after: float
    ways: int
    visits: int
    stated: float

    @property
    def more(self) -> int:
        """How many visits more the stated epsilon holds for, each cut as the place asks for."""
        share = self.stated / self.ways
        return max(0, int((self.stated - self.total) / share + 1e-6))


def of_visited(made: Plan, one: Visited) -> Mark:
    """What is told of a place and of the noise that its visits share."""
    place, rows = one.place, made.mechanism.rows
    seconds = made.trace.seconds[rows]
    spans = [span_of(made, *interval) for interval in one.intervals]
    design = place.noise.shapes.design(one.away(made.trace)[rows])
    told = [information(kernel, seconds, spans, design) for kernel in usual_kernels(place.request)]
    return Mark(place.ident, one.draw, np.array(told))


def of_cuts(made: Plan, one: Visited) -> Mark:
    """What the cuts around all visits tell of a place, 1 / m^2, and how many visits these are."""
    losses = [found.exposures[0].loss for found in findings_of(made, one)]
    return Mark(one.place.ident, one.place.ident, np.array([sum(losses), len(losses)]))


def places_told(book: Book, places: Sequence[Place], subject: str) -> tuple[OfPlace, ...]:
    """What all releases of a subject tell of the places that they visited."""
    seen = [one for one in places if book.count_of(subject, one.ident)]
    return tuple(place_told(book, one, None, subject, 0.0) for one in seen)


def place_told(
    book: Book, place: Place, mark: Mark | None, subject: str, unnamed: float
) -> OfPlace:
    """What is told of a place by all in the book, and by one more release that has a mark."""
    sums = book.totals(subject, place.ident)
    roots = {} if mark is None else {mark.draw: place.noise.root}
    if mark is not None:
        number, before = sums.get(mark.draw, (0, np.zeros(mark.told.size)))
        sums[mark.draw] = number, before + mark.told.ravel()
    own, total, visits = 0.0, 0.0, 0
    for draw, (number, flat) in sums.items():
        if draw == place.ident:
            total, visits = total + float(flat[0]), round(flat[1])
            continue
        root = roots[draw] if draw in roots else unpacked(book.blob(number)).roots[draw]
        total += _loss_of(flat, root)
    if mark is not None:
        cut = mark.draw == place.ident
        own = float(mark.told[0]) if cut else _loss_of(mark.told, place.noise.root)
    scale = epsilon_of(place.radius, 1.0, place.order)
    return OfPlace(
        place.name,
        book.count_of(subject, place.ident) + (mark is not None),
        scale * own,
        scale * total,
        scale * (total + unnamed),
        total**-0.5 if total > 0 else float("inf"),
        place.ways,
        visits,
        place.epsilon,
    )


def _loss_of(told: FloatArray, root: FloatArray) -> float:
    """The loss of a place from what is told of it and of a draw, against the worst prior."""
    each = told.reshape(-1, root.shape[0] + 1, root.shape[0] + 1)
    return max(0.0, *(loss_of_shapes(one, root)[0] for one in each))


def kernels_for(request: Request) -> list[Kernel]:
    """The priors that what is told is counted against: the slowest pace that is promised, too."""
    found = usual_kernels(request)
    slowest = request.slowest if request.method is Method.NOISE else request.paces.middle
    slow = at_speed(request.kernel, slowest.speed)
    return found if slow is None or slow in found else [*found, slow]


def usual_kernels(request: Request) -> list[Kernel]:
    """The priors that what is told of a place with a name is counted against."""
    average = request.kernel == DEFAULT_KERNEL
    who = [one for one in request.who if one is not Named.SPEEDS or average]
    return kernels_of(who, request.kernel)


def span_of(made: Plan, begin: int, end: int) -> tuple[float, float]:
    """Nanoseconds since 1970 as seconds of the recording."""
    first = int(made.trace.times[0])
    return (begin - first) / NANOSECONDS, (end - first) / NANOSECONDS


def epsilon_of(radius: float, loss: float, order: float) -> float:
    """Epsilon for a loss (1 / m^2) of two places so many metres apart."""
    return order / 2 * (radius * (1 + Frame.SCALE_ERROR)) ** 2 * loss
