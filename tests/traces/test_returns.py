"""Returns: a protected place is protected whenever the recording is there."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from pyproj import Geod

from tests.rides import BEGIN, Case, days, degrees_of, gpx, pausing, returning, route, settling
from trailveil.checks.scan import LeakKind, scan
from trailveil.errors import Refused
from trailveil.release.drawing import draw
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.selection import LEAVING, Chosen, Stretch
from trailveil.traces.stops import LASTS, WITHIN, settled
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import LEAST, MOST, Circle, in_space, places_of

RETURNING = list(returning())
CASES = [*RETURNING, *settling(), *pausing()]
OTHERS = [
    case for seed in (2, 3) for cases in (returning, settling, pausing) for case in cases(seed)
]
GLOBE = Geod(ellps="WGS84")
PASSING = "home passed 40 m aside at 8.3 m/s"


def named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def bare(case: Case, stretches: list[Stretch], slack: float = 0.0) -> np.ndarray:
    """The fixes that are in no part, nor within some seconds of one."""
    around = round(slack * NANOSECONDS)
    wider = [replace(part, begin=part.begin - around, end=part.end + around) for part in stretches]
    return np.asarray(~np.any([part.rows(case.trace) for part in wider], axis=0))


def beside(trace: Trace, homes: np.ndarray) -> np.ndarray:
    """Which fixes are within 50 m of any of the places, by geodesics."""
    near = np.zeros(len(trace), dtype=np.bool_)
    latitudes, longitudes = trace.positions.T
    for home in homes:
        middle = np.broadcast_to(home[:, None], (2, len(trace)))
        near |= GLOBE.inv(longitudes, latitudes, middle[1], middle[0])[2] <= 50.0
    return near


@pytest.mark.parametrize("case", CASES + OTHERS, ids=str)
def test_more_that_is_stated_never_protects_less(case: Case) -> None:
    """A stop that is found moves the middle of a place: its visits by the ends alone stay in."""
    alone = bare(case, Chosen().stretches(case.trace))
    middle = case.trace.times[len(case.trace) // 2]
    stated = f"start+{(int(middle) - int(case.trace.times[0])) // NANOSECONDS}s"
    for chosen in (Chosen(stops=(WITHIN, LASTS)), Chosen(at=(stated,))):
        assert not (bare(case, chosen.stretches(case.trace)) & ~alone).any()


@pytest.mark.parametrize("case", CASES + OTHERS, ids=str)
def test_all_that_is_known_to_be_at_a_protected_place_is_protected(case: Case) -> None:
    stretches = Chosen().stretches(case.trace)
    for begin, end in case.covered:
        inside = (case.trace.times >= begin) & (case.trace.times <= end)
        assert inside.any()
        assert not (inside & bare(case, stretches)).any()
    assert not (beside(case.trace, case.homes) & bare(case, stretches, LEAVING)).any()
    stays = [part for part in stretches if part.is_stay]
    assert all(stay.end <= other.begin for stay, other in pairwise(stays))
    assert all(part.by_place for part in stretches)


@pytest.mark.parametrize("case", RETURNING, ids=str)
def test_returns_are_left_out_on_request_alone(case: Case) -> None:
    ends = Chosen(returns=False).stretches(case.trace)
    if len(ends) > 2:  # several days: both ends of each are protected
        assert {part.label for part in ends} == {"the start of an outing", "the end of an outing"}
        return
    assert [part.label for part in ends] == ["the start", "the end"]
    assert (beside(case.trace, case.homes) & bare(case, ends, LEAVING)).any()


@pytest.mark.parametrize("case", list(settling()), ids=str)
def test_a_stay_at_an_end_is_whole_without_returns(case: Case) -> None:
    """Both ways round: what a recording ends with, another begins with."""
    first, last = settled(case.trace)
    assert first == 0
    arrival = np.searchsorted(case.trace.times, case.covered[-1][0])
    assert abs(last - arrival) <= 2
    turned = case.trace.times[0] + case.trace.times[-1] - case.trace.times[::-1]
    backwards = replace(case.trace, times=turned, positions=case.trace.positions[::-1])
    first, last = settled(backwards)
    assert len(case.trace) - 1 - first <= arrival + 2
    assert last == len(case.trace) - 1


def times_of(case: Case, chosen: Chosen) -> list[tuple[int, int]]:
    """Begin and end of each part, whole seconds since the first fix."""
    parts = chosen.stretches(case.trace)
    return [(round(a), round(b)) for a, b in (part.seconds(case.trace) for part in parts)]


THERE_AND_BACK = route(
    "there and back",
    [(0, 0, 0), (600, 6000, 0), (660, 6000, 600), (1260, 0, 0), (1860, 0, -6000)],
    [],
    noise=0.0,
)


def test_a_stated_time_and_its_returns() -> None:
    """One time on a road that is taken back, 42 m aside; the parts of a minute or less are one."""
    away = route("a", [(0, 0, 0), (600, 6000, 0), (700, 6000, 42), (1300, 0, 42)], [], noise=0.0)
    stretches = Chosen(("start+300s",), ends=False).stretches(away.trace)
    assert times_of(away, Chosen(("start+300s",), ends=False)) == [(300, 300), (1000, 1000)]
    assert [part.by_place for part in stretches] == [False, True]
    assert times_of(away, Chosen(("start+300s",), returns=False, ends=False)) == [(300, 300)]
    assert times_of(THERE_AND_BACK, Chosen(("start+300s",), ends=False)) == [
        (300, 300)
    ]  # 300 m apart


def test_a_stated_time_in_a_stay_is_kept_beside_it() -> None:
    case = route("a", [(0, -3000, 0), (600, 0, 0), (1800, 0, 0), (2400, 3000, 0)], [], noise=1.0)
    stretches = Chosen(("start+900s",), ends=False).stretches(case.trace)
    assert [part.is_stay for part in stretches] == [True, False]
    (begin, end), _ = (part.seconds(case.trace) for part in stretches)
    assert 585 <= begin <= 600
    assert 1800 <= end <= 1815
    assert stretches[1].by_place is False


def test_a_stay_that_is_stated_too_short_is_widened() -> None:
    case = route("a", [(0, -3000, 0), (600, 0, 0), (1800, 0, 0), (2400, 3000, 0)], [], noise=1.0)
    stated = Chosen(between=(("start+10m", "start+20m"),), ends=False)
    (part,) = stated.stretches(case.trace)
    assert (part.label, part.by_place) == ("between stated times", True)
    assert part.seconds(case.trace)[1] >= 1800
    exact = Chosen(between=(("start+9m50s", "start+30m10s"),), ends=False)
    (part,) = exact.stretches(case.trace)  # but for seconds on the way, which are no return
    assert part == exact.stated(case.trace)[0]


def test_a_part_that_moves_has_its_edges_and_its_stays_as_places() -> None:
    way = [(0, 0, 0), (600, 6000, 0), (1200, 6000, 0), (1800, 12000, 0)]
    back = [
        (1860, 12000, 600),
        (2000, 6000, 600),
        (2060, 6000, 20),
        (2300, 2000, 20),
        (2420, 0, 20),
    ]
    case = route("a", [*way, *back], [], noise=0.0)
    stated = Chosen(between=(("start+200s", "start+1500s"),), ends=False)
    places = stated.places(case.trace)
    assert len(places.points) == 3  # both edges, and the stay between them
    intervals = times_of(case, stated)
    assert intervals[0] == (200, 1500)
    assert (2060, 2060) in intervals or any(a <= 2060 <= b for a, b in intervals[1:])
    assert any(a <= 2300 <= b for a, b in intervals[1:])
    assert not any(a <= 2180 <= b for a, b in intervals[1:])  # on the way, and at none of them


def test_a_part_that_is_mostly_at_one_place_has_the_others_as_well() -> None:
    """Four hours at home and half an hour at a clinic, which is passed again later."""
    home = [(0, 0, 0), (14_400, 0, 0), (15_000, 5000, 0), (16_800, 5000, 0)]
    later = [(17_400, 5000, 6000), (18_000, 5000, 0), (19_000, 9000, 0)]
    case = route("a", [*home, *later], [], noise=2.0)
    intervals = times_of(case, Chosen(between=(("start", "start+16800s"),), ends=False))
    assert any(begin <= 18_000 <= end for begin, end in intervals[1:])


def test_how_far_a_place_extends() -> None:
    """Of a fix and of a quiet stay the least; of scatter its size; never more than the most."""
    at = [(0, 0, 0), (1000, 0, 0)]
    for noise, low, high in ((1.0, LEAST, LEAST), (25.0, 100.0, 125.0), (45.0, MOST, MOST)):
        trace = route("a", at, [], noise=noise).trace
        times = trace.times.tolist()
        inner = places_of(trace, [((times[1], times[-2]), False)])
        assert inner.reach.shape == (1,)
        assert low <= inner.reach[0] <= high
    small, large = (
        places_of(THERE_AND_BACK.trace, [], [Circle(48.0, 11.0, size)]) for size in (5, 400)
    )
    assert (small.reach[0], large.reach[0]) == (LEAST, 400.0)


@pytest.mark.parametrize("home", [(0.0, 179.9999), (89.9995, 0.0), (-33.9, 151.2)], ids=str)
def test_a_place_is_round_anywhere(home: tuple[float, float]) -> None:
    """Also across the antimeridian and beside a pole; 74 m are near, 76 m are not."""
    bearings = np.arange(0.0, 360.0, 30.0)
    middle = np.full(bearings.size, home[1]), np.full(bearings.size, home[0])
    trace = Trace(np.array([0]), np.array([home]), np.zeros(1, dtype=np.intp), (0,))
    places = places_of(trace, [((0, 0), True)])
    for metres in (LEAST - 1, LEAST + 1):
        longitude, latitude, _ = GLOBE.fwd(*middle, bearings, np.full(bearings.size, metres))
        around = np.stack([latitude, longitude], axis=1)
        times = np.arange(bearings.size, dtype=np.int64) * 3600 * NANOSECONDS
        ring = Trace(times, around, np.zeros(bearings.size, dtype=np.intp), (0,))
        intervals = places.times(ring)
        assert bool(intervals) == (metres < LEAST)
    assert np.linalg.norm(in_space(np.array([[0.0, 0.0], [0.0, 1.0]]))[0]) == pytest.approx(6378137)


def test_what_a_place_with_a_name_protects_is_left_out() -> None:
    case = days()
    times = case.trace.times.reshape(-1, 2).tolist()
    homes = [(a, b) for a, b in times[::2]]
    stretches = Chosen().stretches(case.trace, homes)
    assert [(part.begin, part.end) for part in stretches] == [(a, b) for a, b in times[1::2]]


def test_an_end_beside_a_place_with_a_name_is_protected_all_the_same() -> None:
    """A visit that only touches the stay at the end does not stand for it."""
    case = named("scatter of 8 m")
    begin, end = case.covered[-1]
    brief = (begin, begin + 90 * NANOSECONDS)
    for chosen in (Chosen(), Chosen(returns=False)):
        assert chosen.stretches(case.trace, [brief])[-1].label == "the end"
        whole = (begin - 60 * NANOSECONDS, end)
        assert [part.label for part in chosen.stretches(case.trace, [whole])] == ["the start"]


def test_where_returns_leave_nothing_the_refusal_says_what_works() -> None:
    case = days()
    for chosen, hint in (
        (Chosen(), r"as recorded \(--no-returns\)"),
        (Chosen(("start",), ends=False), r"--mechanism noise \(which a street map can undo\)$"),
    ):
        asked = replace(chosen, returns=bool("no-returns" in hint))
        request = requested(case.trace, asked, Request((), withhold=86_400.0 * 3))
        with pytest.raises(Refused, match=f"at least two fixes must remain.*{hint}"):
            protect(case.trace, request)


def test_two_thousand_visits() -> None:
    """Home and work by turns, ten fixes each; each visit is a part."""
    count, visits = 20_000, 2_000
    metres = np.zeros((count, 2))
    metres[:, 0] = 3000.0 * ((np.arange(count) // 10) % 2)
    times = (BEGIN + 60 * np.arange(count, dtype=np.int64)) * NANOSECONDS
    trace = Trace(times, degrees_of(metres), np.zeros(count, dtype=np.intp), (0,))
    stretches = Chosen().stretches(trace)
    assert [(part.begin, part.end) for part in stretches] == [
        (times[10 * i], times[10 * i + 9]) for i in range(visits)
    ]


def test_a_long_recording_that_stands_still() -> None:
    """100,000 fixes: one part, and no pass over all of them for each."""
    case = route("a", [(0, 0, 0), (99_999, 0, 0)], [], step=1.0)
    assert len(case.trace) == 100_000
    (part,) = Chosen().stretches(case.trace)
    assert part.rows(case.trace).all()


def released(
    case: Case, chosen: Chosen, seed: int, method: Method
) -> tuple[np.ndarray, np.ndarray, Trace]:
    """Metres of each released fix from the nearest home, and from where it was; and the release."""
    request = requested(case.trace, chosen, Request((), method=method))
    plan = protect(case.trace, request)
    shown = draw(plan, bytes([seed]) * 32)[0]
    true = in_space(case.trace.positions[plan.mechanism.rows])
    away = np.linalg.norm(true[:, None] - in_space(case.homes)[None], axis=2).min(axis=1)
    return away, np.linalg.norm(in_space(shown.positions) - true, axis=1), shown


def check_release(case: Case, method: Method) -> None:
    """No five fixes within 50 m of a home are moved by less than 25 m; `audit` agrees.

    Nothing remains of a recording that is hardly anywhere but at its places.
    """
    for chosen in (Chosen(), Chosen(returns=False)):
        try:
            away, moved, shown = released(case, chosen, 7, method)
        except Refused as error:
            nothing = ("two fixes must remain", "got one that stays there: do not publish it")
            if method is not Method.CUT or not any(words in str(error) for words in nothing):
                raise
            assert case.trace.duration < 3600 or all_at(case)
            continue
        hardly = int(((away <= 50) & (moved < 25)).sum())
        assert hardly < 5 or not chosen.returns
        judged = scan(("a.gpx", gpx(case.trace)), ("b.gpx", gpx(shown)), Chosen())
        assert any(leak.kind is LeakKind.RETURN for leak in judged.leaks) == (hardly >= 5)


def all_at(case: Case) -> bool:
    """Whether all of a recording is within half an hour of a time at a home of it."""
    near = case.trace.times[beside(case.trace, case.homes)]
    away = np.abs(case.trace.times[:, None] - near).min(axis=1)
    return bool(np.all(away <= 1800 * NANOSECONDS))


@pytest.mark.parametrize("case", [case for case in CASES if len(case.trace) < 4000], ids=str)
def test_no_cut_shows_a_home(case: Case) -> None:
    check_release(case, Method.CUT)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if len(case.trace) < 4000], ids=str)
def test_no_noise_shows_a_home(case: Case) -> None:
    check_release(case, Method.NOISE)


@pytest.mark.parametrize("metres", [6.0, 24.0, 300.0])
def test_audit_looks_at_places(metres: float) -> None:
    """A release that moves the ends by far, and a passed home by some metres."""
    case = named(PASSING)
    since = case.trace.seconds
    trace = case.trace.only((since < 60) | (abs(since - 1500) < 100) | (since > 2940))
    passed = abs(trace.seconds - 1500) < 100
    north = np.where(passed, metres, 400.0) / 111_195
    shown = replace(trace, positions=trace.positions + np.stack([north, 0 * north], axis=1))
    files = ("a.gpx", gpx(trace)), ("b.gpx", gpx(shown))
    for chosen, judged in (
        (Chosen(), True),
        (Chosen(("start",), ends=False), True),
        (Chosen(("end",), ends=False), False),
    ):
        audited = scan(*files, chosen)
        leaks = [leak for leak in audited.leaks if leak.kind is LeakKind.RETURN]
        assert bool(leaks) == (judged and metres < 25)
        if leaks:
            assert 5 <= leaks[0].count <= 12
            assert "Protect it without --no-returns" in " ".join(audited.notes)
    accepted = scan(*files, Chosen(returns=False))
    assert all(leak.kind is not LeakKind.RETURN for leak in accepted.leaks)
    assert ("at a protected place" in " ".join(accepted.notes)) == (metres < 25)


def test_chance_alone_is_no_leak_at_a_place() -> None:
    """Independent noise of 300 m leaves a few of some thousand fixes of a stay within 25 m."""
    case = route("a", [(0, 0, 0), (20_000, 0, 0)], [], step=5.0)
    random = np.random.default_rng(3)
    noise = degrees_of(200.0 * random.standard_normal((len(case.trace), 2))) - degrees_of(
        np.zeros((1, 2))
    )
    shown = replace(case.trace, positions=case.trace.positions + noise)
    audited = scan(("a.gpx", gpx(case.trace)), ("b.gpx", gpx(shown)), Chosen())
    assert (np.hypot(*(noise * 111_195).T) < 25).sum() >= 5
    assert all(leak.kind is not LeakKind.RETURN for leak in audited.leaks)


def test_the_generators_say_what_they_mean() -> None:
    for case in CASES:
        assert all(begin <= end for begin, end in case.covered)
        assert case.trace.times[0] == BEGIN * NANOSECONDS
        assert case.covered[0][0] == case.trace.times[0]
        assert max(end for _, end in case.covered) == case.trace.times[-1]
