"""Null spaces of exact rank."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trailveil.gp.extended import exact_null_space

SEEDS = st.integers(0, 2**32 - 1)


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
    assert np.all(np.abs(matrix @ basis) <= 1e-13 * np.maximum(sizes, 1e-290))


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
