"""The law of a series given its secret: both precisions, secrets of several values, many fixes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.densities import (
    divergence,
)
from tests.studies.test_misspecification import (
    PAIRS,
    SECRETS,
    both,
    given_secret,
    law_of,
    mechanism,
    released,
)
from trailveil.gp.kernels import Constant, Matern12, White
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.secrets import Secret
from trailveil.studies.conditional import Pair, apart, extended_apart, without_noise
from trailveil.studies.misspecification import divergences

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(0, 2), st.integers(0, 3), st.floats(1.05, 12.0))
@settings(max_examples=15)
def test_double_and_extended_precision_agree(
    seed: int, which: int, kind: int, order: float
) -> None:
    common = White(0.3) + Constant(1e3)
    priors = both(PAIRS[which][0] + common, PAIRS[which][2] + common)
    secret, noise = SECRETS[kind][0], mechanism(seed)
    pair = Pair(*priors, secret, noise if seed % 2 else without_noise(noise))
    pairs = apart(pair, order)
    if pairs is None:  # a difference leaves the level open: only more digits will do
        assert kind == 3
        return
    for rough, fine in zip(pairs, extended_apart(pair, order), strict=True):
        if not np.isfinite(fine.constant):
            assert rough.constant == fine.constant
            continue
        # From above, by no more than it says; that much is little.
        loose, wide = rough.hidden
        assert fine.constant <= rough.constant <= fine.constant + 2 * loose
        extra = np.linalg.eigvalsh(rough.quadratic - fine.quadratic)
        assert -1e-15 * wide <= extra[0] <= extra[-1] <= 2 * wide
        assert loose <= 1e-5 * (1 + fine.constant)
        assert wide <= 1e-4 * (1e-3 + float(np.abs(fine.quadratic).max()))


def test_a_mean_of_recorded_values_determines_one_of_them() -> None:
    """Whichever is left out: the rest and the mean say the same. Where one is withheld, none is."""
    kernel, true, other, other_true = PAIRS[0]
    priors = both(kernel + White(0.3), other + White(0.3))
    secret = Secret.mean([0.0, 1.0, 4.0], recorded=True)
    noise = mechanism(1)
    distance = divergences(*priors, secret, noise, 3.0, confinement=1.0)
    for rows in ([1, 2, 3], [0, 1, 2]):
        compared = released(noise, rows, "values")
        p, r = (law_of(prior, compared, secret) for prior in (true, other_true))
        exact = divergence(given_secret(p, 1.0), given_secret(r, 1.0), 3.0)
        assert distance.believed_first == pytest.approx(float(exact), rel=1e-6)
    partly = noise.withholding(np.array([True, False, False, False]))
    distance = divergences(*priors, secret, partly, 3.0, confinement=1.0)
    compared = released(noise, [1, 2, 3], "values")
    p, r = (law_of(prior, compared, secret) for prior in (true, other_true))
    exact = divergence(given_secret(p, 1.0), given_secret(r, 1.0), 3.0)
    assert distance.believed_first == pytest.approx(float(exact), rel=1e-6)


def test_many_fixes_are_compared_in_double_precision() -> None:
    times = np.arange(0.0, 1750.0, 5.0)
    kernel, other = (Matern12(100.0, std) + White(2.0) for std in (50.0, 50.5))
    priors = both(kernel, other, times)
    noise = Mechanism(times, np.zeros((350, 0)), 100.0)
    distance = divergences(*priors, Secret.at(900.0), noise, 3.0, confinement=100.0)
    assert 0 < distance.truth_first < float("inf")
