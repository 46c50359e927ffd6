"""What must hold of each protected part, and the most that a mechanism loses of it.

A time is one place. A stay is, together: the place of somebody who stands still there, the mean of
its fixes, and every fix by itself, since a bound for one of them says little of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from trailveil.design.closed_form import least_noise
from trailveil.errors import NumericalError, Refused
from trailveil.fix_losses import fix_losses
from trailveil.gaussian import LARGEST_LOSS_SLACK, FloatArray
from trailveil.loss import loss_given, loss_matrix, marginal_losses
from trailveil.mechanism import Mechanism
from trailveil.prior import Prior, observe
from trailveil.secrets import Secret, basic, stay, window_mean

# Metres: deviations above which noise would carry fixes out of the frame.
LARGEST_STD = 300_000.0
# Square metres: where the search for uniform noise begins.
_LEAST_VARIANCE = 1e-4
# Relative: how far the losses of many fixes at once may be below those with a bounded error, and
# how near two fixes lose equally much: then the first is taken, on every computer.
_CAUTION = 1e-6
# Relative: for less than this all noise is scaled, and no mechanism added; how often at most.
_NEARLY = 0.02
_MOST_STEPS = 100
# Fixes judged at a time by the slow way: memory is this many columns of the trace.
_CHUNK = 64


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """The quantities of one protected part that must stay within the bound.

    single: one place each. fixes: (n,) booleans, the fixes whose places must, each by itself.
    """

    single: tuple[Secret, ...]
    fixes: NDArray[np.bool_]


def demands(
    prior: Prior, inside: NDArray[np.bool_], begin: float, end: float, *, sees_stillness: bool
) -> Demands:
    """What must hold of the part from begin to end (seconds) with the fixes `inside` (n,).

    sees_stillness: whether adversaries see that a stay (begin < end) stands still.
    """
    if begin == end:
        return Demands((basic(begin),), np.zeros_like(inside))
    times = prior.times[inside]
    still = (stay(begin, end),) if sees_stillness else ()
    mean = (window_mean(times),) if times.size > 1 else ()
    return Demands((*still, *mean, basic(begin), basic(end)), inside)


def single_losses(
    prior: Prior, mechanism: Mechanism, secrets: Sequence[Secret], bound: float
) -> list[float]:
    """The loss of each secret, its error against us; quick, unless it is near the bound."""
    found = [_quick_loss(prior, mechanism, secret) for secret in secrets]
    return [
        loss_matrix(prior, secret, mechanism, flat=True).largest
        if loss is None or bound < loss < bound * (1 + 2 * LARGEST_LOSS_SLACK)
        else loss
        for secret, loss in zip(secrets, found, strict=True)
    ]


def _quick_loss(prior: Prior, mechanism: Mechanism, secret: Secret) -> float | None:
    """The loss in double precision, where that will do."""
    try:
        observation = observe(prior.for_secret(secret), mechanism)
        return loss_given(observation, secret, flat=True).largest
    except NumericalError:
        return None


def loss_of(prior: Prior, mechanism: Mechanism, demand: Demands, bound: float) -> float:
    """The largest loss of anything demanded, recomputed from the mechanism itself.

    bound: what it will be compared with; what is far below it may be overstated.
    """
    single = single_losses(prior, mechanism, demand.single, bound)
    return float(max([*single, _worst_fix(prior, mechanism, demand.fixes, bound)[0]]))


def optimal(prior: Prior, base: Mechanism, wanted: Sequence[Demands], bound: float) -> Mechanism:
    """The sum of single optima, each on top of those before: more noise never raises a loss."""
    mechanism = base
    for demand in wanted:
        for secret in demand.single:
            mechanism = least_noise(prior, secret, bound, existing=mechanism, flat=True)
    for demand in wanted:
        mechanism = _cover_fixes(prior, mechanism, demand.fixes, bound)
    return mechanism


def uniform(prior: Prior, base: Mechanism, wanted: Sequence[Demands], bound: float) -> Mechanism:
    """Independent noise of one variance at every released fix: what people use, for comparison."""

    def excess(log_variance: float) -> float:
        mechanism = replace(base, floor=float(np.exp(log_variance)))
        return float(np.log(_worst(prior, mechanism, wanted, bound) / bound))

    low = high = float(np.log(_LEAST_VARIANCE))
    while excess(high) > 0:
        low, high = high, high + float(np.log(100.0))
        if high > 2 * np.log(LARGEST_STD):
            raise Refused(
                f"uniform noise must meet the target with less than {LARGEST_STD / 1000:g} km, got "
                "a target beyond that: leave --mechanism out"
            )
    found = float(brentq(excess, low, high, xtol=1e-9)) if low < high else high
    while excess(found) > 0:
        found += 1e-8
    return replace(base, floor=float(np.exp(found)))


def only_withheld(
    prior: Prior, base: Mechanism, wanted: Sequence[Demands], bound: float
) -> Mechanism:
    """No noise at all: what is withheld must be enough."""
    worst = _worst(prior, base, wanted, bound)
    if worst > bound:
        raise Refused(
            f"withholding alone must reach the target, got {worst / bound:.3g} times its epsilon; "
            "withhold longer (--withhold SECONDS), or leave --mechanism out to add the noise that "
            "is missing"
        )
    return base


def _worst(prior: Prior, mechanism: Mechanism, wanted: Sequence[Demands], bound: float) -> float:
    return max(loss_of(prior, mechanism, demand, bound) for demand in wanted)


def _cover_fixes(
    prior: Prior, mechanism: Mechanism, fixes: NDArray[np.bool_], bound: float
) -> Mechanism:
    """Noise for the fix that loses most, until none loses too much, and a little more for the rest.

    The last percent would take as many single mechanisms again, one for each dip between two fixes:
    for that, all noise is made larger, as long as that helps.
    """
    nearly = _NEARLY
    for _ in range(int(fixes.sum()) + _MOST_STEPS):
        loss, at = _worst_fix(prior, mechanism, fixes, bound)
        excess = loss / bound - 1
        if excess <= 0:
            return mechanism
        if excess <= nearly:
            mechanism, nearly = mechanism.scaled(1 + 1.1 * excess), excess / 2
        else:
            mechanism = least_noise(prior, basic(at), bound, existing=mechanism, flat=True)
            nearly = _NEARLY
    raise NumericalError("noise for every fix of a stay must settle, got a fix that never does")


def _worst_fix(
    prior: Prior, mechanism: Mechanism, fixes: NDArray[np.bool_], bound: float
) -> tuple[float, float]:
    """The largest loss of the place at any of the fixes, and the time of such a fix.

    All are computed at once; the worst, and all that may be above the bound, are judged again with
    a bounded error.
    """
    times = prior.times[fixes]
    if times.size == 0:
        return 0.0, 0.0
    found = fix_losses(prior, mechanism, fixes, bound)
    first = int(np.argmax(found >= found.max() * (1 - _CAUTION)))
    worst = float(_judged(prior, mechanism, times[[first]])[0])
    if worst > bound:
        return worst, float(times[first])
    if worst > found[first] * (1 + _CAUTION):  # not as it should be: trust none of them
        found = np.full_like(found, np.inf)
    unclear = found * (1 + _CAUTION) > bound
    found = np.where(unclear, 0.0, found * (1 + _CAUTION))
    found[unclear] = _judged(prior, mechanism, times[unclear])
    return max(worst, float(found.max())), float(times[np.argmax(found)])


def _judged(prior: Prior, mechanism: Mechanism, times: FloatArray) -> FloatArray:
    """The losses of the places at some times, each with its numerical error against us."""
    parts = [times[i : i + _CHUNK] for i in range(0, times.size, _CHUNK)]
    secrets = [Secret("fixes", part, np.eye(part.size)) for part in parts]
    found = [marginal_losses(prior, secret, mechanism, flat=True) for secret in secrets]
    return np.concatenate(found) if found else np.empty(0)
