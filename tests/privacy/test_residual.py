"""The posterior of a secret as a sum of squares: right within its bounds, and those sharp."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.markov_cases import SMOOTH, nasty_times, relative
from trailveil.gp.chains import Recursion
from trailveil.gp.extended import Extended, eliminate
from trailveil.gp.gaussian import FloatArray, Joint, posterior
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern32,
    StoppedClock,
    White,
    latent,
    split,
)
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Observation, Prior, SideInformation, observe
from trailveil.privacy.residual import Sources, _slack, _total, markov_posterior
from trailveil.privacy.secrets import Secret

PROCESS = Matern32(120.0, 900.0) + White(3.0)
BITS = 400


@pytest.fixture(autouse=True)
def always_markov(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trailveil.privacy.prior.LARGEST_DENSE", 0)


def released(count: int, seed: int, widest: float, *, process: bool) -> Mechanism:
    """Noise of all kinds at once, three rows withheld."""
    random = np.random.default_rng(seed)
    times = nasty_times(count, seed, widest)
    factor = random.normal(size=(count, 2)) * 10.0 ** random.uniform(-1, 3)
    noise = Mechanism(times, factor, 10.0 ** random.uniform(-2, 3), PROCESS if process else None)
    return noise.withholding(np.isin(np.arange(count), random.integers(0, count, 3)))


def secrets(times: FloatArray) -> list[Secret]:
    return [
        Secret.at(float(times[3]) + 0.25),
        Secret.at(float(times[2]), recorded=True),
        Secret.stay(float(times[1]), float(times[4])),
        Secret.at([float(times[1]), float(times[-1]), float(times[2])]),
        Secret.mean(times[1:-1], recorded=True),
        Secret.difference(float(times[1]), float(times[-1])),
    ]


def exact(observation: Observation, secret: Secret) -> FloatArray:
    """Var(secret | Z) in 400 bits, from the kernels alone."""
    prior, mechanism, known = observation.prior, observation.mechanism, observation.known
    m, rows = Extended(BITS), mechanism.rows
    rows_observed = np.concatenate([prior.times[rows], known.times])
    observed, of_secret = m.numbers(rows_observed), m.numbers(secret.times)
    weights = m.numbers(secret.weights)
    judged = prior.kernel if secret.recorded else latent(prior.kernel)

    def between(kernel: Any, a: Any, b: Any) -> Any:
        return kernel.formula(a[:, None], b[None, :], m)

    factor = m.numbers(np.vstack([mechanism.factor[rows], np.zeros((known.times.size, 2))]))
    data = between(prior.kernel, observed, observed) + factor @ factor.T
    extra = [mechanism.floor] * rows.size + [known.accuracy**2] * known.times.size
    data = data + np.diag(m.numbers(np.array(extra)))
    if mechanism.process is not None:
        noise = between(mechanism.process, observed[: rows.size], observed[: rows.size])
        data[: rows.size, : rows.size] += noise
    cross = between(judged, observed, of_secret) @ weights.T
    variance = weights @ between(judged, of_secret, of_secret) @ weights.T
    joint = np.block([[data, cross], [cross.T, variance]])
    # Fixed point holds numbers of size one: everything is divided by one large scale.
    scale = m.number(2.0**70)
    objects = eliminate(m.fixed(joint / scale), rows_observed.size, BITS)
    floats = np.frompyfunc(lambda value: float(m.context.ldexp(value, -m.bits)), 1, 1)
    return np.asarray(floats(objects), dtype=np.float64) * 2.0**70


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(SMOOTH)),
    which=st.integers(0, 5),
    level=st.sampled_from([0.0, 1e5]),
    process=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_truth_is_within_the_bounds(
    name: str, which: int, level: float, process: bool, seed: int
) -> None:
    noise = released(9, seed, 3.0, process=process)
    kernel = SMOOTH[name] + White(2.0)
    prior = Prior(kernel + Constant(level) if level else kernel, noise.times)
    known = SideInformation(noise.times[[2, 5]], 10.0)
    secret = secrets(noise.times)[which]
    observation = observe(prior.for_secret(secret), noise, known)
    posterior = markov_posterior(observation.joint(secret), secret)
    true = np.diagonal(exact(observation, secret))
    # What a clock rounds is no error of the posterior, and in neither bound.
    clock = 1e-9 * true if "clock" in name or "stop" in name or secret.window else 0.0
    assert np.all(np.abs(np.diagonal(posterior.covariance) - true) <= posterior.slack + clock)
    assert np.all(posterior.slack <= 1e-6 * true + 1e-12)
    assert np.array_equal(posterior.covariance, posterior.covariance.T)


@pytest.mark.parametrize("name", sorted(SMOOTH))
@pytest.mark.parametrize("process", [False, True])
def test_residuals_of_any_weights(name: str, process: bool) -> None:
    """Var(s - W^T Z) and Cov(Z, s - W^T Z), for weights that are far from the best."""
    noise = released(40, 3, 1.0, process=process)
    prior = Prior(SMOOTH[name] + White(2.0) + Constant(50.0), noise.times)
    known = SideInformation(noise.times[[2, 5]], 10.0)
    for secret in secrets(noise.times):
        observation = observe(prior.for_secret(secret), noise, known)
        joint = observation.joint(secret)
        count = observation.system.size
        weights = np.random.default_rng(0).normal(size=(count, secret.size))
        shares = Sources(joint, secret).shares(weights)
        data = observation.system.apply(np.eye(count)) + joint.loadings @ joint.loadings.T
        cross = joint.cross + joint.loadings @ joint.secret_loadings.T
        prior_variance = joint.variance + joint.secret_loadings @ joint.secret_loadings.T
        both = weights.T @ cross
        variance = prior_variance - both - both.T + weights.T @ data @ weights
        assert relative(np.sum([share.variance for share in shares], axis=0), variance) < 1e-11
        assert relative(_total(shares), cross - data @ weights) < 1e-11


def long_ride(kernel: Kernel, count: int) -> tuple[Observation, Secret]:
    """A long recording without any noise but that of measurement: the hardest to bound."""
    times = np.cumsum(np.random.default_rng(0).exponential(5.0, count))
    prior = Prior(kernel + White(2.0) + Constant(1e5), times - times[0])
    nothing = Mechanism(prior.times, np.empty((count, 0)))
    return observe(prior, nothing), Secret.at(float(prior.times[count // 2]) + 1.0)


@pytest.mark.parametrize(
    ("kernel", "gain"), [(IntegratedOU(3.0, 60.0), 1e-2), (Matern32(60.0, 300.0), 1.0)]
)
def test_bounds_stay_sharp_over_a_long_series(kernel: Kernel, gain: float) -> None:
    observation, secret = long_ride(kernel, 20_000)
    joint = observation.joint(secret)
    sharp, general = markov_posterior(joint, secret), posterior(joint)
    assert sharp.slack[0] < 1e-6 * sharp.covariance[0, 0]
    assert sharp.slack[0] < gain * general.slack[0]
    assert abs(sharp.covariance[0, 0] - general.covariance[0, 0]) <= general.slack[0]


def test_the_observation_takes_the_sharp_form() -> None:
    observation, secret = long_ride(IntegratedOU(3.0, 60.0), 600)
    joint = observation.joint(secret)
    taken, sharp = observation.posterior(secret), markov_posterior(joint, secret)
    assert np.array_equal(taken.slack, sharp.slack)
    assert np.array_equal(taken.covariance, sharp.covariance)


def test_secrets_from_before_the_origin_are_left_to_the_general_form() -> None:
    observation, _ = long_ride(IntegratedOU(3.0, 60.0), 50)
    early = Secret.at(-30.0)
    joint = observation.joint(early)
    expected = posterior(joint)
    taken = markov_posterior(joint, early)
    assert np.array_equal(taken.covariance, expected.covariance)
    assert np.array_equal(taken.slack, expected.slack)


def test_full_matrices_are_refused() -> None:
    prior = Prior(RBF(60.0) + White(1.0), np.arange(5.0))
    observation = observe(prior, Mechanism(prior.times, np.empty((5, 0))))
    joint: Joint = observation.joint(Secret.at(2.0))
    with pytest.raises(ValueError, match="Markov system"):
        markov_posterior(joint, Secret.at(2.0))


def test_a_stay_is_judged_on_its_stopped_clock() -> None:
    times = np.arange(0.0, 100.0)
    prior = Prior(Matern32(60.0, 300.0) + White(2.0), times)
    secret = Secret.stay(30.0, 60.0)
    observation = observe(prior.for_secret(secret), Mechanism(times, np.empty((100, 0))))
    variance = observation.posterior(secret).covariance[0, 0]
    base, _ = split(prior.kernel.warp(StoppedClock(((30.0, 60.0),))))
    assert base is not None
    data, cross = base(times, times), base(times, [30.0])
    cross[30] -= 4.0  # the place, not the value recorded there
    latent = base([30.0], [30.0])[0, 0] - 4.0
    assert variance == pytest.approx(
        latent - (cross.T @ np.linalg.solve(data, cross))[0, 0], rel=1e-8
    )


def test_bounds_hold_for_weights_that_are_not_the_best() -> None:
    """The variance of a residual exceeds the posterior's by at most the slack."""
    observation, secret = long_ride(IntegratedOU(3.0, 60.0), 300)
    joint = observation.joint(secret)
    best = markov_posterior(joint, secret)
    for size in (1e-6, 1e-4, 1e-2):
        moved = best.weights * (1 + size * np.random.default_rng(0).normal(size=(300, 1)))
        shares = Sources(joint, secret).shares(moved)
        variance = sum(float(share.variance[0, 0]) for share in shares)
        excess = variance - best.covariance[0, 0]
        assert -best.slack[0] <= excess <= _slack(shares, observation.system)[0] + best.slack[0]


def run_in_single_precision(
    self: Recursion, u: FloatArray, *, backwards: bool = False
) -> FloatArray:
    """The recursion one step after another, each rounded to 24 bits."""
    size = self.band.shape[1]
    z = u.astype(np.float32)
    steps = range(u.shape[1] - 1)
    for k in reversed(steps) if backwards else steps:
        band = self.band[k]  # [from, size + to - from] holds -F
        transition = np.array(
            [[-band[start, size + to - start] for start in range(size)] for to in range(size)]
        ).astype(np.float32)
        if backwards:
            z[:, k] += z[:, k + 1] @ transition
        else:
            z[:, k + 1] += z[:, k] @ transition.T
    return z.astype(np.float64)


def test_bounds_hold_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A series long on its way, in 24 bits: errors are large enough to be seen, and are covered."""
    observation, secret = long_ride(IntegratedOU(3.0, 60.0, -1e10), 400)
    joint = observation.joint(secret)
    weights = markov_posterior(joint, secret).weights
    sources = Sources(joint, secret)
    exact_variance = sources.shares(weights)[0].variance[0, 0]
    monkeypatch.setattr("trailveil.privacy.residual.UNIT_ROUNDOFF", 2.0**-24)
    monkeypatch.setattr(Recursion, "run", run_in_single_precision)
    series = sources.shares(weights)[0]
    error = abs(series.variance[0, 0] - exact_variance)
    spread, deviation = series.spread[0], np.sqrt(exact_variance)
    assert 1e-4 * exact_variance < error <= spread * (2 * deviation + spread)


def test_weights_are_refined_by_the_sharp_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    observation, secret = long_ride(IntegratedOU(3.0, 60.0), 20_000)
    joint = observation.joint(secret)
    refined = markov_posterior(joint, secret)
    monkeypatch.setattr("trailveil.privacy.residual.MOST_REFINEMENTS", 0)
    assert refined.slack[0] < 0.1 * markov_posterior(joint, secret).slack[0]
