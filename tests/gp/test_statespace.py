"""State-space models of kernels, against their differential equations in 40 digits and more."""

from typing import Any

import mpmath
import numpy as np
import pytest

from tests.markov_cases import SMOOTH, WITH_NOISE
from trailveil.errors import InvalidValue
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Periodic,
    Scaled,
    StoppedClock,
    Sum,
    Warped,
    White,
)
from trailveil.gp.statespace import (
    Component,
    IntegratedState,
    LevelState,
    MaternState,
    Term,
    is_markov,
    required_state_space,
    state_space,
)

# The drift of each state at rate one, and the variance that drives its last component.
DRIFTS: list[tuple[Term, list[list[int]], str]] = [
    (MaternState(0, 1.0), [[-1]], "2"),
    (MaternState(1, 1.0), [[0, 1], [-1, -2]], "4"),
    (MaternState(2, 1.0), [[0, 1, 0], [0, 0, 1], [-1, -3, -3]], "16/3"),
    (IntegratedState(1.0, 0.0), [[0, 1], [0, -1]], "2"),
    (LevelState(), [[0]], "0"),
]
STEPS = [0.0, 1e-9, 1e-4, 0.03, 0.4999, 0.5, 1.7, 12.0, 40.0]


def exact(drift: list[list[int]], drive: str, step: float) -> tuple[Any, Any]:
    """F and Q by their definitions: e^(A h), and the integral of its driven column squared."""
    with mpmath.workdps(40):
        a, h = mpmath.matrix(drift), mpmath.mpf(step)
        size = a.rows
        # Van Loan: exp of [[A, q e e^T], [0, -A^T]] h holds F, and Q F^-T.
        whole = mpmath.zeros(2 * size)
        whole[:size, :size], whole[size:, size:] = a, -a.T
        whole[size - 1, 2 * size - 1] = mpmath.fraction(*map(int, (drive + "/1").split("/")[:2]))
    with mpmath.workdps(120):
        both = mpmath.expm(whole * h, method="taylor")
        transition = both[:size, :size]
        return transition, both[:size, size:] * transition.T


@pytest.mark.parametrize(("term", "drift", "drive"), DRIFTS, ids=lambda case: type(case).__name__)
@pytest.mark.parametrize("step", STEPS)
def test_transition_and_noise_solve_the_differential_equation(
    term: Term, drift: list[list[int]], drive: str, step: float
) -> None:
    transition, noise = exact(drift, drive, step)
    computed = term.transition(np.array([step]))[..., 0], term.noise(np.array([step]))[..., 0]
    scale = np.sqrt(np.array([[float(noise[i, i]) for i in range(term.size)]]))
    for i in range(term.size):
        for j in range(term.size):
            assert computed[0][i, j] == pytest.approx(float(transition[i, j]), rel=1e-14, abs=1e-15)
            bound = 2e-14 * scale[0, i] * scale[0, j]
            assert abs(computed[1][i, j] - float(noise[i, j])) <= bound


@pytest.mark.parametrize("term", [case[0] for case in DRIFTS])
def test_shapes_follow_the_steps(term: Term) -> None:
    steps = np.abs(np.random.default_rng(0).normal(size=(3, 4)))
    for matrices in (term.transition(steps), term.noise(steps)):
        assert matrices.shape == (term.size, term.size, 3, 4)
    assert term.start(2.0).shape == (term.size, term.size)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_the_stationary_covariance_stays(p: int) -> None:
    term, steps = MaternState(p, 0.7), np.array([0.3, 5.0])
    start = term.start(0.0)
    moved = np.einsum("ijn,jk,lkn->iln", term.transition(steps), start, term.transition(steps))
    assert np.allclose(moved + term.noise(steps), start[:, :, None], rtol=0, atol=4e-15)


def test_a_forgotten_past_is_forgotten_at_any_distance() -> None:
    term = MaternState(2, 1.0)
    steps = np.array([1e3, 1e30, 1e300])
    assert not np.any(term.transition(steps))
    assert np.allclose(term.noise(steps), term.start(0.0)[:, :, None])


@pytest.mark.parametrize("kernel", WITH_NOISE.values(), ids=WITH_NOISE.keys())
def test_variances_are_the_kernels(kernel: Kernel) -> None:
    model = required_state_space(kernel)
    first = sum(
        part.variance * part.term.start(float(part.inputs(np.zeros(1))[0]))[0, 0]
        for part in model.components
    )
    assert first + model.white == pytest.approx(kernel.diagonal([0.0])[0], rel=1e-15)


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH.keys())
def test_sums_and_scales_of_markov_kernels_are_markov(kernel: Kernel) -> None:
    assert is_markov(kernel)
    assert is_markov(3.0 * kernel + White(1.0) + Constant(5.0))
    assert is_markov(kernel.warp(StoppedClock(((1.0, 2.0),))), [0.0, 3.0])


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.0),
        Periodic(1.0, 24.0),
        Matern12(1.0) * Matern12(2.0),
        Matern12(1.0) + RBF(1.0),
        2.0 * RBF(1.0),
        Warped(RBF(1.0), StoppedClock(())),
        "no kernel",
        None,
    ],
)
def test_other_kernels_are_not(kernel: object) -> None:
    assert not is_markov(kernel)
    assert state_space(kernel) is None


def test_white_noise_adds_up() -> None:
    kernel = Scaled(Sum((White(2.0), Matern12(1.0), White(1.0))), 3.0) + White(1.0)
    assert required_state_space(kernel).white == pytest.approx(16.0)
    assert required_state_space(None).components == ()
    with pytest.raises(InvalidValue, match="Markov kernels"):
        required_state_space(RBF(1.0))


def test_an_integrated_series_begins_at_its_origin() -> None:
    kernel = Matern32(1.0) + IntegratedOU(1.0, 1.0, 5.0)
    assert is_markov(kernel)
    assert is_markov(kernel, [9.0, 5.0])
    assert is_markov(kernel, [])
    assert not is_markov(kernel, [9.0, 4.999])
    # Time spent in a window before the first fix moves that fix to before the origin.
    assert not is_markov(kernel.warp(StoppedClock(((0.0, 2.0),))), [6.0, 9.0])


def test_a_clock_that_stands_still_gives_equal_inputs() -> None:
    times = np.cumsum(np.random.default_rng(1).exponential(0.37, 2_000))
    start, end = 100.1, 600.3
    part = Component(LevelState(), 1.0, (StoppedClock(((start, end),)),))
    inputs = part.inputs(times)
    inside = (times >= start) & (times <= end)
    assert np.all(np.diff(inputs) >= 0)
    assert np.ptp(inputs[inside]) <= 1e-12


def test_a_clock_that_runs_backwards_is_refused() -> None:
    part = Component(LevelState(), 1.0, (lambda times: -times,))
    with pytest.raises(InvalidValue, match="never run backwards"):
        part.inputs(np.array([1.0, 2.0]))
