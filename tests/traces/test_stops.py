"""Stays are those of the definition, of another library, and of who really stood still."""

import time
from datetime import timedelta
from itertools import pairwise
from statistics import median_low

import geopandas as gpd
import movingpandas as mpd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.places import ANYWHERE, Where, after, trace_of
from trailveil.errors import InvalidValue
from trailveil.traces.projection import MICRO, frame_for
from trailveil.traces.stops import ABSENCE, LASTS, WITHIN, stays
from trailveil.traces.trace import NANOSECONDS, Trace

Place = tuple[float, float]
PIECE = LASTS / 20


def distance(place: Place, other: Place) -> float:
    return float(np.hypot(place[0] - other[0], place[1] - other[1]))


def by_definition(trace: Trace) -> list[tuple[float, float]]:
    """Every window of every length, one pair of places after the other."""
    seconds = trace.seconds.tolist()
    points = [
        (x / MICRO, y / MICRO)
        for x, y in frame_for(trace.positions).to_lattice(trace.positions).tolist()
    ]
    pieces: dict[int, list[int]] = {}
    for i, second in enumerate(seconds):
        pieces.setdefault(int(second // PIECE), []).append(i)
    members = list(pieces.values())
    raw = [
        (median_low(points[i][0] for i in member), median_low(points[i][1] for i in member))
        for member in members
    ]
    calm = [
        raw_place
        if k in (0, len(raw) - 1)
        else (
            sorted(place[0] for place in raw[k - 1 : k + 2])[1],
            sorted(place[1] for place in raw[k - 1 : k + 2])[1],
        )
        for k, raw_place in enumerate(raw)
    ]
    joined = set()
    for a in range(len(calm)):
        for b in range(a + 1, len(calm)):
            if any(distance(calm[c], calm[b]) > WITHIN for c in range(a, b)):
                break
            if seconds[members[b][-1]] - seconds[members[a][0]] >= LASTS - 2 * PIECE:
                joined |= set(range(a, b))
    stays_by_definition = [
        (seconds[i], seconds[i + 1], points[i], points[i + 1])
        for i in range(len(seconds) - 1)
        if seconds[i + 1] - seconds[i] >= LASTS and distance(points[i], points[i + 1]) <= WITHIN
    ]
    for a in sorted(joined):
        b = a
        while a - 1 not in joined and b in joined:
            b += 1
        moments = [
            seconds[i]
            for k in range(a, b + 1)
            for i in members[k]
            if distance(points[i], calm[k]) <= WITHIN
        ]
        if b > a and moments and moments[-1] - moments[0] >= LASTS - 2 * PIECE:
            stays_by_definition.append((moments[0], moments[-1], calm[a], calm[b]))
    return once(stays_by_definition)


def once(stays_found: list[tuple[float, float, Place, Place]]) -> list[tuple[float, float]]:
    """Those that overlap, or follow soon and near, as one."""
    result: list[tuple[float, float, Place, Place]] = []
    for begin, end, came, last_place in sorted(stays_found):
        if result:
            first, until, origin, place = result[-1]
            if begin <= until or (begin - until < ABSENCE and distance(came, place) <= WITHIN):
                later = max(
                    (until, place),
                    (end, last_place),
                    key=lambda moment_and_place: moment_and_place[0],
                )
                result[-1] = (first, later[0], origin, later[1])
                continue
        result.append((begin, end, came, last_place))
    return [(begin, end) for begin, end, _, _ in result]


steps = st.lists(
    st.tuples(
        st.sampled_from([1.0, 5.0, 20.0, 31.0, 60.0, 150.0, 299.0, 300.0, 1000.0]),
        st.sampled_from([0.0, 0.0, 0.0, 0.0, 30.0, 60.0, 99.0, 130.0, 400.0]),
        st.sampled_from([0.0, 0.0, 0.0, 45.0, 95.0, 700.0]),
    ),
    min_size=1,
    max_size=40,
)


@given(steps, st.sampled_from(ANYWHERE))
def test_stays_are_those_of_the_definition(
    moves: list[tuple[float, float, float]], where: Where
) -> None:
    seconds = np.cumsum([step for step, _, _ in moves])
    trace = trace_of(seconds - seconds[0], [move[1:] for move in moves], where)
    # Times are whole nanoseconds: a difference is right to the last digit of a float.
    assert np.array(after(trace, stays(trace))) == pytest.approx(np.array(by_definition(trace)))


def walk(
    step: float, jitter: float, seed: int, *, strays: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Ten minutes on foot, fifty at a place, ten on foot: seconds, metres (n, 2), a fix a step."""
    random = np.random.default_rng(seed)
    seconds = np.arange(0.0, 4200.0 + 1e-6, step)
    away = np.maximum(np.maximum(600 - seconds, seconds - 3600), 0.0)
    metres = np.stack([1.4 * away, -0.3 * away], axis=1)
    metres += jitter * random.standard_normal(metres.shape)
    lost = random.random(seconds.size) < strays
    metres[lost] += 400.0
    return seconds, metres


@pytest.mark.parametrize("where", ANYWHERE, ids=str)
@pytest.mark.parametrize(
    ("step", "jitter", "strays"),
    [
        (1.0, 3.0, 0.0),
        (1.0, 20.0, 0.02),
        (5.0, 15.0, 0.05),
        (15.0, 15.0, 0.03),
        (60.0, 10.0, 0.03),
        (300.0, 5.0, 0.0),
    ],
)
def test_who_stood_still_is_found(where: Where, step: float, jitter: float, strays: float) -> None:
    """To a step, a piece and the minute that 100 m take; strays and a gap end no stay."""
    for seed in range(3):
        seconds, metres = walk(step, jitter, seed, strays=strays)
        for rows in (seconds >= 0, (seconds < 1500) | (seconds > 2700)):
            trace = trace_of(seconds[rows], metres[rows], where)
            ((begin, end),) = after(trace, stays(trace))
            slack = 75.0 + PIECE + step
            assert abs(begin - 600) <= slack
            assert abs(end - 3600) <= slack


@pytest.mark.parametrize(("pace", "count"), [(0.2, 1), (0.5, 0), (1.4, 0), (15.0, 0)])
def test_who_moves_has_no_stay(pace: float, count: int) -> None:
    """At up to a third of a metre a second somebody is within 100 m for five minutes."""
    seconds = np.arange(0.0, 3600.0, 7.0)
    trace = trace_of(seconds, np.stack([pace * seconds, 0 * seconds], axis=1))
    assert len(stays(trace)) == count


def test_two_places_are_two_stays_and_a_short_absence_is_none() -> None:
    seconds = np.arange(0.0, 3000.0, 10.0)
    east = np.where(seconds < 1500, 0.0, 400.0)
    trace = trace_of(seconds, np.stack([east, 0 * east], axis=1))
    assert after(trace, stays(trace)) == [(0, 1490), (1500, 2990)]
    for absence, count in ((ABSENCE - 60, 1), (ABSENCE + 240, 2)):
        away = 1.4 * np.clip(np.minimum(seconds - 1000, 1000 + absence - seconds), 0, None)
        assert len(stays(trace_of(seconds, np.stack([away, 0 * away], axis=1)))) == count


@pytest.mark.parametrize("lasts", [60.0, 300.0, 2400.0, 20_000.0])
@pytest.mark.parametrize("step", [1.0, 7.0, 50.0])
def test_whatever_lasts_long_enough_is_found(lasts: float, step: float) -> None:
    """Wherever the pieces are cut, and whatever speed somebody came and went at."""
    for begin in lasts * np.array([0.3, 1.02, 1.7]):
        for pace in (0.8, 30.0):
            end = begin + lasts + 2 * step
            seconds = np.arange(0.0, end + lasts, step)
            away = np.maximum(np.maximum(begin - seconds, seconds - end), 0.0)
            trace = trace_of(
                seconds, np.stack([np.minimum(pace * away, 50_000), 20 * np.sin(seconds)], axis=1)
            )
            slack = 100 / pace + step + lasts / 20
            intervals = after(trace, stays(trace, lasts=lasts))
            assert any(
                abs(start - begin) <= slack and abs(other - end) <= slack
                for start, other in intervals
            )


def test_a_gap_at_one_place_is_a_stay_whatever_stands_beside_it() -> None:
    """Ridden up to it and away from it at once: every piece has its median elsewhere."""
    seconds = [*np.arange(0.0, 100.0, 5.0), *np.arange(5000.0, 5100.0, 5.0)]
    away = [20.0 * (95 - second) if second < 100 else 20.0 * (second - 5000) for second in seconds]
    trace = trace_of(seconds, [(east, 40.0 if east else 0.0) for east in away])
    assert after(trace, stays(trace)) == [(95.0, 5000.0)]


def test_a_stay_of_as_many_pieces_as_the_shortest_can_have() -> None:
    seconds = [0.0, 29.5, *np.arange(37.0, 299.0, 15.0), 300.0, 340.0]
    away = [900.0, *[0.0] * (len(seconds) - 2), 900.0]
    trace = trace_of(seconds, [(east, 0.0) for east in away])
    assert after(trace, stays(trace)) == [(29.5, 300.0)]


def test_a_stay_that_wanders_ends_where_it_was_left() -> None:
    """Two absences; where somebody was at first does not count for the second."""
    seconds = np.arange(0.0, 3600.0, 10.0)
    away = np.clip(0.15 * (seconds - 1000), 0, 150)
    for begin in (800.0, 2600.0):
        away += 1.4 * np.clip(np.minimum(seconds - begin, begin + 240 - seconds), 0, None)
    trace = trace_of(seconds, np.stack([away, 0 * away], axis=1))
    assert after(trace, stays(trace)) == [(0.0, 3590.0)]


@pytest.mark.parametrize("last", [0.9 * LASTS - 1e-3, 0.9 * LASTS, LASTS])
def test_two_fixes(last: float) -> None:
    trace = trace_of([0.0, last], [(0.0, 0.0), (WITHIN - 1, 0.0)])
    assert len(stays(trace)) == (last >= 0.9 * LASTS)
    assert stays(trace_of([0.0, last], [(0.0, 0.0), (WITHIN + 1, 0.0)])) == []


def test_nothing_and_numbers_out_of_range() -> None:
    trace = trace_of([0.0], [(0.0, 0.0)])
    assert stays(trace) == []
    assert stays(trace.only(np.array([False]))) == []
    for within, lasts in ((0.0, 300.0), (100.0, -1.0), (float("nan"), 300.0), (100.0, 1e10)):
        with pytest.raises(InvalidValue, match="must be a number above 0"):
            stays(trace, within, lasts)


def by_movingpandas(trace: Trace, within: float, lasts: float) -> list[tuple[float, float]]:
    metres = frame_for(trace.positions).to_lattice(trace.positions) / MICRO
    frame = gpd.GeoDataFrame(
        {"trace": 1},
        geometry=gpd.points_from_xy(*metres.T),
        index=pd.to_datetime(trace.times),
        crs=32631,
    )
    detected = mpd.TrajectoryStopDetector(mpd.Trajectory(frame, 1)).get_stop_time_ranges(
        within, timedelta(seconds=lasts)
    )
    return after(
        trace, [(pd.Timestamp(span.t_0).value, pd.Timestamp(span.t_n).value) for span in detected]
    )


@pytest.mark.parametrize("step", [12.0, 60.0])
@pytest.mark.parametrize("seed", range(4))
def test_what_another_library_finds_is_found(step: float, seed: int) -> None:
    """Fixes in a box of diagonal 70 have medians within 100 m: all but a piece at each end."""
    random = np.random.default_rng(seed)
    seconds = np.arange(0.0, 7200.0, step)
    moves = np.repeat(random.random(24) < 0.5, seconds.size // 24 + 1)[: seconds.size]
    velocity = np.repeat(random.standard_normal((24, 2)), seconds.size // 24 + 1, axis=0)
    metres = np.cumsum(step * velocity[: seconds.size] * moves[:, None], axis=0)
    trace = trace_of(seconds, metres + 4 * random.standard_normal(metres.shape), (70.0, 180.0))
    theirs, ours = (
        by_movingpandas(trace, 0.7 * WITHIN, LASTS),
        after(trace, stays(trace)),
    )
    assert theirs
    for begin, end in theirs:
        assert any(start <= begin + PIECE and end - PIECE <= other for start, other in ours), (
            begin,
            end,
        )
    # And the other way round: what is found here is found there, too, with room to spare.
    roomy = by_movingpandas(trace, 2 * WITHIN, LASTS / 2)
    for begin, end in ours:
        assert any(start < end and begin < other for start, other in roomy)


@pytest.mark.slow
def test_a_million_fixes_take_seconds() -> None:
    """Most of them standing still, and each a piece of its own: 4 s, ten times those of a tenth."""
    took = []
    for count in (100_000, 1_000_000):
        random = np.random.default_rng(1)
        degrees = 48.0 + 4e-5 * random.standard_normal((count, 2))
        degrees[np.arange(count) % (count // 4) > count // 5] += 4e-3
        times = 30 * NANOSECONDS * np.arange(count, dtype=np.int64)
        trace = Trace(times, degrees, np.zeros(count, dtype=np.intp), (0,))
        begin = time.process_time()
        intervals = stays(trace)
        took.append(time.process_time() - begin)
        assert len(intervals) == 8
        assert all(interval[1] < other[0] for interval, other in pairwise(intervals))
    assert took[1] < 30 * took[0]
