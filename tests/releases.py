"""What the tests of composition share: releases, secrets, their joint covariance written out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.densities import (
    Covariance,
    kernel_exponential,
    kernel_periodic,
    kernel_rbf,
    mp,
)
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    RBF,
    Kernel,
    Matern12,
    Periodic,
)
from trailveil.privacy.composition import Release
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.secrets import Secret

TIMES = np.array([0.0, 1.0, 2.5, 4.0])
# A kernel of the package beside its formula, written again.
KERNELS: list[tuple[Kernel, Covariance]] = [
    (Matern12(3.0, 2.0), kernel_exponential(3.0, 2.0)),
    (RBF(2.0, 1.5), kernel_rbf(2.0, 1.5)),
    (Periodic(0.8, 7.0), kernel_periodic(0.8, 7.0)),
]


def whole(
    true: Covariance, noise: float, releases: Sequence[Release], secret: Secret, floor: Any = 0
) -> Any:
    """The joint covariance of all released values and a secret, by its definition.

    floor: more independent noise on every value, beside the mechanisms'.
    """
    rows = [(release, i) for release in releases for i in release.mechanism.rows]
    place = {
        id(release): {i: k for k, i in enumerate(release.mechanism.rows)} for release in releases
    }
    size, k = len(rows), secret.size
    found = mp.zeros(size + k)
    meant = releases[0].recording

    def at(release: Release, i: int) -> Any:
        return mp.mpf(release.mechanism.times[i])

    def recorded(s: Any, u: Any, same: bool) -> Any:
        return true(s, u) + (mp.mpf(noise) ** 2 if same and s == u else 0)

    for a, (one, i) in enumerate(rows):
        for b, (two, j) in enumerate(rows):
            found[a, b] = recorded(at(one, i), at(two, j), one.recording == two.recording)
            if one is two:
                gamma = one.mechanism.covariance()
                found[a, b] += mp.mpf(gamma[place[id(one)][i], place[id(one)][j]])
        found[a, a] += floor
        for c in range(k):
            told = sum(
                mp.mpf(weight)
                * recorded(at(one, i), mp.mpf(u), secret.recorded and one.recording == meant)
                for weight, u in zip(secret.weights[c], secret.times, strict=True)
            )
            found[a, size + c] = found[size + c, a] = told
    for c in range(k):
        for d in range(k):
            found[size + c, size + d] = sum(
                mp.mpf(v * w) * recorded(mp.mpf(s), mp.mpf(u), secret.recorded)
                for v, s in zip(secret.weights[c], secret.times, strict=True)
                for w, u in zip(secret.weights[d], secret.times, strict=True)
            )
    return found


def secrets_at(times: FloatArray) -> list[Secret]:
    first, last = float(times[0]), float(times[-1])
    return [
        Secret.at(first),
        Secret.at(last, recorded=True),
        Secret.at([first, last]),
        Secret.difference(first, last, recorded=True),
        Secret.mean([first + 0.3, last]),
    ]


def mechanism(seed: int, *, rank: int | None = None, floor: float | None = None) -> Mechanism:
    """Noise of a few kinds; some rows withheld, never the first or the last."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(TIMES.size, int(rng.integers(0, 3)) if rank is None else rank))
    released = np.array([True, rng.random() < 0.7, rng.random() < 0.7, True])
    return Mechanism(
        TIMES, factor, rng.uniform(0.1, 2.0) if floor is None else floor, released=released
    )


def agree(found: FloatArray, expected: FloatArray, tolerance: float = 1e-7) -> bool:
    return bool(np.all(np.abs(found - expected) <= tolerance * np.max(np.abs(expected))))
