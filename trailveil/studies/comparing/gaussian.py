"""Mechanisms of Gaussian noise: ours, and the paper's, which need a prior of movement."""

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from trailveil.checks.attacks.worlds import noises
from trailveil.designer import paper
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior, observe
from trailveil.privacy.secrets import Secret
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import DEFAULT_KERNEL, Method, Request
from trailveil.studies.comparing.cases import Case, Disclosure

PACE = 3.0
"""Metres a second of a person who cuts, where nothing else is stated: a slow ride."""

PUBLISHED = 1000.0
"""The multiple of the budget at which the authors' code solves SDP_A for compound secrets."""

# Fixes of a part that are secrets of the paper's programs, at most.
_MOST_SECRETS = 20
# Square metres a fix: the least and the most budgets that are tried, in logarithms.
_LEAST, _MOST = 0.0, math.log(1e8)


def cut(
    case: Case,
    random: np.random.Generator,
    *,
    radius: float = 100.0,
    epsilon: float = 1.0,
    floor: float = PACE,
) -> Disclosure:
    """This program's cut: nothing around a secret, all else as recorded."""
    return _ours(case, random, Method.CUT, radius=radius, epsilon=epsilon, floor=floor)


def noise(
    case: Case,
    random: np.random.Generator,
    *,
    radius: float = 100.0,
    epsilon: float = 1.0,
    floor: float | None = None,
) -> Disclosure:
    """This program's noise, smooth in time, around each secret."""
    return _ours(case, random, Method.NOISE, radius=radius, epsilon=epsilon, floor=floor)


def both(
    case: Case,
    random: np.random.Generator,
    *,
    radius: float = 100.0,
    epsilon: float = 1.0,
    floor: float = PACE,
) -> Disclosure:
    """This program's cut, and noise beyond it."""
    return _ours(case, random, Method.BOTH, radius=radius, epsilon=epsilon, floor=floor)


def everywhere(
    case: Case, random: np.random.Generator, *, radius: float = 100.0, epsilon: float = 1.0
) -> Disclosure:
    """This program's noise for every place at once."""
    return _ours(case, random, Method.EVERYWHERE, radius=radius, epsilon=epsilon, floor=None)


def _ours(
    case: Case,
    random: np.random.Generator,
    method: Method,
    *,
    radius: float,
    epsilon: float,
    floor: float | None,
) -> Disclosure:
    def plan() -> Plan:
        hidden = () if method is Method.EVERYWHERE else case.secrets
        request = Request(
            hidden, radius, epsilon, method=method, floor=floor, middle=floor
        ).at_pace_of(case.trace)
        return protect(case.trace, request)

    planned = case.remembered((method, radius, epsilon, floor), plan)
    trace, _ = draw(planned, random.bytes(32))
    return Disclosure(trace, planned.mechanism)


def sdp_a(
    case: Case,
    random: np.random.Generator,
    *,
    radius: float = 100.0,
    epsilon: float = 1.0,
    factor: float = PUBLISHED,
) -> Disclosure:
    """The paper's SDP_A for a compound secret: the middle fix of each part.

    factor: the multiple of the budget at which it is solved, 1 for the budget itself. The noise is
    as large as it takes for each secret to have epsilon at the radius, to an adversary who knows
    the prior. Source: Meehan and Chaudhuri (2021), appendix, SDP_A.
    """
    indices = np.concatenate(_indices(case, 1))

    def make(prior: Prior, budget: float) -> Mechanism:
        return replace(paper.sdp_a(prior, indices, budget, factor=factor), refinement=None)

    key = ("sdp-a", radius, epsilon, factor)
    return _drawn(case, random, _calibrated(case, key, indices, make))


def multiple_secrets(
    case: Case,
    random: np.random.Generator,
    *,
    radius: float = 100.0,
    epsilon: float = 1.0,
    factor: float = PUBLISHED,
) -> Disclosure:
    """The paper's Algorithm 1, with up to 20 fixes of each part as basic secrets.

    As large as it takes, as `sdp_a`. Source: Meehan and Chaudhuri (2021), Algorithm 1.
    """
    indices = np.concatenate(_indices(case, _MOST_SECRETS))

    def make(prior: Prior, budget: float) -> Mechanism:
        unit = _several(prior.times.tobytes(), tuple(indices.tolist()), factor)
        return unit.scaled(budget)

    key = ("multiple secrets", radius, epsilon, factor)
    return _drawn(case, random, _calibrated(case, key, indices, make))


def uniform(
    case: Case, random: np.random.Generator, *, radius: float = 100.0, epsilon: float = 1.0
) -> Disclosure:
    """The paper's baseline: independent Gaussian noise, the same at each fix, as large as it takes.

    Source: Meehan and Chaudhuri (2021), section 5.
    """

    def make(prior: Prior, budget: float) -> Mechanism:
        return replace(no_noise(prior.times), floor=budget / prior.times.size)

    indices = np.concatenate(_indices(case, _MOST_SECRETS))
    return _drawn(case, random, _calibrated(case, ("uniform", radius, epsilon), indices, make))


def concentrated(
    case: Case, random: np.random.Generator, *, radius: float = 100.0, epsilon: float = 1.0
) -> Disclosure:
    """The paper's other baseline: all of the budget of `uniform`, on the fixes of the secrets.

    No budget makes it private where fixes around them are exact. Source: as `uniform`.
    """

    def make(prior: Prior, budget: float) -> Mechanism:
        return replace(no_noise(prior.times), floor=budget / prior.times.size)

    indices = np.concatenate(_indices(case, _MOST_SECRETS))
    trace = _calibrated(case, ("uniform", radius, epsilon), indices, make).noise_trace
    inside = np.any(case.inside, axis=0)
    independent = np.where(inside, trace / inside.sum(), 0.0)
    return _drawn(case, random, replace(no_noise(case.seconds), independent=independent))


def _drawn(case: Case, random: np.random.Generator, mechanism: Mechanism) -> Disclosure:
    offsets = noises(mechanism, (), random)
    return Disclosure(case.placed_at(case.metres + offsets), mechanism)


def _indices(case: Case, most: int) -> list[NDArray[np.intp]]:
    """The fixes of each part, evenly chosen; its middle one where one is asked for."""
    chosen = []
    for mask in case.inside:
        rows = np.flatnonzero(mask)
        count = min(most, rows.size)
        chosen.append(rows[((np.arange(count) + 0.5) / count * rows.size).astype(np.intp)])
    return chosen


@lru_cache(maxsize=4)
def _several(times: bytes, indices: tuple[int, ...], factor: float) -> Mechanism:
    prior = Prior(DEFAULT_KERNEL, np.frombuffer(times))
    return paper.multiple_secrets(prior, [[i] for i in indices], 1.0, factor=factor).mechanism


_DESIGNS: dict[Hashable, Mechanism] = {}
_MOST_DESIGNS = 32


def _calibrated(
    case: Case,
    key: tuple[Any, ...],
    indices: NDArray[np.intp],
    make: Callable[[Prior, float], Mechanism],
) -> Mechanism:
    """The least noise of a kind that leaves each recorded value a loss of at most the bound.

    key: what it is and its parameters, of which the second and third are radius and epsilon. A
    design depends on times alone, so recordings of one clock share it.
    """
    whole = (*key, case.seconds.tobytes(), indices.tobytes())
    if whole not in _DESIGNS:
        while len(_DESIGNS) >= _MOST_DESIGNS:
            _DESIGNS.pop(next(iter(_DESIGNS)))
        prior = Prior(DEFAULT_KERNEL, case.seconds)
        bound = loss_bound_for(key[2], key[1] * (1 + case.frame.scale_error), 5.0)
        _DESIGNS[whole] = _least(prior, bound, case.seconds[indices], make)
    return _DESIGNS[whole]


def _least(
    prior: Prior, bound: float, times: FloatArray, make: Callable[[Prior, float], Mechanism]
) -> Mechanism:
    secrets = [Secret.at(float(time), recorded=True) for time in times]

    def excess(logarithm: float) -> float:
        observation = observe(prior, make(prior, math.exp(logarithm)))
        known = [observation.posterior(secret).covariance[0, 0] for secret in secrets]
        return -math.log(min(known) * bound)

    size = math.log(prior.times.size)
    root = float(brentq(excess, size + _LEAST, size + _MOST, xtol=1e-4))
    while excess(root) > 0:
        root += 1e-4
    return make(prior, math.exp(root))
