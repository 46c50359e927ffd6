"""Versions of one recording: all of them together tell what the finest tells, by dense algebra."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh

from tests.release.test_plan import deviations, seed
from tests.rides import ride
from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, IntegratedOU
from trailveil.ledger.versions import Member, as_version, place_in
from trailveil.release.drawing import draw
from trailveil.release.layers import Layer
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.release.versions import Version, coarser, finer, in_order, layer_of
from trailveil.traces.selection import Stretch

TRACE = ride(60, 20.0, still=(20, 35))
PARTS = (Stretch("x", int(TRACE.times[20]), int(TRACE.times[35])),)
RADII = (50.0, 75.0, 100.0, 200.0, 300.0)


@cache
def planned(radius: float, method: Method = Method.NOISE) -> Plan:
    return protect(TRACE, Request(PARTS, radius, method=method, floor=3.6, middle=2.5))


def chain(radii: Sequence[float]) -> list[Plan]:
    """Versions in the order in which they are published; in the end the finest first."""
    members: list[Member] = []
    plans: list[Plan] = []
    for radius in radii:
        plan = as_version(planned(radius), str(radius).encode(), members)
        place = place_in(members, plan)
        plans.insert(place, plan)
        members.insert(place, Member.of(plan, str(radius).encode()))
    return plans


def base_of(plan: Plan) -> Layer:
    layer = layer_of(plan)
    assert layer is not None
    return layer


def maps(layer: Layer, every: list[bytes]) -> tuple[FloatArray, FloatArray]:
    """Smooth and independent noise (n, k) each as sums of the normals of all layers, by name."""
    count, size = layer.fresh.shape[0], max(64, layer.fresh.shape[1])
    smooth, independent = (
        np.zeros((count, len(every) * size)),
        np.zeros((count, len(every) * count)),
    )
    i = every.index(b"|".join(layer.about))
    smooth[:, i * size : i * size + layer.fresh.shape[1]] = layer.fresh
    independent[:, i * count : (i + 1) * count] = np.diag(layer.further**0.5)
    shared = np.zeros_like(independent)
    for base, share in ((layer.finer, 1 - layer.share), (layer.coarser, layer.share)):
        if base is not None:
            whole, shared = maps(base, every)
            smooth = smooth + share * whole
    return smooth, independent + shared


def stacked(plans: Sequence[Plan]) -> FloatArray:
    """The covariance (k n, k n) of the noises of all versions, as they are drawn."""
    layers = [layer for plan in plans if (layer := layer_of(plan)) is not None]
    every = list(dict.fromkeys(b"|".join(each.about) for x in layers for each in x.chain))
    rows = [np.hstack(maps(layer, every)) for layer in layers]
    whole = np.vstack(rows)
    return np.asarray(whole @ whole.T)


def information(gamma: FloatArray, copies: int) -> float:
    """What releases tell of the place of the part, 1 / m^2, by dense conditioning."""
    seconds = np.array(TRACE.seconds)
    secret = seconds[27]
    # Nobody moves in the window, and the prior of the place is wide.
    kernel = IntegratedOU(3.6, 60.0)
    begin, end = seconds[20] - 60, seconds[35] + 60
    clock = seconds - np.clip(seconds - begin, 0, end - begin)
    still = secret - np.clip(secret - begin, 0, end - begin)
    points = np.append(clock, still) + 1e4
    prior = kernel(points, points) + Constant(1e5)(points, points)
    both = np.tile(prior[:-1, -1], copies)
    whole = np.kron(np.ones((copies, copies)), prior[:-1, :-1]) + gamma
    whole += 1e-4 * np.eye(len(whole))  # what differences of versions have is of low rank
    left = prior[-1, -1] - both @ np.linalg.solve(whole, both)
    return float(1 / left)


# A third version that is coarser, finer or between, after each order of two; and of five versions,
# ones between others that were between, with neighbours of either age.
ORDERS = [
    *permutations(RADII[:3]),
    (50.0, 300.0, 100.0, 75.0, 200.0),
    (300.0, 50.0, 200.0, 100.0, 75.0),
    (100.0, 300.0, 50.0, 200.0, 75.0),
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_all_versions_tell_what_the_finest_tells(order: tuple[float, ...]) -> None:
    """Against dense algebra of the stacked release, as it is drawn, whichever came first."""
    count, plans = len(order), chain(order)
    assert [plan.request.radius for plan in plans] == sorted(order)
    gamma, size = stacked(plans), len(TRACE)
    blocks = [gamma[i * size : (i + 1) * size][:, i * size : (i + 1) * size] for i in range(count)]
    for block, plan in zip(blocks, plans, strict=True):
        assert np.allclose(block, plan.mechanism.covariance(), rtol=1e-8, atol=1e-6)
        assert information(block, 1) < plan.request.bound * 1.001
    assert information(gamma, count) == pytest.approx(information(blocks[0], 1), rel=2e-3)
    # Of noises that were independent, they would tell more.
    assert information(block_diag(*blocks), count) > 1.02 * information(blocks[0], 1)
    for less, more in pairwise(blocks):
        assert eigh(more - less, eigvals_only=True)[0] > -1e-6 * np.trace(more)


@pytest.mark.parametrize("radii", [(50.0, 100.0), (100.0, 50.0)], ids=["coarser", "finer"])
def test_drawn_versions_have_that_law(radii: tuple[float, float]) -> None:
    """3,000 draws: the finer noise has its law, and what the coarser has more is independent.

    Each of the entries looked at strays by 6 deviations with a chance below 1e-8.
    """
    rows, plans = [10, 25, 45], chain(radii)
    layers = [layer for plan in plans if (layer := layer_of(plan)) is not None]
    draws = np.array([_draw(layers, k)[rows].T.ravel() for k in range(3000)])
    size = len(TRACE)
    wanted_rows = [*rows, *(size + row for row in rows)]
    gamma = stacked(plans)[np.ix_(wanted_rows, wanted_rows)]
    assert np.max(np.abs(deviations(draws, gamma))) < 6
    # Independent noise is one draw, in both.
    longest = max(layers, key=lambda layer: len(layer.chain))
    assert longest.bases
    parts = [layer.drawn((seed(1), seed(2))[-len(layer.chain) :], "east")[1] for layer in layers]
    assert np.array_equal(parts[0][longest.further == 0], parts[1][longest.further == 0])
    assert np.any(parts[0][longest.further == 0])
    apart = draws[:, 3:] - draws[:, :3]
    cross = apart.T @ draws[:, :3] / len(draws)
    spread = np.sqrt(np.outer(apart.var(axis=0), draws[:, :3].var(axis=0)) / len(draws))
    assert np.max(np.abs(cross) / spread) < 6


def _draw(layers: Sequence[Layer], k: int) -> FloatArray:
    """Noise (n, versions) of one coordinate: each layer with a seed of its own."""
    longest = max(len(layer.chain) for layer in layers)
    seeds = tuple(seed(10 * k + i) for i in range(longest))
    parts = [layer.drawn(seeds[-len(layer.chain) :], "east") for layer in layers]
    return np.column_stack([smooth + independent for smooth, independent in parts])


def test_the_best_test_of_two_places_gains_nothing_by_further_versions() -> None:
    """Simulated pairs: likelihood ratios of all versions are those of the finest, draw by draw.

    Given a place, means differ by d in each version; the best test looks at d^T C^-1 z.
    """
    plans = chain((50.0, 100.0, 300.0))
    gamma, size, copies = stacked(plans), len(TRACE), 3
    seconds = np.array(TRACE.seconds)
    away = np.maximum(np.maximum(seconds[20] - 60 - seconds, seconds - seconds[35] - 60), 0.0)
    shift = np.exp(-away / 300.0)  # one place against another, 50 m apart
    moved = IntegratedOU(3.6, 60.0)(away, away) + np.eye(size)
    random = np.random.default_rng(7)
    whole = np.kron(np.ones((copies, copies)), moved) + gamma + 1e-6 * np.eye(copies * size)
    draws = np.linalg.cholesky(whole) @ random.standard_normal((copies * size, 4000))
    one, every = 50 * shift, np.tile(50 * shift, copies)
    best = [
        np.linalg.solve(whole[:size, :size], one) @ draws[:size],
        np.linalg.solve(whole, every) @ draws,
    ]
    half = [
        one @ np.linalg.solve(whole[:size, :size], one) / 2,
        every @ np.linalg.solve(whole, every) / 2,
    ]
    right = [np.mean(test < edge) for test, edge in zip(best, half, strict=True)]
    # Both look at the same draws: their rates differ where a ratio is all but even.
    assert abs(right[0] - right[1]) < 0.01
    assert np.asarray(np.corrcoef(best))[0, 1] > 0.999


def test_noise_after_a_cut_is_a_coarser_version_of_both() -> None:
    """Of the cut it is a function and independent noise; of the noise it is drawn from it."""
    cut, both = planned(50.0, Method.CUT), planned(100.0, Method.BOTH)
    member = Member.of(cut, b"cut")
    assert as_version(both, b"both", [member]) is both
    assert set(both.mechanism.rows) <= set(cut.mechanism.rows)
    noise = Member.of(planned(50.0), b"noise")
    nested = as_version(both, b"both", [noise])
    assert nested.layer is not None
    assert nested.layer.finer is noise.layer
    with pytest.raises(Refused, match="nothing that a finer one does not"):
        as_version(planned(300.0), b"noise", [member])
    with pytest.raises(Refused, match="nothing that a finer one does not"):
        in_order([Version("a", cut.request), Version("b", planned(300.0).request)])


def test_refused_versions() -> None:
    request = planned(50.0).request
    for names in (["a b"], ["a", "a"], [], ["x"] * 9):
        with pytest.raises(InvalidValue, match="versions must be 1 to 8"):
            in_order([Version(name, request) for name in names])
    with pytest.raises(Refused, match="got --everywhere"):
        in_order([Version("all", replace(request, method=Method.EVERYWHERE))])
    base = base_of(planned(100.0))
    other = protect(TRACE, replace(request, stretches=(Stretch("y", *TRACE.times[[10, 20]]),)))
    for derive in (coarser, finer):
        with pytest.raises(Refused, match="must protect the same parts"):
            derive(other, base)
    both = [planned(50.0), coarser(planned(100.0, Method.BOTH), base_of(planned(50.0)))]
    chained = [Member.of(plan, b"") for plan in both]
    with pytest.raises(Refused, match="that releases other fixes"):
        as_version(planned(75.0), b"other", chained)


def test_versions_leave_on_the_recorded_grid_and_are_the_same_again() -> None:
    less, more = chain((50.0, 300.0))
    first = draw(more, seed(1), seed(2))
    assert np.array_equal(first[1], draw(more, seed(1), seed(2))[1])
    assert not np.array_equal(first[1], draw(more, seed(3), seed(2))[1])
    assert not np.array_equal(first[1], draw(more, seed(1), seed(3))[1])
    assert np.array_equal(first[1], more.grid.rounded_places(np.asarray(first[1], np.int64)))
    assert less.layer is None
