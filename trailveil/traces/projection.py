"""Degrees to whole micrometres in a local metric frame, and back to a public grid of degrees.

The frame is the azimuthal equidistant projection on the WGS84 ellipsoid, centred at a whole
degree, by PROJ. The centre is coarse, so it can be published with the release.

Scale. Radial distances from the centre are exact. Across, the scale at distance s is s / m(s) with
m the reduced length of the geodesic, m'' + K m = 0. The Gaussian curvature K of the ellipsoid is
largest on the equator, where it is 1 / b^2 with b the polar semi-axis, so by Sturm's comparison
m(s) >= b sin(s / b), and

    1 <= scale <= (s / b) / sin(s / b)

everywhere. A true distance of r metres is thus between r and r (1 + SCALE_ERROR) in the frame, for
as long as (s / b) / sin(s / b) <= 1 + SCALE_ERROR: s up to 492 km.

A recording over several countries reaches further. Its frame is the same and its bound larger, in
steps of how far it reaches, since they are public: 0.4 % at 1,000 km, 1.7 % at 2,000 km, 4 % at
3,000 km, 11 % at 5,000 km, 58 % at 10,000 km. What is promised for r metres is designed for
r (1 + bound). A person is then nowhere slower in the frame than in truth. A larger prior covariance
leaves an adversary more metres, so the prior holds; and metres that are left in the frame are
divided by 1 + bound before they are reported.

Rounding. One unit in the last place of a longitude near 180 degrees is 3 nanometres, and PROJ adds
as much again (tests: under 0.02 micrometres there and back), so a lattice point that goes to
degrees in float64 and comes back is the same lattice point. That error is part of rounding X to
the lattice; the noise never meets it. Within 1 km of a pole a step of the grid in longitude is less
than a step of the lattice: there, points of the grid can come back as a neighbour.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from math import sin
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue, NumericalError, Refused
from trailveil.traces.trace import is_constant

if TYPE_CHECKING:
    from pyproj import Proj

T = TypeVar("T")

MICRO = 1_000_000
"""Micrometres in a metre, microdegrees in a degree."""

EXTENT = 480_000.0
"""Metres from the centre within which distances are right to SCALE_ERROR: 12 km less than it
allows, so that noise does not carry a fix out of the frame."""

WIDEST = 10_000_000.0
"""Metres from the centre within which a trace is accepted: a quarter of the globe's girth."""

_EXTENTS = (EXTENT, 1e6, 1.5e6, 2e6, 3e6, 4e6, 5e6, 7e6, WIDEST)
_ROOM = 12_000.0  # metres for noise
EARTH = 6_371_008.8
"""Metres of the mean radius: of a sphere, where a distance need not be exact."""

_LEAST_RADIUS = 6_356_752.0  # b, metres
_REACH = 15_000_000 * MICRO
"""Micrometres from the centre beyond which a lattice point is a mistake and no noise."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A local metric frame, centred on a whole degree; public.

    latitude: -90 to 90. longitude: -180 to 179. extent: metres from the centre within which its
    scale error holds. Raises InvalidValue for anything else.
    """

    latitude: int
    longitude: int
    extent: float = field(default=EXTENT, repr=False)

    SCALE_ERROR: ClassVar[float] = 1e-3
    """True distances within EXTENT grow in the frame by at most this fraction, and never shrink."""

    def __post_init__(self) -> None:
        if {type(self.latitude), type(self.longitude)} != {int}:
            raise InvalidValue(
                f"a frame must be centred on a whole degree, got {type(self.latitude).__name__} "
                f"and {type(self.longitude).__name__}: give integers"
            )
        if not (-90 <= self.latitude <= 90 and -180 <= self.longitude < 180):
            raise InvalidValue(
                "a frame must be centred within latitudes -90..90 and longitudes -180..179, got a "
                "centre outside: give whole degrees"
            )

    @property
    def scale_error(self) -> float:
        """True distances grow in the frame by at most this fraction, and never shrink."""
        if self.extent <= EXTENT:
            return self.SCALE_ERROR
        angle = (self.extent + _ROOM) / _LEAST_RADIUS
        return angle / sin(angle) - 1

    def to_lattice(self, positions: ArrayLike) -> NDArray[np.int64]:
        """Whole micrometres (n, 2), east and north of the centre, of positions (n, 2) in degrees.

        Positions are latitude and longitude. Each result is floor(x + 1/2), x in micrometres.
        Raises InvalidValue for positions that are not finite or not on the globe, NumericalError
        where PROJ fails.
        """
        degrees = _degrees(positions)
        east, north = _projection(self)(degrees[:, 1], degrees[:, 0])
        return _nearest(np.stack([east, north], axis=1) * MICRO)

    def in_degrees(self, places: ArrayLike) -> NDArray[np.float64]:
        """Latitude and longitude (n, 2) of places (n, 2) in metres of the frame, not rounded."""
        metres = np.asarray(places, dtype=np.float64)
        longitude, latitude = _projection(self)(metres[:, 0], metres[:, 1], inverse=True)
        return np.stack([latitude, longitude], axis=1)

    def to_degrees(self, lattice: ArrayLike) -> NDArray[np.int64]:
        """Microdegrees (n, 2), latitude and longitude, of lattice points (n, 2) in micrometres.

        The result lies on the global public grid of 1e-6 degree, by floor(x + 1/2), longitudes in
        [-180, 180) degrees. Raises InvalidValue for points over 15,000 km from the centre.
        """
        points = _lattice(lattice)
        longitude, latitude = _projection(self)(
            points[:, 0] / MICRO, points[:, 1] / MICRO, inverse=True
        )
        return microdegrees(np.stack([latitude, longitude], axis=1))


def frame_for(positions: ArrayLike) -> Frame:
    """The frame of positions (n, 2) in degrees. Raises as `placed` does."""
    return placed(positions)[0]


def placed(positions: ArrayLike, *, furthest: float = WIDEST) -> tuple[Frame, NDArray[np.int64]]:
    """The frame of positions (n, 2) in degrees, and as `Frame.to_lattice` has them in it.

    The frame is centred at the whole degree nearest the middle of positions (n, 2) in degrees.

    The middle is that of the box around the points in space, so neither the antimeridian nor a
    pole is special. The lattice points cannot be written: those of the latest positions that
    cannot be written either, as a trace has them, are kept, since much is asked of one trace.
    furthest: metres from the centre that they may reach. Raises InvalidValue for positions that are
    none, and Refused where they reach further.
    """
    frame, lattice, reach = _placed(positions)
    if reach > furthest:
        raise Refused(
            f"a trace must stay within {furthest / 1000:,.0f} km of the whole degree nearest its "
            "middle for metres to be right, got one that reaches further: split the file into parts"
        )
    return frame, lattice


def remembered(function: Callable[[ArrayLike], T]) -> Callable[[ArrayLike], T]:
    """The function, which is not computed again for the latest array that cannot be written."""
    latest: list[tuple[Callable[[], object], T]] = []

    @wraps(function)
    def of(array: ArrayLike) -> T:
        for known, value in latest:
            if known() is array:
                return value
        value = function(array)
        if isinstance(array, np.ndarray) and is_constant(array):
            latest[:] = [(weakref.ref(array), value)]
        return value

    return of


@remembered
def _placed(positions: ArrayLike) -> tuple[Frame, NDArray[np.int64], float]:
    """The frame, the lattice points, and how far they reach, metres."""
    degrees = _degrees(positions)
    if not len(degrees):
        raise InvalidValue("positions must not be empty, got none: give at least one fix")
    frame = _centred(degrees)
    lattice = frame.to_lattice(degrees)
    reach = float(np.max(np.hypot(*(lattice / MICRO).T)))
    frame = replace(frame, extent=next((size for size in _EXTENTS if reach <= size), WIDEST))
    lattice.flags.writeable = False
    return frame, lattice, reach


def microdegrees(positions: ArrayLike) -> NDArray[np.int64]:
    """Positions (n, 2) in degrees, to whole microdegrees (n, 2): floor(x + 1/2).

    Longitudes end in [-180, 180) degrees. Whole microdegrees divided by 1e6 come back unchanged.
    Raises InvalidValue for positions that are not finite or not on the globe.
    """
    grid = _nearest(_degrees(positions) * MICRO)
    grid[:, 1] = (grid[:, 1] + 180 * MICRO) % (360 * MICRO) - 180 * MICRO
    return grid


def _centred(degrees: NDArray[np.float64]) -> Frame:
    latitude, longitude = np.radians(degrees).T
    ring = np.cos(latitude)
    points = np.stack([ring * np.cos(longitude), ring * np.sin(longitude), np.sin(latitude)])
    east, north, up = (points.min(axis=1) + points.max(axis=1)) / 2
    middle = np.degrees([np.arctan2(up, np.hypot(east, north)), np.arctan2(north, east)])
    centre_latitude, centre_longitude = (int(x) for x in np.floor(middle + 0.5))
    if abs(centre_latitude) == 90:  # every longitude is the same place: choose one
        return Frame(centre_latitude, 0)
    return Frame(centre_latitude, (centre_longitude + 180) % 360 - 180)


@lru_cache(maxsize=64)
def _projection(frame: Frame) -> "Proj":
    from pyproj import Proj  # heavy, and only needed once there is a trace

    return Proj(proj="aeqd", lat_0=frame.latitude, lon_0=frame.longitude, ellps="WGS84")


def _nearest(values: NDArray[np.float64]) -> NDArray[np.int64]:
    if not np.isfinite(values).all():  # as an integer, infinity would be some place on the map
        raise NumericalError(
            "a projection must give finite numbers, got others: check the installation of pyproj"
        )
    return np.floor(values + 0.5).astype(np.int64)


def _degrees(positions: ArrayLike) -> NDArray[np.float64]:
    degrees = np.asarray(positions, dtype=np.float64)
    if degrees.ndim != 2 or degrees.shape[1] != 2:
        raise InvalidValue(
            f"positions must be (n, 2), got {degrees.shape}: a latitude and a longitude a row"
        )
    if not (np.abs(degrees) <= [90.0, 180.0]).all():
        raise InvalidValue(
            "positions must be latitudes within -90..90 and longitudes within -180..180, got "
            "others: clean the recording first"
        )
    return degrees


def _lattice(lattice: ArrayLike) -> NDArray[np.int64]:
    points = np.asarray(lattice)
    if points.dtype != np.int64 or points.ndim != 2 or points.shape[1] != 2:
        raise InvalidValue(
            f"lattice must be (n, 2) of int64, got {points.shape} of {points.dtype}: give whole "
            "micrometres"
        )
    if len(points) and max(-int(points.min()), int(points.max())) > _REACH:
        raise InvalidValue(
            "lattice must stay within 15,000 km of the centre, got a point further away: use noise "
            "of a sensible size"
        )
    return points


def metres_between(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far it is from positions (n, 2) in degrees to others, on a sphere, (n,)."""
    (begin, east), (end, west) = np.radians(before).T, np.radians(after).T
    across = np.sin((west - east) / 2) ** 2 * np.cos(begin) * np.cos(end)
    half = np.sqrt(np.sin((end - begin) / 2) ** 2 + across)
    return np.asarray(2 * EARTH * np.arcsin(np.minimum(half, 1.0)))
