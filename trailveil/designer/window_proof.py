"""The proof of noise around a window: false tracks that trailveil.privacy.checker reads."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from trailveil.designer.cancelling import check_cancelled
from trailveil.designer.random_curves import TRACK_DIGITS, VERSION, few_digits
from trailveil.designer.window_problem import WindowProblem, cheapest
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.checker import StatedAdversary
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import ACCURACY, Knowledge
from trailveil.privacy.movement import Matern

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
