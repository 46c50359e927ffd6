"""Recordings that come about as a prior has it, and what is released of them, many at a time.

For trying attacks, never for releasing: the numbers are those of a statistical generator.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from trailveil.checks.attacks.riders import ridden
from trailveil.gp.chains import chain
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, noise_variance, split
from trailveil.gp.statespace import is_markov, required_state_space
from trailveil.privacy.mechanism import Mechanism, Process
from trailveil.privacy.prior import Prior, SideInformation
from trailveil.privacy.secrets import Secret
from trailveil.traces.streets.network import Network

# Numbers of a temporary array of normals.
_CHUNK = 2**22
# Relative: eigenvalues of a covariance that are this far below zero are rounding.
_ROUNDING = 1e-9
# Metres a coordinate that fixes on streets are off.
_GPS = 2.5


def fresh() -> np.random.Generator:
    """A generator from the operating system's randomness."""
    return np.random.default_rng()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class World:
    """Recordings drawn from a prior: values (count, n, 2) as recorded, the secret (count, 2)."""

    recorded: FloatArray
    secret: FloatArray


def recordings(judge: Prior, secret: Secret, count: int, generator: np.random.Generator) -> World:
    """Recordings at the times of a prior, with a place of one location that may lie between fixes.

    A level of the prior is left out: attackers know nothing of it, and what they do does not depend
    on it. judge: with its clock stopped where the person stood still.
    """
    times = np.union1d(judge.times, secret.times)
    base, _ = split(judge.kernel)
    white = noise_variance(judge.kernel, judge.times)
    latent = np.zeros((count, times.size, 2))
    for term in () if base is None else base.terms():
        if not term.is_white():
            latent += (
                _drawn(term, times, 2 * count, generator).reshape(2, count, -1).transpose(1, 2, 0)
            )
    rows = np.searchsorted(times, judge.times)
    noise = generator.standard_normal((count, rows.size, 2))
    recorded = latent[:, rows] + np.sqrt(white) * noise
    at = np.searchsorted(times, secret.times)
    if secret.recorded:
        columns = np.searchsorted(judge.times, secret.times)
        return World(recorded, np.einsum("m,cma->ca", secret.weights[0], recorded[:, columns]))
    return World(recorded, np.einsum("m,cma->ca", secret.weights[0], latent[:, at]))


def rides(
    streets: Network,
    times: FloatArray,
    secret: Secret,
    pace: float,
    count: int,
    generator: np.random.Generator,
) -> World:
    """Recordings of people who move on streets, at times (n,); of a stay, they stand still in it.

    pace: metres a second.
    """
    begin, end = secret.window or (float(secret.times.min()), float(secret.times.max()))
    true = ridden(streets, times, pace, (begin, end), count, generator)
    at = np.clip(np.searchsorted(times, (begin + end) / 2), 0, times.size - 1)
    return World(true + _GPS * generator.standard_normal(true.shape), true[:, at])


def released(
    recorded: FloatArray, mechanism: Mechanism, generator: np.random.Generator
) -> FloatArray:
    """Recordings (..., n, 2) with noise of their own each, of the released rows (..., m, 2)."""
    rows = mechanism.rows
    places = recorded[..., rows, :]
    return np.asarray(places + noises(mechanism, places.shape[:-2], generator))


def noises(
    mechanism: Mechanism, shape: tuple[int, ...], generator: np.random.Generator
) -> FloatArray:
    """Draws (*shape, m, 2) of the noise at the released rows."""
    rows = mechanism.rows
    factor = mechanism.factor[rows]
    weights = generator.standard_normal((*shape, 2, factor.shape[1]))
    total = np.swapaxes(weights @ factor.T, -1, -2)
    if mechanism.floor > 0:
        total = total + np.sqrt(mechanism.floor) * generator.standard_normal(total.shape)
    if np.any(mechanism.independent_variances):
        deviations = np.sqrt(mechanism.independent_variances[rows])[:, None]
        total = total + deviations * generator.standard_normal(total.shape)
    if mechanism.process is not None:
        count = 2 * int(np.prod(shape))
        drawn = _drawn(mechanism.process, mechanism.times[rows], count, generator)
        total = total + np.swapaxes(drawn.reshape(*shape, 2, rows.size), -1, -2)
    return np.asarray(total)


def measured(
    recorded: FloatArray, times: FloatArray, known: SideInformation, generator: np.random.Generator
) -> FloatArray:
    """What somebody knows (count, p, 2) of recordings (count, n, 2) at times (n,)."""
    places = recorded[:, np.searchsorted(times, known.times)]
    return np.asarray(places + known.accuracy * generator.standard_normal(places.shape))


def _drawn(
    kernel: Kernel | Process, times: FloatArray, count: int, generator: np.random.Generator
) -> FloatArray:
    """Draws (count, n) of one kernel: O(n) where it is Markov."""
    if not is_markov(kernel, times):
        return _dense(kernel, times, count, generator)
    model = required_state_space(kernel)
    total = np.zeros((count, times.size))
    for part in model.components:
        links, size = chain(part, times), part.term.size
        step = max(1, _CHUNK // (times.size * size))
        for first in range(0, count, step):
            some = total[first : first + step]
            some += links.samples(generator.standard_normal((*some.shape, size)))
    if model.white > 0:
        total += np.sqrt(model.white) * generator.standard_normal(total.shape)
    return total


def _dense(
    kernel: Kernel | Process, times: FloatArray, count: int, generator: np.random.Generator
) -> FloatArray:
    values, vectors = eigh(kernel(times, times))
    values = np.where(values > _ROUNDING * values[-1], values, 0.0)
    normals = generator.standard_normal((count, times.size))
    return np.asarray((normals * np.sqrt(values)) @ vectors.T)
