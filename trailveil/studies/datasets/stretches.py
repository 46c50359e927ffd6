"""From traces to series that a prior can be fitted to: windows of motion, in local metres."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.studies.fit import FitSeries, cut
from trailveil.traces.projection import EXTENT, MICRO, placed
from trailveil.traces.readings import Readings
from trailveil.traces.trace import Trace

WINDOW: Final = 600.0
"""Seconds of a window, where nothing else is asked for."""

MOST_FIXES: Final = 100
FEWEST_FIXES: Final = 20
PAUSES: Final = 10
"""A window ends at a pause of more than a tenth of its length."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Windows of traces, and what was left out.

    series: times in seconds from the first fix of the window, values (n, 2) in metres east and
    north of it. sources: index of the trace each is from. short: windows left out because they
    have fewer than FEWEST_FIXES fixes or span less than half of the window. fast: windows left out
    because half of their steps are faster than was allowed.
    """

    series: tuple[FitSeries, ...]
    sources: tuple[int, ...]
    short: int
    fast: int

    @property
    def fixes(self) -> int:
        """Fixes in all windows."""
        return sum(len(series.times) for series in self.series)

    @property
    def seconds(self) -> float:
        """Seconds in all windows together."""
        return float(sum(series.times[-1] for series in self.series))


def stretches(
    traces: Sequence[Trace], window: float = WINDOW, fastest: float = np.inf
) -> Stretches:
    """Windows of up to `window` seconds, thinned to MOST_FIXES, of the segments of each trace.

    fastest: metres a second that half of the steps of a window may exceed at most, for labelled
    data whose labels can be wrong. Raises UnreadableInput where no window is left.
    """
    series, sources, short, fast = [], [], 0, 0
    for source, trace in enumerate(traces):
        for rows in _windows(trace, window):
            seconds = trace.seconds[rows] - trace.seconds[rows[0]]
            if len(rows) < FEWEST_FIXES or seconds[-1] < window / 2:
                short += 1
                continue
            degrees = trace.positions[rows]
            lattice = placed(degrees, furthest=EXTENT)[1]
            metres = (lattice - lattice[0]) / MICRO
            steps = np.hypot(*np.diff(metres, axis=0).T) / np.diff(seconds)
            if np.median(steps) > fastest:
                fast += 1
                continue
            series.append(FitSeries(seconds, metres))
            sources.append(source)
    if not series:
        raise UnreadableInput(
            f"a fit must have a window of {window / 2:g} to {window:g} s with {FEWEST_FIXES} fixes "
            f"and no pause over {window / PAUSES:g} s, got none ({short} too short, {fast} too "
            "fast): give longer recordings, or another --window"
        )
    return Stretches(tuple(series), tuple(sources), short, fast)


def reading_stretches(recordings: Sequence[Readings], window: float) -> Stretches:
    """Windows of up to `window` seconds of readings, thinned to MOST_FIXES: values (n, 1).

    Raises UnreadableInput where none has FEWEST_FIXES readings over half of the window.
    """
    series, sources, short = [], [], 0
    for source, readings in enumerate(recordings):
        for rows in cut(readings.seconds, window, MOST_FIXES, window / PAUSES):
            seconds = readings.seconds[rows] - readings.seconds[rows[0]]
            if len(rows) < FEWEST_FIXES or seconds[-1] < window / 2:
                short += 1
                continue
            series.append(FitSeries(seconds, readings.values[rows, None]))
            sources.append(source)
    if not series:
        raise UnreadableInput(
            f"a fit must have a window of {window / 2:g} to {window:g} s with {FEWEST_FIXES} "
            f"readings and no pause over {window / PAUSES:g} s, got none ({short} too short): give "
            "longer recordings, or another --window"
        )
    return Stretches(tuple(series), tuple(sources), short, 0)


def _windows(trace: Trace, window: float) -> list[NDArray[np.intp]]:
    """Rows of each window; none reaches over the end of a segment."""
    windows = []
    for part in np.unique(trace.segments):
        rows_of_part = np.flatnonzero(trace.segments == part)
        windows += [
            rows_of_part[rows]
            for rows in cut(trace.seconds[rows_of_part], window, MOST_FIXES, window / PAUSES)
        ]
    return windows
