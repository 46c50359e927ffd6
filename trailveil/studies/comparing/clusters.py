"""Places where somebody stays, found in a release; and what is inferred from them."""

import numpy as np

from trailveil.checks.attacks.estimators import circle_centres
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.comparing.cases import Case, Clues, Sighting

# Metres across a stay, and seconds that it lasts at least.
_ACROSS, _LASTS = 200.0, 300.0
# Deviations of the noise by which a stay may be wider.
_WIDER = 2.0
# Metres within which edges are of one place.
_ONE_PLACE = 1500.0


def clusters(
    seconds: FloatArray, metres: FloatArray, across: float = _ACROSS, lasts: float = _LASTS
) -> FloatArray:
    """The stays (c, 4) of a track: east and north of its middle, begin and end in seconds.

    A stay is a run of fixes none of which is further than half of `across` from their mean so far,
    and that lasts long enough. Source: the stay points of Li, Zheng, Xie, Chen, Liu and Ma (2008),
    Mining user similarity based on location history, GIS, with the mean for the first fix.
    """
    stays, points = [], metres.tolist()
    begin = 0
    east = north = 0.0
    for i in range(len(points) + 1):
        count = i - begin
        if i < len(points):
            x, y = points[i]
            off = (x - east / count, y - north / count) if count else (0.0, 0.0)
            if off[0] ** 2 + off[1] ** 2 <= (across / 2) ** 2:
                east, north = east + x, north + y
                continue
        if count and seconds[i - 1] - seconds[begin] >= lasts:
            stays.append((east / count, north / count, seconds[begin], seconds[i - 1]))
        begin = i
        east, north = points[i] if i < len(points) else (0.0, 0.0)
    return np.array(stays).reshape(-1, 4)


def stays(released: Sighting, known: Clues) -> FloatArray:
    """POI retrieval: each secret is the middle of the stay of the release that shares most time.

    Stays are as wide as the noise makes them. Source: Primault and others (2014), see
    `metrics.stops`.
    """
    places = np.full((len(known.spans), 2), np.nan)
    if not released.seconds.size:
        return places
    across = _ACROSS + _WIDER * float(np.sqrt(released.noise.variances.mean()))
    of_release = clusters(released.seconds, released.metres, across)
    for number, (begin, end) in enumerate(known.spans):
        if of_release.size:
            shared = np.minimum(of_release[:, 3], end) - np.maximum(of_release[:, 2], begin)
            if shared.max() >= 0:
                places[number] = of_release[np.argmax(shared), :2]
    return places


def home(released: Sighting, known: Clues) -> FloatArray:
    """Both ends of a recording are home: the median of where all releases of a person end.

    Only for secrets at an end. Source: the last destination of Krumm (2007), Inference attacks on
    location tracks, Pervasive, section 3.1.
    """
    ends = np.concatenate([_ends(known.case, each) for each in (released, *known.elsewhere())])
    middle = np.median(ends, axis=0) if len(ends) else np.full(2, np.nan)
    last = known.case.seconds[-1]
    at_end = [begin <= 0 or end >= last for begin, end in known.spans]
    return np.where(np.array(at_end)[:, None], middle, np.nan)


def zone_circle(released: Sighting, known: Clues) -> FloatArray:
    """The middle of a zone: a circle through where all releases of a person begin and end near it.

    Source: Hassan and others (2018), see `rivals.zones`, section 5.
    """
    places = np.full((len(known.spans), 2), np.nan)
    every = [each for each in (released, *known.elsewhere()) if each.seconds.size]
    if not released.seconds.size:
        return places
    edges = np.concatenate([_edges(known.case, each) for each in every])
    for number, (begin, end) in enumerate(known.spans):
        before = np.searchsorted(released.seconds, begin) - 1
        after = np.searchsorted(released.seconds, end, side="right")
        rows = [row for row in (before, after) if 0 <= row < released.seconds.size]
        anchor = released.metres[rows].mean(axis=0)
        near = edges[np.linalg.norm(edges - anchor, axis=1) <= _ONE_PLACE]
        if len(near) >= 3:
            places[number] = circle_centres(near[None])[0]
    return places


def _ends(case: Case, released: Sighting) -> FloatArray:
    """The first and the last place (2, 2) of a release, in the frame of a case."""
    return _in_frame(case, released, [0, -1] if released.seconds.size else [])


def _edges(case: Case, released: Sighting) -> FloatArray:
    """Both ends, and the fixes before and after each gap that is much longer than usual."""
    gaps = np.diff(released.seconds)
    wide = np.flatnonzero(gaps > max(120.0, 5 * float(np.median(gaps)) if gaps.size else 0.0))
    return _in_frame(case, released, sorted({0, len(gaps), *wide, *(wide + 1)}))


def _in_frame(case: Case, released: Sighting, rows: list[int]) -> FloatArray:
    if released.case.frame == case.frame:
        return released.metres[rows]
    return np.asarray(case.frame.to_lattice(released.trace.positions[rows]) / 1e6)
