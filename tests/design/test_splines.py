"""Splines that noise is sought in."""

import numpy as np
import pytest

from trailveil.design.splines import lag_of, splines
from trailveil.kernels import IntegratedOU


def test_they_add_up_to_one_and_fade_where_they_must() -> None:
    times = np.linspace(0.0, 3600.0, 721)
    closed = splines((0.0, 3600.0), [(1500.0, 2100.0)], 100.0, [60.0, 300.0]).at(times)
    assert np.allclose(closed.sum(axis=1), 1.0, atol=1e-12)
    fading = splines((0.0, 3600.0), [(1500.0, 2100.0)], 100.0, fading=(True, False))
    near = fading.at(np.array([0.0, 1e-3, 3600.0]))
    assert np.all(near[0] == 0)
    assert np.abs(near[1]).max() < 1e-9  # the slope, too
    assert near[2].sum() == pytest.approx(1)
    assert np.all(fading.at(np.array([-1.0, 3601.0])) == 0)


def test_knots_are_dense_where_a_secret_begins_and_few_far_away() -> None:
    spans = [(1500.0, 2100.0), (9000.0, 9000.0)]
    fine = splines((0.0, 20_000.0), spans, 100.0, [60.0, 300.0])
    gaps = np.diff(np.unique(fine.knots))
    at = np.unique(fine.knots)[:-1]
    assert gaps[np.argmin(np.abs(at - 1500.0))] < 25
    assert gaps[np.argmin(np.abs(at - 16_000.0))] > 500
    assert {1500.0, 2100.0, 9000.0, 1440.0, 1200.0, 2160.0, 2400.0} <= set(fine.knots.tolist())
    coarse = splines((0.0, 20_000.0), spans, 100.0, [60.0, 300.0], coarse=True)
    assert coarse.knots.size < 0.7 * fine.knots.size
    many = splines((0.0, 1e6), [(1e4 * i, 1e4 * i + 100) for i in range(10)], 10.0)
    assert many.knots.size < 130


def test_the_lag_is_when_the_series_has_moved_so_far() -> None:
    base = IntegratedOU(3.0, 60.0)
    for deviation in (10.0, 316.0, 3000.0):
        lag = lag_of(base, 5000.0, deviation, 1e6)
        moved = 9 * 60 * 2 * (lag - 60 * (1 - np.exp(-lag / 60)))
        assert moved**0.5 == pytest.approx(deviation, rel=0.02)
    assert lag_of(base, 0.0, 1e9, 100.0) == 100.0
    assert lag_of(None, 0.0, 1.0, 50.0) == 50.0
