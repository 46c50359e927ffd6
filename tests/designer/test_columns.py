"""Columns of noise: canonical, and with all of their digits."""

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.designer import columns
from trailveil.designer.columns import (
    combined_columns,
    needs_digits,
    prior_columns,
    spanned,
    symmetric_root,
    turn,
    without_process,
    written,
)
from trailveil.errors import InvalidValue
from trailveil.gp.extended import LARGEST_EXTENDED
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Kernel, White
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior


def prior(count: int = 9, kernel: Kernel | None = None) -> Prior:
    return Prior(kernel or RBF(2.5), np.arange(float(count)))


def normal(seed: int, *shape: int) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(shape)


def exact(terms: FloatArray) -> list[Fraction]:
    """Each number of (terms, n, r) as the sum that it stands for."""
    return [sum(map(Fraction, column), Fraction(0)) for column in terms.reshape(len(terms), -1).T]


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6))
def test_the_symmetric_root_is_the_positive_one(seed: int, size: int, rank: int) -> None:
    factor = normal(seed, size, rank)
    root = symmetric_root(factor @ factor.T)
    np.testing.assert_allclose(root @ root, factor @ factor.T, atol=1e-12 * size * rank)
    assert np.array_equal(root, root.T)
    assert np.linalg.eigvalsh(root)[0] >= -1e-12


def test_the_symmetric_root_does_not_jump_where_eigenvalues_meet() -> None:
    split = symmetric_root(np.diag([1.0, 1.0 + 1e-9, 2.0]))
    turned = normal(0, 3, 3) * 1e-10
    other = symmetric_root(np.diag([1.0 + 1e-9, 1.0, 2.0]) + turned + turned.T)
    assert np.abs(split - other).max() < 1e-8


@given(st.integers(0, 1000))
def test_a_turned_factor_does_not_depend_on_the_factor_it_was_made_from(seed: int) -> None:
    factor, reference = normal(seed, 7, 3), normal(seed + 1, 7, 3)
    rotation = np.linalg.qr(normal(seed + 2, 3, 3))[0]
    turned = factor @ turn(factor, reference)
    other = factor @ rotation @ turn(factor @ rotation, reference)
    np.testing.assert_allclose(turned @ turned.T, factor @ factor.T, atol=1e-12)
    size = np.linalg.svd(reference.T @ factor, compute_uv=False)
    np.testing.assert_allclose(turned, other, atol=1e-11 * size[0] / size[-1])


@given(st.integers(-(2**1100), 2**1100))
def test_terms_hold_the_leading_954_bits(value: int) -> None:
    terms = columns._split(value)
    remainder = abs(Fraction(value, 2**1024) - sum(map(Fraction, terms), Fraction(0)))
    assert remainder <= Fraction(abs(value), 2**1024) / 2**953
    assert all(abs(a) >= abs(b) for a, b in pairwise(terms))


def test_columns_of_the_prior_are_those_of_its_formula() -> None:
    chosen = np.zeros((9, 2))
    chosen[[1, 4, 5]] = normal(1, 3, 2)
    computed = exact(prior_columns(prior(), chosen))
    with mpmath.workprec(1100):
        for entry in range(9 * 2):
            row, column = divmod(entry, 2)
            expected = mpmath.fsum(
                mpmath.exp(-(mpmath.mpf(row - at) ** 2) / (2 * mpmath.mpf(2.5) ** 2))
                * mpmath.mpf(float(chosen[at, column]))
                for at in range(9)
            )
            value = mpmath.mpf(computed[entry].numerator) / computed[entry].denominator
            assert abs(value - expected) < mpmath.mpf(2) ** -940


def test_columns_can_be_combined_without_losing_digits() -> None:
    first, second = normal(2, 9, 2), normal(3, 9, 1)
    parts = [
        written(prior().times, prior_columns(prior(), coefficients))
        for coefficients in (first, second)
    ]
    mixed = normal(4, 3, 2)
    computed = combined_columns([*parts], mixed)
    # The same in exact rational arithmetic, from the terms of the parts.
    given_terms = [np.concatenate([part.factor[None], part.refinement]) for part in parts]
    numbers = [exact(terms) for terms in given_terms]
    for row in range(9):
        values = [*numbers[0][2 * row : 2 * row + 2], numbers[1][row]]
        for column in range(2):
            expected = sum(
                (v * Fraction(c) for v, c in zip(values, mixed[:, column], strict=True)),
                Fraction(0),
            )
            got = exact(computed)[2 * row + column]
            assert abs(got - expected) < Fraction(1, 2**930)


def test_only_a_prior_that_undoes_rounding_needs_digits() -> None:
    assert needs_digits(prior(), 1.0)
    assert needs_digits(prior(kernel=RBF(2.5) + White(1e-5)), 1.0)
    assert not needs_digits(prior(kernel=RBF(2.5) + White(0.1)), 1.0)
    assert not needs_digits(prior(LARGEST_EXTENDED + 1), 1.0)


def test_spanned_noise_leaves_the_rows_of_its_own_columns_alone() -> None:
    column = np.zeros((9, 1))
    column[4] = 0.5
    for kernel in (RBF(2.5), RBF(2.5) + White(0.1)):
        mechanism = spanned(prior(kernel=kernel), normal(5, 9, 1), column)
        assert (mechanism.refinement is None) == (kernel != RBF(2.5))
        np.testing.assert_allclose(mechanism.factor[4], [0.5, 0.0])
        others = np.arange(9) != 4
        expected = prior(kernel=kernel).covariance @ normal(5, 9, 1)
        np.testing.assert_allclose(mechanism.factor[others, 1:], expected[others], rtol=1e-12)


def test_a_process_has_no_columns() -> None:
    moving = Mechanism(prior().times, np.zeros((9, 1)), process=RBF(1.0))
    with pytest.raises(InvalidValue, match="process"):
        without_process(moving)
    with pytest.raises(InvalidValue, match="withheld"):
        without_process(Mechanism(prior().times, np.ones((9, 1))).withholding(np.arange(9) == 2))
