"""What the optimum is measured against: independent noise, everywhere or on the secret; a cut."""

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior


def uniform(prior: Prior, trace: float) -> Mechanism:
    """Independent noise of one variance at every point, trace(Gamma) = `trace`."""
    return Mechanism(prior.times, _no_columns(prior), floor=_share(trace, prior.times.size))


def concentrated(prior: Prior, indices: NDArray[np.intp], trace: float) -> Mechanism:
    """Independent noise of one variance on the given fixes alone, trace(Gamma) = `trace`."""
    factor = np.zeros((prior.times.size, indices.size))
    factor[indices, np.arange(indices.size)] = np.sqrt(_share(trace, indices.size))
    return Mechanism(prior.times, factor)


def withhold(prior: Prior, start: float, end: float) -> Mechanism:
    """Nothing released in [start, end] seconds, all else exactly: a privacy zone, accounted for."""
    cut = (prior.times >= start) & (prior.times <= end)
    return no_noise(prior.times).withholding(cut)


def _no_columns(prior: Prior) -> FloatArray:
    return np.empty((prior.times.size, 0))


def _share(trace: float, count: int) -> float:
    if not (np.isfinite(trace) and trace > 0):
        raise InvalidValue(f"the noise budget must be a positive number, got {trace}")
    return trace / count
