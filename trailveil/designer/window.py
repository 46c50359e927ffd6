"""The least noise around one protected window, in continuous time, with its proof.

It depends on what is promised and on nothing of a recording: what it guarantees holds for every
sampling, and for a window of every length (only how little noise it is depends on the length). The
noise is a random curve (trailveil.privacy.false_tracks): the same all over the window, and the sum
of an even and an odd part of the seconds outward from it.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cholesky

from trailveil.designer.cancelling import check_cancelled
from trailveil.designer.ellipsoid import Ellipsoid, smallest_ellipsoid
from trailveil.designer.random_curves import (
    NOISE_DIGITS,
    TRACK_DIGITS,
    VERSION,
    WindowNoise,
    few_digits,
)
from trailveil.designer.window_problem import AIM, MOST, WindowProblem, cheapest
from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.checker import StatedAdversary
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import ACCURACY, Knowledge
from trailveil.privacy.movement import Matern, Movement

# Seconds: the first knot, how much wider each next piece is, and where noise ends, at most.
_FIRST, _WIDER, _END, _LONGEST = 20.0, 1.9, 5100, 86_400
# How far above the least noise may be, relative. Places that bind are first looked for so roughly,
# where the loss has a peak of this share of the bound.
_GAP, _ROUGHLY, _PEAK = 2e-3, 0.3, 0.5
# The share of its own variance that a movement leaves where noise ends, if not twice the bound.
_NEAR_ALL = 0.98
# In units of the metres to be left: noise that counts as much, and as without end; and the share
# of what may be lost that such noise leaves to noise that has one.
_MUCH, _ENDLESS, _NEARLY = 100.0, 1e6, 0.9999
# Noise is made larger by this until its proof holds, and so often at most.
_MORE, _TIMES = 1.001, 12


def window_noise(
    seconds: float, sides: int, adversaries: Sequence[Knowledge], bound: float
) -> WindowNoise:
    """The least noise of a window of so many seconds, whose place loses at most `bound` (1 / m^2).

    sides: 2, or 1 where a recording begins or ends within the window. Raises Refused where no noise
    can hide so much.
    """
    for adversary in adversaries:
        _check_room(adversary, seconds, bound)
    if not _is_possible(seconds, sides, adversaries, bound, _ENDLESS):
        raise _impossible(seconds, sides, adversaries, bound)
    knots = _knots(adversaries, _end(adversaries, sides, bound))
    problem = WindowProblem(knots, sides, bound, seconds)
    least = _least(problem, adversaries)
    for more in _MORE ** np.arange(_TIMES):
        even, odd = _noise(knots, sides, problem.unscaled(least.covariance) * more)
        proof = proof_of(problem, even, odd, adversaries)
        if proof is not None:
            return WindowNoise(knots, even, odd, proof, float((1 + least.gap) * more - 1))
    raise NumericalError("noise must be proved to hold, got noise that is not: report this request")


def _least(problem: WindowProblem, adversaries: Sequence[Knowledge]) -> Ellipsoid:
    """The least noise, in the units of the problem, whatever place is known."""
    value, _, _ = problem.knots.forms()
    objective = problem.sides * value
    objective[0, 0] += problem.seconds
    limits = [limit for adversary in adversaries for limit in problem.limits(adversary)]
    form, near = problem.doubled(objective), None
    for gap, peak in [(_ROUGHLY, _PEAK), *[(_GAP, MOST)] * _TIMES]:
        least = smallest_ellipsoid(form, limits, problem.blocks, gap, near)
        violated = problem.violated(least.covariance, adversaries, peak)
        if gap == _GAP and not violated:
            return least
        limits += [problem.limit(*each) for each in violated]
        near = least.covariance
    raise NumericalError("the search for places must end, got no end: report this request")


def proved(
    even: FloatArray,
    odd: FloatArray | None,
    knots: Knots,
    asked: tuple[float, int, Sequence[Knowledge], float],
) -> WindowNoise | None:
    """Noise of lower triangular factors with its proof; None where it does not hold.

    asked: what `window_noise` is asked for.
    """
    seconds, sides, adversaries, bound = asked
    proof = proof_of(WindowProblem(knots, sides, bound, seconds), even, odd, adversaries)
    return None if proof is None else WindowNoise(knots, even, odd, proof, float("nan"))


def is_enough(
    even: FloatArray,
    odd: FloatArray | None,
    knots: Knots,
    asked: tuple[float, int, Sequence[Knowledge], float],
) -> bool:
    """Whether noise holds in floating point, a little to spare: as of `proved`, and quicker."""
    seconds, sides, adversaries, bound = asked
    problem = WindowProblem(knots, sides, bound, seconds)
    factor = even if odd is None else np.asarray(block_diag(even, odd))
    scaled = factor * bound**0.5 / problem.units[:, None]
    limits = (problem.limit(adversary, None) for adversary in adversaries)
    if any(cheapest(limit, scaled)[1] > limit.bound for limit in limits):
        return False
    return not problem.violated(scaled @ scaled.T, adversaries, MOST)


def shortened(even: FloatArray, odd: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
    """Factors of noise by few binary digits, as designs have them."""
    short = None if odd is None else few_digits(odd, NOISE_DIGITS, slope=1)
    return few_digits(even, NOISE_DIGITS, slope=0), short


def _check_room(knowledge: Knowledge, seconds: float, bound: float) -> None:
    """Refuse a prior under which a window of so many seconds tells its own place, if noise or not.

    A shift of the window costs that much, whatever phi is outside; of a mean that is not known, the
    rest of the recording tells it.
    """
    if isinstance(knowledge.movement, Movement):
        return
    information = knowledge.movement.inside(seconds, 2)
    if knowledge.movement.levels and knowledge.path is None:
        information += 1 / knowledge.movement.spread
    if information >= AIM * bound:
        raise Refused(
            f"the prior must leave the place of {seconds / 60:.0f} min open to more than "
            f"{bound**-0.5:.0f} m, got one that tells it to {information**-0.5:.0f} m by itself: "
            "nobody stays so long away from its mean; fit an integrated-ou prior (trailveil fit), "
            "ask for a smaller radius, or use --mechanism cut"
        )


def _is_possible(
    seconds: float, sides: int, adversaries: Sequence[Knowledge], bound: float, much: float
) -> bool:
    """Whether noise is enough that is `much` of what is to be left, of the curves it is of."""
    end = _end(adversaries, sides, bound)
    if any(adversary.steady >= end for adversary in adversaries):
        return False
    problem = WindowProblem(_knots(adversaries, end), sides, bound, seconds)
    noise = much * np.eye(sum(problem.blocks))
    limits = (problem.limit(adversary, None) for adversary in adversaries)
    if any(cheapest(limit, noise)[1] > _NEARLY * limit.bound for limit in limits):
        return False
    return not problem.violated(noise**2, adversaries, _NEARLY * AIM)


def _impossible(
    seconds: float, sides: int, adversaries: Sequence[Knowledge], bound: float
) -> Refused:
    """That no noise can hide so much, with a radius for which some can that is not endless."""
    for percent in range(95, 0, -5):
        larger = bound / (percent / 100) ** 2
        if _is_possible(seconds, sides, adversaries, larger, _MUCH):
            less = f"at most {percent} % of this radius"
            break
    else:
        less = "a shorter --slow-for or --uncertain"
    return Refused(
        f"some noise must be able to hide so much, got none that can: ask for {less}, or use "
        "--mechanism cut"
    )


def _end(adversaries: Sequence[Knowledge], sides: int, bound: float) -> int:
    """Where noise ends: where movement alone leaves twice what must be left, or nearly all it can.

    After a day in any case.
    """
    slowest = [
        (adversary.movement, adversary.steady)
        for adversary in adversaries
        if adversary.path is None
    ]
    end = _END
    while end < _LONGEST and any(
        who.given_path(end - steady, sides) < min(2 / bound, _NEAR_ALL * who.spread)
        for who, steady in slowest
    ):
        end = min(2 * end, _LONGEST)
    return end


def _knots(adversaries: Sequence[Knowledge], end: int) -> Knots:
    """Knots that are dense at the window, and everywhere that adversaries have an edge."""
    edges = {
        x
        for adversary in adversaries
        for x in (adversary.steady, adversary.place, adversary.path)
        if x
    }
    marks = sorted(edges)
    knots, wide = [0.0], _FIRST
    for mark in [*marks, end]:
        while knots[-1] + 1.3 * wide < mark:
            knots.append(round(knots[-1] + wide))
            wide *= _WIDER
        knots.append(mark)
        wide = max(wide, mark / 4)
    return Knots(tuple(int(knot) for knot in knots))


def _noise(
    knots: Knots, sides: int, covariance: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """The factors of noise of a covariance, of few binary digits."""
    size = knots.size
    even = cholesky(covariance[:size, :size], lower=True)
    odd = None if sides == 1 else cholesky(covariance[size:, size:], lower=True)
    return shortened(even, odd)


FORMAT = "trailveil-noise"
# How far apart known places of false tracks are at first, and at least (seconds).
_APART, _CLOSE = 1.5, 2


def proof_of(
    problem: WindowProblem,
    even: FloatArray,
    odd: FloatArray | None,
    adversaries: Sequence[Knowledge],
) -> dict[str, Any] | None:
    """What the checker reads: noise with the false tracks that cost least. None if it fails."""
    proof = {
        "format": FORMAT,
        "version": VERSION,
        "knots": list(problem.knots.seconds),
        "sides": 1 if odd is None else 2,
        "bound": problem.bound,
        "even": even.tolist(),
        "odd": [] if odd is None else odd.tolist(),
    }
    factor = even if odd is None else np.asarray(block_diag(even, odd))
    stated = [_stated(problem, factor, adversary, proof) for adversary in adversaries]
    return None if None in stated else {**proof, "adversaries": stated}


def _stated(
    problem: WindowProblem, factor: FloatArray, knowledge: Knowledge, proof: dict[str, Any]
) -> dict[str, Any] | None:
    """An adversary with few false tracks that prove the noise: more of them where it takes more."""
    stated: dict[str, Any] = {
        "name": knowledge.name,
        **asdict(knowledge.movement),
        "steady": knowledge.steady,
        "place": knowledge.place,
        "path": knowledge.path,
        "accuracy": ACCURACY,
    }
    if isinstance(knowledge.movement, Matern):
        stated["seconds"] = problem.seconds
    who = StatedAdversary(proof, stated)
    far = _track(problem, factor, knowledge, None)
    exact = who.track(far)
    if who.cost(exact, exact) > who.bound + who.known:
        return None
    places = _places(knowledge, problem.knots)
    near = {away: _track(problem, factor, knowledge, away) for away in places}
    tracks = {away: who.track(track) for away, track in near.items()}
    pairs = list(pairwise(sorted(places)))
    while pairs:
        check_cancelled()
        begin, end = pairs.pop()
        if who.holds_between(tracks[begin], tracks[end]):
            continue
        if end - begin < _CLOSE:
            return None
        middle = float(round((begin + end) / 2))
        near[middle] = _track(problem, factor, knowledge, middle)
        tracks[middle] = who.track(near[middle])
        pairs += [(begin, middle), (middle, end)]
    return {**stated, "tracks": [*(near[away] for away in sorted(near)), far]}


def _places(knowledge: Knowledge, knots: Knots) -> set[float]:
    """Some places that an adversary may know, all knots among them; none if there is no such."""
    if knowledge.place is None:
        return set()
    places = {float(k) for k in knots.seconds if k > knowledge.place}
    away = float(knowledge.place)
    while away < knots.end:
        places.add(float(round(away)))
        away = max(away * _APART, away + 1)
    return places


def _track(
    problem: WindowProblem, factor: FloatArray, knowledge: Knowledge, away: float | None
) -> dict[str, Any]:
    """The false track that costs an adversary least against noise of a factor."""
    problem = WindowProblem(problem.knots, problem.sides, 1.0, problem.seconds)
    w = problem.units * cheapest(problem.limit(knowledge, away), factor / problem.units[:, None])[0]
    size = problem.knots.size
    even = few_digits(w[:size], TRACK_DIGITS, slope=0)
    odd = few_digits(w[size:], TRACK_DIGITS, slope=1)
    return {"away": away, "even": even.tolist(), "odd": odd.tolist()}
