"""The losses of many fixes at once against those of one at a time, and against full matrices."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rides import ride
from trailveil.errors import InvalidValue
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Matern32, White
from trailveil.privacy import fix_losses as module
from trailveil.privacy.fix_losses import fix_losses, inverse_diagonal
from trailveil.privacy.loss import marginal_losses
from trailveil.privacy.markov import markov_rows
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

MOVING = IntegratedOU(3.0, 60.0) + White(2.0)
KERNELS = {
    "movement": MOVING + Constant(1e5),
    "without a level": MOVING,
    "matern": Matern32(80.0, 300.0) + White(1.0) + Constant(1000.0),
    "two terms": MOVING + Matern32(10.0, 20.0) + Constant(1e5),
    "not Markov": RBF(100.0, 300.0) + White(2.0) + Constant(1e5),
    "two noises": MOVING + White(3.0) + Constant(1e5),
}
TIMES = np.sort(np.random.default_rng(3).uniform(0, 1800, 40))
BOUND = 1e-5


def noise(columns: int, floor: float, withheld: slice = slice(0)) -> Mechanism:
    """Smooth columns of some hundred metres, a floor, and some fixes withheld."""
    random = np.random.default_rng(columns)
    middles, widths = random.uniform(0, 1800, columns), random.uniform(60, 600, columns)
    factor = 400 * np.exp(-(((TIMES[:, None] - middles) / widths) ** 2))
    released = np.ones(TIMES.size, dtype=np.bool_)
    released[withheld] = False
    return Mechanism(TIMES, factor, floor, released=released)


def one_at_a_time(prior: Prior, mechanism: Mechanism, chosen: np.ndarray) -> np.ndarray:
    times = prior.times[chosen]
    secret = Secret("fixes", times, np.eye(times.size))
    # Against nobody's idea of the level: all that is known afterwards.
    return marginal_losses(prior, secret, mechanism) + 1 / prior.variances(secret)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("columns", [0, 1, 4])
@pytest.mark.parametrize("floor", [0.0, 9.0, 1e6])
def test_released_fixes(name: str, columns: int, floor: float) -> None:
    prior, mechanism = Prior(KERNELS[name], TIMES), noise(columns, floor)
    chosen = (TIMES > 300) & (TIMES < 1200)
    found = fix_losses(prior, mechanism, chosen, BOUND)
    expected = one_at_a_time(prior, mechanism, chosen)
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("name", ["movement", "matern"])
def test_withheld_fixes_are_never_understated(name: str, columns: int) -> None:
    prior, mechanism = Prior(KERNELS[name], TIMES), noise(columns, 0.0, slice(10, 25))
    chosen = np.zeros(TIMES.size, dtype=np.bool_)
    chosen[8:27] = True
    found = fix_losses(prior, mechanism, chosen, BOUND)
    expected = one_at_a_time(prior, mechanism, chosen)
    assert np.all(found > expected * (1 - 1e-6))
    assert found == pytest.approx(expected, rel=1e-4)


def test_long_traces() -> None:
    trace = ride(3000, 1.0)
    prior = Prior(KERNELS["movement"], trace.seconds)
    bump = 500 * np.exp(-(((trace.seconds - 1500) / 200) ** 2))
    mechanism = Mechanism(trace.seconds, bump[:, None])
    chosen = np.zeros(3000, dtype=np.bool_)
    chosen[1490:1510] = True
    found = fix_losses(prior, mechanism, chosen, BOUND)
    assert found == pytest.approx(one_at_a_time(prior, mechanism, chosen), rel=1e-7)


def test_noise_alike_everywhere_is_not_lost_beside_the_level() -> None:
    times = np.arange(4000.0)
    prior = Prior(KERNELS["movement"], times)
    mechanism = Mechanism(times, np.full((4000, 1), 316.0))
    found = fix_losses(prior, mechanism, np.ones(4000, dtype=np.bool_), BOUND)
    # The noise is common: what is left of any fix is 316 m beside the level, and up to 2 m more.
    common = 1 / (1 / 316.0**2 + 1 / 1e10)
    assert np.all((1 / found > common) & (1 / found < common + 2.0**2))


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_the_diagonal_of_the_inverse(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    times = np.cumsum(random.uniform(0.1, 100, count))
    variances = random.uniform(0.5, 50, count)
    system = markov_rows(IntegratedOU(3.0, 60.0), times).system(variances, 0.5)
    matrix = IntegratedOU(3.0, 60.0)(times, times) + np.diag(variances)
    expected = np.diagonal(np.linalg.inv(matrix))
    assert inverse_diagonal(system.factor) == pytest.approx(expected, rel=1e-6)


@given(st.floats(1.0, 4.0), st.floats(0.0, 100.0))
def test_more_noise_is_never_less_private(ratio: float, floor: float) -> None:
    prior, mechanism = Prior(KERNELS["movement"], TIMES), noise(2, 1.0)
    chosen = np.ones(TIMES.size, dtype=np.bool_)
    before = fix_losses(prior, mechanism, chosen, BOUND)
    more = replace(mechanism.scaled(ratio), floor=ratio + floor)
    assert np.all(fix_losses(prior, more, chosen, BOUND) <= before * (1 + 1e-9))


def test_noise_with_a_process_is_refused() -> None:
    prior = Prior(KERNELS["movement"], TIMES)
    mechanism = replace(no_noise(TIMES), process=Matern32(10.0, 10.0))
    with pytest.raises(InvalidValue, match="a factor and a floor"):
        fix_losses(prior, mechanism, np.ones(TIMES.size, dtype=np.bool_), BOUND)


def test_a_prior_that_is_noise_alone() -> None:
    prior = Prior(White(2.0) + Constant(100.0), TIMES)
    found = fix_losses(prior, no_noise(TIMES), np.ones(TIMES.size, dtype=np.bool_), BOUND)
    # One level, seen forty times through noise of 2: the place of each fix is the level.
    assert found == pytest.approx(np.full(40, 40 / 4.0 + 1 / 100.0**2), rel=1e-9)


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    prior, mechanism = Prior(KERNELS["movement"], TIMES), noise(3, 4.0, slice(5, 9))
    chosen = np.ones(TIMES.size, dtype=np.bool_)
    quick = fix_losses(prior, mechanism, chosen, BOUND)
    monkeypatch.setattr(module, "is_markov", lambda *_: False)
    assert fix_losses(prior, mechanism, chosen, BOUND) == pytest.approx(quick, rel=1e-6)
