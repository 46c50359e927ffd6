"""A street network in local metres, as arrays: nodes, and a street segment in either direction."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray

Integers = NDArray[np.intp]

# Metres between the points of streets that are looked up by place.
_DENSE = 10.0
# Streets that may meet, and kilometres of all: a world city has 20,000 km.
_MOST_WAYS, _MOST_KILOMETRES = 100, 30_000
# Metres: shorter segments are no street.
_SHORTEST = 1e-3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StreetPoints:
    """Points on streets. edges: (n,) the segment of each. offsets: (n,) metres from its start."""

    edges: Integers
    offsets: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Streets. nodes: (k, 2) metres. tails, heads: (m,) nodes of each directed edge.

    Every edge is there in both directions: who walks or rides may turn round, and one-way streets
    are ignored. Edges are sorted by their tails.
    """

    nodes: FloatArray
    tails: Integers
    heads: Integers

    @cached_property
    def first(self) -> Integers:
        """Where the edges of each node begin (k + 1,)."""
        return np.searchsorted(self.tails, np.arange(len(self.nodes) + 1))

    @cached_property
    def lengths(self) -> FloatArray:
        """Metres of each edge (m,)."""
        return np.asarray(np.hypot(*(self.nodes[self.heads] - self.nodes[self.tails]).T))

    @cached_property
    def directions(self) -> FloatArray:
        """The unit vector along each edge (m, 2)."""
        return np.asarray((self.nodes[self.heads] - self.nodes[self.tails]) / self.lengths[:, None])

    @cached_property
    def most_ways(self) -> int:
        """The largest number of edges that leave one node."""
        return int(np.max(np.diff(self.first)))

    @property
    def total(self) -> float:
        """Metres of all streets."""
        return float(np.sum(self.lengths)) / 2

    def places(self, points: StreetPoints) -> FloatArray:
        """Metres (n, 2) of points on streets."""
        starts = self.nodes[self.tails[points.edges]]
        return np.asarray(starts + points.offsets[:, None] * self.directions[points.edges])

    @cached_property
    def dense(self) -> StreetPoints:
        """Points on every edge, ten metres apart at most."""
        counts = np.ceil(self.lengths / _DENSE).astype(np.intp)
        edges = np.repeat(np.arange(self.lengths.size), counts)
        within = np.arange(edges.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return StreetPoints(edges, (within + 0.5) * (self.lengths / counts)[edges])

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.places(self.dense))

    def distances(self, places: FloatArray) -> FloatArray:
        """Metres (n,) from places (n, 2) to the nearest street, five metres more at most."""
        return np.asarray(self._tree.query(places)[0])

    def within(self, place: FloatArray, radius: float) -> StreetPoints:
        """The points of `dense` within so many metres of a place (2,)."""
        nearby = np.asarray(self._tree.query_ball_point(place, radius, return_sorted=True), np.intp)
        return StreetPoints(self.dense.edges[nearby], self.dense.offsets[nearby])


def network(nodes: FloatArray, segments: Integers) -> Network:
    """The network of nodes (k, 2) in metres and street segments (m, 2), pairs of nodes.

    Segments that come twice, or have no length, count once or not at all. Raises InvalidValue where
    nothing is left, or so much that it is no city.
    """
    both = np.concatenate([segments, segments[:, ::-1]])
    long = np.hypot(*(nodes[both[:, 0]] - nodes[both[:, 1]]).T) > _SHORTEST
    both = np.unique(both[long], axis=0)
    if not len(both):
        raise InvalidValue("a street network must have a street, got none")
    ways = int(np.max(np.bincount(both[:, 0])))
    kilometres = float(np.sum(np.hypot(*(nodes[both[:, 0]] - nodes[both[:, 1]]).T))) / 2000
    if ways > _MOST_WAYS or kilometres > _MOST_KILOMETRES:
        raise InvalidValue(
            f"a street network must have at most {_MOST_WAYS} streets at a crossing and "
            f"{_MOST_KILOMETRES:,} km in all, got {ways} and {kilometres:,.0f} km: cut out the "
            "region around the track"
        )
    used, renumbered = np.unique(both, return_inverse=True)
    tails, heads = renumbered.reshape(-1, 2).T
    return Network(np.asarray(nodes[used]), tails, heads)
