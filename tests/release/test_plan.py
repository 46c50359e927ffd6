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

from tests.rides import ride
from trailveil.errors import InvalidValue, Refused
from trailveil.gp.kernels import RBF
from trailveil.privacy.adversaries import Named
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.release.drawing import draw, noise_of, on_lattice
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import HAS_THE_REST, Method, Request
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

TRACE = ride(60, 20.0, still=(20, 35))
SEED = bytes(range(32))


def stretch(trace: Trace, first: int, last: int) -> Stretch:
    return Stretch("x", int(trace.times[first]), int(trace.times[last]))


def protected(trace: Trace = TRACE) -> tuple[Stretch, ...]:
    return stretch(trace, 0, 0), stretch(trace, 20, 35), stretch(trace, -1, -1)


# Noise of default requests ships with the package.
NOISE = Request(protected(), method=Method.NOISE)
# Of short recordings something is left only where people are quick, or promises small.
DRIVE: dict[str, Any] = {"floor": 3.6, "middle": 2.5}
MADE = protect(TRACE, NOISE)


def seed(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def deviations(draws: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Sample covariances of draws (N, n) about 0 less Gamma, in their own standard deviations.

    Var of a sample covariance: (Gamma_ii Gamma_jj + Gamma_ij^2) / N.
    """
    spread = np.sqrt(np.outer(np.diag(gamma), np.diag(gamma)) + gamma**2)
    return np.asarray((draws.T @ draws / len(draws) - gamma) / spread * np.sqrt(len(draws)))


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
    plan = protect(trace, replace(NOISE, stretches=(stretch(trace, 1, 3),)))
    moved = []
    for i in range(2_000):
        _, grid = draw(plan, seed(i))
        moved.append(plan.frame.to_lattice(grid / MICRO) - plan.lattice[plan.mechanism.rows])
    metres = np.array(moved) / MICRO
    # The grid of 1e-6 degree adds 0.11 m north and 0.07 m east, evenly spread.
    gamma = plan.mechanism.covariance() + 0.001 * np.eye(plan.mechanism.rows.size)
    assert np.abs(deviations(metres[:, :, 0], gamma)).max() < STRAY
    assert np.abs(deviations(metres[:, :, 1], gamma)).max() < STRAY


def test_noise_meets_coordinates_as_integers() -> None:
    noise = np.column_stack([noise_of(MADE.mechanism, SEED, axis) for axis in ("east", "north")])
    exact = [
        [floor(Fraction(int(x)) + Fraction(float(g * MICRO)) + Fraction(1, 2)) for x, g in pairs]
        for pairs in (zip(*rows, strict=True) for rows in zip(MADE.lattice, noise, strict=True))
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


def test_protected_places_have_moved_and_the_rest_not() -> None:
    trace = ride(200, 60.0)
    plan = protect(trace, replace(NOISE, stretches=(stretch(trace, 0, 1),)))
    released, _ = draw(plan, SEED)
    moved = np.hypot(*((plan.frame.to_lattice(released.positions) - plan.lattice) / MICRO).T)
    assert np.all(moved[:3] > 10)
    far = trace.seconds > 120 + plan.designs[0].knots.end
    assert 60 < int(far.sum()) < 150
    assert moved[far].max() < 0.08  # half a microdegree each way


def test_a_cut_leaves_the_rest_exactly_as_it_was() -> None:
    plan = protect(TRACE, Request(protected(), **DRIVE))
    released, _ = draw(plan, SEED)
    rows = plan.mechanism.rows
    assert released.positions.tobytes() == TRACE.positions[rows].tobytes()
    assert released.times.tobytes() == TRACE.times[rows].tobytes()
    away = np.zeros(60, dtype=np.bool_)
    for (first, last), finding in zip(((0, 0), (20, 35), (59, 59)), plan.findings, strict=True):
        assert finding.cut is not None
        outward = np.maximum(20.0 * first - TRACE.seconds, TRACE.seconds - 20.0 * last)
        away |= outward <= finding.cut
    assert rows.tolist() == np.flatnonzero(~away).tolist()
    assert 5 < rows.size < 30


@pytest.mark.parametrize(("asked", "around"), [(0.0, 3), (40.0, 3), (60.0, 3), (105.0, 5)])
def test_withheld_fixes_are_not_released(asked: float, around: int) -> None:
    """What is asked for counts from the part; the minute in which it may really begin goes, too."""
    plan = protect(TRACE, replace(NOISE, withhold=asked))
    away = np.zeros(60, dtype=np.bool_)
    away[: 1 + around] = away[59 - around :] = away[20 - around : 36 + around] = True
    assert np.array_equal(~np.asarray(plan.mechanism.released), away)
    released, grid = draw(plan, SEED)
    assert len(released) == len(grid) == int((~away).sum())
    assert not np.isin(TRACE.times[away], released.times).any()
    assert [finding.withheld for finding in plan.findings] == [1, 16, 1]
    assert [finding.cut for finding in plan.findings] == [max(asked, 60.0)] * 3


PROMISES: dict[str, Request] = {
    "a cut": Request(protected(), **DRIVE),
    "a small cut": Request(protected(), radius=20.0, epsilon=0.8, order=2.0),
    "noise": NOISE,
    "noise against strangers": replace(NOISE, who=(Named.PLAIN,)),
    "noise beside what is withheld": replace(NOISE, withhold=90.0),
    "noise of other numbers": replace(NOISE, radius=50.0, epsilon=0.3, order=2.0),
    "both": Request(protected(), method=Method.BOTH, **DRIVE),
}


@pytest.mark.parametrize("name", PROMISES)
def test_every_finding_keeps_its_promise(name: str) -> None:
    request = PROMISES[name]
    plan = protect(TRACE, request)
    assert (plan.mechanism.noise_trace > 0) == (request.method is not Method.CUT)
    for finding in plan.findings:
        assert finding.guarantee.epsilon <= request.epsilon * (1 + 1e-9)
        assert finding.guarantee.order == request.order
        # mu is of the worst adversary, at the frame's worst scale
        reach = request.radius * (1 + Frame.SCALE_ERROR)
        worst = max(exposure.loss for exposure in finding.exposures)
        assert finding.guarantee.mu == pytest.approx(reach * worst**0.5, rel=1e-12)
        assert finding.deviation >= (1 / worst) ** 0.5 * (1 - 1e-9)
        names = [exposure.adversary for exposure in finding.exposures]
        assert (HAS_THE_REST in names) == (request.method is not Method.NOISE)
        noise_against = len(request.adversaries) * (request.method is not Method.CUT)
        assert len(names) == noise_against + (HAS_THE_REST in names)
    # Whole seconds are cut: no more than a second too much.
    assert max(finding.guarantee.epsilon for finding in plan.findings) > 0.95 * request.epsilon


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
    plan = protect(trace, replace(NOISE, stretches=(stretch(trace, 20, 35),)))
    expected = protect(TRACE, replace(NOISE, stretches=(stretch(TRACE, 20, 35),)))
    assert np.array_equal(plan.mechanism.factor, expected.mechanism.factor)
    assert plan.findings[0].guarantee == expected.findings[0].guarantee


@settings(max_examples=20)
@given(st.floats(0, 450), st.floats(0, 450))
def test_more_withheld_is_never_less_private(first: float, other: float) -> None:
    less, more = sorted((first, other))
    wide = Request((stretch(TRACE, 30, 30),), epsilon=1e6, **DRIVE)
    plans = [protect(TRACE, replace(wide, withhold=around)) for around in (less, more)]
    before, after = (plan.findings[0].guarantee.mu for plan in plans)
    assert after <= before * (1 + 1e-9)
    assert plans[0].mechanism.noise_trace == plans[1].mechanism.noise_trace == 0


REFUSED = {
    "nothing to protect": (Request(()), InvalidValue, "something must be protected"),
    "all withheld": (Request(protected(), withhold=1e6), Refused, "at least two fixes must remain"),
    "one fix left": (
        Request((stretch(TRACE, 0, -2),)),
        Refused,
        "at least two fixes must remain",
    ),
    "noise of a continent": (
        Request(protected(), radius=1e6),
        Refused,
        r"at most 20 km, got .* state --radius 126\d\d or less, or a larger --epsilon",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_released(name: str) -> None:
    request, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        protect(TRACE, request)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize(
    "name", ["radius", "epsilon", "order", "withhold", "leave", "floor", "middle"]
)
def test_numbers_out_of_range(name: str, value: float) -> None:
    if name == "withhold" and value == 0.0:
        return
    changed: dict[str, Any] = {name: value}
    called = "the floor" if name in ("floor", "middle") else name
    with pytest.raises(InvalidValue, match=f"{called} must be"):
        replace(Request(protected()), **changed)


@pytest.mark.parametrize(("uncertain", "steady"), [(-1, 300), (301, 300), (60, 86_401)])
def test_seconds_out_of_range(uncertain: int, steady: int) -> None:
    with pytest.raises(InvalidValue, match="uncertain and steady must be 0 to 86,400 seconds"):
        Request(protected(), uncertain=uncertain, steady=steady)


def test_an_order_must_be_above_one() -> None:
    with pytest.raises(InvalidValue, match="order must be a number above 1 and below 1,0"):
        Request((), order=1.0)


def spaced(*seconds: float) -> Trace:
    times = np.array([round(second * NANOSECONDS) for second in seconds], dtype=np.int64)
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
    ends = (stretch(trace, 0, 0), stretch(trace, -1, -1))
    plan = protect(trace, replace(NOISE, stretches=ends))
    assert all(finding.guarantee.epsilon <= 1 + 1e-9 for finding in plan.findings)
    assert len(draw(plan, SEED)[0]) == len(trace)
    whole = protect(trace, replace(NOISE, stretches=(stretch(trace, 0, -1),)))
    assert whole.findings[0].guarantee.epsilon <= 1 + 1e-9


@pytest.mark.parametrize("method", [Method.CUT, Method.NOISE, Method.BOTH])
def test_a_stay_between_two_fixes(method: Method) -> None:
    begin = int(TRACE.times[30]) + NANOSECONDS
    part = Stretch("x", begin, begin + 10 * NANOSECONDS)
    plan = protect(TRACE, Request((part,), method=method, **DRIVE))
    assert plan.findings[0].fixes == 0
    assert plan.findings[0].guarantee.epsilon == pytest.approx(1, rel=0.01)


def test_metres_can_be_asked_for_in_place_of_epsilon() -> None:
    for request in (replace(NOISE, leave=120.0), Request(protected(), leave=50.0, **DRIVE)):
        plan = protect(TRACE, request)
        radii = [
            CIRCLE_68 * exposure.posterior for part in plan.findings for exposure in part.exposures
        ]
        assert min(radii) == pytest.approx(request.leave, rel=0.01)
        assert min(radii) >= (request.leave or 0) * (1 - 1e-9)
    with pytest.raises(Refused, match=r"metres to leave must be below 1\d\d with noise, got more"):
        protect(TRACE, replace(NOISE, leave=400.0))


def test_metres_are_true_metres_where_the_frame_has_longer_ones() -> None:
    request = Request((stretch(TRACE, 0, 0),), leave=150.0)
    wide = 1 + Frame.SCALE_ERROR
    assert request.variance**0.5 == pytest.approx(150 * wide / CIRCLE_68, rel=1e-12)
    asked = Request((stretch(TRACE, 0, 0),), radius=200.0)
    # At order 5, epsilon is 2.5 times the squared distance over what is left.
    assert asked.variance == pytest.approx(2.5 * (200 * wide) ** 2, rel=1e-12)


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
