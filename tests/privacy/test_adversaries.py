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
    kernels_of,
    named,
)
from trailveil.privacy.adversary import PLAIN, Adversary, exposure
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

MOVING = IntegratedOU(3.0, 60.0) + White(2.0) + Constant(1e5)
MATERN = Matern32(80.0, 300.0) + White(2.0) + Constant(1e5)


def test_the_default_is_one_set_wherever_it_is_said() -> None:
    assert named(["default"]) == named(["plain", "default"]) == DEFAULT
    assert DEFAULT == ("plain", "still", "point", "path", "speeds")


def test_some_of_them_are_in_one_order_and_the_plain_one_is_always_there() -> None:
    assert named([]) == (Named.PLAIN,)
    assert named(["speeds", "still", "speeds"]) == (Named.PLAIN, Named.STILL, Named.SPEEDS)
    assert named(reversed(DEFAULT)) == DEFAULT


@pytest.mark.parametrize("name", ["everyone", "", "PLAIN", "plain,still"])
def test_a_name_that_is_unknown_is_refused(name: str) -> None:
    stated = ", ".join(("default", *Named))
    with pytest.raises(InvalidValue, match=f"must be {stated}, got {name!r}"):
        named(["still", name])


def test_who_knows_the_speed_holds_other_priors() -> None:
    assert kernels_of([Named.PLAIN], MOVING) == [MOVING]
    assert kernels_of(DEFAULT, MOVING) == [MOVING, at_speed(MOVING, 1.0), at_speed(MOVING, 10.0)]


def test_speeds_are_for_a_prior_of_movement_that_has_another() -> None:
    walks = IntegratedOU(1.0, 60.0) + White(2.0) + Constant(1e5)
    assert kernels_of(DEFAULT, walks) == [walks, at_speed(walks, 10.0)]
    assert kernels_of(DEFAULT, MATERN) == [MATERN]


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
    assert exposed.prior == pytest.approx(left(sums, errors), rel=1e-9)
    both = left(np.vstack([sums, values]), block_diag(errors, noise))
    assert exposed.posterior == pytest.approx(both, rel=1e-6)


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
        Adversary.knows([1.0], [8.0], variance)
