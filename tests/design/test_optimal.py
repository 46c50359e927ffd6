"""The optimum for several and for compound secrets: against a conic solver, its own dual.

And reference optima.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import Sweep
from trailveil.design.designer import design
from trailveil.design.exact import exact_sdp
from trailveil.design.interior import (
    Constraint,
    Reduced,
    _centre,
    _derivatives,
    _evaluate,
    _triangle,
)
from trailveil.design.optimal import Demand, least_noise_for
from trailveil.gaussian import FloatArray
from trailveil.kernels import RBF, Kernel, Matern32, Periodic, White
from trailveil.loss import losses
from trailveil.mechanism import no_noise
from trailveil.prior import Prior
from trailveil.secrets import Secret, basic, compound, difference, stay, window_mean

# What a conic solver is good for, and how far below it we may be, relative.
AGREES, BELOW = 1e-4, 1e-5


def reference(shared: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(
        (shared / "reference" / "optima.json").read_text(encoding="utf-8")
    )["cases"]
    return cases


def kernel_of(case: dict[str, Any]) -> Kernel:
    if case["kernel"] == "periodic":
        return Periodic(case["length_scale"], case["period"])
    return RBF(case["length_scale"])


@pytest.mark.slow
def test_least_noise_agrees_with_the_reference(shared: Path, sweep: Sweep) -> None:
    cases = [case for case in reference(shared) if case["case"].startswith("least noise")]
    assert cases
    for case in sweep(cases):
        kernel = kernel_of(case) + White(case["noise_variance"] ** 0.5)
        prior = Prior(kernel, np.arange(float(case["points"])))
        secrets = [basic(float(index), recorded=True) for (index,) in case["secrets"]]
        mechanism, certificate = design(prior, secrets, bounds=[case["loss_bound"]] * len(secrets))
        ratio = mechanism.noise_trace / case["noise_trace_optimal"] - 1
        assert -BELOW <= ratio <= AGREES
        assert all(one.loss.largest <= case["loss_bound"] for one in certificate.outcomes)
        assert certificate.gap is not None
        assert certificate.gap <= 1e-3


@pytest.mark.slow
def test_compound_losses_agree_with_the_reference(shared: Path, sweep: Sweep) -> None:
    cases = [case for case in reference(shared) if case["case"] == "compound"]
    assert cases
    for case in sweep(cases, short=3):
        prior = Prior(kernel_of(case), np.arange(float(case["points"])))
        secret = compound([float(index) for index in case["secret"]], recorded=True)
        mechanism, certificate = design(prior, [secret], budget=case["noise_trace"])
        (outcome,) = certificate.outcomes
        assert mechanism.noise_trace == pytest.approx(case["noise_trace"], rel=1e-9)
        assert -BELOW - 5e-5 <= outcome.loss.largest / case["loss_optimal"] - 1 <= AGREES
        assert 2 * outcome.deviation == pytest.approx(case["interval_optimal"], rel=5e-4)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Prior, list[Secret], list[float]]:
    count = draw(st.integers(4, 9))
    steps = draw(st.lists(st.floats(0.2, 2.0), min_size=count, max_size=count))
    scale = draw(st.floats(0.5, 4.0))
    kernel = draw(st.sampled_from([RBF(scale), Matern32(scale)])) + White(
        draw(st.floats(0.05, 0.5))
    )
    prior = Prior(kernel, np.cumsum(steps))
    times = prior.times
    picked = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=3, unique=True))
    makers = [
        basic(times[picked[0]], recorded=True),
        window_mean(times[: picked[1] + 1], recorded=True),
        difference(times[0], times[-1], recorded=True),
        basic(float(times[picked[1]]) + 0.1),
        compound([times[picked[0]], times[picked[1]]], recorded=True),
    ]
    chosen = draw(
        st.lists(st.sampled_from(range(len(makers))), min_size=1, max_size=3, unique=True)
    )
    bounds = [draw(st.floats(0.5, 20.0)) for _ in chosen]
    return prior, [makers[i] for i in chosen], bounds


@settings(max_examples=12)
@given(problems())
def test_any_secrets_agree_with_a_conic_solver(
    problem: tuple[Prior, list[Secret], list[float]],
) -> None:
    prior, secrets, bounds = problem
    demands = [Demand(one, bound) for one, bound in zip(secrets, bounds, strict=True)]
    found = least_noise_for(prior, demands, no_noise(prior.times))
    assume(found.trace > 0)  # else nothing is needed, which the oracle cannot say
    oracle = exact_sdp(prior, secrets, bounds=bounds)
    trace = oracle.mechanism.noise_trace
    assert found.trace == pytest.approx(trace, rel=AGREES)
    # The bound is proved: it is above no feasible trace, the oracle's included (good to 1e-5).
    assert found.least_trace <= found.trace * (1 + 1e-9)
    assert found.least_trace <= trace * (1 + BELOW)
    assert found.gap <= 1e-3


@settings(max_examples=10)
@given(problems())
def test_what_design_returns_meets_every_bound(
    problem: tuple[Prior, list[Secret], list[float]],
) -> None:
    prior, secrets, bounds = problem
    mechanism, certificate = design(prior, secrets, bounds=bounds)
    for one, bound in zip(certificate.outcomes, bounds, strict=True):
        assert one.effective <= bound
    again = losses(prior, secrets, mechanism)
    assert [one.largest for one in again] == [one.loss.largest for one in certificate.outcomes]


def test_many_neighbours_need_few_directions() -> None:
    prior = Prior(RBF(6.0) + White(0.1), np.arange(40.0))
    demands = [Demand(basic(float(i), recorded=True), 8.0) for i in range(20, 30)]
    found = least_noise_for(prior, demands, no_noise(prior.times))
    spectrum = np.linalg.svd(found.factor, compute_uv=False) ** 2
    assert np.count_nonzero(spectrum > 1e-3 * found.trace) < len(demands) / 2
    assert found.gap <= 1e-3


def test_a_stay_is_refused_among_others() -> None:
    prior = Prior(Matern32(3.0) + White(0.1), np.arange(9.0))
    with pytest.raises(ValueError, match="a stay must be designed for by itself"):
        least_noise_for(prior, [Demand(stay(1.0, 4.0), 1.0)], no_noise(prior.times))


def test_derivatives_are_those_of_the_barrier() -> None:
    generator = np.random.default_rng(7)
    problem, noise = _random_problem(generator)
    t = 3.0
    gradient, hessian = _derivatives(problem, _evaluate(problem, noise), t)
    rows, columns, weights = _triangle(noise.shape[0])
    direction = generator.normal(size=rows.size)
    step = np.zeros_like(noise)
    step[rows, columns] = step[columns, rows] = direction

    def barrier(size: float) -> float:
        moved = noise + size * step
        return t * float(np.trace(moved)) + _evaluate(problem, moved).value

    h = 1e-4  # the fourth-order error of the first and the rounding of the second are below 1e-5
    slope = (barrier(h) - barrier(-h)) / (2 * h)
    bend = (barrier(h) - 2 * barrier(0.0) + barrier(-h)) / h**2
    assert 2 * weights * gradient[rows, columns] @ direction == pytest.approx(slope, rel=1e-5)
    assert direction @ hessian @ direction == pytest.approx(bend, rel=1e-4)


def test_centring_lowers_the_barrier() -> None:
    problem, noise = _random_problem(np.random.default_rng(8))
    centre, _ = _centre(problem, noise, 5.0, 1e-9)
    before, after = (
        5.0 * float(np.trace(k)) + _evaluate(problem, k).value for k in (noise, centre)
    )
    assert after < before


def _random_problem(generator: np.random.Generator) -> tuple[Reduced, FloatArray]:
    size = 4
    information = [_positive(generator, size) for _ in range(2)]
    constraints = tuple(
        Constraint(i % 2, generator.normal(size=(size, k)), np.eye(k), 0.5 * np.eye(k))
        for i, k in enumerate((1, 2, 3))
    )
    return Reduced(tuple(information), constraints), 2.0 * _positive(generator, size)


def _positive(generator: np.random.Generator, size: int) -> FloatArray:
    root = generator.normal(size=(size, size))
    return np.asarray(root @ root.T + 0.1 * np.eye(size))
