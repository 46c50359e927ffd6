"""What is told of a window in which all movement is known: as exact conditioning has it."""

import math

import numpy as np
import pytest

from tests.oracles.dense_movement import Law, Motion, variance_of
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.movement import Movement
from trailveil.privacy.window_loss import window_loss

PACE = Movement(0.92, 60.0)
NOTHING = np.empty(0), np.empty((0, 0)), np.empty(0)


def conditioned(
    window: tuple[float, float], times: FloatArray, factor: FloatArray, known: tuple[float, float]
) -> float:
    """The precision of the window's place, by orthogonal projection (tests.oracles)."""
    ends = [time for time in known if math.isfinite(time)]
    edges = [0.0, *window]
    law = Law(math.inf, PACE.speed, PACE.time_constant)
    motion = Motion([*times.tolist(), *ends, *edges], [law], PACE.speed)

    def wide(rows: FloatArray, noise: FloatArray | None = None) -> FloatArray:
        none = np.zeros((rows.shape[0], factor.shape[1]))
        return np.hstack([rows, none if noise is None else noise])

    inside = [t for t in motion.index if window[0] <= t <= window[1]]
    moved = motion.position(*inside) - motion.position(0.0)
    granted = [wide(moved[np.any(moved != 0, axis=1)]), wide(motion.velocity(*window))]
    told = [wide(motion.position(*times), factor), wide(motion.position(*ends))]
    rows = np.vstack([*granted, wide(motion.velocity(*ends)), *told])
    levels = np.zeros(len(rows))
    levels[len(rows) - times.size - len(ends) :] = 1.0
    secret = wide(motion.position(0.0))[0]
    return 1 / variance_of(secret, 1.0, rows, levels)


@pytest.mark.parametrize("seconds", [1.0, 30.0, 700.0, 1e5])
def test_with_nothing_but_ends_it_is_a_bridge_on_each_side(seconds: float) -> None:
    for known, sides in (
        ((-60.0 - seconds, math.inf), 1),
        ((-math.inf, 80.0 + seconds), 1),
        ((-60.0 - seconds, 80.0 + seconds), 2),
    ):
        loss = window_loss(PACE, (-60.0, 80.0), *NOTHING, known)
        assert loss == pytest.approx(sides / PACE.bridged(seconds), rel=2e-6)


def test_where_all_is_known_within_the_window_nothing_is_left() -> None:
    assert window_loss(PACE, (-60.0, 60.0), *NOTHING, (-60.0, math.inf)) == math.inf
    assert window_loss(PACE, (-60.0, 60.0), *NOTHING) == 0.0


@pytest.mark.parametrize("seed", range(12))
def test_what_is_released_tells_what_conditioning_says(seed: int) -> None:
    """Rows within the window and on both sides, smooth noise and independent, ends or none."""
    random = np.random.default_rng(seed)
    times = np.unique(np.round(random.uniform(-900.0, 1500.0, 40), 3))
    window = (-300.0, 420.0) if seed % 2 else (-60.0, 60.0)
    middles, widths = random.uniform(-500, 900, 4), random.uniform(100, 600, 4)
    smooth = 200 * np.exp(-(((times[:, None] - middles) / widths) ** 2))
    alone = random.uniform(2.0, 5.0, times.size)
    factor = np.hstack([smooth, np.diag(alone)])
    ends = [(-math.inf, math.inf), (-950.0, math.inf), (-math.inf, 1600.0), (-1000.0, 2000.0)]
    known = ends[seed % 4]
    loss = window_loss(PACE, window, times, smooth, alone**2, known)
    truth = conditioned(window, times, factor, known)
    assert truth <= loss <= truth * (1 + 1e-5)
