"""Made-up days for tests of live releases: a person, a place that is visited, and the rule."""

from dataclasses import dataclass

import numpy as np

from tests.places import around
from tests.rides import BEGIN
from trailveil.live.lines import Fix
from trailveil.live.margins import Margins
from trailveil.privacy.adversaries import Named
from trailveil.release.places import Place
from trailveil.release.request import Request
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import Circle, visits

AT = (48.0, 11.0)
HOME = Place(
    *("home", Circle(*AT, 100.0), 100.0, 1.0, 5.0, 1, None, "default", (Named.PLAIN,)), b"h" * 16
)
RIDE = Request((), floor=1.4, middle=1.2)


def way(rng: np.random.Generator, seconds: int, step: int, speed: float) -> np.ndarray:
    """Places (n, 2), velocities (n, 2) and steps of an Ornstein-Uhlenbeck walk from 0, 0."""
    count, fade = seconds // step, np.exp(-step / 60.0)
    velocity = np.zeros((count + 1, 2))
    velocity[0] = speed * rng.standard_normal(2)
    kicks = speed * np.sqrt(1 - fade**2) * rng.standard_normal((count, 2))
    for i in range(count):
        velocity[i + 1] = fade * velocity[i] + kicks[i]
    place = np.zeros((count + 1, 2))
    place[1:] = np.cumsum(step * (velocity[1:] + velocity[:-1]) / 2, axis=0)
    return np.stack([place, velocity])


@dataclass(frozen=True)
class Day:
    """A visit to a place at 0, 0: seconds (n,), metres (n, 2) and velocities (n, 2)."""

    seconds: np.ndarray
    metres: np.ndarray
    velocity: np.ndarray

    @property
    def trace(self) -> Trace:
        times = (BEGIN * NANOSECONDS + self.seconds * NANOSECONDS).astype(np.int64)
        places = around(AT, self.metres)
        return Trace(times, places, np.zeros(times.size, dtype=np.intp), (0,))


def day(rng: np.random.Generator, *, out: int, stay: int, step: int = 5, speed: float = 1.2) -> Day:
    """A way there, a stay, and a way on."""
    there, onward = (way(rng, out, step, speed) for _ in range(2))
    still = np.zeros((2, stay // step, 2))
    there = there[:, ::-1] * np.array([1.0, -1.0])[:, None, None]  # as it goes, time runs on
    place, velocity = np.concatenate([there, still, onward], axis=1)
    return Day(step * np.arange(len(place)), place, velocity)


def fixes(trace: Trace) -> list[Fix]:
    pairs = zip(trace.times.tolist(), trace.positions.tolist(), strict=True)
    return [Fix(time, *place) for time, place in pairs]


def due(trace: Trace, circle: Circle, margins: Margins, silent: int, lag: int) -> np.ndarray:
    """Which fixes (n,) the rule releases of the whole recording, by the visits of all of it."""
    times = trace.times
    free = (times > times[0] + silent) & (times < times[-1] - lag)
    for begin, end in visits(trace, circle):
        after = margins.stay if end - begin >= 180 * NANOSECONDS else margins.passing
        free &= (times < begin - margins.before) | (times > end + after)
    return np.asarray(free)
