"""Recordings and traces: what they accept, what they refuse, what they never show."""

import io
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from numpy.typing import ArrayLike

from tests.rides import ride
from trailveil.errors import InvalidValue
from trailveil.release.drawing import draw
from trailveil.release.protect import protect
from trailveil.release.request import Request
from trailveil.traces.formats import write
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Recording, Trace, cut_out

TIMES = [1_700_000_000_000_000_000, 1_700_000_000_000_000_001, 1_700_000_007_500_000_000]
PLACES = [[48.25, 11.5], [48.26, 11.51], [-90.0, 180.0]]


def trace(
    times: ArrayLike = TIMES,
    positions: ArrayLike = PLACES,
    segments: ArrayLike = (0, 0, 1),
    tracks: tuple[int, ...] = (0, 0),
) -> Trace:
    # The annotations ask for arrays; what is not one is converted or refused.
    return Trace(
        np.asarray(times), np.asarray(positions, dtype=float), np.asarray(segments), tracks
    )


def test_seconds_are_differences_of_integers() -> None:
    # In float64 seconds since 1970 a nanosecond is lost: it must survive here.
    assert trace().seconds.tolist() == [0.0, 1e-9, 7.5]
    assert trace().duration == 7.5
    assert len(trace()) == 3


def test_an_empty_trace_has_no_duration() -> None:
    empty = trace().only(np.zeros(3, dtype=bool))
    assert len(empty) == 0
    assert empty.duration == 0.0
    assert empty.seconds.tolist() == []


def test_only_keeps_rows_and_numbers_of_segments() -> None:
    part = trace().only([False, True, True])
    assert part.times.tolist() == TIMES[1:]
    assert part.positions.tolist() == PLACES[1:]
    assert part.segments.tolist() == [0, 1]
    assert part.tracks == (0, 0)


@pytest.mark.parametrize("mask", [[True, False], [0, 1, 1], [[True, False, True]]])
def test_only_wants_one_truth_value_a_fix(mask: ArrayLike) -> None:
    with pytest.raises(InvalidValue, match="one truth value for each fix"):
        trace().only(mask)


def test_arrays_are_copies_and_read_only() -> None:
    positions = np.array(PLACES)
    held = Trace(np.array(TIMES), positions, np.array([0, 0, 1]), (0, 0))
    positions[0, 0] = 0.0
    assert held.positions[0, 0] == 48.25
    for array in (held.times, held.positions, held.segments):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(FrozenInstanceError):
        held.tracks = ()  # type: ignore[misc]  # this is what is tested


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("times", [TIMES[0], TIMES[0], TIMES[2]], "strictly increase, got a fix at index 1"),
        ("times", TIMES[::-1], "strictly increase"),
        ("times", [0.0, 1.0, 2.0], "times must be integers, got float64"),
        ("times", [TIMES], "times must have one dimension"),
        ("positions", PLACES[:2], r"positions must be \(3, 2\), got \(2, 2\)"),
        ("positions", [[90.0001, 0], *PLACES[1:]], "something else at index 0"),
        ("positions", [*PLACES[:2], [0, -180.5]], "something else at index 2"),
        ("positions", [PLACES[0], [np.nan, 0], PLACES[2]], "something else at index 1"),
        ("positions", [[np.inf, 0], *PLACES[1:]], "something else at index 0"),
        ("segments", [0, 0], r"segments must be \(3,\), got \(2,\)"),
        ("segments", [0, 0, 2], "numbers from 0 to 1, got 0 to 2"),
        ("segments", [-1, 0, 0], "numbers from 0 to 1, got -1 to 0"),
        ("segments", [0.0, 0.0, 1.0], "segments must be integers"),
    ],
)
def test_what_is_no_cleaned_trace_is_refused(part: str, value: ArrayLike, message: str) -> None:
    arguments = {"times": TIMES, "positions": PLACES, "segments": (0, 0, 1)} | {part: value}
    with pytest.raises(InvalidValue, match=message):
        trace(**arguments)  # type: ignore[arg-type]  # wrong on purpose


FIELDS = (("speed", np.array([1.5, np.nan, 3.0])), ("power", np.array([7.0, 8.0, 9.0])))


def with_fields(*fields: tuple[str, np.ndarray], names: tuple[str, ...] = ()) -> Trace:
    return replace(trace(), fields=fields, names=names)


def test_fields_and_names_go_with_their_fixes_and_tracks() -> None:
    held = with_fields(*FIELDS, names=("a\nb",))
    part = held.only([False, True, True])
    assert [(name, values.tolist()[1]) for name, values in part.fields] == [
        ("speed", 3.0),
        ("power", 9.0),
    ]
    assert np.isnan(part.fields[0][1][0])
    assert part.names == ("a b",)
    assert trace().fields == ()
    assert trace().names == ()
    with pytest.raises(ValueError, match="read-only"):
        held.fields[0][1][0] = 0
    assert repr(held) == repr(trace())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("speed", np.zeros(2))], r"fields must be \(3,\), got \(2,\)"),
        ([("distance", np.zeros(3))], "fields must be of elevation, speed"),
        ([("speed", np.zeros(3)), ("speed", np.zeros(3))], "each once"),
    ],
)
def test_fields_that_do_not_fit_are_refused(
    fields: list[tuple[str, np.ndarray]], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        with_fields(*fields)


def test_each_track_has_a_name_or_none_has() -> None:
    with pytest.raises(InvalidValue, match="one for each track, got 1"):
        replace(trace(tracks=(0, 1)), names=("a",))


def test_nothing_printed_shows_a_position_or_a_time() -> None:
    recording = Recording(
        np.array(TIMES, dtype="datetime64[ns]"),
        np.zeros(3, dtype=bool),
        np.array(PLACES),
        np.zeros(3, dtype=np.intp),
        (0,),
    )
    assert repr(recording) == str(recording) == "Recording(3 fixes, 1 segments)"
    assert repr(trace()) == str(trace()) == "Trace(3 fixes, 8 s)"


@pytest.mark.parametrize("naive", [np.zeros(2, dtype=bool), np.zeros((3, 1), dtype=bool)])
def test_a_recording_has_one_flag_for_each_time(naive: np.ndarray) -> None:
    times = np.array(TIMES, dtype="datetime64[ns]")
    with pytest.raises(InvalidValue, match="one flag for each time"):
        Recording(times, naive, np.array(PLACES), np.zeros(3, dtype=np.intp), (0,))


def test_a_recording_may_hold_what_a_trace_may_not() -> None:
    times = np.array(["2020-01-01", "NaT", "2019-01-01"], dtype="datetime64[ns]")
    positions = np.array([[400.0, np.nan], [0, 0], [1, 2]])
    recording = Recording(times, np.zeros(3, dtype=bool), positions, np.zeros(3, np.intp), (0,))
    assert len(recording) == 3
    assert np.isnat(recording.times).tolist() == [False, True, False]


TRACE = ride(120, 5.0)
FORMS = [row.suffixes[0] for row in FORMATS if row.write]


def with_bounds(segments: np.ndarray) -> Trace:
    """Segments begin at these rows."""
    bounds = np.zeros(len(TRACE), dtype=np.intp)
    bounds[segments] = 1
    return replace(TRACE, segments=np.cumsum(bounds), tracks=(0,) * len(TRACE))


def written(trace: Trace, suffix: str) -> bytes:
    out = io.BytesIO()
    write(trace, out, suffix)
    return out.getvalue()


@pytest.mark.parametrize("suffix", FORMS)
def test_bounds_inside_of_cuts_tell_nothing(suffix: str) -> None:
    rng = np.random.default_rng(20)
    moved = 0
    for _ in range(30):
        released = np.ones(len(TRACE), dtype=np.bool_)
        for start in rng.integers(0, len(TRACE), 3):
            released[start : start + rng.integers(1, 30)] = False
        # A bound of row i is between i - 1 and i: it shows where both of them are released.
        shows = np.flatnonzero(released & np.append(False, released[:-1]))
        hidden = np.setdiff1d(np.arange(1, len(TRACE)), shows)
        fixed = rng.choice(shows, 4, replace=False)
        data = set()
        for _ in range(4):
            others = rng.choice(hidden, rng.integers(0, 6))
            trace = with_bounds(np.concatenate([fixed, others]))
            data.add(written(cut_out(trace, released), suffix))
            moved += len(others)
        assert len(data) == 1
    assert moved > 100


def test_bounds_between_released_fixes_stay() -> None:
    released = np.ones(len(TRACE), dtype=np.bool_)
    released[:10] = released[50:60] = False
    part = cut_out(with_bounds(np.array([5, 30, 50, 55, 60, 80])), released)
    rows = np.flatnonzero(released)
    assert rows[1:][np.diff(part.segments) != 0].tolist() == [30, 80]


def test_a_new_track_is_one_after_a_cut_too() -> None:
    segments = (np.arange(len(TRACE)) >= 55).astype(np.intp)
    released = np.ones(len(TRACE), dtype=np.bool_)
    released[50:60] = False
    trace = replace(TRACE, segments=segments, tracks=(0, 1))
    assert np.unique(cut_out(trace, released).segments).tolist() == [0, 1]
    assert np.unique(cut_out(replace(trace, tracks=(0, 0)), released).segments).tolist() == [0]


def test_segments_that_go_on_among_others_are_as_recorded() -> None:
    segments = np.arange(len(TRACE)) // 10 % 2
    released = np.ones(len(TRACE), dtype=np.bool_)
    released[15:25] = False
    trace = replace(TRACE, segments=segments, tracks=(0, 0))
    assert cut_out(trace, released).segments.tolist() == segments[released].tolist()


def test_a_gpx_with_several_segments_stays_so() -> None:
    trace = with_bounds(np.array([1, 60, 90, 118]))
    parts = tuple(Chosen(returns=False).stretches(trace))
    plan = protect(trace, Request(parts, floor=10.0, middle=10.0, uncertain=10))
    assert plan.mechanism.rows.size < len(trace) - 4
    out = written(draw(plan, bytes(32))[0], ".gpx")
    assert out.count(b"<trkseg>") == 3
