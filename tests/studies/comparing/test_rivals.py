"""Each mechanism has the property that its paper states. Chances of false alarms: 1e-4 each."""

from dataclasses import replace

import numpy as np
import pytest
from pyproj import Geod
from scipy.spatial.distance import cdist
from scipy.stats import expon, gamma, kstest, laplace

from tests.studies.comparing.cases import at_latitude, drawn, random, walk
from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.comparing import rivals
from trailveil.studies.comparing.cases import Case, Sighting
from trailveil.traces.trace import Trace

CHANCE = 1e-4
WGS84 = Geod(ellps="WGS84")


def geodesics(first: Trace, other: Trace) -> FloatArray:
    """Metres between fixes, by another way than the local frame."""
    a, b = first.positions, other.positions
    return np.asarray(WGS84.inv(a[:, 1], a[:, 0], b[:, 1], b[:, 0])[2])


@pytest.mark.parametrize("latitude", [0, 60, -75])
def test_planar_laplace_has_a_gamma_radius_in_metres_at_any_latitude(latitude: int) -> None:
    case = walk(4000, latitude=latitude)
    released = rivals.planar_laplace(case, random("laplace"), epsilon=0.02)
    apart = geodesics(case.trace, released.trace)
    # The law is right to rounding, and metres to 0.1 %: 4,000 draws cannot tell that.
    assert kstest(apart, gamma(2, scale=50.0).cdf).pvalue > CHANCE
    angles = np.arctan2(*(Sighting.of(case, released).metres - case.metres).T)
    assert kstest(angles, "uniform", (-np.pi, 2 * np.pi)).pvalue > CHANCE
    assert released.noise is not None
    assert released.noise.floor == 3 * 50.0**2


def test_correlated_laplace_is_laplace_and_correlated_as_stated() -> None:
    cases = [walk(2, seed=i, step=30.0) for i in range(4000)]
    offsets = np.array(
        [
            Sighting.of(
                case, rivals.correlated_laplace(case, random(f"clm {i}"), epsilon=0.02, memory=60.0)
            ).metres
            - case.metres
            for i, case in enumerate(cases)
        ]
    )[:, :, 0]
    assert kstest(offsets[:, 0], laplace(scale=50.0).cdf).pvalue > CHANCE
    found = np.corrcoef(offsets.T)[0, 1]
    # exp(-30 / 60) = 0.607; its estimate of heavy tails has a deviation of about 0.025.
    assert found == pytest.approx(np.exp(-0.5), abs=0.1)


def test_correlated_laplace_says_its_own_covariance() -> None:
    case = walk(30, step=20.0)
    noise = rivals.correlated_laplace(case, random("clm"), epsilon=0.1, memory=40.0).noise
    assert noise is not None
    apart = np.abs(case.seconds[:, None] - case.seconds)
    assert noise.covariance() == pytest.approx(2 * 10.0**2 * np.exp(-apart / 40.0))


def test_speed_smoothing_has_equal_distances_and_equal_durations() -> None:
    (case,) = drawn(1)
    released = rivals.promesse(case, random("promesse"), metres=150.0)
    points = Sighting.of(case, released).metres
    away = np.hypot(*np.diff(points, axis=0).T)
    assert away == pytest.approx(150.0, abs=0.2)  # microdegrees
    assert np.ptp(np.diff(released.times)) <= 2
    # The first point is left out, and the last, so that no release begins or ends at home.
    assert np.hypot(*(points[0] - case.metres[0])) == pytest.approx(150.0, abs=0.2)
    assert np.hypot(*(points[-1] - case.metres[-1])) > 149.0
    # All of it is near the way, and so is all of the way near it.
    apart = cdist(points, case.metres)
    assert apart.min(axis=1).max() < 150.0
    assert np.median(apart.min(axis=0)) < 150.0


def test_speed_smoothing_is_that_of_a_straight_way() -> None:
    """By hand: 1 km in 100 steps of 10 m, with a stay in the middle that no time shows."""
    east = np.concatenate(
        [np.arange(0.0, 500.0, 10.0), np.full(50, 500.0), np.arange(500, 1011, 10)]
    )
    case = at_latitude(46, np.column_stack([east, np.zeros(east.size)]))
    released = rivals.promesse(case, random("straight"), metres=100.0)
    points = Sighting.of(case, released).metres[:, 0]
    assert points == pytest.approx(np.arange(100.0, 1000.0, 100.0), abs=0.2)
    seconds = (released.times - case.trace.times[0]) / 1e9
    # A fix is 10 s and 10 m, and rounding decides which is the first beyond.
    assert seconds == pytest.approx(np.linspace(100.0, 1400.0, 9), abs=11.0)


def test_speed_smoothing_refuses_who_stays() -> None:
    with pytest.raises(Refused, match="must have a way of three times"):
        rivals.promesse(at_latitude(46, np.zeros((20, 2))), random("stays"))


def test_downsampling_keeps_the_first_fix_of_each_period() -> None:
    case = walk(100, step=7.0)
    released = rivals.downsampling(case, random("down"), seconds=60.0)
    expected = [next(t for t in case.seconds if t >= 60 * k) for k in range(12)]
    assert released.times.tolist() == [round(t * 1e9) for t in expected]


def test_truncation_has_so_many_decimals_and_says_its_error() -> None:
    case = walk(2000, latitude=60)
    released = rivals.truncation(case, random("round"), decimals=2)
    assert np.array_equal(released.trace.positions, np.round(case.trace.positions, 2))
    assert released.noise is not None
    off = Sighting.of(case, released).metres - case.metres
    # A walk visits few cells, so the mean square is not exactly that of an even error.
    assert np.mean(off**2) == pytest.approx(released.noise.floor, rel=0.5)


def test_suppression_leaves_out_the_time_around_a_secret() -> None:
    (case,) = drawn(1)
    released = Sighting.of(case, rivals.suppression(case, random("cut"), seconds=120.0))
    away = np.min([np.maximum(b - case.seconds, case.seconds - e) for b, e in case.spans], axis=0)
    assert np.array_equal(released.seconds, case.seconds[away > 120.0])


def zone(case: Case, released: Trace) -> FloatArray:
    inside = ~np.isin(case.trace.times, released.times)
    return case.metres[inside]


def test_a_zone_is_a_circle_around_the_place() -> None:
    case = walk()
    released = rivals.zones(case, random("zone"), radius=100.0)
    apart = np.hypot(*(case.metres - case.truths[0]).T)
    assert np.array_equal(np.isin(case.trace.times, released.times), apart > 100.0)


def test_a_shifted_zone_holds_the_place_and_is_centred_evenly() -> None:
    case = at_latitude(46, np.column_stack([np.linspace(-500, 500, 2001), np.zeros(2001)]))
    middles = []
    for i in range(400):
        of_person = replace(case, person=f"person {i}")
        released = rivals.shifted_zones(of_person, random("shift"), radius=100.0)
        withheld = zone(case, released)
        assert np.any(np.all(withheld == case.truths[0], axis=1))
        middles.append(withheld[:, 0].mean())
    # East of a point of an even disk: density 2 sqrt(1 - x^2) / pi, of deviation r / 2.
    assert np.std(middles) == pytest.approx(50.0, rel=0.15)
    assert np.mean(middles) == pytest.approx(0.0, abs=10.0)


def test_a_shifted_zone_is_the_same_on_all_days() -> None:
    case = walk()
    days = [rivals.shifted_zones(case, random(f"day {i}"), radius=150.0) for i in range(2)]
    assert np.array_equal(days[0].times, days[1].times)


def test_zones_that_leave_nothing_are_refused() -> None:
    with pytest.raises(Refused, match="must leave two fixes"):
        rivals.zones(walk(), random("all"), radius=1e6)


def test_nothing_and_all() -> None:
    case = walk()
    assert len(rivals.nothing(case, random("none")).trace) == 0
    assert rivals.identity(case, random("all")) is case.trace


@pytest.mark.parametrize(
    ("mechanism", "wrong"),
    [
        (rivals.planar_laplace, {"epsilon": 0.0}),
        (rivals.correlated_laplace, {"memory": -1.0}),
        (rivals.promesse, {"metres": 0.0}),
        (rivals.downsampling, {"seconds": 0.0}),
        (rivals.truncation, {"decimals": 9}),
        (rivals.zones, {"radius": 0.0}),
    ],
)
def test_wrong_parameters_are_named(mechanism: object, wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(InvalidValue, match=f"{name} must be"):
        mechanism(walk(), random("wrong"), **wrong)  # type: ignore[operator]  # one of several


def test_an_exponential_is_what_squares_of_two_normals_are() -> None:
    """The step on which the correlated Laplace noise rests."""
    normals = random("squares").standard_normal((2, 20_000))
    assert kstest(np.sum(normals**2, axis=0) / 2, expon.cdf).pvalue > CHANCE
