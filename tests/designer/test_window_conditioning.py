"""What noise leaves to each adversary, by exact conditioning on whatever sampling is released.

Nothing here is of the package but the noise itself: tests.oracles.dense_movement.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import norm

from tests.oracles.dense_movement import Law, Released, Rows, released, variance_of
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.window import window_noise
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.knowledge import ACCURACY, Knowledge
from trailveil.privacy.movement import Movement
from trailveil.release.request import Request

REQUEST = Request(stretches=(), radius=200.0)
BOUND, WHO = REQUEST.bound, REQUEST.adversaries
STRANGER, PLACE, PATH = WHO
# Seconds: half of the stay, what is uncertain around it, and both.
STAY, UNCERTAIN = 300.0, 60.0
HALF = STAY + UNCERTAIN
STEADY = HALF + STRANGER.steady
# Relative to the bound: what double precision is good for here.
EXACT = 1e-6


@lru_cache
def noise_of(sides: int = 2, who: Sequence[Knowledge] = WHO) -> WindowNoise:
    return window_noise(2 * HALF, sides, who, BOUND)


def factor_at(noise: WindowNoise, fixes: Rows) -> Rows:
    return noise.columns(np.maximum(-HALF - fixes, 0.0), np.maximum(fixes - HALF, 0.0))


def dense() -> Rows:
    """Fixes from 10 s apart near the window to a minute far away."""
    steps = np.hstack([np.arange(0, 300, 10), np.arange(300, 1200, 20), np.arange(1200, 5101, 60)])
    return np.unique(np.hstack([-HALF - steps, np.arange(-HALF, HALF + 1, 20), HALF + steps]))


def recording(
    fixes: Rows, laws: Sequence[Law], *times: float, noise: WindowNoise | None = None
) -> Released:
    factor = factor_at(noise_of() if noise is None else noise, fixes)
    return released(fixes, laws, factor, {-HALF, 0.0, HALF, *times})


def loss(
    record: Released,
    secret: Rows,
    known: Rows | None = None,
    levels: Rows | None = None,
    prior: float = math.inf,
) -> float:
    """The loss relative to the bound."""
    return (1 / record.posterior(secret, known, levels) - 1 / prior) / BOUND


def granted_place(record: Released, away: float) -> tuple[Rows, Rows]:
    """All of the movement in the window, and a place so many seconds outward from it."""
    inside = record.granted(-HALF, HALF)
    at = HALF + away if HALF + away in record.motion.index else -HALF - away
    return np.vstack([inside, record.known_place(at, ACCURACY)]), level(inside, 1)


def granted_path(record: Released, path: float) -> tuple[Rows, Rows]:
    """All of the movement in the window, and all of the path from so many seconds outward on."""
    inside = record.granted(-HALF, HALF)
    at = [t for t in record.motion.index if abs(t) >= HALF + path]
    places = record.rows(record.motion.position(*at))
    edges = [t for t in (-HALF - path, HALF + path) if t in record.motion.index]
    velocities = record.rows(record.motion.velocity(*edges))
    return np.vstack([inside, velocities, places]), level(np.vstack([inside, velocities]), len(at))


def level(rows: Rows, count: int) -> Rows:
    """No level of the place in these rows, and one in so many after them."""
    return np.hstack([np.zeros(rows.shape[0]), np.ones(count)])


WALK = [Law(math.inf, REQUEST.slowest.speed)]
RIDE = [Law(math.inf, 3.0)]


@pytest.mark.parametrize("sides", [1, 2])
def test_adversaries_that_bind_are_left_with_little_more(sides: int) -> None:
    """A stranger who grants the steady window, a place at 60 s, a path: at most 2 % more metres."""
    fixes = dense() if sides == 2 else dense()[dense() <= HALF]
    noise, path = noise_of(sides), HALF + (PATH.path or 0)
    walk = recording(fixes, WALK, -STEADY, STEADY, noise=noise)
    known = walk.granted(-STEADY, STEADY if sides == 2 else HALF)
    losses = [loss(walk, walk.motion.position(0.0)[0], known, np.zeros(known.shape[0]))]
    ride = recording(fixes, RIDE, *(-HALF - x for x in (60.0, 61.0, 200.0)), noise=noise)
    for away in (60.0, 61.0, 200.0):
        prior = PLACE.variance(sides, away)
        secret = ride.motion.position(0.0)[0]
        losses.append(loss(ride, secret, *granted_place(ride, away), prior))
    ride = recording(fixes, RIDE, *((-path, path) if sides == 2 else (-path,)), noise=noise)
    prior = PATH.variance(sides)
    secret = ride.motion.position(0.0)[0]
    losses.append(loss(ride, secret, *granted_path(ride, PATH.path or 0), prior))
    assert max(losses) < 1
    binding = [losses[i] for i in (0, 1, 4)]
    assert min(binding) > 0.98**2


@dataclass(frozen=True)
class Case:
    """One adversary's law of movement, on which little is left or much."""

    laws: Sequence[Law]
    secrets: Sequence[float]


def cases(rng: np.random.Generator) -> dict[str, Case]:
    """Movement that is nowhere slower than the floor beyond the steady window."""
    early, late = rng.uniform(-UNCERTAIN, UNCERTAIN, 2)
    begin, end = early - STAY, STAY + late
    secrets = [begin, end, float(rng.uniform(begin, end))]
    far = rng.uniform(STEADY, 6000, 3)
    until = np.sort(np.hstack([-far, far, [-STEADY, STEADY]]))
    speeds = np.exp(rng.uniform(0, math.log(10), until.size + 1))
    mixed = [Law(a, s) for a, s in zip([*until, math.inf], speeds, strict=True)]
    mixed = [Law(x.until, rng.uniform(0.05, 3)) if x.until == STEADY else x for x in mixed]
    return {
        "floor": Case(WALK, secrets),
        "3 m/s": Case(RIDE, secrets),
        "10 m/s": Case([Law(math.inf, 10.0)], secrets),
        "longer time constant": Case([Law(math.inf, 3.0, 300.0)], secrets),
        "still": Case([Law(begin, 1.0), Law(end, 1.0, pace="still"), Law(math.inf, 1.0)], secrets),
        "still, fast": Case(
            [Law(begin, 9.0), Law(end, 9.0, pace="still"), Law(math.inf, 9.0)], secrets
        ),
        "steady": Case(
            [Law(-STEADY, 1.0), Law(STEADY, 1.0, pace="steady"), Law(math.inf, 1.0)], secrets
        ),
        "slow": Case([Law(-STEADY, 1.0), Law(STEADY, 0.1), Law(math.inf, 1.0)], secrets),
        "mixed": Case(mixed, secrets),
    }


def drawn_fixes(rng: np.random.Generator) -> Rows:
    """From 1 s to 5 min apart, with gaps and bursts; it may begin or end within the part."""
    first = rng.choice([-9000.0, -3000.0, -700.0, -100.0])
    last = rng.choice([9000.0, 2500.0, 800.0, 120.0])
    pieces = [np.array([first])]
    while pieces[-1][-1] < last:
        step = float(np.exp(rng.uniform(0, math.log(300))))
        count = int(rng.integers(2, 40))
        gap = float(rng.choice([0, 0, 600, 2000]))
        pieces.append(pieces[-1][-1] + gap + step * np.arange(1, count))
    fixes = np.round(np.hstack(pieces), 3)
    fixes = fixes[fixes <= last]
    if fixes.size > 160:
        fixes = np.sort(rng.choice(fixes, 160, replace=False))
    return np.unique(np.hstack([first, fixes, last]))


def check_sampling(seed: int) -> None:
    """Every adversary is left with what is promised, on one sampling."""
    rng = np.random.default_rng(seed)
    fixes = drawn_fixes(rng)
    stranger = Exposure.of_loss("a stranger", BOUND).posterior ** 2
    for name, case in cases(rng).items():
        record = recording(fixes, case.laws, *case.secrets)
        begin, end, _ = case.secrets
        inside = [t for t in fixes if begin <= t <= end] or [begin, end]
        mean = record.motion.position(*inside).mean(axis=0)
        for secret in (*record.motion.position(*case.secrets), mean):
            assert record.posterior(secret) >= stranger * (1 - EXACT), (seed, name)
    away = float(rng.choice([60.0, 61.0, 90.0, 300.0, 1500.0, 4000.0]))
    path = float(PATH.path or 0)
    known = [-HALF - path, HALF + path]
    for laws in (RIDE, [Law(math.inf, 7.0)], [Law(math.inf, 6.0, 200.0)]):
        record = recording(fixes, laws, HALF + away, *known)
        usual = laws is RIDE
        secret = record.motion.position(0.0)[0]
        for who, rows, prior in (
            (PLACE, granted_place(record, away), PLACE.variance(2, away)),
            (PATH, granted_path(record, path), PATH.variance(2)),
        ):
            metres = Exposure.of_loss(who.name, BOUND, prior**0.5).posterior
            assert record.posterior(secret, *rows) ** 0.5 >= metres * (1 - EXACT), (seed, who.name)
            # Who does not know the movement in the window is left with more.
            less = rows[0][-1:] if who is PLACE else rows[0][-sum(rows[1] > 0) :]
            ones = np.ones(less.shape[0])
            assert record.posterior(secret, less, ones) ** 0.5 >= metres * (1 - EXACT)
            if usual:
                assert loss(record, secret, *rows, prior) <= 1 + EXACT, (seed, who.name)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_left_on_any_sampling(seed: int) -> None:
    check_sampling(seed)


@pytest.mark.slow
def test_what_is_left_on_many_samplings() -> None:
    for seed in range(8, 72):
        check_sampling(seed)


def test_parts_keep_their_guarantees_where_noises_are_added() -> None:
    """A second window 20 minutes on, with noise of its own: the guarantee of each holds."""
    fixes = np.unique(np.hstack([dense(), dense() + 1920]))[::2]
    both = np.hstack([factor_at(noise_of(), fixes), factor_at(noise_of(), fixes - 1920)])
    record = released(fixes, WALK, both, {-STEADY, 0.0, STEADY, 1920.0})
    alone = recording(fixes, WALK, -STEADY, 0.0, STEADY, 1920.0)
    for each in (record, alone):
        known = each.granted(-STEADY, STEADY)
        lost = loss(each, each.motion.position(0.0)[0], known, np.zeros(known.shape[0]))
        assert 0 < lost < 1
    assert loss(record, record.motion.position(1920.0)[0]) < 1
    assert loss(alone, alone.motion.position(1920.0)[0]) > 2


@pytest.mark.parametrize("visits", [2, 3])
def test_visits_that_share_their_noise_are_movement_that_is_slower(visits: int) -> None:
    """Joint conditioning of recordings of one place, each with the same draw of the noise."""
    slower = (Knowledge("a stranger", Movement(1 / visits**0.5, 60.0)),)
    bound = 5 * BOUND
    noise = window_noise(2 * HALF, 2, slower, bound)
    fixes = dense()[::3]
    record = recording(fixes, [Law(math.inf, 1.0)], noise=noise)
    about = record.motion.position(0.0)[0]
    matrices = [
        record.motion.position(*fixes) - about,
        record.granted(-HALF, HALF)[:, : about.size],
    ]
    rank = record.factor.shape[1]
    size = visits * about.size + rank
    rows, levels = [], []
    for i in range(visits):
        for part, ones in zip(matrices, (1.0, 0.0), strict=True):
            wide = np.zeros((part.shape[0], size))
            wide[:, i * about.size : (i + 1) * about.size] = part
            if ones:
                wide[:, -rank:] = record.factor
            rows.append(wide)
            levels.append(np.full(part.shape[0], ones))
    posterior = variance_of(np.zeros(size), 1.0, np.vstack(rows), np.hstack(levels))
    assert 0.98**2 < 1 / posterior / bound < 1


def test_two_places_are_told_apart_as_often_as_stated() -> None:
    """Draws of whole releases, and the best test: its advantage, and the Renyi divergence.

    What tells two places apart is one normal number, the best weighted sum of what is released:
    of mean +-mu^2 / 2 and variance mu^2. A stranger knows no level; two places are 200 m apart.
    """
    fixes = dense()[::4]
    record = recording(fixes, WALK, -STEADY, STEADY)
    apart, order = 200.0, 5.0
    # The release less its first fix, given the place: what moves with the place is the level.
    rows = record.release - record.rows(record.motion.position(0.0))
    weights = np.linalg.solve(rows @ rows.T, np.ones(fixes.size))
    precision = float(weights.sum())
    assert 1 / precision == pytest.approx(
        record.posterior(record.motion.position(0.0)[0]), rel=1e-5
    )
    mu = apart * precision**0.5
    bound = apart * BOUND**0.5
    assert mu < bound
    rng, count = np.random.default_rng(7), 20_000
    draws = rng.standard_normal((count, rows.shape[1])) @ rows.T
    likely = apart * (draws @ weights) - mu**2 / 2
    # Releases of the first place, and of the second.
    other = likely + mu**2
    right = (np.mean(likely < 0) + np.mean(other > 0)) / 2
    expected = norm.cdf(mu / 2)
    assert right == pytest.approx(expected, abs=4 * (0.25 / (2 * count)) ** 0.5)
    assert 2 * expected - 1 < Guarantee(bound, order).advantage
    # D = log E exp(order log ratio) / (order - 1) of the other; by nodes.
    at, share = np.polynomial.hermite_e.hermegauss(60)
    moments = share @ np.exp(order * (mu * at - mu**2 / 2)) / share.sum()
    assert np.log(moments) / (order - 1) == pytest.approx(order / 2 * mu**2, rel=1e-9)
    assert order / 2 * mu**2 < REQUEST.epsilon
    assert likely.mean() == pytest.approx(-(mu**2) / 2, abs=4 * mu / count**0.5)
    assert likely.var() == pytest.approx(mu**2, rel=4 * (2 / count) ** 0.5)
