"""The error bound of a posterior from full matrices, on small and hard problems, against mpmath."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trailveil.gp.gaussian as module
from trailveil.errors import NumericalError
from trailveil.gp.gaussian import FloatArray, Joint, Posterior, dense_system, posterior, regression

MP = mpmath.MPContext()
MP.dps = 120


def problem(seed: int, floor: float, level: float, columns: int) -> Joint:
    """Data and secret that are nearly functions of each other, but for a floor of noise.

    floor: relative to the largest variance. level: of the loadings, relative to all else.
    """
    random = np.random.default_rng(seed)
    count, size = int(random.integers(2, 7)), int(random.integers(1, 4))
    rank = int(random.integers(1, count + size + 1))
    factor = random.normal(size=(count + size, rank)) * 10.0 ** random.uniform(-4, 0, rank)
    factor *= 10.0 ** random.uniform(-2, 4)
    joint = factor @ factor.T
    spread = floor * float(np.max(np.diagonal(joint)))
    joint[np.diag_indices_from(joint)] += spread
    joint = (joint + joint.T) / 2
    loadings = random.normal(size=(count + size, columns)) * level * np.sqrt(joint[0, 0])
    # Rounding of the product of factors is below a thousandth of the least floor that is drawn.
    system = dense_system(np.asfortranarray(joint[:count, :count]), spread * (1 - 1e-3))
    return Joint(
        system,
        joint[:count, count:],
        joint[count:, count:],
        loadings[:count],
        loadings[count:],
    )


def truth(joint: Joint) -> FloatArray:
    """Var(s | Z) of exactly these numbers."""
    assert isinstance(joint.system, module.DenseSystem)
    loadings, own = MP.matrix(joint.loadings.tolist()), MP.matrix(joint.secret_loadings.tolist())
    data, cross = MP.matrix(joint.system.matrix.tolist()), MP.matrix(joint.cross.tolist())
    variance = MP.matrix(joint.variance.tolist())
    if joint.loadings.shape[1]:
        data += loadings * loadings.T
        cross += loadings * own.T
        variance += own * own.T
    left = variance - cross.T * (data**-1) * cross
    return np.array(left.tolist(), dtype=np.float64)


def check(joint: Joint, posterior: Posterior) -> None:
    exact = truth(joint)
    error = posterior.covariance - exact
    assert np.all(np.abs(np.diagonal(error)) <= posterior.slack)
    assert np.max(np.abs(np.linalg.eigvalsh(error))) <= posterior.doubt
    assert np.array_equal(posterior.covariance, posterior.covariance.T)


FLOORS = st.floats(-10.0, 0.0).map(lambda power: 10.0**power)
LEVELS = st.floats(-2.0, 6.0).map(lambda power: 10.0**power)
DRAWN = given(seed=st.integers(0, 2**32 - 1), floor=FLOORS, level=LEVELS, columns=st.integers(0, 2))


@settings(max_examples=150)
@DRAWN
def test_the_truth_is_within_the_bound(seed: int, floor: float, level: float, columns: int) -> None:
    joint = problem(seed, floor, level, columns)
    try:
        found = posterior(joint)
    except NumericalError:
        assume(False)
    check(joint, found)


@settings(max_examples=60)
@DRAWN
@pytest.mark.parametrize("error", [1e-8, 1e-4, 1e-1])
def test_the_bound_does_not_trust_the_solve(
    error: float, seed: int, floor: float, level: float, columns: int
) -> None:
    """Weights that are off by a share of their own: the figure is wrong, and the bound says so."""
    joint = problem(seed, floor, level, columns)
    random = np.random.default_rng(seed)

    def worse(joint: Joint) -> Callable[[FloatArray, FloatArray], FloatArray]:
        solve = regression(joint)

        def solved(cross: FloatArray, loaded: FloatArray) -> FloatArray:
            weights = solve(cross, loaded)
            return weights * (1 + error * random.normal(size=weights.shape))

        return solved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "regression", worse)
        patch.setattr(module, "MOST_REFINEMENTS", 0)
        try:
            found = posterior(joint)
        except NumericalError:
            assume(False)
    check(joint, found)


def test_bounds_are_of_use_where_the_problem_is_not_hard() -> None:
    for seed in range(40):
        joint = problem(seed, 1e-3, 1.0, 1)
        found = posterior(joint)
        assert np.all(found.slack <= 1e-8 * np.diagonal(joint.variance))


def test_refining_sharpens_the_bound() -> None:
    sharper = 0
    for seed in range(40):
        joint = problem(seed, 1e-10, 1e4, 1)
        fine = posterior(joint)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "MOST_REFINEMENTS", 0)
            rough = posterior(joint)
        sharper += bool(np.any(fine.slack < 0.5 * rough.slack))
    assert sharper > 0
