"""Kept fields are left out near what is protected, and change nothing else of a release."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exposed import variances_left
from tests.rides import ride
from trailveil.errors import Refused
from trailveil.gp.kernels import IntegratedOU
from trailveil.ledger import open_ledger
from trailveil.ledger.commit import seed_of, whole_of
from trailveil.privacy.adversaries import DEFAULT, Named
from trailveil.release.cutting import (
    AROUND,
    EDGES,
    MOVEMENT,
    at_one_place,
    left_out,
    with_fields_left_out,
)
from trailveil.release.drawing import draw
from trailveil.release.everywhere import plan_everywhere
from trailveil.release.plan import Plan, cuts_of
from trailveil.release.protect import protect
from trailveil.release.request import KNOWS_PATH, Method, Request
from trailveil.traces.projection import placed
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

BARE = ride(180, 20.0)  # an hour
HEIGHTS = 400.0 + np.arange(180.0)
TRACE = replace(BARE, fields=(("elevation", HEIGHTS), ("power", np.full(180, 250.0))))
FIRST = int(BARE.times[0])
SEED = bytes(range(32))


def at(row: int, last: int | None = None) -> Stretch:
    return Stretch("home", int(TRACE.times[row]), int(TRACE.times[row if last is None else last]))


def planned(
    trace: Trace, *stretches: Stretch, withhold: float | None = None, method: Method = Method.NOISE
) -> Plan:
    return protect(trace, Request(stretches, withhold=withhold, method=method))


WITH, WITHOUT = planned(TRACE, at(90)), planned(BARE, at(90))
WITHHELD = planned(TRACE, at(0), withhold=1200.0, method=Method.CUT)


@given(
    st.lists(st.tuples(st.integers(0, 179), st.integers(0, 30)), max_size=4),
    st.integers(-(2**40), 2**40),
)
def test_everything_near_is_left_out_and_nothing_far(
    spans: list[tuple[int, int]], shift: int
) -> None:
    moved = replace(TRACE, times=TRACE.times + shift)
    stretches = [
        Stretch("x", int(moved.times[a]), int(moved.times[min(a + b, 179)])) for a, b in spans
    ]
    since = int(moved.times[0])
    blank = left_out(moved, stretches, since)
    gaps = [
        max(stretch.begin - int(time), int(time) - stretch.end, 0) / NANOSECONDS
        for time in moved.times
        for stretch in stretches
    ]
    nearest = np.array(gaps).reshape(len(moved), -1).min(axis=1, initial=np.inf)
    assert blank[nearest <= AROUND].all()
    assert not blank[nearest >= AROUND + EDGES].any()
    # Its edges stand at whole fives of minutes since the first fix, whenever that was.
    edges = np.flatnonzero(blank[1:] & ~blank[:-1]) + 1
    assert all(moved.seconds[edge] % EDGES < 20.0 for edge in edges)
    assert (
        blank.tolist()
        == left_out(TRACE, [replace_by(stretch, -shift) for stretch in stretches], FIRST).tolist()
    )


def replace_by(stretch: Stretch, shift: int) -> Stretch:
    return replace(stretch, begin=stretch.begin + shift, end=stretch.end + shift)


def test_a_release_carries_fields_far_from_what_is_protected_alone() -> None:
    trace, _ = draw(WITH, SEED)
    elevation = dict(trace.fields)["elevation"]
    gap = np.abs(trace.times - TRACE.times[90]) / NANOSECONDS
    assert np.isnan(elevation[gap <= AROUND]).all()
    far = gap >= AROUND + EDGES
    assert elevation[far].tolist() == HEIGHTS[far].tolist()
    assert far.sum() > 80


def test_withheld_fixes_take_their_fields_along() -> None:
    trace, _ = draw(WITHHELD, SEED)
    assert len(trace) == 180 - 61
    assert dict(trace.fields)["elevation"].tolist() == HEIGHTS[61:].tolist()


def test_blanks_tell_nothing_of_when_a_withheld_beginning_was() -> None:
    plan = planned(TRACE, at(0, 10), at(100), withhold=120.0)
    trace, _ = draw(plan, SEED)
    blank = np.isnan(dict(trace.fields)["elevation"])
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    assert len(edges) == 3
    assert trace.times[0] - BARE.times[0] == 340 * NANOSECONDS
    begin = plan.request.stretches[1].begin - int(trace.times[0])
    for edge, sign in zip(edges[1:], (1, -1), strict=True):
        seconds = trace.seconds[edge if sign > 0 else edge - 1]
        assert seconds % EDGES == 0
        assert AROUND <= abs(seconds - begin / NANOSECONDS) < AROUND + EDGES


def test_what_is_left_out_is_not_even_in_the_plan() -> None:
    held = dict(WITH.trace.fields)["elevation"]
    assert np.isnan(held[np.abs(np.arange(180) - 90) <= 30]).all()
    assert not np.isin(HEIGHTS[60:121], held).any()


def test_fields_change_neither_the_noise_nor_what_a_release_is() -> None:
    for seed in (SEED, SEED[::-1]):
        (first, grid), (other, bare) = draw(WITH, seed), draw(WITHOUT, seed)
        np.testing.assert_array_equal(grid, bare)
        np.testing.assert_array_equal(first.positions, other.positions)
        assert other.fields == ()
    assert WITH.identity == WITHOUT.identity


@pytest.mark.parametrize("accuracy", [0.3, 3.0])
def test_who_reads_the_path_from_the_fields_is_left_with_what_is_said(accuracy: float) -> None:
    """Knows the path to some metres wherever a field is, and has the release."""
    kernel, seconds, secret = WITHOUT.request.kernel, TRACE.seconds, TRACE.seconds[[90]]
    known = seconds[~left_out(TRACE, [at(90)], FIRST)]
    noise = np.zeros((180 + known.size,) * 2)
    noise[:180, :180] = WITHOUT.mechanism.covariance()
    noise[180:, 180:] = accuracy**2 * np.eye(known.size)
    known_times = np.concatenate([seconds, known])
    deviation = variances_left(kernel, known_times, noise, secret, np.ones((1, 1)))[0] ** 0.5
    (said,) = [
        exposure for exposure in WITHOUT.findings[0].exposures if exposure.adversary == KNOWS_PATH
    ]
    # That adversary knows all of it nearer, so is left with less, in metres.
    assert deviation > said.posterior


def test_noise_that_is_not_made_against_who_knows_the_path_is_refused() -> None:
    for who in (
        (Named.PLAIN,),
        tuple(adversary for adversary in DEFAULT if adversary is not Named.PATH),
    ):
        with pytest.raises(Refused, match="add --adversary path, or leave --keep out"):
            protect(TRACE, Request((at(90),), who=who, method=Method.NOISE))
        assert with_fields_left_out(BARE, [at(90)], who, FIRST) is BARE


def test_with_every_place_protected_fields_are_refused() -> None:
    with pytest.raises(Refused, match="leave --keep out"):
        plan_everywhere(TRACE, Request((), method=Method.EVERYWHERE))


def test_the_memory_knows_a_release_whatever_is_kept(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "state")
    seeds = [
        seed_of(ledger.key, whole_of(plan.trace, plan.identity, None)) for plan in (WITH, WITHOUT)
    ]
    ids = [ledger.request_id(seed) for seed in seeds]
    assert ids[0] == ids[1]


def test_metres_hold_for_readers_of_the_path_and_epsilon_does_not() -> None:
    """Who reads the path from 10 minutes on gains up to a fifth more than who knows it from 5 on.

    By dense algebra: two ways outward from a window whose movement is granted. They gain more since
    they knew less; what they are left with is more, too.
    """
    trace = ride(721, 10.0, seed=2)
    middle = int(trace.times[360])
    plan = planned(trace, Stretch("stated", middle, middle))
    (said,) = [
        exposure for exposure in plan.findings[0].exposures if exposure.adversary == KNOWS_PATH
    ]
    away = np.abs(plan.trace.seconds - plan.trace.seconds[360]) - plan.request.uncertain
    sides = np.sign(np.arange(721) - 360)
    near = IntegratedOU(3.0, 60.0)(np.maximum(away, 0), np.maximum(away, 0))
    moves = np.where(np.equal.outer(sides, sides), near, 0.0)

    def known(rows: np.ndarray, noise: np.ndarray) -> float:
        ones = np.ones(rows.size)
        return float(ones @ np.linalg.solve(moves[np.ix_(rows, rows)] + noise, ones))

    path = np.flatnonzero(away > AROUND - plan.request.uncertain)
    both = np.concatenate([np.arange(721), path])
    noise = 0.01 * np.eye(both.size)
    noise[:721, :721] += plan.mechanism.covariance()
    after, before = known(both, noise), known(path, noise[721:, 721:])
    assert after**-0.5 > said.posterior
    gained = (after - before) / plan.request.bound
    assert 1.1 < gained < 1.25
    assert gained <= 1 / (said.posterior**2 * plan.request.bound) < 1.4


@pytest.mark.parametrize("name", sorted(MOVEMENT))
@pytest.mark.parametrize("method", [Method.CUT, Method.BOTH])
def test_what_tells_how_one_moves_is_left_out_from_the_edge_of_the_cut_on(
    name: str, method: Method
) -> None:
    """A cut of 15 minutes and more: within 10 of the part, nothing is released anyway."""
    stated = replace(BARE, fields=((name, np.full(180, 1.5)),))
    request = Request((at(90),), withhold=900.0, method=method, floor=10.0, middle=10.0)
    trace, _ = draw(protect(stated, request), SEED)
    gap = np.abs(trace.times - stated.times[90]) / NANOSECONDS
    values = dict(trace.fields)[name]
    cut = gap.min() - 20.0  # a fix comes every 20 s
    assert cut >= 900.0 - 20.0
    assert np.isnan(values[gap <= cut + AROUND]).all()
    assert np.isfinite(values[gap >= cut + 20.0 + AROUND + EDGES]).all()
    assert np.isfinite(values).any()


def test_the_windows_of_many_parts_take_no_memory_for_each_fix() -> None:
    """A month of fixes with hundreds of stays: a number for each fix and stay would be 1.4 GB."""
    trace = ride(300_000, 8.0)
    begins = trace.times[1000::1000].tolist()
    stays = tuple(Stretch("a stay", begin, begin + 600 * NANOSECONDS) for begin in begins)
    request = Request(stays, method=Method.CUT).at_pace_of(trace).framed(placed(trace.positions)[0])
    at_one_place(trace, stays, request.radius)
    tracemalloc.start()
    try:
        windows, cuts = cuts_of(trace, request)
        least = [window.silence for window in windows]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(windows) == len(cuts) == len(least) == 299
    assert most < 8 * len(trace)


@pytest.mark.parametrize(
    ("minutes", "seconds", "sides"), [(5, 427, 1), (8, 480, 1), (20, 1200, 1), (33, 1919, 2)]
)
def test_a_cut_that_reaches_an_end_is_no_longer_than_that_takes(
    minutes: int, seconds: int, sides: int
) -> None:
    """A cut with one side again, or the least with two, whichever is shorter."""
    trace = ride(400, 10.0)
    when = int(trace.times[-1]) - minutes * 60 * NANOSECONDS
    request = Request((Stretch("a time", when, when),), floor=0.92, middle=0.49)
    (finding,) = protect(trace, request).findings
    assert (finding.cut, finding.sides) == (seconds, sides)
    assert finding.guarantee.epsilon <= 1.0
