"""How well two hypotheses on a secret can be told apart, from draws alone: a lower bound of mu.

Whoever tells them apart with false alarms alpha and misses beta proves that the mechanism is not
mu-Gaussian private for any mu below Phi^-1(1 - alpha) - Phi^-1(beta) (Dong, Roth and Su (2022),
JRSS B 84, definition 2.6). The test is learnt from some of the draws, its threshold chosen on
others, and judged on the rest, so that the bound holds with the confidence that is stated whatever
the mechanism does; nothing that was claimed of it is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import betaincinv, ndtri

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray

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
