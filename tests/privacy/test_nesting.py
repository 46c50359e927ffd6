"""Whether one noise is another and independent noise besides: decided exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.nesting import embedding, is_positive, nests

KNOTS, MORE = (0, 20, 60, 300), (0, 20, 45, 60, 150, 300, 900)


def test_embedding_is_that_of_the_curves() -> None:
    """The same curve, by the coefficients on more knots, at every time."""
    rows = np.array(embedding(KNOTS, MORE), dtype=np.float64)
    away = np.linspace(0, 1000, 501)
    same = Knots(MORE).rows(away) @ rows
    assert np.allclose(same, Knots(KNOTS).rows(away), rtol=0, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_is_positive_is_so_to_the_last_digit(size: int, seed: int) -> None:
    """A Gram matrix is positive; less its own smallest direction, of whole numbers, it is not."""
    random = np.random.default_rng(seed)
    root = random.integers(-9, 10, (size, size))
    whole = [[Fraction(int(x)) for x in row] for row in root @ root.T + np.eye(size, dtype=int)]
    assert is_positive(whole)
    # Singular, by a direction that floating point cannot tell from a positive one.
    vector = random.integers(-9, 10, size - 1)
    base = np.array(whole, dtype=object)[: size - 1, : size - 1]
    column = base @ np.array([Fraction(int(x)) for x in vector], dtype=object)
    corner = sum((Fraction(int(x)) * y for x, y in zip(vector, column, strict=True)), Fraction(0))
    for add, positive in ((Fraction(1, 10**40), True), (Fraction(0), False)):
        matrix = [[*row, y] for row, y in zip(base.tolist(), column, strict=True)]
        matrix.append([*column, corner + add])
        assert is_positive(matrix) == positive


@pytest.mark.parametrize("odd", [False, True])
def test_nests_where_independent_noise_is_added(odd: bool) -> None:
    random = np.random.default_rng(1)
    size = 2 * len(KNOTS) - 3 - odd
    less = np.tril(random.normal(size=(size, size)))
    rows = np.array(embedding(KNOTS, MORE), dtype=np.float64)[int(odd) :, int(odd) :]
    gram = rows @ less @ less.T @ rows.T
    wider = np.linalg.cholesky(gram + 1e-3 * np.eye(len(gram)))
    assert nests((KNOTS, less.tolist()), (MORE, wider.tolist()), odd=odd)
    assert not nests((KNOTS, (1.1 * less).tolist()), (MORE, wider.tolist()), odd=odd)
    # Equal noise is no more, and one that lacks a single direction is not.
    assert not nests((KNOTS, less.tolist()), (KNOTS, less.tolist()), odd=odd)
