"""What the page offers to hide is what `protect` hides."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.rides import ride, written
from trailveil.ledger import user_ledger
from trailveil.page.opened import drawn, opened, time_words
from trailveil.traces.selection import Chosen
from trailveil.traces.stops import LASTS, WITHIN, stays


def test_a_stop_is_hidden_from_when_protect_hides_it(tmp_path: Path) -> None:
    """A walk that passes the place of its stop two minutes before it stays there."""
    step = np.concatenate([np.arange(40), np.full(30, 40), np.arange(40, 0, -1)]) * 20.0
    step[33:40] = [800.0, 950.0, 1050.0, 1100.0, 1100.0, 1050.0, 950.0]  # metres north
    trace = ride(len(step), 20.0)
    trace = replace(trace, positions=np.array([48.0, 11.0]) + np.c_[step / 111_000, 0 * step])
    recording = opened(written(tmp_path / "walk.gpx", trace), tmp_path / "out.gpx", user_ledger())
    (offered,) = (part for part in drawn(recording)["parts"] if part["label"] == "a stop")
    chosen = Chosen(stops=(WITHIN, LASTS))
    (stop,) = (p for p in chosen.stretches(recording.trace) if "stay" in p.label)
    ((begin, end),) = stays(recording.trace)
    assert (stop.begin, stop.end) != (begin, end)
    assert (offered["begin_ms"], offered["end_ms"]) == (stop.begin // 10**6, stop.end // 10**6)
    assert tuple(offered["times"]) == time_words(recording.trace, stop)
