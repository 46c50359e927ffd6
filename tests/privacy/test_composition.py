"""Composition of releases, against the joint density of everything written out in 50 digits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.densities import (
    divergence,
    held,
    joint,
    kernel_exponential,
    loss,
    mp,
)
from tests.oracles.parallel import parallel_sum
from tests.releases import KERNELS, TIMES, agree, mechanism, secrets_at, whole
from trailveil.errors import NumericalError
from trailveil.gp.kernels import (
    RBF,
    Matern12,
    White,
)
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior, SideInformation
from trailveil.privacy.secrets import Secret

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 3), st.integers(0, 2), st.integers(0, 4), st.booleans())
@settings(max_examples=40)
def test_any_releases_equal_the_joint_density(
    seed: int, count: int, kind: int, secret_kind: int, other_device: bool
) -> None:
    kernel, true = KERNELS[kind]
    releases = [
        Release(mechanism(seed + i), "watch" if i and other_device else "phone")
        for i in range(count)
    ]
    secret = secrets_at(TIMES)[secret_kind]
    joint = joint_loss(kernel + White(0.5), releases, secret)
    assert agree(joint.matrix, loss(whole(true, 0.5, releases, secret), secret.size))
    assert joint.slack <= 1e-6


@pytest.mark.parametrize("secret", secrets_at(TIMES), ids=lambda secret: secret.kind)
def test_divergence_between_hypotheses_is_half_the_order_times_the_loss(secret: Secret) -> None:
    """The whole point: D of the laws of all releases under two values of the secret."""
    kernel, true = KERNELS[0]
    releases = [Release(mechanism(1)), Release(mechanism(2)), Release(mechanism(3), "watch")]
    law = joint(whole(true, 0.5, releases, secret))
    size = law.precision.rows - secret.size
    places = list(range(size, size + secret.size))
    a, b = [0.7, -1.1][: secret.size], [-0.4, 0.2][: secret.size]
    apart = np.subtract(a, b)
    for order in (1.5, 5.0):
        exact = divergence(held(law, places, a), held(law, places, b), order)
        loss = joint_loss(kernel + White(0.5), releases, secret).matrix
        assert order / 2 * apart @ loss @ apart == pytest.approx(float(exact), rel=1e-8)


@given(SEEDS, st.integers(0, 4))
@settings(max_examples=25)
def test_the_same_recording_twice_is_one_release_with_the_parallel_sum(
    seed: int, secret_kind: int
) -> None:
    """Noises of any rank, of ranges that meet in a common column or not at all."""
    rng = np.random.default_rng(seed)
    common = rng.integers(-3, 4, (TIMES.size, int(rng.integers(0, 3))))
    factors = [
        np.hstack([common, rng.integers(-3, 4, (TIMES.size, int(rng.integers(0, 3))))]).astype(
            float
        )
        for _ in range(2)
    ]
    kernel, secret = Matern12(3.0, 2.0) + White(0.5), secrets_at(TIMES)[secret_kind]
    secret = replace(secret, recorded=False)  # the recorded values may all be disclosed
    together = parallel_sum(*(factor @ factor.T for factor in factors))
    values, vectors = np.linalg.eigh(together)
    mechanism = Mechanism(TIMES, vectors * np.sqrt(np.maximum(values, 0.0)))
    loss = joint_loss(kernel, [Release(Mechanism(TIMES, factor)) for factor in factors], secret)
    assert agree(loss.matrix, joint_loss(kernel, [Release(mechanism)], secret).matrix, 1e-6)
    assert agree(loss.matrix, loss_matrix(Prior(kernel, TIMES), secret, mechanism).matrix, 1e-6)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_singular_joint_prior_is_the_limit_of_regular_ones(recorded: bool) -> None:
    """Against 1e-40 more noise on each value, in 150 digits, where nothing is singular."""
    rng = np.random.default_rng(4)
    common = rng.integers(-3, 4, (TIMES.size, 2)).astype(float)
    releases = [
        Release(Mechanism(TIMES, np.hstack([common, rng.normal(size=(TIMES.size, 1))]))),
        Release(Mechanism(TIMES, np.hstack([2 * common, rng.normal(size=(TIMES.size, 1))]))),
        Release(mechanism(8)),
    ]
    kernel, true = KERNELS[0]
    secret = Secret.at([1.0, 4.0], recorded=recorded)
    digits, mp.dps = mp.dps, 150
    try:
        expected = loss(whole(true, 0.5, releases, secret, mp.mpf(10) ** -40), 2)
    finally:
        mp.dps = digits
    assert agree(joint_loss(kernel + White(0.5), releases, secret).matrix, expected)


def test_two_different_designs_of_low_rank_disclose_everything() -> None:
    """What is left of a place is what the exact recording leaves; of a recorded value, nothing."""
    kernel = Matern12(3.0, 2.0) + White(0.5)
    directions = [np.array([[1.0], [2.0], [3.0], [1.0]]), np.array([[1.0], [2.0], [3.0], [1.01]])]
    both = [Release(Mechanism(TIMES, 100.0 * direction)) for direction in directions]
    nothing = Release(Mechanism(TIMES, np.zeros((TIMES.size, 0))))
    loss = joint_loss(kernel, both, Secret.at(2.5))
    assert agree(loss.matrix, joint_loss(kernel, [nothing], Secret.at(2.5)).matrix)
    assert joint_loss(kernel, both[:1], Secret.at(2.5)).largest < 1e-2 * loss.largest
    with pytest.raises(NumericalError, match="infinite loss"):
        joint_loss(kernel, both, Secret.at(2.5, recorded=True))


def test_overlap_counts_where_it_is() -> None:
    """Two recordings with one fix in common: only there is the noise seen through."""
    kernel = Matern12(3.0, 2.0) + White(0.01)
    release = Release(Mechanism(TIMES[:3], 10.0 * np.array([[1.0], [0.0], [1.0]])))
    two = Release(Mechanism(TIMES[2:], 10.0 * np.array([[1.0], [0.0]])))
    other = Release(Mechanism(TIMES[2:], 10.0 * np.array([[1.0], [0.0]])), "watch")
    shared, apart = (
        joint_loss(kernel, [release, second], Secret.at(1.0)) for second in (two, other)
    )
    assert shared.matrix.shape == apart.matrix.shape == (1, 1)
    true = kernel_exponential(3.0, 2.0)
    for releases, computed in (([release, two], shared), ([release, other], apart)):
        digits, mp.dps = mp.dps, 150
        try:
            expected = loss(whole(true, 0.01, releases, Secret.at(1.0), mp.mpf(10) ** -40), 1)
        finally:
            mp.dps = digits
        assert agree(computed.matrix, expected)


def test_what_is_known_besides_counts_against_both() -> None:
    kernel, true = KERNELS[0]
    known = SideInformation(np.array([0.0, 4.0]), 0.3)
    bare = Mechanism(known.times, np.zeros((2, 0)), 0.3**2)
    releases, secret = [Release(mechanism(5)), Release(mechanism(6))], Secret.at(2.5)
    joint = joint_loss(kernel + White(0.5), releases, secret, known=known).matrix
    with_it = loss(whole(true, 0.5, [*releases, Release(bare)], secret), 1)
    before = loss(whole(true, 0.5, [Release(bare)], secret), 1)
    assert agree(joint, with_it - before)


def test_a_prior_without_measurement_noise_is_computed_in_more_digits() -> None:
    """The paper's RBF, two released noises of low rank, nothing added to any diagonal."""
    times = np.arange(8.0)
    vectors = np.random.default_rng(2).normal(size=(8, 2))
    releases = [Release(Mechanism(times, vectors)), Release(Mechanism(times, -4.0 * vectors))]
    loss = joint_loss(RBF(4.0), releases, Secret.at(3.0, recorded=True)).matrix
    mechanism = Mechanism(times, vectors * np.sqrt(16 / 17))
    expected = loss_matrix(Prior(RBF(4.0), times), Secret.at(3.0, recorded=True), mechanism).matrix
    assert agree(loss, expected, 1e-3)  # sqrt(16/17) is rounded, and this prior sees it
