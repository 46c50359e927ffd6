"""How long a live release takes for each fix, in processor time, and how much memory.

The program's own loop on lines of each form, a fix a second, with the state file on a real disk.
"""

import argparse
import io
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.rides import ride
from trailveil.cli.live import run
from trailveil.ledger import open_ledger
from trailveil.ledger.places import save_places
from trailveil.live.lines import Fix, Lines
from trailveil.live.stream import Stream
from trailveil.privacy.adversaries import Named
from trailveil.release.places import Place
from trailveil.traces.visits import Circle

PLACES = [
    Place(
        *(f"place {i}", Circle(48.2 + i / 10, 11.5, 150.0), 100.0, 1.0, 5.0, 1, None, "default"),
        *((Named.PLAIN,), bytes([i] * 16)),
    )
    for i in range(1, 4)
]


class _Timed(io.BytesIO):
    """Lines, and the processor time at which each is asked for."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.asked: list[float] = []

    def readline(self, size: int | None = -1, /) -> bytes:
        self.asked.append(time.process_time())
        return super().readline(size)


class _Stream(io.TextIOWrapper):
    """A standard stream over bytes."""


def lines(form: str, count: int) -> bytes:
    """A fix a second as lines."""
    trace = ride(count, 1.0)
    whole = [b"time,lat,lon\n"] if form == "csv" else []
    for at, (latitude, longitude) in zip(trace.times.tolist(), trace.positions, strict=True):
        clock = str(np.datetime64(at, "ns").astype("datetime64[s]"))[11:].replace(":", "")
        cells = ("$GPRMC", clock, *[""] * 7, "140524")
        place = float(round(latitude, 6)), float(round(longitude, 6))
        whole.append(Fix(at, *place, form, cells, moved=True).line())
    return b"".join(whole)


def measured(form: str, count: int, options: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of processor time a line, after the first: median, 99 in 100, most."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = open_ledger(Path(folder) / "state")
        save_places(ledger, PLACES)
        source, before = _Timed(lines(form, count)), (sys.stdin, sys.stdout)
        sys.stdin, sys.stdout = _Stream(source), _Stream(io.BytesIO())
        try:
            with Stream(ledger=ledger, **options) as stream:
                run(stream, Lines())
        finally:
            sys.stdin, sys.stdout = before
    steps = 1000 * np.diff(source.asked)[2:]
    return {
        "median_ms": float(np.median(steps)),
        "p99_ms": float(np.quantile(steps, 0.99)),
        "most_ms": float(steps.max()),
    }


def main() -> None:
    """Print one JSON object a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixes", type=int, default=5000)
    count = parser.parse_args().fixes
    for form in ("csv", "nmea", "owntracks"):
        for mode, options in (("everywhere", {"everywhere": True}), ("cut", {"activity": "ride"})):
            figures = measured(form, count, options)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(json.dumps({"form": form, "mode": mode, **figures, "memory_mb": memory}))


if __name__ == "__main__":
    main()
