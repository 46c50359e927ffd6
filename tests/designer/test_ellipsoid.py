"""The smallest ellipsoid against a conic solver, and what its multipliers prove."""

from collections.abc import Sequence
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from scipy.linalg import block_diag

from trailveil.designer.ellipsoid import Limit, smallest_ellipsoid
from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray

GAP = 1e-4
# What a conic solver is good for, relative.
AGREES = 1e-5


def problem(seed: int, blocks: Sequence[int], count: int) -> tuple[FloatArray, list[Limit]]:
    """An objective and limits, of sizes about 1."""
    rng = np.random.default_rng(seed)
    size = sum(blocks)
    parts = [rng.normal(size=(n, n + 1)) for n in blocks]
    objective = block_diag(*(a @ a.T + 0.1 * np.eye(a.shape[0]) for a in parts))
    limits = []
    for _ in range(count):
        free = int(rng.integers(1, size))
        basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
        shape = rng.normal(size=(size, size))
        form = shape @ shape.T * rng.uniform(0.01, 1) / size
        fixed = basis[:, -1] * rng.uniform(0.5, 2)
        least = cheapest(form, fixed, basis[:, :free])
        limits.append(Limit(form, fixed, basis[:, :free], least + rng.uniform(0.3, 1.0)))
    return objective, limits


def cheapest(form: FloatArray, fixed: FloatArray, free: FloatArray) -> float:
    """The least of w^T form w over w in fixed and the span of free."""
    y = np.linalg.solve(free.T @ form @ free, -free.T @ form @ fixed)
    w = fixed + free @ y
    return float(w @ form @ w)


def conic(objective: FloatArray, limits: Sequence[Limit], blocks: Sequence[int]) -> float:
    """The least trace by Clarabel."""
    parts = [cp.Variable((n, n), symmetric=True) for n in blocks]
    ends = np.cumsum([0, *blocks])
    rules: list[cp.Constraint] = []
    for limit in limits:
        w = limit.fixed + limit.free @ cp.Variable(limit.free.shape[1])
        noise = sum(
            cp.matrix_frac(w[a:b], k) for a, b, k in zip(ends, ends[1:], parts, strict=False)
        )
        root = np.linalg.cholesky(limit.form + 1e-15 * np.eye(limit.form.shape[0]))
        rules.append(noise + cp.sum_squares(root.T @ w) <= limit.bound)
    trace = sum(
        cp.trace(objective[a:b, a:b] @ k) for a, b, k in zip(ends, ends[1:], parts, strict=False)
    )
    asked = cp.Problem(cp.Minimize(trace), rules)
    asked.solve(solver=cp.CLARABEL)
    assert asked.status == cp.OPTIMAL
    return float(asked.value)


@pytest.mark.parametrize(
    ("seed", "blocks", "count"),
    [
        (1, (3,), 1),
        (2, (4,), 3),
        (3, (5,), 6),
        (4, (3, 2), 1),
        (5, (4, 3), 4),
        (6, (1, 3), 3),
        (7, (6,), 2),
        (8, (3, 3), 5),
    ],
)
def test_it_is_the_least_and_holds_every_false_track(
    seed: int, blocks: tuple[int, ...], count: int
) -> None:
    objective, limits = problem(seed, blocks, count)
    ellipsoid = smallest_ellipsoid(objective, limits, blocks, GAP)
    oracle = conic(objective, limits, blocks)
    assert oracle * (1 - AGREES) < ellipsoid.trace < oracle * (1 + GAP + AGREES)
    assert ellipsoid.least < oracle * (1 + AGREES)
    assert 0 <= ellipsoid.gap < GAP
    assert ellipsoid.trace == pytest.approx(np.trace(objective @ ellipsoid.covariance), rel=1e-9)
    off = block_diag(*(np.ones((n, n)) for n in blocks)) == 0
    assert not ellipsoid.covariance[off].any()
    inverse = np.linalg.inv(ellipsoid.covariance)
    for limit in limits:
        assert cheapest(inverse + limit.form, limit.fixed, limit.free) <= limit.bound * (1 + 1e-9)


def test_a_single_false_track_has_a_closed_form() -> None:
    """Where movement costs next to nothing, K >= w w^T / bound: the trace is w^T M w / bound."""
    objective = np.diag([1.0, 4.0])
    w, free = np.array([1.0, 0.0]), np.array([[0.0], [1.0]])
    ellipsoid = smallest_ellipsoid(objective, [Limit(1e-9 * np.eye(2), w, free, 0.25)], [2], 1e-6)
    assert ellipsoid.trace == pytest.approx(4.0, rel=2e-6)


def test_more_limits_are_never_less_noise_and_higher_bounds_never_more() -> None:
    objective, limits = problem(11, (4, 3), 5)
    traces = [smallest_ellipsoid(objective, limits[:n], (4, 3), GAP).trace for n in (1, 2, 3, 5)]
    assert all(a <= b * (1 + GAP) for a, b in pairwise(traces))
    looser = [Limit(x.form, x.fixed, x.free, 1.5 * x.bound) for x in limits]
    assert smallest_ellipsoid(objective, looser, (4, 3), GAP).trace < 0.9 * traces[-1]


@pytest.mark.parametrize("seed", range(5))
def test_arbitrary_multipliers_prove_no_more_than_the_least(seed: int) -> None:
    """The bound that `least` is the best of holds for any forces whose sum is within M."""
    blocks = (3, 2)
    objective, limits = problem(seed, blocks, 3)
    trace = smallest_ellipsoid(objective, limits, blocks, GAP).trace
    rng = np.random.default_rng(seed)
    for _ in range(20):
        forces = rng.normal(size=(3, 5)) * rng.exponential(size=3)[:, None]
        ends = np.cumsum([0, *blocks])
        over = max(
            np.linalg.eigvals(
                np.linalg.solve(objective[a:b, a:b], forces[:, a:b].T @ forces[:, a:b])
            ).real.max()
            for a, b in pairwise(ends)
        )
        least = 0.0
        for limit, u in zip(limits, forces / over**0.5, strict=True):
            gram = limit.free.T @ limit.form @ limit.free
            w = limit.fixed - limit.free @ np.linalg.solve(
                gram, limit.free.T @ (u + limit.form @ limit.fixed)
            )
            least += 2 * u @ w + w @ limit.form @ w - limit.bound
        assert least <= trace * (1 + 1e-9)


def test_what_no_noise_can_hide_is_refused_in_a_line() -> None:
    form = np.eye(2)
    track = Limit(form, np.array([1.0, 0.0]), np.array([[0.0], [1.0]]), 0.99)
    with pytest.raises(Refused, match="some noise must be able to hide so much") as refused:
        smallest_ellipsoid(np.eye(2), [track], [2])
    assert "\n" not in str(refused.value)
