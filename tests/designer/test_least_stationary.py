"""The lower bound of noise for every place: below all that holds, and near the least that does."""

import numpy as np
import pytest

from tests.conftest import Sweep
from trailveil.designer.everywhere import noise_everywhere
from trailveil.designer.least_stationary import least_variance
from trailveil.gp.kernels import Kernel, Matern12, Matern32, Scaled, Sum
from trailveil.privacy.anytime import Assumed, PriorMovement, worst

PERSON = PriorMovement(3.0, 60.0, 4.0, 1e10)
SPEEDS = (0.1, 0.3, 1.0, 3.0, 10.0)
# 100 m and 200 m at epsilon 1, order 5.
BOUNDS = {100: 4e-5, 200: 1e-5}


def variance(kernel: Kernel) -> float:
    return float(kernel.diagonal([0.0])[0])


# Speeds, longest stay, radius; and how near it comes at least.
NEAR = [
    ((3.0,), 0.0, 100, 1.07),
    ((1.0, 3.0, 10.0), 0.0, 100, 1.02),
    (SPEEDS, 0.0, 100, 1.01),
    (SPEEDS, 28_800.0, 100, 1.08),
    (SPEEDS, 28_800.0, 200, 1.05),
    ((1.0, 3.0, 10.0), 1800.0, 200, 1.03),
]


def test_what_is_found_is_near_what_no_noise_is_below(sweep: Sweep) -> None:
    """Figures of docs/guarantees.md, as root mean squares."""
    for speeds, stay, radius, gap in sweep(NEAR, short=4):
        assumed, bound = Assumed(speeds, stay), BOUNDS[radius]
        kernel = noise_everywhere(PERSON, assumed, bound).kernel
        least = least_variance(PERSON, assumed, bound, kernel)
        assert 1.0 < np.sqrt(variance(kernel) / least) < gap, (speeds, stay, radius)


def test_of_one_stranger_who_moves_it_is_a_closed_form() -> None:
    """Against the prior alone, noise that hardly changes is as good as any can be."""
    bound, assumed = 1e-4, Assumed((3.0,), know=False)
    kernel = noise_everywhere(PERSON, assumed, bound).kernel
    # Movement is without bound at frequency 0: noise that is all there is never told from it, and
    # what is left, the integral of X S / (X + S), is all of S. Its least is 1 / bound.
    least = least_variance(PERSON, assumed, bound, kernel)
    assert least == pytest.approx(1 / bound, rel=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_any_noise_that_holds_is_above_it(seed: int) -> None:
    """Of other families than the designer's, scaled until the worst loss is the bound."""
    rng, assumed, bound = np.random.default_rng(seed), Assumed((1.0, 3.0), 3600.0), 4e-5
    terms = [Matern32(float(t)) for t in 60 * 4 ** rng.uniform(0, 4, 4)] + [Matern12(90.0)]
    shares = rng.uniform(0.2, 1.0, 5)
    low, high = 1e5, 1e7
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        losses = worst(PERSON, assumed, terms, middle * shares)
        low, high = (
            (low, middle) if max(w.exposure.loss for w in losses) <= bound else (middle, high)
        )
    parts = [Scaled(term, high * share) for term, share in zip(terms, shares, strict=True)]
    near = noise_everywhere(PERSON, assumed, bound).kernel
    assert variance(Sum(tuple(parts))) > least_variance(PERSON, assumed, bound, near)


def test_the_sum_over_frequencies_is_fine_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    from trailveil.designer import least_stationary

    assumed, bound = Assumed(SPEEDS, 28_800.0), BOUNDS[100]
    kernel = noise_everywhere(PERSON, assumed, bound).kernel
    least = least_variance(PERSON, assumed, bound, kernel)
    monkeypatch.setattr(least_stationary, "_POINTS", 4_000)
    monkeypatch.setattr(least_stationary, "_DECADES", (-8.5, 2.0))
    finer = least_variance(PERSON, assumed, bound, kernel)
    assert finer == pytest.approx(least, rel=2e-3)
