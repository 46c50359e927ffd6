"""A prior that is true is covered at its nominal rate, a wrong one is not, and intervals hold.

Tolerances: a share of m independent trials of chance p is further than 3.9 sqrt(p (1 - p) / m) from
p once in 10,000. Draws are seeded: what passes once passes always.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, White
from trailveil.studies.calibration import (
    CURVE,
    LEVELS,
    Coverage,
    LeftOut,
    Predictions,
    coverage,
    half_width,
    left_out,
    resampled,
)
from trailveil.studies.calibration import predictions as predict

DRAWN = IntegratedOU(1.2, 40.0) + White(2.0)
TRUTH = DRAWN + Constant(1e5)  # who predicts does not know where the series begins
SERIES = 400
Z = 3.9


def tolerance(share: float, trials: int) -> float:
    """Once in 10,000."""
    return Z * float(np.sqrt(share * (1 - share) / trials))


@pytest.fixture(scope="module")
def cases() -> list[LeftOut]:
    """One fix of each of many series drawn from the truth, which are independent of each other."""
    times = np.arange(0.0, 400.0, 5.0)
    factor = np.linalg.cholesky(DRAWN(times, times))
    draws = np.random.default_rng(11).normal(size=(SERIES, times.size, 2))
    cases_drawn = [left_out(times, factor @ draw, [60.0], most=1)[0] for draw in draws]
    assert len(cases_drawn) == SERIES
    return cases_drawn


def judged(kernel: Kernel, cases: list[LeftOut]) -> Coverage:
    return coverage(predict(kernel, cases), range(len(cases)))


def test_the_true_prior_is_covered_at_its_nominal_rate(cases: list[LeftOut]) -> None:
    part_exposures = judged(TRUTH, cases)
    assert (part_exposures.predictions, part_exposures.groups) == (SERIES, SERIES)
    for level in LEVELS:
        share = part_exposures.inside[level]
        assert abs(share.share - level) < tolerance(level, 2 * SERIES)
        assert share.low is not None
        assert share.high is not None
        assert share.low < level < share.high
    for level, share_of_curve in zip(CURVE, part_exposures.curve, strict=True):
        assert abs(share_of_curve - level) < tolerance(level, 2 * SERIES)
    assert part_exposures.factor == pytest.approx(1, abs=0.1)
    assert part_exposures.rms == pytest.approx(part_exposures.promised, rel=0.1)
    assert part_exposures.median == pytest.approx(0.6745 * part_exposures.promised, rel=0.15)


@pytest.mark.parametrize(("scale", "inside"), [(0.25, 0.3808), (4.0, 0.9533)])
def test_a_prior_of_half_and_twice_the_deviation_is_told_apart(
    cases: list[LeftOut], scale: float, inside: float
) -> None:
    # 2 Phi(0.9945 sqrt(scale)) - 1: the variances of the prior are multiplied, noise included.
    part_exposures = judged(scale * TRUTH, cases)
    share = part_exposures.inside[0.68]
    assert abs(share.share - inside) < tolerance(inside, 2 * SERIES)
    assert abs(share.share - 0.68) > tolerance(0.68, 2 * SERIES)
    assert part_exposures.factor == pytest.approx(scale**-0.5, rel=0.1)
    assert part_exposures.log_density < judged(TRUTH, cases).log_density


def test_what_is_chosen_by_the_pace_that_is_seen_is_covered_too(cases: list[LeftOut]) -> None:
    covered = predict(TRUTH, cases)
    speeds = np.array([case.speed for case in cases])
    for rows in np.array_split(np.argsort(speeds), 4):
        share = coverage(covered.only(rows), range(len(rows))).inside[0.68].share
        assert abs(share - 0.68) < tolerance(0.68, 2 * len(rows))
    assert np.ptp(speeds) > 1


def simulated(random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Shares that differ between 40 groups of 5 to 40 values each, 0.68 on average."""
    sizes = random.integers(5, 41, 40)
    groups = np.repeat(np.arange(40), sizes)
    chances = random.beta(3.4, 1.6, 40)[groups]
    return (random.uniform(size=len(groups)) < chances).astype(float)[:, None], groups


def test_intervals_of_groups_hold_as_often_as_they_say() -> None:
    # Percentile intervals of 40 groups hold some 93 %: of 200, 172 or fewer once in 10,000.
    random = np.random.default_rng(4)
    held = alone = 0
    for _ in range(200):
        values, groups = simulated(random)
        (share,) = resampled(values, groups, draws=300)
        mean, spread = values.mean(), 1.96 * values.std() / len(values) ** 0.5
        assert share.low is not None
        assert share.high is not None
        held += share.low <= 0.68 <= share.high
        alone += abs(mean - 0.68) <= spread  # as if all values were independent
    assert 172 <= held <= 198
    assert alone < 150


def test_all_inside_is_not_certain() -> None:
    predictions = Predictions(np.full((30, 2), 0.1), np.ones(30), np.zeros(30))
    share = coverage(predictions, np.repeat(np.arange(10), 3).tolist()).inside[0.95]
    assert share.share == share.high == 1
    assert share.low == pytest.approx(0.025**0.1)
    far = coverage(predictions, np.repeat(np.arange(10), 3).tolist()).far
    assert (far.share, far.low) == (0, 0)
    assert far.high == pytest.approx(1 - 0.025**0.1)
    coverages = coverage(predictions, [7] * 30).inside[0.95]
    assert (coverages.low, coverages.high) == (None, None)


def test_figures_are_those_written_out() -> None:
    errors, stds = np.array([[1.0, -2.0], [0.5, 8.0]]), np.array([1.0, 2.0])
    covered = coverage(Predictions(errors, stds, np.zeros(2)), [0, 1])
    densities = [-0.5 - 0.9189385332, -2 - 0.9189385332]
    densities += [-(0.25**2) / 2 - 0.9189385332 - np.log(2), -8 - 0.9189385332 - np.log(2)]
    assert covered.log_density == pytest.approx(np.mean(densities))
    assert covered.log_density_median == pytest.approx(np.median(densities))
    assert (covered.promised, covered.median) == (1.5, 1.5)
    assert covered.rms == pytest.approx((69.25 / 4) ** 0.5)
    assert covered.far.share == 0.25
    assert {level: share.share for level, share in covered.inside.items()} == {
        0.5: 0.25,
        0.68: 0.25,
        0.95: 0.5,
    }
    assert half_width(0.95) == pytest.approx(1.959964)


def test_nothing_to_judge_is_refused() -> None:
    with pytest.raises(InvalidValue, match="one prediction or more"):
        coverage(Predictions(np.empty((0, 2)), np.empty(0), np.empty(0)), [])
    with pytest.raises(InvalidValue, match="a group for each"):
        coverage(Predictions(np.ones((2, 2)), np.ones(2), np.zeros(2)), [1])
