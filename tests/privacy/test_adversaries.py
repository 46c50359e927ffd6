"""The sets of adversaries by name: who is in them, in which order, and what each believes."""

import pytest

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import Constant, IntegratedOU, Matern32, Sum, White
from trailveil.privacy.adversaries import (
    DEFAULT,
    Named,
    at_speed,
    every,
    moving,
    named,
    seeing_stillness,
)
from trailveil.privacy.adversary import PLAIN, Adversary, Known

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
