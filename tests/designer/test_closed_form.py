"""Closed forms: the paper's structure, against all noise of that structure and of any."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.designer.closed_form import exact_block, exact_block_noise, least_possible_loss
from trailveil.designer.designer import design
from trailveil.designer.paper import sdp_a
from trailveil.errors import InvalidValue
from trailveil.gp.kernels import RBF, White
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

PROBLEM = (st.integers(0, 7), st.floats(0.05, 5.0), st.floats(0.5, 3.0))


def prior(scale: float) -> Prior:
    return Prior(RBF(scale) + White(0.2), np.arange(8.0))


def largest(of: Prior, index: int, mechanism: Mechanism) -> float:
    return loss_matrix(of, Secret.at(float(index), recorded=True), mechanism).largest


@pytest.mark.parametrize("target", [{"budget": 15.0}, {"bounds": [0.8]}])
def test_noise_is_on_no_fix_where_a_secret_is_at_none(target: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="must be at a point of the prior"):
        design(prior(2.0), [Secret.at(3.3)], mechanism="concentrated", **target)


@given(*PROBLEM, st.integers(0, 2**32 - 1))
def test_no_noise_of_the_papers_structure_does_better(
    index: int, budget: float, scale: float, seed: int
) -> None:
    """Shares and directions drawn at random, and moved a little from the best: none is better."""
    of, rng = prior(scale), np.random.default_rng(seed)
    mechanism = exact_block(of, Secret.at(float(index), recorded=True), budget)
    best = largest(of, index, mechanism)
    assert mechanism.noise_trace == pytest.approx(budget, rel=1e-9)
    cross = np.delete(mechanism.covariance()[index], index)
    assert not np.any(cross)
    for size in (1e-3, 1e-1, 1.0, 10.0):
        factor = np.zeros((8, 3))
        factor[:, : mechanism.factor.shape[1]] = mechanism.factor
        factor = factor + size * np.sqrt(budget) * rng.normal(size=(8, 3))
        factor[index, 1:], factor[np.arange(8) != index, 0] = 0.0, 0.0
        other = Mechanism(of.times, factor * np.sqrt(budget / np.sum(factor**2)))
        assert largest(of, index, other) >= best * (1 - 1e-9)


@given(*PROBLEM, st.sampled_from([1.0, 1000.0]))
def test_approximation_structure_and_optimum_stand_in_this_order(
    index: int, budget: float, scale: float, factor: float
) -> None:
    of, secret = prior(scale), Secret.at(float(index), recorded=True)
    approximated = largest(of, index, sdp_a(of, [index], budget, factor=factor))
    block = largest(of, index, exact_block(of, secret, budget))
    assert least_possible_loss(of, secret, budget) <= block * (1 + 1e-9)
    assert block <= approximated * (1 + 1e-9)


@given(*PROBLEM)
def test_bounds_invert_budgets(index: int, budget: float, scale: float) -> None:
    of, secret = prior(scale), Secret.at(float(index), recorded=True)
    bound = largest(of, index, exact_block(of, secret, budget))
    back = exact_block_noise(of, secret, bound)
    assert back.noise_trace == pytest.approx(budget, rel=1e-6)
    assert largest(of, index, back) <= bound


def test_the_structure_is_for_one_recorded_fix() -> None:
    for secret in (Secret.at(2.0), Secret.at(2.5), Secret.at([1.0, 2.0], recorded=True)):
        with pytest.raises(InvalidValue, match="one recorded fix"):
            exact_block(prior(2.0), secret, 1.0)
