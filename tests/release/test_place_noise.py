"""Noise that all visits of a place share: what whole recordings together leave to each adversary.

Nothing here is of the package but the noise itself: tests.oracles.dense_movement.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest
from scipy.linalg import block_diag

from tests.oracles.dense_movement import Law, Motion, Rows, variance_of
from trailveil.errors import InvalidValue, Refused
from trailveil.privacy.knowledge import ACCURACY
from trailveil.release.place_noise import TOGETHER, PlaceNoise, place_noise
from trailveil.release.request import Request

REQUEST, WAYS = Request((), radius=100.0), 4
BOUND = REQUEST.bound
STRANGER, PLACE, PATH = REQUEST.adversaries
PATH_AWAY = float(PATH.path or 0)
UNCERTAIN = 60.0
Visits = list[tuple[float, float]]
# Seconds outward from a window: from 10 s apart to two minutes.
STEPS = np.hstack([np.arange(0, 300, 10), np.arange(300, 1200, 30), np.arange(1200, 5200, 120)])


@lru_cache
def noise() -> PlaceNoise:
    return place_noise(REQUEST, WAYS)


class Outing:
    """One recording: fixes, visits to the place, and its movement, whose velocity is a law's.

    steady: seconds beyond each window within which all movement is known. known: seconds outward at
    which a place of each way is known. path: seconds outward from which on the path is.
    """

    def __init__(
        self,
        fixes: Rows,
        visits: Visits,
        speed: float,
        steady: float = 0.0,
        known: float | None = None,
        path: float | None = None,
    ) -> None:
        windows = [(a - UNCERTAIN, b + UNCERTAIN) for a, b in visits]
        wide = [(a - steady, b + steady) for a, b in windows]
        edges = {t for window in wide for t in window}
        sides = [(a, -1.0) for a, _ in windows] + [(b, 1.0) for _, b in windows]
        first, last = fixes.min(), fixes.max()
        away = [u for u in (known, path) if u is not None]
        more = {t + s * u for t, s in sides for u in away if first <= t + s * u <= last}
        begins = {begin for begin, _ in windows}
        motion = Motion(
            sorted({*fixes.tolist(), *begins, *edges, *more}), [Law(math.inf, speed)], speed
        )
        place = motion.position(windows[0][0])

        def rows(*times: float) -> Rows:
            return np.asarray(motion.position(*times) - place)

        def far(t: float) -> bool:
            return path is not None and all(t <= a - path or t >= b + path for a, b in windows)

        every = sorted(motion.index)
        inside = [[t for t in every if a <= t <= b] for a, b in wide]
        exact = [rows(*times) for times in inside] + [motion.velocity(*sorted(edges))]
        beyond = [t for t in every if far(t)]
        self.released = rows(*fixes)
        self.factor = noise().at(fixes, visits)
        self.exact = np.vstack([*exact, *([motion.velocity(*more)] if path else [])])
        self.known = (
            rows(*(beyond if path else sorted(more))) if more else np.zeros((0, motion.size))
        )


def loss(outings: Sequence[Outing], prior: float = math.inf, accuracy: float = 0.0) -> float:
    """What all together tell of the place, relative to the bound.

    prior: m^2, of the place by what is known of each way. accuracy: m, of places that are known.
    """
    drawn = np.vstack([outing.factor for outing in outings])
    moved, exact, known = (
        np.asarray(block_diag(*blocks))
        for blocks in zip(*((x.released, x.exact, x.known) for x in outings), strict=True)
    )
    unsure = accuracy * np.eye(len(known))
    rows = np.vstack(
        [
            np.hstack([moved, drawn, np.zeros((len(moved), len(known)))]),
            np.hstack([exact, np.zeros((len(exact), drawn.shape[1] + len(known)))]),
            np.hstack([known, np.zeros((len(known), drawn.shape[1])), unsure]),
        ]
    )
    levels = np.hstack([np.ones(len(moved)), np.zeros(len(exact)), np.ones(len(known))])
    variance = variance_of(np.zeros(rows.shape[1]), 1.0, rows, levels)
    return (1 / variance - WAYS / prior) / BOUND


INSIDE = np.arange(-60.0, 661.0, 60.0)
FROM: tuple[Rows, Visits] = (np.hstack([INSIDE, 660 + STEPS[1:]]), [(0.0, 600.0)])
TO: tuple[Rows, Visits] = (np.hstack([-60 - STEPS[:0:-1], INSIDE]), [(0.0, 600.0)])
PAST: tuple[Rows, Visits] = (np.unique(np.hstack([TO[0], FROM[0]])), [(0.0, 600.0)])
# Four ways: each of its own recording, of different lengths of stay, or two in one recording. Of
# two, the visit is known from an earlier recording, or the recording ends before it.
FOUR = {
    "from": [FROM, (np.hstack([INSIDE[:3], 360 + STEPS]), [(0.0, 300.0)]), FROM, FROM],
    "from and to": [FROM, TO, (TO[0][:-12], TO[1]), (FROM[0][14:], [(-3000.0, 600.0)])],
    "past, from and to": [PAST, FROM, TO],
    "past": [PAST, PAST],
}
WALK, RIDE, STEADY = REQUEST.slowest.speed, 3.0, float(STRANGER.steady)


@pytest.mark.parametrize("which", FOUR)
def test_as_many_ways_as_were_stated_tell_every_adversary_its_bound(which: str) -> None:
    """And of those that bind hardly less: at most 2 % more metres are left."""
    shared = FOUR[which]
    losses = [loss([Outing(*outing, WALK, STEADY) for outing in shared])]
    for away in (60.0, 200.0):
        knowing = [Outing(*outing, RIDE, known=away) for outing in shared]
        assert sum(len(outing.known) for outing in knowing) == WAYS
        losses.append(loss(knowing, PLACE.variance(1, away), ACCURACY))
    losses.append(loss([Outing(*x, RIDE, path=PATH_AWAY) for x in shared], PATH.variance(1)))
    assert max(losses) <= 1 + 1e-6
    assert min(losses[0], losses[1], losses[3]) > 0.96
    # One of them tells less, and one more grows it no faster than the number of ways.
    each = [Outing(*outing, WALK, STEADY) for outing in [*shared, FROM]]
    fewer, more = (loss(some) for some in ([each[-1]], each))
    assert fewer < losses[0] < more < losses[0] * (WAYS + 1) / WAYS
    path = loss([Outing(*FROM, RIDE, path=PATH_AWAY)]) - 1 / PATH.variance(1) / BOUND
    for ways, loss_of_ways in ((1, max(fewer, path)), (WAYS, losses[0]), (WAYS + 1, more)):
        counted = noise().loss(ways, REQUEST) / BOUND
        assert 0.96 * counted < loss_of_ways <= counted * (1 + 1e-6)
        assert counted <= 1 or ways > WAYS


def test_a_place_of_one_way_alone_tells_how_all_are_moved_there() -> None:
    """As documented: 7.5 times the epsilon, and more metres than if a place of each was known."""
    known, others = Outing(*FROM, RIDE, known=60.0), [Outing(*FROM, RIDE)] * 3
    prior = 1 / PLACE.variance(1, 60.0) / BOUND
    alone = loss([known, *others], accuracy=ACCURACY)
    assert alone - prior == pytest.approx(7.5, abs=0.1)
    assert alone < loss([known] * WAYS, accuracy=ACCURACY) == pytest.approx(1 + 4 * prior, rel=1e-3)


@pytest.mark.parametrize("gap", [720.0, 900.0, 1500.0, 4000.0, 12_000.0])
def test_outings_that_come_back_are_two_ways_and_what_it_costs_to_turn(gap: float) -> None:
    """Each begins and ends with a visit, so many seconds between the windows."""
    middle = np.linspace(gap / 2 - 240, gap / 2, 25)
    steps = np.unique(np.hstack([STEPS[np.less(STEPS, gap / 2)], middle]))
    fixes = np.unique(np.hstack([INSIDE, 660 + steps, 660 + gap - steps]))
    visits = [(0.0, 600.0), (720.0 + gap, 800.0 + gap)]
    shared = [(np.append(fixes, 700.0 + gap), visits)] * 2
    each = noise().ways(shared[0][0], visits, REQUEST)
    assert 2 <= each <= 2 / math.tanh(2.0) + 1e-9
    assert each == pytest.approx(2.0, abs=1e-6) or gap < 1440
    walks = loss([Outing(*outing, WALK, STEADY) for outing in shared])
    paths = loss([Outing(*x, RIDE, path=PATH_AWAY) for x in shared], PATH.variance(1))
    assert max(walks, paths) <= 2 * each / WAYS + 1e-6
    assert paths > 0.96


def test_noise_between_visits_has_no_kink_and_is_constant_in_each() -> None:
    visits = [(0.0, 600.0), (1500.0, 1600.0), (6000.0, 6000.0)]
    times = np.arange(-200.0, 6400.0, 0.05)
    columns = noise().at(times, visits)
    slopes = np.diff(columns, axis=0) / 0.05
    assert np.abs(slopes).max() > 0.5  # metres per second, at a deviation of 1
    assert np.max(np.abs(np.diff(slopes, axis=0))) < 0.015
    for begin, end in visits:
        assert np.ptp(columns[(times >= begin - 60) & (times <= end + 60)], axis=0).max() == 0
    near = [(0.0, 600.0), (600.0 + TOGETHER - 1, 1600.0)]  # a short absence
    assert np.ptp(noise().at(times[(times > 0) & (times < 1600)], near), axis=0).max() == 0
    far = noise().at(np.array([-5200.0, 11_200.0]), visits)
    assert not far.any()


def test_ways_are_counted_where_something_is_released() -> None:
    visits = [(0.0, 600.0), (20_000.0, 20_000.0)]
    times = np.arange(-3000.0, 23_000.0, 100.0)

    def counted(rows: Rows, visits: Visits = visits) -> float:
        return noise().ways(rows, visits, REQUEST)

    assert counted(times) == 4
    assert counted(times[times > 0]) == 3
    assert counted(times[(times > 0) & (times < 20_000)]) == 2
    assert counted(times[(times < 660) | (times > 19_940)]) == 2
    assert counted(times[:0]) == 0
    assert counted(np.array([-60.0, 0.0, 660.0]), [(0.0, 600.0)]) == 0
    # It turns between a visit of this recording and one of another.
    assert (
        counted(times[(times > 700) & (times < 4000)], [(0.0, 600.0), (4000.0, 4000.0)]) == math.inf
    )


def test_bad_input() -> None:
    with pytest.raises(InvalidValue, match=r"ways must be in 1\.\.50, got 0"):
        place_noise(REQUEST, 0)
    with pytest.raises(InvalidValue, match="must have an epsilon"):
        place_noise(Request((), leave=300.0))
    with pytest.raises(InvalidValue, match="must begin within 240 s"):
        place_noise(Request((), steady=900))
    with pytest.raises(Refused, match=r"ask for at most \d+ % of this radius"):
        place_noise(Request((), radius=300.0), 50)
