"""Rides with something exact in them, as programs and receivers make them."""

from dataclasses import replace

import numpy as np
from scipy.ndimage import gaussian_filter1d, uniform_filter1d

from tests.rides import BEGIN, degrees_of, ride
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.trace import NANOSECONDS, Trace

_DEGREES = 1 / np.array([111_200.0, 111_200.0 * np.cos(np.radians(48.137))])


def _with(trace: Trace, positions: FloatArray) -> Trace:
    return replace(trace, positions=np.round(positions, 7))


def rounded(trace: Trace, decimals: int) -> Trace:
    """With so many decimals."""
    return replace(trace, positions=np.round(trace.positions, decimals))


def some_rounded(trace: Trace, every: int, decimals: int) -> Trace:
    """With so few decimals at every so manieth fix, and 6 at the others."""
    positions = np.round(trace.positions, 6)
    positions[::every] = np.round(positions[::every], decimals)
    return replace(trace, positions=positions)


def held(trace: Trace, every: int) -> Trace:
    """A new position at every so manieth fix alone."""
    rows = np.arange(len(trace)) // every * every
    return _with(trace, trace.positions[rows])


def _between(trace: Trace, every: int, at: FloatArray) -> FloatArray:
    nodes = np.unique(np.append(np.arange(0, len(trace), every), len(trace) - 1))
    return np.column_stack([np.interp(at, nodes, axis[nodes]) for axis in trace.positions.T])


def filled_in(trace: Trace, every: int) -> Trace:
    """Every so manieth fix recorded, straight lines at a steady pace between them."""
    return _with(trace, _between(trace, every, np.arange(len(trace)).astype(float)))


def snapped(trace: Trace, every: int) -> Trace:
    """The same lines, at a pace that varies."""
    rows = np.arange(len(trace), dtype=float)
    uneven = rows + 0.45 * (-1.0) ** np.arange(len(trace))
    return _with(trace, _between(trace, every, np.clip(uneven, 0, len(trace) - 1)))


def smoothed(trace: Trace, window: int) -> Trace:
    """Each fix the mean of so many around it."""
    return _with(trace, uniform_filter1d(trace.positions, window, axis=0, mode="nearest"))


def by_distance(seed: int, apart: float) -> Trace:
    """A smooth ride of an hour, with a fix whenever the last is so many metres away."""
    fine = ride(12_000, 0.3, seed=seed)
    metres = gaussian_filter1d(fine.positions / _DEGREES, 30, axis=0)
    rows, places = [0], [metres[0]]
    for row, place in enumerate(metres):
        way = place - places[-1]
        if (length := float(np.hypot(*way))) >= apart:
            rows.append(row)
            places.append(places[-1] + way * apart / length)
    count = len(rows)
    times = fine.times[np.array(rows)]
    return Trace(
        times, np.round(np.array(places) * _DEGREES, 7), np.zeros(count, dtype=np.intp), (0,)
    )


def steady(seed: int, *, scatter: float = 0.0, decimals: int = 6, count: int = 900) -> Trace:
    """A smooth curve at 7 m/s, a fix every 2 s. scatter: a share of the speed, at each step."""
    random = np.random.default_rng(seed)
    seconds = 2.0 * np.arange(count)
    wander = np.cumsum(0.05 * random.standard_normal(count))
    heading = random.uniform(0, 7) + 2 * np.sin(seconds / 90) + wander
    lengths = 14.0 * (1 + scatter * random.standard_normal(count))
    metres = np.cumsum(lengths[:, None] * np.column_stack([np.cos(heading), np.sin(heading)]), 0)
    times = BEGIN * NANOSECONDS + np.round(seconds * NANOSECONDS).astype(np.int64)
    places = np.round(degrees_of(metres), decimals)
    return Trace(times, places, np.zeros(count, dtype=np.intp), (0,))
