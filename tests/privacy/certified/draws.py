"""Random cases of which a certificate and double precision must agree."""

from dataclasses import replace

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)
from trailveil.privacy.adversary import PLAIN, Adversary, exposures
from trailveil.privacy.guarantee import tight_bound
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

Case = tuple[Prior, Secret, Mechanism, Adversary]


def case(seed: int) -> Case:
    """A prior, a secret, a mechanism and an adversary. Times are of order 1 to 1,000."""
    random = np.random.default_rng(seed)
    count = int(random.integers(4, 16))
    even = random.random() < 0.5
    gaps = np.ones(count) if even else 10.0 ** random.uniform(-2.0, 1.5, count)
    times = np.cumsum(gaps * 10.0 ** random.uniform(0.0, 1.5))
    kernel = _kernel(random, float(np.mean(np.diff(times))))
    prior = Prior(kernel, times)
    mechanism = _mechanism(random, prior)
    return prior, _secret(random, times), mechanism, _adversary(random, times, kernel)


def claimed(prior: Prior, secret: Secret, mechanism: Mechanism, adversary: Adversary) -> float:
    """mu^2 / r^2 as double precision says it, the worst of all that may be known."""
    exposed = exposures(prior, secret, mechanism, adversary)
    return max(tight_bound([exposure.learnt], 1.0) for exposure in exposed)


def _kernel(random: np.random.Generator, step: float) -> Kernel:
    # RBF at large length scales among them: up to 30 steps.
    length = step * 10.0 ** random.uniform(-0.3, 1.5)
    std = 10.0 ** random.uniform(-1.0, 3.0)
    kinds: list[Kernel] = [
        RBF(length, std),
        RBF(length, std),
        Periodic(float(10.0 ** random.uniform(-0.5, 0.5)), 3.3 * length, std),
        Matern12(length, std),
        Matern32(length, std),
        Matern52(length, std),
        Matern32(length, std) + IntegratedOU(3.0, length),
        Matern32(length, std) * RBF(2 * length, 1.0),
        IntegratedOU(3.0, length) + Constant(1e5),
    ]
    kernel = kinds[int(random.integers(len(kinds)))]
    if random.random() < 0.3:
        kernel = kernel + Constant(float(10.0 ** random.uniform(0.0, 5.0)))
    if random.random() < 0.7:
        kernel = kernel + White(std * float(10.0 ** random.uniform(-4.0, 0.0)))
    return kernel


def _mechanism(random: np.random.Generator, prior: Prior) -> Mechanism:
    times, kernel = prior.times, prior.kernel
    scale = np.sqrt(float(np.max(kernel.diagonal(times)))) * 10.0 ** random.uniform(-2.0, 1.0)
    scale = min(scale, 1e4)
    rank = int(random.integers(0, 4))
    factor = scale * random.standard_normal((times.size, rank))
    if random.random() < 0.3:  # smooth columns, as designs have them
        factor = np.cumsum(factor, axis=0) / np.sqrt(times.size)
    floor = float(scale**2) if random.random() < 0.4 else 0.0
    process = Matern32(float(np.ptp(times)) / 4 + 1.0, scale) if random.random() < 0.3 else None
    mechanism = Mechanism(times, factor, floor, process)
    if random.random() < 0.3:
        silent = random.random(times.size) < 0.3
        silent[0] = False
        mechanism = mechanism.withholding(silent)
    if random.random() < 0.05:
        mechanism = replace(
            mechanism, factor=np.empty((times.size, 0)), floor=0.0, process=0.7 * kernel
        )
    return mechanism


def _secret(random: np.random.Generator, times: FloatArray) -> Secret:
    chosen = np.sort(random.choice(times, 3, replace=False))
    between = float(random.uniform(times[0], times[-1]))
    recorded = bool(random.random() < 0.5)
    kinds = [
        Secret.at(chosen[0], recorded=recorded),
        Secret.at(between),
        Secret.at(chosen[:2], recorded=recorded),
        Secret.at(chosen, recorded=recorded),
        Secret.mean(chosen, recorded=recorded),
        Secret.difference(chosen[0], chosen[2], recorded=recorded),
        Secret.stay(chosen[0], chosen[1]),
    ]
    return kinds[int(random.integers(len(kinds)))]


def _adversary(random: np.random.Generator, times: FloatArray, kernel: Kernel) -> Adversary:
    away = float(np.ptp(times)) * float(random.uniform(0.02, 0.4))
    accuracy = float(10.0 ** random.uniform(-1.0, 1.5))
    kinds = [
        PLAIN,
        PLAIN & Adversary.knows_point(away, accuracy),
        PLAIN & Adversary.knows_point(away, accuracy),
        PLAIN & Adversary.knows_path(away, accuracy),
        Adversary.believes("scaled", 4.0 * kernel),
    ]
    adversary = kinds[int(random.integers(len(kinds)))]
    if random.random() < 0.2:
        adversary = adversary & Adversary.sees_stillness([(float(times[1]), float(times[2]))])
    return adversary
