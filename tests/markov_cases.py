"""What the tests of the O(n) form share: kernels, nasty times, and dense answers."""

import numpy as np
from numpy.typing import ArrayLike

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Scaled,
    StoppedClock,
    Sum,
    Warped,
    White,
)
from trailveil.privacy.markov import MarkovSystem, markov_rows
from trailveil.privacy.mechanism import Process

# One row a Markov kernel; times begin at 0 in all tests. Adding a kernel means adding a row.
SMOOTH: dict[str, Kernel] = {
    "matern12": Matern12(60.0, 300.0),
    "matern32": Matern32(60.0, 300.0),
    "matern52": Matern52(60.0, 300.0),
    "integrated": IntegratedOU(3.0, 60.0),
    "integrated before": IntegratedOU(3.0, 60.0, -500.0),
    "scaled": 2.5 * Matern32(30.0, 3.0),
    "level": Warped(Constant(20.0), StoppedClock(())),
    "stopped": Warped(IntegratedOU(3.0, 60.0), StoppedClock(((40.0, 900.0),))),
    "two clocks": Warped(
        Warped(Matern12(60.0, 300.0), StoppedClock(((100.0, 200.0),))),
        StoppedClock(((20.0, 70.0),)),
    ),
    "sum": Matern52(600.0, 100.0) + Warped(Matern32(20.0, 9.0), StoppedClock(((10.0, 90.0),))),
    "scaled sum": Scaled(Sum((Matern12(60.0, 9.0), IntegratedOU(1.0, 5.0))), 0.3),
}
WITH_NOISE: dict[str, Kernel] = SMOOTH | {
    name + " + white": kernel + White(2.0) for name, kernel in SMOOTH.items()
}


def nasty_times(count: int, seed: int, widest: float = 4.0) -> FloatArray:
    """Times from 0 on, with gaps from 1e-6 to 10^widest seconds, evenly in their logarithm."""
    gaps = 10.0 ** np.random.default_rng(seed).uniform(-6.0, widest, count - 1)
    return np.concatenate([[0.0], np.cumsum(gaps)])


def relative(found: FloatArray, expected: FloatArray) -> float:
    """The largest deviation, relative to the largest entry."""
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def markov_system(
    kernel: Kernel | None,
    times: ArrayLike,
    noise: FloatArray,
    least: float,
    *,
    process: Process | None = None,
    released: ArrayLike | None = None,
) -> MarkovSystem:
    """The System of rows at times (n,) with independent noise of variances (n,), in O(n).

    See `markov_rows` and `MarkovRows.system`: rows that differ in nothing but their independent
    noise are made once.
    """
    return markov_rows(kernel, times, process, released).system(noise, least)
