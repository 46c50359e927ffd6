"""The exact programs: the reference optima, what is known in closed form, and laws."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Sweep
from tests.oracles import exact
from tests.oracles.exact import exact_block_sdp, exact_sdp
from trailveil.designer import closed_form
from trailveil.designer.block import exact_block
from trailveil.designer.paper import sdp_a
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.kernels import RBF, IntegratedOU, Periodic, White
from trailveil.privacy.loss import Loss, loss_matrix
from trailveil.privacy.mechanism import no_noise
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret


def noisy(count: int = 8, scale: float = 2.0, noise: float = 0.2) -> Prior:
    return Prior(RBF(scale) + White(noise), np.arange(float(count)))


def recorded(*times: float) -> Secret:
    return Secret.at(times, recorded=True)


def reference_prior(case: dict[str, Any]) -> Prior:
    scale, noise = case["length_scale"], case.get("noise_variance", 0.0)
    smooth = RBF(scale) if case["kernel"] == "rbf" else Periodic(scale, case["period"])
    kernel = smooth + White(float(np.sqrt(noise))) if noise else smooth
    return Prior(kernel, np.arange(float(case["points"])))


@pytest.mark.slow
def test_reference_optima_for_a_budget(shared: Path, sweep: Sweep) -> None:
    cases = json.loads((shared / "reference" / "optima.json").read_text())["cases"]
    # At length scale 1 and 2.5 nearly all directions count, and one solve takes 5 to 10 s.
    chosen = [case for case in cases if "secret" in case and case["length_scale"] not in (1, 2.5)]
    for case in sweep(chosen[1:], short=4):
        of = reference_prior(case)
        free = exact_sdp(of, [recorded(*case["secret"])], budget=case["noise_trace"])
        # The reference says 1e-6, but is too low by up to 2.8e-5 for compound secrets of
        # neighbours: ours is the same to 1e-7 at three scalings of the program.
        assert free.value == pytest.approx(case["loss_optimal"], rel=5e-5)
        assert free.losses[0] == pytest.approx(free.value, rel=1e-5)
        assert free.mechanism.noise_trace == pytest.approx(case["noise_trace"], rel=1e-9)
        block = exact_block_sdp(of, [case["secret"]], budget=case["noise_trace"])
        assert block.value == pytest.approx(case["loss_independent_secret_noise"], rel=5e-5)
        assert block.losses[0] == pytest.approx(block.value, rel=1e-5)


@pytest.mark.slow
def test_reference_optima_for_bounds(shared: Path, sweep: Sweep) -> None:
    cases = json.loads((shared / "reference" / "optima.json").read_text())["cases"]
    for case in sweep([case for case in cases if "secrets" in case], short=3):
        secrets = [recorded(*indices) for indices in case["secrets"]]
        bounds = [case["loss_bound"]] * len(secrets)
        optimum = exact_sdp(reference_prior(case), secrets, bounds=bounds)
        assert optimum.value == pytest.approx(case["noise_trace_optimal"], rel=1e-6)
        assert max(optimum.losses) <= case["loss_bound"]
        assert optimum.mechanism.noise_trace == pytest.approx(optimum.value, rel=1e-5)


@settings(max_examples=15)
@given(st.integers(0, 7), st.floats(0.05, 5.0), st.floats(0.5, 3.0))
def test_one_index_is_the_closed_form(index: int, budget: float, scale: float) -> None:
    of = noisy(scale=scale)
    optimum = exact_sdp(of, [recorded(index)], budget=budget)
    least = closed_form.least_possible_loss(of, recorded(index), budget)
    assert optimum.losses[0] == pytest.approx(least, rel=1e-6)
    block = exact_block_sdp(of, [[index]], budget=budget)
    mechanism = exact_block(of, recorded(index), budget)
    assert block.losses[0] == pytest.approx(
        loss_matrix(of, recorded(index), mechanism).largest, rel=1e-6
    )


@settings(max_examples=15)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True),
    st.floats(0.05, 5.0),
    st.sampled_from([1.0, 1000.0]),
)
def test_approximation_structure_and_optimum_stand_in_this_order(
    indices: list[int], budget: float, factor: float
) -> None:
    of, secret = noisy(), recorded(*indices)
    approximated = loss_matrix(of, secret, sdp_a(of, indices, budget, factor=factor)).largest
    block = exact_block_sdp(of, [indices], budget=budget).losses[0]
    free = exact_sdp(of, [secret], budget=budget).losses[0]
    assert free <= block * (1 + 1e-6)
    assert block <= approximated * (1 + 1e-6)


@pytest.mark.parametrize(
    "secret",
    [
        Secret.at(2.0),
        Secret.at(2.5),
        Secret.at([1.5, 4.0]),
        Secret.mean([1, 2, 3.0]),
        Secret.difference(1, 5),
    ],
)
def test_any_secret_will_do_and_bounds_invert_budgets(secret: Secret) -> None:
    of = noisy()
    optimum = exact_sdp(of, [secret], budget=0.8)
    if secret.size == 1:
        least = closed_form.least_possible_loss(of, secret, 0.8)
        assert optimum.value == pytest.approx(least, rel=1e-6)
    back = exact_sdp(of, [secret], bounds=[optimum.value])
    assert back.value == pytest.approx(0.8, rel=1e-5)
    assert back.losses[0] <= optimum.value


def test_a_stay_and_a_level_of_100_km() -> None:
    of = Prior(IntegratedOU(3.0, 60.0) + White(2.0), np.arange(0.0, 120.0, 15.0))
    secret = Secret.stay(30.0, 60.0)
    optimum = exact_sdp(of, [secret], bounds=[1e-4])
    least = closed_form.least_possible_noise(of, secret, 1e-4)
    assert optimum.value == pytest.approx(least, rel=1e-5)
    assert optimum.losses[0] <= 1e-4


def test_each_secret_has_its_own_bound() -> None:
    secrets, bounds = [recorded(1), recorded(5, 6)], [2.0, 6.0]
    optimum = exact_sdp(noisy(), secrets, bounds=bounds)
    assert all(loss <= bound for loss, bound in zip(optimum.losses, bounds, strict=True))
    assert optimum.losses[0] == pytest.approx(2.0, rel=1e-5)
    assert optimum.losses[1] == pytest.approx(6.0, rel=1e-5)
    ratio = exact_sdp(noisy(), secrets, bounds=bounds, budget=optimum.value)
    assert ratio.value == pytest.approx(1.0, rel=1e-5)
    block = exact_block_sdp(noisy(), [[1], [5, 6]], bounds=bounds)
    assert block.value >= optimum.value
    assert max(block.losses[0] / 2, block.losses[1] / 6) == pytest.approx(1.0, rel=1e-5)


def test_the_block_structure_is_kept_where_secrets_overlap() -> None:
    mechanism = exact_block_sdp(noisy(), [[1, 2], [2, 5], [7]], budget=1.0).mechanism
    gamma = mechanism.covariance()
    assert mechanism.noise_trace == pytest.approx(1.0, rel=1e-9)
    joined = [1, 2, 5]
    np.testing.assert_allclose(np.diagonal(gamma)[joined], gamma[1, 1], rtol=1e-9)
    assert gamma[7, 7] != pytest.approx(gamma[1, 1], rel=1e-3)
    for index in (*joined, 7):
        assert not np.any(np.delete(gamma[index], index))


def test_a_secret_of_every_fix_leaves_no_rest() -> None:
    every = exact_block_sdp(noisy(3), [[0, 1, 2]], budget=0.3)
    np.testing.assert_allclose(every.mechanism.covariance(), 0.1 * np.eye(3), atol=1e-8)
    assert every.value == pytest.approx(10.0, rel=1e-6)


def test_utility_weights_move_the_noise() -> None:
    weights = np.ones(8)
    weights[:3] = 10.0
    plain = exact_sdp(noisy(), [recorded(4)], bounds=[1.0])
    optimum = exact_sdp(noisy(), [recorded(4)], bounds=[1.0], weights=weights)
    spent = float(weights @ optimum.mechanism.variances)
    assert optimum.value == pytest.approx(spent, rel=1e-6)
    assert spent < float(weights @ plain.mechanism.variances) * 0.99
    assert np.sum(optimum.mechanism.variances[:3]) < np.sum(plain.mechanism.variances[:3])
    again = exact_sdp(noisy(), [recorded(4)], budget=spent, weights=weights)
    assert again.value == pytest.approx(1.0, rel=1e-5)


def test_one_cone_for_all_is_a_cone_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [recorded(i) for i in range(5)] + [recorded(2, 6)]
    bounds = [1.0, 2.0, 3.0, 2.0, 1.0, 4.0]
    shared = [
        exact_sdp(noisy(), secrets, bounds=bounds).value,
        exact_sdp(noisy(), secrets, budget=1.0, bounds=bounds).value,
    ]
    monkeypatch.setattr(exact, "_MANY", 100)
    separate = [
        exact_sdp(noisy(), secrets, bounds=bounds).value,
        exact_sdp(noisy(), secrets, budget=1.0, bounds=bounds).value,
    ]
    np.testing.assert_allclose(shared, separate, rtol=1e-6)


def test_without_measurement_noise_the_noise_keeps_the_solvers_word() -> None:
    of = Prior(RBF(3.0), np.arange(16.0))
    for optimum in (
        exact_sdp(of, [recorded(7), recorded(3, 4)], budget=1.0),
        exact_block_sdp(of, [[7], [3, 4]], budget=1.0),
    ):
        assert optimum.mechanism.refinement is not None
        assert max(optimum.losses) == pytest.approx(optimum.value, rel=1e-4)


def test_the_noise_of_the_solver_must_keep_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(of: Prior, secrets: list[Secret], mechanism: object) -> list[Loss]:
        return [Loss(np.array([[10.0]]), 0.0)] * len(secrets)

    monkeypatch.setattr(exact, "losses", twice)
    with pytest.raises(NumericalError, match="must be what it says"):
        exact_sdp(noisy(), [recorded(3)], budget=1.0)
    with pytest.raises(NumericalError, match="must be what it says"):
        exact_sdp(noisy(), [recorded(3)], bounds=[1.0])


def test_a_bound_that_needs_no_noise_gets_none() -> None:
    of = noisy(noise=1.0)
    secret = Secret.at(3.0)
    free = loss_matrix(of, secret, no_noise(of.times)).largest
    optimum = exact_sdp(of, [secret], bounds=[2 * free])
    assert optimum.value < 1e-6


def test_bad_input_is_refused() -> None:
    of, secret = noisy(), recorded(3)
    for secrets, options in (
        ([], {"budget": 1.0}),
        ([secret], {}),
        ([secret], {"budget": 0.0}),
        ([secret], {"budget": float("nan")}),
        ([secret], {"bounds": [0.0]}),
        ([secret], {"bounds": [1.0, 1.0]}),
        ([secret], {"budget": 1.0, "weights": np.ones(7)}),
        ([secret], {"budget": 1.0, "weights": -np.ones(8)}),
    ):
        with pytest.raises(InvalidValue, match="must be"):
            exact_sdp(of, secrets, **options)
    for indices in ([], [1, 1], [8], [-1]):
        with pytest.raises(InvalidValue):
            exact_block_sdp(of, [indices], budget=1.0)
