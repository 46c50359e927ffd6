"""Coupled coordinates: loss matrices against densities, bounds against the best pair found."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.densities import Covariance, kernel_exponential, kernel_rbf, loss, mp
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, Kernel, Matern12, White
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.coupled import Coupling, coupled, independent
from trailveil.privacy.guarantee import paper_bound, tight_bound
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

TIMES = np.array([0.0, 1.0, 2.5, 4.0])
SEEDS = st.integers(0, 2**32 - 1)
ROAD = np.array([[1.0, 0.6], [0.6, 2.0]])


def noise(seed: int, floor: float = 0.7) -> Mechanism:
    return Mechanism(TIMES, np.random.default_rng(seed).normal(size=(4, 1)), floor)


def written_out(
    parts: list[tuple[Covariance, FloatArray]],
    measured: float,
    mechanisms: list[Mechanism],
    secret: Secret,
) -> FloatArray:
    """The loss matrix from the joint density of all coordinates of all fixes and of the secret."""
    rows = [(a, i) for a in range(len(mechanisms)) for i in range(TIMES.size)]
    places = [(k, a) for k in range(secret.size) for a in range(len(mechanisms))]
    joint = mp.zeros(len(rows) + len(places))

    def at(a: int, s: float, b: int, u: float) -> object:
        return sum(kernel(mp.mpf(s), mp.mpf(u)) * mp.mpf(r[a, b]) for kernel, r in parts)

    gammas = [mechanism.covariance() for mechanism in mechanisms]
    for (p, (a, i)), (q, (b, j)) in product(enumerate(rows), repeat=2):
        joint[p, q] = at(a, TIMES[i], b, TIMES[j])
        if a == b:
            joint[p, q] += mp.mpf(gammas[a][i, j]) + (mp.mpf(measured) ** 2 if i == j else 0)
    n = len(rows)
    for (p, (a, i)), (q, (k, b)) in product(enumerate(rows), enumerate(places)):
        value = sum(
            mp.mpf(w) * at(a, TIMES[i], b, u)
            for w, u in zip(secret.weights[k], secret.times, strict=True)
        )
        joint[p, n + q] = joint[n + q, p] = value
    for (p, (k, a)), (q, (c, b)) in product(enumerate(places), repeat=2):
        joint[n + p, n + q] = sum(
            mp.mpf(v * w) * at(a, s, b, u)
            for v, s in zip(secret.weights[k], secret.times, strict=True)
            for w, u in zip(secret.weights[c], secret.times, strict=True)
        )
    return loss(joint, len(places))


def in_plane(prior: Coupling, mechanisms: list[Mechanism], secret: Secret) -> FloatArray:
    releases = [Release(mechanism, dimension=a) for a, mechanism in enumerate(mechanisms)]
    return joint_loss(prior, releases, secret).matrix


@pytest.mark.parametrize(
    "secret",
    [Secret.at(1.0), Secret.at([0.5, 4.0]), Secret.difference(0.0, 2.5)],
    ids=lambda s: s.kind,
)
def test_against_the_joint_density(secret: Secret) -> None:
    """A road, another coupling at another speed, and measurement noise of each coordinate's own."""
    other = np.array([[1.0, -0.3], [-0.3, 0.5]])
    prior = coupled(Matern12(3.0, 2.0), ROAD) + coupled(RBF(1.5), other)
    prior = prior + independent(White(0.4), 2)
    parts = [(kernel_exponential(3.0, 2.0), ROAD), (kernel_rbf(1.5), other)]
    mechanisms = [noise(1), noise(2, 0.2)]
    loss = in_plane(prior, mechanisms, secret)
    expected = written_out(parts, 0.4, mechanisms, secret)
    assert np.allclose(loss, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_another_coordinate_tells_of_this_one_where_they_are_coupled() -> None:
    quiet, loud = noise(1, 1e-3), noise(2, 1e6)
    kernel = Matern12(3.0, 2.0) + White(0.4)
    alone = in_plane(independent(kernel, 2), [quiet, loud], Secret.at(1.0))
    road = in_plane(coupled(kernel, [[1.0, 0.9], [0.9, 1.0]]), [quiet, loud], Secret.at(1.0))
    assert alone[0, 1] == pytest.approx(0.0, abs=1e-12)
    assert alone[1, 1] < 1e-4 * alone[0, 0]
    # In the plane the y that the coupling leaves open is told by nothing, the rest by x.
    assert road[1, 1] < 1e-4 * road[0, 0]
    posterior = np.linalg.inv(np.linalg.inv(4.0 * np.array([[1.0, 0.9], [0.9, 1.0]])) + road)
    assert posterior[1, 1] < 0.5 * 4.0


def decoupled(kernel: Kernel, matrix: FloatArray) -> tuple[FloatArray, list[Kernel]]:
    """The coordinates in which Sigma = K kron R falls apart: V (d, d) and a kernel for each.

    With R = V diag(rho) V^T, V orthogonal, the coordinates X V (n, d) are independent with kernels
    rho_a K. Where every coordinate gets the same Gamma, its loss matrix on X is
    sum_a L_a kron v_a v_a^T, L_a the loss matrix under rho_a K.
    """
    values, vectors = np.linalg.eigh(matrix)
    return vectors, [float(value) * kernel for value in values]


def blocks(losses: Sequence[FloatArray]) -> FloatArray:
    """Loss matrices (S, S) of independent coordinates as one (S d, S d), location by location."""
    count, size = len(losses), losses[0].shape[0]
    whole = np.zeros((size, count, size, count))
    for place, each in enumerate(losses):
        whole[:, place, :, place] = each
    return whole.reshape(size * count, size * count)


@given(SEEDS, st.integers(1, 2))
@settings(max_examples=20)
def test_equal_noise_decouples_along_the_axes_of_the_coupling(seed: int, count: int) -> None:
    """L on X is sum_a L_a kron v_a v_a^T; each L_a is a loss in one coordinate."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    matrix, kernel = root @ root.T + 0.1 * np.eye(3), Matern12(3.0, 2.0) + White(0.4)
    secret, mechanism = Secret.at([1.0, 2.5][:count]), noise(seed)
    vectors, kernels = decoupled(kernel, matrix)
    expected = sum(
        np.kron(loss_matrix(Prior(part, TIMES), secret, mechanism).matrix, np.outer(v, v))
        for part, v in zip(kernels, vectors.T, strict=True)
    )
    loss = in_plane(coupled(kernel, matrix), [mechanism, mechanism, mechanism], secret)
    assert np.allclose(loss, expected, rtol=0, atol=1e-8 * np.abs(loss).max())


def test_independent_coordinates_are_blocks() -> None:
    kernel, mechanisms = Matern12(3.0, 2.0) + White(0.4) + Constant(1e3), [noise(1), noise(2)]
    secret = Secret.at([1.0, 2.5])
    each = [loss_matrix(Prior(kernel, TIMES), secret, mechanism).matrix for mechanism in mechanisms]
    loss = in_plane(independent(kernel, 2), mechanisms, secret)
    assert np.allclose(loss, blocks(each), rtol=0, atol=1e-8 * np.abs(loss).max())
    one_by_one = tight_bound(each, 3.0)
    assert tight_bound([loss], 3.0, locations=2) == pytest.approx(one_by_one, rel=1e-6)


def test_a_coupled_level_is_no_secret_of_its_direction() -> None:
    """Two coordinates with one common level: only their sum is open, whatever its size."""
    motion, mechanisms = independent(Matern12(3.0, 2.0) + White(0.4), 2), [noise(1), noise(2)]
    losses = [
        in_plane(motion + coupled(Constant(level), np.ones((2, 2))), mechanisms, Secret.at(1.0))
        for level in (1e4, 1e5)
    ]
    assert np.allclose(losses[0], losses[1], rtol=0, atol=1e-6 * np.abs(losses[0]).max())


def best_found(whole: FloatArray, radius: float, locations: int, seed: int) -> float:
    """The greatest delta^T L delta over pairs within the radius, by ascent from random starts."""
    rng = np.random.default_rng(seed)
    best = 0.0
    for _ in range(20):
        delta = rng.normal(size=(locations, whole.shape[0] // locations))
        for _ in range(200):
            delta = delta / np.linalg.norm(delta, axis=1, keepdims=True) * radius
            delta = (whole @ delta.ravel()).reshape(delta.shape)  # rises, L being positive
        delta = delta / np.linalg.norm(delta, axis=1, keepdims=True) * radius
        best = max(best, float(delta.ravel() @ whole @ delta.ravel()))
    return best


@given(SEEDS, st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=25)
def test_the_tight_bound_holds_for_every_pair(seed: int, locations: int, dimensions: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(locations * dimensions,) * 2)
    whole = root @ root.T
    bound = tight_bound([whole], 2.0, locations=locations)
    best = best_found(whole, 2.0, locations, seed)
    assert best <= bound * (1 + 1e-9)
    assert bound <= locations * 4.0 * np.linalg.eigvalsh(whole)[-1] * (1 + 1e-9)
    if locations == 1:  # the maximum itself
        assert best == pytest.approx(bound, rel=1e-3)


def test_dimensions_share_one_certificate() -> None:
    """10.01 in each coordinate, and 20 in truth: the larger of the two would be wrong."""
    each = [np.diag([10.0, 0.01]), np.diag([0.01, 10.0])]
    assert [tight_bound([loss], 1.0) for loss in each] == pytest.approx([10.01, 10.01])
    assert tight_bound(each, 1.0) == pytest.approx(20.0)
    assert best_found(blocks(each), 1.0, 2, 0) == pytest.approx(20.0)
    assert tight_bound([blocks(each)], 1.0, locations=2) == pytest.approx(20.0)
    assert paper_bound(each, 1.0) == pytest.approx(20.0)
    # For one location the larger is exact.
    single = [np.array([[3.0]]), np.array([[5.0]])]
    assert tight_bound(single, 2.0) == best_found(blocks(single), 2.0, 1, 0) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "must be positive semidefinite"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "must be symmetric"),
        (np.zeros((2, 2)), "must have some variance"),
        (np.ones((1, 2)), "must be a square matrix"),
    ],
)
def test_a_coupling_is_a_covariance(matrix: FloatArray, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        coupled(RBF(1.0), matrix)


def test_parts_are_of_one_number_of_coordinates() -> None:
    with pytest.raises(InvalidValue, match="as many coordinates"):
        independent(RBF(1.0), 2) + independent(RBF(1.0), 3)
    with pytest.raises(InvalidValue, match="at least one coordinate"):
        independent(RBF(1.0), 0)
    with pytest.raises(InvalidValue, match="at least one part"):
        Coupling(())
