"""The likelihood against full covariances in 60 digits, written anew, and its gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import multivariate_normal

from trailveil.errors import InvalidValue, NumericalError
from trailveil.studies.fit import FAMILIES, FitSeries, log_likelihood
from trailveil.studies.fit.likelihood import MOST_POINTS

TIMES = np.array([0.0, 3.0, 4.5, 11.0, 19.0, 40.0])
VALUES = np.array([[1.5, -2.0], [2.5, -2.2], [2.0, 0.5], [4.0, 3.0], [5.5, 2.5], [1.0, 9.0]])
POINTS: dict[str, tuple[float, ...]] = {
    "rbf": (7.0, 2.5, 0.3),
    "matern12": (7.0, 2.5, 0.3),
    "matern32": (7.0, 2.5, 0.3),
    "matern52": (7.0, 2.5, 0.3),
    "periodic": (0.9, 17.0, 2.5, 0.3),
    "integrated-ou": (0.8, 12.0, 0.3),
}


def ou_spread(h: Any, tau: Any) -> Any:
    return 2 * tau * (abs(h) - tau * (1 - mp.exp(-abs(h) / tau)))


ORACLES: dict[str, Callable[..., Any]] = {
    "rbf": lambda a, b, ell, s: s**2 * mp.exp(-((a - b) ** 2) / (2 * ell**2)),
    "matern12": lambda a, b, ell, s: s**2 * mp.exp(-abs(a - b) / ell),
    "matern32": lambda a, b, ell, s: (
        s**2 * (1 + mp.sqrt(3) * abs(a - b) / ell) * mp.exp(-mp.sqrt(3) * abs(a - b) / ell)
    ),
    "matern52": lambda a, b, ell, s: (
        s**2
        * (1 + mp.sqrt(5) * abs(a - b) / ell + 5 * (a - b) ** 2 / (3 * ell**2))
        * mp.exp(-mp.sqrt(5) * abs(a - b) / ell)
    ),
    "periodic": lambda a, b, ell, p, s: (
        s**2 * mp.exp(-2 * mp.sin(mp.pi * (a - b) / p) ** 2 / ell**2)
    ),
    "integrated-ou": lambda a, b, s, tau: (
        s**2 * (ou_spread(a, tau) + ou_spread(b, tau) - ou_spread(a - b, tau)) / 2
    ),
}


def oracle(name: str, logs: Sequence[Any], level: float | None) -> Any:
    """The log density of VALUES, each column N(0, K + noise^2 I + level^2), from its definition."""
    *values, noise = (mp.exp(x) for x in logs)
    n, d = VALUES.shape
    cov = mp.matrix(n, n)
    for i, a in enumerate(TIMES):
        for j, b in enumerate(TIMES):
            cov[i, j] = ORACLES[name](mpf(a), mpf(b), *values) + (noise**2 if i == j else 0)
            cov[i, j] += mpf(level or 0) ** 2
    quadratic = sum(
        (mp.matrix(column).T * mp.lu_solve(cov, mp.matrix(column)))[0]
        for column in VALUES.T.tolist()
    )
    return -(quadratic + d * (mp.log(mp.det(cov)) + n * mp.log(2 * mp.pi))) / 2


@pytest.mark.parametrize("level", [None, 3.0, 1e5])
@pytest.mark.parametrize("name", FAMILIES)
def test_value_and_gradient_equal_60_digits(name: str, level: float | None) -> None:
    likelihood, slopes = log_likelihood(
        FitSeries(TIMES, VALUES), FAMILIES[name], POINTS[name], level
    )
    with mp.workdps(60):
        logs = [mp.log(mpf(value)) for value in POINTS[name]]
        expected = oracle(name, logs, level)
        step = mpf(10) ** -20
        for index, slope in enumerate(slopes):
            ends = [
                oracle(name, [x + sign * step * (i == index) for i, x in enumerate(logs)], level)
                for sign in (1, -1)
            ]
            exact = float((ends[0] - ends[1]) / (2 * step))
            assert slope == pytest.approx(exact, rel=1e-9, abs=1e-9)
    # Rounding of K, up to 1e-16 of its size, times the largest precision, 1 / 0.3^2.
    assert likelihood == pytest.approx(float(expected), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", FAMILIES)
def test_value_equals_the_density_of_scipy(name: str) -> None:
    kernel = FAMILIES[name].build(POINTS[name])
    density = multivariate_normal(np.zeros(6), kernel(TIMES, TIMES))
    expected = sum(density.logpdf(column) for column in VALUES.T)
    likelihood, _ = log_likelihood(FitSeries(TIMES, VALUES), FAMILIES[name], POINTS[name])
    assert likelihood == pytest.approx(expected, rel=1e-11)


def test_noise_belongs_to_each_fix_even_at_one_time() -> None:
    series = FitSeries(np.zeros(2), np.array([[1.0], [-1.0]]))
    likelihood, _ = log_likelihood(series, FAMILIES["rbf"], (5.0, 2.0, 0.5))
    cov = 4.0 + 0.25 * np.eye(2)
    assert likelihood == pytest.approx(
        multivariate_normal([0, 0], cov).logpdf([1.0, -1.0]), rel=1e-12
    )


@given(shift=st.floats(-1e6, 1e6), start=st.floats(-1e6, 1e6))
def test_neither_the_place_nor_the_hour_matters_under_a_wide_level(
    shift: float, start: float
) -> None:
    family, point = FAMILIES["integrated-ou"], POINTS["integrated-ou"]
    here, _ = log_likelihood(FitSeries(TIMES, VALUES), family, point, 1e9)
    elsewhere, _ = log_likelihood(FitSeries(TIMES + start, VALUES + shift), family, point, 1e9)
    # The level itself costs shift^2 / (2 * 1e18) a coordinate, at most 1e-6; times round to 1e-10.
    assert elsewhere == pytest.approx(here, abs=3e-6)


def test_known_parameters_have_no_slope() -> None:
    family = FAMILIES["rbf"].set(length_scale=7.0)
    _, slopes = log_likelihood(FitSeries(TIMES, VALUES), family, POINTS["rbf"])
    _, free = log_likelihood(FitSeries(TIMES, VALUES), FAMILIES["rbf"], POINTS["rbf"])
    assert slopes[0] == 0.0
    np.testing.assert_array_equal(slopes[1:], free[1:])


def test_what_double_precision_cannot_factorise_is_an_error() -> None:
    times = np.arange(30.0)
    with pytest.raises(NumericalError):
        log_likelihood(FitSeries(times, times), FAMILIES["rbf"], (1e4, 1.0, 1e-9))


@pytest.mark.parametrize(
    ("times", "values"),
    [
        ([], []),
        ([0.0, 1.0], [1.0]),
        ([[0.0]], [[1.0]]),
        ([0.0, np.nan], [1.0, 2.0]),
        ([0.0, 1.0], [1.0, np.inf]),
        (np.arange(MOST_POINTS + 1.0), np.arange(MOST_POINTS + 1.0)),
    ],
)
def test_a_series_that_is_none_is_refused(times: Any, values: Any) -> None:
    with pytest.raises(InvalidValue):
        FitSeries(times, values)
