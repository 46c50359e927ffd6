"""A prediction against conditioning written out: in 60 digits, in O(n), and by its laws."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.markov_cases import markov_system
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, Matern32, White, split
from trailveil.studies.calibration import left_out, predicted, predictions
from trailveil.studies.fit import FAMILIES, FitSeries, log_likelihood

MOVING = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
KERNELS: dict[str, Kernel] = {
    "moving": MOVING,
    "no level": Matern32(80.0, 300.0) + White(1.0),
    "smooth": RBF(90.0, 200.0) + Constant(1e5) + White(3.0),
    "two": IntegratedOU(1.0, 15.0) + IntegratedOU(4.0, 300.0) + Constant(1e4) + White(2.0),
}
TIMES = np.array([0.0, 5.0, 11.0, 16.0, 130.0, 133.0, 150.0])
VALUES = np.array([[0, 0], [9, 2], [20, 3], [31, 9], [240, 80], [249, 80], [300, 99.0]])
AT = 70.0


def exactly(values: FloatArray) -> tuple[list[float], float]:
    """Mean and deviation under MOVING: one joint covariance, level and all, in 60 digits."""
    with mp.workdps(60):

        def wandered(h: mp.mpf) -> mp.mpf:
            tau = mp.mpf(60)
            return 2 * 9 * tau * (abs(h) - tau * (1 - mp.exp(-abs(h) / tau)))

        def covariance(a: float, b: float) -> mp.mpf:
            a, b = mp.mpf(a), mp.mpf(b)
            variance = (wandered(a) + wandered(b) - wandered(a - b)) / 2 + mp.mpf(10) ** 10
            return variance + (4 if a == b else 0)

        n = len(TIMES)
        matrix = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                matrix[i, j] = covariance(TIMES[i], TIMES[j])
        across = mp.matrix([covariance(time, AT) for time in TIMES])
        weights = mp.lu_solve(matrix, across)
        middle = [mp.fsum(column) / n for column in values.T.tolist()]
        means = [
            m + mp.fsum(w * (v - m) for w, v in zip(weights, column, strict=True))
            for m, column in zip(middle, values.T.tolist(), strict=True)
        ]
        explained = mp.fsum(w * c for w, c in zip(weights, across, strict=True))
        return [float(m) for m in means], float(mp.sqrt(covariance(AT, AT) - explained))


def test_a_prediction_is_that_of_sixty_digits() -> None:
    means, std = exactly(VALUES)
    prediction = predicted(MOVING, TIMES, VALUES, AT)
    np.testing.assert_allclose(prediction.mean, means, rtol=1e-9)
    assert prediction.std == pytest.approx(std, rel=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_a_prediction_is_that_of_one_joint_gaussian(name: str) -> None:
    kernel = KERNELS[name]
    both = np.append(TIMES, AT)
    whole = kernel(both, both)
    middle = VALUES.mean(axis=0)
    weights = np.linalg.solve(whole[:-1, :-1], whole[:-1, -1])
    prediction = predicted(kernel, TIMES, VALUES, AT)
    np.testing.assert_allclose(prediction.mean, middle + weights @ (VALUES - middle), rtol=1e-4)
    assert prediction.std == pytest.approx(
        (whole[-1, -1] - weights @ whole[:-1, -1]) ** 0.5, rel=1e-4
    )


@pytest.mark.parametrize("name", ["moving", "no level", "two"])
def test_a_prediction_from_many_fixes_is_that_of_the_form_that_takes_n_steps(name: str) -> None:
    kernel, _ = split(KERNELS[name])
    assert kernel is not None
    random = np.random.default_rng(5)
    times = np.cumsum(random.uniform(1.0, 9.0, 600))
    times = np.concatenate([times[:300] - times[0], times[300:] + 200.0])
    values = np.cumsum(random.normal(0, 5, (600, 2)), axis=0)
    at = float((times[299] + times[300]) / 2)
    across = kernel(times, np.array([at]))
    weights = markov_system(kernel, times, np.zeros(600), 0.5).solve(across)
    middle = values.mean(axis=0)
    prediction = predicted(kernel, times, values, at)
    np.testing.assert_allclose(
        prediction.mean, middle + weights[:, 0] @ (values - middle), rtol=1e-8, atol=1e-6
    )
    variance = kernel.diagonal(np.array([at]))[0] - across[:, 0] @ weights[:, 0]
    assert prediction.std == pytest.approx(variance**0.5, rel=1e-6)


def test_evidence_is_the_likelihood_of_a_fit() -> None:
    prediction = predicted(MOVING, TIMES, VALUES, AT)
    series = FitSeries(TIMES, VALUES - VALUES.mean(axis=0))
    value, _ = log_likelihood(series, FAMILIES["integrated-ou"], (3.0, 60.0, 2.0), 1e5)
    assert prediction.evidence == pytest.approx(value, rel=1e-10)


@given(
    st.floats(0, 2 * np.pi),
    st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)),
    st.floats(0, 1e6),
    st.sampled_from(sorted(KERNELS)),
)
def test_a_turned_shifted_and_delayed_recording_is_predicted_alike(
    angle: float, shift: tuple[float, float], delay: float, name: str
) -> None:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    plain = predicted(KERNELS[name], TIMES, VALUES, AT)
    moved = predicted(KERNELS[name], TIMES + delay, VALUES @ turn.T + shift, AT + delay)
    np.testing.assert_allclose(moved.mean, turn @ plain.mean + shift, rtol=1e-8, atol=1e-5)
    assert moved.std == pytest.approx(plain.std, rel=1e-6)


def test_thinning_what_is_kept_changes_little() -> None:
    random = np.random.default_rng(3)
    times = np.arange(0.0, 1800.0, 1.0)
    values = np.cumsum(random.normal(0, 1, (1800, 2)), axis=0)
    (case,) = left_out(times, values, [60.0], most=1)
    away = np.abs(times - case.time) >= 60.0
    whole = predicted(MOVING, times[away], values[away], case.time)
    thinned = predictions(MOVING, [case])
    assert len(case.times) <= 64
    assert whole.std <= thinned.stds[0] <= 1.05 * whole.std
    assert np.abs(case.value - thinned.errors[0] - whole.mean).max() < 0.5 * whole.std


def test_what_cannot_be_predicted_is_refused() -> None:
    with pytest.raises(InvalidValue, match="one kept fix or more"):
        predicted(MOVING, TIMES[:0], VALUES[:0], AT)
    with pytest.raises(InvalidValue, match="more than a level"):
        predicted(Constant(3.0), TIMES, VALUES, AT)
    with pytest.raises(InvalidValue, match="one fix or more"):
        predictions(MOVING, [])
