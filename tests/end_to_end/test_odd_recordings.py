"""Sound recordings that a designer of noise at fixes refused, or never finished."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from trailveil.gp.gaussian import FloatArray
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Chosen, Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

BEGIN = 1_700_000_000 * NANOSECONDS


def moved(seconds: ArrayLike, east: ArrayLike) -> Trace:
    """Fixes at seconds (n,) that are metres (n,) east of where they begin."""
    times = np.asarray(seconds, dtype=np.float64)
    places = np.column_stack([np.full(times.size, 46.0), 7 + np.asarray(east) / 77_000])
    whole = np.round(times * NANOSECONDS).astype(np.int64) + BEGIN
    return Trace(whole, places, np.zeros(times.size, dtype=np.intp), (0,))


PAUSED = np.r_[0:4, 113:2013].astype(float)
SHORT = np.arange(25) * 5.0
THERE_AND_ON = np.clip((np.arange(61) * 5.0 - 120) * 1.2, 0, 72)


@pytest.mark.parametrize(
    "trace",
    [
        moved(PAUSED, 3 * PAUSED),
        moved(SHORT, 200 * np.clip((SHORT - 30) / 60, 0, 1)),
        moved(np.arange(61) * 5.0, THERE_AND_ON),
    ],
    ids=["a start, a pause, a ride", "still, 200 m, still", "still, a minute, still"],
)
def test_noise_is_found_for_pauses_and_short_ways(trace: Trace) -> None:
    made = protect(trace, requested(trace, Chosen(), Request((), method=Method.NOISE)))
    assert made.mechanism.rows.size == len(trace)
    assert all(finding.guarantee.epsilon <= 1.001 for finding in made.findings)


def test_a_pause_after_the_start_is_cut_by_time() -> None:
    trace = moved(PAUSED, 3 * PAUSED)
    made = protect(trace, requested(trace, Chosen(), Request((), floor=3.0)))
    (cut,) = {finding.cut for finding in made.findings}
    assert cut is not None
    released = trace.seconds[made.mechanism.rows]
    last = made.findings[0].stretch.seconds(trace)[1]
    assert released.min() > last + cut
    assert released.max() < trace.seconds[-1] - cut


def wandering(seconds: FloatArray, speed: float, tau: float) -> FloatArray:
    """The covariance of an integrated Ornstein-Uhlenbeck process from its first moment on."""
    t = seconds - seconds.min()
    fade = np.exp(-t / tau)
    apart = np.exp(-np.abs(t[:, None] - t) / tau)
    both = 1 - fade[:, None] - fade + apart
    return np.asarray(speed**2 * tau * (2 * np.minimum(t[:, None], t) - tau * both))


def two_stays(apart: float) -> tuple[Trace, Plan]:
    """Two stays of ten minutes, so many seconds apart, in three hours; both are cut."""
    seconds = np.arange(0, 10_800, 5.0)
    trace = moved(seconds, 3 * seconds)
    stays = [(4000.0, 4600.0), (4600.0 + apart, 5200.0 + apart)]
    parts = tuple(
        Stretch("a stay", BEGIN + int(begin) * NANOSECONDS, BEGIN + int(end) * NANOSECONDS)
        for begin, end in stays
    )
    return trace, protect(trace, Request(parts, floor=3.0))


@pytest.mark.parametrize("apart", [1.0, 60.0, 300.0, 900.0])
def test_two_stays_near_each_other_are_cut_and_each_keeps_its_promise(apart: float) -> None:
    """By dense algebra: the place of either stay, beside all that is released, exactly."""
    trace, made = two_stays(apart)
    bound = made.request.variance
    spans = [finding.stretch.seconds(trace) for finding in made.findings]
    # One fix in six, and the two beside each cut with a neighbour that tells the velocity.
    rows = made.mechanism.rows
    edges = np.flatnonzero(np.diff(rows) > 1)
    some = np.unique(
        np.r_[rows[::6], rows[edges], rows[edges - 1], rows[edges + 1], rows[edges + 2]]
    )
    for begin, end in spans:
        times = np.r_[trace.seconds[some], (begin + end) / 2]
        # The person stands still in both stays, and moves at the floor outside.
        clock = times.copy()
        for a, b in spans:
            clock -= np.clip(times - a, 0, b - a)
        whole = wandering(clock, 3.0, 60.0) + 1e8
        seen, cross = whole[:-1, :-1] + 0.01 * np.eye(some.size), whole[:-1, -1]
        left = whole[-1, -1] - cross @ np.linalg.solve(seen, cross)
        assert left >= bound * 0.999
