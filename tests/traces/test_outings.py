"""Both ends of each outing of a recording are protected, not only those of the file."""

from dataclasses import replace

import numpy as np

from tests.rides import ride
from trailveil.traces.selection import Chosen, ends
from trailveil.traces.trace import NANOSECONDS, Trace


def joined(first: Trace, second: Trace, gap: float) -> Trace:
    """Two recordings in one, so many seconds apart, in one track."""
    shift = int(first.times[-1]) + round(gap * NANOSECONDS) - int(second.times[0])
    return Trace(
        np.concatenate([first.times, second.times + shift]),
        np.concatenate([first.positions, second.positions]),
        np.zeros(len(first) + len(second), dtype=np.intp),
        (0,),
    )


def test_the_ends_of_each_outing_are_protected() -> None:
    first, second = ride(40, 10.0, seed=1), ride(50, 10.0, seed=2)
    whole = joined(first, second, 12 * 3600.0)
    stretches = ends(whole)
    assert [stretch.label for stretch in stretches] == 2 * [
        "the start of an outing",
        "the end of an outing",
    ]
    inside = [stretch.rows(whole) for stretch in stretches]
    assert all(any(rows[i] for rows in inside) for i in (0, 39, 40, 89))


def test_a_home_between_two_tracks_is_protected_however_soon_the_next_one_begins() -> None:
    """From work home, and half an hour later on from there: neither end of the file is at home."""
    first, second = ride(40, 10.0, seed=1), ride(50, 10.0, seed=2)
    away = second.positions - second.positions[0] + first.positions[-1]
    for pause, held in ((1800.0, True), (200.0, False)):
        whole = joined(first, replace(second, positions=away), pause)
        tracks = replace(whole, segments=np.repeat([0, 1], [40, 50]), tracks=(0, 1))
        parts = Chosen().stretches(tracks)
        assert all(any(part.rows(tracks)[i] for part in parts) for i in (39, 40)) == held


def test_home_at_the_start_is_protected_between_two_tracks_as_a_return() -> None:
    """Out from home and back, and on again three minutes later, which is no new outing."""
    out, on = ride(40, 10.0, seed=1), ride(50, 10.0, seed=2)
    back = replace(out, positions=np.concatenate([out.positions[:20], out.positions[19::-1]]))
    away = on.positions - on.positions[0] + out.positions[0]
    whole = joined(back, replace(on, positions=away), 200.0)
    tracks = replace(whole, segments=np.repeat([0, 1], [40, 50]), tracks=(0, 1))
    parts = Chosen().stretches(tracks)
    assert all(any(part.rows(tracks)[i] for part in parts) for i in (39, 40))


def test_a_pause_or_a_sparse_recording_is_one_outing() -> None:
    paused = joined(ride(40, 10.0, seed=1), ride(50, 10.0, seed=2), 1800.0)
    assert [end.label for end in ends(paused)] == ["the start", "the end"]
    sparse = replace(paused, times=paused.times[0] + 3 * 3600 * NANOSECONDS * np.arange(90))
    assert [end.label for end in ends(sparse)] == ["the start", "the end"]
    assert len(ends(ride(1, 10.0))) == 1
