"""Draws prove a lower bound of mu: not above the truth, and above a claim that is wrong.

A right claim is refuted with a chance of 0.1 % a case at most (the confidence of the bounds).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from tests.checks.attacks.designs import bumps, designed, deviations
from tests.rides import ride
from trailveil.checks.attacks import hypotheses
from trailveil.checks.attacks.hypotheses import audited, told_apart
from trailveil.designer.closed_form import least_noise
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Matern32, White
from trailveil.privacy.adversaries import Named
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release import drawing
from trailveil.release.plan import Plan
from trailveil.release.request import STRANGER

N, SECRET = 20_000, 6
TIMES = np.arange(12.0)
PRIOR = Prior(Matern32(4.0, 3.0) + White(0.5), TIMES)
PLACE = Secret.at(float(SECRET), recorded=True)


def shared_noise() -> Mechanism:
    """One direction, as is best, and a little independent noise besides."""
    return least_noise(PRIOR, PLACE, 0.4).plus(Mechanism(TIMES, np.empty((12, 0)), floor=0.04))


def series(value: float, generator: np.random.Generator, count: int = N) -> FloatArray:
    """Recorded series (count, n) of which the secret has a value."""
    sigma = PRIOR.covariance
    drawn = generator.standard_normal((count, 12)) @ np.linalg.cholesky(sigma).T
    share = sigma[:, SECRET] / sigma[SECRET, SECRET]
    return np.asarray(drawn + np.outer(value - drawn[:, SECRET], share))


def noise(gamma: FloatArray, generator: np.random.Generator, count: int = N) -> FloatArray:
    values, vectors = np.linalg.eigh(gamma)
    drawn = generator.standard_normal((count, len(gamma)))
    return np.asarray((drawn * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def bound(make: Callable[[float, np.random.Generator], FloatArray]) -> tuple[float, float]:
    """(what draws prove, what is claimed) of two values of which mu is 3 by the claim."""
    claim = float(loss_matrix(PRIOR, PLACE, shared_noise()).matrix[0, 0])
    apart = 3.0 / claim**0.5
    generator = np.random.default_rng(11)
    distinction = told_apart(make(-apart / 2, generator), make(apart / 2, generator))
    return distinction.least, 3.0


def honest(value: float, generator: np.random.Generator) -> FloatArray:
    return series(value, generator) + noise(shared_noise().covariance(), generator)


def scaled(value: float, generator: np.random.Generator) -> FloatArray:
    return series(value, generator) + 0.9 * noise(shared_noise().covariance(), generator)


def forgotten_cross_term(value: float, generator: np.random.Generator) -> FloatArray:
    gamma = shared_noise().covariance()
    gamma[SECRET, :SECRET] = gamma[:SECRET, SECRET] = 0
    gamma[SECRET, SECRET + 1 :] = gamma[SECRET + 1 :, SECRET] = 0
    return series(value, generator) + noise(gamma, generator)


def unprotected_dimension(value: float, generator: np.random.Generator) -> FloatArray:
    """Both coordinates hold the secret's two hypotheses; one has no noise."""
    return np.hstack([honest(value, generator), series(value, generator)])


def reused_draw(value: float, generator: np.random.Generator) -> FloatArray:
    """Two coordinates with the same noise: their difference has none."""
    same = noise(shared_noise().covariance(), generator)
    return np.hstack([series(value, generator) + same, series(0.0, generator) + same])


def test_an_honest_mechanism_is_not_caught_and_nearly_all_of_its_mu_is_found() -> None:
    least, claimed = bound(honest)
    assert 0.93 * claimed < least <= claimed


@pytest.mark.parametrize(
    "broken", [scaled, forgotten_cross_term, unprotected_dimension, reused_draw]
)
def test_a_broken_mechanism_is_caught(
    broken: Callable[[float, np.random.Generator], FloatArray],
) -> None:
    least, claimed = bound(broken)
    assert least > claimed


@pytest.mark.slow
def test_bounds_are_above_the_truth_as_seldom_as_they_say() -> None:
    """150 bounds at 90 %: 15 above the truth at most are expected, 34 is over 5 sigma."""
    above = 0
    for seed in range(150):
        generator = np.random.default_rng(seed)
        first = generator.standard_normal((200, 3))
        other = generator.standard_normal((200, 3)) + np.array([1.0, 0.0, 0.0])
        above += told_apart(first, other, confidence=0.9).least > 1.0
    assert above <= 34


def test_the_trade_off_is_that_of_two_gaussians() -> None:
    """beta = Phi(Phi^-1(1 - alpha) - mu): within 0.02 for 10,000 judged draws (over 4 sigma)."""
    generator = np.random.default_rng(4)
    first, other = generator.standard_normal((2, N, 1))
    distinction = told_apart(first, other + 1.5)
    alpha, beta = np.transpose(distinction.curve)
    assert (alpha[0], beta[0], alpha[-1], beta[-1]) == (0.0, 1.0, 1.0, 0.0)
    assert np.all(np.diff(alpha) >= 0)
    assert np.all(np.abs(beta - ndtr(ndtri(1 - alpha) - 1.5)) < 0.02)
    assert distinction.likely == pytest.approx(1.5, abs=0.06)


def test_what_never_varies_and_what_is_the_same() -> None:
    generator = np.random.default_rng(5)
    first = np.hstack([generator.standard_normal((200, 1)), np.zeros((200, 1))])
    other = np.hstack([generator.standard_normal((200, 1)), np.ones((200, 1))])
    assert told_apart(first, other).least > 2.5
    assert told_apart(first, generator.permutation(first)).least == 0.0
    assert told_apart(np.zeros((200, 2)), np.zeros((200, 2))).least == 0.0


def test_draws_that_prove_nothing_are_refused() -> None:
    with pytest.raises(InvalidValue, match="at least 100 of each hypothesis"):
        told_apart(np.zeros((99, 2)), np.zeros((99, 2)))
    with pytest.raises(InvalidValue, match="of equal shape"):
        told_apart(np.zeros((200, 2)), np.zeros((200, 3)))
    with pytest.raises(InvalidValue, match="confidence must be"):
        told_apart(np.zeros((200, 2)), np.zeros((200, 2)), confidence=1.0)


# What follows goes through drawing.draw: keyed normals, lattice, degrees, public grid.


@pytest.fixture(scope="module")
def plan() -> Plan:
    trace = ride(41, 60.0, still=(16, 24))
    return designed(trace, 16, 24, bumps(trace.seconds, 1200.0), (Named.PLAIN, Named.STILL))


def caught(plan: Plan, draws: int = 400) -> set[tuple[str, bool]]:
    auditeds = audited(plan, draws, generator=np.random.default_rng(9))
    return {(audit.way, audit.caught) for audit in auditeds}


@pytest.mark.slow
def test_an_honest_release_is_not_caught(plan: Plan) -> None:
    audits = list(audited(plan, 700, generator=np.random.default_rng(9)))
    assert [audit.adversary for audit in audits[::3]] == [
        STRANGER,
        f"{STRANGER}, sees standing still",
    ]
    assert not any(audit.caught for audit in audits)
    # What is claimed is for the worst of both, who sees stillness: the other learns less. Half of
    # 700 draws prove it but for 0.9: a bound of nothing would not be caught either.
    deviation = np.array([metres for _, metres in deviations(plan)])
    true = 2.5 * deviation.min() / deviation
    assert true.max() == 2.5
    assert all(
        audit.distinction.least > mu - 0.9 for audit, mu in zip(audits, true.repeat(3), strict=True)
    )


@pytest.mark.slow
def test_a_release_with_one_dimension_unprotected_is_caught(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise_of = drawing.noise_of

    def east_only(mechanism: Mechanism, seed: bytes, axis: str) -> FloatArray:
        return noise_of(mechanism, seed, axis) * (axis == "east")

    monkeypatch.setattr(drawing, "noise_of", east_only)
    ways = caught(plan)
    assert ("north", True) in ways
    assert ("east", False) in ways


@pytest.mark.slow
def test_a_release_with_a_reused_draw_is_caught(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both coordinates have the same noise."""
    noise_of = drawing.noise_of
    monkeypatch.setattr(drawing, "noise_of", lambda m, seed, axis: noise_of(m, seed, "east"))
    assert ("east", True) in caught(plan)


@pytest.mark.slow
def test_a_release_with_less_noise_is_caught(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_of = drawing.noise_of
    monkeypatch.setattr(drawing, "noise_of", lambda *given: 0.25 * noise_of(*given))
    assert ("east", True) in caught(plan)


def test_hypotheses_lie_where_they_are_said_to(plan: Plan) -> None:
    """Without noise, the released place at the time of the secret is the one that was stated."""
    nothing = Mechanism(plan.mechanism.times, np.empty((plan.mechanism.times.size, 0)))
    prior = Prior(plan.request.kernel, plan.mechanism.times)
    place = np.array([350.0, -120.0])
    releases = hypotheses._releases(
        replace(plan, mechanism=nothing),
        prior,
        Secret.at(float(plan.mechanism.times[20])),
        place,
        200,
        np.random.default_rng(3),
    ).reshape(200, -1, 2)
    # 2 m of measurement noise in each of 200: the mean is within 5 / sqrt(200) of it.
    assert np.all(np.abs(releases[:, 20].mean(axis=0) - place) < 5 * 2 / 200**0.5)
    assert np.all(np.abs(releases[:, 20] - place) < 12)
