"""The oracle for sets of adversaries: held against closed forms, other programs, and exposures."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.exposed import least_share
from tests.oracles import exact
from tests.oracles.exact import exact_sdp, requirements
from trailveil.designer import closed_form
from trailveil.errors import NumericalError
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Matern32, White
from trailveil.privacy.adversary import PLAIN, Adversary, exposure
from trailveil.privacy.guarantee import tight_bound
from trailveil.privacy.loss import losses
from trailveil.privacy.mechanism import no_noise
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

SECRETS = [
    Secret.at(4.0, recorded=True),
    Secret.at(3.4),
    Secret.at([2.0, 6.0]),
    Secret.mean([3.0, 4.0, 5.0], recorded=True),
    Secret.difference(2.0, 7.0),
    Secret.stay(3.0, 5.0),
]
ADVERSARIES = [
    PLAIN,
    Adversary.sees_stillness([(3.5, 6.0)]),
    Adversary.knows_point(2.0, 0.3),
    Adversary.knows_path(3.0, 0.2),
    Adversary.sees_stillness([(0.0, 1.0), (3.0, 5.0)])
    & Adversary.knows_point(2.0, 0.3)
    & Adversary.knows_path(4.0, 0.4),
    Adversary.believes("slower", Matern32(3.0) + White(0.2)),
]
EACH = pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda adversary: adversary.name)


def prior(count: int = 9) -> Prior:
    times = np.arange(float(count)) + 0.1 * np.sin(np.arange(count))
    times[2:8] = np.arange(2.0, 8.0)
    return Prior(Matern32(2.0) + White(0.2), times)


@EACH
@pytest.mark.parametrize("tight", [False, True])
def test_every_exposure_to_the_noise_is_within_its_bound_and_one_is_at_it(
    adversary: Adversary, tight: bool
) -> None:
    of, bounds = prior(), [1.0, 2.0, 3.0, 1.5, 1.0, 0.8]
    optimum = exact_sdp(
        of, SECRETS, bounds=bounds, adversaries=[adversary], tight=tight, floor=0.05
    )
    shares = []
    for secret, bound, loss in zip(SECRETS, bounds, optimum.losses, strict=True):
        exposed = exposure(of, secret, optimum.mechanism, adversary)
        assert loss == pytest.approx(exposed.loss, rel=1e-7)
        shares.append((tight_bound([exposed.learnt], 1.0) if tight else exposed.loss) / bound)
        if not tight:
            assert least_share(of, secret, optimum.mechanism, adversary, bound) >= 1 - 1e-9
    # With a tight bound, the largest eigenvalue and the largest sum(y) may be at two known places.
    assert 1 - 1e-4 <= max(shares) <= 1 + 1e-7
    assert optimum.value == pytest.approx(optimum.mechanism.noise_trace, rel=1e-6)


@EACH
def test_a_budget_is_spent_on_the_worst_exposure(adversary: Adversary) -> None:
    of, weights, secrets = prior(), np.linspace(0.5, 2.0, 9), SECRETS[1:4]
    both = list(dict.fromkeys([adversary, PLAIN]))
    optimum = exact_sdp(of, secrets, budget=4.0, weights=weights, adversaries=both, floor=0.1)
    assert float(weights @ optimum.mechanism.variances) == pytest.approx(4.0, rel=1e-9)
    losses = [exposure(of, s, optimum.mechanism, who).loss for s in secrets for who in both]
    assert max(losses) == pytest.approx(optimum.value, rel=1e-5)
    back = exact_sdp(
        of, secrets, bounds=[optimum.value] * 3, weights=weights, adversaries=both, floor=0.1
    )
    assert back.value == pytest.approx(4.0, rel=1e-5)


@pytest.mark.parametrize(
    "secret", [secret for secret in SECRETS if secret.size == 1], ids=lambda s: s.kind
)
@pytest.mark.parametrize("floor", [0.0, 0.02])
def test_one_secret_and_one_adversary_are_the_closed_form(secret: Secret, floor: float) -> None:
    existing = replace(no_noise(prior().times), floor=floor)
    for adversary in (
        PLAIN,
        Adversary.believes("other", RBF(2.5) + White(0.3)),
        Adversary.sees_stillness([(1.0, 4.5)]),
    ):
        of = adversary.prior(prior())
        if secret.window and adversary.still:
            continue  # two stopped clocks: one secret in the eyes of the closed form is another
        least = closed_form.least_possible_loss(of, secret, 0.8 - 9 * floor, existing=existing)
        optimum = exact_sdp(prior(), [secret], budget=0.8, adversaries=[adversary], floor=floor)
        assert optimum.value == pytest.approx(least, rel=1e-6)
        trace = closed_form.least_possible_noise(of, secret, 1.3 * least, existing=existing)
        back = exact_sdp(
            prior(), [secret], bounds=[1.3 * least], adversaries=[adversary], floor=floor
        )
        assert back.value == pytest.approx(trace, rel=1e-6)


def test_one_known_value_is_the_closed_form_of_the_prior_that_is_left() -> None:
    """One far fix known: whoever knows any one true place, and whoever knows that path."""
    of, secret = prior(), Secret.at(7.0, recorded=True)
    (index,) = np.flatnonzero(of.times <= secret.times[0] - 7.0)
    sigma = of.covariance
    sigma = sigma - np.outer(sigma[index], sigma[index]) / (sigma[index, index] + 0.3**2)
    at = int(np.searchsorted(of.times, 7.0))
    inner = np.linalg.inv(sigma + 0.9 * np.eye(9))
    least = 1 / (sigma[at, at] - sigma[at] @ inner @ sigma[at]) - 1 / sigma[at, at]
    path = exact_sdp(of, [secret], budget=0.9, adversaries=[Adversary.knows_path(7.0, 0.3)])
    assert path.value == pytest.approx(least, rel=1e-6)
    needed = requirements(of, [secret], [1.0], [Adversary.knows_point(7.0, 0.3)])
    assert len(needed) == 2
    gamma = path.mechanism.covariance()
    assert needed[1].loss(gamma)[0, 0] == pytest.approx(least, rel=1e-6)


def test_more_adversaries_never_cost_less() -> None:
    of, bounds = prior(), [1.0] * 6
    alone = [exact_sdp(of, SECRETS, bounds=bounds, adversaries=[a]).value for a in ADVERSARIES[:4]]
    both = exact_sdp(of, SECRETS, bounds=bounds, adversaries=ADVERSARIES[:4]).value
    assert both >= max(alone) * (1 - 1e-7)


def _least_with_shares(of: Prior, secret: Secret, bound: float) -> float:
    """The least noise with L <= diag(y), y1 + y2 = bound, by the program of the largest eigenvalue.

    L <= diag(y) says that the loss of the locations times sqrt(y) has no eigenvalue above 1.
    """

    def least(share: float) -> float:
        y = bound * np.array([share, 1 - share])
        scaled = replace(secret, weights=np.diag(np.sqrt(y)) @ secret.weights)
        return exact_sdp(of, [scaled], bounds=[1.0]).value

    optimum = minimize_scalar(least, bounds=(0.05, 0.95), method="bounded", options={"xatol": 1e-3})
    return float(optimum.fun)


def test_the_tight_bound_of_compound_secrets_is_minimised_with_the_noise() -> None:
    of = Prior(Matern32(2.0) + White(0.2), np.arange(5.0))
    secret = Secret.at([0.0, 3.0], recorded=True)
    optimum = exact_sdp(of, [secret], bounds=[2.0], tight=True)
    (loss,) = losses(of, [secret], optimum.mechanism)
    assert tight_bound([loss.matrix], 1.0) == pytest.approx(2.0, rel=1e-5)
    equal = exact_sdp(of, [secret], bounds=[1.0])  # y = (1, 1) is allowed, and not the least
    assert optimum.value < equal.value * 0.999
    assert optimum.value == pytest.approx(_least_with_shares(of, secret, 2.0), rel=1e-5)


def test_a_level_of_3_km_and_bounds_far_apart() -> None:
    times = np.arange(0.0, 150.0, 15.0)
    of = Prior(IntegratedOU(3.0, 60.0) + Constant(3e3) + White(2.0), times)
    adversaries = [
        PLAIN,
        Adversary.sees_stillness([(30.0, 60.0)]) & Adversary.knows_point(30.0, 10.0),
    ]
    secrets, bounds = (
        [Secret.at(75.0), Secret.difference(45.0, 105.0), Secret.stay(30.0, 60.0)],
        [1e-4, 1e-2, 1e-5],
    )
    optimum = exact_sdp(of, secrets, bounds=bounds, adversaries=adversaries)
    ratios = [
        exposure(of, secret, optimum.mechanism, adversary).loss / bound
        for secret, bound in zip(secrets, bounds, strict=True)
        for adversary in adversaries
    ]
    assert max(ratios) == pytest.approx(1.0, rel=1e-4)


def test_a_bound_that_is_met_gets_the_floor_alone() -> None:
    optimum = exact_sdp(prior(), SECRETS, bounds=[100.0] * 6, floor=0.3)
    assert optimum.value == pytest.approx(2.7)
    np.testing.assert_array_equal(optimum.mechanism.covariance(), 0.3 * np.eye(9))


def test_the_noise_of_the_solver_must_keep_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "AGREEMENT", 1e-16)
    requests: list[dict[str, Any]] = [{"bounds": [1.0] * 6}, {"budget": 1.0}]
    for options in requests:
        with pytest.raises(NumericalError, match="must be what it says"):
            exact_sdp(prior(), SECRETS, adversaries=ADVERSARIES[1:3], **options)
