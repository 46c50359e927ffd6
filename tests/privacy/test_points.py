"""A secret and many points given the rows, against full matrices."""

import numpy as np
import pytest

from tests.markov_cases import SMOOTH, nasty_times, relative
from trailveil.errors import InvalidValue
from trailveil.gp import filtering
from trailveil.gp.gaussian import FloatArray, Joint
from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, Matern32, White, latent
from trailveil.privacy.markov import MarkovSystem
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.points import PointsPosterior, points_posterior
from trailveil.privacy.prior import NOTHING_KNOWN, Observation, Prior, SideInformation, observe
from trailveil.privacy.residual import SingleValues
from trailveil.privacy.secrets import Secret

PROCESS = Matern32(120.0, 900.0) + White(3.0)


@pytest.fixture(autouse=True)
def always_markov(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trailveil.privacy.prior.LARGEST_DENSE", 0)


def dense(
    observation: Observation, secret: Secret, points: SingleValues
) -> tuple[FloatArray, FloatArray]:
    """Cov(points, s | Z) and Var(points | Z), by full matrices."""
    prior, noise, known = observation.prior, observation.mechanism, observation.known
    seen = np.concatenate([prior.times[noise.rows], known.times])
    data = observation.system.apply(np.eye(seen.size))
    data = data + observation.loadings @ observation.loadings.T
    place = latent(prior.kernel)
    assert place is not None
    of_points = prior.kernel if points.recorded else place
    of_secret = prior.kernel if secret.recorded else place
    both = prior.kernel if points.recorded and secret.recorded else place
    between = of_points(seen, points.times)
    cross = of_secret(seen, secret.times) @ secret.weights.T
    told = np.linalg.solve(data, np.hstack([between, cross]))
    shared = both(points.times, secret.times) @ secret.weights.T
    own = of_points.diagonal(points.times)
    count = points.times.size
    return (
        shared - between.T @ told[:, count:],
        own - np.einsum("ni,ni->i", between, told[:, :count]),
    )


def found(observation: Observation, secret: Secret, points: SingleValues) -> PointsPosterior:
    return points_posterior(observation.joint(secret), secret, points)


def loading(observation: Observation, level: float) -> FloatArray:
    row = np.zeros(observation.loadings.shape[1])
    row[: int(level > 0)] = level
    return row


@pytest.mark.parametrize("name", sorted(SMOOTH))
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("level", "rank", "floor", "process"),
    [(0.0, 0, 1.0, False), (50.0, 0, 0.0, False), (50.0, 9, 0.0, True), (0.0, 2, 4.0, True)],
)
def test_equals_full_matrices(
    name: str, recorded: bool, level: float, rank: int, floor: float, process: bool
) -> None:
    random = np.random.default_rng(0)
    times = nasty_times(60, seed=3, widest=1.5)
    factor = random.normal(size=(60, rank)) * 50.0
    noise = Mechanism(times, factor, floor, PROCESS if process else None)
    noise = noise.withholding((times > times[20]) & (times < times[40]))
    kernel = SMOOTH[name] + White(2.0)
    prior = Prior(kernel + Constant(level) if level else kernel, times)
    known = SideInformation(times[[5, 5, 9, 30]], 10.0)
    observation = observe(prior, noise, known)
    asked = np.concatenate([times[::3], [float(times[30]) + 0.5, float(times[-1]) + 99.0]])
    points = SingleValues(asked, recorded, loading(observation, level))
    for secret in (
        Secret.at(float(times[31]) + 0.25),
        Secret.at(float(times[31]), recorded=True),
        Secret.at([float(times[3]), float(times[30])]),
    ):
        expected = dense(observation, secret, points)
        answer = found(observation, secret, points)
        assert relative(answer.covariances, expected[0]) < 1e-8
        assert relative(answer.variances, expected[1]) < 1e-8
        sharp = observation.posterior(secret)
        assert relative(answer.secret.covariance, sharp.covariance) < 1e-9


def test_the_secret_itself_among_the_points() -> None:
    """One answer of two recursions: by squares of the residual, and by smoothing."""
    times = np.cumsum(np.random.default_rng(0).exponential(5.0, 5_000))
    kernel: Kernel = IntegratedOU(3.0, 60.0) + White(2.0) + Constant(1e5)
    observation = observe(Prior(kernel, times), Mechanism(times, np.empty((5_000, 0)), 100.0))
    for at in (float(times[0]), float(times[2_500]) + 1.0, float(times[-1])):
        answer = found(
            observation,
            Secret.at(at),
            SingleValues(np.array([at]), False, loading(observation, 1e5)),
        )
        assert answer.variances[0] == pytest.approx(answer.secret.covariance[0, 0], rel=1e-7)
        assert answer.covariances[0, 0] == pytest.approx(answer.secret.covariance[0, 0], rel=1e-7)


def test_knowing_a_point_is_conditioning_on_it() -> None:
    times = nasty_times(80, seed=1, widest=1.5)
    prior = Prior(IntegratedOU(3.0, 60.0) + White(2.0) + Constant(1e5), times)
    noise = Mechanism(times, np.random.default_rng(0).normal(size=(80, 1)) * 100.0)
    secret, accuracy = Secret.at(float(times[40])), 10.0
    observation = observe(prior, noise)
    answer = found(observation, secret, SingleValues(times, True, loading(observation, 1e5)))
    for i in (0, 39, 40, 79):
        with_point = observe(prior, noise, SideInformation(times[[i]], accuracy))
        q, v = answer.covariances[i, 0], answer.variances[i]
        left = answer.secret.covariance[0, 0] - q**2 / (v + accuracy**2)
        assert left == pytest.approx(with_point.posterior(secret).covariance[0, 0], rel=1e-7)


def test_work_grows_with_rows_and_points(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[int] = []
    told = filtering._told

    def counted(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
        touched.append(a.size)
        return told(a, b, c, d)

    monkeypatch.setattr(filtering, "_told", counted)

    def work(count: int) -> int:
        touched.clear()
        times = np.arange(float(count))
        observation = observe(
            Prior(Matern32(60.0) + White(1.0), times), Mechanism(times, np.empty((count, 0)))
        )
        found(observation, Secret.at(5.0), SingleValues(times, True, np.empty(0)))
        return sum(touched)

    assert work(8_000) < 4.1 * work(2_000)


def test_full_matrices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trailveil.privacy.prior.LARGEST_DENSE", 500)
    prior = Prior(Matern32(60.0) + White(1.0), np.arange(5.0))
    observation = observe(prior, Mechanism(prior.times, np.empty((5, 0))), NOTHING_KNOWN)
    joint: Joint = observation.joint(Secret.at(2.0))
    assert not isinstance(joint.system, MarkovSystem)
    with pytest.raises(InvalidValue, match="Markov system"):
        points_posterior(joint, Secret.at(2.0), SingleValues(prior.times, True, np.empty(0)))
