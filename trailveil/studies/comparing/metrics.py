"""What a release is still good for: numbers of a recording and its release.

Each metric is a function of a `Case` and a released `Sighting` that returns one number; those of
`TOGETHER` are of many recordings at once, by the time spent in cells.
"""

from collections.abc import Callable, Mapping

import numpy as np

from trailveil.checks import utility
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.comparing.cases import Case, Sighting, generator
from trailveil.traces.trace import Trace

Metric = Callable[[Case, Sighting], float]

CELL = 500.0
"""Metres: how large cells of the heat map are."""

# Range queries: how many a recording, their radius in metres, and the share of the fixes that a
# count is compared with at least.
_QUERIES, _RANGE, _SANITY = 50, 500.0, 0.01


def moved(case: Case, released: Sighting) -> float:
    """Metres, root mean square, by which fixes that have the same time are moved; NaN for none."""
    _, rows, others = np.intersect1d(
        case.trace.times, released.trace.times, assume_unique=True, return_indices=True
    )
    if not rows.size:
        return float("nan")
    squared = np.sum((case.metres[rows] - released.metres[others]) ** 2, axis=1)
    return float(np.sqrt(squared.mean()))


def hausdorff(case: Case, released: Sighting) -> float:
    """Metres: the Hausdorff distance of recording and release, see `curves.distances`."""
    del case
    return released.distances[0]


def frechet(case: Case, released: Sighting) -> float:
    """Metres: the discrete Frechet distance of both, see `curves.distances`."""
    del case
    return released.distances[1]


def dtw(case: Case, released: Sighting) -> float:
    """Metres: the mean distance under dynamic time warping, see `curves.distances`."""
    del case
    return released.distances[2]


def withheld(case: Case, released: Sighting) -> float:
    """The share of the recorded time further than a minute from any released fix."""
    apart = np.abs(case.seconds[:, None] - released.seconds).min(axis=1) > 60.0
    gaps = np.diff(case.seconds)
    return float(gaps[apart[1:] & apart[:-1]].sum() / max(gaps.sum(), 1e-9))


def length(case: Case, released: Sighting) -> float:
    """The error of the length of the way, as a share of the true length; gaps count nothing."""
    before, after = (float(_steps(each)[1].sum()) for each in (case, released))
    return abs(after - before) / max(before, 1.0)


def speed(case: Case, released: Sighting) -> float:
    """The error of the median speed by time, metres a second; NaN where nothing is told of it."""
    medians = []
    for each in (case, released):
        seconds, way = _steps(each)
        order = np.argsort(way / seconds, kind="stable")
        reached = np.cumsum(seconds[order])
        half = np.searchsorted(reached, reached[-1] / 2) if reached.size else 0
        medians.append(float((way / seconds)[order][half]) if reached.size else float("nan"))
    return abs(medians[1] - medians[0])


def _steps(track: Case | Sighting) -> tuple[FloatArray, FloatArray]:
    """Seconds and metres of the steps that are no gap, as `audit --utility` has them."""
    seconds, way = np.diff(track.seconds), np.hypot(*np.diff(track.metres, axis=0).T)
    counted = (np.diff(track.trace.segments) == 0) & (seconds < utility.GAP)
    return seconds[counted], way[counted]


def coverage(case: Case, released: Sighting) -> float:
    """The F-score of the cells of 100 m that recording and release pass through.

    Source: the area coverage of Primault, Boutet, Ben Mokhtar and Brunie (2019), The long road to
    computational location privacy, IEEE Communications Surveys and Tutorials 21(3).
    """
    before, after = (_passed(metres) for metres in (case.metres, released.metres))
    return f_score(len(before & after), len(before), len(after))


def _passed(metres: FloatArray) -> set[tuple[int, int]]:
    return {(int(east), int(north)) for east, north in np.floor(metres / 100.0)}


def stops(case: Case, released: Sighting) -> float:
    """The F-score of stops: those of the recording that the release has within 200 m.

    Source: the POI retrieval of Primault, Ben Mokhtar, Lauradoux and Brunie (2014),
    Differentially private location privacy in practice, MoST.
    """
    from trailveil.studies.comparing.clusters import clusters

    before, after = clusters(case.seconds, case.metres), clusters(released.seconds, released.metres)
    if not before.size or not after.size:
        return float(not before.size and not after.size)
    apart = np.linalg.norm(before[:, None, :2] - after[None, :, :2], axis=2) <= 200.0
    return f_score(
        min(int(apart.any(axis=1).sum()), int(apart.any(axis=0).sum())), len(before), len(after)
    )


def f_score(right: int, first: int, other: int) -> float:
    """The harmonic mean of precision and recall, of sets of so many of which some are the same."""
    return 2 * right / (first + other) if first + other else 1.0


def queries(case: Case, released: Sighting) -> float:
    """The mean relative error of counts of fixes within 500 m of 50 places of the recording.

    A place and a window of a quarter of the time are drawn by the name of the recording alone. An
    error is relative to the count, or to 1 % of all fixes where that is more. Source: the range
    queries of Acs and Castelluccia (2014), A case study, KDD, section 6.
    """
    random = generator("range queries", case.data, case.name)
    middles = case.metres[random.integers(len(case.trace), size=_QUERIES)]
    begins = random.random(_QUERIES) * 0.75 * case.seconds[-1]
    counts = [
        _counted(seconds, metres, middles, begins, case.seconds[-1] / 4)
        for seconds, metres in (
            (case.seconds, case.metres),
            (released.seconds, released.metres),
        )
    ]
    least = max(1.0, _SANITY * len(case.trace))
    return float(np.mean(np.abs(counts[1] - counts[0]) / np.maximum(counts[0], least)))


def _counted(
    seconds: FloatArray, metres: FloatArray, middles: FloatArray, begins: FloatArray, lasts: float
) -> FloatArray:
    near = np.linalg.norm(metres - middles[:, None], axis=2) <= _RANGE
    when = (seconds >= begins[:, None]) & (seconds <= begins[:, None] + lasts)
    return np.asarray(np.sum(near & when, axis=1), dtype=np.float64)


METRICS: dict[str, Metric] = {
    "moved": moved,
    "hausdorff": hausdorff,
    "frechet": frechet,
    "dtw": dtw,
    "withheld": withheld,
    "length": length,
    "speed": speed,
    "coverage": coverage,
    "stops": stops,
    "queries": queries,
}
"""The metrics of one recording, by name."""

Cells = Mapping[str, float]


def cells(trace: Trace) -> dict[str, float]:
    """Seconds that a trace spends in each cell of 500 m, by its row and column."""
    spent = utility.density([trace], CELL)
    return {f"{row} {column}": seconds for (row, column), seconds in spent.items()}


def heat_map(before: FloatArray, after: FloatArray) -> FloatArray:
    """The divergence of Jensen and Shannon, in bits, of heat maps (..., cells), before and after.

    Source: Lin (1991), IEEE Trans. Information Theory 37. NaN where one of them is empty.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [each / each.sum(axis=-1, keepdims=True) for each in (before, after)]
        middle = (shares[0] + shares[1]) / 2
        parts = [np.where(p > 0, p * np.log2(p / middle), 0.0).sum(axis=-1) for p in shares]
    empty = (before.sum(axis=-1) <= 0) | (after.sum(axis=-1) <= 0)
    return np.asarray(np.where(empty, np.nan, np.maximum(0.0, (parts[0] + parts[1]) / 2)))
