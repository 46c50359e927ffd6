"""What must hold of each protected part against each adversary, and what a mechanism makes of it.

A time is one place. A stay is, together: the place of somebody who stands still there, the mean of
its fixes, and every fix by itself, since a bound for one of them says little of the others. Who
sees that the person stood still is an adversary of the first, who does not of the rest; what they
know besides is known outside of the stay.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trailveil.designer.requirements import Demand
from trailveil.errors import BeyondPrior
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import split
from trailveil.privacy.adversaries import Named, moving, seeing_stillness
from trailveil.privacy.adversary import Adversary
from trailveil.privacy.fix_losses import fix_losses
from trailveil.privacy.marginals import MarginalExposure, seen
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop

# Fixes of a stay that are looked at, evenly, while noise is sought; and in the end: stays of more
# fixes are searched.
_SAMPLED, _EVERY = 12, 150
# Those that noise is sought for are these shares of the way into the stay.
_WITHIN = (0.03, 0.08, 0.2, 0.5, 0.8, 0.92, 0.97)
# Relative: how far the losses of many fixes at once may be below those with a bounded error.
_CAUTION = 1e-6
# What a level of the prior tells of a place, in units of its own precision, where another place is
# known: the series is followed from both of them to where it began.
_LEVEL_TELLS = 4.0
# Relative: places of which so nearly most is learnt may be the worst with a little more noise.
_NEAR = 0.02


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked for: losses of at most `bound` (1 / m^2), or each left with `left` metres.

    left: per coordinate, in place of the bound, or None. who: the adversaries, by name. surely:
    what of the path is known by who knows it, see `trailveil.privacy.adversary.Known`.
    """

    bound: float
    who: tuple[Named, ...]
    left: float | None = None
    surely: float = math.inf

    @property
    def deviation(self) -> float:
        """Metres per coordinate that who has no idea of the place must be left with."""
        return self.bound**-0.5 if self.left is None else self.left

    def missed(self, part_exposures: "Sequence[PartExposure]") -> float:
        """The largest loss over what is allowed: at most 1 is met.

        Raises BeyondPrior where one knows more without the release than it must be left with.
        """
        if self.left is None:
            return max(one.loss for one in part_exposures) / self.bound
        if (least := min(one.known for one in part_exposures)) <= self.left:
            raise BeyondPrior(least)
        return max(self.left**2 / one.least**2 for one in part_exposures)

    def missed_by(self, part_exposures: "Sequence[PartExposure]") -> "tuple[PartExposure, ...]":
        """Those who learn more than is allowed. Raises as `missed` does."""
        return tuple(one for one in part_exposures if self.missed([one]) > 1)


@dataclass(frozen=True, slots=True)
class PartExposure:
    """What one adversary is left with of one protected part, where it learns most.

    loss: 1 / m^2. before, after: metres per coordinate, without the release and with it. at:
    seconds since the first fix of the value that it knew besides, if any. place: of the place, if
    it is that of one time. known, least: the least deviations without the release and with it,
    wherever and whatever it knew besides; weakest: the place of that, as `place`. near: the places
    of which nearly most is learnt, or least left; elsewhere: the loss and the least of the rest.
    """

    adversary: str
    loss: float
    before: float
    after: float
    at: float | None
    place: float | None
    known: float
    least: float
    weakest: float | None
    near: tuple[float | None, ...] = ()
    elsewhere: tuple[float, float] = (0.0, math.inf)


@dataclass(frozen=True, slots=True)
class Aims:
    """What a design aims at besides: lower, where it missed at fixes that were not looked at.

    tight: how much lower, by adversary. places: times within a stay (seconds, of the crop), each a
    place by itself.
    """

    tight: tuple[tuple[str, float], ...] = ()
    places: tuple[float, ...] = ()

    def after(self, crop: Crop, target: Target, left: "Sequence[PartExposure]") -> "Aims":
        """The aims that would have met what these have missed."""
        tight, places = dict(self.tight), set(self.places)
        for one in left:
            missed = target.missed([one])
            worst = one.place if target.left is None else one.weakest
            place = None if worst is None else worst - crop.start
            edges = {edge for span in crop.spans for edge in span}
            if missed > 1 and place is not None and place not in places | edges:
                places.add(place)
            elif missed > 1:
                tight[one.adversary] = tight.get(one.adversary, 1.0) * missed
        return Aims(tuple(tight.items()), tuple(sorted(places)))


def adversaries_of(
    crop: Crop, number: int, target: Target
) -> tuple[list[Adversary], list[Adversary]]:
    """Who does not see stillness, and who does, of part `number` of a crop.

    Those who see it, see it in every stay of the crop; of a time, they are adversaries as well.
    """
    kernel, windows = crop.prior.kernel, [span for span in crop.spans if span[0] < span[1]]
    span = crop.spans[number]
    unseen = [span] if span[0] < span[1] else []
    return (
        moving(target.who, kernel, unseen, surely=target.surely),
        seeing_stillness(target.who, kernel, windows, surely=target.surely),
    )


def demanded(
    crop: Crop, prior: Prior, number: int, target: Target, aims: Aims
) -> list[tuple[Demand, Adversary]]:
    """The demands of a part that noise is sought for, each with whom it must hold against.

    prior: at the fixes that are looked at. The fixes within a stay are judged afterwards.
    """
    begin, end = crop.spans[number]
    passing, still = adversaries_of(crop, number, target)
    level = split(crop.prior.kernel)[1]

    def demand(secret: Secret, who: Sequence[Adversary]) -> list[tuple[Demand, Adversary]]:
        found = []
        for one in who:
            lower = dict(aims.tight).get(one.name, 1.0)
            left = None if target.left is None else target.left * lower**0.5
            # What counts as flat is a level of the prior: a little more is lost than against it.
            more = _LEVEL_TELLS if one.point else 1.0
            bound = target.bound / lower - (more / level if level > 0 else 0.0)
            found.append((Demand(secret, bound, deviation=left), one))
        return found

    if begin == end:
        return demand(Secret.at(begin), [*passing, *still])
    times = prior.times[(prior.times >= begin) & (prior.times <= end)]
    some = np.quantile(times, _WITHIN, method="nearest").tolist() if times.size else []
    places = [Secret.at(time) for time in sorted({begin, end, *some, *aims.places})]
    places += [Secret.mean(times)] if times.size > 1 else []
    found = [one for place in places for one in demand(place, passing)]
    return found + demand(Secret.at(begin), still)


def judged(
    crop: Crop,
    mechanism: Mechanism,
    number: int,
    target: Target,
    *,
    quickly: bool = False,
) -> list[PartExposure]:
    """What each adversary is left with of part `number`, recomputed from the mechanism of the crop.

    mechanism: at the rows of the crop. quickly: at a few of the fixes of a stay, and not for what
    is said in the end.
    """
    begin, end = crop.spans[number]
    passing, still = adversaries_of(crop, number, target)
    found = []
    for one in [*passing, *still]:
        if begin == end or one in still:
            looked = _looked(crop, mechanism, one, [begin])
        else:
            looked = _looked_within(crop, mechanism, one, target, quickly)
        found.append(_left(crop, one, looked))
    return found


def still_missed(
    crop: Crop, mechanism: Mechanism, number: int, target: Target, left: Sequence[PartExposure]
) -> float:
    """How much of what is allowed some adversaries learn where each learned most before.

    left: of them, with less noise. 0 for none.
    """
    found = []
    for one in left:
        again = _at_places(crop, mechanism, number, target, one, (one.place, one.weakest))
        found.append(target.missed([again]))
    return max(found, default=0.0)


def judged_again(
    crop: Crop, mechanism: Mechanism, number: int, target: Target, left: Sequence[PartExposure]
) -> list[PartExposure] | None:
    """What `judged` would say, where there is only a little more noise than when `left` was said.

    Nobody learns more of any place than before. So only places are looked at of which nearly most
    was learnt; where what is learnt of them is less than was learnt elsewhere: None.
    """
    found = []
    for one in left:
        again = _at_places(crop, mechanism, number, target, one, one.near)
        loss, least = one.elsewhere
        if again.loss < loss or again.least > least:
            return None
        found.append(replace(again, known=one.known, near=one.near, elsewhere=one.elsewhere))
    return found


def _at_places(
    crop: Crop,
    mechanism: Mechanism,
    number: int,
    target: Target,
    left: PartExposure,
    places: Sequence[float | None],
) -> PartExposure:
    """What an adversary is left with of some of the places of a part; None for the mean."""
    begin, end = crop.spans[number]
    inside = crop.prior.times[(crop.prior.times >= begin) & (crop.prior.times <= end)]
    passing, still = adversaries_of(crop, number, target)
    who = next(one for one in (*passing, *still) if one.name == left.adversary)
    moments = sorted({place - crop.start for place in places if place is not None})
    looked = _looked(crop, mechanism, who, moments, inside if None in places else None)
    return _left(crop, who, looked)


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """What was seen of some places, and the times of those that are of one time; None for means."""

    times: tuple[float | None, ...]
    seen: MarginalExposure

    def plus(self, other: "_Looked") -> "_Looked":
        """Of both."""
        one, two = self.seen, other.seen
        both = MarginalExposure(
            np.append(one.losses, two.losses),
            np.append(one.before, two.before),
            np.append(one.after, two.after),
            (*one.at, *two.at),
            np.append(one.known, two.known),
            np.append(one.least, two.least),
        )
        return _Looked((*self.times, *other.times), both)


def _looked(
    crop: Crop,
    mechanism: Mechanism,
    adversary: Adversary,
    moments: Sequence[float],
    mean_of: FloatArray | None = None,
) -> _Looked:
    """What an adversary sees of the places at some times, and of the mean over others."""
    places = [Secret.at(time) for time in moments]
    means = [Secret.mean(mean_of)] if mean_of is not None and mean_of.size > 1 else []
    found = seen(crop.prior, [*places, *means], mechanism, adversary, edges=crop.edges)
    return _Looked((*moments, *([None] * len(means))), found)


def _looked_within(
    crop: Crop, mechanism: Mechanism, adversary: Adversary, target: Target, quickly: bool
) -> _Looked:
    """What an adversary sees of a stay: its ends, its mean, and its fixes.

    Every fix is looked at, but for the longest stays: there as many as are enough elsewhere,
    evenly, and those around the worst of them until it is worse than the fix before and the fix
    after it. Who knows no value is judged at all of them at once.
    """
    (begin, end), times = adversary.unseen[0], crop.prior.times
    inside = times[(times >= begin) & (times <= end)]
    sampled = looked_at(inside, _SAMPLED if quickly else _EVERY)
    moments = [float(time) for time in np.unique([begin, *sampled, end])]
    found = _looked(crop, mechanism, adversary, moments, inside)
    if inside.size <= sampled.size:
        return found
    if adversary.point is None and adversary.path is None:
        return _with_the_worst_fix(crop, mechanism, adversary, target, found)
    while not quickly and (more := _around_the_worst(found, inside, target)):
        found = found.plus(_looked(crop, mechanism, adversary, more))
    return found


def looked_at(inside: FloatArray, most: int = _EVERY) -> FloatArray:
    """The times of fixes of a stay that are looked at by themselves: so many, evenly."""
    rows = np.linspace(0, inside.size - 1, min(most, inside.size)).astype(int)
    return np.asarray(inside[np.unique(rows)])


def _with_the_worst_fix(
    crop: Crop, mechanism: Mechanism, adversary: Adversary, target: Target, found: _Looked
) -> _Looked:
    """All that was seen, and the fix of the part, if any, of which more is."""
    span = adversary.unseen[0]
    judge, times = adversary.prior(crop.prior), crop.prior.times
    inside = (times >= span[0]) & (times <= span[1])
    losses = fix_losses(judge, mechanism, inside, target.bound)
    worst = int(np.argmax(losses))
    if losses[worst] <= np.max(found.seen.losses) * (1 + _CAUTION):
        return found
    return found.plus(_looked(crop, mechanism, adversary, [float(times[inside][worst])]))


def _around_the_worst(found: _Looked, inside: FloatArray, target: Target) -> list[float]:
    """The fixes half way from the worst place of one time to those looked at before and after."""
    looked = np.array([time for time in found.times if time is not None])
    of_times = np.array([time is not None for time in found.times])
    told = found.seen.losses if target.left is None else 1.0 / found.seen.least
    worst = float(looked[np.argmax(told[of_times])])
    more = set()
    for beside in (looked[looked < worst], looked[looked > worst]):
        if beside.size:
            nearest = float(beside.max() if beside[0] < worst else beside.min())
            low, high = min(nearest, worst), max(nearest, worst)
            between = inside[(inside > low) & (inside < high)]
            more |= {float(between[between.size // 2])} if between.size else set()
    return sorted(more)


def _left(crop: Crop, adversary: Adversary, found: _Looked) -> PartExposure:
    told, times = found.seen, found.times
    worst, weakest = int(np.argmax(told.losses)), int(np.argmin(told.least))
    at = told.at[worst]
    near = told.losses >= (1 - _NEAR) * told.losses[worst]
    near |= told.least <= (1 + _NEAR) * told.least[weakest]

    def whole(time: float | None) -> float | None:
        return None if time is None else time + crop.start

    return PartExposure(
        adversary.name,
        float(told.losses[worst]),
        float(told.before[worst]),
        float(told.after[worst]),
        whole(at),
        whole(times[worst]),
        float(np.min(told.known)),
        float(told.least[weakest]),
        whole(times[weakest]),
        tuple(whole(time) for time, one in zip(times, near, strict=True) if one),
        (
            float(np.max(told.losses[~near], initial=0.0)),
            float(np.min(told.least[~near], initial=np.inf)),
        ),
    )
