"""Where somebody stayed, by the simplest of means: an average, or the centre of a circle."""

import numpy as np

from trailveil.checks.attacks.contract import Background, Estimate, Evidence, visible, when
from trailveil.gp.gaussian import FloatArray

# Steps of the fit of a circle; how far off at most (in deviations of the points) its centre is,
# since points on a line have none; metres per coordinate of fixes that are taken as they are, and
# metres within which points are one point.
_STEPS, _FURTHEST, _PRECISE, _SAME = 15, 30.0, 15.0, 1e-3
# Seconds: a fix that is further away is none of a time.
_NEAR = 60.0
# Relative: what is less of a sum of squares is rounding.
_SINGULAR = 1e-12


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
    released = view.times[visible(view, known, _PRECISE)]
    rows = np.flatnonzero(visible(view, known, _PRECISE))
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
    inverse = np.linalg.pinv(turned @ terms, rcond=_SINGULAR, hermitian=True)
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
