"""Many hypotheses of where on the streets somebody is, and how each of them may move on.

Somebody moves at a pace that varies, stands still now and then, takes any street at a crossing,
straight on rather than not, and hardly ever turns round. Turned round in time it is the same.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.traces.streets.network import Integers, Network, StreetPoints

# Of the pace: what share it varies by, and seconds until that is forgotten.
_VARIES, _MEMORY = 0.3, 30.0
# Seconds until somebody who moves stands still, and until somebody who stands moves on.
_MOVES, _STANDS = 120.0, 15.0
# How much more likely straight on is than a turn of a right angle (as an exponent); turning round.
_STRAIGHT, _AIMED, _TURNS_ROUND = 1.0, 3.0, 0.1
# Seconds for which somebody goes in one direction, and of a step.
_GOES_ON, _STEP = 300.0, 5.0
# Segments that one step may pass at most: more are no streets.
_MOST_SEGMENTS = 500


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Riders:
    """Hypotheses (n,): the directed edge, metres along it, metres a second, whether it stands."""

    edges: Integers
    offsets: FloatArray
    speeds: FloatArray
    standing: NDArray[np.bool_]
    aims: FloatArray

    def taken(self, rows: Integers) -> "Riders":
        """Those of some rows."""
        return replace(
            self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)}
        )

    def places(self, streets: Network) -> FloatArray:
        """Where they are (n, 2), in metres."""
        return streets.places(StreetPoints(self.edges, self.offsets))


def started(points: StreetPoints, pace: float, random: np.random.Generator) -> Riders:
    """Hypotheses that begin at points, at any pace of somebody who moves."""
    count = points.edges.size
    speeds = pace * np.abs(1 + _VARIES * random.standard_normal(count))
    standing = random.random(count) < _STANDS / (_MOVES + _STANDS)
    return Riders(points.edges, points.offsets, speeds, standing, np.zeros((count, 2)))


def moved(
    streets: Network, riders: Riders, seconds: float, pace: float, random: np.random.Generator
) -> Riders:
    """Where each hypothesis may be so many seconds later. pace: metres a second, on average."""
    count = riders.edges.size
    stays = np.exp(-seconds / _MEMORY)
    kick = _VARIES * pace * np.sqrt(1 - stays**2) * random.standard_normal(count)
    speeds = np.abs(pace + stays * (riders.speeds - pace) + kick)
    lasts = np.where(riders.standing, _STANDS, _MOVES)
    turned = random.random(count) < -np.expm1(-seconds / lasts)
    standing = riders.standing ^ turned
    # Of a step in which it stops or starts, a part that is as likely as any other.
    share = np.where(turned, random.random(count), np.where(standing, 0.0, 1.0))
    ahead = riders.offsets + share * seconds * (riders.speeds + speeds) / 2
    edges, offsets = _along(streets, riders.edges, ahead, riders.aims, random)
    return Riders(edges, offsets, speeds, standing, riders.aims)


def aimed(riders: Riders, drift: FloatArray, random: np.random.Generator) -> Riders:
    """The same, each on its way in a direction of its own: who is going somewhere.

    drift: (n, 2) where it is known to go, as a share of how far it can get; nothing where unknown.
    """
    angles = 2 * np.pi * random.random(riders.edges.size)
    free = np.maximum(0.0, 1 - np.hypot(*drift.T))
    aims = drift + free[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return replace(riders, aims=aims / np.maximum(1.0, np.hypot(*aims.T))[:, None])


def _along(
    streets: Network,
    edges: Integers,
    offsets: FloatArray,
    aims: FloatArray,
    random: np.random.Generator,
) -> tuple[Integers, FloatArray]:
    """Edges and offsets of who goes `offsets` metres from the beginning of `edges`."""
    edges, offsets = edges.copy(), offsets.copy()
    for _ in range(_MOST_SEGMENTS):
        beyond = np.flatnonzero(offsets > streets.lengths[edges])
        if not beyond.size:
            break
        offsets[beyond] -= streets.lengths[edges[beyond]]
        edges[beyond] = _next(streets, edges[beyond], aims[beyond], random)
    return edges, np.minimum(offsets, streets.lengths[edges])


def _next(
    streets: Network, edges: Integers, aims: FloatArray, random: np.random.Generator
) -> Integers:
    """The edge that each takes where its own ends."""
    at = streets.heads[edges]
    ways = streets.first[at][:, None] + np.arange(streets.most_ways)
    exists = ways < streets.first[at + 1][:, None]
    ways = np.minimum(ways, streets.lengths.size - 1)
    wished = _STRAIGHT * streets.directions[edges] + _AIMED * aims
    straight = np.einsum("nd,nwd->nw", wished, streets.directions[ways])
    back = streets.heads[ways] == streets.tails[edges][:, None]
    weights = np.where(back, _TURNS_ROUND, np.exp(straight)) * exists
    chances = np.cumsum(weights, axis=1)
    drawn = random.random(edges.size) * chances[:, -1]
    taken = np.argmax(chances > drawn[:, None], axis=1)
    return np.asarray(ways[np.arange(edges.size), taken])


def ridden(
    streets: Network,
    times: FloatArray,
    pace: float,
    still: tuple[float, float],
    count: int,
    random: np.random.Generator,
) -> FloatArray:
    """Where so many riders are (count, n, 2) at times (n,), who begin anywhere on the streets.

    still: from when to when (seconds) each stands still. Each goes in a direction of its own for
    some minutes, and then in another.
    """
    lengths = np.cumsum(streets.lengths)
    starts = np.searchsorted(lengths, random.random(count) * lengths[-1])
    within = random.random(count) * streets.lengths[starts]
    riders = started(StreetPoints(starts, within), pace, random)
    rides = np.empty((count, times.size, 2))
    nowhere, until = np.zeros((count, 2)), -np.inf
    for row, time in enumerate(times):
        if time >= until:
            riders, until = aimed(riders, nowhere, random), time + _GOES_ON
        seconds = time - times[max(row - 1, 0)]
        seconds -= max(0.0, min(time, still[1]) - max(time - seconds, still[0]))
        while seconds > 0:
            riders = moved(streets, riders, min(seconds, _STEP), pace, random)
            seconds -= _STEP
        rides[:, row] = riders.places(streets)
    return rides
