"""A made-up day: home, ride, clinic, ride, home, as a phone would have recorded it.

The town lies in the middle of the North Atlantic. Rides are integrated Ornstein-Uhlenbeck motion
with a drift, bent to arrive; at home and at the clinic the place stands still. Fixes come every 10
seconds, give or take, with 2 m of measurement noise a coordinate; once the recorder is paused,
which begins a new segment, and once it loses the satellites, which does not.

All numbers derive from `random.Random(seed).random()`, whose sequence Python keeps from version to
version, so a seed means the same day everywhere. Such numbers are for examples: never for noise
that protects anything.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import exp, sqrt
from random import Random

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.trace import NANOSECONDS, Trace

_FRAME = Frame(46, -33)
_START = int(np.datetime64("2024-05-14T07:40:00", "ns").astype(np.int64))
_NOISE = 2.0  # metres a coordinate
_SPEED = 1.5  # metres a second, standard deviation of a coordinate of the velocity
_MEMORY = 60.0  # seconds until a velocity is forgotten
_STEP = 10  # seconds between fixes, give or take
_JITTER = 3.0
_PLACES = {"home": (2140.0, -31_870.0), "clinic": (6480.0, -28_910.0)}  # metres east, north
_MINUTES = (("home", 35), ("ride", 24), ("clinic", 42), ("ride", 27), ("home", 30))
_PAUSE = (5520, 5760)  # seconds from the start, during the stay at the clinic
_GAP = (7080, 7230)  # on the way back


@dataclass(frozen=True, slots=True)
class Stay:
    """A stay of the simulated day: at which place, and when.

    name: "home" or "clinic". latitude, longitude: the true place in degrees. begin, end:
    nanoseconds since 1970-01-01 UTC.
    """

    name: str
    latitude: float
    longitude: float
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Day:
    """What truly happened on the simulated day, for a demonstration to explain itself.

    stays: home, clinic, home. pause: first and last nanosecond without a record because the
    recorder was paused (the segment ends). gap: the same without satellites (it does not).
    """

    stays: tuple[Stay, Stay, Stay]
    pause: tuple[int, int]
    gap: tuple[int, int]


def day_plan() -> Day:
    """When and where the simulated day stood still, and what is missing; the same for all seeds."""
    bounds = np.cumsum([0, *(60 * minutes for _, minutes in _MINUTES)])
    stays = [
        Stay(name, *_degrees(_PLACES[name]), _moment(begin), _moment(end))
        for (name, _), (begin, end) in zip(_MINUTES, pairwise(bounds.tolist()), strict=True)
        if name in _PLACES
    ]
    first, second, third = stays
    return Day((first, second, third), _interval(_PAUSE), _interval(_GAP))


def simulated_day(seed: int = 0) -> Trace:
    """The simulated day as a trace of some 900 fixes in two segments of one track.

    Equal seeds give equal traces. Positions lie on the grid of 1e-6 degree, times on whole
    milliseconds. Raises InvalidValue for a seed that is no integer.
    """
    if not isinstance(seed, int):
        raise InvalidValue(
            f"seed must be an integer, got {type(seed).__name__}: give one such as 0"
        )
    random = Random(seed)  # noqa: S311 - an example, and nothing that protects
    path = _path(random)
    seconds = _fix_times(random, len(path) - 1)
    true = np.stack([np.interp(seconds, np.arange(len(path)), axis) for axis in path.T], axis=1)
    metres = true + _NOISE * _normal(random, len(seconds))
    grid = _FRAME.to_degrees(np.round(metres * MICRO).astype(np.int64))
    times = _START + np.round(seconds * 1000).astype(np.int64) * (NANOSECONDS // 1000)
    return Trace(times, grid / MICRO, (seconds > _PAUSE[0]).astype(np.intp), (0, 0))


def _path(random: Random) -> NDArray[np.float64]:
    """Where the person truly is in each second, (m, 2) metres east and north."""
    stays = [place for place, _ in _MINUTES if place in _PLACES]
    legs = iter(pairwise(np.array(_PLACES[name]) for name in stays))
    parts = [np.array([_PLACES["home"]])]
    for name, minutes in _MINUTES:
        if name == "ride":
            parts.append(_ride(random, *next(legs), 60 * minutes))
        else:
            parts.append(np.tile(_PLACES[name], (60 * minutes, 1)))
    return np.concatenate(parts)


def _ride(
    random: Random, begin: NDArray[np.float64], end: NDArray[np.float64], seconds: int
) -> NDArray[np.float64]:
    """Places (seconds, 2) after each second of a ride that arrives."""
    keep = exp(-1 / _MEMORY)
    kicks = _SPEED * sqrt(1 - keep**2) * _normal(random, seconds)
    velocity = np.zeros(2)
    wander = np.zeros((seconds, 2))
    for second, kick in enumerate(kicks):
        velocity = keep * velocity + kick
        wander[second] = wander[second - 1] + velocity if second else velocity
    progress = _smooth(np.arange(1, seconds + 1) / seconds)
    return np.array(begin + progress * (end - begin) + wander - progress * wander[-1])


def _smooth(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A column from 0 to 1 whose speed starts and ends at 0 and is even for most of the way."""
    ramp = np.clip(np.minimum(x, 1 - x) / 0.05, 0, 1)
    way = np.cumsum(ramp) / np.sum(ramp)
    return np.stack([way], axis=1)


def _fix_times(random: Random, end: int) -> NDArray[np.float64]:
    """Seconds of the fixes: every _STEP, give or take, none in the pause and in the gap."""
    planned = np.arange(_STEP, end - _STEP, _STEP, dtype=np.float64)
    times = planned + _JITTER * (2 * np.array([random.random() for _ in planned]) - 1)
    missing = [(times > begin) & (times < stop) for begin, stop in (_PAUSE, _GAP)]
    return np.array(times[~np.any(missing, axis=0)])


def _normal(random: Random, count: int) -> NDArray[np.float64]:
    """Standard normal numbers (count, 2), by Box and Muller from the portable generator."""
    uniform = np.array([[random.random(), random.random()] for _ in range(count)])
    length = np.sqrt(-2 * np.log1p(-uniform[:, 0]))
    angle = 2 * np.pi * uniform[:, 1]
    return np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1)


def _degrees(metres: tuple[float, float]) -> tuple[float, float]:
    grid = _FRAME.to_degrees(np.round(np.array([metres]) * MICRO).astype(np.int64))
    return float(grid[0, 0] / MICRO), float(grid[0, 1] / MICRO)


def _moment(second: int) -> int:
    return _START + second * NANOSECONDS


def _interval(seconds: tuple[int, int]) -> tuple[int, int]:
    return _moment(seconds[0]), _moment(seconds[1])
