"""How long a design takes, inside the process: a table. Run: python -m benchmarks.design_speed."""

import statistics
import time
from collections.abc import Callable

import click
import numpy as np

from tests.oracles.conic import sdp_a_as_in_code
from trailveil.designer.closed_form import least_loss, least_noise
from trailveil.designer.designer import design
from trailveil.designer.paper import multiple_secrets
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, White
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

BOUND = loss_bound_for(1.0, 200.0)
ENOUGH = 0.5  # seconds of repetitions


def median(function: Callable[[], object]) -> float:
    """The median of repeated runs, in seconds."""
    function()
    taken: list[float] = []
    while not taken or sum(taken) < ENOUGH:
        begun = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def rows() -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    noisy = Prior(RBF(6.1) + White(0.1), np.arange(50.0))
    bare = Prior(RBF(6.1), np.arange(50.0))
    long = Prior(RBF(6.1) + White(0.1), np.arange(1000.0))
    moving = Prior(
        IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0), np.arange(0.0, 5000.0, 5.0)
    )
    one, two = Secret.at(24.0, recorded=True), Secret.at([24.0, 25.0], recorded=True)
    three = [Secret.at(at, recorded=True) for at in (12.0, 24.0, 36.0)]
    every = [[index] for index in range(50)]

    def secret(prior: Prior) -> Mechanism:
        return least_noise(prior, Secret.at(float(prior.times[500])), BOUND)

    return {
        "one secret, least loss, n = 50": lambda: least_loss(noisy, one, 1.0),
        "one secret, least noise, n = 50": lambda: least_noise(noisy, one, 8.0),
        "the same prior without measurement noise (1,024 bits)": lambda: least_loss(bare, one, 1.0),
        "SDP_A as in the authors' code, by a conic solver, n = 50": lambda: sdp_a_as_in_code(
            noisy, [24], 1.0
        ),
        "one secret, least noise, n = 1,000": lambda: least_noise(
            long, Secret.at(500.0, recorded=True), 8.0
        ),
        "one place in 1,000 fixes of the default prior": lambda: secret(moving),
        "compound of two, n = 50, proved": lambda: design(noisy, [two], bounds=[8.0]),
        "three secrets, n = 50, proved": lambda: design(noisy, three, bounds=[8.0] * 3),
        "Multiple Secrets (SDP_A, SDP_B), 50 of 50": lambda: multiple_secrets(noisy, every, 1.0),
    }


def main() -> None:
    """Print the table."""
    click.echo("| what | time |\n|---|---|")
    for name, function in rows().items():
        seconds = median(function)
        shown = (
            f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.{2 * (seconds < 0.01)}f} ms"
        )
        click.echo(f"| {name} | {shown} |")


if __name__ == "__main__":
    main()
