"""Metres are right, rounding is exact, and the grid is where it should be.

The oracle is pyproj.Geod, which solves the geodesic problem directly and shares no code with the
projection but the ellipsoid.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyproj import Geod, Proj

from trailveil.errors import InvalidValue, NumericalError, Refused
from trailveil.traces.projection import EXTENT, MICRO, Frame, frame_for, microdegrees, placed

GEOD = Geod(ellps="WGS84")
FRAMES = [
    Frame(latitude, longitude)
    for latitude in (0, 40, 70, -55, 89, -89, 90, -90)
    for longitude in (0, 11, 179, -180)
]

OFF_POLES = [frame for frame in FRAMES if abs(frame.latitude) < 90]  # where east is a direction


Floats = NDArray[np.float64]


def from_place(latitude: float, longitude: float, distance: Floats, azimuth: Floats) -> Floats:
    """Positions (n, 2) at geodesic distances and azimuths from one place."""
    ones = np.ones(len(distance))
    east, north, _ = GEOD.fwd(longitude * ones, latitude * ones, azimuth, distance)
    return np.stack([north, east], axis=1)


def around(frame: Frame, distance: Floats, azimuth: Floats) -> Floats:
    """Positions (n, 2) at geodesic distances and azimuths from the centre of a frame."""
    return from_place(frame.latitude, frame.longitude, distance, azimuth)


def disc(frame: Frame, count: int = 200, radius: float = EXTENT, seed: int = 0) -> Floats:
    """Positions (n, 2) spread over the allowed extent, some of them on its edge."""
    random = np.random.default_rng(seed)
    distance = radius * np.sqrt(random.uniform(0, 1, count))
    distance[: count // 4] = radius
    return around(frame, distance, random.uniform(-180, 180, count))


def metres(lattice: NDArray[np.int64]) -> Floats:
    return lattice / MICRO


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_a_true_displacement_has_the_same_length_in_the_frame(frame: Frame) -> None:
    positions = disc(frame)
    azimuth = np.random.default_rng(1).uniform(-180, 180, len(positions))
    length = np.full(len(positions), 100.0)
    longitude, latitude, _ = GEOD.fwd(positions[:, 1], positions[:, 0], azimuth, length)
    moved = frame.to_lattice(np.stack([latitude, longitude], axis=1))
    ratio = np.hypot(*metres(moved - frame.to_lattice(positions)).T) / 100.0
    assert ratio.min() >= 1 - 1e-7  # never shorter, but for the rounding to micrometres
    assert ratio.max() <= 1 + Frame.SCALE_ERROR


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_a_displacement_in_the_frame_has_that_length_in_truth(frame: Frame) -> None:
    lattice = frame.to_lattice(disc(frame))
    angle = np.random.default_rng(2).uniform(0, 2 * np.pi, len(lattice))
    step = 100.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    moved = lattice + np.round(step * MICRO).astype(np.int64)
    ends = [frame.to_degrees(points) / MICRO for points in (lattice, moved)]
    _, _, length = GEOD.inv(ends[0][:, 1], ends[0][:, 0], ends[1][:, 1], ends[1][:, 0])
    grid = 0.16  # two ends, each up to 0.079 m off the grid of 1e-6 degree
    assert np.min(length) >= 100.0 / (1 + Frame.SCALE_ERROR) - grid
    assert np.max(length) <= 100.0 + grid


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_noise_has_the_same_spread_north_and_east_in_true_metres(frame: Frame) -> None:
    noise = np.random.default_rng(3).normal(0, 100.0, (4000, 2))
    home = around(frame, np.array([30_000.0]), np.array([35.0]))
    lattice = frame.to_lattice(home) + np.round(noise * MICRO).astype(np.int64)
    released = frame.to_degrees(lattice) / MICRO
    start = np.broadcast_to(home, released.shape)
    azimuth, _, length = GEOD.inv(start[:, 1], start[:, 0], released[:, 1], released[:, 0])
    spread = [np.std(length * part(np.radians(azimuth))) for part in (np.sin, np.cos)]
    assert spread == pytest.approx([100.0, 100.0], rel=0.05)


@pytest.mark.parametrize("frame", OFF_POLES, ids=str)
def test_axes_point_east_and_north_at_the_centre(frame: Frame) -> None:
    east, north = metres(
        frame.to_lattice(around(frame, np.array([1000.0, 1000.0]), np.array([90.0, 0.0])))
    )
    assert east == pytest.approx([1000.0, 0.0], abs=1e-3)
    assert north == pytest.approx([0.0, 1000.0], abs=1e-5)


def test_the_extent_keeps_the_scale_with_room_for_noise() -> None:
    # The bound of the module's docstring, (s / b) / sin(s / b), at the extent and 12 km beyond.
    angle = np.array([EXTENT, EXTENT + 12_000.0]) / GEOD.b
    assert (angle / np.sin(angle) - 1 <= Frame.SCALE_ERROR).all()
    beyond = (EXTENT + 13_000.0) / GEOD.b
    assert beyond / np.sin(beyond) - 1 > Frame.SCALE_ERROR


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_the_bound_on_the_scale_holds_for_the_factors_that_proj_computes(frame: Frame) -> None:
    positions = disc(frame, count=60)
    projection = Proj(proj="aeqd", lat_0=frame.latitude, lon_0=frame.longitude, ellps="WGS84")
    factors = projection.get_factors(positions[:, 1], positions[:, 0])
    distance = np.hypot(*metres(frame.to_lattice(positions)).T)
    bound = distance / GEOD.b / np.sin(distance / GEOD.b)
    slack = 1e-7  # of PROJ's numerical derivatives
    assert np.all(factors.tissot_semimajor <= bound + slack)
    assert np.all(factors.tissot_semiminor >= 1 - slack)


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_a_lattice_point_survives_degrees_in_float64(frame: Frame) -> None:
    lattice = frame.to_lattice(disc(frame))
    projection = Proj(proj="aeqd", lat_0=frame.latitude, lon_0=frame.longitude, ellps="WGS84")
    degrees = projection(metres(lattice)[:, 0], metres(lattice)[:, 1], inverse=True)
    back = np.stack(projection(*degrees), axis=1) * MICRO
    assert np.max(np.abs(back - lattice)) < 0.02  # micrometres: far from the half that would matter


@given(
    frame=st.sampled_from(OFF_POLES),
    seed=st.integers(0, 2**32 - 1),
)
def test_points_of_the_grid_are_fixed_points(frame: Frame, seed: int) -> None:
    # Within 100 km of a pole a step of longitude can be less than a lattice step: excluded here.
    near = 480_000.0 if abs(frame.latitude) < 80 else 100_000.0
    grid = microdegrees(disc(frame, count=20, radius=near, seed=seed))
    assert (frame.to_degrees(frame.to_lattice(grid / MICRO)) == grid).all()


def test_rounding_is_to_the_nearest_and_halves_go_up() -> None:
    degrees = np.array([[0.5e-6, -0.5e-6], [1.5e-6, -1.5e-6], [1.4999e-6, -1.4999e-6]])
    assert microdegrees(degrees).tolist() == [[1, 0], [2, -1], [1, -1]]


def test_longitudes_of_the_grid_end_before_180() -> None:
    degrees = np.array([[0, 180.0], [0, -180.0], [0, 179.9999999], [0, 179.9999994]])
    assert microdegrees(degrees)[:, 1].tolist() == [-(180 * MICRO)] * 3 + [180 * MICRO - 1]


@given(st.integers(-180 * MICRO, 180 * MICRO - 1), st.integers(-90 * MICRO, 90 * MICRO))
def test_whole_microdegrees_survive_floating_point(longitude: int, latitude: int) -> None:
    grid = np.array([[latitude, longitude]])
    assert (microdegrees(grid / MICRO) == grid).all()


@pytest.mark.parametrize("longitude", [179.9, -179.95])
def test_the_antimeridian_is_no_edge(longitude: float) -> None:
    positions = np.array([[10.0, longitude], [10.2, -longitude]])
    frame = frame_for(positions)
    assert frame == Frame(10, -180)
    apart = np.hypot(*metres(np.diff(frame.to_lattice(positions), axis=0))[0])
    _, _, true = GEOD.inv(longitude, 10.0, -longitude, 10.2)
    assert apart == pytest.approx(true, rel=1e-3)
    assert (frame.to_degrees(frame.to_lattice(positions)) == microdegrees(positions)).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_trace_around_a_pole_is_framed_there(sign: int) -> None:
    positions = np.array([[sign * 89.9, longitude] for longitude in (0.0, 90.0, 180.0, -90.0)])
    frame = frame_for(positions)
    assert frame == Frame(sign * 90, 0)
    assert np.hypot(*metres(frame.to_lattice(positions)).T) == pytest.approx(11_169, abs=1)


@given(latitude=st.floats(-90, 90), longitude=st.floats(-180, 180), seed=st.integers(0, 2**32 - 1))
def test_a_trace_of_a_day_always_has_a_frame_nearby(
    latitude: float, longitude: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    distance, azimuth = random.uniform(0, 3e5, 20), random.uniform(-180, 180, 20)
    frame = frame_for(from_place(latitude, longitude, distance, azimuth))
    _, _, away = GEOD.inv(frame.longitude, frame.latitude, longitude, latitude)
    assert away < 300_000 + 80_000


def test_every_longitude_of_a_pole_is_one_frame() -> None:
    for longitude in (-170.0, 10.0, 100.0):
        assert frame_for(np.array([[89.9, longitude], [89.95, longitude]])) == Frame(90, 0)


@pytest.mark.parametrize("latitude", [0.0, 52.0, -89.0])
def test_a_trace_that_extends_too_far_is_refused(latitude: float) -> None:
    centre = Frame(round(latitude), 20)
    angles = np.array([90.0, -90.0])
    frame_for(around(centre, np.array([470_000.0, 470_000.0]), angles))
    wide = around(centre, np.array([560_000.0, 560_000.0]), angles)
    with pytest.raises(Refused, match=r"within 480 km.*split the file") as caught:
        placed(wide, furthest=EXTENT)
    assert "\n" not in str(caught.value)
    with pytest.raises(Refused, match="within 10,000 km"):
        frame_for([[90.0, 0.0], [-19.0, 0.0], [-19.0, 120.0], [-19.0, -120.0]])


@pytest.mark.parametrize("latitude", [0, 52, -89])
@pytest.mark.parametrize("reach", [600e3, 999e3, 1.9e6, 4.9e6, 9.5e6])
def test_a_wide_frame_states_a_bound_that_holds_and_keeps_each_lattice_point(
    latitude: int, reach: float
) -> None:
    """True distances of 200 m grow by no more than is stated, and never shrink, wherever."""
    angles = np.linspace(-180.0, 150.0, 12)
    positions = around(Frame(latitude, 20), np.full(12, reach), angles)
    frame, lattice = placed(positions)
    assert reach <= frame.extent
    assert frame.scale_error > Frame.SCALE_ERROR
    for azimuth in np.linspace(0.0, 170.0, 18):
        longitudes, latitudes, _ = GEOD.fwd(
            positions[:, 1], positions[:, 0], np.full(12, azimuth), np.full(12, 200.0)
        )
        moved = frame.to_lattice(np.column_stack([latitudes, longitudes]))
        length = np.hypot(*metres(moved - lattice).T)
        assert np.all(length >= 200.0 * (1 - 1e-6))
        assert np.all(length <= 200.0 * (1 + frame.scale_error))
    grid = frame.to_degrees(lattice)
    if abs(latitude) < 80:
        assert (grid == microdegrees(positions)).all()
    assert repr(frame) == f"Frame(latitude={frame.latitude}, longitude={frame.longitude})"


def test_the_bound_of_a_wide_frame_is_that_of_the_docstring() -> None:
    for extent, error in ((1e6, 0.0043), (2e6, 0.0170), (5e6, 0.111), (10e6, 0.576)):
        assert Frame(0, 0, extent).scale_error == pytest.approx(error, abs=6e-3 * (1 + error))


@pytest.mark.parametrize("centre", [(91, 0), (-91, 0), (0, 180), (0, -181)])
def test_a_frame_lies_on_the_globe(centre: tuple[int, int]) -> None:
    with pytest.raises(InvalidValue, match="centred within"):
        Frame(*centre)


def test_a_centre_is_whole_degrees() -> None:
    with pytest.raises(InvalidValue, match="whole degree, got float and int"):
        Frame(48.5, 11)  # type: ignore[arg-type]  # wrong on purpose


def test_failures_of_proj_are_no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proj, "__call__", lambda *_, **__: (np.array([np.inf]), np.array([0.0])))
    with pytest.raises(NumericalError, match="finite numbers"):
        Frame(0, 0).to_lattice([[1.0, 1.0]])


@pytest.mark.parametrize(
    "positions", [[[91.0, 0.0]], [[np.nan, 0.0]], [[0.0, np.inf]], [[0.0, 181.0]], [0.0, 1.0]]
)
def test_positions_off_the_globe_are_refused(positions: list[list[float]]) -> None:
    for use in (frame_for, Frame(0, 0).to_lattice, microdegrees):
        with pytest.raises(InvalidValue, match="positions must be"):
            use(positions)


def test_a_frame_needs_a_fix() -> None:
    with pytest.raises(InvalidValue, match="at least one fix"):
        frame_for(np.empty((0, 2)))


def test_lattice_points_are_whole_and_near() -> None:
    frame = Frame(0, 0)
    assert frame.to_degrees(np.array([[0, 0], [-(10**6), 10**6]])).tolist() == [[0, 0], [9, -9]]
    assert frame.to_degrees(np.empty((0, 2), dtype=np.int64)).shape == (0, 2)
    with pytest.raises(InvalidValue, match="of int64"):
        frame.to_degrees(np.array([[0.0, 1.0]]))
    for far in (15 * 10**12 + 1, -(15 * 10**12) - 1, -(2**63)):
        with pytest.raises(InvalidValue, match="15,000 km"):
            frame.to_degrees(np.array([[far, 0]]))


def test_the_latest_places_are_kept_only_where_they_cannot_change() -> None:
    first, second = np.array([[45.7, 6.9], [45.8, 6.9]]), np.array([[45.7, 7.9], [45.8, 7.9]])
    for positions in (first, second):
        positions.flags.writeable = False
    lattice = placed(first)[1]
    assert placed(first)[1] is lattice
    assert not lattice.flags.writeable
    np.testing.assert_array_equal(placed(second)[1], Frame(46, 8).to_lattice(second))
    np.testing.assert_array_equal(placed(first)[1], lattice)
    changing = first.copy()
    before = placed(changing)[1]
    changing[0, 0] = 45.75
    assert placed(changing)[1][0, 1] != before[0, 1]
    view = changing[:]  # cannot be written by itself, and changes all the same
    view.flags.writeable = False
    before = placed(view)[1]
    changing[0, 0] = 45.76
    assert placed(view)[1][0, 1] != before[0, 1]
