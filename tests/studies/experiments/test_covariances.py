"""The covariance figure: what is drawn is the noise of those mechanisms, and draws of it."""

import numpy as np
import pytest

from trailveil.plots import NoiseCase
from trailveil.studies.experiments.covariances import DESIGNS, cases


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[NoiseCase]]:
    return {design: cases(design) for design in DESIGNS}


@pytest.mark.slow
def test_every_case_has_the_same_noise_in_both_designs(drawn: dict[str, list[NoiseCase]]) -> None:
    for case, other in zip(drawn["paper"], drawn["optimum"], strict=True):
        assert case.title == other.title
        assert np.trace(case.covariance) == pytest.approx(np.trace(other.covariance), rel=1e-9)
    traces = [float(np.trace(each.covariance)) for each in drawn["paper"]]
    assert traces[:5] == pytest.approx([1.0] * 5)
    assert traces[6:8] == pytest.approx([0.96] * 2)


@pytest.mark.slow
def test_independent_noise_lies_on_every_point_on_one_and_on_two(
    drawn: dict[str, list[NoiseCase]],
) -> None:
    for columns in drawn.values():
        for column, rows in zip(columns, (list(range(50)), [24], [24, 25]), strict=False):
            assert np.flatnonzero(np.diagonal(column.covariance)).tolist() == rows
            assert np.count_nonzero(column.covariance) == len(rows)


@pytest.mark.slow
def test_the_paper_keeps_noise_on_the_secret_apart_and_the_optimum_does_not(
    drawn: dict[str, list[NoiseCase]],
) -> None:
    for column, pair in ((3, (24, 23)), (6, (24, 23)), (7, (16, 15))):
        assert drawn["paper"][column].covariance[pair] == 0.0
        assert drawn["optimum"][column].covariance[pair] > 0.01


@pytest.mark.slow
def test_draws_lie_in_the_noise(drawn: dict[str, list[NoiseCase]]) -> None:
    """As many as were asked for, of the size of the deviations, none where there is no noise."""
    for columns in drawn.values():
        for column in columns:
            deviation = np.sqrt(np.maximum(np.diagonal(column.covariance), 0.0))
            assert column.samples.shape == (3, deviation.size)
            assert np.all(np.abs(column.samples) <= 5 * deviation + 1e-7)
            assert np.max(np.abs(column.samples)) > 0.2 * np.max(deviation)
