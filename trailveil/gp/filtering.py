"""The Kalman filter as a Cholesky factor in O(n), worked off in blocks side by side.

Scalar observations y_k = h_k^T z_k + e_k of a Gauss-Markov state have a covariance S = L D L^T in
which L^-1 y are the innovations of the filter and D their variances. With the gains known, L^-1 and
L^-T are banded recursions. The gains come from the covariance of the state, to be followed step by
step; to do so for many stretches at once, each is summarised for a state known when it begins:

    transition A, added covariance C, information J:   P_end = C + A (P_begin^-1 + J)^-1 A^T

Nothing is inverted but variances of innovations: a step without noise (a stopped clock) is a step
like others. Source: Sarkka and Garcia-Fernandez (2021), Temporal parallelization of Bayesian
smoothers, IEEE Transactions on Automatic Control 66.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.gp.chains import BLOCK, Recursion, fill_band, observed
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.statespace import Component


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """S^-1 = L^-T D^-1 L^-1 for S = H K H^T + diag(variances), of n observations of d components.

    recursion: of the predicted state, F_k (I - g_(k-1) h_(k-1)^T). carried: F_(k+1) g_k (n, d).
    loadings: h_k (n, d). innovations: D (n,).
    """

    recursion: Recursion
    carried: FloatArray
    loadings: FloatArray
    innovations: FloatArray

    def solve(self, y: FloatArray) -> FloatArray:
        """S^-1 y (n, m) for y (n, m)."""
        innovations = self._forwards(y)
        innovations /= self.innovations
        pulled = self.recursion.run(innovations[:, :, None] * self.loadings, backwards=True)
        innovations[:, :-1] -= observed(self.carried[:-1], pulled[:, 1:])
        return np.asarray(innovations.T)

    def whitened(self, y: FloatArray) -> FloatArray:
        """D^-1/2 L^-1 y (n, m) for y (n, m): the squares of its columns add up to y^T S^-1 y."""
        return np.asarray((self._forwards(y) / np.sqrt(self.innovations)).T)

    def _forwards(self, y: FloatArray) -> FloatArray:
        """L^-1 y, transposed (m, n)."""
        columns = np.ascontiguousarray(y.T)
        drive = np.zeros((y.shape[1], *self.loadings.shape))
        for i, carried in enumerate(self.carried[:-1].T):  # a loop over few is quick
            np.multiply(columns[:, :-1], carried, out=drive[:, 1:, i])
        return columns - observed(self.loadings, self.recursion.run(drive))


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """All that the filter meets, laid out (..., l, c): row k is step k % l of stretch k // l.

    transition, noise: F and Q (d, d, l, c) from each row to the next. loadings: h (d, l, c).
    variances: (l, c). start: P0 (d, d).
    """

    transition: FloatArray
    noise: FloatArray
    loadings: FloatArray
    variances: FloatArray
    start: FloatArray


def factorise(
    components: Sequence[Component],
    times: FloatArray,
    loadings: FloatArray,
    variances: FloatArray,
) -> Factor:
    """The factor for observations at ordered times (n,), of loadings (n, d), variances (n,)."""
    count, size = loadings.shape
    model = _model(components, times, loadings, variances)
    gains, innovations, _ = _follow(model, _starts(model))
    carried = np.einsum("ijlc,jlc->ilc", model.transition, gains)
    band = np.zeros((count, size, 2 * size))
    closed = model.transition
    closed -= carried[:, None] * model.loadings
    fill_band(band, _natural(closed, count))
    return Factor(
        Recursion(band),
        np.ascontiguousarray(_natural(carried, count).T),
        loadings,
        _natural(innovations, count),
    )


def _model(
    components: Sequence[Component], times: FloatArray, loadings: FloatArray, variances: FloatArray
) -> _Model:
    count, size = loadings.shape
    width = int(np.ceil(np.sqrt(count)))
    shape = (-(-count // width), width)
    transition, noise = np.zeros((2, size, size, *shape))
    start, first = np.zeros((size, size)), 0
    for part in components:
        block = slice(first, first + part.term.size)
        inputs = part.inputs(times)
        start[block, block] = part.variance * part.term.start(float(inputs[0]))
        steps = _laid_out(np.diff(inputs, append=inputs[-1:]), shape, 0.0)
        lines = max(1, BLOCK // width)
        for i in range(0, shape[0], lines):
            transition[block, block, i : i + lines] = part.term.transition(steps[i : i + lines])
            noise[block, block, i : i + lines] = part.variance * part.term.noise(
                steps[i : i + lines]
            )
        first = block.stop
    h = _laid_out(loadings.T, shape, 0.0)
    return _Model(transition, noise, h, _laid_out(variances, shape, 1.0), start)


def _laid_out(values: FloatArray, shape: tuple[int, int], fill: float) -> FloatArray:
    """Values (..., n) as (..., l, c); rows that are missing at the end observe nothing."""
    steps, width = shape
    padded = np.full((*values.shape[:-1], steps * width), fill)
    padded[..., : values.shape[-1]] = values
    return np.ascontiguousarray(padded.reshape(*values.shape[:-1], width, steps).swapaxes(-1, -2))


def _natural(values: FloatArray, count: int) -> FloatArray:
    """The inverse of `_laid_out`."""
    return values.swapaxes(-1, -2).reshape(*values.shape[:-2], -1)[..., :count]


def _starts(model: _Model) -> FloatArray:
    """The covariance of the state before the first row of each stretch (d, d, c)."""
    added, transition, information = _summaries(model)
    rows = _as_observations(information)
    starts = np.empty_like(added)
    covariance = model.start
    for i in range(added.shape[2]):
        starts[:, :, i] = covariance
        known = _informed(covariance, rows[i])
        across = transition[:, :, i]
        covariance = added[:, :, i] + across @ known @ across.T
        covariance = (covariance + covariance.T) / 2
    return starts


def _summaries(model: _Model) -> tuple[FloatArray, FloatArray, FloatArray]:
    """C, A and J (d, d, c) of each stretch: a filter whose state is known at the beginning."""
    size, steps, width = model.loadings.shape
    covariance = np.zeros((size, size, width))
    transition = np.repeat(np.eye(size)[:, :, None], width, axis=2)
    information = np.zeros((size, size, width))
    for k in range(steps):
        h = model.loadings[:, k]
        covariance, gain, innovation = _observed(covariance, h, model.variances[k])
        felt = np.einsum("ic,ijc->jc", h, transition)
        information += felt[:, None] * (felt / innovation)
        transition -= gain[:, None] * felt
        transition = np.einsum("ijc,jkc->ikc", model.transition[:, :, k], transition)
        covariance = _predicted(covariance, model.transition[:, :, k], model.noise[:, :, k])
    return covariance, transition, information


def _follow(
    model: _Model, covariance: FloatArray, sought: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The gains (d, l, c) and variances of innovations (l, c), of all stretches at once.

    sought: functionals g of the state at each row (d, l, c). Third: the covariance of the state
    with g^T z, given the observations up to that row (d, l, c).
    """
    gains, innovations = np.empty_like(model.loadings), np.empty_like(model.variances)
    shared = np.empty_like(gains if sought is not None else gains[:0])
    for k in range(gains.shape[1]):
        covariance, gains[:, k], innovations[k] = _observed(
            covariance, model.loadings[:, k], model.variances[k]
        )
        if sought is not None:
            shared[:, k] = np.einsum("ijc,jc->ic", covariance, sought[:, k])
        covariance = _predicted(covariance, model.transition[:, :, k], model.noise[:, :, k])
    return gains, innovations, shared


def _observed(
    covariance: FloatArray, h: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The covariance (d, d, c) given one more observation; the gain (d, c) and D (c,) of it.

    In Joseph's form, (I - g h^T) P (I - g h^T)^T + g r g^T: a state about which little was known
    keeps its digits when it is observed well.
    """
    pulled = np.einsum("ijc,jc->ic", covariance, h)
    innovation = np.einsum("ic,ic->c", h, pulled) + variance
    gain = pulled / innovation
    reduced = covariance - gain[:, None] * pulled
    added = variance * gain - np.einsum("ijc,jc->ic", reduced, h)
    return reduced + added[:, None] * gain, gain, innovation


def _predicted(covariance: FloatArray, transition: FloatArray, noise: FloatArray) -> FloatArray:
    """F P F^T + Q (d, d, c), exactly symmetric."""
    moved = np.einsum("ijc,jkc->ikc", transition, covariance)
    moved = np.einsum("ikc,jkc->ijc", moved, transition)
    moved += noise
    return np.asarray((moved + moved.swapaxes(0, 1)) / 2)


def _as_observations(information: FloatArray) -> FloatArray:
    """Information J (d, d, c) as d observations of each with noise of variance one (c, d, d)."""
    scale = np.sqrt(np.diagonal(information))
    scale = np.where(scale > 0, scale, 1.0)[:, :, None]
    values, vectors = np.linalg.eigh(np.moveaxis(information, -1, 0) / (scale * scale.mT))
    return np.asarray((scale * vectors * np.sqrt(np.maximum(values, 0.0))[:, None]).mT)


def _informed(covariance: FloatArray, rows: FloatArray) -> FloatArray:
    """(P^-1 + J)^-1 (d, d) for any P and J, its observations (d, d)."""
    known = covariance[:, :, None]
    for row in rows:
        known, _, _ = _observed(known, row[:, None], np.ones(1))
    return known[:, :, 0]


def smoothed_variances(
    components: Sequence[Component],
    times: FloatArray,
    loadings: FloatArray,
    variances: FloatArray,
    functionals: FloatArray,
) -> FloatArray:
    """Var(g_k^T z_k | all observations) for functionals g (n, d) of the state at each row: (n,).

    With c the covariance of the state with g^T z given the rows up to k, and N what the rows after
    it tell of the state: g^T c - c^T N c. Rows without a loading observe nothing. Source: de Jong
    (1989), Smoothing and interpolation with the state-space model, JASA 84.
    """
    model = _model(components, times, loadings, variances)
    sought = _laid_out(functionals.T, model.variances.shape, 0.0)
    gains, innovations, shared = _follow(model, _starts(model), sought)
    weighted = model.loadings / innovations
    closed = model.transition - np.einsum(
        "ijlc,jlc,klc->iklc", model.transition, gains, model.loadings
    )
    information = _ends(model, closed, weighted)
    smoothed = np.einsum("ilc,ilc->lc", sought, shared)
    for k in range(smoothed.shape[0] - 1, -1, -1):
        ahead = np.einsum("ijc,jc->ic", model.transition[:, :, k], shared[:, k])
        smoothed[k] -= np.einsum("ic,ijc,jc->c", ahead, information, ahead)
        information = _told(information, closed[:, :, k], model.loadings[:, k], weighted[:, k])
    return np.asarray(_natural(smoothed, times.size))


def _told(
    information: FloatArray, closed: FloatArray, loading: FloatArray, weighted: FloatArray
) -> FloatArray:
    """What a row and those after it tell of the state predicted for it (d, d, c)."""
    pulled = np.einsum("jic,jkc->ikc", closed, information)
    pulled = np.einsum("ijc,jkc->ikc", pulled, closed)
    return np.asarray(pulled + loading[:, None] * weighted)


def _ends(model: _Model, closed: FloatArray, weighted: FloatArray) -> FloatArray:
    """What all stretches after each tell of the state at its end (d, d, c)."""
    size, steps, width = model.loadings.shape
    information, across = (
        np.zeros((size, size, width)),
        np.repeat(np.eye(size)[:, :, None], width, axis=2),
    )
    for k in range(steps - 1, -1, -1):
        information = _told(information, closed[:, :, k], model.loadings[:, k], weighted[:, k])
        across = np.einsum("ijc,jkc->ikc", across, closed[:, :, k])
    ends = np.zeros_like(information)
    for i in range(width - 1, 0, -1):
        ends[:, :, i - 1] = (
            information[:, :, i] + across[:, :, i].T @ ends[:, :, i] @ across[:, :, i]
        )
    return ends
