"""Sums of covariances by the recursion: equal to full matrices, for every Markov kernel."""

import numpy as np
import pytest

from tests.markov_cases import WITH_NOISE, nasty_times
from trailveil.gp.balls import BALLS, floats, lines_of, matrix_of, precision, rows_of, stacked
from trailveil.gp.kernels import RBF, Matern32, StoppedClock, Warped
from trailveil.privacy.certified.observed import covariance
from trailveil.privacy.certified.recursion import bits_of_times, parts, product

pytest.importorskip("flint")


@pytest.mark.parametrize("name", [label for label in WITH_NOISE if "two clocks" not in label])
def test_the_recursion_is_the_formula(name: str) -> None:
    kernel = WITH_NOISE[name]
    terms = parts(kernel)
    assert terms is not None
    of = nasty_times(25, 3)
    # Times that are the same as some of the others, before and after all of them, and doubled.
    to = np.concatenate([of[3:9], [of[5], 17.25, of[-1] + 10.0]])
    values = np.random.default_rng(1).standard_normal((25, 2))
    with precision(256):
        x = matrix_of(values)
        swept = stacked(product(terms, to, of, lines_of(x)), 2)
        whole = covariance(kernel, to, of) * x
        assert swept.overlaps(whole)
        radii = [entry.rad() for entry in swept.entries()]
        scale = max(abs(value) for value in whole.entries())
        assert all(radius < 1e-50 * scale for radius in radii)


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


def test_kernels_without_sums_have_none() -> None:
    clock = StoppedClock(((1.0, 2.0),))
    assert parts(RBF(3.0)) is None
    assert parts(RBF(3.0) + Matern32(2.0)) is None
    assert parts(Warped(Matern32(3.0), lambda times: 2 * times)) is None
    assert parts(Warped(Matern32(3.0), clock)) is not None


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


def test_rows_and_lines_are_those_of_the_matrix() -> None:
    values = np.arange(6.0).reshape(3, 2)
    balls = matrix_of(values)
    assert [[float(v) for v in row] for row in rows_of(balls)] == values.tolist()
    np.testing.assert_array_equal(floats(stacked(lines_of(balls), 2)), values)
