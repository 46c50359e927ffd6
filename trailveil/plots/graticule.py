"""Lines of latitude and longitude over a part of a local frame, and where they are named."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.traces.projection import MICRO, Frame

# Degrees of latitude beyond which meridians are no grid.
_POLAR = 88.0
# Points of a line, which may be bent.
_POINTS = 9
# Lines of one kind at most, and inches of a character of their names.
_MOST, CHARACTER = 6, 0.075


@dataclass(frozen=True, slots=True)
class Extent:
    """West, east, south and north, in metres of a frame."""

    west: float
    east: float
    south: float
    north: float

    @property
    def width(self) -> float:
        """East to west."""
        return self.east - self.west

    @property
    def height(self) -> float:
        """South to north."""
        return self.north - self.south


@dataclass(frozen=True, slots=True, eq=False)
class Graticule:
    """Where meridians are named along the lower edge, and parallels along the left one.

    east, north: metres (k,). names: of each. lines: (p, 2) metres each.
    """

    east: FloatArray
    east_names: tuple[str, ...]
    north: FloatArray
    north_names: tuple[str, ...]
    lines: tuple[FloatArray, ...]

    @property
    def room(self) -> float:
        """Inches that the longest name of a parallel takes."""
        return CHARACTER * max((len(north_name) for north_name in self.north_names), default=0)


def graticule(frame: Frame, extent: Extent, inches: float) -> Graticule:
    """The lines for a map that is so many inches wide; none near a pole."""
    along = np.linspace(0.0, 1.0, _POINTS)
    east, north = extent.west + along * extent.width, extent.south + along * extent.height
    middle = _POINTS // 2
    centre = to_degrees(frame, east[middle], north[middle])
    if abs(centre[0]) > _POLAR:
        return Graticule(np.empty(0), (), np.empty(0), (), ())
    bottom = np.array([to_degrees(frame, x, extent.south)[1] for x in east])
    bottom = centre[1] + _wrapped(bottom - centre[1])
    at_left = np.array([to_degrees(frame, extent.west, y)[0] for y in north])
    longitudes, across = _chosen(bottom, lambda name: CHARACTER * len(name) + 0.12, inches)
    latitudes, up = _chosen(at_left, lambda _: 0.35, inches * extent.height / extent.width)
    wide = np.linspace(bottom[0] - across, bottom[-1] + across, _POINTS)
    high = np.clip(np.linspace(at_left[0] - up, at_left[-1] + up, _POINTS), -90.0, 90.0)
    lines = [(high, np.full(_POINTS, longitude)) for longitude in longitudes]
    lines += [(np.full(_POINTS, latitude), wide) for latitude in latitudes]
    return Graticule(
        np.interp(longitudes, bottom, east),
        tuple(_named(float(_wrapped(longitude)), across) for longitude in longitudes),
        np.interp(latitudes, at_left, north),
        tuple(_named(float(latitude), up) for latitude in latitudes),
        tuple(
            np.asarray(frame.to_lattice(np.stack([a, _wrapped(b)], axis=1)) / MICRO)
            for a, b in lines
        ),
    )


def to_degrees(frame: Frame, east: float, north: float) -> FloatArray:
    """Latitude and longitude (2,) of a point in metres of a frame."""
    lattice: NDArray[np.int64] = np.round(np.array([[east, north]]) * MICRO).astype(np.int64)
    return np.asarray(frame.to_degrees(lattice)[0] / MICRO)


def nice(size: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above a size."""
    unit = 10.0 ** np.floor(np.log10(size))
    return float(max(digit for digit in (1, 2, 5) if digit * unit <= size * (1 + 1e-9)) * unit)


def _chosen(
    over: FloatArray, wide: Callable[[str], float], inches: float
) -> tuple[FloatArray, float]:
    """Multiples of a step within a range, as many as their names have room for; and the step."""
    step = nice(float(np.ptp(over)) / _MOST)
    while True:
        first, last = np.ceil(over.min() / step), np.floor(over.max() / step)
        ticks = np.arange(first, last + 1) * step
        needed = sum(wide(_named(float(tick), step)) for tick in ticks)
        if ticks.size <= 1 or (needed <= inches and ticks.size <= _MOST):
            return ticks, step
        step = nice(2.5 * step)


def _wrapped(longitude: FloatArray | float) -> FloatArray:
    return np.asarray((np.asarray(longitude) + 180.0) % 360.0 - 180.0)


def _named(value: float, step: float) -> str:
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    return f"{round(value, digits) + 0.0:.{digits}f}°"
