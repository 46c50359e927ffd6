"""The empirical audit of a release: whole releases under two hypotheses, and what tells them apart.

Recordings are drawn in which a protected place is here, or there; each goes through `drawing.draw`,
with its own noise, rounding and grid, as a file would; and `telling` bounds mu from below by what
comes out, with nothing of what was claimed.

How well two hypotheses on a secret can be told apart, from draws alone: a lower bound of mu.

Whoever tells them apart with false alarms alpha and misses beta proves that the mechanism is not
mu-Gaussian private for any mu below Phi^-1(1 - alpha) - Phi^-1(beta) (Dong, Roth and Su (2022),
JRSS B 84, definition 2.6). The test is learnt from some of the draws, its threshold chosen on
others, and judged on the rest, so that the bound holds with the confidence that is stated whatever
the mechanism does; nothing that was claimed of it is used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import betaincinv, ndtri

from trailveil.checks.attacks import worlds
from trailveil.checks.attacks.worlds import recordings
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import latent
from trailveil.gp.randomness import SEED_BYTES
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import Adversary
from trailveil.privacy.markov import covariance_product
from trailveil.privacy.prior import Prior, observe
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import crops
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.request import STRANGER
from trailveil.traces.projection import MICRO

LEAST_DRAWS = 100
"""Of each hypothesis, for a bound to say anything."""

# Eigenvalues of correlations below this share of the largest are taken to be as large, in turn: the
# less, the more is learnt of directions that hardly vary, and the less surely.
_RIDGES = (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1.0)
_THRESHOLDS = 41


@dataclass(frozen=True, slots=True)
class Distinction:
    """What draws under two hypotheses prove.

    least: mu is at least this, at the confidence. likely: an estimate of mu by the same test, from
    how far apart the draws lie. curve: the test's trade-off, (alpha, beta) from no alarm to always.
    draws: of each hypothesis, of which half were judged.
    """

    least: float
    likely: float
    curve: tuple[tuple[float, float], ...]
    draws: int
    confidence: float


def told_apart(
    first: FloatArray,
    other: FloatArray,
    *,
    directions: Sequence[FloatArray] = (),
    confidence: float = 0.999,
) -> Distinction:
    """A lower bound of mu from draws (count, f) of f released numbers under either hypothesis.

    directions: (f,) each, tests (linear, alarm where large) to be tried beside those that are
    learnt, such as the one that is best if the claim is right. Draws must be in random order.
    Raises InvalidValue for fewer than LEAST_DRAWS, shapes that differ, or a wrong confidence.
    """
    if first.shape != other.shape or first.ndim != 2 or len(first) < LEAST_DRAWS:
        raise InvalidValue(
            f"draws must be at least {LEAST_DRAWS} of each hypothesis, of equal shape (count, f), "
            f"got {first.shape} and {other.shape}"
        )
    if not 0.5 <= confidence < 1:
        raise InvalidValue(f"confidence must be from 0.5 to below 1, got {confidence}")
    quarter = len(first) // 4
    parts = [slice(0, quarter), slice(quarter, 2 * quarter), slice(2 * quarter, None)]
    learnt = _directions(first[parts[0]], other[parts[0]])
    tests = [*learnt, *(np.asarray(way, dtype=np.float64) for way in directions)]
    best = max(tests, key=lambda way: _apart(first[parts[1]] @ way, other[parts[1]] @ way))
    threshold = _threshold(first[parts[1]] @ best, other[parts[1]] @ best, confidence)
    false, missed = first[parts[2]] @ best, other[parts[2]] @ best
    return Distinction(
        max(0.0, _bound(false, missed, threshold, confidence)),
        max(0.0, _apart(false, missed)),
        _curve(false, missed),
        len(first),
        confidence,
    )


def _directions(first: FloatArray, other: FloatArray) -> list[FloatArray]:
    """Linear discriminants (f,), with as much shrinkage as may be best: Friedman (1989)."""
    mean = other.mean(axis=0) - first.mean(axis=0)
    both = np.concatenate([first - first.mean(axis=0), other - other.mean(axis=0)])
    sizes = np.sqrt(np.mean(both**2, axis=0))
    # A number that never varies is told apart by itself.
    sizes = np.where(sizes > 0, sizes, np.maximum(np.abs(mean), 1.0) * 1e-9)
    values, vectors = eigh(np.atleast_2d((both / sizes).T @ (both / sizes)) / len(both))
    turned = vectors.T @ (mean / sizes)
    largest = float(values[-1]) if values[-1] > 0 else 1.0
    return [
        np.asarray(vectors @ (turned / np.maximum(values, ridge * largest)) / sizes)
        for ridge in _RIDGES
    ]


def _apart(first: FloatArray, other: FloatArray) -> float:
    """How far apart two sets of numbers lie, in deviations."""
    spread = float(np.sqrt((np.var(first) + np.var(other)) / 2))
    way = float(np.mean(other) - np.mean(first))
    return way / spread if spread > 0 else np.inf * np.sign(way) if way else 0.0


def _threshold(first: FloatArray, other: FloatArray, confidence: float) -> float:
    """The threshold with the largest bound on these numbers."""
    both = np.concatenate([first, other])
    tried = np.quantile(both, np.linspace(0, 1, _THRESHOLDS + 2)[1:-1])
    return float(max(tried, key=lambda at: _bound(first, other, at, confidence)))


def _bound(first: FloatArray, other: FloatArray, at: float, confidence: float) -> float:
    """Phi^-1(1 - alpha) - Phi^-1(beta), each at most so much (Clopper and Pearson (1934))."""
    chance = (1 - confidence) / 2
    alarms, misses = int(np.sum(first > at)), int(np.sum(other <= at))
    return float(
        -ndtri(_most(alarms, len(first), chance)) - ndtri(_most(misses, len(other), chance))
    )


def _most(hits: int, count: int, chance: float) -> float:
    return 1.0 if hits == count else float(betaincinv(hits + 1, count - hits, 1 - chance))


def _curve(first: FloatArray, other: FloatArray) -> tuple[tuple[float, float], ...]:
    tried = np.quantile(np.concatenate([first, other]), np.linspace(0, 1, _THRESHOLDS))
    inner = [(float(np.mean(first > at)), float(np.mean(other <= at))) for at in tried[::-1]]
    return ((0.0, 1.0), *inner, (1.0, 0.0))


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
    generator: np.random.Generator | None = None,
) -> Iterator[Audited]:
    """Each part of a release against who knows nothing and who sees stillness, along three ways.

    draws: releases for each hypothesis. A right claim is proved wrong with a chance of
    1 in 1000 each.
    """
    if not plan.findings:
        raise InvalidValue("an audit must have protected parts, got noise for every place")
    generator = generator or worlds.fresh()
    request, trace = plan.request, plan.trace
    spans = [stretch.seconds(trace) for stretch in request.stretches]
    for crop in crops(request.kernel, trace.seconds, spans, request.variance**0.5):
        rows = np.zeros(len(trace), dtype=np.bool_)
        rows[crop.rows] = True
        cropped = replace(plan, trace=trace.only(rows), mechanism=crop.part_of(plan.mechanism))
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
                    yield _audited(cropped, prior, claim, secret, way, draws, generator)


def _audited(
    plan: Plan,
    prior: Prior,
    claim: tuple[int, Adversary, float],
    secret: Secret,
    way: str,
    draws: int,
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
    distinction = told_apart(*pair, directions=[best])
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
    seeds = [generator.bytes(SEED_BYTES) for _ in lattices]
    pairs = zip(lattices, seeds, strict=True)
    return np.stack([_released(_of(plan, lattice), seed) for lattice, seed in pairs])


def _of(plan: Plan, lattice: NDArray[np.int64]) -> Plan:
    """The same release of another recording (n, 2), which leaves as it is where no noise is."""
    shifted = replace(plan, lattice=lattice)
    if plan.mechanism.noise_trace:
        return shifted
    places = plan.grid.rounded_places(plan.frame.to_degrees(lattice)) / MICRO
    return replace(shifted, trace=replace(plan.trace, positions=places))


def _released(plan: Plan, seed: bytes) -> FloatArray:
    """One release as a file would have it, back in metres (2 m,)."""
    released, _ = draw(plan, seed)
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
