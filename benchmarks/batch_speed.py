"""How fast a batch goes and what memory it takes, beside a bare read and write: a table.

Traces of 1,000 fixes, one stay of 9 minutes each, each of another person. Each run is a process of
its own. Seconds on the clock, and of all processors together, which do not depend on what else the
machine does; memory of the largest process. Run: python -m benchmarks.batch_speed [--most N]
[--adversary NAME] [--no-noise].
"""

import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from trailveil.cleaning import clean
from trailveil.formats import read, write
from trailveil.trace import NANOSECONDS, Trace

FIXES = 1000
TRACES = (100, 1000, 10_000)
_STEP, _BEGIN = 5.0, 1_715_672_400
_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=2)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
_STAY = ("start+34m", "start+43m")


def trace(number: int) -> Trace:
    """Somebody who goes about, and stays for nine minutes."""
    random = np.random.default_rng(number)
    velocity = np.repeat(random.normal(0, 2.0, (FIXES // 20, 2)), 20, axis=0) * _STEP
    velocity[400:520] = 0
    places = np.cumsum(velocity, axis=0) + random.normal(0, 2.0, (FIXES, 2))
    begin = _BEGIN * NANOSECONDS
    times = begin + np.round(np.arange(FIXES) * _STEP * NANOSECONDS).astype(np.int64)
    degrees = np.array([46.2, -33.0]) + places / 111_000
    return Trace(times, degrees, np.zeros(FIXES, np.intp), (0,))


def fleet(folder: Path, count: int, suffix: str) -> Path:
    """So many traces as files, each in the folder of its person."""
    for number in range(count):
        own = folder / f"p{number}"
        own.mkdir(parents=True)
        with (own / f"ride{suffix}").open("wb") as out:
            write(trace(number), out, suffix)
    return folder


def bare(folder: Path, suffix: str) -> None:
    """Read, clean and write each, and no more: in this process."""
    for path in folder.glob(f"*/*{suffix}"):
        out = io.BytesIO()
        write(clean(read(path))[0], out, suffix)


def measured(words: Sequence[str], state: Path) -> tuple[float, float, float]:
    """Seconds on the clock, of all processors, and the GiB of the largest process."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "XDG_STATE_HOME": str(state)}
    begun = time.perf_counter()
    command = [sys.executable, "-c", _MEASURE, sys.executable, *words]
    done = subprocess.run(  # noqa: S603  # this program, files of ours
        command, env=env, check=True, capture_output=True, text=True
    )
    seconds = time.perf_counter() - begun
    busy, largest = done.stdout.split()
    return seconds, float(busy), int(largest) / 2**20


@click.command()
@click.option("--most", default=100, show_default=True, help="Of 100, 1,000 and 10,000 traces.")
@click.option("--adversary", default="plain", show_default=True)
@click.option("--suffix", default=".parquet", show_default=True)
@click.option("--no-noise", is_flag=True, help="Withhold alone: all that is not the design.")
def main(most: int, adversary: str, suffix: str, *, no_noise: bool) -> None:
    """Print the table."""
    rules = ["--adversary", adversary, "--between", *_STAY]
    if no_noise:
        rules = ["--mechanism", "withhold", "--withhold", "30", "--radius", "1"]
        rules += ["--adversary", "plain", "--at", "start+34m"]
    print(f"{FIXES} fixes a trace, {suffix}, {' '.join(rules)}")
    print("| traces | workers | s | points/s | CPU ms a trace | GiB of the largest process |")
    print("|---|---|---|---|---|---|")
    for count in (one for one in TRACES if one <= most):
        with tempfile.TemporaryDirectory() as scratch:
            rides = fleet(Path(scratch) / "rides", count, suffix)
            before = resource.getrusage(resource.RUSAGE_SELF)
            begun = time.perf_counter()
            bare(rides, suffix)
            seconds = time.perf_counter() - begun
            after = resource.getrusage(resource.RUSAGE_SELF)
            busy = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            told(count, "bare read and write", seconds, busy, after.ru_maxrss / 2**20)
            for workers in ("1", "2"):
                out = Path(scratch) / f"out{workers}"
                words = ["-m", "trailveil", "batch", str(rides), "-o", str(out)]
                words += ["--workers", workers, "--subject-from", "folder"]
                words += ["--whole-files", *rules]
                told(count, workers, *measured(words, Path(scratch) / f"state{workers}"))


def told(count: int, what: str, seconds: float, busy: float, largest: float) -> None:
    """Print one row."""
    rate, each = FIXES * count / seconds, 1000 * busy / count
    print(
        f"| {count:,} | {what} | {seconds:.1f} | {rate:,.0f} | {each:.1f} | {largest:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
