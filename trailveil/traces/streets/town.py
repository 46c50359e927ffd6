"""A made-up town, for examples and tests: an irregular street network, and rides on it.

The streets are a grid whose crossings are moved and some of whose blocks are merged or cut across,
so that no two corners look alike. Rides follow quick ways between two places, at a pace that
varies, and wait at some crossings. The town lies in the middle of the North Atlantic. All numbers
derive from `random.Random(seed).random()`, which is the same on every Python.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.formats import gpx
from trailveil.traces.projection import MICRO, Frame, microdegrees
from trailveil.traces.streets.network import Integers, Network, network
from trailveil.traces.trace import NANOSECONDS, Trace

FRAME = Frame(46, -33)
"""Where the town lies."""

_BEGIN = int(np.datetime64("2024-06-04T07:40:00", "ns").astype(np.int64))
_BLOCK = (130.0, 95.0)  # metres of a block, east and north
_MOVED = 0.28  # of a block: how far a crossing is moved at most
_MISSING, _ACROSS = 0.16, 0.06  # shares of streets that are not there, and of blocks cut across
_PACE, _VARIES = 4.0, 0.2  # metres a second, and by what share it varies from street to street
_WAITS, _LONGEST_WAIT = 0.12, 40.0  # the share of crossings with a wait; seconds
_GPS = 2.5  # metres a coordinate


def town(seed: int = 1, blocks: int = 24) -> Network:
    """The streets of a town of so many blocks either way, in metres of `FRAME`."""
    nodes, segments = _drawn(Random(seed), blocks)  # noqa: S311 - an example, and nothing that protects
    return network(nodes, segments)


def town_geojson(streets: Network) -> str:
    """A network in metres of `FRAME` as GeoJSON: one line for each street segment."""
    degrees = FRAME.to_degrees(np.round(streets.nodes * MICRO).astype(np.int64)) / MICRO
    once = streets.tails < streets.heads
    pairs = np.stack([streets.tails[once], streets.heads[once]], axis=1)
    features = [
        {
            "type": "Feature",
            "properties": {"highway": "residential"},
            "geometry": {"type": "LineString", "coordinates": degrees[pair][:, ::-1].tolist()},
        }
        for pair in pairs
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def town_ride(
    streets: Network,
    seed: int = 1,
    minutes: float = 40.0,
    step: float = 5.0,
    stay: tuple[float, float] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """A ride in a town: times (n,) in seconds, and recorded places (n, 2) in metres.

    It goes from place to place, to the minute; a fix comes every `step` seconds. stay: from when to
    when, in seconds, it stands still.
    """
    if not (minutes > 0 and step > 0):
        raise InvalidValue("a ride must take minutes and steps above 0, got others")
    random = Random(seed)  # noqa: S311 - an example, and nothing that protects
    lengths = streets.lengths
    at = _chosen(random, len(streets.nodes))
    moments, route, avoided = [0.0], [at], -1
    while moments[-1] < 60 * minutes:
        for node in _way(random, streets, at, _chosen(random, len(streets.nodes)))[1:]:
            if node == avoided:  # the next errand would turn round at once: it takes another street
                break
            edges = slice(streets.first[at], streets.first[at + 1])
            edge = edges.start + int(np.flatnonzero(streets.heads[edges] == node)[0])
            pace = _PACE * (1 + _VARIES * (2 * random.random() - 1) * np.sqrt(3))
            waits = _LONGEST_WAIT * random.random() if random.random() < _WAITS else 0.0
            arrives = moments[-1] + lengths[edge] / pace
            moments += [arrives, arrives + waits + 1e-3]
            route += [node, node]
            avoided, at = at, node
        else:
            avoided = -1
    times = np.arange(0.0, 60 * minutes + step / 2, step)
    line = streets.nodes[route]
    begin, end = stay or (0.0, 0.0)
    on_the_way = np.where(times < begin, times, np.maximum(begin, times - (end - begin)))
    places = np.stack([np.interp(on_the_way, moments, axis) for axis in line.T], axis=1)
    return times, places + _GPS * _normal(random, places.shape)


def as_trace(times: FloatArray, places: FloatArray) -> Trace:
    """A ride of `town_ride` as a trace of one segment, of a day in June 2024."""
    lattice = np.round(places * MICRO).astype(np.int64)
    moments = _BEGIN + np.round(times * NANOSECONDS).astype(np.int64)
    degrees = FRAME.to_degrees(lattice) / MICRO
    return Trace(moments, degrees, np.zeros(times.size, dtype=np.intp), (0,))


def write_example(folder: Path) -> None:
    """Write the streets and a ride on them to a folder: town.geojson and town-ride.gpx."""
    streets = town()
    (folder / "town.geojson").write_text(town_geojson(streets), encoding="utf-8")
    ride = as_trace(*town_ride(streets, seed=3))
    with (folder / "town-ride.gpx").open("wb") as stream:
        gpx.write(ride, microdegrees(ride.positions), stream)


def _drawn(random: Random, blocks: int) -> tuple[FloatArray, Integers]:
    side = blocks + 1
    east, north = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    grid = np.stack([east.ravel(), north.ravel()], axis=1).astype(float)
    moved = _MOVED * (2 * np.array([[random.random(), random.random()] for _ in grid]) - 1)
    nodes = (grid + moved) * _BLOCK
    segments = []
    for i in range(side):
        for j in range(side):
            here = i * side + j
            if i < blocks and random.random() > _MISSING:
                segments.append((here, here + side))
            if j < blocks and random.random() > _MISSING:
                segments.append((here, here + 1))
            if i < blocks and j < blocks and random.random() < _ACROSS:
                segments.append((here, here + side + 1))
    return nodes, np.array(segments, dtype=np.intp)


def _way(random: Random, streets: Network, begin: int, end: int) -> Sequence[int]:
    """A quick way by somebody's taste: nodes from `begin` to `end`, or just where it begins."""
    taste = np.array([0.7 + 0.6 * random.random() for _ in streets.lengths])
    size = len(streets.nodes)
    costs = csr_array((streets.lengths * taste, streets.heads, streets.first), shape=(size, size))
    _, before = dijkstra(costs, indices=[end], return_predecessors=True)
    nodes = [begin]
    while before[0, nodes[-1]] >= 0:
        nodes.append(int(before[0, nodes[-1]]))
    return nodes


def _chosen(random: Random, count: int) -> int:
    return int(random.random() * count)


def _normal(random: Random, shape: tuple[int, ...]) -> FloatArray:
    count = int(np.prod(shape))
    uniform = np.array([[random.random(), random.random()] for _ in range(count)])
    radius = np.sqrt(-2 * np.log1p(-uniform[:, 0]))
    return np.asarray((radius * np.cos(2 * np.pi * uniform[:, 1])).reshape(shape))
