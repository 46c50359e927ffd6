"""Noise for a place that is visited again and again: the same at every visit of every recording.

It is a function of the seconds to the nearest visit alone, whatever the recording: full while a
visit lasts, and fading with the time before and after it. It is designed once, in continuous time,
for a stated number of ways (trailveil.ways): the least noise of its shapes, by a barrier method on
the few coefficients, judged again on a finer grid by the loss of what is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.adversaries import SPEEDS, Named, at_speed
from trailveil.demands import Target
from trailveil.designer.shapes import Limit, least_noise
from trailveil.errors import InvalidValue, Refused
from trailveil.gaussian import FloatArray
from trailveil.kernels import Kernel
from trailveil.mechanism import LARGEST_STD
from trailveil.ways import Shapes, Way, loss_of_shapes, movement

MOST_WAYS = 50
"""More ways than this would take noise over days."""

DEFAULT_WAYS = 4
"""Two roads, each there and back."""

# Seconds: the first knot of the shapes, how much wider each next one is, the farthest.
_FIRST_KNOT, _WIDER, _FARTHEST = 15.0, 1.5, 172_800.0
# The noise ends where what is released tells the slowest way this share of what may be told.
_FRINGE = 0.05
# Steps (seconds) of the times at which ways are seen, up to so many seconds from the visit: while
# noise is sought, and when it is judged.
_SOUGHT = ((600.0, 4.0), (3600.0, 15.0), (21_600.0, 60.0), (2 * _FARTHEST, 300.0))
_JUDGED = ((600.0, 2.0), (3600.0, 10.0), (21_600.0, 45.0), (2 * _FARTHEST, 200.0))
# Seconds: noise is worse the more of a recording it is in; one lasts about so long.
_LASTS = 3600.0
# What is known besides: seconds away, and metres.
_POINT_AWAY, _PATH_AWAY, _ACCURACY = 60.0, 300.0, 10.0
# The share of what may be told that is aimed at; what noise costs however far off.
_AIM, _ANYWHERE = 0.998, 1e-4
# How many places that may be known are looked at while noise is sought, and when it is judged.
_SOME, _MANY = 16, 400
# How often noise is sought again, for what it missed by more than this (relative); and what is
# added to it until it holds on the finer grid.
_SOUGHT_AGAIN, _NEARLY, _MORE, _MOST_STEPS = 8, 1.01, 1.002, 40
_DIGITS = 6
# Relative: how far judged losses stay below the bound, for what lies between the times of the grid
# (measured: 2e-5), and the longest withholding, seconds.
_BETWEEN, _LONGEST_SILENCE = 1e-4, 21_600.0


@dataclass(frozen=True, slots=True)
class Facing:
    """What one adversary learns of a place from all ways, and is left with.

    loss: 1 / m^2 against what it knew. known, after: metres per coordinate without the releases
    and with them (infinite where it had no idea).
    """

    adversary: str
    loss: float
    known: float
    after: float


@dataclass(frozen=True, slots=True, eq=False)
class PlaceNoise:
    """The common noise of a place, a coordinate: shapes B(seconds to the nearest visit) root c.

    root: (r, r) metres, lower triangular, c ~ N(0, I). withhold: seconds to a visit within which
    nothing is released, or None. left: what each adversary is left with after any number of visits
    by the ways it is made for.
    """

    shapes: Shapes
    root: FloatArray
    withhold: float | None
    left: tuple[Facing, ...]

    @property
    def reach(self) -> float:
        """Seconds from a visit beyond which fixes are released as they are."""
        return float(self.shapes.knots[-1])

    @property
    def std(self) -> float:
        """Metres per coordinate that the place itself is moved by (deviation)."""
        return float(np.linalg.norm(self.at(np.zeros(1))))

    def at(self, away: FloatArray) -> FloatArray:
        """The columns F (n, r) of fixes so many seconds away from the nearest visit (n,)."""
        return np.asarray(self.shapes.at(away) @ self.root)


NO_NOISE = PlaceNoise(Shapes(np.array([0.0, 1.0])), np.zeros((1, 1)), None, ())
"""Of a place whose noise is not designed yet."""


def place_noise(
    kernel: Kernel, target: Target, ways: int = DEFAULT_WAYS, withhold: float | None = None
) -> PlaceNoise:
    """The least noise of its shapes that holds a target for one place and so many ways.

    kernel: the prior, in metres and seconds. withhold: seconds to a visit within which nothing is
    released. Raises InvalidValue for ways that are none, or metres to leave in place of a bound;
    Refused where no such noise is found.
    """
    if not 1 <= ways <= MOST_WAYS:
        raise InvalidValue(f"ways must be in 1..{MOST_WAYS}, got {ways}")
    if target.left is not None:
        raise InvalidValue("a place must have an epsilon, got metres to leave")
    if withhold is not None and not 0 < withhold <= _LONGEST_SILENCE:
        raise InvalidValue(
            f"withheld seconds around a place must be above 0 and up to {_LONGEST_SILENCE:g}, got "
            f"{withhold:g}: withhold less"
        )
    shapes = Shapes(_knots(_reach(kernel, target, ways)))
    views = _views(kernel, target.who, shapes, withhold, _SOUGHT, _SOME)
    fine = _views(kernel, target.who, shapes, withhold, _JUDGED, _MANY)
    root = _least(views, target, ways, shapes)
    for step in range(_MOST_STEPS):
        root = _rounded(root)
        left = tuple(_faced(fine, root, ways))
        missed = max(one.loss for one in left) / (target.bound * (1 - _BETWEEN))
        if missed <= 1:
            break
        if step < _SOUGHT_AGAIN and missed > _NEARLY:
            views += _missed(fine, root, ways, target.bound)
            root = _least(views, target, ways, shapes)
        else:
            root = root * float(np.sqrt(min(missed, 2.0))) * _MORE
    else:
        raise _out_of_reach()
    noise = PlaceNoise(shapes, root, withhold, left)
    if np.max(np.linalg.norm(noise.at(shapes.knots), axis=1)) > LARGEST_STD:
        raise _out_of_reach()
    return noise


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """What an adversary sees of one way, and knew of the place from it (1 / m^2)."""

    name: str
    told: FloatArray
    known: float


def _views(
    kernel: Kernel,
    who: Sequence[Named],
    shapes: Shapes,
    withhold: float | None,
    steps: Sequence[tuple[float, float]],
    count: int,
) -> list[_View]:
    """count: of the true places that may be known, each by itself."""
    times = _grid(steps)
    times = times[times <= 1.2 * shapes.knots[-1] + 2 * _PATH_AWAY]
    if withhold is not None:
        times = times[times > withhold]
    way = Way(kernel, times, shapes)
    found = [_View("plain", way.told, 0.0)]
    if Named.POINT in who:
        far = times[times >= _POINT_AWAY]
        some = far[np.unique(np.geomspace(1, far.size, count).astype(int)) - 1]
        name = f"knows one true place {_POINT_AWAY:g} s away on every way"
        found += [_View(name, *one) for one in way.told_with_points(some, _ACCURACY)]
    if Named.PATH in who:
        name = f"knows every way {_PATH_AWAY:g} s or more away"
        found.append(_View(name, *way.told_with_path(_PATH_AWAY, _ACCURACY)))
    if Named.SPEEDS in who:
        for speed in SPEEDS:
            other = at_speed(kernel, speed)
            if other is not None and other != kernel:
                name = f"knows that the speed is {speed:g} m/s"
                found.append(_View(name, Way(other, times, shapes).told, 0.0))
    return found


def _faced(views: Sequence[_View], root: FloatArray, ways: int) -> list[Facing]:
    """What each is left with, the worst of what it may know."""
    found: dict[str, Facing] = {}
    for one in views:
        after, known = loss_of_shapes(ways * one.told, root)[0], ways * one.known
        before = known**-0.5 if known > 0 else float("inf")
        left = after**-0.5 if after > 0 else float("inf")
        facing = Facing(one.name, max(0.0, after - known), before, left)
        if one.name not in found or found[one.name].loss < facing.loss:
            found[one.name] = facing
    return list(found.values())


def _missed(views: Sequence[_View], root: FloatArray, ways: int, bound: float) -> list[_View]:
    """The views in which most is learnt of all that is too much: to be sought for as well."""
    found = [
        (loss_of_shapes(ways * one.told, root)[0] - ways * one.known, i)
        for i, one in enumerate(views)
    ]
    return [views[i] for loss, i in sorted(found, reverse=True)[:3] if loss > bound]


def _least(views: Sequence[_View], target: Target, ways: int, shapes: Shapes) -> FloatArray:
    """A root of the Gamma of the least noise that the views allow, to about 1 %."""
    size, unit = shapes.size, target.deviation
    grid = _grid(_SOUGHT)
    grid = grid[grid <= shapes.knots[-1]]
    seen = shapes.at(grid) * np.sqrt(np.gradient(grid) * np.exp(-grid / _LASTS))[:, None]
    cost = seen.T @ seen / _LASTS + _ANYWHERE * np.eye(size)
    limits = [
        Limit(
            ways * unit**2 * one.told,
            ways * unit**2 * one.known + _AIM * target.bound * unit**2,
        )
        for one in views
    ]
    start = np.eye(size)
    while not all(loss_of_shapes(one.told, start)[0] < one.most for one in limits):
        start = start * 2.0
        if start[0, 0] * unit > LARGEST_STD:
            raise _out_of_reach()
    return least_noise(cost, limits, start) * unit


def _rounded(root: FloatArray) -> FloatArray:
    """To digits on which two machines agree; what that loses is found when it is judged."""
    unit = 10.0 ** (np.floor(np.log10(np.max(np.abs(root)))) - _DIGITS)
    return np.asarray(np.round(root / unit) * unit)


def _reach(kernel: Kernel, target: Target, ways: int) -> float:
    """Seconds after which the slowest way tells little enough of where it came from."""
    times = np.geomspace(60.0, _FARTHEST, 60)
    slow = at_speed(kernel, min(SPEEDS)) if Named.SPEEDS in target.who else None
    variances = [np.diagonal(movement(one, times)) for one in (kernel, slow) if one is not None]
    enough = np.min(variances, axis=0) * target.bound * _FRINGE >= ways
    return float(times[int(np.argmax(enough))]) if np.any(enough) else _FARTHEST


def _knots(reach: float) -> FloatArray:
    found, step = [0.0], _FIRST_KNOT
    while found[-1] < reach:
        found.append(found[-1] + step)
        step *= _WIDER
    return np.array(found)


def _grid(steps: Sequence[tuple[float, float]]) -> FloatArray:
    found, begin = [], 0.0
    for end, step in steps:
        found.append(np.arange(begin, end, step))
        begin = end
    return np.concatenate(found)


def _out_of_reach() -> Refused:
    return Refused(
        f"noise for a place must stay below {LARGEST_STD / 1000:g} km, got a target that takes "
        "more: state fewer ways, a smaller radius or a larger epsilon"
    )
