"""Snapping to known paths: an earlier ride along the same way tells where this one went on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks.contract import Background, Estimate, Evidence, visible, when
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray

# Metres per coordinate of fixes that are taken as they are; how many of them before and after a
# secret are compared with a path; and metres that they may be off it.
_PRECISE, _COMPARED, _OFF = 15.0, 12, 40.0


def known_paths(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret on the earlier track that the fixes before and after it lie on.

    Between two edges, at the same share of the way as of the time; beyond the only one, as far as
    the pace there would have gone, and at the end of the track at most. None where no track fits.
    Raises InvalidValue without tracks.
    """
    if not known.tracks:
        raise InvalidValue("snapping must have earlier tracks, got none")
    rows = np.flatnonzero(visible(view, known, _PRECISE))
    times = view.times[rows]
    lines = [_line(track) for track in known.tracks if len(track) > 1]
    estimates = []
    for secret in known.secrets:
        span = when(secret)
        before = np.flatnonzero(times < span[0])[-_COMPARED:]
        after = np.flatnonzero(times > span[1])[:_COMPARED]
        places = [
            _snapped(lines, times, place[rows], before, after, sum(span) / 2)
            for place in view.places
        ]
        known_ones = [place for place in places if place is not None]
        complete = bool(known_ones) and len(known_ones) == len(places)
        estimates.append(Estimate(np.array(known_ones)) if complete else None)
    return tuple(estimates)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Line:
    """A track as a line: its corners (k, 2), no two after each other alike, and how far along."""

    corners: FloatArray
    along: FloatArray

    def nearest(self, point: FloatArray) -> tuple[float, float]:
        """How far along, and how far off (metres), the line passes a point (2,)."""
        if len(self.corners) < 2:
            return 0.0, float(np.hypot(*(point - self.corners[0])))
        start, way = self.corners[:-1], np.diff(self.corners, axis=0)
        share = np.clip(np.sum((point - start) * way, 1) / np.sum(way**2, 1), 0.0, 1.0)
        off = np.hypot(*(start + share[:, None] * way - point).T)
        best = int(np.argmin(off))
        length = self.along[best + 1] - self.along[best]
        return float(self.along[best] + share[best] * length), float(off[best])

    def at(self, along: float) -> FloatArray:
        """The place so far along (2,); the nearer end beyond."""
        return np.array([np.interp(along, self.along, axis) for axis in self.corners.T])


def _line(track: FloatArray) -> _Line:
    lengths = np.hypot(*np.diff(track, axis=0).T)
    distinct = np.concatenate([[True], lengths > 0])
    return _Line(track[distinct], np.concatenate([[0.0], np.cumsum(lengths[lengths > 0])]))


def _snapped(
    lines: list[_Line],
    times: FloatArray,
    places: FloatArray,
    before: NDArray[np.intp],
    after: NDArray[np.intp],
    middle: float,
) -> FloatArray | None:
    edges = np.concatenate([before, after])
    best, place = _OFF, None
    for line in lines if edges.size else ():
        passed = [line.nearest(places[i]) for i in edges]
        off = float(np.mean([apart for _, apart in passed]))
        if off < best:
            best, place = off, _on(line, times, edges, [far for far, _ in passed], middle)
    return place


def _on(
    line: _Line, times: FloatArray, edges: NDArray[np.intp], far: list[float], middle: float
) -> FloatArray:
    """Where on a line the secret is, whose fixes at the edges are so far along it."""
    earlier = times[edges] < middle
    if earlier.any() and not earlier.all():
        last = int(np.flatnonzero(earlier)[-1])
        start, end = times[edges[last]], times[edges[last + 1]]
        share = (middle - start) / (end - start)
        return line.at(far[last] + share * (far[last + 1] - far[last]))
    edge = -1 if earlier.all() else 0
    passed = float(times[edges[-1]] - times[edges[0]])
    pace = (far[-1] - far[0]) / passed if passed > 0 else 0.0
    return line.at(far[edge] + pace * (middle - float(times[edges[edge]])))
