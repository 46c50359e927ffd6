"""What `trailveil protect` takes, interpreter included: processor time and memory, as a table.

Rides go out and come back, with stays of ten minutes. Each row is a process of its own with a state
folder of its own. Processor time hardly depends on what else the machine does, as time on the clock
would. Run: python -m benchmarks.protect_speed.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from trailveil.traces.formats import write
from trailveil.traces.trace import NANOSECONDS, Trace

_BEGIN, _STAY = 1_715_672_400, 600
_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
# Metres a second, metres that the whole ride may go away, and metres of a receiver.
_PACE, _FAR, _GPS = 2.5, 50_000.0, 2.0


@dataclass(frozen=True)
class Row:
    """One run. step: seconds between fixes, 0 for 1 to 6. stays: when they begin, in seconds.

    aim: seconds of processor time and mebibytes that it should take at most.
    """

    name: str
    fixes: int
    step: int
    stays: tuple[int, ...]
    options: tuple[str, ...]
    suffix: str = ".gpx"
    aim: tuple[float, float] | None = None


_THREE, _FAR_APART = (5_000, 20_000, 35_000), (200_000, 1_000_000, 1_800_000)
_NOISE, _ENDS = ("--mechanism", "noise"), ("--at", "start", "--at", "end")
# Of weeks, without the passes of places that chance makes.
_LONG, _ALONE = (10**6, 2, _FAR_APART), ("--no-returns",)
ROWS = (
    Row("cut, 10,000 fixes of GPX, both ends", 10_000, 0, (), (), aim=(1.0, 120)),
    Row("noise, 10,000 fixes of GPX, both ends", 10_000, 0, (), _NOISE),
    Row(
        *("noise, 3,500 fixes of GPX, both ends and a stay", 3_500, 0, (5_000,)),
        (*_NOISE, *_ENDS),
        aim=(1.0, 120),
    ),
    Row("noise, a new radius", 3_500, 0, (), (*_NOISE, "--radius", "137"), aim=(5.0, 200)),
    Row("noise, a fix a second for 12 h, three stays", 43_200, 1, _THREE, _NOISE, aim=(3.0, 500)),
    Row(*("cut, 1,000,000 fixes of GeoParquet, three stays", *_LONG, _ALONE, ".parquet")),
    Row(
        *("noise, 1,000,000 fixes of GeoParquet, three stays", *_LONG, (*_NOISE, *_ALONE)),
        *(".parquet", (15.0, 1024)),
    ),
)


def trace(row: Row) -> Trace:
    """Somebody who goes out, stands still now and then, and comes back another way."""
    random = np.random.default_rng(1)
    steps = np.full(row.fixes, row.step) if row.step else random.integers(1, 7, row.fixes)
    seconds = np.cumsum(steps) - steps[0]
    turns = np.repeat(random.normal(0, _PACE, (row.fixes // 40 + 1, 2)), 40, axis=0)[: row.fixes]
    out = np.where(seconds < seconds[-1] / 2, 1.0, -1.0)
    velocity = turns + out[:, None] * min(_PACE, _FAR / seconds[-1])
    for begin in row.stays:
        velocity[(seconds >= begin) & (seconds <= begin + _STAY)] = 0
    scale = min(1.0, _FAR / (_PACE * np.sqrt(40.0 * row.fixes) * steps.mean()))
    places = np.cumsum(scale * velocity * steps[:, None], axis=0)
    places += random.normal(0, _GPS, places.shape)
    times = (_BEGIN + seconds.astype(np.int64)) * NANOSECONDS
    degrees = np.array([46.2, -33.0]) + places / 111_000
    return Trace(times, degrees, np.zeros(row.fixes, np.intp), (0,))


def measured(words: Sequence[str], state: Path) -> tuple[float, float]:
    """Seconds of processor time and mebibytes that a run of the program took."""
    env = {**os.environ, "XDG_STATE_HOME": str(state)}
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "trailveil", *words]
    done = subprocess.run(  # noqa: S603  # this program, files of ours
        command, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    busy, largest = done.stdout.split()
    return float(busy), int(largest) / 2**10


def main() -> None:
    """Print the table."""
    click.echo("| what | processor time | memory | aim |\n|---|---|---|---|")
    for row in ROWS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            source = folder / f"ride{row.suffix}"
            with source.open("wb") as out:
                write(trace(row), out, row.suffix)
            stays = [
                word
                for begin in row.stays
                for word in ("--between", f"start+{begin}s", f"start+{begin + _STAY}s")
            ]
            words = ["protect", str(source), *row.options, *stays]
            busy, largest = measured(words, folder / "state")
        aim = ""
        if row.aim is not None:
            met = busy <= row.aim[0] and largest <= row.aim[1]
            aim = f"{row.aim[0]:g} s, {row.aim[1]:g} MB: {'met' if met else 'missed'}"
        click.echo(f"| {row.name} | {busy:.2f} s | {largest:.0f} MB | {aim} |")


if __name__ == "__main__":
    main()
