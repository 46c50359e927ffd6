"""Independent noise hides the grid: the bounds of docs/paper.md, and what releases have of it."""

import io
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from tests.readings import readings_request
from tests.rides import ride
from tests.structured import rounded
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, IntegratedOU, Matern32, White
from trailveil.privacy.adversaries import DEFAULT
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.release.drawing import draw, noise_of
from trailveil.release.places import Common
from trailveil.release.plan import Plan, with_common
from trailveil.release.protect import protect
from trailveil.release.readings_release import draw_readings, plan_readings
from trailveil.release.request import Method, Request
from trailveil.traces.formats import read, write
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.grid import LEAST
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS

SEED = bytes(range(32))
WRITTEN = [row.suffixes[0] for row in FORMATS if row.write is not None]


@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.75, 1.0, 1.5])
def test_residues_of_independent_noise_are_uniform_to_the_bound(ratio: float) -> None:
    """The density modulo one step, summed directly; at one step it is 1 to within 5.4e-9."""
    u = np.linspace(0, 1, 200)
    shifted = u[:, None] - np.arange(-40, 41)
    density = np.exp(-(shifted**2) / (2 * ratio**2)).sum(axis=1) / (ratio * np.sqrt(2 * np.pi))
    q = np.exp(-2 * np.pi**2 * ratio**2)
    bound = 2 * q / (1 - q)
    off = float(np.max(np.abs(density - 1)))
    assert off <= bound + 1e-13
    assert off >= 2 * q * (1 - q**3) - 1e-13  # and it is no looser than that
    if ratio == 1.0:
        assert bound == pytest.approx(5.35e-9, rel=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_a_prior_on_a_grid_tells_as_the_continuous_one_to_the_bound(seed: int) -> None:
    """Two fixes: sums over all grid points near, against the integral in closed form."""
    random = np.random.default_rng(seed)
    step, width, sigma = 1.0, float(random.uniform(0.6, 1.5)), float(random.uniform(0.6, 1.5))
    root, columns = 3 * random.standard_normal((2, 2)), 3 * random.standard_normal((2, 1))
    prior = root @ root.T + width**2 * np.eye(2)
    noise = columns @ columns.T + sigma**2 * np.eye(2)
    released = 5 * random.standard_normal(2)
    axis = np.arange(-120, 121) * step
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    on_grid = step**2 * np.sum(_density(points, prior) * _density(released - points, noise))
    on_grid /= step**2 * np.sum(_density(points, prior))
    continuous = float(_density(released[None], prior + noise)[0])
    c = (1 / width**2 + 1 / sigma**2) ** -0.5
    k = np.arange(1, 30)
    theta = 1 + 2 * float(np.sum(np.exp(-2 * np.pi**2 * k**2 * c**2 / step**2)))
    d = theta**2 - 1
    assert (1 - d) / (1 + d) - 1e-12 <= on_grid / continuous <= (1 + d) / (1 - d) + 1e-12


def _density(points: FloatArray, covariance: FloatArray) -> FloatArray:
    inverse = np.linalg.inv(covariance)
    size = np.exp(-0.5 * np.einsum("na,ab,nb->n", points, inverse, points))
    return np.asarray(size / (2 * np.pi * np.sqrt(np.linalg.det(covariance))))


@lru_cache
def planned(decimals: int) -> Plan:
    """One time in the middle of six hours: noise near it, and none far off."""
    trace = rounded(ride(720, 30.0, seed=2), decimals)
    at = int(trace.times[360])
    return protect(trace, Request((Stretch("stated", at, at),), method=Method.NOISE))


@pytest.mark.parametrize(("decimals", "metres"), [(4, 11.17), (5, 2.0), (7, 2.0)])
def test_every_fix_with_noise_has_independent_noise_and_no_other(
    decimals: int, metres: float
) -> None:
    mechanism = planned(decimals).mechanism
    moved = np.any(mechanism.factor != 0, axis=1)
    assert 100 < moved.sum() < 700
    assert np.sqrt(mechanism.independent_variances[moved]) == pytest.approx(metres, rel=1e-9)
    assert not np.any(mechanism.independent_variances[~moved])


def test_the_least_is_a_third_of_a_metre_where_a_prior_has_less_measurement_noise() -> None:
    trace = rounded(ride(60, 30.0), 7)
    at = int(trace.times[30])
    kernel = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(0.05)
    request = Request((Stretch("stated", at, at),), method=Method.NOISE, kernel=kernel)
    plan = protect(trace, request)
    assert float(np.sqrt(plan.mechanism.independent_variances.max())) == LEAST


def test_drawn_noise_has_its_independent_part_and_is_the_same_again() -> None:
    mechanism = planned(4).mechanism
    moved = np.any(mechanism.factor != 0, axis=1)
    bare = replace(mechanism, independent=None)
    part = noise_of(mechanism, SEED, "east") - noise_of(bare, SEED, "east")
    assert not np.any(part[~moved])
    assert np.std(part[moved]) == pytest.approx(11.17, rel=0.2)  # 4 sigma of some 300 draws
    assert np.array_equal(noise_of(mechanism, SEED, "east"), noise_of(mechanism, SEED, "east"))
    assert not np.array_equal(
        part, noise_of(mechanism, SEED, "north") - noise_of(bare, SEED, "north")
    )


@pytest.mark.parametrize("decimals", [3, 4, 5])
@pytest.mark.parametrize("suffix", WRITTEN)
def test_no_released_digit_is_finer_than_recorded(
    tmp_path: Path, suffix: str, decimals: int
) -> None:
    plan = planned(decimals)
    released, grid = draw(plan, SEED)
    out = io.BytesIO()
    write(released, out, suffix, grid=grid)
    path = tmp_path / f"released{suffix}"
    path.write_bytes(out.getvalue())
    positions = read(path).positions
    # A FIT file has the nearest semicircle, of 180 / 2^31 degrees.
    digits = 90 / 2**31 + 1e-12 if suffix == ".fit" else 1e-12
    assert positions == pytest.approx(np.round(positions, decimals), abs=digits)
    whole = np.round(positions * 10**decimals).astype(np.int64)
    assert np.mean(np.any(whole % 10, axis=1)) > 0.9  # and as fine as recorded
    moved = np.any(plan.mechanism.factor != 0, axis=1)
    assert positions[~moved] == pytest.approx(plan.trace.positions[~moved], abs=digits)
    assert np.mean(np.any(positions[moved] != plan.trace.positions[moved], axis=1)) > 0.9


@pytest.mark.parametrize("suffix", [".gpx", ".csv", ".kml", ".geojson"])
def test_released_numbers_have_the_recorded_decimals_in_text(suffix: str) -> None:
    released, grid = draw(planned(4), SEED)
    out = io.BytesIO()
    write(released, out, suffix, grid=grid)
    text = out.getvalue().decode()
    assert str(released.positions[0, 0].round(4)) in text
    micro = f"{released.positions[0, 0]:.6f}"
    assert micro not in text


@pytest.mark.parametrize(("step", "decimals"), [(1e-3 / 60, 4), (1e-4 / 60, 5)])
def test_minutes_are_released_in_coarser_decimals_moved_or_not(step: float, decimals: int) -> None:
    """No grid point of one kind is left out: who looks at digits cannot tell which were moved."""
    trace = ride(720, 30.0, seed=2)
    trace = replace(trace, positions=np.round(trace.positions / step) * step)
    at = int(trace.times[360])
    plan = protect(trace, Request((Stretch("stated", at, at),), method=Method.NOISE))
    released, grid = draw(plan, SEED)
    assert not np.any(grid % 10 ** (6 - decimals))
    moved = np.any(plan.mechanism.factor != 0, axis=1)
    digits = [np.unique(grid[part] // 10 ** (6 - decimals) % 10) for part in (moved, ~moved)]
    assert digits[0].tolist() == digits[1].tolist() == list(range(10))
    off = np.abs(released.positions - plan.trace.positions)[~moved]
    assert np.max(off) <= 0.5 * 10.0**-decimals + 1e-9


def test_noise_that_visits_share_has_independent_noise_as_well() -> None:
    trace = rounded(ride(60, 30.0), 5)
    columns = np.zeros((60, 2))
    columns[20:40] = 100.0
    nowhere = np.zeros(60, dtype=np.bool_)
    shared = Common(b"draw", columns, np.ones((2, 2)), nowhere, (), DEFAULT)
    at = int(trace.times[30])
    stretch = Stretch("stated", at, at)
    plan = protect(trace, Request((stretch,), method=Method.NOISE))
    bare = replace(plan, mechanism=no_noise(trace.seconds))
    variances = with_common(bare, [shared]).mechanism.independent_variances
    assert np.flatnonzero(variances).tolist() == list(range(20, 40))
    assert np.all(variances[20:40] == 4.0)


def test_more_is_hidden_only_where_there_is_noise() -> None:
    factor = np.array([[0.0], [3.0], [0.0], [1e-9]])
    mechanism = Mechanism(np.arange(4.0), factor).hiding(2.0)
    assert mechanism.independent_variances.tolist() == [0.0, 4.0, 0.0, 4.0]
    assert (
        mechanism.hiding(1.0).independent_variances.tolist()
        == mechanism.independent_variances.tolist()
    )
    uniform = replace(no_noise(np.arange(3.0)), floor=1.0).hiding(2.0)
    assert uniform.variances.tolist() == [4.0, 4.0, 4.0]
    withheld = mechanism.withholding(np.array([False, True, False, False]))
    assert withheld.independent_variances.tolist() == [0.0, 0.0, 0.0, 4.0]


@pytest.mark.parametrize("step", [0.1, 0.01, 0.0625])
def test_readings_have_noise_of_a_step_and_no_finer_digit(step: float) -> None:
    random = np.random.default_rng(3)
    times = np.arange(300) * 600 * NANOSECONDS
    values = np.round((20 + np.cumsum(0.1 * random.standard_normal(300))) / step) * step
    readings = Readings(times, values, "degC")
    kernel = Matern32(3600.0, 2.0) + Constant(100.0) + White(0.02)
    at = int(times[150])
    request = readings_request((Stretch("stated", at, at),), 2.0, kernel)
    readings_plan = plan_readings(readings, request)
    moved = np.any(readings_plan.mechanism.factor != 0, axis=1)
    assert np.sqrt(readings_plan.mechanism.independent_variances[moved]) == pytest.approx(
        max(step, 0.02)
    )
    _, grid = draw_readings(readings_plan, SEED)
    assert not np.any(grid % round(step * 1e6))
    far = ~moved
    assert (grid[far] / 1e6) == pytest.approx(values[far])
