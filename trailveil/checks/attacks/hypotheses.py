"""The empirical audit of a release: whole releases under two hypotheses, and what tells them apart.

Recordings are drawn in which a protected place is here, or there; each goes through `drawing.draw`,
with its own noise, rounding and grid, as a file would; and `telling` bounds mu from below by what
comes out, with nothing of what was claimed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks import worlds
from trailveil.checks.attacks.telling import Distinction, told_apart
from trailveil.checks.attacks.worlds import recordings
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import latent
from trailveil.gp.randomness import fresh_seed
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import Adversary
from trailveil.privacy.markov import covariance_product
from trailveil.privacy.prior import Prior, observe
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import crops
from trailveil.release.designing import part_of
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.request import STRANGER
from trailveil.traces.projection import MICRO

_APART = 2.5
"""The claimed mu between the two places, by how far apart they are: there few draws tell most."""

_WAYS = {"east": (1.0, 0.0), "north": (0.0, 1.0), "north-east": (0.5**0.5, 0.5**0.5)}


@dataclass(frozen=True, slots=True)
class Audited:
    """What draws prove of one part, against who an adversary is, along one way.

    claimed: mu, between places `metres` apart. distinction: what the draws prove.
    """

    part: int
    adversary: str
    way: str
    metres: float
    claimed: float
    distinction: Distinction

    @property
    def caught(self) -> bool:
        """Whether the claim is proved wrong."""
        return self.distinction.least > self.claimed


def audited(
    plan: Plan,
    draws: int,
    *,
    confidence: float = 0.999,
    generator: np.random.Generator | None = None,
) -> Iterator[Audited]:
    """Each part of a release against who knows nothing and who sees stillness, along three ways.

    draws: releases for each hypothesis. A right claim is proved wrong with a chance of
    1 - confidence each.
    """
    if not plan.findings:
        raise InvalidValue("an audit must have protected parts, got noise for every place")
    generator = generator or worlds.fresh()
    request, trace = plan.request, plan.trace
    spans = [stretch.seconds(trace) for stretch in request.stretches]
    for crop in crops(request.kernel, trace.seconds, spans, request.variance**0.5):
        rows = np.zeros(len(trace), dtype=np.bool_)
        rows[crop.rows] = True
        cropped = replace(plan, trace=trace.only(rows), mechanism=part_of(plan.mechanism, crop))
        prior = Prior(request.kernel, crop.prior.times)
        for number, part in enumerate(crop.parts):
            begin, end = crop.spans[number]
            around = (begin - request.uncertain, end + request.uncertain)
            finding, pace = plan.findings[part], request.slowest
            if request.method.cuts:
                pace = request.paces.around(finding.stretch, finding.sides)
            slow = at_speed(request.kernel, pace.speed) or request.kernel
            stranger = Adversary.believes(STRANGER, slow)
            loss = max(exposure.loss for exposure in finding.exposures)
            chosen = [stranger, stranger & Adversary.sees_stillness([around])]
            for who in chosen if around[0] < around[1] else chosen[:1]:
                secret = Secret.at((begin + end) / 2)
                for way in _WAYS:
                    claim = (part, who, loss)
                    yield _audited(cropped, prior, claim, secret, way, draws, confidence, generator)


def _audited(
    plan: Plan,
    prior: Prior,
    claim: tuple[int, Adversary, float],
    secret: Secret,
    way: str,
    draws: int,
    confidence: float,
    generator: np.random.Generator,
) -> Audited:
    part, who, loss = claim
    metres, direction = _APART / loss**0.5, _WAYS[way]
    judge = who.judging(prior, secret)
    pair = [
        _releases(plan, judge, secret, side * metres / 2 * np.asarray(direction), draws, generator)
        for side in (-1, 1)
    ]
    best = _best_test(judge, secret, plan, direction)
    distinction = told_apart(*pair, directions=[best], confidence=confidence)
    return Audited(part, who.name, way, metres, _APART, distinction)


def _releases(
    plan: Plan,
    judge: Prior,
    secret: Secret,
    place: FloatArray,
    count: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Released numbers (count, 2 m), in metres, where the secret is at a place (2,)."""
    world = recordings(judge, secret, count, generator)
    moved = _regression(judge, secret)[:, None] * (place - world.secret)[:, None, :]
    lattices = np.floor((world.recorded + moved) * MICRO + 0.5).astype(np.int64)
    return np.stack([_released(_of(plan, lattice)) for lattice in lattices])


def _of(plan: Plan, lattice: NDArray[np.int64]) -> Plan:
    """The same release of another recording (n, 2), which leaves as it is where no noise is."""
    shifted = replace(plan, lattice=lattice)
    if plan.mechanism.noise_trace:
        return shifted
    places = plan.grid.rounded_places(plan.frame.to_degrees(lattice)) / MICRO
    return replace(shifted, trace=replace(plan.trace, positions=places))


def _released(plan: Plan) -> FloatArray:
    """One release as a file would have it, back in metres (2 m,)."""
    released, _ = draw(plan, fresh_seed())
    return np.asarray(plan.frame.to_lattice(released.positions) / MICRO).reshape(-1)


def _regression(judge: Prior, secret: Secret) -> FloatArray:
    """Cov(X, s) / Var(s) (n,), of the recorded values: a common level included."""
    kernel = judge.kernel if secret.recorded else latent(judge.kernel)
    if kernel is None:
        raise InvalidValue("a place must vary under the prior, got measurement noise alone")
    weights = secret.weights.T
    cross = covariance_product(kernel, judge.times, secret.times, weights)
    variance = weights.T @ covariance_product(kernel, secret.times, secret.times, weights)
    return np.asarray(cross[:, 0] / variance[0, 0])


def _best_test(judge: Prior, secret: Secret, plan: Plan, way: tuple[float, float]) -> FloatArray:
    """The test (2 m,) that would be best if the claim were right: the posterior mean."""
    observed = observe(judge, plan.mechanism, independent=True)
    posterior = observed.posterior(replace(secret, window=None))
    return np.outer(posterior.weights[:, 0], way).reshape(-1)
