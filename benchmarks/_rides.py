"""Recordings to compare mechanisms on: drawn from the default prior, or real ones of a folder.

Each has a stay, and an end at home: the two places that are to be protected.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks.worlds import recordings
from trailveil.errors import TrailveilError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversary import Adversary
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.request import DEFAULT_KERNEL
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.projection import MICRO, frame_for
from trailveil.traces.selection import Stretch, ends
from trailveil.traces.stops import stays
from trailveil.traces.streets.network import Network
from trailveil.traces.streets.town import as_trace, town_ride
from trailveil.traces.trace import NANOSECONDS, Trace

# Fixes at most: the paper's mechanisms need full matrices.
MOST_FIXES = 300
# Minutes of the simulated recording: a ride, a stay, a ride, home.
SIMULATED = (20.0, 15.0, 20.0, 10.0)
# Minutes of a stay that is protected, of a recording, and between a stay and either end.
STAY, WHOLE, APART = (10.0, 40.0), (25.0, 180.0), 5.0
SUFFIXES = {".fit", ".gpx", ".plt", ".tcx"}


@dataclass(frozen=True)
class Ride:
    """Recordings (count, n, 2) in metres at one set of times, of which two parts are protected.

    trace: one with these times, for the designs. stretches: a stay, then the end, at home.
    """

    trace: Trace
    stretches: tuple[Stretch, ...]
    recorded: FloatArray

    @property
    def times(self) -> FloatArray:
        return self.trace.seconds

    @property
    def prior(self) -> Prior:
        return Prior(DEFAULT_KERNEL, self.times)

    @property
    def spans(self) -> list[tuple[float, float]]:
        return [stretch.seconds(self.trace) for stretch in self.stretches]

    @property
    def windows(self) -> list[tuple[float, float]]:
        return [(begin, end) for begin, end in self.spans if begin < end]

    def inside(self, part: int) -> NDArray[np.bool_]:
        """The fixes (n,) of a part."""
        begin, end = self.spans[part]
        return np.asarray((self.times >= begin) & (self.times <= end))

    def secret(self, part: int) -> Secret:
        """The mean of a part, or the place of a single fix."""
        own = self.times[self.inside(part)]
        return Secret.mean(own) if own.size > 1 else Secret.at(float(own[0]))

    def truths(self, part: int) -> FloatArray:
        """Where that is (count, 2)."""
        return np.asarray(self.recorded[:, self.inside(part)].mean(axis=1))


def simulated(
    count: int,
    generator: np.random.Generator,
    *,
    minutes: tuple[float, float, float, float] = SIMULATED,
    step: float = 15.0,
    kernel: Kernel = DEFAULT_KERNEL,
) -> Ride:
    """Recordings of somebody who moves as a prior has it, and stands still twice."""
    edges = 60.0 * np.cumsum(minutes)
    times = np.arange(0.0, edges[-1] + step / 2, step)
    windows = [(float(edges[0]), float(edges[1])), (float(edges[2]), float(times[-1]))]
    judge = Adversary.sees_stillness(windows).prior(Prior(kernel, times))
    world = recordings(judge, Secret.at(windows[0][0]), count, generator)
    moments = np.round(times * NANOSECONDS).astype(np.int64)
    # The designs look at times alone, so that any places do.
    places = np.column_stack([np.full(times.size, 46.2), np.linspace(-33.0, -32.9, times.size)])
    trace = Trace(moments, places, np.zeros(times.size, np.intp), (0,))
    stretches = [
        Stretch(name, round(begin * NANOSECONDS), round(end * NANOSECONDS))
        for name, (begin, end) in zip(("stay", "home"), windows, strict=True)
    ]
    return Ride(trace, tuple(stretches), world.recorded)


def in_town(count: int, streets: Network, *, minutes: float = 40.0, step: float = 5.0) -> Ride:
    """Rides on streets, each of whose start is to be protected."""
    times = town_ride(streets, 0, minutes, step)[0]
    recorded = np.stack([town_ride(streets, 100 + i, minutes, step)[1] for i in range(count)])
    trace = as_trace(times, recorded[0])
    begin = int(trace.times[0])
    return Ride(trace, (Stretch("start", begin, begin),), recorded)


def real(folder: Path, most: int) -> Iterator[Ride]:
    """The first fit recording of each folder below one, in the order of their names."""
    taken: set[Path] = set()
    files = sorted(one for one in folder.rglob("*") if one.suffix.lower() in SUFFIXES)
    for path in files:
        if len(taken) == most:
            return
        if path.parent in taken:
            continue
        try:
            found = _ride(clean(read(path))[0])
        except TrailveilError:
            continue
        if found is not None:
            taken.add(path.parent)
            yield found


def _ride(trace: Trace) -> Ride | None:
    """A recording that has all that is asked for, with at most `MOST_FIXES` fixes."""
    low, high = (60.0 * minutes for minutes in WHOLE)
    if not (low <= trace.duration <= high and len(trace) >= 100):
        return None
    home = ends(trace)[-1]
    margin = APART * 60 * NANOSECONDS
    for begin, end in stays(trace):
        lasts = (end - begin) / NANOSECONDS / 60
        apart = begin >= trace.times[0] + margin and end <= home.begin - margin
        if STAY[0] <= lasts <= STAY[1] and apart:
            stretches = (Stretch("stay", begin, end, True), home)
            thin = _thinned(trace, stretches)
            if all(stretch.rows(thin).any() for stretch in stretches):
                metres = frame_for(thin.positions).to_lattice(thin.positions) / MICRO
                return Ride(thin, stretches, metres[None])
    return None


def _thinned(trace: Trace, stretches: tuple[Stretch, ...]) -> Trace:
    """Evenly thinned in time; the first fix, and those at which a part begins or ends, are kept."""
    step = trace.duration / (MOST_FIXES - 2 * len(stretches) - 1)
    kept = np.diff(np.floor(trace.seconds / step), prepend=-1.0) > 0
    for stretch in stretches:
        kept |= np.isin(trace.times, [stretch.begin, stretch.end])
    return trace.only(kept)
