"""Curves between knots against scipy's splines, and their integrals against quadrature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from scipy.interpolate import CubicHermiteSpline

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots, rows_within

KNOTS = [(0, 1), (0, 20, 60, 98, 170), (0, 1, 2, 86_400), (0, 7, 3600, 3601, 5100)]


def spline(knots: Knots, coefficients: FloatArray) -> CubicHermiteSpline:
    whole = np.array([coefficients[0], 0.0, *coefficients[1:], 0.0, 0.0])
    return CubicHermiteSpline(np.array(knots.seconds, dtype=float), whole[::2], whole[1::2])


def drawn(knots: Knots, seed: int) -> FloatArray:
    """Coefficients of about one size: slopes by the widths of the pieces."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=knots.size) * np.where(np.arange(knots.size) % 2, 1, 0.01))


@pytest.mark.parametrize("seconds", KNOTS)
def test_rows_are_the_curves(seconds: tuple[int, ...]) -> None:
    knots, rng = Knots(seconds), np.random.default_rng(1)
    away = np.sort(np.hstack([rng.uniform(0, knots.end, 200), seconds]))
    coefficients = drawn(knots, 2)
    curve = spline(knots, coefficients)(away)
    np.testing.assert_allclose(
        knots.rows(away) @ coefficients, curve, atol=1e-12 * max(1, abs(curve).max())
    )
    slopes = spline(knots, coefficients).derivative()(away)
    np.testing.assert_allclose(
        knots.rows(away, slopes=True) @ coefficients, slopes, atol=1e-12 * abs(slopes).max()
    )


@pytest.mark.parametrize("seconds", KNOTS)
def test_rows_are_constant_inside_and_nothing_beyond(seconds: tuple[int, ...]) -> None:
    knots = Knots(seconds)
    edge = np.eye(knots.size)[0]
    np.testing.assert_array_equal(knots.rows([-1e9, -1.0, 0.0]), [edge] * 3)
    assert not knots.rows([knots.end, knots.end + 0.1, 1e9]).any()


@pytest.mark.parametrize("seconds", KNOTS)
def test_rows_have_no_kink(seconds: tuple[int, ...]) -> None:
    """Slope 0 at the window and at the end, and the same on both sides of each knot."""
    knots, h = Knots(seconds), 1e-3
    before = knots.rows(np.array(seconds) - h)
    right = knots.rows(np.array(seconds) + h)
    middle = knots.rows(seconds)
    bend = np.abs((right - middle) - (middle - before)).max(axis=0)
    assert np.all(bend < 20 * h**2 / min(np.diff(seconds)))


@pytest.mark.parametrize("seconds", KNOTS)
def test_forms_are_the_integrals(seconds: tuple[int, ...]) -> None:
    """Gauss's rule with 4 points is exact for polynomials of degree 7; these have 6 at most."""
    knots = Knots(seconds)
    nodes, weights = leggauss(4)
    ends = np.array(seconds, dtype=float)
    half = np.diff(ends) / 2
    at = (ends[:-1] + half)[:, None] + half[:, None] * nodes
    share = half[:, None] * weights
    for seed in range(5):
        a, b = drawn(knots, seed), drawn(knots, seed + 100)
        for order, form in enumerate(knots.forms()):
            values = [
                spline(knots, each).derivative(order)(at) if order else spline(knots, each)(at)
                for each in (a, b)
            ]
            expected = np.sum(share * values[0] * values[1])
            scale = np.sqrt(np.prod([np.sum(share * x**2) for x in values]))
            assert a @ form @ b == pytest.approx(expected, abs=1e-11 * scale)


def test_coefficients_are_counted() -> None:
    knots = Knots((0, 20, 60, 98, 170))
    assert (knots.size, knots.end) == (7, 170)
    assert [knots.before(x) for x in (0, 1, 20, 21, 61, 171)] == [1, 1, 1, 3, 5, 7 + 2]


@pytest.mark.parametrize("seconds", [(), (0,), (1, 2), (0, 5, 5), (0, 9, 5), (-1, 0, 2)])
def test_knots_must_grow_from_nothing(seconds: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match="knots must grow from 0") as refused:
        Knots(seconds)
    assert "\n" not in str(refused.value)


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60, unique=True).map(sorted),
    st.integers(-40, 440),
    st.integers(0, 90),
    st.sampled_from([0.0, 0.1, 7.0, 59.9, 1e3]),
)
def test_rows_within_are_those_that_are_no_further(
    times: list[int], begin: int, lasts: int, around: float
) -> None:
    """To the last bit: a fix at the edge of a cut is cut, or not, by its seconds to the window."""
    seconds, span = np.array(times) / 10, (begin / 10, (begin + lasts) / 10)
    away = np.maximum(np.maximum(span[0] - seconds, 0), np.maximum(seconds - span[1], 0))
    rows = rows_within(seconds, span, around)
    assert np.arange(seconds.size)[rows].tolist() == np.flatnonzero(away <= around).tolist()
