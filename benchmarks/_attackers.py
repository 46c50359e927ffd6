"""Who attacks a release, and the error that each is left with at each protected part."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks._laws import Law
from benchmarks._rides import Ride
from trailveil.checks.attacks.contract import Attack, Background, Evidence, TruePlaces
from trailveil.checks.attacks.estimators import (
    average,
    circle_of_holes,
    circle_of_stay,
    edges_of_hole,
    kalman_smoother,
    known_paths,
)
from trailveil.checks.attacks.on_streets import on_streets
from trailveil.checks.attacks.posterior import posterior_mean, repeated_releases
from trailveil.checks.attacks.worlds import measured
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import SPEEDS, at_speed
from trailveil.privacy.adversary import PLAIN, Adversary, far_from, known_path, span_of
from trailveil.privacy.knowledge import ACCURACY
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, SideInformation
from trailveil.privacy.secrets import Secret
from trailveil.release.request import DEFAULT_KERNEL
from trailveil.traces.streets.network import Network

# Releases of one recording; rides home that are put side by side; metres by which an earlier ride
# is off, and of how many of its fixes one is left.
REPEATED, RIDES, JITTER, THINNED = 10, 5, 10.0, 3
# Seconds from a part: what may be uncertain of it, and then as long again.
PLACE_AWAY = 120.0
NOTHING = 1e9
"""Metres: the error of who has nothing to go by."""


@dataclass(frozen=True)
class Tried:
    """What attackers get: recordings (count, n, 2) as they are and as they were released.

    released: (count, m, 2). Each recording stands there as often as it was released.
    """

    ride: Ride
    law: Law
    mechanism: Mechanism
    recorded: FloatArray
    released: FloatArray
    generator: np.random.Generator

    @property
    def view(self) -> Evidence:
        return Evidence(self.ride.times[self.mechanism.rows], self.released)

    def errors(self, attack: Attack, known: Background, part: int) -> FloatArray:
        """How far off (count,) an attack is, in the place of a part."""
        truths = self.recorded[:, self.ride.inside(part)].mean(axis=1)
        if not self.mechanism.rows.size and known.true is None:
            return np.full(len(truths), NOTHING)
        (found,) = attack(self.view, known)
        return np.full(len(truths), NOTHING) if found is None else found.errors(truths)


Attacker = Callable[[Tried, int], list[FloatArray]]
"""The errors (count,) at a part, for each way of going about it: the best of them counts."""


def _known(tried: Tried, part: int, who: Adversary) -> Background:
    ride = tried.ride
    return Background((ride.secret(part),), DEFAULT_KERNEL, tried.mechanism, who)


def _still(ride: Ride) -> Adversary:
    return Adversary.sees_stillness(ride.windows) if ride.windows else PLAIN


def plain(tried: Tried, part: int) -> list[FloatArray]:
    """The posterior of who knows how people move."""
    return [tried.errors(posterior_mean, _known(tried, part, PLAIN), part)]


def still(tried: Tried, part: int) -> list[FloatArray]:
    """And sees that the person stood still."""
    return [tried.errors(posterior_mean, _known(tried, part, _still(tried.ride)), part)]


def _with(tried: Tried, part: int, who: Adversary, known: SideInformation) -> FloatArray:
    places = measured(tried.recorded, tried.ride.times, known, tried.generator)
    true = TruePlaces(known.times, places, known.accuracy) if known is not NOTHING_KNOWN else None
    return tried.errors(posterior_mean, replace(_known(tried, part, who), true=true), part)


def place(tried: Tried, part: int) -> list[FloatArray]:
    """And knows the nearest true place before, of those that noise is made against."""
    ride = tried.ride
    span = span_of(ride.secret(part), _still(ride))
    times = far_from(ride.prior, span, PLACE_AWAY)
    before = times[times < span[0]][-1:]
    known = SideInformation(before, ACCURACY) if before.size else NOTHING_KNOWN
    return [_with(tried, part, _still(ride), known)]


def path(tried: Tried, part: int) -> list[FloatArray]:
    """And knows the path, but for five minutes around."""
    ride, who = tried.ride, Adversary.knows_path() & _still(tried.ride)
    known = known_path(ride.prior, span_of(ride.secret(part), who), who)
    return [_with(tried, part, _still(ride), known)]


def knows_speed(speed: float) -> Attacker:
    """And knows the speed (metres per second) instead of the average of the default prior."""
    kernel = at_speed(DEFAULT_KERNEL, speed)
    assert kernel is not None
    who = Adversary.believes("knows the speed", kernel)

    def attacker(tried: Tried, part: int) -> list[FloatArray]:
        known = _known(tried, part, _still(tried.ride) & who)
        return [tried.errors(posterior_mean, known, part)]

    return attacker


def speeds(tried: Tried, part: int) -> list[FloatArray]:
    """And takes the speed to be 1 m/s, or 10: whichever comes nearer."""
    return [errors for speed in SPEEDS for errors in knows_speed(speed)(tried, part)]


def _simple(attack: Attack) -> Attacker:
    """An attack that does not look at how the noise varies."""

    def attacker(tried: Tried, part: int) -> list[FloatArray]:
        return [tried.errors(attack, _known(tried, part, _still(tried.ride)), part)]

    return attacker


def edges(tried: Tried, part: int) -> list[FloatArray]:
    """By the fixes before and after: those that are exact, or all that there are."""
    known = _known(tried, part, PLAIN)
    ways = (known, replace(known, mechanism=None))
    return [tried.errors(edges_of_hole, way, part) for way in ways]


def several_releases(tried: Tried, part: int) -> list[FloatArray]:
    """The posterior of who has ten releases of the recording."""
    others = tried.law.others(tried.recorded, tried.mechanism, REPEATED - 1, tried.generator)
    known = replace(_known(tried, part, _still(tried.ride)), others=others)
    return [tried.errors(repeated_releases, known, part)]


def earlier_ride(tried: Tried, part: int) -> list[FloatArray]:
    """Snapping to an earlier ride of the same way."""
    found = []
    for mechanism in (tried.mechanism, None):
        each = []
        for recorded, released in zip(tried.recorded, tried.released, strict=True):
            track = recorded[::THINNED]
            track = track + JITTER * tried.generator.standard_normal(track.shape)
            known = replace(_known(tried, part, PLAIN), mechanism=mechanism, tracks=(track,))
            one = replace(tried, recorded=recorded[None], released=released[None])
            each.append(one.errors(known_paths, known, part))
        found.append(np.concatenate(each))
    return found


def with_map(streets: Network) -> Attacker:
    """By the streets that a ride must have been on, and how the noise varies."""

    def attacker(tried: Tried, part: int) -> list[FloatArray]:
        known = replace(_known(tried, part, PLAIN), streets=streets)
        return [tried.errors(on_streets, known, part)]

    return attacker


ATTACKERS: dict[str, Attacker] = {
    "prior": plain,
    "still": still,
    "place": place,
    "path": path,
    "speed": speeds,
    "Kalman": _simple(kalman_smoother),
    "average": _simple(average),
    "circle": _simple(circle_of_stay),
    "edges": edges,
    "earlier ride": earlier_ride,
    "10 releases": several_releases,
}
"""The attackers, by the head of their column."""
BEYOND = ("earlier ride", "10 releases", "5 rides")
"""Those against whom nothing is promised."""


def circle_of_rides(tried: Sequence[Tried], part: int) -> float:
    """The error of the circle through where several rides to one place end, each released so.

    Each of `tried` is one recording, released once; they are moved so that their places agree, and
    follow each other.
    """
    day, secrets = 1e6, list[Secret]()
    times, places, sizes, kept = [list[FloatArray]() for _ in range(4)]
    for number, one in enumerate(tried):
        ride = one.ride
        own = ride.times[ride.inside(part)] + day * number
        secrets.append(Secret.mean(own) if own.size > 1 else Secret.at(float(own[0])))
        times.append(ride.times + day * number)
        places.append(one.released[0] - one.recorded[0][ride.inside(part)].mean(axis=0))
        sizes.append(np.sqrt(one.mechanism.variances))
        kept.append(np.asarray(one.mechanism.released))
    whole, rows = np.concatenate(times), np.concatenate(kept).astype(np.bool_)
    mechanism = Mechanism(whole, np.concatenate(sizes)[:, None], released=rows)
    view = Evidence(whole[rows], np.concatenate(places)[None])
    found = []
    for noise in (mechanism, None):
        guess = circle_of_holes(view, Background(tuple(secrets), DEFAULT_KERNEL, noise))[0]
        found.append(NOTHING if guess is None else float(np.hypot(*guess.places[0])))
    return min(found)
