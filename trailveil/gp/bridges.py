"""A stationary Markov series as a function of a secret and of the time, to be asked at any moment.

Time is divided into spans of 2^42 nanoseconds (73 minutes). The state where the next span begins is
drawn given the state where this one begins; each moment within is reached by halving the span, and
the state in the middle is drawn given those at both ends:

    z_middle = A z_left + B z_right + w,   B = Q F' (F Q F' + Q)^-1,   A = F - B F F,
    w ~ N(0, Q - B F Q),   F and Q of half the length (`trailveil.gp.statespace`)

By the Markov property that is the law of the series, exactly, whatever moments are asked for and in
whatever order. Where each draw is a function of its place in this tree, so is the series: nobody
can draw a moment twice. A nanosecond is 42 halvings away. Source: Levy's construction of Brownian
motion; for the conditional law Rauch, Tung and Striebel (1965).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import block_diag

from trailveil.errors import InvalidValue
from trailveil.gp.chains import lower_roots
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.gp.statespace import MaternState, Term, required_state_space

HALVINGS = 42
SPAN = 2**HALVINGS
"""Nanoseconds between two states that are drawn one after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Bridges:
    """The series of a kernel, with d numbers in its state.

    weights: (d,) of the state in the series. start: root (d, d) of the stationary covariance.
    onward: F and the root of Q (2, d, d) of a span. halving: A, B and the root of the covariance
    (HALVINGS, 3, d, d) of the middle of a span, of its half, and so on.
    """

    weights: FloatArray
    start: FloatArray
    onward: FloatArray
    halving: FloatArray

    @classmethod
    @lru_cache(maxsize=4)  # a kernel is asked for again and again
    def of(cls, kernel: Kernel) -> "Bridges":
        """Those of a sum of Matern kernels. Raises InvalidValue for any other."""
        model = required_state_space(kernel)
        terms = [part.term for part in model.components if not part.clocks]
        matern = all(isinstance(term, MaternState) for term in terms)
        if model.white or len(terms) < len(model.components) or not matern:
            raise InvalidValue(f"the kernel must be a sum of Matern kernels, got {kernel}")
        weights = np.concatenate(
            [np.sqrt(part.variance) * np.eye(part.term.size)[0] for part in model.components]
        )
        span, halves = np.array([SPAN / 1e9]), SPAN / 1e9 * 0.5 ** np.arange(1, HALVINGS + 1)
        starts = [lower_roots(term.start(0.0)[None])[0] for term in terms]
        onward = [
            np.stack([term.transition(span)[..., 0], lower_roots(term.noise(span).T)[0]])
            for term in terms
        ]
        halving = [_halving(term, halves) for term in terms]
        return cls(weights, block_diag(*starts), _joined(onward), _joined(halving))

    def first(self, normals: FloatArray) -> FloatArray:
        """A state at any time (m, d), of standard normals (m, d)."""
        return np.asarray(normals @ self.start.T)

    def next(self, states: FloatArray, normals: FloatArray) -> FloatArray:
        """The states (m, d) a span after these (m, d), of standard normals (m, d)."""
        return np.asarray(states @ self.onward[0].T + normals @ self.onward[1].T)

    def middle(
        self, level: int, before: FloatArray, behind: FloatArray, normals: FloatArray
    ) -> FloatArray:
        """The states (m, d) in the middle of a span that was halved `level` times, by its ends."""
        from_before, from_behind, root = self.halving[level]
        drawn = before @ from_before.T + behind @ from_behind.T + normals @ root.T
        return np.asarray(drawn)

    def values(self, states: FloatArray) -> FloatArray:
        """The series (m,) of states (m, d)."""
        return np.asarray(states @ self.weights)


def _halving(term: Term, halves: FloatArray) -> FloatArray:
    """A, B and the root of the covariance (n, 3, d, d) for half lengths (n,) in seconds.

    In units of the deviations that half a span adds, in which no number is small.
    """
    moved = np.moveaxis(term.transition(halves), -1, 0)
    added = np.moveaxis(term.noise(halves), -1, 0)
    units = np.sqrt(np.diagonal(added, axis1=1, axis2=2))
    scale = units[:, :, None] / units[:, None, :]
    moved, added = moved / scale, added / (units[:, :, None] * units[:, None, :])
    across = moved @ added  # of the end with the middle
    whole = across @ moved.swapaxes(1, 2) + added
    behind = np.linalg.solve(whole, across).swapaxes(1, 2)
    before = moved - behind @ moved @ moved
    roots = lower_roots(added - behind @ across)
    return np.stack([before * scale, behind * scale, roots * units[:, :, None]], axis=1)


def _joined(blocks: list[FloatArray]) -> FloatArray:
    """Matrices (..., d, d) of independent terms as those of all of them."""
    shape = blocks[0].shape[:-2]
    flat = [block.reshape(-1, *block.shape[-2:]) for block in blocks]
    joined = [block_diag(*(block[i] for block in flat)) for i in range(flat[0].shape[0])]
    return np.array(joined).reshape(*shape, *joined[0].shape)
