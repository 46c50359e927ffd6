"""Losses and what they mean against oracles that share no code with the package: mpmath.

Quadrature, draws.
"""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, Matern32, White
from trailveil.privacy.guarantee import Guarantee, tight_bound
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior, SideInformation
from trailveil.privacy.secrets import Secret

MP = mpmath.MPContext()
MP.dps = 60
Covariance = Callable[[Any, Any], Any]
"""Of two times, in 60 digits, without measurement noise."""


def rbf(length: float) -> Covariance:
    return lambda a, b: MP.exp(-((a - b) ** 2) / (2 * MP.mpf(length) ** 2))


def matern32(length: float) -> Covariance:
    def value(a: Any, b: Any) -> Any:
        x = MP.sqrt(3) * abs(a - b) / MP.mpf(length)
        return (1 + x) * MP.exp(-x)

    return value


def integrated(std: float, tau: float, level: float) -> Covariance:
    s, t, c = MP.mpf(std), MP.mpf(tau), MP.mpf(level)

    def value(a: Any, b: Any) -> Any:
        ends = MP.exp(-a / t) + MP.exp(-b / t) - MP.exp(-abs(a - b) / t)
        return c**2 + s**2 * t * (2 * min(a, b) - t * (1 - ends))

    return value


PRIORS: dict[str, tuple[Kernel, Covariance, float]] = {
    "rbf": (RBF(3.0) + White(0.1), rbf(3.0), 0.1),
    "matern": (Matern32(4.0) + White(0.2), matern32(4.0), 0.2),
    "moving": (
        IntegratedOU(3.0, 60.0) + Constant(1000.0) + White(2.0),
        integrated(3.0, 60.0, 1000.0),
        2.0,
    ),
}


def true_loss(
    covariance: Covariance,
    noise: float,
    secret: Secret,
    mechanism: Mechanism,
    known: SideInformation | None = None,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Q^-1 - P^-1 by conditioning the joint of released values, known values and secret."""
    rows = list(mechanism.rows)
    data = [MP.mpf(mechanism.times[i]) for i in rows]
    other = [] if known is None else [MP.mpf(t) for t in known.times]
    points, at = data + other, [MP.mpf(t) for t in secret.times]
    clock = _clock(secret)
    joint = MP.matrix(len(points) + secret.size, len(points) + secret.size)
    own = MP.mpf(noise) ** 2
    for i, a in enumerate(points):
        for j, b in enumerate(points):
            joint[i, j] = covariance(clock(a), clock(b)) + (own if a == b else 0)
    for i in range(len(rows)):
        for j in range(len(rows)):
            joint[i, j] += sum(
                MP.mpf(u) * MP.mpf(v)
                for u, v in zip(mechanism.factor[rows[i]], mechanism.factor[rows[j]], strict=True)
            )
        joint[i, i] += MP.mpf(mechanism.floor)
    for i in range(len(data), len(points)):
        joint[i, i] += MP.mpf(known.accuracy if known else 0) ** 2
    start = len(points)
    for k in range(secret.size):
        for i, a in enumerate(points):
            value = sum(
                MP.mpf(w)
                * (covariance(clock(a), clock(t)) + (own if secret.recorded and a == t else 0))
                for w, t in zip(secret.weights[k], at, strict=True)
            )
            joint[i, start + k] = joint[start + k, i] = value
        for m in range(secret.size):
            joint[start + k, start + m] = sum(
                MP.mpf(u)
                * MP.mpf(v)
                * (covariance(clock(a), clock(b)) + (own if secret.recorded and a == b else 0))
                for u, a in zip(secret.weights[k], at, strict=True)
                for v, b in zip(secret.weights[m], at, strict=True)
            )
    seen = list(range(len(points)))
    after = _conditioned(joint, seen, start)
    before = _conditioned(joint, seen[len(data) :], start)
    difference_ = after**-1 - before**-1
    return np.array(difference_.tolist(), dtype=np.float64)


def _clock(secret: Secret) -> Callable[[Any], Any]:
    """Time that stands still in the window of a stay."""
    if secret.window is None:
        return lambda t: t
    start, end = (MP.mpf(t) for t in secret.window)
    return lambda t: t - (min(max(t, start), end) - start)


def _conditioned(joint: Any, seen: list[int], start: int) -> Any:
    """Covariance of the rows from `start` on, given the seen ones."""
    rest = list(range(start, joint.rows))
    own = MP.matrix([[joint[i, j] for j in rest] for i in rest])
    if not seen:
        return own
    data = MP.matrix([[joint[i, j] for j in seen] for i in seen])
    cross = MP.matrix([[joint[i, j] for j in rest] for i in seen])
    return own - cross.T * (data**-1) * cross


TIMES = np.array([0.0, 1.0, 2.5, 3.0, 5.5, 7.0])
SECRETS = [
    Secret.at(2.5, recorded=True),
    Secret.at(2.5),
    Secret.at(4.25),
    Secret.at([1.0, 3.0], recorded=True),
    Secret.at([1.0, 4.0, 5.5]),
    Secret.mean(TIMES[1:4]),
    Secret.difference(1.0, 5.5),
    Secret.stay(1.0, 3.5),
]


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("index", range(len(SECRETS)))
@pytest.mark.parametrize("withheld", [(), (2,), (0, 3)])
def test_losses_by_direct_conditioning(name: str, index: int, withheld: tuple[int, ...]) -> None:
    kernel, covariance, noise = PRIORS[name]
    generator = np.random.default_rng(100 * index + len(withheld))
    size = 100.0 if name == "moving" else 1.0
    cut = np.isin(np.arange(6), withheld)
    # Gamma of rank 2 is singular.
    mechanism = Mechanism(TIMES, size * generator.normal(size=(6, 2))).withholding(cut)
    loss = loss_matrix(Prior(kernel, TIMES), SECRETS[index], mechanism)
    truth = true_loss(covariance, noise, SECRETS[index], mechanism)
    scale = np.abs(truth).max()
    assert loss.matrix == pytest.approx(truth, abs=1e-7 * scale, rel=1e-7)
    above = np.linalg.eigvalsh(loss.matrix - truth)
    assert above.min() >= -1e-12 * scale  # never better than the truth


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("known_at", [(0.0,), (5.5, 7.0), (2.5,)])
def test_losses_against_who_knows_places(name: str, known_at: tuple[float, ...]) -> None:
    kernel, covariance, noise = PRIORS[name]
    size = 100.0 if name == "moving" else 1.0
    generator = np.random.default_rng(5)
    mechanism = Mechanism(TIMES, size * generator.normal(size=(6, 1)), floor=size**2 * 0.04)
    known = SideInformation(np.array(known_at), 0.1 * size)
    for secret in (Secret.at(3.0), Secret.mean(TIMES[1:4])):
        found = loss_matrix(Prior(kernel, TIMES), secret, mechanism, known=known).matrix
        truth = true_loss(covariance, noise, secret, mechanism, known)
        assert found == pytest.approx(truth, rel=1e-6)
        assert found[0, 0] >= truth[0, 0] * (1 - 1e-10)


@pytest.mark.parametrize("order", [1.5, 2.0, 5.0])
def test_epsilon_is_the_renyi_divergence_by_quadrature(order: float) -> None:
    # One released value Z = X + G, s = X: D( N(a, g) || N(b, g) ) = order/2 (a - b)^2 / g.
    gamma, shift = 0.7, 0.9
    prior = Prior(White(1.0), np.array([0.0]))
    mechanism = Mechanism(prior.times, np.zeros((1, 1)), floor=gamma)
    loss = loss_matrix(prior, Secret.at(0.0, recorded=True), mechanism).matrix
    deviation = np.sqrt(gamma)

    def integrand(z: float) -> float:
        log_p, log_q = norm.logpdf(z, shift, deviation), norm.logpdf(z, 0.0, deviation)
        return float(np.exp(order * log_p + (1 - order) * log_q))

    integral, _ = quad(integrand, -30, 40, limit=400, epsabs=0, epsrel=1e-10)
    divergence = np.log(integral) / (order - 1)
    mu = np.sqrt(tight_bound([loss], shift))
    assert Guarantee(float(mu), order).epsilon == pytest.approx(divergence, rel=1e-8)


@settings(max_examples=25)
@given(st.floats(0.05, 3.0), st.floats(0.01, 4.0))
def test_delta_by_quadrature(mu: float, epsilon: float) -> None:
    def excess(x: float) -> float:
        return float(norm.pdf(x, mu) * max(0.0, 1 - np.exp(epsilon + mu**2 / 2 - mu * x)))

    start = epsilon / mu + mu / 2  # where the privacy loss passes epsilon
    delta, _ = quad(excess, start, start + 40, limit=400, epsabs=1e-16, epsrel=1e-9)
    assert Guarantee(mu).delta(epsilon) == pytest.approx(delta, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("mu", [1e-12, 1e-8, 1e-4, 0.01, 0.49, 0.51, 2.0, 9.0, 40.0])
def test_delta_and_advantage_to_every_digit(mu: float) -> None:
    """Both are differences of two numbers that are nearly one where mu is small."""

    def delta(epsilon: float) -> float:
        m, e = MP.mpf(mu), MP.mpf(epsilon)
        return float(MP.ncdf(m / 2 - e / m) - MP.exp(e) * MP.ncdf(-m / 2 - e / m))

    assert Guarantee(mu).advantage == pytest.approx(delta(0.0), rel=1e-14, abs=0)
    for epsilon in (0.0, 1e-3 * mu, 0.1 * mu, mu, 5 * mu):
        assert Guarantee(mu).delta(epsilon) == pytest.approx(delta(epsilon), rel=1e-13, abs=0)
    assert Guarantee(mu).delta(1e300) == 0.0


def test_odds_and_advantage_by_simulation() -> None:
    # 400,000 draws of the log-likelihood ratio. The tolerance is 4.5 standard deviations of a
    # binomial share: a false alarm once in 150,000 for each of the four.
    count, mu = 400_000, 0.8
    ratio = np.random.default_rng(3).normal(mu**2 / 2, mu, count)
    guarantee = Guarantee(mu)
    for factor in (1.5, 2.0, 4.0):
        share = float(np.mean(np.abs(ratio) > np.log(factor)))
        chance = guarantee.odds_exceed(factor)
        assert abs(share - chance) <= 4.5 * np.sqrt(chance * (1 - chance) / count)
    right = float(np.mean(ratio > 0))
    assert abs((2 * right - 1) - guarantee.advantage) <= 4.5 * 2 * np.sqrt(0.25 / count)


def test_the_papers_example_exactly() -> None:
    guarantee = Guarantee(float(np.sqrt(2 * 0.1 / 5.0)), 5.0)
    assert guarantee.epsilon == pytest.approx(0.1)
    assert np.exp(guarantee.paper_gap(0.01)) == pytest.approx(3.5, abs=0.02)
    assert guarantee.odds(0.99) == pytest.approx(1.68, abs=0.005)


def test_locations_share_one_diagonal() -> None:
    one, other = np.diag([10.0, 0.01]), np.diag([0.01, 10.0])
    assert tight_bound([one], 1.0) == pytest.approx(10.01, rel=1e-6)
    assert tight_bound([other], 1.0) == pytest.approx(10.01, rel=1e-6)
    assert tight_bound([one, other], 1.0) == pytest.approx(20.0, rel=1e-6)
