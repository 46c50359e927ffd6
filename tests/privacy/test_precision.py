"""What one known value tells, by the formula for two jointly Gaussian values, in fifty digits."""

import numpy as np
import pytest
from mpmath import mp

from trailveil.errors import NumericalError
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, Matern32, White, latent
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import no_noise
from trailveil.privacy.precision import given_one_value
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

TIMES = np.array([0.0, 20.0, 45.0, 90.0, 200.0, 400.0])
ACCURACY = 10.0
KERNELS = {
    "level": IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0),
    "a level as small as the accuracy": IntegratedOU(3.0, 60.0) + Constant(12.0) + White(2.0),
    "movement": IntegratedOU(3.0, 60.0) + White(2.0),
    "stationary": Matern32(50.0, 100.0) + White(2.0),
}
SECRETS = [
    Secret.at(45.0),
    Secret.at(60.0),
    Secret.mean([20.0, 45.0, 90.0]),
    Secret.difference(20.0, 90.0),
]


def expected(kernel: Kernel, secret: Secret, at: float) -> float:
    """Var(s | x + noise of the accuracy), x the recorded value at a time."""
    true = latent(kernel)
    assert true is not None
    inputs = np.append(secret.times, at)
    matrix = mp.matrix(true(inputs, inputs).tolist())
    weights = mp.matrix([*secret.weights[0].tolist(), 0.0])
    value = mp.matrix([0.0] * secret.times.size + [1.0])
    variance, shared = (weights.T * matrix * weights)[0], (weights.T * matrix * value)[0]
    total = (value.T * matrix * value)[0] + mp.mpf(2.0) ** 2 + mp.mpf(ACCURACY) ** 2
    return float(variance - shared**2 / total)


@pytest.mark.parametrize("name", KERNELS)
def test_one_known_value_tells_what_two_gaussians_tell(name: str) -> None:
    kernel, prior = KERNELS[name], Prior(KERNELS[name], TIMES)
    points = np.array([0.0, 200.0, 400.0])
    for secret in SECRETS:
        with mp.workdps(50):
            truth = [expected(kernel, secret, float(at)) for at in points]
        whole = given_one_value(prior, secret, points, ACCURACY)[:, 0, 0]
        # The entries of the matrices themselves are in double precision: of a level of 1e10 m^2.
        far = name == "level"
        assert whole == pytest.approx(truth, rel=1e-6 if far else 1e-10, abs=1e-5 if far else None)


def test_a_loss_beyond_the_squares_of_doubles_is_that_of_a_secret_that_is_known() -> None:
    times = np.arange(36.0)
    places = Secret.at([11.3, 12.6])
    with pytest.raises(NumericalError, match="infinite loss"):
        loss_matrix(Prior(RBF(300.0), times), places, no_noise(times))
