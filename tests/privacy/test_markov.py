"""The O(n) form of the observed rows, against full matrices, against mpmath, and by its laws."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.markov_cases import SMOOTH, WITH_NOISE, markov_system, nasty_times, relative
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.chains import Recursion
from trailveil.gp.extended import Extended
from trailveil.gp.gaussian import FloatArray, dense_system, posterior
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    StoppedClock,
    White,
)
from trailveil.privacy.loss import loss_given
from trailveil.privacy.markov import (
    MarkovSystem,
    _whitening,
    covariance_product,
    markov_rows,
)
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import LARGEST_DENSE, Observation, Prior, SideInformation, observe
from trailveil.privacy.secrets import Secret

BASES: dict[str, Kernel] = {
    "matern12": Matern12(60.0, 300.0),
    "matern32": Matern32(60.0, 300.0),
    "matern52": Matern52(60.0, 300.0),
    "integrated": IntegratedOU(3.0, 60.0),
}
PROCESS = Matern32(120.0, 900.0) + White(3.0)


def rows_matrix(
    kernel: Kernel, times: FloatArray, process: Kernel | None, released: Any, noise: FloatArray
) -> FloatArray:
    """S by its definition."""
    matrix = kernel(times, times) + np.diag(noise)
    if process is not None:
        heard = np.asarray(released, dtype=np.float64)
        matrix = matrix + heard[:, None] * process(times, times) * heard
    return np.asarray(matrix)


def backward_error(matrix: FloatArray, x: FloatArray, rhs: FloatArray) -> float:
    """How far S, relative to its largest entries, must be from what it is for x to be exact."""
    size = np.max(np.abs(matrix)) * np.sum(np.abs(x)) + np.max(np.abs(rhs))
    return float(np.max(np.abs(matrix @ x - rhs)) / size)


def observed(
    count: int, seed: int, widest: float
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Times of released rows and of known ones, some of one fix, mixed; released; own noise."""
    random = np.random.default_rng(seed)
    fixes = nasty_times(count - 4, seed, widest)
    known = [fixes[2], fixes[2], fixes[-1], fixes[3] + 0.5]  # one fix known twice
    noise = np.concatenate([np.full(fixes.size, 1.5), np.full(4, 100.0)])
    order = random.permutation(count)
    times = np.concatenate([fixes, known])[order]
    return times, (np.arange(count) < fixes.size)[order], noise[order]


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE.keys())
@pytest.mark.parametrize("process", [None, PROCESS], ids=["", "process"])
def test_equals_full_matrices(kernel: Kernel, process: Kernel | None) -> None:
    times, released, noise = observed(300, seed=1, widest=1.5)
    matrix = rows_matrix(kernel, times, process, released, noise)
    full = dense_system(matrix, 1.5)
    recursive = markov_system(kernel, times, noise, 1.5, process=process, released=released)
    rhs = np.random.default_rng(0).normal(size=(300, 3))
    assert recursive.size == 300
    assert recursive.least == 1.5
    assert relative(recursive.diagonal, full.diagonal) < 1e-14
    assert relative(recursive.apply(rhs), full.apply(rhs)) < 1e-12
    assert backward_error(matrix, recursive.solve(rhs), rhs) < 1e-15
    assert relative(recursive.solve(rhs), full.solve(rhs)) < 1e-8
    for white in (recursive.whitened(rhs), full.whitened(rhs)):
        assert relative(white.T @ white, rhs.T @ full.solve(rhs)) < 1e-8


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE.keys())
@pytest.mark.parametrize("count", [8, 12])
def test_solves_and_products_in_many_digits(kernel: Kernel, count: int) -> None:
    """Where a clock rounds the times it reads, the problem itself is known to less: see 1e-9."""
    times, released, noise = observed(count, seed=count, widest=4.0)
    arithmetic = Extended(200)
    inputs, context = arithmetic.numbers(times), arithmetic.context
    first, other = inputs[:, None], inputs[None, :]
    heard = arithmetic.numbers(released.astype(np.float64))
    exact = kernel.formula(first, other, arithmetic) + np.diag(arithmetic.numbers(noise))
    exact = exact + heard[:, None] * PROCESS.formula(first, other, arithmetic) * heard
    rhs = np.random.default_rng(0).normal(size=count)
    solved = context.lu_solve(context.matrix(exact.tolist()), context.matrix(rhs.tolist()))
    system = markov_system(kernel, times, noise, 1.0, process=PROCESS, released=released)
    applied = np.asarray(exact @ arithmetic.numbers(rhs)).astype(np.float64)
    assert relative(system.apply(rhs[:, None])[:, 0], applied) < 1e-13
    expected = np.array([float(value) for value in solved])
    assert relative(system.solve(rhs[:, None])[:, 0], expected) < 1e-9


@pytest.mark.parametrize("kernel", BASES.values(), ids=BASES.keys())
def test_weeks_and_microseconds_in_one_series(kernel: Kernel) -> None:
    """Gaps over twelve decades: the residual is down to rounding, refined or not."""
    times = nasty_times(300, seed=4, widest=6.0)
    noise = np.full(300, 4.0)
    matrix = rows_matrix(kernel, times, None, None, noise)
    system = markov_system(kernel, times, noise, 4.0)
    rhs = np.random.default_rng(0).normal(size=(300, 2))
    assert backward_error(matrix, system._solve(rhs), rhs) < 1e-15
    solved = system.solve(rhs)
    assert backward_error(matrix, solved, rhs) < 1e-15
    # Row by row, against what each row sums up.
    assert np.all(np.abs(system.apply(solved) - rhs) < 1e-14 * (np.abs(matrix) @ np.abs(solved)))


def test_a_solve_is_refined() -> None:
    """Two terms of very unlike size: the first solve is right to 1e-6, the answer to 1e-11."""
    kernel = Matern32(60.0, 1000.0) + IntegratedOU(3.0, 60.0)
    times = nasty_times(40, seed=1, widest=6.0)
    arithmetic = Extended(200)
    inputs, context = arithmetic.numbers(times), arithmetic.context
    exact = kernel.formula(inputs[:, None], inputs[None, :], arithmetic)
    exact = exact + np.diag(arithmetic.numbers(np.full(40, 1e-4)))
    rhs = np.random.default_rng(0).normal(size=(40, 1))
    solved = context.lu_solve(context.matrix(exact.tolist()), context.matrix(rhs.tolist()))
    expected = np.array([[float(value)] for value in solved])
    system = markov_system(kernel, times, np.full(40, 1e-4), 1e-4)
    assert relative(system._solve(rhs), expected) > 1e-10
    assert relative(system.solve(rhs), expected) < 1e-11


@pytest.mark.parametrize("kernel", BASES.values(), ids=BASES.keys())
def test_noise_that_looks_like_the_series(kernel: Kernel) -> None:
    """One kernel as prior and as noise: two states, of which known rows hear only the one."""
    times, released, noise = observed(50, seed=2, widest=1.5)
    matrix = rows_matrix(kernel, times, kernel, released, noise)
    system = markov_system(kernel, times, noise, 1.0, process=kernel, released=released)
    assert relative(system.apply(np.eye(50)), matrix) < 1e-13
    assert relative(system._solve(matrix), np.eye(50)) < 1e-8


def secrets(times: FloatArray) -> list[Secret]:
    return [
        Secret.at(float(times[150]) + 0.25),
        Secret.at(float(times[20]), recorded=True),
        Secret.stay(float(times[100]), float(times[160])),
        Secret.mean(times[10:130]),
        Secret.difference(float(times[3]), float(times[250])),
    ]


@pytest.mark.parametrize("kernel", BASES.values(), ids=BASES.keys())
@pytest.mark.parametrize("level", [0.0, 1e5])
@pytest.mark.parametrize("process", [None, PROCESS], ids=["", "process"])
def test_losses_equal_those_of_full_matrices(
    kernel: Kernel, level: float, process: Kernel | None
) -> None:
    random = np.random.default_rng(0)
    times = nasty_times(300, seed=8, widest=2.0)
    parts = [kernel, White(2.0)] + ([Constant(level)] if level else [])
    prior = Prior(sum(parts[1:], parts[0]), times)
    noise = Mechanism(times, random.normal(size=(300, 2)) * 100.0, 25.0, process)
    noise = noise.withholding((times > times[60]) & (times < times[70]))
    known = SideInformation(np.array([times[50], times[120] + 0.1, times[65]]), 10.0)
    for secret in secrets(times):
        judge = prior.for_secret(secret)
        full = observe(judge, noise, known)
        base = judge.kernel if not level else sum_without_level(judge.kernel)
        observed = np.concatenate([times[noise.rows], known.times])
        released = np.arange(observed.size) < noise.rows.size
        variances = np.where(released, noise.floor, known.accuracy**2)
        system = markov_system(
            base, observed, variances, full.system.least, process=process, released=released
        )
        fast = Observation(judge, noise, known, system, full.loadings)
        expected = posterior(full.joint(secret)).covariance
        assert relative(posterior(fast.joint(secret)).covariance, expected) < 1e-8
        # The loss is an upper bound; the sharper one is within the slack of the other.
        sharp, wide = loss_given(fast, secret), loss_given(full, secret)
        hidden = (sharp.slack + 2 * wide.slack) / expected
        assert np.all(np.abs(sharp.matrix - wide.matrix) <= hidden)
        assert sharp.slack < 1e-8


def sum_without_level(kernel: Kernel) -> Kernel:
    parts = [term for term in kernel.terms() if term.level_variance() == 0.0]
    return sum(parts[1:], parts[0])


def test_a_prior_of_many_rows_is_observed_in_linear_time() -> None:
    times = np.arange(LARGEST_DENSE + 1.0)
    nothing = Mechanism(times, np.empty((times.size, 0)), 1.0)
    for kernel, markov in ((Matern32(60.0) + White(1.0), True), (RBF(60.0) + White(1.0), False)):
        long = observe(Prior(kernel, times), nothing).system
        short = observe(Prior(kernel, times[1:]), Mechanism(times[1:], np.empty((500, 0)))).system
        assert isinstance(long, MarkovSystem) is markov
        assert not isinstance(short, MarkovSystem)
    late = Prior(IntegratedOU(3.0, 60.0, 1.0) + White(1.0), times)
    assert not isinstance(observe(late, nothing).system, MarkovSystem)


@given(
    name=st.sampled_from(sorted(WITH_NOISE)),
    count=st.integers(8, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_laws_of_a_covariance(name: str, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    times, released, noise = observed(count, seed, widest=2.0)
    kernel = WITH_NOISE[name]
    rows = markov_rows(kernel, times, PROCESS, released)
    system = rows.system(noise, 1.0)
    x, y = random.normal(size=(2, count, 1))
    # Symmetric, positive, inverted by its inverse.
    assert np.sum(x * system.apply(y)) == pytest.approx(np.sum(y * system.apply(x)), rel=1e-9)
    assert np.sum(x * system.apply(x)) > 0
    assert relative(system.solve(system.apply(x)), x) < 1e-6
    # More noise anywhere never tells more.
    louder = rows.system(noise + random.exponential(size=count), 1.0)
    information, less = np.sum(x * system.solve(x)), np.sum(x * louder.solve(x))
    assert less <= information * (1 + 1e-9)
    # The order of the rows is of no account.
    turn = random.permutation(count)
    turned = markov_rows(kernel, times[turn], PROCESS, released[turn]).system(noise[turn], 1.0)
    assert relative(turned.apply(x[turn]), system.apply(x)[turn]) < 1e-12
    assert relative(turned.solve(x[turn]), system.solve(x)[turn]) < 1e-8


@pytest.mark.parametrize("kernel", BASES.values(), ids=BASES.keys())
def test_fixes_of_a_stop_are_readings_of_one_place(kernel: Kernel) -> None:
    """k fixes with the clock stopped tell what one fix with a k-th of the noise tells."""
    outside = np.array([0.0, 30.0, 100.0, 160.0])
    stopped = StoppedClock(((40.0, 60.0),))
    inside = np.linspace(40.0, 60.0, 10)
    many = np.concatenate([outside, inside])
    few = np.concatenate([outside, [40.0]])
    held = kernel.warp(stopped)
    few_readings = markov_system(held, few, np.array([4.0, 4.0, 4.0, 4.0, 0.4]), 0.4)
    all_ten = markov_system(held, many, np.full(14, 4.0), 4.0)
    mean = np.concatenate([np.zeros(4), np.full(10, 0.1)])[:, None]
    ones = np.concatenate([np.ones(4), np.ones(10)])[:, None]
    last = np.concatenate([np.ones(4), [1.0]])[:, None]
    assert np.sum(all_ten.solve(ones)) == pytest.approx(np.sum(few_readings.solve(last)), rel=1e-10)
    assert np.sum(mean * all_ten.apply(mean)) == pytest.approx(few_readings.diagonal[-1], rel=1e-12)


def test_a_released_and_a_known_value_share_the_noise_of_their_fix() -> None:
    system = markov_system(
        White(2.0), [7.0, 7.0, 9.0], np.array([0.0, 100.0, 1.0]), 1.0, released=[1, 0, 1]
    )
    matrix = np.array([[4.0, 4.0, 0.0], [4.0, 104.0, 0.0], [0.0, 0.0, 5.0]])
    assert np.allclose(system.apply(np.eye(3)), matrix, rtol=1e-15)
    assert np.allclose(system.solve(matrix), np.eye(3), atol=1e-15)


@given(
    noises=st.lists(st.floats(0.1, 1e4), min_size=1, max_size=6),
    white=st.sampled_from([0.0, 1e-3, 4.0, 1e6]),
)
def test_whitening_is_the_factor_of_a_fix(noises: list[float], white: float) -> None:
    count = len(noises)
    later = tuple(np.array([k]) for k in range(1, count))
    whitening = _whitening(later, np.array(noises), white)
    block = white * np.ones((count, count)) + np.diag(noises)
    independent = whitening.forwards(whitening.forwards(block).T)
    assert np.allclose(independent, np.diag(whitening.variances), rtol=1e-12, atol=1e-12 * white)
    x = np.arange(1.0, count + 1)[:, None]
    both = whitening.backwards(whitening.forwards(x) / whitening.variances[:, None])
    assert np.allclose(block @ both, x, rtol=1e-9, atol=1e-9)


def test_what_is_refused() -> None:
    kernel = Matern32(60.0)
    with pytest.raises(NumericalError, match="no independent noise"):
        markov_system(kernel, [0.0, 1.0], np.array([0.0, 1.0]), 1.0)
    with pytest.raises(NumericalError, match="no independent noise"):
        markov_system(kernel + White(1.0), [0.0, 0.0], np.zeros(2), 1.0)
    with pytest.raises(InvalidValue, match="2 finite variances"):
        markov_system(kernel, [0.0, 1.0], np.array([1.0, -1.0]), 1.0)
    with pytest.raises(InvalidValue, match="2 finite variances"):
        markov_system(kernel, [0.0, 1.0], np.ones(3), 1.0)
    with pytest.raises(InvalidValue, match="Markov kernels"):
        markov_rows(RBF(1.0), [0.0])
    with pytest.raises(InvalidValue, match="Markov kernels"):
        markov_rows(kernel, [0.0], RBF(1.0))
    with pytest.raises(InvalidValue, match="one finite number a row"):
        markov_rows(kernel, [])
    with pytest.raises(InvalidValue, match="origin before the first time"):
        markov_rows(IntegratedOU(1.0, 1.0, 5.0), [4.0, 9.0])


def test_work_grows_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that pass through the recursions and arrays that are kept, counted, not timed."""
    passed: list[int] = []
    run = Recursion.run

    def counted(self: Recursion, u: FloatArray, *, backwards: bool = False) -> FloatArray:
        passed.append(u.size + self.band.size)
        return run(self, u, backwards=backwards)

    monkeypatch.setattr(Recursion, "run", counted)

    def work(count: int) -> int:
        passed.clear()
        times = np.arange(float(count))
        system = markov_system(SMOOTH["sum"], times, np.ones(count), 1.0, process=PROCESS)
        system.solve(np.ones((count, 1)))
        assert system.factor.recursion.band.size <= 100 * count
        return sum(passed)

    assert work(4_000) == 4 * work(1_000)


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE.keys())
def test_products_of_large_matrices_without_the_matrix(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = nasty_times(60, seed=1), nasty_times(50, seed=2)
    b[::3] = a[: b[::3].size]  # shared times: measurement noise counts there
    b = np.unique(b)
    x = np.random.default_rng(0).normal(size=(b.size, 2))
    expected = kernel(a, b) @ x
    assert relative(covariance_product(kernel, a, b, x), expected) < 1e-15
    monkeypatch.setattr("trailveil.privacy.markov._LARGEST_BLOCK", 7)
    in_pieces = covariance_product(kernel, a, b, x)
    monkeypatch.setattr("trailveil.privacy.markov._MANY_COLUMNS", 0)
    assert relative(in_pieces, expected) < 1e-14
    assert relative(covariance_product(kernel, a, b, x), expected) < 1e-12


def test_a_matrix_that_is_not_markov_is_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    largest: list[int] = []
    formula = RBF.formula

    def watched(self: RBF, a: Any, b: Any, m: Any) -> Any:
        largest.append(np.broadcast(a, b).size)
        return formula(self, a, b, m)

    monkeypatch.setattr(RBF, "formula", watched)
    monkeypatch.setattr("trailveil.privacy.markov._LARGEST_BLOCK", 100)
    monkeypatch.setattr("trailveil.privacy.markov._MANY_COLUMNS", 0)
    a, b, x = np.arange(33.0), np.arange(20.0), np.ones((20, 1))
    product = covariance_product(RBF(3.0), a, b, x)
    assert max(largest) <= 100
    assert relative(product, RBF(3.0)(a, b) @ x) < 1e-15


def test_mpmath_is_left_as_it_was() -> None:
    assert mpmath.mp.dps == 15
