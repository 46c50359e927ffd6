"""What adversaries know: what it leaves without a release, and which false tracks it allows."""

import math

import numpy as np
import pytest

from tests.oracles.dense_movement import Law, Motion, variance_of
from trailveil.errors import InvalidValue
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import ACCURACY, Knowledge
from trailveil.privacy.movement import Movement

SPEED, TAU = 2.0, 45.0
MOVING = Movement(SPEED, TAU)
KNOTS = Knots((0, 20, 60, 98, 170))


def moved(times: list[float]) -> Motion:
    return Motion(times, [Law(math.inf, SPEED, TAU)], SPEED)


@pytest.mark.parametrize("steady", [0, 50])
@pytest.mark.parametrize("away", [60.0, 61.5, 300.0, 4000.0])
def test_a_known_place_leaves_what_dense_conditioning_leaves(steady: int, away: float) -> None:
    """All of the movement within the window and steady is known, and the place to an accuracy."""
    motion = moved([-200.0 - steady, -200.0, 0.0, float(steady), away])
    noisy = np.zeros((1, motion.size + 1))
    noisy[0, :-1], noisy[0, -1] = motion.position(away), ACCURACY
    inside = np.vstack(
        [
            motion.position(float(steady)) - motion.position(-200.0 - steady),
            motion.position(0.0) - motion.position(-200.0 - steady),
            motion.velocity(-200.0 - steady, float(steady)),
        ]
    )
    rows = np.vstack([noisy, np.hstack([inside, np.zeros((4, 1))])])
    secret = np.hstack([motion.position(0.0)[0], 0.0])
    posterior = variance_of(secret, 1.0, rows, np.array([1.0, 0, 0, 0, 0]))
    who = Knowledge("who", MOVING, steady=steady, place=60)
    assert who.variance(1, away) == pytest.approx(posterior, rel=1e-9)
    assert who.variance(2, away) == who.variance(1, away)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("path", [60, 300, 2000])
def test_a_known_path_leaves_what_dense_conditioning_leaves(sides: int, path: int) -> None:
    times = [-100.0 - path, -100.0, 0.0, float(path), path + 10.0]
    motion = moved(times)
    inside = np.vstack([motion.position(0.0) - motion.position(-100.0), motion.velocity(-100.0, 0)])
    ends = [float(path), -100.0 - path][:sides]
    known = np.vstack([motion.position(*ends, path + 10.0), motion.velocity(*ends)])
    levels = np.hstack([np.zeros(3), np.ones(sides + 1), np.zeros(sides)])
    posterior = variance_of(motion.position(0.0)[0], 1.0, np.vstack([inside, known]), levels)
    who = Knowledge("who", MOVING, path=path)
    assert who.variance(sides) == pytest.approx(posterior, rel=1e-9)


def test_a_stranger_knows_no_place() -> None:
    assert Knowledge("who", MOVING, steady=240).variance(2) == math.inf


@pytest.mark.parametrize(
    ("known", "track", "free"),
    [
        ({}, [1, 0, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]),
        ({"steady": 60}, [1, 1, 0, 1, 0, 0, 0], [5, 6]),
        ({"path": 98}, [1, 0, 0, 0, 0, 0, 0], [1, 2, 3, 4]),
        ({"steady": 20, "path": 98}, [1, 1, 0, 0, 0, 0, 0], [3, 4]),
        ({"place": 60}, [1, 0, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_false_tracks_are_those_that_knowledge_allows(
    known: dict[str, int], track: list[int], free: list[int]
) -> None:
    """Values and slopes: of the edge, 20, 60 and 98 s; 1 and level near by, nothing far away."""
    fixed, columns = Knowledge("who", MOVING, **known).fixed(KNOTS)
    assert fixed.tolist() == track
    assert np.arange(KNOTS.size)[columns].tolist() == free


@pytest.mark.parametrize(
    "known",
    [
        {"steady": -1},
        {"place": -1},
        {"path": 0},
        {"steady": 60, "path": 60},
        {"place": 60, "path": 300},
        {"steady": 60, "place": 60},
    ],
)
def test_knowledge_that_does_not_go_together_is_refused(known: dict[str, int]) -> None:
    with pytest.raises(InvalidValue, match=r"must be") as refused:
        Knowledge("who", MOVING, **known)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("loss", "prior", "posterior"),
    [
        (1e-4, math.inf, 100.0),
        (0.0, 30.0, 30.0),
        (1 / 900, 40.0, 24.0),
        (0.0, math.inf, math.inf),
        (math.inf, 5.0, 0.0),
    ],
)
def test_precisions_add(loss: float, prior: float, posterior: float) -> None:
    assert Exposure.of_loss("somebody", loss, prior).posterior == pytest.approx(
        posterior, rel=1e-15
    )


def test_somebody_without_any_idea_is_the_default() -> None:
    assert Exposure.of_loss("somebody", 0.25) == Exposure.of_loss("somebody", 0.25, math.inf)
