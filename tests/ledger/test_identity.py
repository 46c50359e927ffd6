"""One person, one series, one recording, however each is written."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.rides import ride
from trailveil.errors import InvalidValue, Refused
from trailveil.ledger import Ledger
from trailveil.ledger.commit import publish
from trailveil.ledger.identity import (
    ENOUGH,
    WINDOW_BYTES,
    content_of,
    prints_of,
    series_named,
    subject_named,
    windows_of,
)
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.retiming import SHIFTED_TO
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS, Trace

KEY = bytes(range(32))
HOUR = 3600 * NANOSECONDS


@pytest.mark.parametrize("name", ["me", "Me", " me ", "ME", "\uff4d\uff45", "\u2133e", "me\t"])
def test_a_person_is_one_in_any_case_width_and_spacing(name: str) -> None:
    assert subject_named(name) == "me"


@pytest.mark.parametrize(
    "name",
    [
        "anna maria",
        "j\u00fcrgen",
        "\u0418\u0432\u0430\u043d",
        "\u9234\u6728 \u30a2\u30ad",
        "p-17_b",
        "7",
    ],
)
def test_honest_names_of_any_script_are_taken(name: str) -> None:
    assert subject_named(name) == name.casefold()
    assert subject_named(subject_named(name)) == subject_named(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "   ", "x" * 101, "m\ne\x07", "me\u200b", "me\u034f", "me\ufe0f", "\u202eem"),
        *(
            "m\u0435",
            "\u043c\u0435",
            "\u039c\u0395",
            "\u1d0d\u1d07",
            "\u0251nna",
            "\U0001f17c\U0001f174",
        ),
    ],
)
def test_a_name_that_could_be_taken_for_another_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="the name of a person must be"):
        subject_named(name)


@pytest.mark.parametrize(
    "name", ["temperature (degC)", "Temperature", " TEMPERATURE [K]", "temperature"]
)
def test_a_series_is_one_in_any_case_and_unit(name: str) -> None:
    assert series_named(name) == "temperature"
    assert series_named("(degC)") == "(degc)"
    assert series_named("temperature 2") != series_named(name)


def irregular(count: int = 400, seed: int = 0) -> NDArray[np.int64]:
    """Times of a receiver that stores a fix every 1 to 8 s, as it turns."""
    steps = np.random.default_rng(seed).integers(1, 9, count - 1)
    return np.concatenate([[0], np.cumsum(steps)]) * NANOSECONDS + 1_715_672_400 * NANOSECONDS


def jittered(count: int = 400, seed: int = 0) -> NDArray[np.int64]:
    """A fix a second, some milliseconds early or late."""
    late = np.random.default_rng(seed).integers(0, 40, count) * 10**6
    return np.arange(count) * NANOSECONDS + late


def patchy(count: int = 4000, seed: int = 0) -> NDArray[np.int64]:
    """A fix a second, one in ten lost."""
    recorded = np.random.default_rng(seed).random(count) > 0.1
    return np.flatnonzero(recorded) * NANOSECONDS


def common(first: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    return len(set(windows_of(KEY, first)) & set(windows_of(KEY, other)))


@pytest.mark.parametrize("times", [irregular(), jittered(), patchy()], ids=["turns", "ms", "lost"])
@pytest.mark.parametrize(
    "copied",
    [
        lambda t: t + 9 * HOUR // 4,
        lambda t: t - 10**6,
        lambda t: t + 86_400 * NANOSECONDS + 123_456_789,
        lambda t: t[t.size // 3 :] + 7 * HOUR,
    ],
    ids=["zone", "1 ms", "any", "part"],
)
def test_a_copy_at_other_times_shares_windows(
    times: NDArray[np.int64], copied: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> None:
    assert common(times, copied(times)) >= ENOUGH


def schedule(steps: list[int], count: int) -> NDArray[np.int64]:
    return np.cumsum(np.resize(steps, count)) * NANOSECONDS


REGULAR = {
    "a fix a second": schedule([1], 4000),
    "every ten minutes": schedule([600], 500),
    "on and off": schedule([5] * 12 + [240], 2000),
    "a clock of 15.7 s": np.floor(np.arange(3000) * 15.7).astype(np.int64) * NANOSECONDS,
    "a clock of pi s": np.floor(np.arange(3000) * math.pi).astype(np.int64) * NANOSECONDS,
    "a week's timetable": schedule([420, 60, 300, 7200, 900, 60, 13_000, 62_460], 900),
    "one long gap": np.concatenate([schedule([1], 900), schedule([1], 900) + HOUR]),
    "few fixes": irregular(20),
}


@pytest.mark.parametrize("times", REGULAR.values(), ids=REGULAR.keys())
def test_what_other_recordings_have_as_well_tells_nothing(times: NDArray[np.int64]) -> None:
    assert windows_of(KEY, times) == []


@pytest.mark.parametrize("kind", [irregular, jittered, patchy])
def test_recordings_of_one_receiver_share_no_window(
    kind: Callable[..., NDArray[np.int64]],
) -> None:
    """A pair of windows is alike with 2^-64, their hashes with 2^-48: some 10^5 pairs here."""
    windows = [windows_of(KEY, kind(seed=seed)) for seed in range(20)]
    assert all(len(recording) >= ENOUGH for recording in windows)
    assert len({window for recording in windows for window in recording}) == sum(
        len(recording) for recording in windows
    )
    assert {len(window) for recording in windows for window in recording} == {WINDOW_BYTES}


def test_without_the_key_no_guess_of_times_can_be_tried() -> None:
    assert not set(windows_of(KEY, irregular())) & set(windows_of(bytes(32), irregular()))


def test_a_recording_of_few_places_is_not_known_by_its_content() -> None:
    """Home, work, home, work: on any day as on any other."""
    times = schedule([8 * 3600], 6)
    steps = np.array([[0, 0], [5, 5]] * 3)
    assert prints_of(KEY, content_of(times, steps), times, steps) == bytes(16)
    many = np.arange(40).reshape(20, 2)
    whole = [
        prints_of(KEY, content_of(times, many), times, many)
        for times in (schedule([60], 20), schedule([60], 20) + 7 * HOUR)
    ]
    assert whole[0] == whole[1] != bytes(16)


def released(ledger: Ledger, trace: Trace, output: Path, *, again: bool = False) -> float:
    request = Request((), method=Method.NOISE)
    plan = protect(trace, requested(trace, Chosen(("start+10m",), ends=False), request))
    account = publish(plan, ledger, output, again=again).account
    return math.nan if account is None else account.known


TRACE = ride(60, 20.0)


def at_times(times: NDArray[np.int64], seed: int = 1) -> Trace:
    trace = ride(times.size, 5.0, seed=seed)
    return replace(trace, times=times)


def untimed(trace: Trace, every: float) -> Trace:
    """As `--every` gives times to what has none."""
    steps = np.arange(len(trace)) * round(every * NANOSECONDS)
    return replace(trace, times=SHIFTED_TO + steps)


def test_two_recordings_without_times_are_two(ledger: Ledger, tmp_path: Path) -> None:
    """Their times begin when all such times do, which says nothing."""
    released(ledger, untimed(ride(80, 20.0), 20.0), tmp_path / "a.gpx")
    other = ride(70, 20.0, seed=5, at=(51.0, 7.0))
    assert released(ledger, untimed(other, 20.0), tmp_path / "b.gpx") > 0


@pytest.mark.parametrize(
    ("trace", "copy"),
    [
        (TRACE, replace(TRACE, times=TRACE.times + 7 * HOUR)),
        (TRACE, replace(TRACE, times=TRACE.times - 30 * HOUR + 10**8)),
        (at_times(irregular()), at_times(irregular() + 13 * HOUR // 4 * 3, seed=2)),
        (untimed(TRACE, 20.0), untimed(TRACE, 30.0)),
        (at_times(irregular()), untimed(at_times(irregular()), 25.0)),
    ],
    ids=["regular", "another day", "other places", "no times", "times taken away"],
)
def test_a_copy_at_other_times_is_the_same_recording(
    ledger: Ledger, tmp_path: Path, trace: Trace, copy: Trace
) -> None:
    """By its places where its times tell nothing, by its times where its places are others."""
    released(ledger, trace, tmp_path / "a.gpx")
    with pytest.raises(Refused, match=r"as of other times \(say the same --tz as before"):
        released(ledger, copy, tmp_path / "b.gpx")
    assert not (tmp_path / "b.gpx").exists()
    assert released(ledger, copy, tmp_path / "b.gpx", again=True) > 1e9  # both tell all


def test_two_rides_of_one_receiver_are_two_recordings(ledger: Ledger, tmp_path: Path) -> None:
    """Another day's ride adds what is left of it after a day at the slowest pace, and no more."""
    request = Request(()).at_pace_of(TRACE)
    day = 86_400.0 - TRACE.duration
    added = 1 / (request.slowest.bridged(day) * request.bound)
    for number in range(3):
        trace = ride(60, 20.0, seed=number)
        later = replace(trace, times=trace.times + number * 24 * HOUR)
        epsilon = released(ledger, later, tmp_path / f"{number}.gpx")
        assert 1 <= epsilon <= 1 + number * added < 1.01
