"""Readings end to end: the promise by dense algebra, exact sums, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from tests.readings import readings_request
from trailveil.errors import InvalidValue, Refused, TrailveilError
from trailveil.gp.kernels import RBF, Constant, Kernel, Matern32, Periodic, White
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.release.readings_release import (
    DECIMALS,
    ReadingsPlan,
    draw_readings,
    plan_readings,
)
from trailveil.release.request import Method, Request
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Stretch

Numbers = NDArray[np.float64]

HOUR = 3600.0
NOISE = 0.3
BEGIN = 1_331_638_200 * 10**9


def rbf(a: Numbers, b: Numbers) -> Numbers:
    return np.asarray(4.0 * np.exp(-((a[:, None] - b) ** 2) / (2 * (3 * HOUR) ** 2)))


def periodic(a: Numbers, b: Numbers) -> Numbers:
    sine = np.sin(np.pi * (a[:, None] - b) / (24 * HOUR))
    return np.asarray(4.0 * np.exp(-2 * sine**2 / 1.1**2))


def matern32(a: Numbers, b: Numbers) -> Numbers:
    far = np.sqrt(3) * np.abs(a[:, None] - b) / (3 * HOUR)
    return np.asarray(4.0 * (1 + far) * np.exp(-far))


# A kernel of the package beside its formula, written again.
CASES: dict[str, tuple[Kernel, Callable[[Numbers, Numbers], Numbers]]] = {
    "rbf": (RBF(3 * HOUR, 2.0), rbf),
    "periodic": (Periodic(1.1, 24 * HOUR, 2.0), periodic),
    "matern32": (Matern32(3 * HOUR, 2.0), matern32),
}


def readings(count: int = 120, seed: int = 3) -> Readings:
    """Of a made-up room, about every half hour."""
    random = np.random.default_rng(seed)
    seconds = np.cumsum(random.uniform(1000, 2600, count))
    values = 20 + 2 * np.sin(seconds / (24 * HOUR) * 2 * np.pi) + random.normal(0, NOISE, count)
    return Readings((BEGIN + np.round(seconds * 1e9)).astype(np.int64), values, "degC")


def request(kernel: Kernel, *stretches: Stretch, **more: Any) -> Request:
    return readings_request(stretches, 1.0, kernel + White(NOISE), **more)


def stay(of: Readings, first: int, last: int) -> Stretch:
    return Stretch("between stated times", int(of.times[first]), int(of.times[last]))


def known(
    readings_plan: ReadingsPlan, prior: Callable[[Numbers, Numbers], Numbers], row: Numbers
) -> float:
    return float(row @ prior(readings_plan.trace.seconds, readings_plan.trace.seconds) @ row)


def lost(
    readings_plan: ReadingsPlan,
    prior: Callable[[Numbers, Numbers], Numbers],
    row: Numbers,
    *,
    independent: bool = False,
) -> float:
    """The loss of weights (n,) of the true values: 1 / after - 1 / before, by dense algebra.

    independent: with the independent noise that hides the grid, which no guarantee counts on.
    """
    seconds, rows = readings_plan.trace.seconds, readings_plan.mechanism.rows
    truth = prior(seconds, seconds)
    counted = (
        readings_plan.mechanism
        if independent
        else replace(readings_plan.mechanism, independent=None)
    )
    heard = truth[np.ix_(rows, rows)] + NOISE**2 * np.eye(rows.size) + counted.covariance()
    cross = truth[rows] @ row
    before = row @ truth @ row
    after = before - cross @ np.linalg.solve(heard, cross)
    return float(1 / after - 1 / before)


@pytest.mark.parametrize("name", CASES)
def test_every_protected_reading_and_their_mean_lose_no_more_than_is_said(name: str) -> None:
    kernel, prior = CASES[name]
    of = readings()
    readings_plan = plan_readings(of, request(kernel, stay(of, 50, 61), stay(of, 90, 90)))
    bound = loss_bound_for(1.0, 1.0, 5.0)
    every = np.eye(len(of))
    inside = [lost(readings_plan, prior, every[i]) for i in (*range(50, 62), 90)]
    mean = lost(readings_plan, prior, every[50:62].mean(axis=0))
    assert max(*inside, mean) <= bound * (1 + 1e-8)
    assert max(*inside, mean) >= bound * (1 - 1e-3)
    less = [lost(readings_plan, prior, every[i], independent=True) for i in (*range(50, 62), 90)]
    assert all(one < other for one, other in zip(less, inside, strict=True))
    assert readings_plan.guarantee.epsilon <= 1 + 1e-9
    assert (
        readings_plan.mechanism.rms < 1.58
    )  # less than noise at every reading by itself would take
    weights = [*every[50:62], every[50:62].mean(axis=0)]
    left = min(
        np.sqrt(1 / (lost(readings_plan, prior, weight) + 1 / known(readings_plan, prior, weight)))
        for weight in weights
    )
    assert readings_plan.findings[0].deviation == pytest.approx(left, rel=1e-6)


def test_one_reading_is_protected_with_a_proof() -> None:
    of = readings()
    readings_plan = plan_readings(of, request(RBF(3 * HOUR, 2.0), stay(of, 60, 60)))
    assert readings_plan.gap is not None
    assert readings_plan.gap < 1e-3


def test_a_few_readings_one_of_which_is_lost() -> None:
    """Less noise than the bound gives for nothing is enough: then it says nothing, and ends."""
    seconds = np.array([0, 60, 120, 180, 240, 300, 420, 480, 540])
    of = Readings(BEGIN + seconds * 10**9, 21 + seconds / 420, "degC")
    when = int(of.times[5])
    kernel = Matern32(600.0, 2.0) + White(4.0)
    asked = readings_request((Stretch("at a stated time", when, when),), 1.0, kernel)
    readings_plan = plan_readings(of, asked)
    assert 0 < readings_plan.findings[0].guarantee.epsilon <= 1
    assert readings_plan.gap is not None
    assert 1 < readings_plan.gap < np.inf


def test_every_reading_at_once() -> None:
    kernel, prior = CASES["rbf"]
    of = readings()
    readings_plan = plan_readings(of, request(kernel))
    bound = loss_bound_for(1.0, 1.0, 5.0)
    worst = max(lost(readings_plan, prior, one) for one in np.eye(len(of)))
    assert bound * (1 - 1e-4) <= worst <= bound * (1 + 1e-9)
    assert readings_plan.guarantee.epsilon <= 1 + 1e-9
    losses = [lost(readings_plan, prior, one) for one in np.eye(len(of))]
    left = min((loss + 1 / 4.0) ** -0.5 for loss in losses)  # of 2 degC known before
    assert readings_plan.deviation == pytest.approx(left, rel=1e-6)


def test_noise_too_large_for_exact_sums_is_refused() -> None:
    """A step of 1e-6 is lost beside noise of 1e10 in double precision: a value's parity shows."""
    of = readings(30)
    huge = Matern32(3 * HOUR, 1e13) + Constant(1e14) + White(NOISE)
    for stretches in ((stay(of, 10, 14),), ()):
        with pytest.raises(Refused, match=r"noise must stay below 1e\+08 degC"):
            plan_readings(of, readings_request(stretches, 1e10, huge))


def test_withheld_readings_are_not_released_and_their_gap_is_accounted() -> None:
    kernel, prior = CASES["matern32"]
    of = readings()
    stated = request(kernel, stay(of, 50, 55), withhold=6 * HOUR)
    readings_plan = plan_readings(of, stated)
    around = np.abs(of.seconds - of.seconds[[50, 55], None]).min(axis=0) <= 6 * HOUR
    around[50:56] = True
    assert readings_plan.mechanism.rows.tolist() == np.flatnonzero(~around).tolist()
    assert lost(readings_plan, prior, np.eye(len(of))[52]) <= loss_bound_for(1.0, 1.0, 5.0) * (
        1 + 1e-8
    )
    alone = plan_readings(of, replace(stated, method=Method.CUT, withhold=24 * HOUR))
    assert alone.mechanism.noise_trace == 0
    with pytest.raises(Refused, match="withholding alone must reach the target"):
        plan_readings(of, replace(stated, method=Method.CUT, withhold=0.0))
    with pytest.raises(Refused, match="at least two readings"):
        plan_readings(of, replace(stated, withhold=1e8))


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_is_drawn_is_the_value_and_noise_of_the_design(name: str, everywhere: bool) -> None:
    """400 draws of a whole recording; falsely alarmed once in 10^6."""
    of = readings(40)
    stretches = () if everywhere else (stay(of, 10, 14),)
    readings_plan = plan_readings(of, request(CASES[name][0], *stretches))
    grids = [draw_readings(readings_plan, number.to_bytes(32, "big"))[1] for number in range(400)]
    noise = np.stack([grid - of.steps(DECIMALS) for grid in grids]) * 10.0**-DECIMALS
    one = np.random.default_rng(5).standard_normal(len(of))
    ratio = np.sum((noise @ one) ** 2) / (one @ readings_plan.mechanism.covariance() @ one)
    assert chi2.ppf(0.5e-6, 400) < ratio < chi2.isf(0.5e-6, 400)
    again = draw_readings(readings_plan, (7).to_bytes(32, "big"))
    assert again[1].tolist() == grids[7].tolist()
    assert again[0].values == pytest.approx(grids[7] * 1e-6, rel=1e-15)


@pytest.mark.parametrize(
    "make",
    [
        lambda: readings_request((), 0.0, White(0.3)),
        lambda: readings_request((), float("nan"), White(0.3)),
        lambda: plan_readings(readings(9), readings_request((), 1.0, RBF(1.0))),
        lambda: plan_readings(readings(9), readings_request((), 1.0, RBF(9.0) + White(1e-6))),
        lambda: readings_request((), 1.0, White(0.3), order=1.0),
        lambda: readings_request((), 1.0, White(0.3), withhold=-1.0),
        lambda: plan_readings(readings(9), request(RBF(9.0), withhold=5.0)),
        lambda: plan_readings(readings(6000), request(RBF(9.0))),
    ],
)
def test_requests_that_cannot_be_meant(make: Callable[[], object]) -> None:
    with pytest.raises(TrailveilError, match="must"):
        make()


def test_a_level_leaves_the_mean_open() -> None:
    of = readings(60)
    readings_plan = plan_readings(
        of, request(RBF(3 * HOUR, 2.0) + Constant(1000.0), stay(of, 20, 25))
    )
    assert readings_plan.guarantee.epsilon <= 1 + 1e-9
    moved = replace(of, values=of.values + 500)
    other = plan_readings(moved, request(RBF(3 * HOUR, 2.0) + Constant(1000.0), stay(of, 20, 25)))
    assert np.array_equal(readings_plan.mechanism.factor, other.mechanism.factor)
    with pytest.raises(InvalidValue, match="15 digits"):
        plan_readings(replace(of, values=of.values * 1e12), readings_plan.request)


def test_everything_that_decides_the_noise_is_in_the_identity() -> None:
    of = readings(30)
    asked = request(RBF(9.0), stay(of, 3, 5), withhold=1.0)
    others: dict[str, Any] = {
        "stretches": (stay(of, 3, 6),),
        "radius": 2.0,
        "epsilon": 1.5,
        "order": 4.0,
        "method": Method.CUT,
        "kernel": RBF(9.0) + White(0.4),
        "withhold": 2.0,
        "unit": "K",
    }
    each = [asked, *(replace(asked, **{name: value}) for name, value in others.items())]
    plan = plan_readings(of, asked)
    noise = replace(plan.mechanism, floor=1.0)
    identities = {replace(plan, request=one).identity for one in each}
    identities.add(replace(plan, trace=replace(of, values=of.values + 1e-6)).identity)
    identities.add(replace(plan, mechanism=noise).identity)
    assert len(identities) == 3 + len(others)
    assert asked.bound == loss_bound_for(1.0, 1.0, 5.0)
