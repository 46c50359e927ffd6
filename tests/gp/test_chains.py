"""Products and samples of Markov series, against full matrices in double and extended precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.markov_cases import SMOOTH, WITH_NOISE, nasty_times, relative
from trailveil.errors import InvalidValue
from trailveil.gp.chains import (
    BLOCK,
    Recursion,
    blocks,
    by_columns,
    chain,
    fill_band,
    normals_needed,
    sample_process,
)
from trailveil.gp.extended import Extended
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, IntegratedOU, Kernel, Matern32, White
from trailveil.gp.statespace import required_state_space


def product(kernel: Kernel, times: FloatArray, x: FloatArray) -> FloatArray:
    parts = required_state_space(kernel).components
    return np.asarray(sum(chain(part, times).product(x) for part in parts))


def exact(kernel: Kernel, times: FloatArray) -> FloatArray:
    arithmetic = Extended(200)
    inputs = arithmetic.numbers(times)
    full = kernel.formula(inputs[:, None], inputs[None, :], arithmetic)
    return np.broadcast_to(np.asarray(full), (times.size,) * 2).astype(np.float64)


def sampling_map(kernel: Kernel, times: FloatArray) -> FloatArray:
    """The linear map from the normals to the sample, by what it does to each of them alone."""
    shape = (times.size, normals_needed(kernel))
    units = np.eye(times.size * shape[1]).reshape(-1, *shape)
    return np.stack([sample_process(kernel, times, unit) for unit in units], axis=1)


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH.keys())
@pytest.mark.parametrize("count", [1, 2, 12])
def test_products_are_right_to_rounding(kernel: Kernel, count: int) -> None:
    times = nasty_times(count, seed=count)
    computed, expected = product(kernel, times, np.eye(count)), exact(kernel, times)
    size = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected))) + 1e-300
    # A clock rounds the times it reads (to 1e-12 s here), in the kernel and in the chain alike.
    assert np.max(np.abs(computed - expected) / size) < 1e-13


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH.keys())
def test_products_equal_the_matrix(kernel: Kernel) -> None:
    times = nasty_times(300, seed=3)
    x = np.random.default_rng(0).normal(size=(300, 2))
    assert relative(product(kernel, times, x), kernel(times, times) @ x) < 1e-12


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE.keys())
def test_samples_have_the_covariance_of_the_kernel(kernel: Kernel) -> None:
    times = nasty_times(20, seed=5)
    drawn = sampling_map(kernel, times)
    assert relative(drawn @ drawn.T, kernel(times, times)) < 1e-13


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE.keys())
def test_a_sample_is_one_function_of_its_normals(kernel: Kernel) -> None:
    times = nasty_times(30, seed=6)
    normals = np.random.default_rng(0).normal(size=(30, normals_needed(kernel)))
    before = normals.copy()
    once, again = sample_process(kernel, times, normals), sample_process(kernel, times, normals)
    assert np.array_equal(once, again)
    assert np.array_equal(normals, before)
    # Later normals change nothing before them: a draw may be continued.
    assert np.allclose(sample_process(kernel, times[:10], normals[:10]), once[:10], rtol=1e-14)


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE.keys())
def test_the_roots_of_a_sample_have_one_sign(kernel: Kernel) -> None:
    """The first normal of a time moves the series at that time upwards, or not at all."""
    times = nasty_times(20, seed=7)
    drawn = sampling_map(kernel, times).reshape(20, 20, -1)
    assert np.all(drawn[np.arange(20), np.arange(20)] >= 0)


def test_what_a_sample_refuses() -> None:
    kernel = Matern32(60.0) + White(1.0)
    assert normals_needed(kernel) == 3
    assert sample_process(kernel, [], np.empty((0, 3))).shape == (0,)
    with pytest.raises(InvalidValue, match="strictly increasing"):
        sample_process(kernel, [0.0, 0.0], np.zeros((2, 3)))
    with pytest.raises(InvalidValue, match=r"shape \(2, 3\), got \(2, 2\)"):
        sample_process(kernel, [0.0, 1.0], np.zeros((2, 2)))
    with pytest.raises(InvalidValue, match="Markov"):
        normals_needed(RBF(1.0))
    with pytest.raises(InvalidValue, match="origin before the first time"):
        sample_process(IntegratedOU(1.0, 1.0, 5.0), [0.0, 9.0], np.zeros((2, 2)))


@given(
    size=st.integers(1, 4),
    count=st.integers(1, 7),
    columns=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_recursion_is_what_it_says(size: int, count: int, columns: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    transitions = random.normal(size=(size, size, count))
    u = random.normal(size=(columns, count, size))
    v = random.normal(size=(columns, count, size))
    band = np.zeros((count, size, 2 * size))
    fill_band(band, transitions)
    recursion, expected = Recursion(band), u.copy()
    for k in range(1, count):
        expected[:, k] += expected[:, k - 1] @ transitions[:, :, k - 1].T
    forwards = recursion.run(u.copy())
    assert np.allclose(forwards, expected, rtol=1e-12, atol=1e-12)
    backwards = recursion.run(v.copy(), backwards=True)
    assert np.sum(backwards * u) == pytest.approx(np.sum(v * forwards), rel=1e-9, abs=1e-9)


def test_long_chains_are_made_in_blocks() -> None:
    count = 2 * BLOCK + 5
    assert [part.stop - part.start for part in blocks(count)] == [BLOCK, BLOCK, 5]
    (part,) = required_state_space(Matern32(60.0)).components
    times = np.cumsum(np.random.default_rng(0).exponential(5.0, count))
    long, short = chain(part, times), chain(part, times[BLOCK - 5 :])
    assert np.array_equal(long.noise[BLOCK - 4 :], short.noise[1:])
    assert np.array_equal(long.recursion.band[BLOCK - 5 :], short.recursion.band)


def test_columns_are_worked_off_a_few_at_a_time() -> None:
    widths: list[int] = []

    def double(x: FloatArray) -> FloatArray:
        widths.append(x.shape[1])
        return 2 * x

    x = np.random.default_rng(0).normal(size=(4, 7))
    assert np.array_equal(by_columns(double, x, 2**13), 2 * x)
    assert widths == [2, 2, 2, 1]
    assert by_columns(double, x[:, :0], 2**13).shape == (4, 0)
