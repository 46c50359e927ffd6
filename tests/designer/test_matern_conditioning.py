"""What noise leaves under priors that return to a mean, by exact conditioning on any sampling.

Nothing here is of the package but the noise itself: the movement is tests.oracles.dense_movement's.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from tests.designer.test_window_conditioning import HALF, dense, drawn_fixes, factor_at
from tests.oracles.dense_movement import Released, Returning, Rows, variance_of
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.window import window_noise
from trailveil.errors import Refused
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.knowledge import ACCURACY, Knowledge
from trailveil.privacy.movement import Matern
from trailveil.release.request import Request

BOUND = Request(stretches=(), radius=200.0).bound
STD, LENGTH, PATH = 1000.0, 300.0, 240
# Relative: what double precision is good for here.
EXACT = 1e-6
# Deviations of a mean that nobody knows, and of one that is known to some extent (m).
FLAT, STATED = 1e5, 300.0


def adversaries(smoothness: int, levels: int) -> tuple[Knowledge, Knowledge]:
    """Who knows one true place, and who knows the path."""
    movement = Matern(smoothness, STD, LENGTH, levels)
    return Knowledge("place", movement, place=60), Knowledge("path", movement, path=PATH)


@lru_cache
def noise_of(smoothness: int, levels: int, sides: int = 2) -> WindowNoise:
    return window_noise(2 * HALF, sides, adversaries(smoothness, levels), BOUND)


@dataclass(frozen=True)
class Case:
    """A recording under one prior: its places, and what adversaries know."""

    record: Released

    def posterior(self, secret: Rows, known: Rows | None = None, *, release: bool = True) -> float:
        """The variance of a place (size,) given rows that are known, and the release."""
        rows = [] if known is None else [known]
        rows += [self.record.release] if release else []
        if not rows:
            return float(secret @ secret)
        whole = np.vstack(rows)
        return variance_of(self.record.rows(secret[None])[0], 0.0, whole, np.zeros(len(whole)))

    def inside(self) -> Rows:
        """All of the movement in the window."""
        return self.record.granted(-HALF, HALF)

    def place(self, time: float) -> Rows:
        return self.record.known_place(time, ACCURACY)

    def path(self) -> Rows:
        """The path from PATH seconds outward on, on the sides that are recorded."""
        motion = self.record.motion
        at = [t for t in motion.index if abs(t) >= HALF + PATH]
        edges = [t for t in (-HALF - PATH, HALF + PATH) if t in motion.index]
        return self.record.rows(np.vstack([motion.position(*at), motion.velocity(*edges)]))


def case(
    fixes: Rows, noise: WindowNoise, smoothness: int, mean: float, *times: float, still: bool
) -> Case:
    """still: whether the prior's clock stops in the window; else the prior holds in it, too."""
    moments = [*fixes.tolist(), -HALF, 0.0, HALF, *times]
    stopped = (-HALF, HALF) if still else None
    motion = Returning(moments, smoothness, STD, LENGTH, mean, stopped)
    return Case(Released(fixes, motion, factor_at(noise, fixes)))


def metres(who: Knowledge, sides: int, away: float | None) -> float:
    return Exposure.of_loss(who.name, BOUND, who.variance(sides, away) ** 0.5).posterior


@pytest.mark.parametrize(
    ("smoothness", "levels", "sides"), [(1, 0, 1), (1, 1, 2), (3, 0, 2), (3, 1, 1)]
)
def test_adversaries_that_bind_are_left_with_little_more(
    smoothness: int, levels: int, sides: int
) -> None:
    """Densely sampled for long, and the movement in the window known: at most 3 % more metres.

    The prior holds in the window, too: that the place is far from the mean for so long counts.
    """
    more = np.hstack([-HALF - np.arange(5160.0, 9000, 60), HALF + np.arange(5160.0, 9000, 60)])
    fixes = np.unique(np.hstack([dense(), more]))
    fixes = fixes if sides == 2 else fixes[fixes <= HALF]
    place, path = adversaries(smoothness, levels)
    noise = noise_of(smoothness, levels, sides)
    shares = []
    for away in (60.0, 75.0, 200.0):
        release = case(fixes, noise, smoothness, FLAT * levels, -HALF - away, still=False)
        secret = release.record.motion.position(0.0)[0]
        known = np.vstack([release.inside(), release.place(-HALF - away)])
        shares.append(release.posterior(secret, known) ** 0.5 / metres(place, sides, away))
    edges = (-HALF - PATH, HALF + PATH)[:sides]
    release = case(fixes, noise, smoothness, 0.0, *edges, still=False)
    secret = release.record.motion.position(0.0)[0]
    known = np.vstack([release.inside(), release.path()])
    # Of the path, what is known before is less by what the window's own length tells.
    shares.append(release.posterior(secret, known) ** 0.5 / metres(path, sides, None))
    assert min(shares) > 1 - EXACT
    assert shares[-1] < 1.03
    assert min(shares[:-1]) < 1.03


def check_sampling(seed: int, smoothness: int, levels: int) -> None:
    """Every adversary is left with what is promised, and gains no more, on one sampling."""
    rng = np.random.default_rng(seed)
    fixes = drawn_fixes(rng)
    place, path = adversaries(smoothness, levels)
    noise = noise_of(smoothness, levels)
    away = float(rng.choice([60.0, 61.0, 90.0, 300.0, 1500.0, 4000.0]))
    inside = float(rng.uniform(-HALF, HALF))
    for mean in (FLAT, STATED, 0.0) if levels else (0.0,):
        for still in (True, False):
            times = (HALF + away, -HALF - PATH, HALF + PATH, inside)
            release = case(fixes, noise, smoothness, mean, *times, still=still)
            motion = release.record.motion
            secret = motion.position(inside)[0]
            granted = [release.inside()] if still else []
            # Of a path, the mean is known with it.
            known_mean = case(fixes, noise, smoothness, 0.0, *times, still=still)
            for who, observed, rows, at in (
                (place, release, release.place(HALF + away), away),
                (path, known_mean, known_mean.path(), None),
            ):
                least = metres(who, 2, at) * (1 - EXACT)
                granted_rows = [observed.inside()] if still else []
                assert (
                    observed.posterior(secret, np.vstack([*granted_rows, rows])) ** 0.5 >= least
                ), (seed, mean)
                known = np.vstack([observed.inside(), rows])
                gain = 1 / observed.posterior(secret, known) - 1 / observed.posterior(
                    secret, known, release=False
                )
                assert gain <= BOUND * (1 + 1e-5), (seed, who.name, mean, still)
            # Nothing besides the prior: what is gained, in every law of the window.
            inner = np.vstack(granted) if granted else None
            before = math.inf if mean == FLAT else release.posterior(secret, inner, release=False)
            assert 1 / release.posterior(secret, inner) - 1 / before <= BOUND * (1 + 1e-5), (
                seed,
                mean,
            )


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("smoothness", [1, 3])
def test_what_is_left_on_any_sampling(smoothness: int, levels: int) -> None:
    for seed in range(5):
        check_sampling(seed, smoothness, levels)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("smoothness", [1, 3])
def test_what_is_left_on_many_samplings(smoothness: int, levels: int) -> None:
    for seed in range(5, 40):
        check_sampling(seed, smoothness, levels)


@pytest.mark.parametrize("smoothness", [1, 3])
def test_a_window_that_is_longer_than_its_proof_is_not_covered(smoothness: int) -> None:
    """Why the length counts: noise for a moment, and four hours of standing under the prior."""
    who = adversaries(smoothness, 1)
    noise = window_noise(120.0, 2, who, BOUND)
    half = 7200.0
    steps = np.arange(0.0, 9000, 60)
    fixes = np.unique(np.hstack([-half - steps, np.arange(-half, half, 120), half + steps]))
    motion = Returning(fixes.tolist(), smoothness, STD, LENGTH, FLAT)
    before, after = np.maximum(-half - fixes, 0.0), np.maximum(fixes - half, 0.0)
    case = Case(Released(fixes, motion, noise.columns(before, after)))
    assert 1 / case.posterior(motion.position(0.0)[0]) > 1.3 * BOUND
    with pytest.raises(Refused, match=r"the prior must leave the place of 3333 min open") as no:
        window_noise(200_000.0, 2, who, BOUND)
    assert "\n" not in str(no.value)
