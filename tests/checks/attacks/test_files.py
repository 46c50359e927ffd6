"""A file whose noise is not that of its design is told from one whose noise is."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.checks.attacks.designs import bumps
from trailveil.checks.attacks.files import LEVEL, Drawn, drawn
from trailveil.checks.attacks.worlds import noises
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Matern32
from trailveil.privacy.mechanism import Mechanism

TIMES = np.arange(0.0, 3601.0, 30.0)
RECORDED = np.cumsum(np.random.default_rng(1).standard_normal((TIMES.size, 2)) * 40, axis=0)
SMOOTH = Mechanism(TIMES, bumps(TIMES, 1800.0).factor)
KINDS = {
    "smooth": SMOOTH,
    "and withheld": SMOOTH.withholding(np.abs(TIMES - 1800) < 200),
    "with a floor": bumps(TIMES, 1800.0),
    "everywhere": Mechanism(TIMES, np.empty((TIMES.size, 0)), process=Matern32(120.0, 900.0)),
}


def released(mechanism: Mechanism, seed: int, scale: float = 1.0) -> FloatArray:
    """A draw on the grid: a place is moved by less than half of 0.111 m."""
    noise = scale * noises(mechanism, (), np.random.default_rng(seed))
    return np.asarray(np.round((RECORDED[mechanism.rows] + noise) / 0.111) * 0.111)


def judged(mechanism: Mechanism, places: FloatArray) -> Drawn:
    return drawn(0, mechanism, RECORDED, places)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_of_the_design_passes(kind: str) -> None:
    """250 draws: one in 10,000 may be an alarm, 2 % for one here; the seeds are fixed.

    Of their chances up to 50 are below 0.2.
    """
    draws = [judged(KINDS[kind], released(KINDS[kind], seed)) for seed in range(250)]
    assert LEVEL == 1e-4
    assert all(drawn.as_designed for drawn in draws)
    assert 12 <= sum(drawn.chance < 0.2 for drawn in draws) <= 77  # over 4 sigma either way


def independent(places: FloatArray) -> FloatArray:
    return RECORDED + 15 * np.random.default_rng(2).standard_normal(RECORDED.shape)


def true_but_three(places: FloatArray) -> FloatArray:
    return np.where((np.abs(np.arange(len(places)) - 60) <= 1)[:, None], places, RECORDED)


def one_put_back(places: FloatArray) -> FloatArray:
    """Where the noise is largest."""
    off = np.abs(places - RECORDED).max(axis=1)
    return np.where((off == off.max())[:, None], RECORDED, places)


BROKEN: dict[str, Callable[[FloatArray], FloatArray]] = {
    "the original": lambda _: RECORDED,
    "independent noise": independent,
    "true places put back": true_but_three,
    "one place put back": one_put_back,
    "moved north": lambda p: p + np.array([0.0, 30.0]),
    "noise of a twentieth": lambda p: RECORDED + 0.05 * (p - RECORDED),
    "noise of forty times": lambda p: RECORDED + 40 * (p - RECORDED),
    "one dimension unprotected": lambda p: np.stack([p[:, 0], RECORDED[:, 1]], axis=1),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("kind", ["smooth", "everywhere"])
def test_other_noise_is_told(kind: str, how: str) -> None:
    part_exposures = judged(KINDS[kind], BROKEN[how](released(KINDS[kind], 3)))
    # 30 m more are nothing beside 900 m of noise everywhere: that is a draw of it.
    assert part_exposures.as_designed == ((kind, how) == ("everywhere", "moved north"))
