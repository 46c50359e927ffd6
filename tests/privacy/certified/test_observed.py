"""Kernels in balls: the formulas are those in floats, and times are exact."""

import numpy as np
import pytest

from tests.markov_cases import WITH_NOISE, nasty_times
from trailveil.gp.balls import BALLS, floats, matrix_of, precision
from trailveil.privacy.certified.observed import bits_of_times, covariance

pytest.importorskip("flint")


def test_the_formula_in_balls_is_the_one_in_floats() -> None:
    times = nasty_times(12, 5)
    for name, kernel in WITH_NOISE.items():
        with precision(256):
            middles = floats(covariance(kernel, times, times))
        np.testing.assert_allclose(middles, kernel(times, times), rtol=1e-9, err_msg=name)


def test_the_smaller_of_two_balls_that_overlap_holds_either() -> None:
    with precision(64):
        wide = BALLS.number(1.0) + matrix_of(np.zeros((1, 1)))[0, 0]
        ball, other = wide.union(BALLS.number(2.0)), BALLS.number(1.5)
        smaller = BALLS.minimum(ball, other)
        assert smaller.contains(1.0)
        assert smaller.contains(1.5)


@pytest.mark.parametrize(
    ("numbers", "bits"), [([0.0], 0), ([1.0], 5), ([8.0, 0.5], 9), ([3.0, 4.0], 7)]
)
def test_bits_in_which_times_are_exact(numbers: list[float], bits: int) -> None:
    assert bits_of_times(np.array(numbers)) == bits


def test_differences_of_times_are_exact_in_these_bits() -> None:
    times = np.array([1e-9, 1.5, 86_400.0, 1.7e9])
    with precision(bits_of_times(times)):
        balls = BALLS.numbers(times)
        assert all(step.is_exact() for step in (balls[:, None] - balls[None, :]).ravel())
