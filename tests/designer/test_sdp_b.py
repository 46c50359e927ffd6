"""SDP_B: feasible to rounding, with a gap that is a proof, and equal to the conic solver."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import svd

from tests.oracles.conic import sdp_b_conic
from trailveil.designer import sdp_b as module
from trailveil.designer.columns import symmetric_root
from trailveil.designer.sdp_b import FEASIBILITY, LARGEST_GAP, Cover, cover, cover_mechanisms, sdp_b
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF
from trailveil.privacy.mechanism import Mechanism


def factors(seed: int, size: int, count: int) -> list[FloatArray]:
    """Noises of any rank, some of them far stronger than others."""
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal((size, rng.integers(1, size + 1))) * rng.lognormal()
        for _ in range(count)
    ]


def shortfall(covariance: FloatArray, given: Sequence[FloatArray]) -> float:
    """How far Y falls below any of the noises, relative to its largest eigenvalue."""
    lowest = min(np.linalg.eigvalsh(covariance - root @ root.T)[0] for root in given)
    return max(0.0, -float(lowest)) / float(np.linalg.norm(covariance, 2))


PROBLEM = (st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 6))


@given(*PROBLEM)
def test_covers_all_at_no_more_than_the_sum(seed: int, size: int, count: int) -> None:
    parts = factors(seed, size, count)
    covering = cover(parts)
    traces = [float(np.sum(part**2)) for part in parts]
    assert shortfall(covering.covariance, parts) <= FEASIBILITY
    assert 0 <= covering.gap <= LARGEST_GAP
    assert covering.least_trace <= covering.trace * (1 + 1e-13)
    assert max(traces) * (1 - 1e-12) <= covering.trace <= sum(traces) * (1 + 1e-12)
    np.testing.assert_allclose(covering.covariance, covering.factor @ covering.factor.T)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 4))
def test_covers_exactly_where_asked(seed: int, size: int, count: int) -> None:
    parts = factors(seed, size, count)
    covering = cover(parts, exactly=True)
    assert covering.coefficients is not None
    # C C^T at least each block identity, in 60 digits: then Y covers, however G was rounded.
    with mpmath.workdps(60):
        inverse = np.array((mpmath.matrix(covering.coefficients.tolist()) ** -1).tolist(), float)
    start = 0
    for part in parts:
        block = inverse[:, start : start + part.shape[1]]
        assert np.linalg.norm(block, 2) <= 1
        start += part.shape[1]
    columns = np.concatenate(parts, axis=1)
    scale = float(np.abs(columns).max()) * float(np.abs(covering.coefficients).max())
    np.testing.assert_allclose(columns @ covering.coefficients, covering.factor, atol=1e-12 * scale)
    assert covering.trace <= cover(parts).trace * (1 + LARGEST_GAP)


@pytest.mark.slow
@settings(max_examples=25)
@given(*PROBLEM)
def test_agrees_with_the_conic_solver(seed: int, size: int, count: int) -> None:
    covariances = [part @ part.T for part in factors(seed, size, count)]
    cover = sdp_b(covariances)
    conic = sdp_b_conic(covariances)
    assert cover.trace == pytest.approx(np.trace(conic), rel=1e-5)
    # The optimum is unique, and strongly so only to the square root of the accuracy.
    assert np.abs(cover.covariance - conic).max() < 3e-3 * np.trace(conic)


@given(st.integers(0, 1000), st.integers(1, 5))
def test_is_known_where_noises_commute(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    variances = rng.exponential(size=(count, 4)) * (rng.random((count, 4)) < 0.7)
    variances[0] += 0.1
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    cover = sdp_b([(basis * row) @ basis.T for row in variances])
    largest = (basis * variances.max(axis=0)) @ basis.T
    assert cover.trace == pytest.approx(np.trace(largest), rel=1e-6)
    np.testing.assert_allclose(cover.covariance, largest, atol=2e-3 * np.trace(largest))


def test_one_noise_covers_itself_and_orthogonal_ones_add_up() -> None:
    part = np.random.default_rng(0).standard_normal((5, 2))
    np.testing.assert_allclose(cover([part]).covariance, part @ part.T, atol=1e-14)
    apart = [np.eye(4)[:, :1], 2 * np.eye(4)[:, 2:]]
    np.testing.assert_allclose(cover(apart).covariance, np.diag([1.0, 0, 4, 4]), atol=1e-14)


def test_the_cover_is_written_the_same_way_by_another_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = factors(3, 6, 2)
    thin = [part[:, :2] for part in parts]
    before = [cover(parts).factor, cover(thin).factor, cover(thin, exactly=True).factor]

    def flipped(matrix: FloatArray, **options: Any) -> Any:
        factors: Any = svd(matrix, **options)
        if not options.get("compute_uv", True):
            return factors
        signs = np.where(np.arange(len(factors[1])) % 2 == 0, 1.0, -1.0)
        right = factors[2].copy()
        right[: len(signs)] *= signs[:, None]
        return factors[0] * signs, factors[1], right

    monkeypatch.setattr(module, "svd", flipped)
    after = [cover(parts).factor, cover(thin).factor, cover(thin, exactly=True).factor]
    for first, other in zip(before, after, strict=True):
        np.testing.assert_allclose(first, other, atol=1e-6)


def test_mechanisms_keep_floors_and_digits() -> None:
    times = np.arange(5.0)
    given_one = Mechanism(times, np.ones((5, 1)), floor=0.25)
    other = Mechanism(times, np.eye(5)[:, :2])
    noise, covering = cover_mechanisms([given_one, other])
    assert noise.noise_trace == pytest.approx(covering.trace, rel=1e-12)
    assert noise.floor > 0.2  # independent noise is kept apart, where it can be seen
    np.testing.assert_allclose(noise.covariance(), covering.covariance, atol=1e-12)
    for part in (given_one, other):
        assert shortfall(noise.covariance(), [symmetric_root(part.covariance())]) <= 1e-12
    finer = Mechanism(times, np.eye(5)[:, :1], refinement=np.full((1, 5, 1), 1e-20))
    exactly, proof = cover_mechanisms([given_one, finer], trace=20.0)
    assert exactly.refinement is not None
    assert proof.coefficients is not None
    assert exactly.noise_trace == pytest.approx(20.0, rel=1e-12)


def test_what_is_not_proved_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = factors(1, 6, 5)
    monkeypatch.setattr(module, "_STEPS", 1)
    with pytest.raises(NumericalError, match="must be within 1e-05 of the least trace"):
        cover(parts)
    wasteful = Cover(np.eye(2), None, least_trace=2.0, total=1.9)
    with pytest.raises(NumericalError, match="at most the sum"):
        wasteful.check()
    with pytest.raises(NumericalError, match="must cover that for each"):
        module._check_covers(np.eye(2), [np.array([[1.1], [0.0]])])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "one or more"),
        ([np.eye(2), np.eye(3)], "of one size"),
        ([np.zeros((2, 2))], "not all zero"),
        ([np.array([[1.0, 0.5], [0.0, 1.0]])], "symmetric"),
        ([np.diag([1.0, -1.0])], "positive semidefinite"),
        ([np.diag([1.0, np.nan])], "finite"),
    ],
)
def test_bad_input_is_refused(bad: list[FloatArray], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        sdp_b(bad)


def test_a_process_is_refused() -> None:
    moving = Mechanism(np.arange(3.0), np.zeros((3, 0)), process=RBF(1.0))
    with pytest.raises(InvalidValue, match="process"):
        cover_mechanisms([moving])


TIMED = """
import time
import numpy as np
from trailveil.designer.paper import multiple_secrets
from trailveil.gp.kernels import RBF
from trailveil.privacy.prior import Prior
prior = Prior(RBF({scale}), np.arange({count}.0))
start = time.process_time()
found = multiple_secrets(prior, [[i] for i in range({count})], 1.0)
print(time.process_time() - start, found.cover.gap)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seconds"), [(50, 0.5), (200, 30.0)])
def test_multiple_secrets_is_fast(count: int, seconds: float) -> None:
    # On one thread and in processor time: what other processes do to the clock does not count.
    script = TIMED.format(scale=6.1, count=count)
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": ""}
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    spent, gap = map(float, said.stdout.split())
    assert spent < seconds
    assert gap < 1e-6
