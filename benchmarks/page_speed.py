"""Processor time until the page of `open` shows a change: 3,500 fixes, two parts, no design."""

import tempfile
import time
from pathlib import Path

from tests.rides import ride, written
from trailveil.designer import table
from trailveil.ledger import open_ledger
from trailveil.page.opened import asked_in, opened
from trailveil.page.planner import Planner

PARTS = [["start+0s"], ["start+5100s", "start+6000s"]]
CHANGES = 4


def main() -> None:
    """Print a line for each mechanism; the first change also loads what it needs."""
    with tempfile.TemporaryDirectory() as folder:
        source = written(Path(folder) / "ride.gpx", ride(3500, 3.0, still=(1700, 2000)))
        ledger = open_ledger(Path(folder) / "ledger")
        planner = Planner(opened(source, Path(folder) / "out.gpx", ledger))
        table.forget()
        for method in ("cut", "noise", "both"):
            took = []
            for change in range(CHANGES):
                body = {"parts": PARTS, "mechanism": method, "radius": 81 + change, "epsilon": 1}
                asked = asked_in(body)
                begin = time.process_time()
                planner.planned(asked, at_once=True)
                took.append(time.process_time() - begin)
            print(f"{method:6} first {took[0]:.2f} s, then {min(took[1:]):.3f} s")


if __name__ == "__main__":
    main()
