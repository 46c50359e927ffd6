"""Markov series at given times as chains of states: covariance products and samples in O(n)."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.statespace import Component, begins_in_time, required_state_space

# Steps of a chain made at once: their temporary arrays stay in the cache.
BLOCK = 2**14
# Entries of the largest temporary array of a product: columns are worked off a few at a time, so
# that these stay in the cache, too.
_CHUNK = 2**16


@dataclass(frozen=True, slots=True, eq=False)
class Recursion:
    """The linear map u -> z, z_0 = u_0, z_k = F_k z_(k-1) + u_k, as a banded triangular system.

    band: (n, d, 2d), LAPACK's lower band storage, column by column: F_k below a diagonal of ones.
    """

    band: FloatArray

    def run(self, u: FloatArray, *, backwards: bool = False) -> FloatArray:
        """z (m, n, d) for u (m, n, d), which is overwritten; backwards: the transposed map."""
        columns, count, size = u.shape
        if u.size == 0:
            return u
        from scipy.linalg.lapack import dtbtrs  # heavy, and only needed for noise

        z, _ = dtbtrs(
            self.band.reshape(count * size, 2 * size).T,
            u.reshape(columns, count * size).T,
            uplo="L",
            trans="T" if backwards else "N",
            diag="U",
            overwrite_b=1,
        )
        return np.asarray(z.T.reshape(columns, count, size))


def fill_band(band: FloatArray, transitions: FloatArray) -> None:
    """Write F_(k+1) (d, d, n) into row k of a band (n, d, 2d); the last one leads nowhere."""
    size = band.shape[1]
    for to in range(size):
        for start in range(size):
            np.negative(transitions[to, start], out=band[:, start, size + to - start])


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """One component at n ordered times: the recursion of its state; Q_k (n, d, d), Q_0 = P0."""

    recursion: Recursion
    noise: FloatArray

    def product(self, x: FloatArray) -> FloatArray:
        """K x (n, m) for x (n, m), K the covariance at the times: backwards, then forwards."""
        moved = applied(self.noise, self.pull(x))
        return self.recursion.run(moved)[:, :, 0].T

    def pull(self, x: FloatArray) -> FloatArray:
        """How x^T f (x (n, m), f the series) depends on the states (m, n, d), each given alone."""
        state = np.zeros((x.shape[1], *self.noise.shape[:2]))
        state[:, :, 0] = x.T
        return self.recursion.run(state, backwards=True)

    def sample(self, normals: FloatArray) -> FloatArray:
        """The series (n,) driven by independent standard normals (n, d)."""
        kicks = np.einsum("nij,nj->ni", lower_roots(self.noise), normals)
        return self.recursion.run(kicks[None])[0, :, 0]

    def samples(self, normals: FloatArray) -> FloatArray:
        """Many series (m, n), for simulations: `sample` of each of normals (m, n, d)."""
        kicks = np.einsum("nij,mnj->mni", lower_roots(self.noise), normals)
        return self.recursion.run(kicks)[:, :, 0]


def applied(matrices: FloatArray, states: FloatArray) -> FloatArray:
    """Matrices (n, d, d) times states (m, n, d), of few dimensions: loops over those are quick."""
    products = matrices[:, :, 0] * states[:, :, :1]
    for j in range(1, states.shape[2]):
        products += matrices[:, :, j] * states[:, :, j : j + 1]
    return np.asarray(products)


def observed(loadings: FloatArray, states: FloatArray) -> FloatArray:
    """The product (m, n) of loadings (n, d) and states (m, n, d)."""
    values = loadings[:, 0] * states[:, :, 0]
    for j in range(1, states.shape[2]):
        values += loadings[:, j] * states[:, :, j]
    return np.asarray(values)


def chain(component: Component, times: FloatArray) -> Chain:
    """A component at times (n,), in order; equal ones are allowed."""
    if not begins_in_time(component, times):
        raise InvalidValue("an integrated series must have its origin before the first time")
    inputs, term = component.inputs(times), component.term
    steps, count, size = np.diff(inputs, append=inputs[-1:]), inputs.size, term.size
    band, noise = np.zeros((count, size, 2 * size)), np.empty((count + 1, size, size))
    noise[0] = component.variance * term.start(float(inputs[0]))
    for block in blocks(count):
        fill_band(band[block], term.transition(steps[block]))
        noise[1:][block] = np.moveaxis(component.variance * term.noise(steps[block]), -1, 0)
    return Chain(Recursion(band), noise[:-1])


def blocks(count: int) -> list[slice]:
    """Slices of 0 to count, each short enough for its temporary arrays to stay in the cache."""
    return [slice(i, min(i + BLOCK, count)) for i in range(0, count, BLOCK)]


def lower_roots(matrices: FloatArray) -> FloatArray:
    """Lower triangular roots (n, d, d), diagonals not negative; a zero pivot has zeros below."""
    roots = np.zeros_like(matrices)
    for j in range(matrices.shape[1]):
        column = matrices[:, j:, j] - np.einsum("nik,nk->ni", roots[:, j:, :j], roots[:, j, :j])
        pivot = np.sqrt(np.maximum(column[:, 0], 0.0))
        safe = np.where(pivot > 0, pivot, 1.0)
        roots[:, j:, j] = np.where(pivot[:, None] > 0, column / safe[:, None], 0.0)
    return roots


def normals_needed(kernel: object) -> int:
    """How many standard normals `sample_process` takes a time; InvalidValue if it is not Markov."""
    model = required_state_space(kernel)
    return sum(part.term.size for part in model.components) + (model.white > 0)


def sample_process(kernel: object, times: ArrayLike, normals: FloatArray) -> FloatArray:
    """A draw (n,) of a Markov kernel at strictly increasing times (n,), linear in the normals.

    normals: (n, normals_needed(kernel)) independent standard normals, in the order of time; columns
    serve the terms as the kernel lists them, white noise last. Roots are lower triangular with a
    diagonal that is not negative, so the draw is one function of kernel, times and normals.
    """
    model, points = required_state_space(kernel), np.asarray(times, dtype=np.float64)
    needed = (points.size, normals_needed(kernel))
    if points.ndim != 1 or np.any(np.diff(points) <= 0):
        raise InvalidValue("times must be strictly increasing, got two out of order or equal")
    if normals.shape != needed:
        raise InvalidValue(f"normals must have shape {needed}, got {normals.shape}")
    total, used = np.zeros(points.size), 0
    for part in model.components if points.size else ():
        total += chain(part, points).sample(normals[:, used : used + part.term.size])
        used += part.term.size
    return total if model.white == 0 else total + math.sqrt(model.white) * normals[:, -1]


def by_columns(
    product: Callable[[FloatArray], FloatArray], x: FloatArray, width: int
) -> FloatArray:
    """product(x) for x (n, m), a few columns at a time: each row expands to `width` numbers."""
    step = max(1, _CHUNK // max(1, x.shape[0] * width))
    if x.shape[1] <= step:
        return product(x)
    parts = [product(x[:, i : i + step]) for i in range(0, x.shape[1], step)]
    return np.concatenate(parts, axis=1)
