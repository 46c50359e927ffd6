"""design() against the conic oracle: drawn priors, secrets, targets, weights and adversaries."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.oracles.exact import exact_sdp
from trailveil.designer.designer import design
from trailveil.errors import NumericalError, Unavailable
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Matern32, White
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

# What a conic solver is good for, and how far below it anything may be, relative.
AGREES, BELOW = 1e-4, 1e-5
# Whether design() takes weights and adversaries: one prior and equal weights where it does not.
WHOLE = {"weights", "adversaries"} <= set(inspect.signature(design).parameters)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What design() and the oracle are both asked."""

    prior: Prior
    secrets: list[Secret]
    bounds: list[float]
    options: dict[str, Any]

    @property
    def cost(self) -> FloatArray:
        """The weights, of one where none are stated."""
        return np.asarray(self.options.get("weights", np.ones(self.prior.times.size)))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    count = draw(st.integers(4, 9))
    times = np.cumsum(draw(st.lists(st.floats(0.3, 2.0), min_size=count, max_size=count)))
    scale = draw(st.floats(0.7, 3.0))
    kernel = draw(st.sampled_from([RBF(scale), Matern32(scale)]))
    prior = Prior(kernel + White(draw(st.floats(0.1, 0.5))), times)
    first, second = sorted(draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=2)))
    makers = [
        Secret.at(times[first], recorded=True),
        Secret.at(float(times[second]) - 0.1),
        Secret.at([times[first], times[second]], recorded=True),
        Secret.mean(times[first : second + 1]),
        Secret.difference(times[first], times[second], recorded=True),
        Secret.stay(float(times[first]), float(times[second])),
    ]
    kinds = st.integers(0, 5 if WHOLE else 4)  # a stay is one more prior
    picked = draw(st.lists(kinds, min_size=1, max_size=2, unique=True))
    options: dict[str, Any] = {"floor": draw(st.sampled_from([0.0, 0.01]))}
    if WHOLE:
        known: list[Adversary] = [
            PLAIN,
            Adversary.sees_stillness([(float(times[1]), float(times[2]))]),
            Adversary.knows_point(1.5, 0.3),
            Adversary.knows_path(2.5, 0.3),
        ]
        chosen = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True))
        options["adversaries"] = tuple(known[i] for i in chosen)
        options["weights"] = np.linspace(1.0, draw(st.sampled_from([1.0, 3.0])), count)
    bounds = [draw(st.floats(0.5, 8.0)) for _ in picked]
    return Problem(prior, [makers[i] for i in picked], bounds, options)


def check_bounds(problem: Problem) -> None:
    """The least noise is the oracle's, with the tight bound of compound secrets."""
    bounds, options = problem.bounds, problem.options
    try:
        oracle = exact_sdp(problem.prior, problem.secrets, bounds=bounds, tight=True, **options)
    except NumericalError:
        assume(False)  # the oracle says that it does not know
    mechanism, certificate = design(problem.prior, problem.secrets, bounds=bounds, **options)
    reached = float(problem.cost @ mechanism.variances)
    assert reached >= oracle.value * (1 - BELOW) - 1e-6
    # Without the whole of it, losses of compound secrets are made equal in all directions.
    if WHOLE or all(secret.size == 1 for secret in problem.secrets):
        assert reached <= oracle.value * (1 + AGREES) + 1e-6
    if certificate.lower_bound is not None:
        assert certificate.lower_bound <= reached * (1 + 1e-9)
        assert certificate.lower_bound <= oracle.value * (1 + BELOW) + 1e-6


def check_budget(problem: Problem, each: float) -> None:
    """The least worst eigenvalue is the oracle's."""
    budget, options = each * float(np.sum(problem.cost)), problem.options
    try:
        oracle = exact_sdp(problem.prior, problem.secrets, budget=budget, **options)
    except NumericalError:
        assume(False)
    mechanism, certificate = design(problem.prior, problem.secrets, budget=budget, **options)
    assert float(problem.cost @ mechanism.variances) <= budget * (1 + 1e-9)
    reached = max(outcome.loss.largest for outcome in certificate.outcomes)
    assert oracle.value * (1 - BELOW) <= reached <= oracle.value * (1 + AGREES)
    if certificate.lower_bound is not None:
        assert certificate.lower_bound <= min(reached, oracle.value * (1 + BELOW)) * (1 + 1e-9)


@settings(max_examples=15)
@given(problems())
def test_least_noise(problem: Problem) -> None:
    check_bounds(problem)


@settings(max_examples=10)
@given(problems(), st.floats(0.05, 1.0))
def test_least_loss(problem: Problem, each: float) -> None:
    check_budget(problem, each)


@pytest.mark.slow
@settings(max_examples=40)
@given(problems())
def test_least_noise_at_length(problem: Problem) -> None:
    check_bounds(problem)


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (Secret.at([2.0, 4.0]), "got the true values of a compound secret; say recorded=True, or"),
        (Secret.at(2.0), "got the true values of a basic secret; say recorded=True, or use"),
        (Secret.stay(2.0, 4.0), "got the true values of a stay secret; use --mechanism optimal"),
        (Secret.mean([2.0, 4.0]), "got mean; use --mechanism optimal"),
        (Secret.difference(2.0, 4.0, recorded=True), "got difference; use --mechanism optimal"),
    ],
    ids=["compound", "basic", "stay", "mean", "difference"],
)
def test_the_papers_program_says_which_secret_it_does_not_take(
    secret: Secret, message: str
) -> None:
    prior = Prior(RBF(2.0) + White(0.3), np.arange(6.0))
    with pytest.raises(Unavailable, match=message):
        design(prior, [secret], budget=1.0, mechanism="sdp-a")
    taken = Secret.at([2.0, 4.0], recorded=True)
    assert design(prior, [taken], budget=1.0, mechanism="sdp-a")
