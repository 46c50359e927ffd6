"""Certificates against other arithmetic and other ways; what they catch, and what they refuse."""

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.privacy.certified.draws import case, claimed
from trailveil.errors import InvalidValue, NumericalError, TrailveilError, Unavailable
from trailveil.gp.balls import floats, matrix_of, precision
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, Matern32, Periodic, White
from trailveil.privacy.adversary import PLAIN, Adversary, value_losses
from trailveil.privacy.certified import observed
from trailveil.privacy.certified.certificate import certificate_of, check_claim, prove
from trailveil.privacy.certified.losses import at_least, effective
from trailveil.privacy.certified.observed import Observed, Remaining, remaining
from trailveil.privacy.extended_loss import extended_loss
from trailveil.privacy.guarantee import tight_bound
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation
from trailveil.privacy.secrets import Secret

pytest.importorskip("flint")

TIMES = np.cumsum(np.random.default_rng(2).uniform(10.0, 35.0, 26))
MOVING = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
KERNELS: dict[str, Kernel] = {
    "moving": MOVING,
    "matern": Matern32(60.0, 300.0) + White(2.0),
    "rbf": RBF(60.0, 300.0) + White(2.0),
    "rbf, no noise": RBF(60.0, 300.0),
}
SECRETS: dict[str, Secret] = {
    "place": Secret.at(TIMES[13] + 3.0),
    "recorded": Secret.at(TIMES[13], recorded=True),
    "two": Secret.at([TIMES[9], TIMES[16]]),
    "mean": Secret.mean(TIMES[11:16]),
    "stay": Secret.stay(TIMES[11], TIMES[14]),
}


def noise(rank: int = 3, **more: object) -> Mechanism:
    factor = 300.0 * np.random.default_rng(7).standard_normal((TIMES.size, rank))
    factor[:6] = 0.0
    return Mechanism(TIMES, factor, **more)  # type: ignore[arg-type]  # of Mechanism


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("secret", SECRETS)
def test_agrees_with_the_loss_in_extended_precision(kernel: str, secret: str) -> None:
    prior, place, mechanism = Prior(KERNELS[kernel], TIMES), SECRETS[secret], noise()
    judge = prior.for_secret(place)
    try:
        exact = extended_loss(judge, replace(place, window=None), mechanism, NOTHING_KNOWN)
    except NumericalError:
        # Two exact fixes of one place: their noises tell the place of who stands still there.
        assert (kernel, secret) == ("rbf, no noise", "stay")
        return
    lost = prove(prior, [place], mechanism, PLAIN).lost[0]
    expected = tight_bound([exact], 1.0)
    assert lost.upper == pytest.approx(expected, rel=2e-10)
    assert lost.lower <= expected * (1 + 1e-12)
    assert lost.lower >= expected * (1 - 1e-9)


def test_agrees_for_who_knows_the_path() -> None:
    prior, place, mechanism = Prior(MOVING, TIMES), SECRETS["place"], noise()
    far = TIMES[(place.times[0] - 60.0 >= TIMES) | (place.times[0] + 60.0 <= TIMES)]
    exact = extended_loss(prior, place, mechanism, SideInformation(far, 10.0))[0, 0]
    lost = prove(prior, [place], mechanism, PLAIN & Adversary.knows_path(60.0)).lost[0]
    assert lost.upper == pytest.approx(exact, rel=1e-12)
    assert lost.upper >= exact * (1 - 1e-13)


@pytest.mark.parametrize("off", [1e-2, 1e-5])
def test_weights_from_anywhere_give_balls_that_hold_the_truth(
    off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior, places, others = Prior(MOVING, TIMES), SECRETS["two"], TIMES[[2, 20]]
    rows = Observed(prior, noise(), NOTHING_KNOWN)
    with precision(192):
        truth = remaining(rows, places, others)
        started = observed._started

        def poor(observed: Observed, secrets: list[Secret]) -> object:
            weights, _ = started(observed, secrets)
            wrong = off * np.random.default_rng(4).standard_normal(weights.shape)
            return weights + wrong, lambda residual: 0 * residual

        monkeypatch.setattr(observed, "_started", poor)
        monkeypatch.setattr(observed, "LARGEST_INVERTED", 0)
        wide = remaining(rows, places, others)
        for ball, sharp in zip(_all(wide), _all(truth), strict=True):
            assert ball.contains(sharp)
            assert ball.rad() > 0


def _all(left: Remaining) -> list[Any]:
    rows = [*left.covariance, *left.shared]
    return [*(value for row in rows for value in row), *left.variances]


def test_every_value_that_may_be_known_is_covered() -> None:
    prior = Prior(MOVING, TIMES)
    place, who = SECRETS["place"], PLAIN & Adversary.knows_point(30.0)
    # Noise at each point: no few columns tell of all others.
    mechanism = noise(12, floor=100.0**2)
    _, each = value_losses(prior, place, mechanism, who)
    lost = prove(prior, [place], mechanism, who).lost[0]
    assert lost.upper == pytest.approx(float(each.max()), rel=1e-5)
    assert lost.upper >= float(each.max()) * (1 - 1e-5)
    assert lost.lower == pytest.approx(lost.upper, rel=1e-9)
    assert lost.at is not None


def test_a_claim_that_is_optimistic_by_a_millionth_is_caught() -> None:
    prior, place, mechanism = Prior(MOVING, TIMES), SECRETS["place"], noise()
    proved = prove(prior, [place], mechanism, PLAIN)
    truth = 2.5 * 200.0**2 * proved.lost[0].upper
    ball_certificate = certificate_of(
        "a place", ["plain"], [proved], 0, 200.0, 5.0, claimed=truth, seconds=0.0
    )
    assert ball_certificate.epsilon == pytest.approx(truth, rel=1e-12)
    assert ball_certificate.epsilon >= truth
    assert ball_certificate.mu**2 * 2.5 >= truth * (1 - 1e-15)
    with pytest.raises(NumericalError, match="must not be below what is proved"):
        certificate_of(
            *("a place", ["plain"], [proved], 0, 200.0, 5.0),
            claimed=truth * (1 - 1e-6),
            seconds=0.0,
        )


def test_a_little_less_noise_is_a_larger_epsilon() -> None:
    prior, place, mechanism = Prior(MOVING, TIMES), SECRETS["place"], noise()
    less = replace(mechanism, factor=mechanism.factor * (1 - 1e-6))
    least, most = (prove(prior, [place], m, PLAIN).lost[0] for m in (mechanism, less))
    assert most.lower > least.upper
    assert most.lower / least.upper - 1 < 1e-5


def test_noise_in_proportion_has_a_closed_form() -> None:
    kernel = RBF(3.0) + White(0.1)
    times = np.arange(12.0)
    mechanism = Mechanism(times, np.empty((12, 0)), process=0.02 * kernel)
    lost = prove(Prior(kernel, times), [Secret.at(4.0, recorded=True)], mechanism, PLAIN).lost[0]
    assert lost.upper == pytest.approx(1 / (0.02 * 1.01), rel=1e-15)
    assert lost.upper >= 1 / (0.02 * 1.01) * (1 - 1e-15)


def test_fixes_that_are_one_value_are_inverted_once() -> None:
    # After a whole period the series is the same: its covariance is singular.
    times, kernel = np.arange(12.0), Periodic(1.0, 6.0)
    column = np.cos(2 * np.pi * np.arange(6.0) / 6)
    mechanism = Mechanism(times, np.tile(column, 2)[:, None])
    prior, place = Prior(kernel, times), Secret.at(3.25)
    exact = extended_loss(prior, place, mechanism, NOTHING_KNOWN)[0, 0]
    lost = prove(prior, [place], mechanism, PLAIN).lost[0]
    assert lost.upper == pytest.approx(exact, rel=1e-12)


def test_the_bound_of_several_locations_is_that_of_a_feasible_y() -> None:
    random = np.random.default_rng(3)
    root = random.standard_normal((4, 4))
    loss: FloatArray = root @ root.T
    with precision(128):
        bound, least = effective(matrix_of(loss)), at_least(matrix_of(loss))
        assert bound is not None
        assert float(bound.upper()) == pytest.approx(tight_bound([loss], 1.0), rel=1e-10)
        assert float(least.lower()) == pytest.approx(float(bound.upper()), rel=1e-8)
        assert float(least.lower()) <= float(bound.upper())
        assert effective(matrix_of(np.zeros((2, 2)))) == 0
        hardly = effective(matrix_of(np.full((2, 2), -1e-30)))
        assert hardly is not None
        assert 0 <= float(hardly.upper()) < 1e-20
    assert floats(matrix_of(loss)).shape == (4, 4)


@pytest.mark.slow
def test_a_thousand_random_cases_have_no_optimistic_float(request: pytest.FixtureRequest) -> None:
    # All of them take two minutes.
    full = request.config.getoption("--full")
    proved, violations = 0, []
    for seed in range(1_250 if full else 60):
        prior, secret, mechanism, adversary = case(seed)
        try:
            claim = claimed(prior, secret, mechanism, adversary)
        except TrailveilError:
            continue  # refused: nothing is claimed
        lost = prove(prior, [secret], mechanism, adversary).lost[0]
        proved += 1
        if lost.upper > claim * (1 + 1e-9):
            violations.append((seed, claim, lost))
    assert violations == []
    assert proved >= (1_000 if full else 40)


def test_no_ball_arithmetic_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(Unavailable, match=r"pip install 'trailveil\[certify\]'"):
        prove(Prior(MOVING, TIMES), [Secret.at(9.0)], noise(), PLAIN)


def test_what_is_out_of_reach_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    prior, place = Prior(KERNELS["rbf, no noise"], TIMES), SECRETS["place"]
    monkeypatch.setattr("trailveil.privacy.certified.observed.LARGEST_INVERTED", 10)
    with pytest.raises(NumericalError, match="independent noise"):
        prove(prior, [place], noise(), PLAIN)
    monkeypatch.setattr("trailveil.privacy.certified.observed.LARGEST", 10)
    with pytest.raises(Unavailable, match="at most 10 points"):
        prove(prior, [place], noise(), PLAIN)
    with pytest.raises(InvalidValue, match="in one span"):
        prove(prior, [place, Secret.at(9.0)], noise(), PLAIN & Adversary.knows_point())


def test_a_claim_is_checked_to_a_billionth() -> None:
    check_claim(1.0, 1.0 + 9e-10)
    with pytest.raises(NumericalError):
        check_claim(1.0, 1.0 + 2e-9)
    with pytest.raises(NumericalError):
        check_claim(0.0, math.ulp(0.0))
