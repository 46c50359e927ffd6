"""What is released is the recording plus noise as designed, on a lattice and then on a grid."""

import hashlib
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trailveil.kinds import DesignFor

from tests.rides import ride
from trailveil.adversaries import Named
from trailveil.adversary import exposures, knows_a_point, stood_still
from trailveil.design.closed_form import least_noise
from trailveil.drawing import draw, noise_of, on_lattice
from trailveil.errors import InvalidValue, Refused
from trailveil.guarantee import mu_for
from trailveil.kernels import RBF, Constant, IntegratedOU, White
from trailveil.loss import loss_matrix
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import Prior
from trailveil.projection import MICRO, Frame
from trailveil.release import Noise, Plan, Request, identity, plan
from trailveil.secrets import basic, stay, window_mean
from trailveil.selection import Stretch
from trailveil.trace import NANOSECONDS, Trace

TRACE = ride(60, 20.0, still=(20, 35))
SEED = bytes(range(32))


def stretch(trace: Trace, first: int, last: int) -> Stretch:
    return Stretch("x", int(trace.times[first]), int(trace.times[last]))


def protected(trace: Trace = TRACE) -> tuple[Stretch, ...]:
    return stretch(trace, 0, 0), stretch(trace, 20, 35), stretch(trace, -1, -1)


# Most of what is tested does not depend on whom the noise is made against; few adversaries are
# quick.
STILL = (Named.PLAIN, Named.STILL)
MADE = plan(TRACE, Request(protected(), who=STILL))


def seed(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def deviations(draws: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Sample covariances of draws (N, n) about 0 less Gamma, in their own standard deviations.

    Var of a sample covariance: (Gamma_ii Gamma_jj + Gamma_ij^2) / N.
    """
    spread = np.sqrt(np.outer(np.diag(gamma), np.diag(gamma)) + gamma**2)
    found = draws.T @ draws / len(draws)
    return np.asarray((found - gamma) / spread * np.sqrt(len(draws)))


# Of 100 entries, each nearly normal at these numbers of draws, one strays by 6 deviations with a
# probability of 2e-7: the false alarm of each of the next two tests, were its seeds drawn anew.
STRAY = 6.0


@pytest.mark.slow
def test_the_covariance_of_noises_is_gamma() -> None:
    times = np.arange(8.0)
    factor = np.random.default_rng(1).normal(0, 300, (8, 2))
    mechanism = Mechanism(times, factor, 400.0)
    draws = [
        [noise_of(mechanism, seed(i), axis) for axis in ("east", "north")] for i in range(20_000)
    ]
    east, north = np.array(draws).swapaxes(0, 1)
    gamma = mechanism.covariance()
    assert np.abs(deviations(east, gamma)).max() < STRAY
    assert np.abs(deviations(north, gamma)).max() < STRAY
    both = np.block([[gamma, 0 * gamma], [0 * gamma, gamma]])
    assert np.abs(deviations(np.hstack([east, north]), both)).max() < STRAY
    means = east.mean(axis=0) / np.sqrt(np.diag(gamma) / len(east))
    assert np.abs(means).max() < STRAY


@pytest.mark.slow
def test_the_covariance_of_what_is_released_is_gamma() -> None:
    trace = ride(6, 60.0)
    made = plan(trace, Request((stretch(trace, 1, 3),), withhold=0.0))
    moved = []
    for i in range(5_000):
        _, grid = draw(made, seed(i))
        moved.append(made.frame.to_lattice(grid / MICRO) - made.lattice[made.mechanism.rows])
    metres = np.array(moved) / MICRO
    # The grid of 1e-6 degree adds 0.11 m north and 0.07 m east, evenly spread.
    gamma = made.mechanism.covariance() + 0.001 * np.eye(made.mechanism.rows.size)
    assert np.abs(deviations(metres[:, :, 0], gamma)).max() < STRAY
    assert np.abs(deviations(metres[:, :, 1], gamma)).max() < STRAY


def test_noise_meets_coordinates_as_integers() -> None:
    noise = np.column_stack([noise_of(MADE.mechanism, SEED, axis) for axis in ("east", "north")])
    exact = [
        [floor(Fraction(int(x)) + Fraction(float(g * MICRO)) + Fraction(1, 2)) for x, g in pairs]
        for pairs in (zip(*one, strict=True) for one in zip(MADE.lattice, noise, strict=True))
    ]
    _, grid = draw(MADE, SEED)
    assert np.array_equal(grid, MADE.frame.to_degrees(np.array(exact, dtype=np.int64)))


@given(st.integers(-(10**13), 10**13), st.integers(-(10**12), 10**12), st.integers(-3, 3))
def test_rounding_noise_is_rounding_the_sum(place: int, whole: int, eighths: int) -> None:
    """For noise of whole micrometres and eighths of one, which are exact in floating point."""
    micrometres = whole + Fraction(eighths, 8) + Fraction(1, 2)
    metres = np.array([float(micrometres) / MICRO])
    if Fraction(float(metres[0] * MICRO)) == micrometres:
        rounded = int(on_lattice(metres)[0])
        assert place + rounded == floor(place + micrometres + Fraction(1, 2))


def test_halves_are_rounded_up_on_both_sides() -> None:
    halves = np.array([-1.5, -1.0, -0.5, -0.25, 0.25, 0.5, 1.5, 2.5]) / 2**20 * (2**20 / MICRO)
    assert on_lattice(halves).tolist() == [-1, -1, 0, 0, 0, 1, 2, 3]


def test_what_is_released_lies_on_the_grid_and_nowhere_else() -> None:
    released, grid = draw(MADE, SEED)
    assert grid.dtype == np.int64
    assert np.array_equal(released.positions, grid / MICRO)
    assert np.array_equal(released.times, TRACE.times)
    assert np.array_equal(np.round(released.positions * MICRO).astype(np.int64), grid)


def test_a_seed_gives_one_release_and_another_seed_another() -> None:
    assert np.array_equal(draw(MADE, SEED)[1], draw(MADE, SEED)[1])
    other = draw(MADE, bytes(32))[1]
    protects = np.zeros(60, dtype=np.bool_)
    protects[[0, *range(20, 36), 59]] = True
    assert np.all(np.any(draw(MADE, SEED)[1][protects] != other[protects], axis=1))


def test_protected_places_have_moved_and_the_rest_hardly() -> None:
    _, grid = draw(MADE, SEED)
    moved = np.hypot(*((MADE.frame.to_lattice(grid / MICRO) - MADE.lattice) / MICRO).T)
    assert np.all(moved[20:36] > 10)
    assert np.median(moved[45:55]) < np.median(moved[20:36])


def test_withheld_fixes_are_not_released() -> None:
    made = plan(TRACE, Request(protected(), withhold=40.0, who=STILL))
    away = np.zeros(60, dtype=np.bool_)
    away[[0, 1, 2, *range(18, 38), 57, 58, 59]] = True
    assert np.array_equal(~np.asarray(made.mechanism.released), away)
    released, grid = draw(made, SEED)
    assert len(released) == len(grid) == int((~away).sum())
    assert not np.isin(TRACE.times[away], released.times).any()
    assert [one.withheld for one in made.findings] == [1, 16, 1]


def test_every_finding_keeps_its_promise() -> None:
    for request in (
        Request(protected(), who=STILL),
        Request(protected(), radius=50.0, epsilon=0.3, order=2.0, who=STILL),
        Request(protected(), who=(Named.PLAIN,)),
        Request(protected(), withhold=60.0, who=STILL),
        Request(protected()[1:2], noise=Noise.UNIFORM, who=STILL),
        Request(protected()[1:2]),
    ):
        made = plan(TRACE, request)
        for found in made.findings:
            assert found.guarantee.epsilon <= request.epsilon * (1 + 1e-9)
            assert found.guarantee.order == request.order
            # mu is of the worst adversary, at the frame's worst scale
            reach = request.radius * (1 + Frame.SCALE_ERROR)
            worst = max(one.loss for one in found.left)
            assert found.guarantee.mu == pytest.approx(reach * worst**0.5, rel=1e-12)
            assert found.deviation >= (1 / worst) ** 0.5 * (1 - 1e-9)
        assert max(found.guarantee.epsilon for found in made.findings) > 0.98 * request.epsilon


@settings(max_examples=10)
@given(st.floats(-60, 60), st.floats(-179, 179), st.integers(-(10**9), 10**9))
def test_the_design_does_not_depend_on_where_and_when(
    north: float, east: float, later: int
) -> None:
    trace = replace(
        TRACE,
        positions=TRACE.positions - TRACE.positions[0] + [north, east],
        times=TRACE.times + later * NANOSECONDS,
    )
    made = plan(trace, Request((stretch(trace, 20, 35),), who=STILL))
    expected = plan(TRACE, Request((stretch(TRACE, 20, 35),), who=STILL))
    assert np.array_equal(made.mechanism.factor, expected.mechanism.factor)
    assert made.findings[0].guarantee == expected.findings[0].guarantee


@settings(max_examples=20)
@given(st.floats(0, 300), st.floats(0, 300))
def test_more_withheld_is_never_less_private(one: float, other: float) -> None:
    less, more = sorted((one, other))
    wide = Request((stretch(TRACE, 30, 30),), epsilon=1e6, noise=Noise.WITHHOLD, who=STILL)
    found = [plan(TRACE, replace(wide, withhold=around)) for around in (less, more)]
    before, after = (made.findings[0].guarantee.mu for made in found)
    assert after <= before * (1 + 1e-9)
    assert found[0].mechanism.noise_trace == found[1].mechanism.noise_trace == 0


REFUSED = {
    "nothing to protect": (Request(()), InvalidValue, "something must be protected"),
    "all withheld": (Request(protected(), withhold=1e6), Refused, "at least two fixes must remain"),
    "one fix left": (
        Request((stretch(TRACE, 0, -2),), withhold=0.0),
        Refused,
        "at least two fixes must remain",
    ),
    "withholding too little": (
        Request(protected(), withhold=10.0, noise=Noise.WITHHOLD),
        Refused,
        "withhold longer",
    ),
    "noise of a continent": (Request(protected(), radius=1e6), Refused, "at most 20 km, got"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_released(name: str) -> None:
    request, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        plan(TRACE, request)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("name", ["radius", "epsilon", "order", "withhold", "leave", "rate"])
def test_numbers_out_of_range(name: str, value: float) -> None:
    if name == "withhold" and value == 0.0:
        return
    changed: dict[str, Any] = {name: value}
    with pytest.raises(InvalidValue, match=f"{name} must be"):
        replace(Request(protected()), **changed)


def test_an_order_must_be_above_one() -> None:
    with pytest.raises(InvalidValue, match="order must be a number above 1 and below 1,0"):
        Request((), order=1.0)


OTHERS: dict[str, Any] = {
    "radius": 201.0,
    "epsilon": 1.0000001,
    "order": 4.0,
    "withhold": 0.0,
    "who": (Named.PLAIN,),
    "leave": 300.0,
    "rate": 400.0,
    "noise": Noise.UNIFORM,
    "design_for": DesignFor.RECORDING,
    "kernel": IntegratedOU(3.0, 60.0) + Constant(100_000.0) + White(2.5),
    "stretches": (stretch(TRACE, 0, 1), *protected()[1:]),
}


def test_everything_that_decides_the_noise_is_in_the_identity() -> None:
    request = Request(protected())
    # How stretches were chosen is for the report, and the scale is that of the frame.
    told_alone = {"returns", "scale"}
    assert set(OTHERS) | told_alone == set(Request.__dataclass_fields__)
    assert replace(request, returns=True).design == request.design
    nudged = TRACE.positions.copy()
    nudged[30, 1] += 1e-9
    later = TRACE.times.copy()
    later[30] += 1
    found = {
        identity(TRACE, request),
        *(identity(TRACE, replace(request, **{name: value})) for name, value in OTHERS.items()),
        identity(replace(TRACE, positions=nudged), request),
        identity(replace(TRACE, times=later), request),
    }
    assert len(found) == 3 + len(OTHERS)


def test_what_stretches_are_called_does_not_decide_it() -> None:
    request = Request(protected())
    named = tuple(replace(one, label="home", by_place=True) for one in request.stretches)
    assert identity(TRACE, replace(request, stretches=named)) == identity(TRACE, request)
    assert identity(TRACE, replace(request, radius=200)) == identity(TRACE, request)


def spaced(*seconds: float) -> Trace:
    times = np.array([round(one * NANOSECONDS) for one in seconds], dtype=np.int64)
    east = np.linspace(0, 0.02, len(seconds))
    places = np.column_stack([np.full(len(seconds), 48.0), 11 + east])
    return Trace(times, places, np.zeros(len(seconds), dtype=np.intp), (0,))


GAPS = {
    "two fixes": spaced(0, 60),
    "two fixes, a moment apart": spaced(0, 1e-3),
    "a gap of a year": spaced(*range(10), *(3e7 + i for i in range(10))),
    "ten a second": spaced(*(i / 10 for i in range(50))),
    "uneven": spaced(0, 0.001, 1, 1.5, 100, 101, 5000, 5000.25),
    "a fix a day": spaced(*(86_400.0 * i for i in range(8))),
}


@pytest.mark.parametrize("name", GAPS)
def test_times_of_every_kind(name: str) -> None:
    trace = GAPS[name]
    made = plan(trace, Request((stretch(trace, 0, 0), stretch(trace, -1, -1)), who=STILL))
    assert all(one.guarantee.epsilon <= 1 + 1e-9 for one in made.findings)
    assert len(draw(made, SEED)[0]) == len(trace)
    whole = plan(trace, Request((stretch(trace, 0, -1),), who=STILL))
    assert whole.findings[0].guarantee.epsilon <= 1 + 1e-9


def test_a_stay_between_two_fixes() -> None:
    begin = int(TRACE.times[10]) + NANOSECONDS
    made = plan(TRACE, Request((Stretch("x", begin, begin + 10 * NANOSECONDS),), who=STILL))
    assert made.findings[0].fixes == 0
    assert made.findings[0].guarantee.epsilon == pytest.approx(1, rel=1e-6)


@pytest.mark.slow
def test_an_hour_of_standing_still_every_second() -> None:
    trace = ride(3600, 1.0, still=(0, 3599))
    made = plan(trace, Request((stretch(trace, 0, -1),), who=STILL))
    assert made.mechanism.rms == pytest.approx(200 / mu_for(1.0, 5.0), rel=0.01)


@pytest.mark.slow
def test_a_stay_of_a_quarter_of_an_hour() -> None:
    """DESIGN: 246 m rms against both adversaries; noise for the mean alone, 219 m, leaves 1.3 m."""
    trace = ride(600, 5.0, still=(210, 390))
    request = Request((stretch(trace, 210, 390),), who=STILL)
    assert plan(trace, request).mechanism.rms == pytest.approx(246, abs=1)
    unaware = plan(trace, replace(request, who=(Named.PLAIN,)))
    assert unaware.findings[0].seen_still is not None
    assert unaware.findings[0].seen_still < 100  # of the 316 it would have to be
    prior = Prior(request.kernel, trace.seconds)
    mean = window_mean(trace.seconds[210:391])
    mechanism = least_noise(prior, mean, request.bound, flat=True)
    assert mechanism.rms == pytest.approx(219, abs=1)
    left = loss_matrix(prior, stay(1050.0, 1950.0), mechanism, flat=True).left
    assert left == pytest.approx(1.3, abs=0.1)


@pytest.mark.slow
def test_one_point_in_six_hundred() -> None:
    """DESIGN: 137 m rms; who learns a point 1, 5, 10, 20 min away is left 11, 28, 103, 308 m."""
    trace = ride(600, 5.0)
    made = plan(trace, Request((stretch(trace, 300, 300),), who=(Named.PLAIN,)))
    assert made.mechanism.rms == pytest.approx(137, rel=0.01)
    found = dict(made.findings[0].after_learning)
    for away, left in ((60.0, 11), (300.0, 28), (600.0, 103), (1200.0, 308)):
        assert found[away] == pytest.approx(left, rel=0.06)


def test_what_learning_a_place_leaves() -> None:
    """The report's figures are those of an adversary, judged on the whole recording."""
    prior = Prior(MADE.request.kernel, TRACE.seconds)
    found = MADE.findings[1]  # the stay, from 400 to 700 s
    assert [away for away, _ in found.after_learning] == [60.0, 300.0]
    for away, left in found.after_learning:
        who = stood_still([(400.0, 700.0)]) & knows_a_point(away)
        seen = exposures(prior, basic(400.0), MADE.mechanism, who)
        assert left == pytest.approx(min(one.after for one in seen), rel=1e-6)
    whole = plan(TRACE, Request((stretch(TRACE, 0, -1),), who=STILL))
    assert whole.findings[0].after_learning == ()


def test_noise_that_cannot_be_drawn_is_refused() -> None:
    process = replace(no_noise(TRACE.seconds), process=RBF(60.0))
    with pytest.raises(InvalidValue, match="Markov"):
        noise_of(process, SEED, "east")
    finer = Mechanism(
        TRACE.seconds, np.ones((len(TRACE), 1)), refinement=np.ones((1, len(TRACE), 1))
    )
    with pytest.raises(InvalidValue, match="double precision"):
        noise_of(finer, SEED, "east")


def test_a_plan_shows_no_place() -> None:
    shown = f"{MADE!r} {MADE}"
    assert "48." not in shown
    assert isinstance(MADE, Plan)
