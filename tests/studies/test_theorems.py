"""The paper's theorems, each against densities that are written out and integrated."""

from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from tests.densities import divergence, held, joint, matrix
from tests.releases import KERNELS, TIMES, whole
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Matern12, White
from trailveil.privacy.composition import Release
from trailveil.privacy.guarantee import Guarantee, mu_for, paper_bound, tight_bound
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.studies.misspecification import guarantee_of
from trailveil.studies.theorems import (
    GpLossBound,
    direct_and_inferential,
    gp_loss_bound,
    independent_dimensions,
    more_private,
)

ROOT = Path(__file__).parents[2]
SEEDS = st.integers(0, 2**32 - 1)


def of_hypotheses(
    covariance: Any, secret: int, a: FloatArray, b: FloatArray, order: float
) -> float:
    """D_order of the laws of all but the last `secret` variables, with these held at a and at b."""
    law = joint(covariance)
    places = list(range(law.precision.rows - secret, law.precision.rows))
    return float(divergence(held(law, places, a.tolist()), held(law, places, b.tolist()), order))


def structured(seed: int, indices: list[int], variance: float = 0.8) -> Mechanism:
    """The paper's noise: sigma_s^2 I on the secret, anything on the rest, nothing between."""
    rng = np.random.default_rng(seed)
    others = [i for i in range(TIMES.size) if i not in indices]
    root = rng.normal(size=(len(others),) * 2)
    factor = np.zeros((TIMES.size,) * 2)
    factor[np.ix_(indices, indices)] = np.sqrt(variance) * np.eye(len(indices))
    factor[np.ix_(others, others)] = root
    return Mechanism(TIMES, factor)


# --- the identity that everything rests on -------------------------------------------------------


@given(SEEDS, st.integers(0, 2), st.integers(0, 4), st.integers(0, 3), st.floats(1.1, 20.0))
@settings(max_examples=40)
def test_divergence_is_half_the_order_times_the_loss(
    seed: int, kind: int, which: int, rank: int, order: float
) -> None:
    """D_order( P(Z | s = a) || P(Z | s = b) ) for secrets of every kind, noise of every rank."""
    rng = np.random.default_rng(seed)
    kernel, true = KERNELS[kind]
    secret = [
        Secret.at(1.7),
        Secret.at(1.0, recorded=True),
        Secret.at([0.0, 2.5], recorded=True),
        Secret.difference(0.0, 3.0),
        Secret.mean([1.0, 2.5], recorded=True),
    ][which]
    # Independent noise keeps the joint density one; it is small, so that low rank shows.
    mechanism = Mechanism(TIMES, 3.0 * rng.normal(size=(TIMES.size, rank)), 1e-2)
    loss = loss_matrix(Prior(kernel + White(0.3), TIMES), secret, mechanism).matrix
    a, b = rng.normal(size=(2, secret.size))
    exact = of_hypotheses(whole(true, 0.3, [Release(mechanism)], secret), secret.size, a, b, order)
    assert order / 2 * (a - b) @ loss @ (a - b) == pytest.approx(exact, rel=1e-6)


def test_the_definition_by_quadrature_in_one_dimension() -> None:
    """p(z | s) = p(z, s) / integral of p(z, s) dz; D by its integral: only the joint density."""
    prior, noise, order = 4.0, 1.5, 3.0
    times = np.zeros(1)
    mechanism = Mechanism(times, np.array([[np.sqrt(noise)]]))
    loss = loss_matrix(Prior(Matern12(1.0, 2.0) + White(0.5), times), Secret.at(0.0), mechanism)
    inverse = np.linalg.inv(np.array([[prior + 0.25 + noise, prior], [prior, prior]]))

    def density(z: Any, s: float) -> Any:
        return mpmath.exp(-(inverse[0, 0] * z * z + 2 * inverse[0, 1] * z * s) / 2)

    line = [-mpmath.inf, -5, 0, 5, mpmath.inf]
    norms = [mpmath.quad(lambda z, s=s: density(z, s), line) for s in (1.0, -0.7)]
    ratio = mpmath.quad(
        lambda z: (
            (density(z, 1.0) / norms[0]) ** order * (density(z, -0.7) / norms[1]) ** (1 - order)
        ),
        line,
    )
    exact = float(mpmath.log(ratio) / (order - 1))
    assert order / 2 * 1.7**2 * loss.matrix[0, 0] == pytest.approx(exact, rel=1e-9)


def test_the_definition_by_quadrature_in_two_dimensions() -> None:
    """Two released values, one of them the secret's own; sums over a fine grid."""
    times, order = np.array([0.0, 1.0]), 2.5
    mechanism = Mechanism(times, np.array([[1.0], [0.6]]), 0.3)
    loss = loss_matrix(Prior(RBF(1.5, 2.0), times), Secret.at(0.0, recorded=True), mechanism)
    near = 4.0 * np.exp(-1 / 4.5)
    covariance = np.array(
        [[4.0 + 1.3, near + 0.6, 4.0], [near + 0.6, 4.66, near], [4.0, near, 4.0]]
    )
    inverse = np.linalg.inv(covariance)
    grid = np.linspace(-25.0, 25.0, 1001)
    x, y = np.meshgrid(grid, grid, indexing="ij")

    def density(s: float) -> FloatArray:
        points = np.stack([x, y, np.full_like(x, s)])
        values = np.exp(-np.einsum("i...,ij,j...->...", points, inverse, points) / 2)
        return np.asarray(values / values.sum())

    p, q = density(0.9), density(-0.4)
    ratio = float(np.sum(p * (p / q) ** (order - 1)))
    exact = np.log(ratio) / (order - 1)
    assert order / 2 * 1.3**2 * loss.matrix[0, 0] == pytest.approx(exact, rel=1e-9)


# --- theorem 3.1, prior-posterior gap ------------------------------------------------------------


@given(st.floats(0.01, 3.0), st.floats(1.5, 30.0), st.floats(1e-4, 0.5))
def test_posterior_odds_stay_within_the_papers_gap(mu: float, order: float, delta: float) -> None:
    """The log likelihood ratio is N(mu^2/2, mu^2): its tail beyond the gap, as an integral."""
    gap = Guarantee(mu, order).paper_gap(delta)

    def tail(at: float) -> Any:
        return mpmath.erfc((at - mu**2 / 2) / (mu * mpmath.sqrt(2))) / 2

    # The theorem: above the gap with chance at most delta.
    assert float(tail(gap)) <= delta
    # What people should read: both ways, exactly.
    factor = float(np.exp(gap))
    below = mpmath.erfc((gap + mu**2 / 2) / (mu * mpmath.sqrt(2))) / 2
    both = float(tail(gap) + below)
    assert Guarantee(mu, order).odds_exceed(factor) == pytest.approx(both, rel=1e-9, abs=1e-300)


@given(st.floats(0.01, 3.0), st.floats(1.5, 30.0), st.floats(1e-4, 0.5))
def test_the_papers_conversion_to_epsilon_and_delta(mu: float, order: float, delta: float) -> None:
    """(epsilon + log(1/delta)/(order - 1), delta): the exact delta there, an integral, is less."""
    guarantee = Guarantee(mu, order)
    gap = guarantee.paper_gap(delta)

    def upper(at: float) -> Any:
        return mpmath.erfc(at / mpmath.sqrt(2)) / 2

    exact = upper(gap / mu - mu / 2) - mpmath.exp(gap) * upper(gap / mu + mu / 2)
    assert guarantee.delta(gap) == pytest.approx(float(exact), rel=1e-5, abs=1e-14)
    assert guarantee.delta(gap) <= delta


def test_the_papers_own_example() -> None:
    """Order 5, eps 0.1: 3.5 with chance 1 % by the theorem, one way; 1.62 in truth."""
    guarantee = Guarantee(np.sqrt(2 * 0.1 / 5), 5.0)
    assert guarantee.epsilon == pytest.approx(0.1)
    gap, one_way, both_ways = odds_in_99_of_100(guarantee)
    assert gap == pytest.approx(3.5, abs=0.05)
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert f"is {one_way:.2f} exactly. `odds` counts both ways: {both_ways:.2f}." in page


def test_the_page_compares_the_papers_gap_with_growth_alone() -> None:
    gap, one_way, both_ways = odds_in_99_of_100(Guarantee(mu_for(1.0), 5.0))
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    assert f"| {gap:.1f} | its bound of the odds' growth, which is exactly {one_way:.1f} |" in page
    assert f"| odds in 99 of 100 cases | {both_ways:.1f} |" in page


def odds_in_99_of_100(guarantee: Guarantee) -> tuple[float, float, float]:
    """By the paper, which bounds growth alone; exactly so, by N(mu^2/2, mu^2); and both ways."""
    mu = guarantee.mu
    one_way = np.exp(mu**2 / 2 + mu * norm.ppf(0.99))
    return float(np.exp(guarantee.paper_gap(0.01))), float(one_way), guarantee.odds(0.99)


# --- lemma 3.2, direct and inferential loss ------------------------------------------------------


@given(SEEDS, st.integers(0, 2), st.sampled_from([[1], [0, 2]]))
@settings(max_examples=25)
def test_the_secret_and_the_rest_tell_independently(
    seed: int, kind: int, indices: list[int]
) -> None:
    """Of all rows, of the secret's alone, of the rest alone: three divergences, by densities."""
    kernel, true = KERNELS[kind]
    mechanism, prior = structured(seed, indices), Prior(kernel + White(0.3), TIMES)
    direct, inferential = direct_and_inferential(prior, indices, mechanism)
    secret = Secret.at([float(TIMES[i]) for i in indices], recorded=True)
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, len(indices)))
    inside = np.isin(np.arange(TIMES.size), indices)
    for withheld, expected in (
        (~inside, direct),
        (inside, inferential),
        (np.zeros_like(inside), direct + inferential),
    ):
        rows = [i for i in range(TIMES.size) if not withheld[i]]
        rows += list(range(TIMES.size, TIMES.size + len(indices)))
        covariance = whole(true, 0.3, [Release(mechanism)], secret)
        part = matrix([[covariance[i, j] for j in rows] for i in rows])
        exact = of_hypotheses(part, len(indices), a, b, 5.0)
        assert 2.5 * (a - b) @ expected @ (a - b) == pytest.approx(exact, rel=1e-9)
        released = loss_matrix(prior, secret, mechanism.withholding(withheld)).matrix
        assert 2.5 * (a - b) @ released @ (a - b) == pytest.approx(exact, rel=1e-6)


# --- theorem 3.4, and the corollary for independent dimensions -----------------------------------


@given(SEEDS, st.integers(0, 2), st.sampled_from([[1], [0, 2], [0, 1, 3]]))
@settings(max_examples=25)
def test_no_pair_within_the_radius_is_told_apart_by_more(
    seed: int, kind: int, indices: list[int]
) -> None:
    kernel, true = KERNELS[kind]
    mechanism, prior = structured(seed, indices), Prior(kernel + White(0.3), TIMES)
    bound = gp_loss_bound(prior, indices, mechanism, 2.0, 3.0)
    secret = Secret.at([float(TIMES[i]) for i in indices], recorded=True)
    covariance = whole(true, 0.3, [Release(mechanism)], secret)
    rng = np.random.default_rng(seed)
    exact = []
    for _ in range(5):
        delta = 2.0 * rng.choice([-1.0, 1.0], len(indices))
        exact.append(of_hypotheses(covariance, delta.size, delta, np.zeros(delta.size), 3.0))
    assert max(exact) <= bound.epsilon * (1 + 1e-9)
    if len(indices) == 1:
        assert max(exact) == pytest.approx(bound.epsilon, rel=1e-6)
    inferential = direct_and_inferential(prior, indices, mechanism)[1]
    assert bound.direct == pytest.approx(1 / 0.8)
    assert bound.inferential == pytest.approx(np.linalg.eigvalsh(inferential)[-1], rel=1e-6)
    assert bound.epsilon == pytest.approx(
        3.0 / 2 * len(indices) * 4.0 * (bound.direct + bound.inferential)
    )
    loss = loss_matrix(prior, secret, mechanism).matrix
    assert tight_bound([loss], 2.0) <= bound.guarantee.mu**2 * (1 + 1e-9)
    assert paper_bound([loss], 2.0) == pytest.approx(bound.guarantee.mu**2, rel=1e-6)


def test_the_bound_stands_where_double_precision_does_not() -> None:
    """The paper's RBF without measurement noise, and noise of one direction on the rest."""
    times, index = np.arange(12.0), 5
    direction = np.exp(-((times - 5.0) ** 2) / 32)
    direction[index] = 0.0
    factor = np.stack([direction, np.eye(12)[index]], axis=1)
    mechanism = Mechanism(times, factor)
    bound = gp_loss_bound(Prior(RBF(4.0), times), [index], mechanism, 1.0)
    digits = mpmath.mp.dps
    mpmath.mp.dps = 200
    try:
        size = times.size
        data = mpmath.matrix(size)
        for i in range(size):
            for j in range(size):
                data[i, j] = mpmath.exp(-(mpmath.mpf(times[i] - times[j]) ** 2) / 32) + sum(
                    mpmath.mpf(factor[i, k]) * mpmath.mpf(factor[j, k]) for k in range(2)
                )
        cross = mpmath.matrix(
            [mpmath.exp(-(mpmath.mpf(times[i] - times[index]) ** 2) / 32) for i in range(size)]
        )
        posterior = 1 - (cross.T * mpmath.lu_solve(data, cross))[0]
        expected = float(1 / posterior - 1)
    finally:
        mpmath.mp.dps = digits
    assert bound.direct == pytest.approx(1.0)
    assert bound.direct + bound.inferential == pytest.approx(expected, rel=1e-12)


def test_the_corollary_holds_and_the_largest_is_exact() -> None:
    kernel, true = KERNELS[0]
    prior = Prior(kernel + White(0.3), TIMES)
    mechanisms = [structured(seed, [1]) for seed in (1, 2)]
    bounds = [gp_loss_bound(prior, [1], mechanism, 2.0) for mechanism in mechanisms]
    corollary = independent_dimensions(bounds)
    expected = 2.5 * 4.0 * (1 / 0.8 + bounds[0].inferential + bounds[1].inferential)
    assert corollary.epsilon == pytest.approx(expected)
    largest = max(bound.epsilon for bound in bounds)
    losses = [
        loss_matrix(prior, Secret.at(1.0, recorded=True), mechanism).matrix
        for mechanism in mechanisms
    ]
    assert guarantee_of(losses, 2.0).epsilon == pytest.approx(largest, rel=1e-6)
    assert largest < corollary.epsilon
    # By densities: the divergence of two independent coordinates is the sum of theirs.
    secret = Secret.at(1.0, recorded=True)
    written = [whole(true, 0.3, [Release(mechanism)], secret) for mechanism in mechanisms]
    at_most = 0.0
    for angle in np.linspace(0.0, np.pi / 2, 13):
        delta = 2.0 * np.array([np.cos(angle), np.sin(angle)])
        parts = [
            of_hypotheses(covariance, 1, np.array([part]), np.zeros(1), 5.0)
            for covariance, part in zip(written, delta, strict=True)
        ]
        at_most = max(at_most, sum(parts))
    assert at_most == pytest.approx(largest, rel=1e-6)


# --- more positive semidefinite, more private ----------------------------------------------------


@given(SEEDS, st.integers(0, 2), st.integers(0, 3))
@settings(max_examples=30)
def test_more_noise_in_the_semidefinite_order_never_raises_any_loss(
    seed: int, kind: int, rank: int
) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior(KERNELS[kind][0] + White(0.3), TIMES)
    less = Mechanism(TIMES, rng.normal(size=(TIMES.size, 2)), 0.1)
    more = less.plus(Mechanism(TIMES, rng.normal(size=(TIMES.size, rank))))
    assert more_private(more, less)
    assert more_private(less, more) == (rank == 0)
    for secret in (Secret.at([1.0, 2.5], recorded=True), Secret.difference(0.3, 4.0)):
        louder, other = (loss_matrix(prior, secret, noise).matrix for noise in (less, more))
        lowest = float(np.linalg.eigvalsh(louder - other)[0])
        assert lowest >= -1e-8 * np.abs(louder).max()


@given(SEEDS)
def test_where_it_is_not_more_some_prior_and_secret_lose(seed: int) -> None:
    """The order is the only one that serves all: a series that only moves along one direction.

    X = s d: the loss is d^T Gamma^-1 d, and d may be where Gamma^-1 is the greater.
    """
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, 4, 4))
    first, other = (root @ root.T + 0.1 * np.eye(4) for root in roots)
    mechanisms = [Mechanism(TIMES, np.linalg.cholesky(gamma)) for gamma in (first, other)]
    values, vectors = np.linalg.eigh(np.linalg.inv(first) - np.linalg.inv(other))
    assert more_private(*mechanisms) == (values[-1] <= 0)
    if values[-1] > 0:
        worst = vectors[:, -1]
        assert worst @ np.linalg.inv(first) @ worst > worst @ np.linalg.inv(other) @ worst


def test_withholding_is_more_private_and_the_converse_is_not() -> None:
    full = Mechanism(TIMES, np.ones((4, 1)), 0.1)
    some = full.withholding(np.array([False, True, False, False]))
    assert more_private(some, full)
    assert not more_private(full, some)
    # Nor is it made up for by noise: the fix that is released tells something, however little.
    assert not more_private(full.scaled(100.0), some)
    nothing = full.withholding(np.ones(4, bool))
    assert more_private(nothing, some)
    with pytest.raises(InvalidValue, match="of the same fixes"):
        more_private(full, Mechanism(TIMES[:2], np.ones((2, 1))))


# --- what the theorem is not about ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("indices", "mechanism", "message"),
    [
        ([], Mechanism(TIMES, np.zeros((4, 0)), 1.0), "at least one index"),
        ([1, 1], Mechanism(TIMES, np.zeros((4, 0)), 1.0), "each once"),
        ([7], Mechanism(TIMES, np.zeros((4, 0)), 1.0), "must be a released fix"),
        ([1], Mechanism(TIMES, np.ones((4, 1))), "independent of the rest"),
        ([0, 1], Mechanism(TIMES, np.diag([1.0, 2.0, 1.0, 1.0])), "must be sigma_s"),
        ([0], Mechanism(TIMES, np.diag([0.0, 2.0, 1.0, 1.0])), "must be sigma_s"),
    ],
)
def test_other_noise_is_refused(indices: list[int], mechanism: Mechanism, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        gp_loss_bound(Prior(RBF(1.0) + White(0.1), TIMES), indices, mechanism, 1.0)


def test_bounds_of_other_secrets_do_not_mix() -> None:
    bound = GpLossBound(1.0, 2.0, 1, 1.0, 5.0)
    with pytest.raises(InvalidValue, match="one secret, radius and order"):
        independent_dimensions([bound, GpLossBound(1.0, 2.0, 2, 1.0, 5.0)])
    with pytest.raises(InvalidValue, match="radius must be"):
        gp_loss_bound(Prior(RBF(1.0), TIMES), [0], structured(1, [0]), -1.0)


def test_a_secret_of_no_kind_of_the_papers_has_no_such_bound() -> None:
    """Its loss matrix holds all the same."""
    secret = Secret("weighted", np.array([0.0, 2.5]), np.array([[0.3, 0.7]]))
    assert loss_matrix(Prior(RBF(1.0) + White(0.1), TIMES), secret, structured(1, [0])).largest > 0
