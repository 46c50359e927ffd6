"""Length scales over periods, and what is told of the fits."""

from dataclasses import replace

import numpy as np
import pytest

from trailveil.studies.datasets.fitting import LengthScaleTask, collected, fitted
from trailveil.studies.fit import FAMILIES, Fit, FitSeries

FAMILY = FAMILIES["rbf"].set(length_scale=(1.0, 8.0, 40.0), std=1.0, noise_std=0.05)
SERIES = FitSeries(np.arange(12.0), np.sin(np.arange(12.0)))


def fit_of(length: float, **changes: object) -> Fit:
    """A result by hand, converged and agreed, with another length scale."""
    plain = Fit(FAMILY, (length, 1.0, 0.05), (0.1, 0.1, 0.1), 0.0, (), 0.0, 5, 5, 0, 1, 12)
    return replace(plain, **changes)  # type: ignore[arg-type]  # names are those of Fit


def test_what_is_collected() -> None:
    fits = [
        fit_of(1.0, at_bounds=("length_scale",)),
        fit_of(40.0, at_bounds=("length_scale",)),
        fit_of(40.0, at_bounds=("length_scale",), agreeing=2, rejected=3),
        fit_of(10.0, agreeing=4),
        fit_of(20.0, agreeing=3, rejected=1, remaining=0.5),
    ]
    tasks = [LengthScaleTask(SERIES, FAMILY, 5, period) for period in (1.0, 2.0, 5.0, 5.0, 5.0)]
    effective_scales = collected(tasks, fits)
    assert effective_scales.values.tolist() == [1.0, 20.0, 8.0, 2.0, 4.0]
    assert effective_scales.quartiles == (2.0, 4.0, 8.0)
    assert (effective_scales.at_low, effective_scales.at_high, effective_scales.at_bound) == (
        1,
        2,
        0.6,
    )
    assert (effective_scales.several, effective_scales.unfinished, effective_scales.rejected) == (
        2,
        1,
        4,
    )


def test_a_task_is_fitted_as_it_says() -> None:
    fit = fitted(LengthScaleTask(SERIES, FAMILY, 2, 1.0))
    assert fit.starts == 2
    assert fit["length_scale"] == pytest.approx(2.2, abs=0.8)  # of a sine of period 6.3
