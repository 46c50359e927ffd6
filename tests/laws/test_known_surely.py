"""Who surely knows the nearest of a path, and perhaps the rest: against full matrices in mpmath."""

import mpmath
import numpy as np
import pytest

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, Matern32, White
from trailveil.privacy.adversary import Adversary, Known, exposure
from trailveil.privacy.marginals import seen
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

LEVEL, WHITE, ACCURACY, AWAY = 1000.0, 2.0, 10.0, 300.0
SMOOTH = Matern32(80.0, 300.0)
KERNEL = SMOOTH + White(WHITE) + Constant(LEVEL)
TIMES = np.arange(0.0, 1500.0, 60.0)
AT = 720.0
NOISE = 150.0 * np.exp(-(((TIMES[:, None] - np.array([600.0, 800.0])) / 300.0) ** 2))


def variance(known: FloatArray, *, released: bool) -> mpmath.mpf:
    """Var(x(AT) | recorded values at some times, and the release), in fifty digits.

    A value that is known and the fix that is released have one measurement noise.
    """
    times = np.concatenate([[AT], known, TIMES if released else []])
    smooth = SMOOTH(times, times) + LEVEL**2
    fixes = np.arange(times.size) > 0
    white = WHITE**2 * (times[:, None] == times) * np.outer(fixes, fixes)
    noise = np.zeros((times.size, times.size))
    seen_known = np.arange(1, known.size + 1)
    noise[seen_known, seen_known] = ACCURACY**2
    if released:
        noise[known.size + 1 :, known.size + 1 :] = NOISE @ NOISE.T
    with mpmath.workdps(50):
        whole = mpmath.matrix((smooth + white + noise).tolist())
        inside, cross = whole[1:, 1:], whole[0, 1:]
        return whole[0, 0] - (cross * mpmath.lu_solve(inside, cross.T))[0]


def expected(surely: float) -> float:
    away = np.abs(TIMES - AT)
    every, some = TIMES[away >= AWAY], TIMES[(away >= AWAY) & (away <= AWAY + surely)]
    return float(1 / variance(every, released=True) - 1 / variance(some, released=False))


@pytest.mark.parametrize("surely", [0.0, 60.0, 130.0, 5000.0])
def test_the_loss_is_that_of_full_matrices(surely: float) -> None:
    prior, mechanism = Prior(KERNEL, TIMES), Mechanism(TIMES, NOISE)
    who = Adversary.knows_path(AWAY, ACCURACY, surely=surely)
    loss = expected(surely)
    assert exposure(prior, Secret.at(AT), mechanism, who).loss == pytest.approx(loss, rel=1e-6)
    flat = seen(prior, [Secret.at(AT)], mechanism, who).losses[0] - LEVEL**-2
    assert flat == pytest.approx(loss, rel=1e-6)


def test_the_less_is_surely_known_the_more_is_told() -> None:
    told = [expected(surely) for surely in (0.0, 60.0, 130.0, 5000.0)]
    assert told == sorted(told, reverse=True)
    # Seen to matter: otherwise the oracle above could not tell one from another.
    assert told[0] > told[-1] * (1 + 1e-4)


def test_surely_is_seconds_and_of_a_path_alone() -> None:
    with pytest.raises(InvalidValue, match="surely must be seconds of 0 or more, got -1"):
        Adversary.knows_path(surely=-1.0)
    prior, mechanism = Prior(KERNEL, TIMES), Mechanism(TIMES, NOISE)
    both = Adversary("both", path=Known(AWAY, ACCURACY, 0.0)) & Adversary.knows_point(AWAY)
    with pytest.raises(InvalidValue, match="must know the path as a whole"):
        exposure(prior, Secret.at(AT), mechanism, both)
