"""Lattice reduction and rounding: right on small cases, and the noise of a grid is recovered."""

import numpy as np
import pytest

from tests.checks.attacks.designs import bumps
from trailveil.checks.attacks.lattice import nearest, reduced, solver
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Matern32, White
from trailveil.privacy.prior import Prior

TIMES = np.arange(0.0, 3600.0, 10.0)


def triangle(size: int, seed: int) -> FloatArray:
    """A skew basis: diagonals from 1 down to 0.05, and larger numbers above them."""
    random = np.random.default_rng(seed)
    above = np.triu(random.uniform(-3, 3, (size, size)), 1)
    return np.asarray(above + np.diag(np.geomspace(1.0, 0.05, size)))


@pytest.mark.parametrize("size", [2, 5, 12])
def test_a_reduced_basis_is_of_the_same_lattice_and_short(size: int) -> None:
    whole = triangle(size, size)
    basis, turned = reduced(whole)
    assert abs(round(float(np.linalg.det(turned.astype(float))))) == 1
    gram = (whole @ turned).T @ (whole @ turned)
    assert basis.T @ basis == pytest.approx(gram, abs=1e-7 * float(np.abs(gram).max()))
    diagonal = np.abs(np.diag(basis))
    assert np.all(np.abs(np.triu(basis, 1)) <= (0.5 + 1e-9) * diagonal[:, None])
    ahead = np.diag(basis)[1:] ** 2 + np.diag(basis, 1) ** 2
    assert np.all(ahead >= 0.99 * diagonal[:-1] ** 2 * (1 - 1e-9))


def test_the_nearest_point_is_found_in_a_reduced_basis() -> None:
    """A point that is nearer than half of the least diagonal is found for certain (Babai)."""
    basis, _ = reduced(triangle(8, 3))
    random = np.random.default_rng(4)
    for _ in range(50):
        whole = random.integers(-20, 20, 8)
        off = random.standard_normal(8)
        off *= 0.49 * np.abs(np.diag(basis)).min() / np.linalg.norm(off)
        assert nearest(basis, basis @ whole + off).tolist() == whole.tolist()


@pytest.mark.parametrize("step", [0.1, 0.01])
def test_readings_to_tenths_and_hundredths_are_recovered_and_not_beside_independent_noise(
    step: float,
) -> None:
    """Room temperature for an hour, bumps of 3 degC, rank 5: 360 of 360 values exactly."""
    random = np.random.default_rng(7)
    kernel = Matern32(1800.0, 2.0) + White(0.05)
    prior = Prior(kernel, TIMES)
    root = np.linalg.cholesky(prior.covariance)
    factor = bumps(TIMES, 1800.0).factor / 100
    true = 20 + np.round(root @ random.standard_normal(TIMES.size) / step) * step
    rows = np.unique(np.linspace(0, TIMES.size - 1, 60).astype(np.intp))
    movement = Prior(kernel, TIMES[rows]).covariance
    noise = factor @ random.standard_normal(factor.shape[1])
    assert np.std(noise) > 20 * step
    steps = np.full(TIMES.size, step)
    recovered, off = solver(factor, movement, steps, 1e-6, rows).recovered(true + noise)
    assert off < 0.05
    assert np.round((true + noise - recovered) / step) == pytest.approx(np.round(true / step))
    white = max(step, 0.05)
    more = noise + white * random.standard_normal(TIMES.size)
    recovered, off = solver(factor, movement, steps, white, rows).recovered(true + more)
    assert off > 0.2
    assert np.mean(np.round((true + more - recovered) / step) == np.round(true / step)) < 0.5
