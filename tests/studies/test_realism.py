"""The mixtures of the study of realism, against a single Gaussian, draws, and a known answer."""

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks._realism_cases import hermite, line
from benchmarks.realism import Mixture, learned
from trailveil.studies.calibration import LeftOut, Predictions, half_width


def test_a_mixture_of_one_is_that_gaussian() -> None:
    random = np.random.default_rng(0)
    errors, stds = random.normal(0, 3, (50, 2)), random.uniform(1, 5, 50)
    mixture = Mixture(np.ones((50, 1)), errors[:, None, :], stds[:, None])
    predictions = Predictions(errors, stds, np.zeros(50))
    np.testing.assert_allclose(mixture.mean_error, errors)
    np.testing.assert_allclose(mixture.log_densities, predictions.log_densities.mean(axis=1))
    np.testing.assert_allclose(mixture.levels(), 2 * norm.cdf(np.abs(predictions.standardised)) - 1)
    np.testing.assert_allclose(mixture.half_widths(), half_width(0.68) * stds[:, None] * [[1, 1]])


def test_intervals_of_a_mixture_hold_their_share_of_draws() -> None:
    random = np.random.default_rng(1)
    weights, means, stds = np.array([0.2, 0.8]), np.array([0.0, 4.0]), np.array([1.0, 6.0])
    which = random.choice(2, size=20_000, p=weights)
    values = random.normal(means[which], stds[which])
    errors = np.repeat((values[:, None] - means)[:, :, None], 2, axis=2)
    mixture = Mixture(np.tile(weights, (20_000, 1)), errors, np.tile(stds, (20_000, 1)))
    # 3.9 deviations of a share of 20,000: once in 10,000.
    assert np.mean(mixture.levels()[:, 0] <= 0.68) == pytest.approx(0.68, abs=0.013)
    held = np.abs(mixture.mean_error[:, 0]) <= mixture.half_widths()[:, 0]
    assert np.mean(held) == pytest.approx(0.68, abs=0.013)


def test_evidence_is_used_as_far_as_it_tells() -> None:
    random = np.random.default_rng(2)
    right = random.integers(0, 2, 400)
    joint = np.where(np.arange(2) == right[:, None], -1.0, -9.0)
    telling = np.where(np.arange(2) == right[:, None], 0.0, -20.0)
    temper, shares = learned(joint, telling)
    assert temper >= 0.3
    assert shares[0] > 0.95
    temper, shares = learned(joint, telling[:, ::-1])
    assert temper == 0.0
    np.testing.assert_allclose(shares.sum(), 1)


def test_a_steady_pace_is_found_by_who_looks_for_one() -> None:
    times = np.array([0.0, 10.0, 20.0, 80.0, 90.0, 100.0])
    values = np.column_stack([2 * times, -times])
    case = LeftOut(times, values, 50.0, np.array([100.0, -50.0]), 30.0, 2.2)
    for way in (line, hermite):
        np.testing.assert_allclose(way(case), case.value)
    curved = np.column_stack([times**3, times**2])
    times_of_a_cubic = LeftOut(times, curved, 50.0, np.array([125_000.0, 2500.0]), 30.0, 2.2)
    assert abs(hermite(times_of_a_cubic, 10.0) - times_of_a_cubic.value)[1] < 200
    assert abs(line(times_of_a_cubic) - times_of_a_cubic.value)[1] > 800
