"""The sets of adversaries, by name."""

import pytest

from trailveil.adversaries import DEFAULT, Named, at_speed, every, moving, named, seeing_stillness
from trailveil.adversary import PLAIN
from trailveil.errors import InvalidValue
from trailveil.kernels import Constant, IntegratedOU, Matern32, White

KERNEL = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
WINDOW = (100.0, 700.0)


def test_names() -> None:
    assert named(["default"]) == DEFAULT == tuple(Named)
    assert named([]) == (Named.PLAIN,)
    assert named(["path", "still"]) == (Named.PLAIN, Named.STILL, Named.PATH)
    assert named(["point", "default"]) == DEFAULT
    with pytest.raises(InvalidValue, match="default, plain, still, point, path, speeds, got 'x'"):
        named(["x"])


def test_the_default_is_ten_of_a_stay_and_five_of_a_time() -> None:
    found = every(DEFAULT, KERNEL, [WINDOW])
    assert len(found) == len({one.name for one in found}) == 10
    assert found[0] == PLAIN
    assert [one.still for one in found] == [()] * 5 + [(WINDOW,)] * 5
    assert len(every(DEFAULT, KERNEL)) == 5
    assert {one.kernel for one in found} == {None, at_speed(KERNEL, 1.0), at_speed(KERNEL, 10.0)}


def test_who_does_not_see_stillness_knows_nothing_within_the_stay() -> None:
    assert all(one.unseen == (WINDOW,) for one in moving(DEFAULT, KERNEL, [WINDOW]))
    assert seeing_stillness((Named.PLAIN, Named.POINT), KERNEL, [WINDOW]) == []
    assert seeing_stillness(DEFAULT, KERNEL, []) == []


def test_speeds_are_of_a_prior_that_has_one() -> None:
    assert at_speed(KERNEL, 7.0) == IntegratedOU(7.0, 60.0) + Constant(1e5) + White(2.0)
    still = Matern32(100.0, 300.0) + White(2.0)
    assert at_speed(still, 7.0) is None
    assert len(moving(DEFAULT, still)) == 3
    walking = IntegratedOU(1.0, 60.0) + Constant(1e5) + White(2.0)
    assert len(moving(DEFAULT, walking)) == 4  # one of the two speeds is its own
