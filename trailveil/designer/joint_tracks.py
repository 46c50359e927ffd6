"""What a recording tells of one place, where several of its protected windows are visits of it.

A false track is then 1, with slope 0, all over each of these windows. Where the noises of two
windows meet, the false tracks of their designs do not add up to one: each would move the other's
window, too. So one is sought among the curves of all these noises together. What they miss by on a
window is left to the independent noise of its fixes. Every such track proves a bound: its cost
(docs/paper.md, "Several visits").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from trailveil.designer.random_curves import WindowNoise
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import pieces, rows_within
from trailveil.privacy.movement import Matern, Movement, slowest_of

Interval = tuple[float, float]

# How far from 1 a track may be at the edge of a window, for rounding.
_ROUNDING, _RIDGE = 1e-6, 1e-13
# Seconds from the edge of a window within which independent noise takes what curves do not follow.
_FADES = (30.0, 120.0)


@dataclass(frozen=True, slots=True, eq=False)
class VisitNoise:
    """A window, in seconds, with its noise."""

    begin: float
    end: float
    noise: WindowNoise

    @property
    def bends(self) -> FloatArray:
        """The times (k,) between which each curve is a cubic."""
        away = np.asarray(self.noise.knots.seconds, dtype=np.float64)
        return np.concatenate([self.begin - away, self.end + away])

    def curves(self, times: FloatArray, *, slopes: bool = False) -> FloatArray:
        """What each random number of the noise adds at times (n,), or its slope there: (n, r).

        times: in order.
        """
        near = rows_within(times, (self.begin, self.end), self.noise.knots.end)
        before = np.maximum(self.begin - times[near], 0.0)
        after = np.maximum(times[near] - self.end, 0.0)
        curves = np.zeros((times.size, self.noise.size))
        curves[near] = self.noise.columns(before, after, slopes=slopes)
        return curves


def told_of_one_place(
    visits: Sequence[VisitNoise],
    times: FloatArray,
    variances: FloatArray,
    movements: Sequence[Movement | Matern],
) -> float:
    """What a recording tells of one place at most, 1 / m^2, where all these windows are visits.

    times: (n,) seconds of the released fixes, in order. variances: (n,) of their independent noise,
    m^2. movements: the priors of adversaries without side information, outside of the windows; the
    most that one of them gives counts. Infinite where no track is found. Source: docs/paper.md, 10.
    """
    paces = [movement for movement in movements if isinstance(movement, Movement)]
    each: list[Movement | Matern] = [slowest_of(paces)] if paces else []
    each += [movement for movement in movements if isinstance(movement, Matern)]
    tracks = _Tracks.among(visits, times, variances)
    return max(tracks.least(movement) - 1 / movement.alone for movement in each)


@dataclass(frozen=True, slots=True, eq=False)
class _Tracks:
    """Curves that tracks are sought among, r of them, and what a track must be.

    Those of the noises come first; then those that fade out from the edges of windows, and cost
    what independent noise costs. free: (r,) 1 for each of the former. values, slopes: (k, r), at
    bends (k,). windows: those of the recording, apart. limits, aims: (m, r) and (m,), of tracks
    that are 1 with slope 0 at the edges of windows. lone, still: (l, r) and (l,), what independent
    noise takes at fixes, and what that should be, over its deviations.
    """

    bends: FloatArray
    free: FloatArray
    values: FloatArray
    slopes: FloatArray
    windows: list[Interval]
    limits: FloatArray
    aims: FloatArray
    lone: FloatArray
    still: FloatArray

    @classmethod
    def among(
        cls, visits: Sequence[VisitNoise], times: FloatArray, variances: FloatArray
    ) -> "_Tracks":
        """All tracks that these visits can share. Arguments: as of `told_of_one_place`."""
        span = float(times[0]), float(times[-1])
        windows = _merged(visits, span)
        fades = _fades(windows, span)
        edges = np.array([edge for window in windows for edge in window])
        ends = fades.edges + fades.reaches
        bends = np.concatenate([span, edges, ends, *(visit.bends for visit in visits)])
        bends = np.unique(np.clip(bends, *span))
        inside = _within(times, windows)
        near = inside | _within(times, zip(fades.edges, ends, strict=True))
        inside, deviations = inside[near], np.sqrt(variances[near])

        def at(moments: FloatArray, *, slopes: bool = False) -> FloatArray:
            curves = [visit.curves(moments, slopes=slopes) for visit in visits]
            return np.hstack([*curves, fades.curves(moments, slopes=slopes)])

        values, slopes = at(bends), at(bends, slopes=True)
        lone = at(times[near]) / deviations[:, None]
        size = sum(visit.noise.size for visit in visits)
        lone[inside, size:] = 0.0
        lone[~inside, :size] = 0.0
        rows = np.searchsorted(bends, edges[(edges > span[0]) & (edges < span[1])])
        limits, aims = np.vstack([values[rows], slopes[rows]]), np.repeat([1.0, 0.0], rows.size)
        free = (np.arange(values.shape[1]) < size).astype(np.float64)
        return cls(bends, free, values, slopes, windows, limits, aims, lone, inside / deviations)

    def least(self, movement: Movement | Matern) -> float:
        """The cost of the best of them under one movement, 1 / m^2; infinite for none."""
        outside, certain = self._moved(movement)
        outside += np.diag(self.free)
        form = outside + self.lone.T @ self.lone
        unit = np.diagonal(form) ** -0.5
        # A little more keeps rounding from ending it: any track is good for a bound.
        form = unit[:, None] * form * unit + _RIDGE * np.eye(unit.size)

        def solved(columns: FloatArray) -> FloatArray:
            return np.asarray(unit[:, None] * np.linalg.solve(form, unit[:, None] * columns))

        track = solved((self.lone.T @ self.still)[:, None])[:, 0]
        ways = solved(self.limits.T)
        missing = self.aims - self.limits @ track
        track += ways @ np.linalg.lstsq(self.limits @ ways, missing, rcond=None)[0]
        if np.any(np.abs(self.limits @ track - self.aims) > _ROUNDING):
            return inf
        missed = self.lone @ track - self.still
        return float(track @ outside @ track + missed @ missed + certain)

    def _moved(self, movement: Movement | Matern) -> tuple[FloatArray, float]:
        """|phi|^2 of the movement as a form (r, r) of the curves outside windows, and inside."""
        coefficients, at_end = np.array(movement.coefficients()), movement.at_end()
        middles = (self.bends[1:] + self.bends[:-1]) / 2
        apart = ~np.any([(a <= middles) & (middles <= b) for a, b in self.windows], axis=0)
        costs = np.tensordot(coefficients, pieces(np.diff(self.bends)[apart]), axes=1)
        both = (self.values[:-1], self.slopes[:-1], self.values[1:], self.slopes[1:])
        edges = np.stack([each[apart] for each in both], axis=1)
        size = self.values.shape[1]
        form = edges.reshape(-1, size).T @ (costs.transpose(2, 0, 1) @ edges).reshape(-1, size)
        certain = coefficients[0] * sum(b - a for a, b in self.windows)
        for row, outward in ((0, -1.0), (-1, 1.0)):
            if any(a <= self.bends[row] <= b for a, b in self.windows):
                certain += at_end[0, 0]
            else:
                end = np.stack([self.values[row], outward * self.slopes[row]])
                form += end.T @ at_end @ end
        return np.asarray(form), float(certain)


@dataclass(frozen=True, slots=True, eq=False)
class _Fades:
    """Curves that fade out from edges of windows: value or slope there is 1.

    reaches: (k,) seconds from edges (k,) to where both are 0 with slope 0; negative before windows.
    """

    edges: FloatArray
    reaches: FloatArray

    def curves(self, times: FloatArray, *, slopes: bool = False) -> FloatArray:
        """All of value, then all of slope, or their slopes (1 / s), at times (n,): (n, 2 k)."""
        z = (times[:, None] - self.edges) / self.reaches
        z[(z < 0) | (z > 1)] = 1.0
        if slopes:
            return np.hstack([6 * z * (z - 1) / self.reaches, (1 - z) * (1 - 3 * z)])
        return np.hstack([(1 + 2 * z) * (1 - z) ** 2, self.reaches * z * (1 - z) ** 2])


def _fades(windows: Sequence[Interval], span: Interval) -> _Fades:
    """Those of all edges, as far as no other window is reached."""
    limits = [span[0], *(edge for window in windows for edge in window), span[1]]
    fades = []
    for begin, end in zip(limits[::2], limits[1::2], strict=True):
        for seconds in _FADES:
            reach = min(seconds, end - begin)
            fades += [(begin, reach)] if reach > 0 and begin > span[0] else []
            fades += [(end, -reach)] if reach > 0 and end < span[1] else []
    return _Fades(*np.array(list(dict.fromkeys(fades))).reshape(-1, 2).T)


def _within(times: FloatArray, intervals: Iterable[Interval]) -> NDArray[np.bool_]:
    """Which times (n,), in order, lie within any interval, edges included."""
    within = np.zeros(times.size, dtype=np.bool_)
    for edges in intervals:
        first = np.searchsorted(times, min(edges))
        within[first : np.searchsorted(times, max(edges), side="right")] = True
    return within


def _merged(visits: Sequence[VisitNoise], span: Interval) -> list[Interval]:
    """The windows as far as they are in the span, those that overlap as one."""
    merged: list[Interval] = []
    for visit in sorted(visits, key=lambda visit: visit.begin):
        begin, end = max(visit.begin, span[0]), min(visit.end, span[1])
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif begin <= end:
            merged.append((begin, end))
    return merged
