"""SDP_A and Multiple Secrets: the authors' numbers, the closed form's own optimality, and laws."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Sweep
from trailveil.designer.closed_form import least_possible_loss
from trailveil.designer.paper import (
    SdpA,
    check_indices,
    multiple_secrets,
    posterior_as_published,
    sdp_a,
    sdp_a_noise,
)
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Kernel, Matern32, Periodic, White
from trailveil.privacy.loss import loss_matrix, losses
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

JITTER = 1e-6  # of the authors, stated


def prior(kernel: Kernel, count: int) -> Prior:
    return Prior(kernel, np.arange(float(count)))


def noisy(scale: float = 2.5, count: int = 12) -> Prior:
    return prior(RBF(scale) + White(0.2), count)


def recorded(of: Prior, indices: Sequence[int]) -> Secret:
    return Secret.at([float(of.times[i]) for i in indices], recorded=True)


def seen(covariance: FloatArray, sdp_a: SdpA, gamma: FloatArray) -> FloatArray:
    """R^-1 At^T (Ct + Gamma) At R^-1, written out: what the program bounds from below by beta I."""
    at, u = sdp_a.indices, sdp_a.others
    a = covariance[np.ix_(u, at)] @ np.linalg.inv(covariance[np.ix_(at, at)])
    conditional = np.zeros_like(covariance)
    conditional[np.ix_(u, u)] = covariance[np.ix_(u, u)] - a @ covariance[np.ix_(at, u)]
    tall = np.zeros((len(covariance), len(at)))
    tall[at], tall[u] = np.eye(len(at)), a
    inverse = np.linalg.inv(tall.T @ tall) @ tall.T
    return np.asarray(inverse @ (conditional + gamma) @ inverse.T)


def full(sdp_a: SdpA) -> FloatArray:
    """Gamma before its cross block is dropped: At X At^T."""
    size = sdp_a.indices.size + sdp_a.others.size
    tall = np.zeros((size, sdp_a.indices.size))
    tall[sdp_a.indices], tall[sdp_a.others] = np.eye(sdp_a.indices.size), sdp_a.regression
    return np.asarray(tall @ sdp_a.spread @ tall.T)


# --- One secret ----------------------------------------------------------------------------------


def test_a_single_index_has_the_simple_form() -> None:
    sigma = noisy().covariance
    sdp_a = sdp_a_noise(sigma, [5], 0.7)
    a = np.delete(sigma[:, 5], 5) / sigma[5, 5]
    variance = 0.7 / (1 + a @ a)
    expected = np.zeros((12, 12))
    others = np.arange(12) != 5
    expected[5, 5], expected[np.ix_(others, others)] = variance, variance * np.outer(a, a)
    np.testing.assert_allclose(sdp_a.covariance, expected, atol=1e-15)
    assert sdp_a.secret_variance == pytest.approx(variance)
    # Whatever the factor: with one index there is nothing to trade.
    np.testing.assert_allclose(
        sdp_a_noise(sigma, [5], 0.7, factor=1e4).covariance, expected, atol=1e-12
    )


@pytest.mark.slow
def test_losses_are_those_of_the_reference(shared: Path, sweep: Sweep) -> None:
    cases = json.loads((shared / "reference" / "optima.json").read_text())["cases"]
    for case in sweep([case for case in cases if "loss_sdp_a" in case], short=3):
        of = prior(kernel_of(case["kernel"], case["length_scale"]), case["points"])
        mechanism = sdp_a(of, case["secret"], case["noise_trace"])
        loss = loss_matrix(of, recorded(of, case["secret"]), mechanism).largest
        assert loss == pytest.approx(case["loss_sdp_a"], rel=1e-9)
        assert mechanism.noise_trace == pytest.approx(case["noise_trace"], rel=1e-12)


def kernel_of(name: str, scale: float) -> Kernel:
    return RBF(scale) if name == "rbf" else Periodic(scale, period=24.0)


SECRET = st.lists(st.integers(0, 11), min_size=1, max_size=4, unique=True)
BUDGET = st.floats(1e-3, 1e3)


@given(SECRET, BUDGET, st.sampled_from([1.0, 10.0, 1e4]), st.floats(0.5, 5.0))
def test_the_noise_spends_the_budget_and_reaches_beta(
    secret: list[int], budget: float, factor: float, scale: float
) -> None:
    sigma = noisy(scale).covariance
    sdp_a = sdp_a_noise(sigma, secret, budget, factor=factor)
    assert np.trace(sdp_a.covariance) == pytest.approx(budget, rel=1e-10)
    assert np.linalg.eigvalsh(sdp_a.spread)[0] >= -1e-12 * budget
    gamma = factor * full(sdp_a)
    assert np.trace(gamma) == pytest.approx(factor * budget, rel=1e-10)
    reached = np.linalg.eigvalsh(seen(sigma, sdp_a, gamma))
    assert reached[0] == pytest.approx(sdp_a.beta, rel=1e-8)
    if not sdp_a.clipped:  # all directions of the secret alike
        assert reached[-1] == pytest.approx(sdp_a.beta, rel=1e-8)
    np.testing.assert_array_equal(sdp_a.covariance[np.ix_(sdp_a.indices, sdp_a.others)], 0.0)


@given(SECRET, BUDGET, st.integers(0, 1000))
def test_no_other_noise_of_that_trace_reaches_further(
    secret: list[int], budget: float, seed: int
) -> None:
    sigma = noisy().covariance
    sdp_a = sdp_a_noise(sigma, secret, budget)
    part = np.random.default_rng(seed).standard_normal((12, 12))
    other = part @ part.T
    for share in (1e-4, 1e-2, 1.0):
        mixed = (1 - share) * full(sdp_a) + share * budget / np.trace(other) * other
        reached = np.linalg.eigvalsh(seen(sigma, sdp_a, mixed))[0]
        assert reached <= sdp_a.beta * (1 + 1e-9)


def test_beta_i_less_k0_is_not_always_positive() -> None:
    # Neighbours: what the rest leaves open of their difference is more than beta, and stays unused.
    sigma = noisy().covariance
    sdp_a = sdp_a_noise(sigma, [5, 6], 0.05)
    assert sdp_a.clipped
    assert np.linalg.matrix_rank(sdp_a.spread, tol=1e-9) == 1
    open_part = seen(sigma, sdp_a, np.zeros((12, 12)))
    assert np.linalg.eigvalsh(sdp_a.beta * np.eye(2) - open_part)[0] < 0
    # The formula without the positive part would miss the budget it was given.
    strength = np.eye(2) + sdp_a.regression.T @ sdp_a.regression
    plain = (0.05 + np.trace(strength @ open_part)) / np.trace(strength)
    assert sdp_a.beta < plain * 0.999
    assert not sdp_a_noise(sigma, [5, 6], 0.05, factor=1000.0).clipped


@given(SECRET, BUDGET, st.floats(0.1, 100.0), st.integers(0, 1000))
def test_units_and_the_order_of_fixes_do_not_matter(
    secret: list[int], budget: float, unit: float, seed: int
) -> None:
    sigma = noisy().covariance
    covariance = sdp_a_noise(sigma, secret, budget).covariance
    other = sdp_a_noise(unit**2 * sigma, secret, unit**2 * budget).covariance
    np.testing.assert_allclose(other, unit**2 * covariance, atol=1e-6 * unit**2 * budget)
    order = np.random.default_rng(seed).permutation(12)
    place = np.argsort(order)
    moved = sdp_a_noise(sigma[np.ix_(order, order)], place[secret], budget).covariance
    np.testing.assert_allclose(moved, covariance[np.ix_(order, order)], atol=1e-6 * budget)


def test_a_secret_of_every_fix_gets_white_noise() -> None:
    sdp_a = sdp_a_noise(np.diag([1.0, 2.0, 3.0]), [0, 1, 2], 0.3)
    np.testing.assert_allclose(sdp_a.covariance, 0.1 * np.eye(3), atol=1e-15)


@given(st.integers(0, 11), BUDGET, st.floats(0.5, 5.0))
def test_the_optimum_is_never_worse(index: int, budget: float, scale: float) -> None:
    of = noisy(scale)
    secret = recorded(of, [index])
    loss = loss_matrix(of, secret, sdp_a(of, [index], budget)).largest
    assert least_possible_loss(of, secret, budget) <= loss * (1 + 1e-9)


@pytest.mark.slow
def test_without_measurement_noise_all_digits_are_needed() -> None:
    of = prior(RBF(6.1), 50)
    mechanism = sdp_a(of, [24], 1.0)
    rounded = type(mechanism)(mechanism.times, mechanism.factor)
    secret = recorded(of, [24])
    assert loss_matrix(of, secret, mechanism).largest < 22
    assert loss_matrix(of, secret, rounded).largest > 1e6


# --- Several secrets -----------------------------------------------------------------------------

SECRETS = st.lists(
    st.lists(st.integers(0, 11), min_size=1, max_size=3, unique=True),
    min_size=1,
    max_size=4,
    unique_by=frozenset,
)


@settings(max_examples=40)
@given(SECRETS, st.sampled_from([1.0, 1000.0]), st.booleans())
def test_multiple_secrets_keep_every_promise_within_the_budget(
    secrets: list[list[int]], factor: float, exactly: bool
) -> None:
    of = noisy()
    several = multiple_secrets(of, secrets, 0.6, factor=factor, exactly=exactly)
    assert len(several.parts) == len(secrets)
    assert several.cover.trace <= 0.6 * (1 + 1e-9)
    assert several.cover.gap <= 1e-5
    if exactly:
        assert several.mechanism.noise_trace == pytest.approx(0.6, rel=1e-12)
    else:
        assert several.mechanism.noise_trace <= 0.6 * (1 + 1e-9)
    # More noise in the semidefinite order is more private: for every secret, in all directions.
    for secret, part in zip(secrets, several.parts, strict=True):
        alone = sdp_a(of, secret, 0.6 / len(secrets), factor=factor)
        np.testing.assert_allclose(alone.covariance(), part.covariance, atol=1e-15)
        after = loss_matrix(of, recorded(of, secret), several.mechanism).matrix
        before = loss_matrix(of, recorded(of, secret), alone).matrix
        assert np.linalg.eigvalsh(before - after)[0] >= -1e-8 * np.abs(before).max()


@pytest.mark.slow
@pytest.mark.parametrize("secrets", [[[24], [25], [26]], [[10, 11], [24], [30, 40]]])
def test_that_holds_without_measurement_noise(secrets: list[list[int]]) -> None:
    of = prior(RBF(4.0), 50)
    several = multiple_secrets(of, secrets, 1.0, factor=1000.0, exactly=True)
    assert several.mechanism.refinement is not None
    assert several.mechanism.noise_trace == pytest.approx(1.0, rel=1e-12)
    after = losses(of, [recorded(of, secret) for secret in secrets], several.mechanism)
    for part, loss in zip(several.parts, after, strict=True):
        direct = 1 / part.secret_variance
        inferential = 1 / np.linalg.eigvalsh(part.spread)[0]
        assert loss.largest <= (direct + inferential) * (1 + 1e-9)


def test_noise_on_every_fix_is_seen_to_have_a_floor() -> None:
    of = prior(RBF(4.0), 30)
    several = multiple_secrets(of, [[i] for i in range(30)], 0.6)
    assert several.mechanism.refinement is None
    assert several.mechanism.floor > 0
    np.testing.assert_allclose(several.mechanism.covariance(), several.cover.covariance, atol=1e-12)
    assert (
        loss_matrix(of, recorded(of, [15]), several.mechanism).slack > 0
    )  # double precision is enough


def test_one_secret_alone_is_sdp_a() -> None:
    of = noisy()
    covariance = multiple_secrets(of, [[3, 4]], 0.6).mechanism.covariance()
    np.testing.assert_allclose(covariance, sdp_a(of, [3, 4], 0.6).covariance(), atol=1e-15)


# --- The figure, as published --------------------------------------------------------------------

PANELS = {
    "a": ("rbf", 50, [24], 10.0),
    "b": ("rbf", 50, [24, 25], 1_000.0),
    "e": ("periodic", 48, [24], 10.0),
    "f": ("periodic", 48, [16, 32], 10.0),
}


def rows(shared: Path, panel: str) -> list[dict[str, float]]:
    figure = json.loads((shared / "reference" / "figure2.json").read_text())
    panel_rows: list[dict[str, float]] = figure["panels"][panel]
    return panel_rows


def interval(sigma: FloatArray, noise: FloatArray, indices: Sequence[int]) -> float:
    """2 sigma of the least uncertain direction."""
    posterior = posterior_as_published(sigma, noise, indices, jitter=JITTER)
    return float(2 * np.sqrt(np.linalg.eigvalsh(posterior)[0]))


def published(panel: str, scale: float) -> tuple[Prior, float]:
    kernel, count, secret, factor = PANELS[panel]
    of = prior(kernel_of(kernel, scale), count)
    noise = sdp_a_noise(of.covariance, secret, 0.02 * count, factor=factor).covariance
    return of, interval(of.covariance, noise, secret)


@pytest.mark.parametrize("panel", ["a", "e", "f"])
def test_panels_of_one_secret_are_the_authors(shared: Path, sweep: Sweep, panel: str) -> None:
    _, count, secret, _ = PANELS[panel]
    for row in sweep(rows(shared, panel)):
        of, width = published(panel, row["l_eff"])
        assert width == pytest.approx(row["sdp"], rel=1e-6)
        uniform = interval(of.covariance, 0.02 * np.eye(count), secret)
        assert uniform == pytest.approx(row["uniform"], rel=1e-6)
        alone = np.zeros((count, count))
        alone[secret, secret] = 0.02 * count / len(secret)
        assert interval(of.covariance, alone, secret) == pytest.approx(
            row["concentrated"], rel=1e-6
        )


def test_panel_b_is_off_where_the_authors_solver_is(shared: Path) -> None:
    off = {
        row["l_eff"]: published("b", row["l_eff"])[1] / row["sdp"] - 1 for row in rows(shared, "b")
    }
    # Equal at half of the scales, the last among them; between, their solver stops short, by up to
    # a fifth. That the closed form is right there: tests/designer/test_conic.py.
    assert sum(abs(value) < 1e-3 for value in off.values()) >= 10
    assert all(abs(off[scale]) < 1e-3 for scale in off if scale < 4.5 or scale == 10)
    assert all(-1e-3 < value < 0.21 for value in off.values())
    assert max(off.values()) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("panel", "kernel", "count"), [("c", "rbf", 50), ("g", "periodic", 48)])
def test_panels_of_all_secrets_are_the_authors(
    shared: Path, sweep: Sweep, panel: str, kernel: str, count: int
) -> None:
    for row in sweep(rows(shared, panel), short=3):
        of = prior(kernel_of(kernel, row["l_eff"]), count)
        each = [[i] for i in range(count)]
        several = multiple_secrets(of, each, 0.02 * count * count, factor=10_000.0)
        assert several.cover.trace == pytest.approx(row["noise_trace"], rel=1e-4)
        every = list(range(count))
        posterior = posterior_as_published(
            of.covariance, several.mechanism.covariance(), every, jitter=JITTER
        )
        mean = 2 * np.sqrt(np.mean(np.diagonal(posterior)))
        assert mean == pytest.approx(row["sdp"], rel=1e-4)


# --- Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([], "one or more whole numbers"),
        ([1, 1], "each index once"),
        ([-1], "from 0 to 11, got -1"),
        ([12], "from 0 to 11, got 12"),
        ([0.5], "whole numbers"),
        ([True], "whole numbers"),
        ([[1]], "whole numbers"),
    ],
)
def test_a_bad_secret_is_refused(indices: list[int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message) as caught:
        sdp_a(noisy(), indices, 1.0)
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidValue, match=message):
        multiple_secrets(noisy(), [[3], indices], 1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bad_budget_is_refused(value: float) -> None:
    for make in (
        lambda: sdp_a(noisy(), [3], value),
        lambda: sdp_a(noisy(), [3], 1.0, factor=value),
        lambda: multiple_secrets(noisy(), [[3]], value),
    ):
        with pytest.raises(InvalidValue, match="must be a positive number, got"):
            make()


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (np.array([[1.0, 0.2], [0.1, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (np.array([[1.0, np.inf], [np.inf, 1.0]]), "finite"),
        (np.ones((2, 3)), "a square"),
    ],
)
def test_what_is_no_covariance_is_refused(sigma: FloatArray, message: str) -> None:
    with pytest.raises(InvalidValue, match=f"the prior covariance must be {message}"):
        sdp_a_noise(sigma, [0], 1.0)


def test_several_secrets_must_be_some_and_differ() -> None:
    with pytest.raises(InvalidValue, match="at least one secret"):
        multiple_secrets(noisy(), [], 1.0)
    with pytest.raises(InvalidValue, match="must differ"):
        multiple_secrets(noisy(), [[3, 4], [5], [4, 3]], 1.0)


def test_a_secret_that_its_own_values_give_away_is_refused() -> None:
    with pytest.raises(NumericalError, match="vary by themselves"):
        sdp_a(prior(RBF(30.0), 20), list(range(12)), 1.0)
    sdp_a(prior(Matern32(30.0), 20), list(range(12)), 1.0)


def test_indices_come_back_as_they_are() -> None:
    np.testing.assert_array_equal(check_indices(np.array([3, 1]), 4), [3, 1])
