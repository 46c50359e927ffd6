"""The filter as a factor, against dense algebra, for observations of any loadings and any noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.markov_cases import SMOOTH, nasty_times, relative
from trailveil.gp import filtering
from trailveil.gp.filtering import factorise
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, Matern12, Matern52
from trailveil.gp.statespace import Component, required_state_space

NAMES = sorted(SMOOTH)


def dense(components: tuple[Component, ...], times: FloatArray, loadings: FloatArray) -> FloatArray:
    """H K H^T by the states' own recursion, one step after another."""
    count = times.size
    states = np.zeros((loadings.shape[1], loadings.shape[1], count, count))
    first = 0
    for part in components:
        block = slice(first, first + part.term.size)
        inputs = part.inputs(times)
        held = part.variance * part.term.start(float(inputs[0]))
        for i in range(count):
            moved = held
            for j in range(i, count):
                if j > i:
                    step = np.array([inputs[j] - inputs[j - 1]])
                    moved = part.term.transition(step)[..., 0] @ moved
                states[block, block, j, i], states[block, block, i, j] = moved, moved.T
            if i + 1 < count:
                step = np.array([inputs[i + 1] - inputs[i]])
                across = part.term.transition(step)[..., 0]
                held = across @ held @ across.T + part.variance * part.term.noise(step)[..., 0]
        first = block.stop
    return np.asarray(np.einsum("ia,abij,jb->ij", loadings, states, loadings))


@settings(max_examples=60)
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
    count=st.integers(1, 14),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_observations_of_any_states(names: list[str], count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    components = tuple(
        part for name in names for part in required_state_space(SMOOTH[name]).components
    )
    size = sum(part.term.size for part in components)
    times = nasty_times(count, seed)
    times[random.integers(0, count, 2)] = times[random.integers(0, count)]
    times.sort()
    loadings = random.normal(size=(count, size)) * random.integers(0, 2, size=(count, 1))
    variances = 10.0 ** random.uniform(-3, 3, count)
    matrix = dense(components, times, loadings) + np.diag(variances)
    y = random.normal(size=(count, 2))
    solution = factorise(components, times, loadings, variances).solve(y)
    size_of_sums = np.abs(matrix) @ np.abs(solution) + np.abs(y)
    # Before refinement a state of several terms loses the root of the ratio of its variances.
    assert np.max(np.abs(matrix @ solution - y) / size_of_sums) < 1e-8


@pytest.mark.parametrize("name", NAMES)
def test_innovations_are_the_pivots_of_cholesky(name: str) -> None:
    kernel, count = SMOOTH[name], 60
    components = required_state_space(kernel).components
    times = nasty_times(count, seed=2, widest=2.0)
    loadings = np.zeros((count, sum(part.term.size for part in components)))
    loadings[:, np.cumsum([0, *(part.term.size for part in components)])[:-1]] = 1.0
    factor = factorise(components, times, loadings, np.full(count, 4.0))
    pivots = np.diagonal(np.linalg.cholesky(kernel(times, times) + 4.0 * np.eye(count))) ** 2
    assert np.max(np.abs(factor.innovations / pivots - 1)) < 1e-9


@pytest.mark.parametrize("kernel", [Matern12(60.0, 300.0), Matern52(600.0, 300.0) + Matern12(1.0)])
def test_work_grows_with_the_rows(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers touched by the filter, counted: four times the rows are four times the numbers."""
    components = required_state_space(kernel).components
    touched: list[int] = []
    observed = filtering._observed

    def counted(
        covariance: FloatArray, h: FloatArray, variance: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        touched.append(covariance.size)
        return observed(covariance, h, variance)

    monkeypatch.setattr(filtering, "_observed", counted)

    def work(count: int) -> tuple[int, int]:
        touched.clear()
        size = sum(part.term.size for part in components)
        factorise(components, np.arange(float(count)), np.ones((count, size)), np.ones(count))
        return sum(touched), len(touched)

    (small, few), (large, many) = work(2_500), work(10_000)
    assert large < 4.05 * small
    assert many < 2.1 * few  # steps that Python takes grow with the square root


def test_a_state_hardly_known_keeps_its_digits() -> None:
    """Joseph's form: the variance left is right although it is 1e-20 of what it was."""
    covariance = np.array([[1e12, 3e11], [3e11, 1e11]])[:, :, None]
    h, variance = np.array([[1.0], [0.0]]), np.array([1e-8])
    posterior, _, _ = filtering._observed(covariance, h, variance)
    assert posterior[0, 0, 0] == pytest.approx(1e-8, rel=1e-4)
    assert relative(posterior[:, :, 0], np.array([[1e-8, 3e-9], [3e-9, 1e10]])) < 1e-12
