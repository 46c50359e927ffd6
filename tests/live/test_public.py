"""What is public already, and a live release: what it hides, and where it ends."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.days import AT, HOME, RIDE, fixes
from tests.live.test_stream import NOISE, taken
from tests.places import trace_of
from tests.rides import ride
from trailveil.errors import Refused
from trailveil.ledger import Ledger
from trailveil.ledger.commit import known_places, publish
from trailveil.ledger.places import places_told, save_places
from trailveil.ledger.public import Imported, add_public
from trailveil.live.cutting import Cutting
from trailveil.live.lines import Fix
from trailveil.live.stream import Stream
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS, Trace


def commuted(ledger: Ledger) -> list[Fix]:
    """Comes by home at 1400, 4200 and 7000 s, and goes 4 km away between."""
    save_places(ledger, [HOME])
    times = np.arange(0, 9800, 10.0)
    metres = np.stack([4000 * np.cos(times / 891.3), 0 * times], axis=1)
    return fixes(trace_of(times, metres, AT))


def imported(fix: Fix, seconds: float, accuracy: float = 0.0) -> Imported:
    """A position so many seconds from a fix."""
    when = np.array([fix.time + round(seconds * NANOSECONDS)])
    return Imported(when, np.array([AT]), accuracy)


def test_what_is_imported_makes_the_silence_after_a_visit_longer(ledger: Ledger) -> None:
    """Before the stream begins, or meanwhile; and from then on alone."""
    whole, silences = commuted(ledger), {}
    visit = next(
        i for i, fix in enumerate(whole) if i * 10 > 4100 and abs(fix.longitude - AT[1]) < 1e-3
    )
    options: dict[str, Any] = {"activity": "ride", "radius": 60.0, "again": True}
    for case in ("none", "before", "meanwhile", "too late"):
        out = []
        if case == "before":
            add_public(ledger, imported(whole[visit], -400.0), subject=case)
        with Stream(case.replace(" ", "-"), ledger=ledger, subject=case, **options) as stream:
            for i, fix in enumerate(whole):
                if (case, i) in {("meanwhile", visit + 10), ("too late", visit + 250)}:
                    add_public(ledger, imported(whole[visit], -400.0), subject=case)
                out += stream.take(fix)
        times = [fix.time for fix in out]
        after = next(time for time in times if time > whole[visit].time)
        before = max(time for time in times if time < whole[visit].time)
        silences[case] = (whole[visit].time - before, after - whole[visit].time)
    assert silences["none"] == silences["too late"]
    assert silences["before"] == silences["meanwhile"]
    assert silences["before"][0] == silences["none"][0]
    assert silences["before"][1] > 1.2 * silences["none"][1]
    # What a visit tells is counted in full then, be it known before or meanwhile.
    with ledger.open() as book:
        none, *others = (
            places_told(book, [HOME], who)[0].total for who in ("none", "before", "meanwhile")
        )
    assert others[0] > none
    assert others[1] > none


def test_a_stream_ends_where_nothing_can_be_hidden_any_more(ledger: Ledger) -> None:
    whole = commuted(ledger)
    visit = next(
        i for i, fix in enumerate(whole) if i * 10 > 4100 and abs(fix.longitude - AT[1]) < 1e-3
    )
    add_public(ledger, imported(whole[visit], 5.0, accuracy=10.0))
    out: list[Fix] = []
    with (
        Stream(ledger=ledger, activity="ride", radius=60.0) as stream,
        pytest.raises(Refused, match=r"nothing can be hidden any more: .* tells to 10 m"),
    ):
        out.extend(released for fix in whole for released in stream.take(fix))
    assert out
    assert out[-1].time < whole[visit].time - 60 * NANOSECONDS
    # Where it begins anew, the position is too near for some minutes.
    with (
        Stream(ledger=ledger, activity="ride", radius=60.0) as stream,
        pytest.raises(Refused, match="nothing can be hidden any more"),
    ):
        taken(stream, whole[visit + 15 : visit + 25])
    with Stream("anew", ledger=ledger, activity="ride", radius=60.0, again=True) as stream:
        assert taken(stream, whole[visit + 60 :])


def test_a_photo_of_a_visit_that_is_out_ends_no_stream(ledger: Ledger) -> None:
    """What was released of it is as it was; the next visit does not hang on it."""
    whole = commuted(ledger)
    visit = next(i for i, fix in enumerate(whole) if i > 410 and abs(fix.longitude - AT[1]) < 1e-3)
    with Stream(ledger=ledger, activity="ride") as stream:
        before = taken(stream, whole[: visit + 200])
        add_public(ledger, imported(whole[visit], 5.0))
        after = taken(stream, whole[visit + 200 :])
    assert before[-1].time > whole[visit].time
    with Stream("anna", ledger=ledger, subject="anna", activity="ride") as stream:
        assert before + after == taken(stream, whole)


def test_noise_must_be_a_day_from_what_is_public(ledger: Ledger) -> None:
    whole = fixes(ride(60, 30.0))
    add_public(ledger, imported(whole[0], -86_300.0))
    with Stream(ledger=ledger, **NOISE) as stream:
        with pytest.raises(Refused, match="leave --everywhere out"):
            stream.take(whole[0])
        assert taken(stream, whole[4:30])
        add_public(ledger, imported(whole[30], 3600.0))
        with pytest.raises(Refused, match="leave --everywhere out"):
            stream.take(whole[30])
    with Stream("anna", ledger=ledger, subject="anna", **NOISE) as stream:
        assert taken(stream, whole)


def test_what_an_earlier_run_released_is_reckoned_with(ledger: Ledger) -> None:
    """A place got its name since, and wants a longer silence before a visit than that run kept."""
    save_places(ledger, [HOME])
    times = np.arange(0, 20_000, 10.0)
    metres = np.stack([2000 - 1.5 * times, 0 * times], axis=1)
    whole = fixes(trace_of(times, metres, AT))
    first = next(i for i, x in enumerate(metres[:, 0]) if x <= HOME.wide.metres)
    silences = []
    for share in (0.8, 1.0, 1.5):
        margins = Cutting.of(ledger, RIDE, None, None).watched[1].margins
        outside = margins.before - 60 * NANOSECONDS
        since = whole[first].time - 60 * NANOSECONDS - round(share * outside)
        rule, out = Cutting.of(ledger, RIDE, None, None, since), []
        for fix in whole:
            rule.advance(fix)
            out += rule.take(fix)
        silences.append(next(fix.time for fix in out if fix.time > whole[first].time))
    assert silences[1] == silences[2]
    assert silences[0] > silences[1] + 60 * NANOSECONDS


def test_a_photo_of_a_stay_of_days_counts(ledger: Ledger) -> None:
    """It was taken in it, more than a day before its end."""
    save_places(ledger, [HOME])
    times = np.concatenate([np.arange(0, 4000, 10.0), np.arange(4000, 180_000, 300.0)])
    metres = np.stack([np.maximum(8000 - 2.0 * times, 0.0), 0 * times], axis=1)
    away = trace_of(180_000 + np.arange(0, 4000, 10.0), np.tile([9000.0, 0.0], (400, 1)), AT)
    stay = fixes(trace_of(times, metres, AT))
    onward = [Fix(fix.time + 180_000 * NANOSECONDS, *AT[:1], fix.longitude) for fix in fixes(away)]
    for subject, fails in (("anna", False), ("bert", True)):
        if fails:
            add_public(ledger, imported(stay[450], 0.0), subject=subject)
        with Stream(subject, ledger=ledger, subject=subject, activity="ride") as stream:
            taken(stream, stay)
            if fails:
                with pytest.raises(Refused, match="nothing can be hidden any more"):
                    taken(stream, onward)
            else:
                assert taken(stream, onward)


def test_streams_and_recordings_of_one_time_know_of_each_other(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Also a cut of a recording of which a stream released all but the same, and by its places."""
    whole = commuted(ledger)

    def published(subject: str) -> None:
        some = whole[300:700]
        piece = Trace(
            np.array([fix.time for fix in some]),
            np.array([(fix.latitude, fix.longitude) for fix in some]),
            np.zeros(len(some), dtype=np.intp),
            (0,),
        )
        visited = known_places(ledger, piece, subject=subject)
        request = requested(piece, Chosen(ends=False), Request((), floor=3.6), visited)
        plan = protect(piece, request, places=visited)
        publish(plan, ledger, tmp_path / f"{subject}.gpx", subject=subject)

    with Stream(ledger=ledger, activity="ride") as stream:
        assert taken(stream, whole)
    with pytest.raises(Refused, match="must be released once"):
        published("me")
    published("anna")
    with (
        Stream("anna", ledger=ledger, subject="anna", activity="ride") as stream,
        pytest.raises(Refused, match="of times that were not released yet"),
    ):
        taken(stream, whole[600:])
    with Stream("later", ledger=ledger, subject="anna", activity="ride") as stream:
        assert taken(stream, whole[701:])
