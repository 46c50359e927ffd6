"""Times as people write them; what is ambiguous is refused with the candidates; ends; merging."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rides import BEGIN, ride
from trailveil.errors import InvalidValue, Refused
from trailveil.traces.selection import (
    Chosen,
    Stretch,
    at,
    between,
    ends,
    merged,
    near,
    stops,
)
from trailveil.traces.stated_times import in_words, moment
from trailveil.traces.stops import LASTS, STILL_BEGINS, STILL_FOR, STILL_WITHIN, WITHIN
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import Circle

BERLIN = ZoneInfo("Europe/Berlin")
KOLKATA = ZoneInfo("Asia/Kolkata")
HOUR = ride(61, 60.0)  # 2024-05-14, 07:40 to 08:40 UTC


def seconds(when: int) -> float:
    return when / NANOSECONDS - BEGIN


def spanning(first: str, last: str) -> Trace:
    """Two fixes at these times (ISO 8601)."""
    times = [int(datetime.fromisoformat(text).timestamp()) * NANOSECONDS for text in (first, last)]
    places = np.array([[48.0, 11.0], [48.1, 11.1]])
    return Trace(np.array(times), places, np.zeros(2, dtype=np.intp), (0,))


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("start", 0),
        ("end", 3600),
        ("start+5m", 300),
        ("end-1h", 0),
        ("end-10m30s", 2970),
        ("start+0.25h", 900),
        ("start+0.1s", 0.1),
        ("2024-05-14T08:00:00Z", 1200),
        ("2024-05-14T08:00Z", 1200),
        ("2024-05-14 08:00+00:00", 1200),
        ("2024-05-14T10:00:00.5+02:00", 1200.5),
        ("20240514T080000Z", 1200),
        (" start+5m ", 300),
    ],
)
def test_times_that_need_no_zone(text: str, after: float) -> None:
    for zone in (None, BERLIN):
        assert seconds(moment(text, HOUR, zone)) == pytest.approx(after, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "zone", "after"),
    [
        ("10:00", BERLIN, 1200),
        ("10:00:30", BERLIN, 1230),
        ("8:00", UTC, 1200),
        ("13:30", KOLKATA, 1200),
        ("2024-05-14T10:00", BERLIN, 1200),
        ("2024-05-14 10:00:00.25", BERLIN, 1200.25),
    ],
)
def test_times_in_a_zone(text: str, zone: ZoneInfo, after: float) -> None:
    assert seconds(moment(text, HOUR, zone)) == pytest.approx(after, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "start+5",
        "start5m",
        "middle",
        "start+",
        "5m",
        "25:00",
        "08:60",
        "08:00:61",
        "2024-13-01T00:00Z",
        "2024-02-30T00:00Z",
        "0001-01-01T00:00:00+23:00",
        "start+" + "9" * 400 + "h",
        "1715672400",
        "2024-05-14T08:00:00Z; rm",
        "\u0661\u0660:00",
    ],
)
def test_what_is_no_time(text: str) -> None:
    for zone in (None, BERLIN):
        with pytest.raises((InvalidValue, Refused)) as caught:
            at(text, HOUR, zone)
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)


def test_a_time_without_a_zone_is_refused_with_the_candidates() -> None:
    with pytest.raises(Refused, match="must state its zone, got '2024-05-14T08:00'"):
        moment("2024-05-14T08:00", HOUR, None)
    with pytest.raises(
        Refused, match=r"--tz ZONE \(the recording is from 2024-05-14 07:40:00 UTC to"
    ):
        moment("08:00", HOUR, None)
    with pytest.raises(Refused, match=r"\(the recording is from 2024-05-14 07:40:00 UTC to"):
        moment("12:00", HOUR, None)


def test_a_clock_time_of_several_days_is_refused_with_the_candidates() -> None:
    trip = spanning("2024-05-14T06:00+00:00", "2024-05-16T07:00+00:00")
    with pytest.raises(Refused, match=r"'08:30' 3 times \(2024-05-14T08:30:00\+02:00, 2024-05-15"):
        moment("08:30", trip, BERLIN)
    assert moment("09:30", spanning("2024-05-14T07:00Z", "2024-05-15T07:00Z"), BERLIN)
    with pytest.raises(
        Refused, match=r"2024-05-14 10:40:00 CEST\), got '12:00' 0 times; state a time within"
    ):
        moment("12:00", HOUR, BERLIN)
    long = spanning("2020-01-01T00:00Z", "2024-01-01T00:00Z")
    with pytest.raises(Refused, match=r"1461 times \(.*, \.\.\.\)") as caught:
        moment("08:30", long, BERLIN)
    assert len(str(caught.value)) < 400


def test_midnight_lies_on_the_day_of_the_zone() -> None:
    night = spanning("2024-05-14T21:30:00+00:00", "2024-05-14T23:30:00+00:00")
    assert moment("00:30", night, BERLIN) == moment("2024-05-14T22:30:00Z", night, None)
    assert moment("23:45", night, BERLIN) == moment("2024-05-14T21:45:00Z", night, None)


@pytest.mark.parametrize("text", ["02:30", "2024-10-27T02:30"])
def test_an_hour_that_clocks_show_twice(text: str) -> None:
    autumn = spanning("2024-10-26T23:00:00+00:00", "2024-10-27T03:00:00+00:00")
    with pytest.raises(Refused, match="2 times") as caught:
        moment(text, autumn, BERLIN)
    candidates = ["2024-10-27T02:30:00+02:00", "2024-10-27T02:30:00+01:00"]
    assert ", ".join(candidates) in str(caught.value)
    moments = [moment(candidate, autumn, BERLIN) for candidate in candidates]
    assert moments[1] - moments[0] == 3600 * NANOSECONDS
    half = spanning("2024-10-26T23:00:00+00:00", "2024-10-27T01:00:00+00:00")
    if text == "02:30":  # only once within the recording
        assert moment(text, half, BERLIN) == moments[0]


@pytest.mark.parametrize("text", ["02:30", "2024-03-31T02:30"])
def test_an_hour_that_clocks_never_show(text: str) -> None:
    spring = spanning("2024-03-30T23:00:00+00:00", "2024-03-31T03:00:00+00:00")
    with pytest.raises(Refused, match="0 times"):
        moment(text, spring, BERLIN)


@given(st.integers(0, 3600), st.sampled_from([BERLIN, KOLKATA, UTC]))
def test_every_clock_time_of_the_recording_is_found(after: int, zone: ZoneInfo) -> None:
    when = int(HOUR.times[0]) + after * NANOSECONDS
    shown = datetime.fromtimestamp(when // NANOSECONDS, zone)
    for text in (shown.strftime("%H:%M:%S"), shown.isoformat(), f"start+{after}s"):
        assert moment(text, HOUR, zone) == when


def test_protected_times_are_within_the_recording() -> None:
    for text in ("start-1s", "end+1s", "2024-05-14T07:39:59Z", "2031-01-01T00:00Z"):
        with pytest.raises(Refused, match=r"within the recording \(2024-05-14 07:40:00 UTC to"):
            at(text, HOUR, None)
        with pytest.raises((Refused, InvalidValue)):
            between("start", text, HOUR, None)
    assert at("start+90s", HOUR, None).rows(HOUR).sum() == 0  # a time without a fix is one, too
    assert at("end", HOUR, None).rows(HOUR).sum() == 1


def test_stays_have_a_beginning_and_then_an_end() -> None:
    for first, second in (("start+5m", "start+5m"), ("end", "start")):
        with pytest.raises(InvalidValue, match="the earlier one first"):
            between(first, second, HOUR, None)
    stay = between("start+5m", "end-5m", HOUR, None)
    assert stay.is_stay
    assert stay.seconds(HOUR) == (300.0, 3300.0)
    assert stay.rows(HOUR).sum() == 51
    assert between("start+10s", "start+20s", HOUR, None).rows(HOUR).sum() == 0


def stretch(begin: int, end: int, by_place: bool = False, label: str = "x") -> Stretch:
    return Stretch(label, begin, end, by_place)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([(0, 10), (5, 20)], [(0, 20)]),
        ([(5, 20), (0, 10)], [(0, 20)]),
        ([(0, 30), (5, 20)], [(0, 30)]),
        ([(0, 10), (5, 20), (15, 30)], [(0, 30)]),
        ([(0, 10), (10, 20)], [(0, 10), (10, 20)]),
        ([(0, 10), (20, 30)], [(0, 10), (20, 30)]),
        ([(5, 5), (5, 5)], [(5, 5)]),
        ([(0, 10), (5, 5)], [(0, 10), (5, 5)]),
        ([(0, 10), (0, 10)], [(0, 10)]),
        ([], []),
    ],
)
def test_merging(given: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    stretches = merged([stretch(*span) for span in given])
    assert [(whole.begin, whole.end) for whole in stretches] == expected


spans = st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda span: (span[0], sum(span)))


@given(st.lists(spans, max_size=6))
def test_merging_loses_no_moment_and_leaves_no_overlap(given: Sequence[tuple[int, int]]) -> None:
    stretches = merged([stretch(*span) for span in given])
    for begin, end in given:
        assert any(stay.begin <= begin and end <= stay.end for stay in stretches)
    stays = [stay for stay in stretches if stay.is_stay]
    assert all(stay.end <= other.begin for stay, other in pairwise(stays))
    assert stretches == merged(stretches)


def test_places_and_stays_add_up_and_say_so() -> None:
    """Two places on a straight way, and a stay at its end that is near the second of them."""
    trace, _ = walked(*range(0, 3000, 30), *[3000.0] * 60)
    home, other = Circle(48.0, 11.0, 100.0), Circle(48.0 + 3000 / 111_000, 11.0, 50.0)
    visit, back = near(home, trace), near(other, trace, number=2)
    assert [part.label for part in [*visit, *back]] == [
        "near stated place 1",
        "near stated place 2",
    ]
    assert [(part.seconds(trace)) for part in [*visit, *back]] == [(0.0, 30.0), (990.0, 1590.0)]
    (stay,) = stops(trace)
    assert all(part.by_place for part in [*visit, *back, stay])
    both = Chosen(
        ("start+5m",), (), None, (home, other), stops=(WITHIN, LASTS), ends=False
    ).stretches(trace)
    labels = [
        "near stated place 1",
        "at a stated time",
        "a stay that was found, near stated place 2",
    ]
    assert [part.label for part in both] == labels
    assert [part.by_place for part in both] == [True, False, True]


def test_places_that_were_not_visited_and_stays_that_are_not_there() -> None:
    trace, _ = walked(*range(0, 3000, 30))
    for place, hint in (
        (Circle(48.5, 11.0, 100.0), "check LAT,LON,METRES, or state more metres"),
        (Circle(11.0, 48.0, 100.0), "the other way round there are"),
        (Circle(48.0, 111.0, 100.0), "check LAT,LON,METRES, or state more metres"),
    ):
        with pytest.raises(Refused, match=f"no visit to place 3: .*{hint}") as caught:
            near(place, trace, number=3)
        assert not re.search("48|11", str(caught.value))
    assert stops(trace) == stops(trace, 180.0, 60.0) == []
    looked_for = Chosen(stops=(180.0, 60.0), ends=False)
    with pytest.raises(Refused, match=r"no stay that --stops auto finds \(1 min within 180 m\)"):
        looked_for.stretches(trace)
    with pytest.raises(Refused, match="got --no-ends and nothing else: state times"):
        Chosen(ends=False).stretches(trace)
    assert replace(looked_for, ends=True).stretches(trace) == Chosen().stretches(trace)
    assert len(stops(trace, 190.0, 60.0)) == 1


def test_merging_keeps_what_was_chosen_by_place_and_the_names() -> None:
    joined = merged([stretch(0, 10, True, "a"), stretch(5, 20, label="b"), stretch(15, 30)])
    assert joined == [Stretch("a, b, x", 0, 30, True)]
    for order in (1, -1):
        (time,) = merged([stretch(5, 5, True, "a"), stretch(5, 5, label="b")][::order])
        assert time == Stretch("a, b" if order == 1 else "b, a", 5, 5, True)


def walked(*metres: float, step: float = 10.0) -> tuple[Trace, np.ndarray]:
    """A trace along a meridian, and its places in micrometres."""
    count = len(metres)
    times = np.round(np.arange(count) * step * NANOSECONDS).astype(np.int64)
    north = np.array(metres)
    places = np.column_stack([48 + north / 111_000, np.full(count, 11.0)])
    lattice = np.column_stack([np.zeros(count), north * 1e6]).astype(np.int64)
    return Trace(times, places, np.zeros(count, dtype=np.intp), (0,)), lattice


STILL = [0.0, 5.0, -5.0, 10.0, 0.0]
AWAY = [200.0, 400.0, 600.0]


@pytest.mark.parametrize(
    ("metres", "first", "last"),
    [
        ([0.0, *AWAY, 1000.0], 0, 4),  # moving at once
        ([*STILL, *AWAY, 1000.0], 4, 8),  # standing at first
        ([0.0, *AWAY, *STILL], 0, 4),  # a loop that ends standing where it began
        ([*STILL, *AWAY, *STILL], 4, 8),
        ([900.0, *STILL, *AWAY, 1000.0], 5, 9),  # the first fix far off, as receivers do
        ([0.0, 29.0, 200.0], 0, 2),  # near, but not for long
        ([*STILL, 900.0], 4, 5),  # still but for the last fix, which is an end of its own
        ([*STILL, *[500.0 + metres for metres in STILL]], 4, 5),  # two places, one leap between
    ],
)
def test_ends(metres: list[float], first: int, last: int) -> None:
    trace, _ = walked(*metres)
    begin, end = ends(trace)
    assert (begin.begin, begin.end) == (trace.times[0], trace.times[first])
    assert (end.begin, end.end) == (trace.times[last], trace.times[-1])
    assert begin.by_place
    assert end.by_place


@pytest.mark.parametrize("metres", [STILL, [0.0, 1.0, 0.0, 1.0], [0.0] * 7])
def test_a_recording_that_stands_still_is_one_stay(metres: list[float]) -> None:
    trace, _ = walked(*metres)
    (whole,) = ends(trace)
    assert (whole.begin, whole.end, whole.by_place) == (trace.times[0], trace.times[-1], True)


def test_two_fixes() -> None:
    trace, _ = walked(0.0, 500.0)
    assert [end.is_stay for end in ends(trace)] == [False, False]
    trace, _ = walked(0.0, 5.0, step=600.0)
    assert len(ends(trace)) == 1


@given(st.lists(st.floats(-200, 200), min_size=2, max_size=30))
def test_ends_hold_the_first_and_the_last_fix(metres: list[float]) -> None:
    trace, lattice = walked(*metres)
    stretches = ends(trace)
    assert stretches[0].begin == trace.times[0]
    assert stretches[-1].end == trace.times[-1]
    for end in stretches[:1]:
        rows = end.rows(trace)
        if end.is_stay and len(stretches) == 2:
            assert rows.sum() * 10.0 > STILL_FOR
            late = rows & (trace.seconds > STILL_BEGINS)
            assert np.ptp(lattice[late, 1]) <= 2e6 * STILL_WITHIN if late.any() else True


def test_words() -> None:
    when = int(HOUR.times[0])
    assert in_words(when) == "2024-05-14 07:40:00 UTC"
    assert in_words(when + 999_999_999, BERLIN) == "2024-05-14 09:40:00 CEST"
    assert in_words(-1) == "1969-12-31 23:59:59 UTC"
