"""The sets of adversaries by name: who is in them, in which order, and what each believes."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from trailveil.designer import design
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Matern32, Sum, White
from trailveil.privacy.adversaries import (
    DEFAULT,
    Named,
    at_speed,
    every,
    moving,
    named,
    seeing_stillness,
)
from trailveil.privacy.adversary import PLAIN, Adversary, Known, exposure
from trailveil.privacy.mechanism import no_release
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

MOVING = IntegratedOU(3.0, 60.0) + White(2.0) + Constant(1e5)
MATERN = Matern32(80.0, 300.0) + White(2.0) + Constant(1e5)
STAY = (300.0, 900.0)
OTHER = (1500.0, 1800.0)


def test_the_default_is_all_of_them_wherever_it_is_said() -> None:
    assert named(["default"]) == named(["plain", "default"]) == DEFAULT == tuple(Named)
    assert DEFAULT == ("plain", "still", "point", "path", "speeds")


def test_some_of_them_are_in_one_order_and_the_plain_one_is_always_there() -> None:
    assert named([]) == (Named.PLAIN,)
    assert named(["speeds", "still", "speeds"]) == (Named.PLAIN, Named.STILL, Named.SPEEDS)
    assert named(reversed(DEFAULT)) == DEFAULT


@pytest.mark.parametrize("name", ["everyone", "", "PLAIN", "plain,still"])
def test_a_name_that_is_unknown_is_refused(name: str) -> None:
    stated = "default, plain, still, point, path, speeds"
    with pytest.raises(InvalidValue, match=f"must be {stated}, got {name!r}"):
        named(["still", name])


def test_the_default_set_for_a_time() -> None:
    adversaries = every(DEFAULT, MOVING)
    assert [adversary.name for adversary in adversaries] == [
        "plain",
        "knows one true place 60 s or more away",
        "knows the path 300 s or more away",
        "knows that the speed is 1 m/s",
        "knows that the speed is 10 m/s",
    ]
    assert adversaries[0] == PLAIN
    assert adversaries[1] == Adversary(adversaries[1].name, point=Known(60.0, 10.0))
    assert adversaries[2] == Adversary(adversaries[2].name, path=Known(300.0, 10.0))
    speeds = [at_speed(MOVING, speed) for speed in (1.0, 10.0)]
    assert [adversary.kernel for adversary in adversaries[3:]] == speeds


def test_the_default_set_for_stays() -> None:
    windows = [STAY, OTHER]
    passing, seeing = moving(DEFAULT, MOVING), seeing_stillness(DEFAULT, MOVING, windows)
    assert every(DEFAULT, MOVING, windows) == [*passing, *seeing]
    assert len(passing) == len(seeing) == 5
    assert all(stranger.still == () for stranger in passing)
    for adversary, other in zip(passing, seeing, strict=True):
        assert other.still == (STAY, OTHER)
        assert (other.point, other.path, other.kernel) == (
            adversary.point,
            adversary.path,
            adversary.kernel,
        )
        assert "sees standing still" in other.name
    assert len({anyone.name for anyone in [*passing, *seeing]}) == 10


def test_who_is_not_named_is_not_there() -> None:
    assert every([Named.PLAIN], MOVING, [STAY]) == [PLAIN]
    assert [adversary.still for adversary in every([Named.PLAIN, Named.STILL], MOVING, [STAY])] == [
        (),
        (STAY,),
    ]
    assert seeing_stillness([Named.PLAIN, Named.POINT], MOVING, [STAY]) == []
    assert seeing_stillness(DEFAULT, MOVING, []) == []
    assert [adversary.point for adversary in every([Named.PLAIN, Named.POINT], MOVING)] == [
        None,
        Known(60.0, 10.0),
    ]


def test_what_is_secret_as_a_whole_is_so_for_each_who_does_not_see_it() -> None:
    open_ones, around = moving(DEFAULT, MOVING), moving(DEFAULT, MOVING, [STAY])
    assert [adversary.unseen for adversary in around] == [(STAY,)] * 5
    assert [adversary.name for adversary in around] == [open_one.name for open_one in open_ones]
    assert [open_one.unseen for open_one in open_ones] == [()] * 5


def test_who_knows_the_speed_the_prior_has_is_the_one_without() -> None:
    walks = IntegratedOU(1.0, 60.0) + White(2.0) + Constant(1e5)
    assert [adversary.name for adversary in every([Named.PLAIN, Named.SPEEDS], walks)] == [
        "plain",
        "knows that the speed is 10 m/s",
    ]


def test_speeds_are_for_a_prior_of_movement_only() -> None:
    assert [adversary.name for adversary in every(DEFAULT, MATERN)] == [
        adversary.name for adversary in every(DEFAULT, MOVING)[:3]
    ]
    assert len(every(DEFAULT, MATERN, [STAY])) == 6


def test_the_same_movement_at_another_speed() -> None:
    expected = Sum((IntegratedOU(10.0, 60.0), White(2.0), Constant(1e5)))
    assert at_speed(MOVING, 10.0) == expected
    assert at_speed(IntegratedOU(3.0, 60.0, 5.0), 1.0) == Sum((IntegratedOU(1.0, 60.0, 5.0),))
    assert at_speed(MOVING, 3.0) == MOVING
    assert at_speed(MATERN, 10.0) is None
    assert at_speed(MOVING + IntegratedOU(1.0, 20.0), 10.0) is None


TIMES = np.arange(20.0)
SUMS, WHEN, ERRORS = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, -1.0]]), [2.5, 13.0, 17.2], [0.01, 0.3]


def test_an_adversary_of_any_linear_knowledge_is_conditioned_on_it() -> None:
    """Against one dense matrix of the secret, the recorded values and the times of the sums."""
    prior = Prior(RBF(3.0) + Constant(2.0) + White(0.2), TIMES)
    secret, knows = Secret.at(9.0), Adversary.knows(SUMS, WHEN, ERRORS)
    mechanism, _ = design(prior, [secret], budget=5.0)
    at = np.concatenate([[9.0], TIMES, WHEN])
    joint = np.exp(-((at[:, None] - at) ** 2) / 18) + 4
    sums = np.hstack([np.zeros((2, 21)), SUMS])
    values = np.hstack([np.zeros((20, 1)), np.eye(20), np.zeros((20, 3))])

    def left(rows: FloatArray, noise: FloatArray) -> float:
        seen = rows @ joint @ rows.T + noise
        given = joint - joint @ rows.T @ np.linalg.solve(seen, rows @ joint)
        return float(np.sqrt(given[0, 0]))

    exposed = exposure(prior, secret, mechanism, knows)
    errors, noise = np.diag(ERRORS), 0.04 * np.eye(20) + mechanism.covariance()
    assert exposed.before == pytest.approx(left(sums, errors), rel=1e-9)
    both = left(np.vstack([sums, values]), block_diag(errors, noise))
    assert exposed.after == pytest.approx(both, rel=1e-6)


def test_noise_is_made_against_linear_knowledge_and_it_composes() -> None:
    prior = Prior(RBF(3.0) + White(0.2), TIMES)
    secret, knows = Secret.at(9.0), Adversary.knows([1.0, -1.0], [8.0, 10.0], 0.01, name="speed")
    mechanism, certificate = design(prior, [secret], bounds=[1.0], adversaries=[PLAIN, knows])
    losses = [exposure(prior, secret, mechanism, each).loss for each in (PLAIN, knows)]
    assert max(losses) == pytest.approx(1.0, rel=1e-4)
    assert certificate.proved
    still = Adversary.sees_stillness([(12.0, 15.0)])
    assert (knows & still).observed == (still & knows).observed == knows.observed
    assert exposure(prior, secret, mechanism, knows & still).loss != losses[1]


@pytest.mark.parametrize("variance", [0.0, -1.0, float("nan")])
def test_knowledge_has_an_error(variance: float) -> None:
    with pytest.raises(InvalidValue, match="observation"):
        exposure(
            Prior(RBF(3.0), TIMES),
            Secret.at(9.0),
            no_release(TIMES),
            Adversary.knows([1.0], [8.0], variance),
        )
