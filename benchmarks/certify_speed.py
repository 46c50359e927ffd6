"""How long certificates take, in seconds: a table. Run: python -m benchmarks.certify_speed."""

import time
from collections.abc import Callable

import click
import numpy as np

from trailveil.designer.closed_form import least_noise
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, White
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.certified.certificate import Proved, prove
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

BOUND = loss_bound_for(1.0, 200.0)
MOVING = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)
ANY_POINT = PLAIN & Adversary.knows_point()
THE_PATH = PLAIN & Adversary.knows_path()


def case(kernel: Kernel, count: int, step: float, adversary: Adversary) -> Callable[[], Proved]:
    """The certificate of the place in the middle, for the least noise against the prior alone."""
    prior = Prior(kernel, step * np.arange(count, dtype=np.float64))
    secret = Secret.at(float(prior.times[count // 2]), recorded=kernel is not MOVING)
    factor = np.exp(-0.5 * ((prior.times - secret.times[0]) / 60.0)[:, None] ** 2)
    mechanism = Mechanism(prior.times, 0.5 * factor)
    if kernel is MOVING:
        mechanism = least_noise(prior, secret, BOUND)
    return lambda: prove(prior, [secret], mechanism, adversary)


def rows() -> dict[str, tuple[Kernel, int, float, Adversary]]:
    """What is timed, by name."""
    noisy = RBF(10.0) + White(0.1)
    return {
        "RBF of 10 steps with noise, n = 300": (noisy, 300, 1.0, PLAIN),
        "RBF of 10 steps with noise, any one value known": (noisy, 300, 1.0, ANY_POINT),
        "RBF of 3 steps without noise, n = 300": (RBF(3.0), 300, 1.0, PLAIN),
        "RBF of 6 steps without noise, n = 300": (RBF(6.0), 300, 1.0, PLAIN),
        "the default prior, n = 1,000": (MOVING, 1_000, 5.0, PLAIN),
        "the default prior, n = 1,000, any one value known": (MOVING, 1_000, 5.0, ANY_POINT),
        "the default prior, n = 100,000": (MOVING, 100_000, 1.0, PLAIN),
        "the default prior, n = 100,000, the path known": (MOVING, 100_000, 1.0, THE_PATH),
    }


def main() -> None:
    """Print the table."""
    for name, (kernel, count, step, adversary) in rows().items():
        run = case(kernel, count, step, adversary)
        begun = time.perf_counter()
        found = run()
        taken = time.perf_counter() - begun
        radius = found.lost[0].radius / found.lost[0].upper
        click.echo(f"{name:52} {taken:8.2f} s, {found.bits} bits, radius {radius:.1e}")


if __name__ == "__main__":
    main()
