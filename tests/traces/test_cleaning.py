"""Cleaning repairs little, counts everything, and refuses the rest in one line."""

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import InvalidValue, Refused, TrailveilError, UnreadableInput
from trailveil.traces.cleaning import Cleaning, clean
from trailveil.traces.trace import Recording, Seen, Trace

START = np.datetime64("2024-05-01T08:00:00", "ns")
BERLIN = ZoneInfo("Europe/Berlin")
Fix = tuple[float | str | None, float, float]  # second of the day, or a time, or none; lat; lon


def recording(fixes: list[Fix], naive: bool | list[bool] = False) -> Recording:
    """Fixes in file order, each in a segment of its own."""
    times = [
        np.datetime64("NaT", "ns")
        if second is None
        else np.datetime64(second, "ns")
        if isinstance(second, str)
        else START + np.timedelta64(round(second * 1e9), "ns")
        for second, _, _ in fixes
    ]
    count = len(fixes)
    return Recording(
        np.array(times, dtype="datetime64[ns]"),
        np.broadcast_to(naive, count),
        np.array([fix[1:] for fix in fixes], dtype=float).reshape(count, 2),
        np.arange(count),
        tuple(range(count)),
        Seen(routes=2),
    )


def sound(count: int) -> list[Fix]:
    return [(10.0 * k, 40 + k / 64, 7.0) for k in range(count)]


def lost(cleaning: Cleaning) -> dict[str, int]:
    """The counts that are not zero, but for the totals and what was beside the trace."""
    other_counts = {"recorded", "kept", "routes", "jumps"}
    return {name: n for name, n in cleaning.counts().items() if n and name not in other_counts}


def refusal(fixes: list[Fix], **options: Any) -> str:
    with pytest.raises((UnreadableInput, Refused)) as caught:
        clean(recording(fixes), **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


def test_a_sound_recording_passes_unchanged() -> None:
    trace, cleaning = clean(recording(sound(4)))
    assert trace.seconds.tolist() == [0, 10, 20, 30]
    assert trace.positions[:, 0].tolist() == [40, 40 + 1 / 64, 40 + 2 / 64, 40 + 3 / 64]
    assert trace.segments.tolist() == [0, 1, 2, 3]
    assert trace.tracks == (0, 1, 2, 3)
    assert lost(cleaning) == {}
    assert cleaning.sentences() == (
        "4 of 4 recorded fixes are used.",
        "The file also held planned routes: 2; none is released.",
    )


def test_times_out_of_order_are_sorted_and_counted() -> None:
    fixes = sound(6)
    trace, cleaning = clean(recording([fixes[k] for k in (0, 3, 1, 2, 5, 4)]))
    assert trace.seconds.tolist() == [0, 10, 20, 30, 40, 50]
    assert trace.segments.tolist() == [0, 2, 3, 1, 5, 4]
    assert lost(cleaning) == {"out_of_order": 3}


def test_repeats_are_dropped_and_of_equal_times_the_first_is_kept() -> None:
    fixes: list[Fix] = [
        (0, 1, 1),
        (5, 2, 2),
        (5, 3, 3),  # another place
        (5, 2, 2),  # the same again
        (9, 4, 4),
        (0, 1, 1),  # the same again, and out of order
    ]
    trace, cleaning = clean(recording(fixes))
    assert trace.positions[:, 0].tolist() == [1, 2, 4]
    assert lost(cleaning) == {"duplicates": 2, "equal_times": 1, "out_of_order": 1}


def test_a_nanosecond_apart_is_not_the_same_time() -> None:
    fixes: list[Fix] = [("2024-05-01T00:00:00.000000001", 1, 1), ("2024-05-01", 2, 2)]
    trace, _ = clean(recording(fixes))
    assert np.diff(trace.times).tolist() == [1]


def test_untimed_fixes_are_withheld_up_to_half() -> None:
    fixes = [*sound(2), (None, 41, 7), (None, 42, 7)]
    trace, cleaning = clean(recording(fixes))
    assert len(trace) == 2
    assert lost(cleaning) == {"untimed": 2}
    assert "usable time, got 3 of 5 without" in refusal([*fixes, (None, 43, 7)])


@pytest.mark.parametrize(
    ("lat", "lon", "count"),
    [
        (400, 7, "bad_positions"),
        (-90.001, 107, "bad_positions"),
        (7, -180.5, "bad_positions"),
        (np.nan, 7, "bad_positions"),
        (7, np.nan, "bad_positions"),
        (np.inf, 7, "bad_positions"),
        (0, 0, "null_positions"),
        (0, -0.0, "null_positions"),
    ],
)
def test_positions_that_are_none_are_dropped_up_to_half(lat: float, lon: float, count: str) -> None:
    fixes = [*sound(2), (100, lat, lon), (110, lat, lon)]
    trace, cleaning = clean(recording(fixes))
    assert len(trace) == 2
    assert lost(cleaning) == {count: 2}
    assert "position in degrees (WGS84), got 3 of 5" in refusal([*fixes, (120, lat, lon)])


@pytest.mark.parametrize("place", [(0, 7.0), (7.0, 0), (90, 0), (-90, 7), (7, 180), (7, -180)])
def test_the_edges_of_the_globe_are_on_it(place: tuple[float, float]) -> None:
    _, cleaning = clean(recording([*sound(1), (100, *place)]))
    assert lost(cleaning) == {}


def test_swapped_axes_are_suspected() -> None:
    fixes = [(t, 139.75, lat) for t, lat, _ in sound(4)]
    assert "look swapped" in refusal([*fixes, *[(100 + k, 40, 7) for k in range(3)]])
    assert "look swapped" not in refusal([(t, 400, lat) for t, lat, _ in sound(4)])
    assert "look swapped" not in refusal([(t, 139.75, 100 + lat) for t, lat, _ in sound(4)])


@pytest.mark.parametrize(
    "time", ["1901-12-13", "1970-01-01T00:00:09", "1980-01-06T00:03:00", "2100-01-01", "2200-05-05"]
)
def test_a_clock_that_was_not_set_counts_as_no_time(time: str) -> None:
    trace, cleaning = clean(recording([*sound(3), (time, 41, 7)]))
    assert len(trace) == 3
    assert lost(cleaning) == {"unset_clock": 1}


def test_a_clock_that_was_never_set_is_at_least_consistent() -> None:
    fixes: list[Fix] = [(f"1970-01-01T00:00:0{second}", 40 + second, 7) for second in range(5)]
    trace, cleaning = clean(recording(fixes))
    assert trace.seconds.tolist() == [0, 1, 2, 3, 4]
    assert lost(cleaning) == {}


def test_unset_clocks_and_missing_times_together_are_too_many() -> None:
    fixes: list[Fix] = [*sound(4), *[(None, 41, 7)] * 3, *[("1970-01-01", 41, 7)] * 2]
    assert "usable time, got 5 of 9 without" in refusal(fixes)


def test_each_lost_fix_is_counted_once() -> None:
    fixes: list[Fix] = [
        *sound(5),
        (None, np.nan, 7),
        ("1970-01-01", 0, 0),
        ("1970-01-01", 41, 7),
        (0, 40, 7),
    ]
    _, cleaning = clean(recording(fixes))
    assert lost(cleaning) == {
        "bad_positions": 1,
        "null_positions": 1,
        "unset_clock": 1,
        "duplicates": 1,
        "out_of_order": 1,
    }
    assert len(cleaning.sentences()) == 1 + 5 + 1


def test_times_without_a_zone_are_refused_with_advice() -> None:
    with pytest.raises(Refused, match=r"got 3 of 4 without: pass --assume-utc, or --tz ZONE"):
        clean(recording(sound(4), naive=[True, False, True, True]))


def test_a_zone_is_no_text() -> None:
    zone: Any = "UTC"
    with pytest.raises(InvalidValue, match="zone must be ZoneInfo, got str: such as ZoneInfo"):
        clean(recording([], naive=True), zone=zone)


def test_times_without_a_zone_are_utc_where_the_caller_says_so() -> None:
    trace, cleaning = clean(recording(sound(3), naive=True), assume_utc=True)
    assert trace.times[0] == START.astype(np.int64)
    assert lost(cleaning) == {"assumed_zone": 3}


def test_local_times_are_read_in_the_zone_of_the_caller_and_others_left_alone() -> None:
    fixes: list[Fix] = [
        ("2024-05-01T08:00:00.000000001", 1, 1),
        ("2024-05-01T08:00:00", 2, 2),
        ("2024-01-01T08:00:00", 3, 3),
    ]
    trace, cleaning = clean(recording(fixes, naive=[True, False, True]), zone=BERLIN)
    expected = ["2024-01-01T07:00", "2024-05-01T06:00:00.000000001", "2024-05-01T08:00"]
    assert trace.times.astype("datetime64[ns]").tolist() == [
        int(np.datetime64(text, "ns").astype(np.int64)) for text in expected
    ]
    assert lost(cleaning) == {"assumed_zone": 2, "out_of_order": 1}


@pytest.mark.parametrize(
    ("times", "unclear"),
    [
        (["2024-10-27T01:59:59", "2024-10-27T02:30:00", "2024-10-27T03:00:00"], 1),  # twice
        (["2024-03-31T01:59:59", "2024-03-31T02:30:00", "2024-03-31T03:00:00"], 1),  # never
        (["2024-06-27T01:59:59", "2024-06-27T02:30:00", "2024-06-27T03:00:00"], 0),
    ],
)
def test_local_times_that_name_no_one_instant_are_withheld(times: list[str], unclear: int) -> None:
    fixes: list[Fix] = [(time, 40 + k, 7) for k, time in enumerate(times)]
    trace, cleaning = clean(recording(fixes, naive=True), zone=BERLIN)
    assert len(trace) == 3 - unclear
    assert cleaning.unclear_clock == unclear
    assert cleaning.untimed == 0


def test_a_recording_of_the_hour_that_clocks_show_twice_is_called_so() -> None:
    twice = [(f"2024-10-27T02:{10 + i}:00", 46.0 + i / 100, 7.0) for i in range(6)]
    with pytest.raises(
        UnreadableInput, match="got 6 of 6 in an hour that the stated zone"
    ) as refused:
        clean(recording([*twice], naive=True), zone=BERLIN)
    assert "times in UTC or with their offset" in str(refused.value)


def test_two_zones_are_one_too_many() -> None:
    with pytest.raises(InvalidValue, match="choose one"):
        clean(recording(sound(3)), assume_utc=True, zone=BERLIN)


def test_a_trace_has_two_fixes_at_least() -> None:
    assert "two fixes or more at different times, got 1 of 1 usable" in refusal(sound(1))
    assert "got 1 of 3 (2 duplicates)" in refusal(sound(1) * 3)
    assert "got 0 of 0" in refusal([])


def test_all_fixes_at_one_time_are_refused_with_the_reason() -> None:
    assert "got 1 of 9 (8 equal times)" in refusal([(0, 40 + k, 7) for k in range(9)])
    nearly: list[Fix] = [*[(0, 40.0 + k, 7) for k in range(9)], (5, 41, 7)]
    assert "times must tell fixes apart, got 9 of 10 at one instant" in refusal(nearly)


def test_many_fixes_a_second_told_in_whole_seconds_are_thinned_and_counted() -> None:
    fixes: list[Fix] = [(k // 7, 40 + 1e-6 * k, 7) for k in range(20_000)]
    trace, cleaning = clean(recording(fixes))
    assert len(trace) == 2858
    assert lost(cleaning) == {"equal_times": 17_142}
    assert trace.positions[5, 0] == 40 + 35e-6


def test_times_are_assigned_where_there_are_none() -> None:
    fixes: list[Fix] = [(None, 40, 7), (None, np.nan, 7), (None, 41, 7), (None, 42, 7)]
    assert "--every SECONDS" in refusal(fixes)
    trace, cleaning = clean(recording(fixes), every=2.5)
    assert trace.seconds.tolist() == [0, 5, 7.5]
    assert trace.times[0] == np.datetime64("2000-01-01", "ns").astype(np.int64)
    assert lost(cleaning) == {"bad_positions": 1, "assigned_times": 4}
    assert "--every must be for recordings without times, got 1 of 5" in refusal(
        [*fixes, (3, 40, 7)], every=2.5
    )
    unreadable = replace(recording(fixes), seen=Seen(unreadable_times=2))
    with pytest.raises(Refused, match="got 2 of 4"):
        clean(unreadable, every=2.5)
    for every in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(InvalidValue, match="--every must be seconds"):
            clean(recording(fixes), every=every)


@pytest.mark.parametrize(
    ("place", "seconds", "jumps"),
    [
        ((50.0, 7.0), 60, 1),  # 1,100 km in a minute
        ((40.0, -179.9), 86_400 * 2, 0),  # round the world in two days
        ((40.0, 7.009), 1, 0),  # 770 m in a second: a receiver may do that
        ((40.0, 7.02), 1, 1),
        ((40.0, 7.02), 6, 0),
    ],
)
def test_jumps_are_kept_and_counted(place: tuple[float, float], seconds: int, jumps: int) -> None:
    trace, cleaning = clean(recording([(0, 40, 7), (seconds, *place)]))
    assert len(trace) == 2
    assert cleaning.jumps == jumps


@pytest.mark.parametrize("latitude", [0.0, 60.0, 89.0])
def test_the_antimeridian_is_no_jump(latitude: float) -> None:
    fixes: list[Fix] = [(0, latitude, 179.9999), (1, latitude, -179.9999)]
    assert clean(recording(fixes))[1].jumps == 0


def test_a_recording_saved_three_times_over_is_not_refused() -> None:
    trace, cleaning = clean(recording(sound(5) * 3))
    assert len(trace) == 5
    assert cleaning.duplicates == 10


def test_losses_that_are_bearable_alone_are_refused_together() -> None:
    fixes: list[Fix] = [*sound(4), *[(None, 41, 7)] * 3, *[(200, np.nan, 7)] * 2]
    assert "got 4 of 9 (3 untimed, 2 bad positions)" in refusal(fixes)


TIMES = st.one_of(st.none(), st.integers(0, 12), st.sampled_from(["1970-01-01", "2150-01-01"]))
DEGREES = st.sampled_from([0.0, 1.0, 2.0, 89.0, 120.0, 400.0, np.nan])


@given(st.lists(st.tuples(TIMES, DEGREES, DEGREES), max_size=30))
def test_every_fix_is_kept_or_counted_once_and_refusals_are_our_own(fixes: list[Fix]) -> None:
    try:
        trace, cleaning = clean(recording(fixes))
    except TrailveilError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine
        return
    counts = cleaning.counts()
    reasons = ("bad_positions", "null_positions", "untimed", "unset_clock", "unclear_clock")
    gone = sum(counts[name] for name in (*reasons, "duplicates", "equal_times"))
    assert len(trace) + gone == len(fixes) == cleaning.recorded
    assert len(trace) == cleaning.kept
    assert 2 * len(trace) >= len(fixes) - cleaning.duplicates - cleaning.equal_times


@given(st.lists(st.tuples(TIMES, DEGREES, DEGREES), max_size=30))
def test_fields_stay_beside_their_fixes(fixes: list[Fix]) -> None:
    marked = replace(recording(fixes), fields=(("power", np.arange(float(len(fixes)))),), names=())
    try:
        trace, _ = clean(marked)
    except TrailveilError:
        return
    # Each fix has a segment of its own here.
    assert trace.fields[0][1].tolist() == trace.segments.tolist()


@given(st.permutations(range(6)))
def test_the_order_in_the_file_does_not_matter_where_times_differ(order: list[int]) -> None:
    fixes = sound(6)
    stated = (("power", np.array(order, dtype=float)),)
    shuffled, _ = clean(replace(recording([fixes[k] for k in order]), fields=stated))
    straight, _ = clean(recording(fixes))
    assert shuffled.times.tolist() == straight.times.tolist()
    assert shuffled.positions.tolist() == straight.positions.tolist()
    assert shuffled.segments.tolist() == np.argsort(order).tolist()
    assert shuffled.fields[0][1].tolist() == [0, 1, 2, 3, 4, 5]


def test_cleaning_what_is_clean_changes_nothing() -> None:
    trace, _ = clean(recording([*sound(5), *sound(3), (None, 40, 7)]))
    again, cleaning = clean(as_recording(trace))
    assert again.times.tolist() == trace.times.tolist()
    assert again.positions.tolist() == trace.positions.tolist()
    assert lost(cleaning) == {}


def as_recording(trace: Trace) -> Recording:
    times = trace.times.astype("datetime64[ns]")
    naive = np.zeros(len(trace), dtype=np.bool_)
    return Recording(times, naive, trace.positions, trace.segments, trace.tracks)
