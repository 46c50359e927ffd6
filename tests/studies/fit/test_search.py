"""Maximum likelihood: closed forms, laws, recovery of parameters, and trouble that is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2, multivariate_normal

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.kernels import Kernel
from trailveil.studies.fit import FAMILIES, Family, Fit, FitSeries, fit, search

LEVEL = 1e5
MOTION = FAMILIES["integrated-ou"].set(
    std=(0.1, 2.0, 20.0), time_constant=(1.0, 40.0, 1000.0), noise_std=(0.2, 1.0, 20.0)
)


def drawn(
    kernel: Kernel, count: int, times: NDArray[np.float64], seed: int, columns: int = 2
) -> list[FitSeries]:
    """Series that truly have this kernel, each at a place of its own."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(kernel(times, times))
    return [
        FitSeries(
            times,
            root @ rng.standard_normal((len(times), columns)) + 1e4 * rng.standard_normal(columns),
        )
        for _ in range(count)
    ]


def test_the_optimum_and_its_error_equal_a_closed_form() -> None:
    # Points so far apart that they are independent, of variance v = std^2 + 1: the likeliest v is
    # the mean square m, its information N / (2 m^2).
    values = np.array([[3.0, -1.0, 2.0, -4.0], [0.5, 2.5, -2.0, 3.5], [2.0, -3.0, 1.0, 0.0]])
    family = FAMILIES["matern12"].set(length_scale=1e-3, noise_std=1.0, std=(0.1, 1.0, 10.0))
    fit_found = fit(FitSeries(np.arange(3.0), values), family)
    square = float(np.mean(values**2))
    assert fit_found["std"] == pytest.approx((square - 1) ** 0.5, rel=1e-7)
    expected = square * (2 / values.size) ** 0.5 / (2 * fit_found["std"])
    assert fit_found.standard_errors[1] == pytest.approx(expected, rel=1e-6)
    assert np.isnan(fit_found.standard_errors[0])
    assert np.isnan(fit_found.standard_errors[2])
    assert fit_found.converged
    assert (fit_found.agreeing, fit_found.rejected, fit_found.at_bounds) == (5, 0, ())
    assert (fit_found.series, fit_found.points) == (1, 3)


def test_another_search_without_gradients_finds_the_same() -> None:
    times = np.linspace(0.0, 100.0, 25)
    truth = FAMILIES["matern32"].build((20.0, 3.0, 0.5))
    (series,) = drawn(truth, 1, times, seed=3, columns=1)
    series = FitSeries(times, series.values - series.values.mean())
    family = FAMILIES["matern32"].set(noise_std=(0.05, 1.0, 10.0))

    def height(logs: NDArray[np.float64]) -> float:
        cov = family.build(np.exp(logs).tolist())(times, times)
        return -float(multivariate_normal(np.zeros(25), cov).logpdf(series.values[:, 0]))

    other = minimize(height, np.log([15.0, 2.0, 1.0]), method="Nelder-Mead", tol=1e-9)
    fit_found = fit(series, family)
    np.testing.assert_allclose(fit_found.values, np.exp(other.x), rtol=1e-4)
    assert fit_found.log_likelihood == pytest.approx(-other.fun, abs=1e-8)


def test_parameters_are_recovered_within_their_standard_errors() -> None:
    # Three errors of at most 3.9 standard errors: for a seed not tried before, a false alarm has a
    # chance of 3e-4. And each standard error is small enough to mean something.
    truth = (1.5, 30.0, 0.8)
    pool = drawn(MOTION.build(truth), 12, np.arange(0.0, 240.0, 6.0), seed=20)
    fit_found = fit(pool, MOTION, level_std=LEVEL, starts=2)
    deviations = (np.array(fit_found.values) - truth) / fit_found.standard_errors
    assert np.abs(deviations).max() < 3.9
    assert (np.array(fit_found.standard_errors) / truth < [0.1, 0.2, 0.15]).all()
    assert fit_found.converged
    assert fit_found.agreeing == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "truth"),
    [
        (MOTION, (1.5, 30.0, 3.0)),
        (FAMILIES["matern32"], (40.0, 10.0, 2.0)),
        (FAMILIES["matern12"], (60.0, 6.0, 3.0)),
        (FAMILIES["rbf"], (20.0, 10.0, 2.0)),
    ],
    ids=["integrated-ou", "matern32", "matern12", "rbf"],
)
def test_standard_errors_are_as_large_as_the_errors(
    family: Family, truth: tuple[float, ...]
) -> None:
    # Over 40 data sets the sum of squared deviations, of log parameters, in which they are nearest
    # to normal, is chi-squared with 40 degrees for each parameter. It must lie within the quantiles
    # 1e-5 and 1 - 1e-5: for seeds not tried before, a false alarm has a chance of 2.4e-4 in all.
    count = 40
    squares = np.zeros(3)
    for seed in range(count):
        pool = drawn(family.build(truth), 5, np.arange(0.0, 240.0, 6.0), seed=1000 + seed)
        fit_found = fit(pool, family, level_std=LEVEL, starts=1)
        assert fit_found.converged
        relative = np.array(fit_found.standard_errors) / fit_found.values
        squares += (np.log(np.array(fit_found.values) / np.array(truth)) / relative) ** 2
    low, high = (float(chi2.ppf(q, count)) for q in (1e-5, 1 - 1e-5))
    assert ((squares > low) & (squares < high)).all(), squares / count


@pytest.fixture(scope="module")
def pool() -> list[FitSeries]:
    return drawn(MOTION.build((1.5, 30.0, 0.8)), 3, np.arange(0.0, 120.0, 5.0), seed=7)


@pytest.fixture(scope="module")
def fit_found(pool: list[FitSeries]) -> Fit:
    return fit(pool, MOTION, level_std=LEVEL)


def test_the_same_data_twice_give_the_same_values_and_smaller_errors(
    pool: list[FitSeries], fit_found: Fit
) -> None:
    twice = fit([*pool, *pool], MOTION, level_std=LEVEL)
    np.testing.assert_allclose(twice.values, fit_found.values, rtol=1e-4)
    assert twice.log_likelihood == pytest.approx(2 * fit_found.log_likelihood, abs=1e-5)
    ratio = np.array(fit_found.standard_errors) / twice.standard_errors
    np.testing.assert_allclose(ratio, 2**0.5, rtol=1e-3)
    assert (twice.series, twice.points) == (6, 2 * fit_found.points)


def test_units_do_not_matter(pool: list[FitSeries], fit_found: Fit) -> None:
    # Feet and minutes: speeds scale by feet * 60, and l by the volume, log(feet) for each value.
    feet, minute = 1 / 0.3048, 1 / 60
    scales = (feet / minute, minute, feet)
    other = replace(
        MOTION,
        parameters=tuple(
            replace(p, low=p.low * s, start=p.start * s, high=p.high * s)
            for p, s in zip(MOTION.parameters, scales, strict=True)
        ),
    )
    changed = [FitSeries(series.times * minute, series.values * feet) for series in pool]
    again = fit(changed, other, level_std=LEVEL * feet)
    np.testing.assert_allclose(again.values, np.array(fit_found.values) * scales, rtol=1e-4)
    np.testing.assert_allclose(
        again.standard_errors, np.array(fit_found.standard_errors) * scales, rtol=1e-3
    )
    volume = sum(series.values.size for series in pool) * np.log(feet)
    assert again.log_likelihood == pytest.approx(fit_found.log_likelihood - volume, abs=1e-5)


def test_the_same_call_gives_the_same_bits(pool: list[FitSeries], fit_found: Fit) -> None:
    assert fit(pool, MOTION, level_std=LEVEL) == fit_found


def test_no_value_nearby_is_likelier(pool: list[FitSeries], fit_found: Fit) -> None:
    for index, parameter in enumerate(MOTION.parameters):
        for factor in (0.97, 1.03):
            moved = MOTION.set(**{parameter.name: fit_found.values[index] * factor})
            moved = moved.set(
                **{
                    p.name: fit_found.values[i]
                    for i, p in enumerate(MOTION.parameters)
                    if i != index
                }
            )
            assert fit(pool, moved, level_std=LEVEL).log_likelihood < fit_found.log_likelihood


@pytest.mark.parametrize("side", ["low", "high"])
def test_a_bound_that_holds_a_parameter_is_named(
    pool: list[FitSeries], fit_found: Fit, side: str
) -> None:
    best = fit_found["time_constant"]
    limits = (1.0, 2.0, best / 2) if side == "high" else (best * 2, best * 3, 1000.0)
    bound = limits[2] if side == "high" else limits[0]
    held = fit(pool, MOTION.set(time_constant=limits), level_std=LEVEL)
    assert held.at_bounds == ("time_constant",)
    assert held["time_constant"] == pytest.approx(bound, rel=1e-12)
    assert np.isnan(held.standard_errors[1])
    assert np.isfinite(held.standard_errors[0])
    assert held.log_likelihood < fit_found.log_likelihood
    assert fit_found.at_bounds == ()


def test_several_optima_are_told_and_the_best_is_taken() -> None:
    # A wave of period 10: from a start below 6 a search ends in an overtone.
    times = np.arange(40.0)
    series = FitSeries(times, np.sin(2 * np.pi * times / 10))
    family = FAMILIES["periodic"].set(
        length_scale=1.5, period=(2.0, 3.0, 14.0), std=1.0, noise_std=0.3
    )
    alone = fit(series, family, starts=1)
    several = fit(series, family, starts=8)
    assert several["period"] == pytest.approx(10.0, abs=0.05)
    assert several.log_likelihood > alone.log_likelihood + 1
    assert 1 <= several.agreeing < 8


def test_starts_without_a_likelihood_are_given_up_and_counted() -> None:
    times = np.arange(30.0)
    series = FitSeries(times, np.sin(times / 5) + 0.1 * np.cos(17 * times))
    family = FAMILIES["rbf"].set(
        length_scale=(0.5, 300.0, 1e4), std=(0.1, 1.0, 10.0), noise_std=(1e-9, 1e-7, 1.0)
    )
    with pytest.raises(NumericalError, match="at least one start, got none of 1"):
        fit(series, family, starts=1)
    several = fit(series, family, starts=8)
    assert 1 <= several.rejected < 8
    assert several.agreeing + several.rejected <= 8


def test_a_search_that_stops_early_has_not_converged(
    pool: list[FitSeries], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurried(*args: Any, **kwargs: Any) -> Any:
        return minimize(*args, **{**kwargs, "options": {"maxiter": 1}})

    monkeypatch.setattr(search, "minimize", hurried)
    assert not fit(pool, MOTION, level_std=LEVEL, starts=1).converged


def test_with_everything_known_there_is_nothing_to_find(
    pool: list[FitSeries], fit_found: Fit
) -> None:
    names = [p.name for p in MOTION.parameters]
    known = MOTION.set(**dict(zip(names, fit_found.values, strict=True)))
    again = fit(pool, known, level_std=LEVEL)
    assert again.log_likelihood == pytest.approx(fit_found.log_likelihood, abs=1e-9)
    assert again.converged
    assert again.at_bounds == ()
    assert again.kernel == fit_found.kernel
    with pytest.raises(KeyError):
        fit_found["period"]


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        ([], {}, "one series at least"),
        ([FitSeries(np.zeros(1), np.zeros(1))], {"level_std": 1.0}, "two points or more"),
        (
            [FitSeries(np.arange(2.0), np.zeros(2))],
            {"level_std": 0.0},
            "level_std must be positive",
        ),
        ([FitSeries(np.arange(2.0), np.zeros(2))], {"level_std": np.nan}, "level_std must be"),
        ([FitSeries(np.arange(2.0), np.zeros(2))], {"starts": 0}, "starts must be 1 or more"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    series: list[FitSeries], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        fit(series, MOTION, **options)
