"""Kernels that are given as numbers, and those of other packages."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import trailveil as tv
from trailveil.errors import InvalidValue, Unavailable
from trailveil.gp.extended import Extended
from trailveil.gp.gaussian import KERNEL_ROUNDING, UNIT_ROUNDOFF
from trailveil.gp.kernels import (
    RBF,
    Conditioned,
    Constant,
    Function,
    Kernel,
    Matern32,
    Periodic,
    Scaled,
    Tabulated,
    White,
    from_gpytorch,
    from_sklearn,
)

TIMES = np.array([0.0, 1.0, 2.5, 7.0, 40.0])
OTHERS = np.array([0.5, 2.5, 9.0])
KERNEL = Matern32(3.0, 2.0) + White(0.3)


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (sk.RBF(3.0), RBF(3.0)),
        (sk.Matern(3.0, nu=0.5), None),
        (sk.Matern(3.0, nu=1.5), Matern32(3.0)),
        (sk.Matern(3.0, nu=2.5), None),
        (sk.Matern(3.0, nu=np.inf), RBF(3.0)),
        (sk.Matern(3.0, nu=0.8), None),
        (sk.ExpSineSquared(0.7, 11.0), Periodic(0.7, 11.0)),
        (sk.ConstantKernel(4.0), Constant(2.0)),
        (sk.ConstantKernel(4.0) * sk.ConstantKernel(9.0), Constant(6.0)),
        (sk.ConstantKernel(4.0) * sk.Matern(3.0, nu=1.5), Scaled(Matern32(3.0), 4.0)),
        (sk.ConstantKernel(4.0) * sk.RBF(3.0) + sk.WhiteKernel(0.3), None),
        (sk.RationalQuadratic(3.0, 1.2), None),
        (sk.ConstantKernel(2.0) * sk.RationalQuadratic(3.0, 1.2) * sk.RBF(9.0), None),
        (sk.RBF(3.0) ** 2, None),
    ],
    ids=str,
)
def test_a_kernel_of_scikit_learn_is_the_same_here(given: Any, ours: Kernel | None) -> None:
    kernel = from_sklearn(given)
    assert ours is None or kernel == ours
    assert kernel(TIMES, TIMES) == pytest.approx(given(TIMES[:, None]), rel=1e-13, abs=1e-14)
    assert kernel.diagonal(TIMES) == pytest.approx(given.diag(TIMES[:, None]), rel=1e-13)
    assert latent_at(kernel) == pytest.approx(given(TIMES[:, None], OTHERS[:, None]), rel=1e-13)


def latent_at(kernel: Kernel) -> np.ndarray[Any, Any]:
    """At other times, but for the noise of a common one, which scikit-learn takes for another."""
    parts = [term(TIMES, OTHERS) for term in kernel.terms() if not term.is_white()]
    return np.asarray(sum(parts))


def test_several_length_scales_are_refused() -> None:
    with pytest.raises(InvalidValue, match="one length scale, of time, got 2"):
        from_sklearn(sk.RBF([1.0, 2.0]))


class Torch:
    """A stand-in for a kernel of GPyTorch: its class's name and its parameters, as tensors are."""

    def __init__(self, **parameters: Any) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)


def torch_kernel(kind: str, **parameters: Any) -> Any:
    arrays = {
        name: np.array([[value]]) if isinstance(value, float) and name != "nu" else value
        for name, value in parameters.items()
    }
    return type(kind, (Torch,), {})(**arrays)


# At (0, 1, 2.5) against (0.5, 9), from GPyTorch 1.15.2 in double precision; length scale 3,
# of the periodic one 0.7 and period 11.
LENGTH = {"lengthscale": 3.0}
GPYTORCH = {
    "rbf": [[0.986207117, 0.011108997], [0.986207117, 0.028565501], [0.800737403, 0.095634445]],
    "matern12": [
        [0.846481725, 0.049787068],
        [0.846481725, 0.069483451],
        [0.513417119, 0.114558844],
    ],
    "matern32": [
        [0.965547026, 0.034313243],
        [0.965547026, 0.055427265],
        [0.679057966, 0.111464656],
    ],
    "matern52": [
        [0.977512974, 0.027723422],
        [0.977512974, 0.048402226],
        [0.727762741, 0.107561592],
    ],
    "periodic": [[0.94377529, 0.433821802], [0.94377529, 0.195561892], [0.433821802, 0.072052358]],
    "scaled": [[3.944828467, 0.044435986], [3.944828467, 0.114262003], [3.202949612, 0.382537779]],
}


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (torch_kernel("RBFKernel", **LENGTH), "rbf"),
        (torch_kernel("MaternKernel", nu=0.5, **LENGTH), "matern12"),
        (torch_kernel("MaternKernel", nu=1.5, **LENGTH), "matern32"),
        (torch_kernel("MaternKernel", nu=2.5, **LENGTH), "matern52"),
        (torch_kernel("PeriodicKernel", lengthscale=0.7, period_length=11.0), "periodic"),
        (
            torch_kernel(
                "ScaleKernel", base_kernel=torch_kernel("RBFKernel", **LENGTH), outputscale=4.0
            ),
            "scaled",
        ),
    ],
)
def test_a_kernel_of_gpytorch_is_the_same_here(kernel: Any, expected: str) -> None:
    values = from_gpytorch(kernel)(np.array([0.0, 1.0, 2.5]), np.array([0.5, 9.0]))
    assert values == pytest.approx(np.array(GPYTORCH[expected]), rel=1e-6)


def test_sums_and_products_of_gpytorch() -> None:
    parts = [torch_kernel("RBFKernel", **LENGTH), torch_kernel("ConstantKernel", constant=4.0)]
    added = from_gpytorch(torch_kernel("AdditiveKernel", kernels=parts))
    assert added == RBF(3.0) + Constant(2.0)
    assert from_gpytorch(torch_kernel("ProductKernel", kernels=parts)) == Scaled(RBF(3.0), 4.0)


def test_a_table_says_what_it_holds_and_nothing_of_other_times() -> None:
    matrix = KERNEL(TIMES, TIMES)
    table = Tabulated(TIMES, matrix)
    assert np.array_equal(table(TIMES[1:3], TIMES), matrix[1:3])
    assert np.array_equal(table.diagonal(TIMES), np.diag(matrix))
    with pytest.raises(InvalidValue, match="one that the covariance is stated for"):
        table(TIMES, OTHERS)
    m = Extended(128)
    pairs = table.formula(m.numbers(TIMES)[:, None], m.numbers(TIMES)[None], m)
    assert np.array_equal(pairs.astype(float), matrix)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), "a row for each of 5 times, got 3"),
        (np.eye(5) + np.eye(5, k=1), "symmetric"),
        (np.eye(5) - 0.9 * np.ones((5, 5)), "an eigenvalue of -3.5"),
        (np.full((5, 5), np.nan), "finite"),
    ],
)
def test_what_is_no_covariance_is_refused(matrix: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Tabulated(TIMES, matrix)


def test_any_function_is_a_kernel_in_double_precision() -> None:
    kernel = Function(Matern32(3.0, 2.0), "mine") + White(0.3)
    assert np.array_equal(kernel(TIMES, OTHERS), KERNEL(TIMES, OTHERS))
    many = np.arange(600.0)
    assert np.array_equal(kernel.diagonal(many), KERNEL.diagonal(many))
    # It has a White: to be told to add one is no help.
    with pytest.raises(Unavailable, match=r"got mine: .* White\(std\), or a larger std or floor"):
        kernel.formula(TIMES, TIMES, Extended(128))
    wrong = Function(lambda a, b: np.zeros(3), "wrong")
    with pytest.raises(InvalidValue, match="wrong must give finite covariances"):
        wrong(TIMES, OTHERS)


Make = Callable[[], tv.Prior]
PRIORS: dict[str, Make] = {
    "of a matrix": lambda: tv.Prior.from_covariance(KERNEL(TIMES, TIMES), TIMES, noise=0.3),
    "of a function": lambda: tv.Prior(Function(Matern32(3.0, 2.0)) + White(0.3), TIMES),
}


@pytest.mark.parametrize("make", PRIORS.values(), ids=PRIORS.keys())
@pytest.mark.parametrize(
    "secret", [tv.Secret.at(2.5, recorded=True), tv.Secret.at(2.5), tv.Secret.mean(TIMES)]
)
def test_a_given_prior_designs_and_loses_as_the_equation_does(
    make: Make, secret: tv.Secret
) -> None:
    mechanism, certificate = tv.design(make(), [secret], budget=1.0)
    again, expected = tv.design(tv.Prior(KERNEL, TIMES), [secret], budget=1.0)
    assert certificate.proved
    assert certificate.outcomes[0].loss.largest == pytest.approx(
        expected.outcomes[0].loss.largest, rel=1e-6
    )
    learnt = tv.exposure(make(), secret, again).loss
    assert learnt == pytest.approx(tv.exposure(tv.Prior(KERNEL, TIMES), secret, again).loss)
    assert mechanism.noise_trace == pytest.approx(1.0)


def test_the_noise_of_a_matrix_does_not_matter_to_recorded_secrets() -> None:
    matrix, secret = KERNEL(TIMES, TIMES), tv.Secret.at(7.0, recorded=True)
    mechanism, _ = tv.design(tv.Prior(KERNEL, TIMES), [secret], budget=1.0)
    priors = [tv.Prior.from_covariance(matrix, TIMES, noise=n) for n in (None, 0.01, 0.3)]
    losses = [tv.exposure(prior, secret, mechanism).loss for prior in priors]
    assert losses == pytest.approx([losses[0]] * 3)


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.ones((5, 5)), {}, "positive definite"),
        (np.diag([1.0, 1e-17]), {}, "positive definite"),  # of which rounding cannot tell 0
        (np.eye(5), {"noise": 1.1}, "noise must be above 0 and at most 1"),
        (np.eye(5), {"noise": 0.0}, "noise must be above 0"),
        (np.eye(5), {"mean": np.ones(4)}, "a mean must be one finite number for each time"),
    ],
)
def test_a_covariance_that_does_not_do_is_refused(
    matrix: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        tv.Prior.from_covariance(matrix, **options)


def test_a_function_that_is_no_covariance_is_not_drawn_from() -> None:
    wrong = Function(lambda a, b: np.abs(a[:, None] - b), "a distance")
    with pytest.raises(InvalidValue, match="no eigenvalue below 0"):
        tv.Prior(wrong + White(0.1), TIMES).draw(1)
    smooth = tv.Prior(RBF(50.0), np.arange(40.0))  # whose eigenvalues rounding makes negative
    assert np.all(np.isfinite(smooth.draw(1)))


def test_draws_have_the_mean_and_the_covariance() -> None:
    prior = tv.Prior(KERNEL, TIMES, mean=lambda t: 5.0 + t)
    rng = np.random.default_rng(7)
    drawn = np.array([prior.draw(rng) for _ in range(20_000)])
    # Standardised: of 5 means and 15 covariances each within 5 deviations; false alarm 1 in 10^5.
    deviation = np.sqrt(prior.covariance.diagonal())
    assert np.abs((drawn.mean(axis=0) - 5.0 - TIMES) / deviation).max() < 5 / 20_000**0.5
    white = np.linalg.solve(np.linalg.cholesky(prior.covariance), (drawn - 5.0 - TIMES).T)
    spread = white @ white.T / 20_000 - np.eye(5)
    assert np.abs(spread).max() < 5 * (2 / 20_000) ** 0.5
    assert np.array_equal(prior.draw(3), prior.draw(3))


def conditioned(kernel: Kernel, variance: float) -> Conditioned:
    times, weights = np.array([0.5, 2.0, 8.0]), np.array([[0.5, 0.5, 0.0], [0.0, 1.0, -1.0]])
    return Conditioned(kernel, times, weights, variance * np.eye(2))


@pytest.mark.parametrize("variance", [1.0, 1e-3, 1e-12])
def test_a_conditioned_kernel_is_that_of_mpmath(variance: float) -> None:
    """A level of a kilometre, and sums that are known to a micrometre: no digit is lost."""
    given, times = conditioned(Matern32(3.0, 2.0) + Constant(1e3), variance), TIMES[:4]
    context = mpmath.MPContext()
    context.dps = 90
    everything = [*times, *given.times]

    def value(a: float, b: float) -> Any:
        x = context.sqrt(3) * abs(context.mpf(a) - b) / 3
        return 4 * (1 + x) * context.exp(-x) + 10**6

    joint = context.matrix([[value(a, b) for b in everything] for a in everything])
    weights = context.matrix(given.weights.tolist())
    observed = weights * joint[4:, 4:] * weights.T + context.matrix(given.covariance.tolist())
    shared = joint[:4, 4:] * weights.T
    exact = joint[:4, :4] - shared * (observed**-1 * shared.T)
    deviations = [float(context.sqrt(exact[i, i])) for i in range(4)]
    expected = np.array(exact.tolist(), dtype=np.float64)
    allowed = KERNEL_ROUNDING * UNIT_ROUNDOFF * np.outer(deviations, deviations)
    assert np.all(np.abs(given(times, times) - expected) <= allowed)
    assert np.all(np.abs(given.diagonal(times) - np.diag(expected)) <= np.diag(allowed))


@pytest.mark.parametrize(
    ("weights", "covariance", "words"),
    [
        (np.eye(3), np.eye(2), r"weights must be finite, \(2, 3\), got \(3, 3\)"),
        (np.eye(3), np.diag([1.0, 1.0, 0.0]), "must have a positive variance"),
        (np.full((1, 3), np.nan), np.eye(1), "weights must be finite"),
    ],
)
def test_an_observation_that_cannot_be_is_refused(
    weights: Any, covariance: Any, words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        Conditioned(RBF(2.0), np.arange(3.0), weights, covariance)
