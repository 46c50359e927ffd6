"""What is tried: an attack as somebody's, aimed at one protected part, with what was promised."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from trailveil.checks.attacks.contract import Attack
from trailveil.checks.attacks.exact import EXACT
from trailveil.checks.attacks.posterior import posterior_mean
from trailveil.checks.attacks.scenes import TRUE_ACCURACY, Scene, Trial, Trials
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, Matern32, Sum, White
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import PLAIN, Adversary, Known
from trailveil.privacy.anytime import Worst
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation
from trailveil.privacy.priors import LEVEL_STD
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop

# Seconds before and after a secret of the true places that somebody knows.
_TRUE_AWAY = (60.0, 120.0, 300.0)
# Fixes either way of a place under noise for every place; seconds to a path that is known then.
_AROUND, _PATH_AWAY = 1000, 300.0
_KNOWS = {"plain": "no place", "point": "one true place", "path": "the path"}
# Another smoothness, with the scale and deviation of half hours of people's movements; and how many
# times as long a steady pace lasts.
_OTHER_KERNEL = Matern32(427.0, 860.0) + Constant(LEVEL_STD) + White(2.0)
_LASTS = 10.0


def of_the_set(scene: Scene) -> list[Trial]:
    """The best attack of each adversary that the release was made against.

    None of them need know how the person moved within the part; each is tried on somebody who
    stood still there, and a stranger on somebody who moved as well.
    """
    trials = []
    for exposure in scene.exposures:
        still = scene.stood_still
        if not scene.knows_places(exposure.adversary):
            slow = Adversary.believes(exposure.adversary, scene.slowest(exposure.adversary))
            trials.append(Trial(posterior_mean, slow, scene.at, deviation=exposure.posterior))
            who, known = slow & still, NOTHING_KNOWN
        else:
            who = replace(still, name=exposure.adversary)
            known = scene.known_to(exposure.adversary)
            if not known.times.size:
                continue
        deviation = exposure.posterior
        trials.append(Trial(posterior_mean, who, scene.at, known, deviation=deviation))
    return trials


def against_stranger(attack: Attack, *, still: bool) -> Trials:
    """An attack that is held to what is left to a stranger, who may see stillness."""

    def trials(scene: Scene) -> list[Trial]:
        who = replace(scene.stood_still, name=PLAIN.name) if still else PLAIN
        return [Trial(attack, who, scene.middle, deviation=scene.least)]

    return trials


def with_a_map(attack: Attack, who: str) -> Trials:
    """The same by somebody with a street map; on a part that none is there for, nothing."""

    def trials(scene: Scene) -> list[Trial]:
        if scene.streets is None:
            return []
        adversary = replace(scene.stood_still, name=who)
        return [Trial(attack, adversary, scene.middle, deviation=scene.least, mapped=True)]

    return trials


def misspecified(scene: Scene) -> list[Trial]:
    """Who believes in another smoothness, and who reckons with a steady pace."""
    others = [Adversary.believes("believes in a Matern 3/2 prior", _OTHER_KERNEL)]
    steady = _steady(scene.kernel)
    others += [] if steady is None else [Adversary.believes("reckons with a steady pace", steady)]
    return [
        Trial(
            posterior_mean,
            PLAIN,
            scene.middle,
            believed=other,
            deviation=scene.least,
        )
        for other in others
    ]


def _steady(kernel: Kernel) -> Kernel | None:
    """The same movement with a velocity that lasts ten times as long; None where it has none."""
    terms = kernel.terms()
    if not any(isinstance(term, IntegratedOU) for term in terms):
        return None
    longer = [
        replace(term, time_constant=_LASTS * term.time_constant)
        if isinstance(term, IntegratedOU)
        else term
        for term in terms
    ]
    return Sum(tuple(longer))


def true_places(scene: Scene) -> list[Trial]:
    """Somebody who knows a few true places before and after the part."""
    begin, end = scene.span
    times = [t for away in _TRUE_AWAY for t in (begin - away, end + away)]
    inside = [t for t in times if scene.times[0] <= t <= scene.times[-1]]
    nearest = [int(np.argmin(np.abs(scene.times - t))) for t in inside]
    outside = scene.times[np.unique(nearest)] if nearest else np.empty(0)
    outside = outside[(outside < begin) | (outside > end)]
    if not outside.size:
        return []
    who = Adversary(
        f"knows {outside.size} true places 1 to 5 min away",
        still=(Adversary.sees_stillness([scene.span]).still if begin < end else ()),
        point=Known(_TRUE_AWAY[0], TRUE_ACCURACY),
    )
    # What is known is told as it is: of no value besides it is the worst to be found.
    believed = replace(who, point=None)
    known = SideInformation(outside, TRUE_ACCURACY)
    return [Trial(posterior_mean, who, scene.middle, known, believed)]


def exactly(scene: Scene) -> list[Trial]:
    """An adversary who looks for what is exact in the recording, and knows nothing else."""
    return [
        Trial(
            attack,
            replace(PLAIN, name=name),
            scene.middle,
            deviation=scene.least,
            exact=True,
        )
        for name, attack in EXACT.items()
    ]


def unpromised(attack: Attack, who: str, *, repeated: int = 0) -> Trials:
    """An attack that nothing is promised against. repeated: releases that it has of a recording."""

    def trials(scene: Scene) -> list[Trial]:
        adversary = replace(scene.stood_still, name=who)
        return [Trial(attack, adversary, scene.middle, repeated=repeated, besides=scene.others)]

    return trials


PLACES = (0.0, 0.5, 1.0)
"""How far along a recording the places are that are attacked under noise for every place."""


def around(kernel: Kernel, times: FloatArray, part: int) -> Crop:
    """The fixes (of times (n,), at most `_AROUND` either way) around one of `PLACES`, by number."""
    middle = round(PLACES[part] * (times.size - 1))
    first, last = max(0, middle - _AROUND), min(times.size, middle + _AROUND + 1)
    seconds = times[first:last]
    at = float(times[middle])
    span = (float(seconds[0]), float(seconds[-1]))
    return Crop(
        first,
        last,
        0.0,
        Prior(kernel, seconds),
        (part,),
        ((at, at),),
        span,
        (),
        (False, False),
        1.0,
    )


def worst_cases(scene: Scene, cases: Sequence[Worst]) -> list[Trial]:
    """Each kind of adversary at a place, of the speed and the stay where it learns most."""
    trials = []
    at = scene.span[0]
    for case in cases:
        speed = at_speed(scene.kernel, case.speed) or scene.kernel
        stays = [(at - case.stay / 2, at + case.stay / 2)] if case.stay else []
        who = Adversary.believes(f"knows {_KNOWS[case.kind]}, at {case.speed:g} m/s", speed)
        who = who & Adversary.sees_stillness(stays) if stays else who
        away = case.stay / 2 + (_PATH_AWAY if case.kind == "path" else case.known)
        known = scene.times[np.abs(scene.times - at) >= away]
        if case.kind == "point" and known.size:
            known = known[np.argmin(np.abs(known - at))][None]
        information = NOTHING_KNOWN
        if case.kind != "plain" and known.size:
            information = SideInformation(known, TRUE_ACCURACY)
        least = case.exposure.posterior
        trials.append(Trial(posterior_mean, who, Secret.at(at), information, deviation=least))
    return trials


Everywhere = Callable[[Scene, Sequence[Worst]], list[Trial]]
"""The same on noise for every place, at one place of a moment."""


def plainly(attack: Attack) -> Everywhere:
    """Held to what is left to who knows no place."""

    def trials(scene: Scene, cases: Sequence[Worst]) -> list[Trial]:
        plain = next(case for case in cases if case.kind == "plain")
        return [Trial(attack, PLAIN, Secret.at(scene.span[0]), deviation=plain.exposure.posterior)]

    return trials
