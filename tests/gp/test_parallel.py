"""Parallel sums of noises: laws of Anderson and Duffin, and the limit in many digits."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.parallel import exact_null_space, parallel_sum

SEEDS = st.integers(0, 2**32 - 1)


def noise(seed: int, size: int = 5, rank: int | None = None) -> FloatArray:
    """A positive semidefinite matrix (size, size); its rank drawn where none is given."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, int(rng.integers(0, size + 1)) if rank is None else rank))
    return np.asarray(factor @ factor.T) * float(10.0 ** rng.uniform(-2, 2))


def limit(first: FloatArray, second: FloatArray) -> FloatArray:
    """((A + e I)^-1 + (B + e I)^-1)^-1 for e = 1e-150, in 400 digits."""
    with mpmath.workdps(400):
        size = first.shape[0]
        little: Any = mpmath.mpf(10) ** -150 * mpmath.eye(size)
        first_noise, two = (mpmath.matrix(part.tolist()) + little for part in (first, second))
        total = (first_noise**-1 + two**-1) ** -1
        return np.array([[float(total[i, j]) for j in range(size)] for i in range(size)])


def close(computed: FloatArray, expected: FloatArray, scale: FloatArray) -> bool:
    return bool(
        np.all(np.abs(computed - expected) <= 1e-11 * np.max(np.abs(scale), initial=1e-300))
    )


@given(SEEDS, SEEDS)
def test_it_commutes_and_is_between_nothing_and_either(first: int, two: int) -> None:
    a, b = noise(first), noise(two)
    total = parallel_sum(a, b)
    assert close(total, parallel_sum(b, a), total)
    assert np.linalg.eigvalsh(total)[0] >= -1e-14 * np.abs(total).max()
    for other in (a, b):
        lowest = np.linalg.eigvalsh(other - total)[0]
        assert lowest >= -1e-13 * np.abs(other).max()


@given(SEEDS, st.floats(1e-3, 1e3))
def test_with_a_multiple_of_itself(seed: int, factor: float) -> None:
    a = noise(seed)
    assert close(parallel_sum(a, factor * a), factor / (1 + factor) * a, a)


@given(SEEDS, SEEDS, SEEDS)
def test_it_is_associative(first: int, two: int, three: int) -> None:
    a, b, c = (noise(seed, rank=5) for seed in (first, two, three))
    before, right = parallel_sum(parallel_sum(a, b), c), parallel_sum(a, parallel_sum(b, c))
    assert np.allclose(before, right, rtol=0, atol=1e-9 * np.abs(before).max())


@given(SEEDS, SEEDS)
def test_more_noise_in_either_never_makes_it_less(first: int, two: int) -> None:
    a, b, more = noise(first), noise(two), noise(two ^ first, rank=1)
    grown, was = parallel_sum(a + np.eye(5) + more, b), parallel_sum(a + np.eye(5), b)
    assert np.linalg.eigvalsh(grown - was)[0] >= -1e-12 * np.abs(b).max(initial=0.0)


@given(SEEDS, SEEDS)
def test_its_quadratic_form_is_the_least_of_a_split(first: int, two: int) -> None:
    a, b = noise(first, rank=5), noise(two, rank=5)
    x = np.random.default_rng(first ^ two).normal(size=5)
    y = np.linalg.solve(a + b, a @ x)  # where the gradient of the split is zero
    least = (x - y) @ a @ (x - y) + y @ b @ y
    assert x @ parallel_sum(a, b) @ x == pytest.approx(least, rel=1e-6)


@given(SEEDS, SEEDS, st.integers(0, 3), st.integers(0, 3), st.integers(0, 2))
def test_singular_noises_against_the_limit(
    seed: int, two: int, first_rank: int, second_rank: int, common: int
) -> None:
    """Small whole numbers, so that the ranges meet exactly where they are meant to."""
    rng = np.random.default_rng([seed, two])
    shared = rng.integers(-3, 4, (5, common))
    first = np.hstack([shared, rng.integers(-3, 4, (5, first_rank))])
    second = np.hstack([shared, rng.integers(-3, 4, (5, second_rank))])
    a, b = (np.asarray(part @ part.T, dtype=np.float64) for part in (first, second))
    expected = limit(a, b)
    assert np.allclose(parallel_sum(a, b), expected, rtol=0, atol=1e-9 * max(1.0, np.abs(a).max()))


def test_two_different_directions_leave_nothing() -> None:
    f, g = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0 + 1e-6])
    assert np.array_equal(parallel_sum(np.outer(f, f), np.outer(g, g)), np.zeros((3, 3)))
    assert np.allclose(parallel_sum(np.outer(f, f), np.outer(f, f)), np.outer(f, f) / 2)


def test_numbers_add_as_resistances_in_parallel() -> None:
    assert parallel_sum(np.array([[3.0]]), np.array([[6.0]]))[0, 0] == pytest.approx(2.0)
    assert parallel_sum(np.zeros((1, 1)), np.array([[6.0]]))[0, 0] == 0.0
    assert parallel_sum(np.array([[1e20]]), np.array([[1e-20]]))[0, 0] == pytest.approx(1e-20)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (np.eye(2), np.eye(3), "as many rows"),
        (np.eye(2), -np.eye(2), "the second noise must be positive semidefinite"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), np.eye(2), "the first noise must be symmetric"),
        (np.ones((2, 3)), np.eye(2), "must be a square matrix"),
    ],
)
def test_what_is_no_noise_is_refused(first: FloatArray, second: FloatArray, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        parallel_sum(first, second)


@given(SEEDS, st.integers(0, 6), st.integers(1, 6), st.integers(0, 4))
def test_an_exact_null_space_is_one(seed: int, rows: int, columns: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    inner = rng.integers(-4, 5, (rows, rank)) @ rng.integers(-4, 5, (rank, columns))
    scales = 2.0 ** rng.integers(-60, 60, columns)  # exact, so that the rank stays what it is
    matrix = inner * scales
    basis = exact_null_space(matrix)
    expected = columns - int(np.linalg.matrix_rank(inner)) if rows else columns
    assert basis.shape == (columns, expected)
    assert np.allclose(basis.T @ basis, np.eye(expected), atol=1e-14)
    sizes = np.abs(matrix) @ np.abs(basis)
    assert np.all(np.abs(matrix @ basis) <= 1e-13 * np.maximum(sizes, 1e-300))


def test_a_last_digit_is_another_direction() -> None:
    column = np.array([[1.0], [3.0], [7.0]])
    two = column.copy()
    two[2, 0] = np.nextafter(7.0, 8.0)
    assert exact_null_space(np.hstack([column, -column])).shape == (2, 1)
    assert exact_null_space(np.hstack([column, -two])).shape == (2, 0)


def test_rows_beyond_the_first_few_count() -> None:
    """The rank shows in a row that a choice by size leaves to the end."""
    matrix = np.zeros((50, 2))
    matrix[:49] = np.arange(1.0, 50.0)[:, None] * 1e6
    matrix[49] = [1.0, 1.0 + 2.0**-50]
    assert exact_null_space(matrix).shape == (2, 0)
    assert exact_null_space(matrix[:49]).shape == (2, 1)
