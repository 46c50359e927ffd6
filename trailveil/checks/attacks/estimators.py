"""What is estimated without any prior of the noise: by means that anybody has.

An average, or the centre of a circle, of where somebody stayed; what the edges of a withheld
stretch tell: where somebody was last recorded, and how they moved; snapping to known paths: an
earlier ride along the same way tells where this one went on; and a Kalman smoother: what anybody
does who takes the noise for that of a bad receiver.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks.contract import Background, Estimate, Evidence, when
from trailveil.checks.attacks.posterior import posterior_mean
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import IntegratedOU, Kernel, Scaled
from trailveil.privacy.mechanism import Mechanism

# Steps of the fit of a circle; how far off at most (in deviations of the points) its centre is,
# since points on a line have none; metres per coordinate of fixes that are taken as they are, and
# metres within which points are one point.
_STEPS, _FURTHEST, _PRECISE, _SAME = 15, 30.0, 15.0, 1e-3
# Seconds: a fix that is further away is none of a time.
_NEAR = 60.0
# Relative: what is less of a sum of squares is rounding.
_SINGULAR = 1e-12
# Seconds of fixes at an edge that a speed is from; and how long (seconds) somebody goes on as
# before where the prior does not say.
_SPEED_FROM, _GOES_ON = 30.0, 60.0
# How many fixes before and after a secret are compared with a path; and metres that they may be off
# it.
_COMPARED, _OFF = 12, 40.0
# Seconds around a secret within which noise is looked at, and smoothed; fixes that are looked at
# at most; and the metres that it may be, in steps of a half.
_LOOKED, _SMOOTHED, _MOST = 300.0, 1800.0, 2000
# The median of |x| for a standard normal x.
_MEDIAN = 0.6744897501960817


def average(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """The average of the fixes that were released while the secret was, of each by itself.

    Independent noise averages out: of n fixes 1/sqrt(n) of it is left.
    """
    return tuple(
        Estimate(view.places[:, inside].mean(axis=1)) if inside.any() else None
        for inside in (_inside(view, *when(secret)) for secret in known.secrets)
    )


def circle_of_stay(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """The centre of a circle through the fixes released while the secret was: three or more.

    Noise that moves each fix by about the same distance is undone by it, in whatever directions.
    """
    return tuple(
        Estimate(circle_centres(view.places[:, inside])) if inside.sum() >= 3 else None
        for inside in (_inside(view, *when(secret)) for secret in known.secrets)
    )


def circle_of_holes(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """The centre of a circle through the fixes at which what is released ends, and begins again.

    For zones of one radius around one place, which all secrets are taken to be: fixes that are not
    there, or known to no better than 15 m, are a hole. None with fewer than three such edges.
    """
    released = view.times[_visible(view, known)]
    rows = np.flatnonzero(_visible(view, known))
    edges: set[int] = set()
    for secret in known.secrets:
        begin, end = when(secret)
        before, after = (
            np.searchsorted(released, begin) - 1,
            np.searchsorted(released, end, side="right"),
        )
        edges |= {int(rows[i]) for i in (before, after) if 0 <= i < rows.size}
    if len(edges) < 3:
        return (None,) * len(known.secrets)
    estimate = Estimate(circle_centres(view.places[:, sorted(edges)]))
    return (estimate,) * len(known.secrets)


def circle_centres(points: FloatArray) -> FloatArray:
    """The centre (draws, 2) of the circle nearest to points (draws, q, 2), of three or more.

    Least squares of the distances to the circle, by Gauss and Newton, from the algebraic fit of
    Kasa (1976), IEEE Trans. Instrum. Meas. 25. Points that are all in one place are its centre.
    """
    middle = points.mean(axis=1, keepdims=True)
    centred = points - middle
    scale = np.sqrt(np.mean(np.sum(centred**2, axis=2), axis=1))[:, None]
    together = scale < _SAME
    unit = centred / np.where(together, 1.0, scale)[:, :, None]
    ones = np.ones((*unit.shape[:2], 1))
    terms = np.concatenate([2 * unit, ones], axis=2)
    solved = _least_squares(terms, np.sum(unit**2, axis=2))
    centre = _shortened(solved[:, :2], _FURTHEST)
    radius = np.sqrt(np.maximum(solved[:, 2] + np.sum(solved[:, :2] ** 2, axis=1), _SAME))
    for _ in range(_STEPS):
        apart = unit - centre[:, None]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), _SAME)
        slopes = np.concatenate([apart / distance[..., None], ones], axis=2)
        step = _least_squares(slopes, distance - radius[:, None])
        centre = _shortened(centre + _shortened(step[:, :2], 1.0), _FURTHEST)
        radius = np.clip(radius + step[:, 2], _SAME, 2 * _FURTHEST)
    return np.asarray(middle[:, 0] + np.where(together, 0.0, scale * centre))


def _least_squares(terms: FloatArray, values: FloatArray) -> FloatArray:
    """x (draws, 3) of least |terms x - values|, and of those the shortest."""
    turned = np.swapaxes(terms, 1, 2)
    # As numpy.linalg.pinv, which takes six times as long for matrices so small.
    sizes, ways = np.linalg.eigh(turned @ terms)
    usable = np.abs(sizes) > _SINGULAR * np.abs(sizes).max(axis=1, keepdims=True)
    inverted = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=usable)
    inverse = (ways * inverted[:, None]) @ np.swapaxes(ways, 1, 2)
    return np.asarray((inverse @ turned @ values[:, :, None])[:, :, 0])


def _shortened(ways: FloatArray, longest: float) -> FloatArray:
    """Ways (draws, 2), none longer than so much."""
    length = np.hypot(ways[:, 0], ways[:, 1])
    return ways * np.minimum(1.0, longest / np.maximum(length, _SAME))[:, None]


def _inside(view: Evidence, begin: float, end: float) -> FloatArray:
    """The released fixes (m,) from begin to end; for a single time the nearest, if it is near."""
    if begin < end:
        return np.asarray((view.times >= begin) & (view.times <= end))
    apart = np.abs(view.times - begin)
    return np.asarray((apart == apart.min(initial=np.inf)) & (apart <= _NEAR))


def edges_of_hole(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret by the fixes before and after it that were released nearly as they were.

    Between two edges, the cubic with their places and velocities (Hermite); beyond the only one,
    the place to which somebody comes who slows down as the prior has it. None without any edge.
    """
    rows = np.flatnonzero(_visible(view, known))
    times, places = view.times[rows], view.places[:, rows]
    return tuple(_of(times, places, when(secret), known.kernel) for secret in known.secrets)


def _of(
    times: FloatArray, places: FloatArray, span: tuple[float, float], kernel: Kernel
) -> Estimate | None:
    before, after = times < span[0], times > span[1]
    middle = (span[0] + span[1]) / 2
    if before.any() and after.any():
        start, end = times[before][-1], times[after][0]
        here, speed = _edge(times[before], places[:, before], start)
        other, further = _edge(times[after], places[:, after], end)
        length = end - start
        u = (middle - start) / length
        return Estimate(
            (1 + 2 * u) * (1 - u) ** 2 * here
            + u * (1 - u) ** 2 * length * speed
            + u**2 * (3 - 2 * u) * other
            - u**2 * (1 - u) * length * further
        )
    if not before.any() and not after.any():
        return None
    side = before if before.any() else after
    edge = times[side][-1 if before.any() else 0]
    place, speed = _edge(times[side], places[:, side], edge)
    gone, constant = middle - edge, _time_constant(kernel)
    return Estimate(place + np.sign(gone) * constant * -np.expm1(-abs(gone) / constant) * speed)


def _edge(times: FloatArray, places: FloatArray, edge: float) -> tuple[FloatArray, FloatArray]:
    """Place and velocity (draws, 2) at an edge: the line through the fixes near it."""
    near = np.abs(times - edge) <= _SPEED_FROM
    at, values = times[near] - edge, places[:, near]
    if at.size < 2:
        return values[:, 0], np.zeros_like(values[:, 0])
    middle = at.mean()
    speed = np.einsum("i,dia->da", at - middle, values) / np.sum((at - middle) ** 2)
    return values.mean(axis=1) - middle * speed, speed


def _time_constant(kernel: Kernel) -> float:
    terms = [term.kernel if isinstance(term, Scaled) else term for term in kernel.terms()]
    constants = [term.time_constant for term in terms if isinstance(term, IntegratedOU)]
    return constants[0] if constants else _GOES_ON


def known_paths(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Each secret on the earlier track that the fixes before and after it lie on.

    Between two edges, at the same share of the way as of the time; beyond the only one, as far as
    the pace there would have gone, and at the end of the track at most. None where no track fits.
    Raises InvalidValue without tracks.
    """
    if not known.tracks:
        raise InvalidValue("snapping must have earlier tracks, got none")
    rows = np.flatnonzero(_visible(view, known))
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


_LEVELS = 1.5 ** np.arange(-2, 28)


def kalman_smoother(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """The smoothed place of each secret, with white noise of the size that it seems to have.

    The size is that of the second differences around the secret, robustly, for each draw by itself;
    how people move is taken from `known`, how the noise varies is not. In O(n) for a Markov prior.
    """
    if not view.times.size:
        return (None,) * len(known.secrets)
    estimates: list[Estimate | None] = []
    for secret in known.secrets:
        begin, end = when(secret)
        sizes = noise_size(view, begin, end)
        near = _nearest(view.times, begin, end)
        times, places = view.times[near], np.empty((view.draws, 2))
        levels = np.argmin(np.abs(np.log(sizes[:, None] / _LEVELS)), axis=1)
        for level in np.unique(levels):
            which = levels == level
            white = Mechanism(times, np.empty((times.size, 0)), float(_LEVELS[level]) ** 2)
            background = replace(known, secrets=(secret,), mechanism=white, true=None, others=None)
            estimate = posterior_mean(Evidence(times, view.places[which][:, near]), background)[0]
            if estimate is not None:
                places[which] = estimate.places
        estimates.append(Estimate(places))
    return tuple(estimates)


def noise_size(view: Evidence, begin: float, end: float) -> FloatArray:
    """The deviation (draws,) of white noise in the fixes around a time, at least 1 mm.

    From how far each fix is off the line between those before and after it: their median.
    """
    near: NDArray[np.intp] = np.flatnonzero(
        (view.times >= begin - _LOOKED) & (view.times <= end + _LOOKED)
    )
    if near.size < 3:
        near = _nearest(view.times, begin, end)[:3]
    if near.size < 3:
        return np.ones(view.draws)
    times, places = view.times[near], view.places[:, near]
    share = (times[1:-1] - times[:-2]) / (times[2:] - times[:-2])
    between = (1 - share)[:, None] * places[:, :-2] + share[:, None] * places[:, 2:]
    off = np.abs(places[:, 1:-1] - between) / np.sqrt(1 + share**2 + (1 - share) ** 2)[:, None]
    return np.maximum(np.median(off, axis=(1, 2)) / _MEDIAN, 1e-3)


def _nearest(times: FloatArray, begin: float, end: float) -> NDArray[np.intp]:
    """The fixes within half an hour; of too many, those nearest to the secret; of too few, all."""
    away = np.maximum(0.0, np.maximum(begin - times, times - end))
    near: NDArray[np.intp] = np.flatnonzero(
        away <= max(_SMOOTHED, float(np.sort(away)[min(9, away.size - 1)]))
    )
    if near.size > _MOST:
        near = np.sort(near[np.argsort(away[near], kind="stable")[:_MOST]])
    return near


def _visible(view: Evidence, known: Background) -> NDArray[np.bool_]:
    """Whether (m,) each released fix is taken as it is."""
    if known.mechanism is None:
        return np.ones(view.times.size, dtype=np.bool_)
    return np.asarray(known.mechanism.variances[known.mechanism.rows] <= _PRECISE**2)
