"""A stream as a whole: restarts, what the ledger counts, and what is refused."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import trailveil as tv
from tests.live.days import AT, HOME, fixes
from tests.places import trace_of
from tests.rides import BEGIN, ride
from trailveil.cli import cli
from trailveil.errors import InvalidValue, Refused, TrailveilError
from trailveil.gp.bridges import SPAN
from trailveil.ledger import Ledger
from trailveil.ledger.commit import known_places, publish
from trailveil.ledger.places import places_told, save_places
from trailveil.live.lines import Fix
from trailveil.live.moving import Moving
from trailveil.live.stream import Stream
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.traces.projection import placed
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS

# The least that noise is designed for: designs take a second or two.
NOISE: dict[str, Any] = {"everywhere": True, "adversaries": ("plain",), "longest_stay": 0.0}


def taken(stream: Stream, whole: list[Fix]) -> list[Fix]:
    return [released for fix in whole for released in stream.take(fix)]


def test_a_restart_goes_on_with_the_same_noise(ledger: Ledger) -> None:
    whole = fixes(ride(60, 30.0))
    with Stream(ledger=ledger, **NOISE) as stream:
        untouched = stream.moved
        assert untouched is None
        first = taken(stream, whole[:20])
        assert stream.moved is not None
        moved = stream.moved
    with Stream(ledger=ledger, **NOISE) as stream:
        assert stream.delay == 0
        for old in whole[:20]:
            with pytest.raises(InvalidValue, match="later than the last one"):
                stream.take(old)
        second = taken(stream, whole[20:])
    assert [fix.time for fix in first + second] == [fix.time for fix in whole]
    before, after = (
        placed(np.array([(fix.latitude, fix.longitude) for fix in each]))[1] / 1e6
        for each in (whole, first + second)
    )
    noise = after - before
    # What was added is the noise of the stream, to the step of the grid.
    with Stream(ledger=ledger, **NOISE) as stream:
        rule = stream._rule
        assert isinstance(rule, Moving)
        late = [k for k, fix in enumerate(whole) if fix.time // SPAN == rule.noise.span]
        exact = np.array([rule.noise.at(whole[k].time) for k in late])
    assert len(late) > 10
    assert np.max(np.abs(noise[late] - exact)) < 0.1
    # It goes on where it was: no step of half a minute is as large as new noise would make it.
    steps = np.hypot(*np.diff(noise, axis=0).T)
    assert steps[19] < 3 * np.sqrt(np.mean(steps**2))
    assert steps.max() < moved
    assert np.hypot(*noise.T).max() < 4 * moved


def test_after_a_crash_what_may_have_left_is_refused(ledger: Ledger) -> None:
    whole = fixes(ride(60, 1.0))
    crashed = Stream(ledger=ledger, **NOISE)
    taken(crashed, whole[:3])
    crashed._file.close()  # the system takes the lock back; nothing else is told
    with Stream(ledger=ledger, **NOISE) as stream:
        for fix in whole[:11]:
            with pytest.raises(InvalidValue, match="later than the last one"):
                stream.take(fix)
        assert len(taken(stream, whole[11:])) == len(whole) - 11


def test_a_crash_before_anything_left_is_no_other_stream(ledger: Ledger) -> None:
    whole = fixes(ride(60, 20.0))
    crashed = Stream(ledger=ledger, activity="ride")
    assert not taken(crashed, whole[:20])
    crashed._file.close()
    with Stream(ledger=ledger, activity="ride") as stream:
        taken(stream, whole[20:])
    with ledger.open() as book:
        assert len(book.standing("me")) == 1


def test_the_ledger_has_a_row_for_each_day(ledger: Ledger) -> None:
    day = 86_400
    times = np.array([0.0, 10.0, day, day + 10, 3 * day])
    whole = fixes(trace_of(times, np.zeros((5, 2)), AT))
    stream = Stream(ledger=ledger, **NOISE)
    taken(stream, whole[:4])
    with ledger.open() as book:
        rows = book.standing("me")
        assert [row.begin for row in rows] == [whole[0].time, whole[2].time]
        assert all(row.end % (day * NANOSECONDS) == day * NANOSECONDS - 1 for row in rows)
        assert book.body(rows[0].number)["mechanism"] == "live everywhere"
    taken(stream, whole[4:])
    stream.close()
    with Stream(ledger=ledger, **NOISE):
        pass  # nothing comes: nothing is counted
    with ledger.open() as book:
        assert [row.end for row in book.standing("me")][-1] == whole[4].time
    ledger.verify()
    # A recording of these times would be a second release of them.
    trace = ride(60, 20.0, begin=BEGIN)
    request = requested(trace, Chosen(), Request((), floor=10.0, middle=10.0))
    with pytest.raises(Refused, match="must be released once"):
        publish(protect(trace, request), ledger, ledger.folder.parent / "a.gpx")
    done = publish(protect(trace, request), ledger, ledger.folder.parent / "a.gpx", again=True)
    assert done.account is not None
    assert done.account.times > 1e9


def test_two_streams_of_one_time_are_two_releases(ledger: Ledger) -> None:
    whole = fixes(ride(60, 20.0))
    with Stream(ledger=ledger, **NOISE) as stream:
        with pytest.raises(Refused, match="runs: live"):
            Stream(ledger=ledger, **NOISE)
        taken(stream, whole)
    with Stream("friends", ledger=ledger, **NOISE) as stream, pytest.raises(Refused, match="again"):
        stream.take(whole[0])
    with Stream("anna", ledger=ledger, subject="anna", **NOISE) as stream:
        assert len(taken(stream, whole)) == len(whole)
    with Stream("friends", ledger=ledger, again=True, **NOISE) as stream:
        other = taken(stream, whole)
    assert other[0].latitude != whole[0].latitude
    with ledger.open() as book:
        assert max(row.epsilon for row in book.standing("me")) > 1e9
    with pytest.raises(Refused, match="as it began, got other options"):
        Stream(ledger=ledger, **{**NOISE, "radius": 50.0})
    Stream("other", ledger=ledger, **NOISE).close()


def test_visits_are_counted_before_what_tells_of_them_leaves(ledger: Ledger) -> None:
    save_places(ledger, [HOME])
    times = np.arange(0, 12_000, 10.0)
    metres = np.stack([4000 * np.cos(times / 900), 0 * times], axis=1)
    whole = fixes(trace_of(times, metres, AT))
    with Stream(ledger=ledger, activity="ride") as stream:
        counts = []
        for fix in whole:
            stream.take(fix)
            with ledger.open() as book:
                told = places_told(book, [HOME], "me")
            counts.append(told[0].visits if told else 0)
        assert stream.delay > 300
    assert max(counts) == 4
    inside = np.abs(metres[:, 0]) <= HOME.wide.metres
    first = np.flatnonzero(np.diff(inside.astype(int)) == 1) + 1
    assert np.flatnonzero(np.diff(counts)).tolist() == first.tolist()  # once their times count
    with ledger.open() as book:
        (told_of,) = places_told(book, [HOME], "me")
    assert 0.9 * 4 < told_of.total <= 4
    with Stream("later", ledger=ledger, activity="ride") as stream:
        assert stream.spent == ["home"]
    # A recording soon after is cut for the visit that the stream had.
    near = ride(60, 20.0, begin=int(BEGIN + times[first[-1]] + 900), at=(48.2, 11.0))
    assert [visit.place.name for visit in known_places(ledger, near)] == ["home"]


def test_a_day_that_goes_on_after_a_crash_keeps_its_visits(ledger: Ledger) -> None:
    save_places(ledger, [HOME])
    times = np.arange(0, 12_000, 10.0)
    metres = np.stack([4000 * np.cos(times / 900), 0 * times], axis=1)
    whole = fixes(trace_of(times, metres, AT))
    for part in (whole[:400], whole[400:800], whole[800:]):
        stream = Stream(ledger=ledger, activity="ride")
        for fix in part:
            stream.take(fix)
        stream._file.close()
    with ledger.open() as book:
        (told,) = places_told(book, [HOME], "me")
        assert len(book.standing("me")) == 1
    assert told.visits == 4


def test_a_damaged_file_is_refused(ledger: Ledger) -> None:
    with Stream(ledger=ledger, **NOISE) as stream:
        taken(stream, fixes(ride(5, 1.0)))
    path = ledger.folder / "streams" / "live.json"
    assert path.stat().st_mode & 0o077 == 0
    data = path.read_bytes()
    for wrong in (data[:-1], data.replace(b'"span": 3', b'"span": 4'), b""):
        path.write_bytes(wrong)
        with pytest.raises(Refused, match="as Trailveil wrote it"):
            Stream(ledger=ledger, **NOISE)
    path.write_bytes(data)
    path.chmod(0o644)
    with pytest.raises(Refused, match="readable by you alone"):
        Stream(ledger=ledger, **NOISE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "noise"}, "must cut, or protect everywhere"),
        ({"at": ("start",)}, "must not state parts of a recording, got at"),
        ({**NOISE, "delay": 60.0}, "noise must come without a delay"),
        ({**NOISE, "withhold": 60.0}, "without leave and withhold"),
        ({**NOISE, "leave": 60.0}, "without leave and withhold"),
        ({"delay": 60.0}, "the delay must be at least"),
        ({"name": "../x"}, "name of a stream"),
    ],
)
def test_what_makes_no_sense_is_refused(
    ledger: Ledger, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TrailveilError, match=message):
        tv.Stream(ledger=ledger, **options)


def test_a_fix_of_the_future_or_of_elsewhere_blocks_nothing(ledger: Ledger) -> None:
    whole = fixes(ride(20, 1.0))
    with Stream(ledger=ledger, **NOISE) as stream:
        taken(stream, whole[:5])
        with pytest.raises(InvalidValue, match="a minute ahead"):
            stream.take(Fix(time.time_ns() + 3600 * NANOSECONDS, *AT))
        with pytest.raises(InvalidValue, match="within 480 km"):
            stream.take(Fix(whole[5].time, 10.0, 10.0))
        with pytest.raises(InvalidValue, match="protects stays without being told"):
            stream.stay()
        assert len(taken(stream, whole[6:])) == 14


def lines(count: int) -> str:
    cells = [
        f"{np.datetime64(fix.time, 'ns')}Z,{fix.latitude},{fix.longitude}"
        for fix in fixes(ride(count, 1.0))
    ]
    return "\n".join(["time,lat,lon", *cells[:3], "nonsense,1", cells[3], cells[3], *cells[4:]])


def test_the_command_takes_lines_and_says_what_is_wrong_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    slow = CliRunner().invoke(cli, ["live", "--slow-for", "30"], input=lines(10))
    assert slow.exit_code == 2
    assert "--slow-for must come with --everywhere, got a cut" in slow.output
    words = ["live", "--everywhere", "--slow-for", "0", "--floor", "3"]
    done = CliRunner().invoke(cli, words, input=lines(10))
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 11
    assert done.stdout.startswith("time,latitude,longitude\n2024-05-14T07:40:00Z,")
    said = [line for line in done.stderr.splitlines() if "line " in line]
    assert [line[:20] for line in said] == ["trailveil: line 5: a", "trailveil: line 7: a"]
    assert "moved by" in done.stderr
    late = CliRunner().invoke(cli, ["live", "--name", "late"], input=f"stay\n{lines(10)}\ngo\n")
    assert isinstance(late.exception, Refused)  # these times were released before
    again = ["live", "--name", "late", "--again", "--activity", "drive"]
    late = CliRunner().invoke(cli, again, input=f"stay\n{lines(10)}\ngo\n")
    assert late.stdout == "time,latitude,longitude\n"
    assert "s late" in late.stderr
    shown = json.loads(CliRunner().invoke(cli, ["ledger", "show", "--json"]).stdout)
    assert {release["mechanism"] for release in shown["releases"]} == {
        "live everywhere",
        "live cut",
    }
    both = CliRunner().invoke(cli, ["live", "--everywhere", "--delay", "60"])
    assert both.exit_code == 2


def test_the_command_says_what_it_did_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words in any case; a receiver that sends no RMC; fixes out of order; a long line."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    gga = "$GPGGA,074000.00,4808.22,N,01134.5,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n"
    done = CliRunner().invoke(cli, ["live"], input=gga * 150)
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "no fix in 100 lines yet: of NMEA, RMC with a position is read alone" in done.stderr
    assert "150 lines were not read" in done.stderr
    whole = lines(9).split("\n")
    words = [
        "\ufeffSTAY\r",
        " Go ",
        "",
        "# a note",
        *whole[:4],
        whole[8],
        *whole[6:8],
        "x" * 10**7,
    ]
    done = CliRunner().invoke(cli, ["live", "--activity", "ride"], input="\n".join(words))
    said = [line.split(": ", 1)[1] for line in done.stderr.splitlines() if ": line " in line]
    assert said == [
        "line 10: fixes must be in order of time, got a later one before: left out",
        "line 12: a line must have at most 10,000 bytes, got more",
    ]


def test_it_says_when_the_first_fix_leaves(ledger: Ledger) -> None:
    save_places(ledger, [HOME])
    whole = fixes(trace_of(np.arange(5000), np.tile([9000.0, 0.0], (5000, 1)), AT))
    with Stream(ledger=ledger, activity="ride") as stream:
        left = next(i for i, fix in enumerate(whole) if stream.take(fix))
        # A second each: later than the delay, and confirmed.
        assert 0 < left - stream.first <= 3
