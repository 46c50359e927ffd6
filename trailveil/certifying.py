"""Certificates of a release: the noise as it was designed, judged on the whole recording, in balls.

What `protect` says is computed in double precision on crops of a recording (trailveil.demands).
Here each of these demands is proved of the whole of it: nothing is cut off, every value that an
adversary may know is reckoned with, and a common level of the prior counts as one of 1,000 km at
least, with all that it tells.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trailveil.adversary import Adversary
from trailveil.certified import Certificate, Enough, Proved, certificate_of, prove
from trailveil.crops import Crop, crops
from trailveil.demands import Left, Target, adversaries_of, looked_at
from trailveil.errors import NumericalError, Unavailable
from trailveil.gaussian import FloatArray
from trailveil.guarantee import Guarantee
from trailveil.kernels import Constant, Kernel, split
from trailveil.mechanism import Mechanism
from trailveil.prior import Prior
from trailveil.release import Noise, Plan
from trailveil.secrets import Secret, basic, window_mean

# Metres: what a level of the prior counts as at least. Where on the map it is tells nothing then.
_LEVEL_STD = 1e6
# Relative: how far what is left may be below what was said.
_AGREEMENT = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """What was said of one protected part: its time in seconds, mu, and who is left with what."""

    span: tuple[float, float]
    guarantee: Guarantee
    left: tuple[Left, ...]


def certify_plan(plan: Plan) -> list[Certificate]:
    """A certificate of each protected part of a trace, for the noise of the plan.

    Raises Unavailable for noise that protects every place, or what is out of reach; NumericalError
    where a figure of the plan is optimistic.
    """
    if plan.request.noise is Noise.EVERYWHERE:
        raise no_certificate_everywhere()
    claims = [
        Claim(one.stretch.seconds(plan.trace), one.guarantee, one.left) for one in plan.findings
    ]
    return certify_parts(
        plan.request.kernel,
        plan.trace.seconds,
        plan.mechanism,
        plan.request.target,
        claims,
        plan.request.radius * plan.request.scale,
    )


def no_certificate_everywhere() -> Unavailable:
    """What is raised where every place is protected."""
    return Unavailable(
        "--certify must come with stated times or places, got --everywhere, whose margins are "
        "measured and not proved: leave one of them out"
    )


def certify_parts(
    kernel: Kernel,
    times: FloatArray,
    mechanism: Mechanism,
    target: Target,
    claims: Sequence[Claim],
    radius: float,
) -> list[Certificate]:
    """A certificate of each part of a recording at times (n,), in seconds; radius: as claimed."""
    prior = Prior(_flat(kernel), times)
    found: dict[int, Certificate] = {}
    for crop in crops(kernel, times, [one.span for one in claims], target.deviation):
        spans = tuple((a + crop.start, b + crop.start) for a, b in crop.spans)
        whole = replace(
            crop, first=0, last=times.size, start=0.0, prior=prior, spans=spans, edges=()
        )
        for number, part in enumerate(crop.parts):
            found[part] = _of_part(whole, mechanism, number, target, claims[part], radius)
    return [found[part] for part in sorted(found)]


def _of_part(
    whole: Crop, mechanism: Mechanism, number: int, target: Target, claim: Claim, radius: float
) -> Certificate:
    started = time.perf_counter()
    passing, still = adversaries_of(whole, number, target)
    places, what = _places(whole, number, claim)
    loss = (claim.guarantee.mu / radius) ** 2
    asked = target.left is not None
    enough = Enough(loss, min(one.least for one in claim.left) ** 2 if asked else 0.0)

    def proved(one: Adversary, secrets: Sequence[Secret]) -> Proved:
        return prove(whole.prior, secrets, mechanism, one, flat=True, enough=enough)

    # Who may know a value may know none of them: that covers who knows no value.
    found = [proved(one, places) for one in passing if not _is_covered(one, passing)]
    found += [proved(one, places[:1]) for one in still if not _is_covered(one, still)]
    made = certificate_of(
        what,
        [one.name for one in (*passing, *still)],
        found,
        None,
        radius,
        claim.guarantee.order,
        claimed=claim.guarantee.epsilon,
        seconds=time.perf_counter() - started,
    )
    if asked and made.left < enough.left**0.5 * (1 - _AGREEMENT):
        raise NumericalError(
            f"an adversary must be left with {enough.left**0.5!r} m, as reported, got a proof of "
            f"{made.left!r} m only: nothing was released; please report it, or state --epsilon"
        )
    return made


def _is_covered(one: Adversary, others: Sequence[Adversary]) -> bool:
    """Whether another one is the same, but for a value that it may know."""
    return one.point is None and any(
        other.point is not None and replace(other, name=one.name, point=None) == one
        for other in others
    )


def _places(whole: Crop, number: int, claim: Claim) -> tuple[list[Secret], str]:
    """The places of a part, the beginning first, and what they are in words."""
    begin, end = whole.spans[number]
    if begin == end:
        return [basic(begin)], "the place at each protected time"
    times = whole.prior.times
    inside = times[(times >= begin) & (times <= end)]
    worst = [t for one in claim.left for t in (one.place, one.weakest) if t is not None]
    moments = np.unique([begin, end, *looked_at(inside), *worst])
    places = [basic(begin), *(basic(float(t)) for t in moments if t != begin)]
    means = [window_mean(inside)] if inside.size > 1 else []
    looked = int(np.isin(inside, moments).sum())
    fixes = "every fix" if looked == inside.size else f"{looked} of {inside.size} fixes, evenly,"
    return [*places, *means], f"{fixes} of each stay, its mean and its ends"


def _flat(kernel: Kernel) -> Kernel:
    level = split(kernel)[1]
    missing = _LEVEL_STD**2 - level
    if level <= 0 or missing <= 0:
        return kernel
    return kernel + Constant(float(np.sqrt(missing)))
