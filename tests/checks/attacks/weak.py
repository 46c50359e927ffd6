"""Releases that are weak against one attack each, and who is attacked in them: made up, in metres.

A person walks east, stays at HOME from 600 s to 1200 s, and walks on north; a fix every 5 s.
"""

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks.contract import Background, Evidence
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.secrets import Secret
from trailveil.release.request import DEFAULT_KERNEL

HOME = np.array([1200.0, -340.0])
TIMES = np.arange(0.0, 1801.0, 5.0)
STAY = (600.0, 1200.0)
INSIDE = (STAY[0] <= TIMES) & (STAY[1] >= TIMES)
SECRET = Secret.mean(TIMES[INSIDE])
DRAWS = 40


def recorded(times: FloatArray = TIMES) -> FloatArray:
    """The true path (n, 2): there at 1.5 m/s, away at 1.5 m/s."""
    before, after = np.minimum(times - STAY[0], 0.0), np.maximum(times - STAY[1], 0.0)
    return np.asarray(HOME + 1.5 * np.stack([before, after], axis=1))


def white(std: float) -> Mechanism:
    """Independent noise of one size on every fix."""
    return Mechanism(TIMES, np.empty((TIMES.size, 0)), floor=std**2)


def nothing_of(hidden: NDArray[np.bool_]) -> Mechanism:
    """No noise, but fixes that are withheld."""
    return Mechanism(TIMES, np.empty((TIMES.size, 0))).withholding(hidden)


def view(noise: FloatArray, mechanism: Mechanism) -> Evidence:
    """Draws of a release, with noise (draws, n, 2)."""
    places = recorded() + noise
    return Evidence(TIMES[mechanism.rows], places[:, mechanism.rows])


def knowledge(mechanism: Mechanism | None) -> Background:
    """Somebody who seeks the stay."""
    return Background((SECRET,), DEFAULT_KERNEL, mechanism)
