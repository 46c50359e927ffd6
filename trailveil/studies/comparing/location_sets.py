"""Planar isotropic noise for the places where somebody may be: the delta-location set, and PIM.

Xiao and Xiong (2015), Protecting locations with differential privacy under temporal correlations,
CCS. At each fix the adversary's prior is its posterior of the fix before, moved on by a Markov
chain; the delta-location set is the least set of cells of a share of 1 - delta of it. The noise is
the K-norm mechanism (Hardt and Talwar, 2010, STOC) of the sensitivity hull K of that set, the hull
of all differences of two of its cells: a point drawn evenly from K, times a Gamma(3, 1 / epsilon)
number. The isotropic transformation of the paper makes the draw fast for any K; in the plane it is
drawn by triangles, which is the same law. Where the true cell is not in the set, the nearest of the
set stands for it, as there.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from trailveil.errors import Refused, number_between
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.studies.comparing.cases import Case, Disclosure

# Cells beyond the recording on each side; cells of the grid at most; cells by which somebody may
# move between two fixes at least, and at most.
_MARGIN, _MOST_CELLS, _LEAST_STEP, _MOST_STEP = 5, 40_000, 0.5, 20.0


@dataclass(frozen=True, eq=False)
class Hull:
    """A convex polygon that is symmetric about the origin: its corners (v, 2), in order."""

    corners: FloatArray

    @classmethod
    def of_differences(cls, places: FloatArray) -> "Hull":
        """The sensitivity hull of places (n, 2): of all differences of two of them.

        Where these lie on a line, it is made a thousandth as wide as it is long: K-norm noise
        needs a hull with an inside, and a larger hull is never less private.
        """
        outer = _corners(places)
        apart = (outer[:, None] - outer).reshape(-1, 2)
        longest = apart[np.argmax(np.sum(apart**2, axis=1))]
        across = 1e-3 * np.array([-longest[1], longest[0]])
        return cls(_corners(np.concatenate([apart, [across, -across]])))

    @cached_property
    def triangles(self) -> FloatArray:
        """Twice the area (v,) of the triangle of each edge and the origin."""
        ends = np.roll(self.corners, -1, axis=0)
        return np.abs(self.corners[:, 0] * ends[:, 1] - self.corners[:, 1] * ends[:, 0])

    def drawn(self, random: np.random.Generator, count: int) -> FloatArray:
        """Points (count, 2), evenly of the inside."""
        which = random.choice(len(self.corners), count, p=self.triangles / self.triangles.sum())
        first, other = self.corners[which], np.roll(self.corners, -1, axis=0)[which]
        share, along = np.sqrt(random.random((count, 1))), random.random((count, 1))
        return np.asarray(share * ((1 - along) * first + along * other))

    def norm(self, offsets: FloatArray) -> FloatArray:
        """The K-norm (...,) of offsets (..., 2): by how much the hull must grow to hold them."""
        ends = np.roll(self.corners, -1, axis=0)
        ways = ends - self.corners
        normals = np.stack([ways[:, 1], -ways[:, 0]], axis=1)
        heights = np.sum(normals * self.corners, axis=1)
        return np.asarray(np.max(offsets @ (normals / heights[:, None]).T, axis=-1))

    def noise(self, random: np.random.Generator, epsilon: float, count: int) -> FloatArray:
        """Draws (count, 2) of density proportional to exp(-epsilon |z|_K)."""
        return random.gamma(3.0, 1 / epsilon, (count, 1)) * self.drawn(random, count)


def _corners(places: FloatArray) -> FloatArray:
    """The corners of the convex hull in order; of places on a line, both ends.

    Source: the monotone chain of Andrew (1979), Information Processing Letters 9.
    """
    # Of places of one east, the outermost two.
    order = np.lexsort((places[:, 1], places[:, 0]))
    east = places[order, 0]
    new = np.flatnonzero(np.diff(east, prepend=-np.inf))
    outer = np.union1d(new, np.append(new[1:], east.size) - 1)
    points = places[order[outer]].tolist()

    def chain(ordered: list[list[float]]) -> list[list[float]]:
        corners: list[list[float]] = []
        for x, y in ordered:
            while len(corners) > 1:
                (a, b), (c, d) = corners[-2:]
                if (c - a) * (y - b) - (d - b) * (x - a) > 0:
                    break
                corners.pop()
            corners.append([x, y])
        return corners[:-1]

    corners = chain(points) + chain(points[::-1])
    return np.array(corners or points[:1])


def planar_isotropic(
    case: Case,
    random: np.random.Generator,
    *,
    epsilon: float = 1.0,
    delta: float = 0.01,
    cell: float = 200.0,
    speed: float = 3.0,
) -> Disclosure:
    """PIM: epsilon-differential privacy on the delta-location set of each fix.

    delta: the share of the prior outside of the set. cell: metres. speed: metres a second of the
    Markov chain, whose step between two fixes is Gaussian; the paper learns it from traces.
    Source: Xiao and Xiong (2015), Algorithms 1 and 2.
    """
    number_between("epsilon", epsilon, 0.0, 1e6)
    number_between("delta", delta, 0.0, 1.0)
    number_between("speed", speed, 0.0, 1e4)
    grid = _Grid.of(case.metres, number_between("cell", cell, 1.0, 1e6))
    gaps = np.diff(case.seconds, prepend=case.seconds[0])
    # At first somebody may be anywhere within a few cells of where they are.
    posterior = grid.around(case.metres[0])
    released, variances = np.empty_like(case.metres), np.empty(len(case.trace))
    for i, place in enumerate(case.metres):
        steps = np.clip(speed * gaps[i] / cell, _LEAST_STEP, _MOST_STEP) if i else 0.0
        prior = gaussian_filter(posterior, steps, mode="nearest") if i else posterior
        rows = _location_set(prior.ravel(), delta)
        places = grid.places(rows)
        surrogate = places[np.argmin(np.sum((places - place) ** 2, axis=1))]
        hull = Hull.of_differences(places) if len(rows) > 1 else Hull(cell / 2 * _SQUARE)
        offset = hull.noise(random, epsilon, 1)[0]
        released[i] = surrogate + offset
        # E r^2 = 12 / epsilon^2, and the mean square of a point of the hull is its own.
        variances[i] = 12 / epsilon**2 * _mean_square(hull) / 2 + cell**2 / 12
        posterior = np.zeros_like(prior)
        norms = hull.norm(released[i] - places)
        likely = np.exp(epsilon * (norms.min() - norms))
        posterior.ravel()[rows] = prior.ravel()[rows] * likely
        posterior /= posterior.sum()
    noise: Mechanism = no_noise(case.seconds)
    noise = Mechanism(case.seconds, noise.factor, independent=variances)
    return Disclosure(case.placed_at(released), noise)


_SQUARE = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


def _mean_square(hull: Hull) -> float:
    """The mean of |z|^2 of points z drawn evenly from the inside."""
    first, other = hull.corners, np.roll(hull.corners, -1, axis=0)
    # Of a triangle with a corner at the origin.
    each = np.sum(first**2 + other**2 + (first + other) ** 2, axis=1) / 12
    return float(hull.triangles @ each / hull.triangles.sum())


def _location_set(prior: FloatArray, delta: float) -> NDArray[np.intp]:
    """The fewest cells that hold 1 - delta of the prior. Source: the paper, definition 3.1."""
    order = np.argsort(-prior, kind="stable")
    held = np.cumsum(prior[order])
    count = int(np.searchsorted(held, (1 - delta) * held[-1])) + 1
    return np.sort(order[:count])


@dataclass(frozen=True)
class _Grid:
    """Cells of a grid: its corner (2,) in metres, its size, and how many there are either way."""

    corner: FloatArray
    cell: float
    shape: tuple[int, int]

    @classmethod
    def of(cls, metres: FloatArray, cell: float) -> "_Grid":
        low, high = metres.min(axis=0), metres.max(axis=0)
        corner = (np.floor(low / cell) - _MARGIN) * cell
        east, north = (np.ceil((high - corner) / cell) + _MARGIN).astype(int).tolist()
        if east * north > _MOST_CELLS:
            raise Refused(
                f"a grid must have at most {_MOST_CELLS:,} cells, got {east * north:,}: state a "
                "larger cell"
            )
        return cls(corner, cell, (east, north))

    def places(self, rows: NDArray[np.intp]) -> FloatArray:
        """The middles (k, 2) of cells (k,)."""
        return np.asarray(
            self.corner + (np.stack(np.unravel_index(rows, self.shape), axis=1) + 0.5) * self.cell
        )

    def around(self, place: FloatArray) -> FloatArray:
        """A prior that knows a place to two cells."""
        known = np.zeros(self.shape)
        known[tuple(((place - self.corner) / self.cell).astype(int))] = 1.0
        return np.asarray(gaussian_filter(known, 2.0, mode="nearest"))
