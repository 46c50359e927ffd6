"""How long `plan` takes against ten adversaries, with its memory: a table.

Each row runs in a process of its own with one BLAS thread. Run: python -m benchmarks.protect_speed.
"""

import os
import resource
import subprocess
import sys
import time

import click
import numpy as np

from trailveil.adversaries import DEFAULT, Named
from trailveil.release import plan
from trailveil.request import Method, Request
from trailveil.selection import Stretch
from trailveil.trace import NANOSECONDS, Trace

# Fixes, seconds between them, minutes of each stay, where stays begin (as shares), adversaries.
ROWS = {
    "a stay of 10 min in an hour, a fix every 20 s": (181, 20.0, 10.0, (0.417,), DEFAULT),
    "the same, a fix every 5 s": (721, 5.0, 10.0, (0.417,), DEFAULT),
    "the same, plain and standing still alone": (
        (721, 5.0, 10.0, (0.417,), (Named.PLAIN, Named.STILL))
    ),
    "a stay of 40 min in 3 h, a fix every second": (10_800, 1.0, 40.0, (0.4,), DEFAULT),
    **{
        f"three stays of 10 min, {count:,} fixes": (count, 2.0, 10.0, (0.1, 0.5, 0.9), DEFAULT)
        for count in (10_000, 100_000, 1_000_000)
    },
}
# Seconds.
AIMS = {
    "the same, a fix every 5 s": 1.0,
    "three stays of 10 min, 1,000,000 fixes": 20.0,
}


def measure(name: str) -> None:
    """Run one row here, and print its seconds, metres and gibibytes."""
    count, apart, minutes, begins, who = ROWS[name]
    times = np.arange(count, dtype=np.int64) * round(apart * NANOSECONDS)
    speed = 2.5e-5 * min(1.0, 20_000 / count)  # within one frame
    positions = np.column_stack([np.full(count, 46.2), -33.0 + speed * np.arange(count)])
    trace = Trace(times, positions, np.zeros(count, np.intp), (0,))
    starts = [int(times[int(share * count)]) for share in begins]
    long = round(minutes * 60) * NANOSECONDS
    stays = tuple(Stretch("a stay", start, start + long) for start in starts)
    begun = time.perf_counter()
    made = plan(trace, Request(stays, who=who, method=Method.NOISE))
    seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    aim = AIMS.get(name)
    met = "" if aim is None else f"{aim:g} s: {'met' if seconds <= aim else 'missed'}"
    gap = f"{100 * max(one.gap for one in made.designs):.2f} %"
    rms = made.mechanism.rms
    click.echo(f"| {name} | {seconds:.1f} s | {memory:.2f} GiB | {rms:.0f} m | {gap} | {met} |")


def main() -> None:
    """Print the table, or the one row that is named."""
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    click.echo("| what | time | memory | rms | gap | aim |\n|---|---|---|---|---|---|")
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    for name in ROWS:
        command = [sys.executable, "-m", "benchmarks.protect_speed", name]
        subprocess.run(command, check=True, env=alone)  # noqa: S603  # this module, rows of ours


if __name__ == "__main__":
    main()
