"""Laws of the loss and of the optimum, on drawn series."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trailveil.designer.closed_form import concentrated, least_loss, uniform
from trailveil.gp.kernels import Matern32, White
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

SEEDS = st.integers(0, 10_000)


def drawn(seed: int) -> tuple[Prior, Mechanism, int]:
    generator = np.random.default_rng(seed)
    times = np.cumsum(generator.uniform(0.3, 2.0, 8))
    prior = Prior(Matern32(generator.uniform(0.5, 6.0)) + White(0.2), times)
    return prior, Mechanism(times, generator.normal(size=(8, 2)), floor=0.1), int(seed % 8)


def loss(prior: Prior, mechanism: Mechanism, time: float) -> float:
    return loss_matrix(prior, Secret.at(time, recorded=True), mechanism).largest


@settings(max_examples=40)
@given(SEEDS)
def test_more_noise_or_more_withheld_is_never_less_private(seed: int) -> None:
    prior, mechanism, index = drawn(seed)
    time = float(prior.times[index])
    before = loss(prior, mechanism, time)
    more = mechanism.plus(Mechanism(prior.times, np.full((8, 1), 0.3)))
    assert loss(prior, more, time) <= before * (1 + 1e-9)
    cut = np.arange(8) == (index + 3) % 8
    assert loss(prior, mechanism.withholding(cut), time) <= before * (1 + 1e-9)


@settings(max_examples=40)
@given(SEEDS)
def test_time_shift_and_units_change_nothing(seed: int) -> None:
    prior, mechanism, index = drawn(seed)
    time = float(prior.times[index])
    before = loss(prior, mechanism, time)
    later = Prior(prior.kernel, prior.times + 64.0)
    moved = Mechanism(later.times, mechanism.factor, floor=mechanism.floor)
    assert abs(loss(later, moved, time + 64.0) / before - 1) < 1e-9
    larger = Prior(prior.kernel * 1e6, prior.times)
    scaled = loss(larger, mechanism.scaled(1e6), time)
    assert abs(scaled * 1e6 / before - 1) < 1e-9


@settings(max_examples=40)
@given(SEEDS)
def test_the_optimum_is_never_worse_than_a_baseline(seed: int) -> None:
    prior, mechanism, index = drawn(seed)
    time, trace = float(prior.times[index]), mechanism.noise_trace
    best = loss(prior, least_loss(prior, Secret.at(time, recorded=True), trace), time)
    for other in (mechanism, uniform(prior, trace), concentrated(prior, np.array([index]), trace)):
        assert best <= loss(prior, other, time) * (1 + 1e-9)
