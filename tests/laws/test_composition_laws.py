"""Composition of releases: laws, limits, sizes, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.releases import KERNELS, TIMES, agree, mechanism, secrets_at
from trailveil.designer.closed_form import least_noise
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Periodic,
    White,
)
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.guarantee import Guarantee, loss_bound_for
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

SEEDS = st.integers(0, 2**32 - 1)


def test_the_same_design_again_halves_the_noise() -> None:
    kernel = Matern12(3.0, 2.0) + White(0.5)
    mechanism = Mechanism(TIMES, np.array([[1.0], [2.0], [3.0], [1.0]]))
    loss = joint_loss(
        kernel, [Release(mechanism), Release(mechanism)], Secret.at(2.5, recorded=True)
    )
    expected = loss_matrix(
        Prior(kernel, TIMES), Secret.at(2.5, recorded=True), mechanism.scaled(0.5)
    )
    assert agree(loss.matrix, expected.matrix)


def test_two_hundred_draws_of_one_design_are_accounted_for_as_their_mean() -> None:
    """What a release without a key costs who makes it again and again: their noise averages out."""
    kernel = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
    times = np.arange(0.0, 120.0, 40.0)
    prior, secret = Prior(kernel, times), Secret.at(40.0)
    one = least_noise(prior, secret, loss_bound_for(1.0, 200.0))
    loss = joint_loss(kernel, [Release(one)] * 200, secret)
    expected = loss_matrix(prior, secret, one.scaled(1 / 200))
    assert agree(loss.matrix, expected.matrix, 1e-6)
    epsilon = Guarantee(200.0 * loss.largest**0.5).epsilon
    assert 190 < epsilon <= 200 * (1 + 1e-6)  # it is divided by 200 in variance: none is free


def test_one_percent_more_epsilon_and_the_stay_is_known_to_a_hand() -> None:
    """20 minutes at one place, a fix every 5 s: eps 1, then eps 1.1, leaves 0.13 m of 316 m."""
    kernel = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
    times, secret = np.arange(0.0, 3000.0, 5.0), Secret.stay(1200.0, 2400.0)
    prior = Prior(kernel, times)
    both = [
        Release(least_noise(prior, secret, loss_bound_for(epsilon, 200.0)))
        for epsilon in (1.0, 1.1)
    ]
    deviations = [
        joint_loss(kernel, some, secret).largest ** -0.5 for some in (both[:1], both[1:], both)
    ]
    assert deviations == pytest.approx([316.23, 301.51, 0.12865], rel=1e-4)
    # The mean of 241 fixes with 2 m of noise each: that is all that is left.
    assert deviations[2] == pytest.approx(2 / np.sqrt(241), rel=2e-3)


def test_mus_never_add_up() -> None:
    """Neither sum of mu^2 nor of mu bounds what two designs tell together."""
    kernel = Matern12(3.0, 2.0) + White(0.5)
    both = [
        Release(Mechanism(TIMES, 10.0 * np.array([direction]).T))
        for direction in ([1.0, 1.0, 1.0, 1.0], [1.0, 1.1, 1.0, 1.0])
    ]
    alone = [Guarantee(joint_loss(kernel, [one], Secret.at(2.5)).largest ** 0.5).mu for one in both]
    together = joint_loss(kernel, both, Secret.at(2.5)).largest ** 0.5
    assert together > 2 * sum(alone)


@given(SEEDS, st.integers(0, 4))
@settings(max_examples=20)
def test_one_more_release_never_tells_less(seed: int, secret_kind: int) -> None:
    kernel, secret = KERNELS[seed % 3][0] + White(0.5), secrets_at(TIMES)[secret_kind]
    releases = [Release(mechanism(seed + i), f"device {i % 2}") for i in range(3)]
    before, after = (joint_loss(kernel, releases[:n], secret).matrix for n in (2, 3))
    lowest = np.linalg.eigvalsh(after - before)[0]
    assert lowest >= -1e-7 * np.abs(after).max()


@given(SEEDS)
@settings(max_examples=10)
def test_order_of_releases_does_not_matter(seed: int) -> None:
    kernel, secret = KERNELS[0][0] + White(0.5), Secret.at([1.0, 2.5])
    releases = [Release(mechanism(seed + i, floor=float(i > 0)), "same") for i in range(3)]
    one, other = (joint_loss(kernel, some, secret).matrix for some in (releases, releases[::-1]))
    assert agree(one, other)


def test_another_device_has_its_own_measurement_noise() -> None:
    """One fix by two devices without noise added: two measurements; of one device: one."""
    kernel, bare = Matern12(3.0, 2.0) + White(0.5), Mechanism(np.zeros(1), np.zeros((1, 0)))
    same = joint_loss(kernel, [Release(bare), Release(bare)], Secret.at(0.0)).largest
    other = joint_loss(kernel, [Release(bare), Release(bare, "watch")], Secret.at(0.0)).largest
    assert same == pytest.approx(1 / 0.25)
    assert other == pytest.approx(2 / 0.25)


def far_apart(kernel: Kernel, gap: float) -> tuple[FloatArray, FloatArray, float]:
    """Two recordings a gap apart: the loss of one place in each at once, and of each alone."""
    noise = np.array([[3.0], [1.0], [4.0], [1.0]])
    one = Release(Mechanism(TIMES, noise, 1.0), "first")
    two = Release(Mechanism(TIMES + gap, noise[::-1], 1.0), "second")
    together = joint_loss(kernel, [one, two], Secret.at([2.5, 2.5 + gap])).matrix
    alone = [
        joint_loss(kernel, [release], Secret.at(time)).largest
        for release, time in ((one, 2.5), (two, 2.5 + gap))
    ]
    return together, np.diag(alone), joint_loss(kernel, [one, two], Secret.at(2.5)).largest


def test_a_prior_that_forgets_composes_to_blocks() -> None:
    kernel = RBF(2.0, 1.5) + White(0.5)
    together, alone, first = far_apart(kernel, 1000.0)
    assert agree(together, alone)
    assert first == pytest.approx(alone[0, 0], rel=1e-8)
    near = far_apart(kernel, 5.0)
    assert near[2] > 1.001 * near[1][0, 0]


def test_a_routine_is_never_forgotten() -> None:
    kernel = Periodic(0.8, 7.0) + White(0.5)
    for periods in (1, 1000):
        together, alone, first = far_apart(kernel, 7.0 * periods + 0.5)
        assert first > 1.2 * alone[0, 0]
        assert abs(together[0, 1]) > 0.1 * together[0, 0]
    _, alone, first = far_apart(Periodic(0.8, 7.0) * RBF(1e4) + White(0.5), 7e6 + 0.5)
    assert first == pytest.approx(alone[0, 0], rel=1e-8)  # a routine that decays is


@pytest.mark.parametrize("rank", [0, 1])
def test_many_rows_take_the_fast_form_and_tell_the_same(rank: int) -> None:
    """O(n) for Markov priors; the same with a kernel that has no such form is dense."""
    times = np.arange(0.0, 1500.0, 5.0)
    kernel = Matern32(60.0, 300.0) + White(2.0)
    dense = Matern32(60.0, 300.0) + White(2.0) + RBF(60.0, 1e-9)
    rng = np.random.default_rng(0)
    releases = [Release(Mechanism(times, rng.normal(size=(300, rank)), floor)) for floor in (3, 5)]
    secret = Secret.at([100.0, 131.0])
    fast, slow = (joint_loss(one, releases, secret).matrix for one in (kernel, dense))
    assert agree(fast, slow)


def test_noise_that_is_a_process_composes() -> None:
    kernel = IntegratedOU(3.0, 60.0) + Constant(1e3) + White(2.0)
    process = Matern32(30.0, 100.0) + Constant(300.0)
    gamma = process(TIMES, TIMES)
    moved = Mechanism(TIMES, np.zeros((4, 0)), process=process)
    factor = Mechanism(TIMES, np.asarray(np.linalg.cholesky(gamma)))
    secret = Secret.difference(1.0, 4.0)
    found = [
        joint_loss(kernel, [Release(one), Release(moved)], secret).matrix for one in (moved, factor)
    ]
    half = factor.scaled(0.5)
    expected = loss_matrix(Prior(kernel, TIMES), secret, half).matrix
    assert agree(found[0], expected)
    assert agree(found[1], expected)


def test_releases_that_withhold_everything_tell_nothing() -> None:
    hidden = Mechanism(TIMES, np.zeros((4, 0)), released=np.zeros(4, bool))
    loss = joint_loss(RBF(1.0), [Release(hidden)], Secret.at([0.0, 1.0]))
    assert not np.any(loss.matrix)


@pytest.mark.parametrize(
    ("releases", "secret", "options", "message"),
    [
        ([], Secret.at(0.0), {}, "at least one release"),
        ([Release(mechanism(1), dimension=1)], Secret.at(0.0), {}, "dimension of a release"),
        ([Release(mechanism(1))], Secret.at(0.3, recorded=True), {}, "at the times of fixes"),
        ([Release(mechanism(1))], Secret.at(0.0), {"recording": "watch"}, "recording must be one"),
        (
            [Release(mechanism(1)), Release(Mechanism(TIMES + 9, np.zeros((4, 0))), "watch")],
            Secret.at(10.0, recorded=True),
            {},
            "at the times of fixes",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    releases: list[Release], secret: Secret, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        joint_loss(RBF(1.0) + White(0.1), releases, secret, recording=options.get("recording"))


def test_a_fix_is_released_once_in_a_release() -> None:
    with pytest.raises(InvalidValue, match="strictly increasing"):
        Release(Mechanism(np.zeros(2), np.zeros((2, 0)), 1.0))


def test_no_secret_where_there_is_no_variance() -> None:
    twice = Secret("same twice", np.array([0.0, 1.0]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(InvalidValue, match="no secret in it"):
        joint_loss(RBF(1.0) + White(0.1), [Release(mechanism(1))], twice)
