"""The sets of adversaries by name: who is in them, in which order, and what each believes."""

import pytest

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import Constant, IntegratedOU, Matern32, Sum, White
from trailveil.privacy.adversaries import (
    DEFAULT,
    Named,
    at_speed,
    kernels_of,
    named,
)

MOVING = IntegratedOU(3.0, 60.0) + White(2.0) + Constant(1e5)
MATERN = Matern32(80.0, 300.0) + White(2.0) + Constant(1e5)


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
