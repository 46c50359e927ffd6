"""What a design must meet: every secret against every adversary, for all that it may know.

An adversary who knows any one true place is as many requirements as there are places it may know.
A few of them stand for all while the noise is sought; every one is judged afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.designer.views import View, view
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversary import (
    Adversary,
    far_from,
    judge_of,
    known_with_each,
)
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.precision import known_precision
from trailveil.privacy.prior import Prior, SideInformation
from trailveil.privacy.secrets import Secret

# Known places that stand for all: the first this far away on each side, in units of the least time.
_AWAY = tuple(1.25**i for i in range(14))
# So few that all of them are taken.
ALL = 32


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """One secret whose mu^2 / radius^2 must be at most `bound`: for one location, its loss."""

    secret: Secret
    bound: float


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """One secret against one adversary who knows one set of things.

    family: the demand and the adversary, by number. at: the time of the true value that is known
    besides, or None. view: by number. columns: the secret's columns (k,) in the view. point: the
    column of that value. accuracy: how well it is known. precision: P^-1 (k, k), all that is known
    counted in. bound: of mu^2 / radius^2. target: what the design aims at, a little less where only
    some of the values that may be known are looked at.
    """

    family: tuple[int, int]
    at: float | None
    view: int
    columns: NDArray[np.intp]
    point: int | None
    accuracy: float
    precision: FloatArray
    bound: float
    target: float


@dataclass(slots=True, eq=False)
class _Sketch:
    """A view before it is made: places and points are gathered first."""

    prior: Prior
    known: SideInformation
    places: list[Secret]
    points: list[float]

    def place(self, secret: Secret) -> int:
        """The number of a place, added where it is new."""
        for index, place in enumerate(self.places):
            alike = place.recorded == secret.recorded and np.array_equal(place.times, secret.times)
            if alike and np.array_equal(place.weights, secret.weights):
                return index
        self.places.append(secret)
        return len(self.places) - 1

    def point(self, time: float) -> int:
        """The number of a known value, added where it is new."""
        if time not in self.points:
            self.points.append(time)
        return self.points.index(time)

    def view(self, existing: Mechanism, cost: FloatArray) -> View:
        """The view of all of them: places first, the points as one quantity after them."""
        times = np.array(self.points)
        points = [Secret("points", times, np.eye(times.size), recorded=True)] if times.size else []
        return view(self.prior, existing, self.known, (*self.places, *points), cost)


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """A requirement whose view is not made yet: place and point by number."""

    family: tuple[int, int]
    sketch: int
    place: int
    point: int | None
    accuracy: float
    demand: Demand


def posed(
    prior: Prior,
    demands: Sequence[Demand],
    adversaries: Sequence[Adversary],
    existing: Mechanism,
    cost: FloatArray,
    *,
    values: Sequence[tuple[int, int, float]] = (),
    margin: float = 0.0,
) -> tuple[tuple[View, ...], tuple[Requirement, ...]]:
    """All views, and all requirements on them.

    cost: W (n,) of the released rows.
    values: known ones to count in besides those that stand for all: demand, adversary, time.
    margin: how far below the bounds to aim, relative.
    """
    sketches: dict[tuple[Kernel, bytes, float], _Sketch] = {}
    pending: list[_Pending] = []
    for i, demand in enumerate(demands):
        for j, adversary in enumerate(adversaries):
            more = [time for a, b, time in values if (a, b) == (i, j)]
            pending += _against(prior, (i, j), demand, adversary, sketches, more)
    pending = _once(pending)
    order = list(sketches.values())
    views = tuple(sketch.view(existing, cost) for sketch in order)
    given: dict[tuple[int, int, float], FloatArray] = {}
    for requirement in pending:
        key = (requirement.sketch, requirement.place, requirement.accuracy)
        if requirement.point is not None and key not in given:
            sketch = order[requirement.sketch]
            place, times = sketch.places[requirement.place], np.array(sketch.points)
            given[key] = known_with_each(
                sketch.prior, place, sketch.known, times, requirement.accuracy
            )
    needs = tuple(
        _requirement(entry, order[entry.sketch], views[entry.sketch], given, margin)
        for entry in pending
    )
    return views, needs


def _against(
    prior: Prior,
    family: tuple[int, int],
    demand: Demand,
    adversary: Adversary,
    sketches: dict[tuple[Kernel, bytes, float], _Sketch],
    more: Sequence[float],
) -> list[_Pending]:
    """The requirements of one secret against one adversary."""
    judge = judge_of(prior, demand.secret, adversary)
    key = (judge.prior.kernel, judge.known.times.tobytes(), judge.known.accuracy)
    sketch = sketches.setdefault(key, _Sketch(judge.prior, judge.known, [], []))
    number = list(sketches).index(key)
    place = sketch.place(judge.place)
    requirements = [_Pending(family, number, place, None, 1.0, demand)]
    if adversary.point is not None:
        accuracy = adversary.point.accuracy
        far = far_from(judge.prior, judge.span, adversary.point.away)
        for time in sorted({*_standing_for_all(far, judge.span, adversary.point.away), *more}):
            point = sketch.point(time)
            requirements.append(_Pending(family, number, place, point, accuracy, demand))
    return requirements


def _once(pending: Sequence[_Pending]) -> list[_Pending]:
    """Each only once: of a stay, an adversary who sees it and one who does not ask the same."""
    strictest: dict[tuple[int, int, int | None, float], _Pending] = {}
    for requirement in pending:
        key = (requirement.sketch, requirement.place, requirement.point, requirement.accuracy)
        if key not in strictest or requirement.demand.bound < strictest[key].demand.bound:
            strictest[key] = requirement
    return list(strictest.values())


def _standing_for_all(far: FloatArray, span: tuple[float, float], away: float) -> list[float]:
    """Of the times (n,) that may be known, some on each side: the nearest and ever further ones."""
    if far.size <= ALL:
        return [float(time) for time in far]
    chosen: list[float] = []
    unit = max(away, 1.0)
    for share in _AWAY:
        before, after = far[far <= span[0] - share * unit], far[far >= span[1] + share * unit]
        chosen += [*before[-1:].tolist(), *after[:1].tolist()]
    return chosen


def _requirement(
    pending: _Pending,
    sketch: _Sketch,
    view: View,
    given: dict[tuple[int, int, float], FloatArray],
    margin: float,
) -> Requirement:
    place = sketch.places[pending.place]
    columns = view.columns_of(pending.place)
    if pending.point is None:
        precision = known_precision(view.prior, place, view.known)[0]
        point = None
    else:
        point = int(view.columns_of(len(sketch.places))[pending.point])
        before = given[(pending.sketch, pending.place, pending.accuracy)]
        precision = np.asarray(np.linalg.inv(before[pending.point]))
    at = None if pending.point is None else sketch.points[pending.point]
    allowed = pending.demand.bound
    return Requirement(
        pending.family,
        at,
        pending.sketch,
        columns,
        point,
        pending.accuracy,
        precision,
        allowed,
        allowed * (1 - margin),
    )
