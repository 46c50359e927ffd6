"""How fast a batch goes and what memory it takes, beside a bare read and write: tables.

Traces of 1,000 fixes, 5 s apart, one stay each, each of another person. The stays differ in length
(5 to 15 minutes) and in place, and are stated by a table of rules, as a study has it: of whole
minutes from a fix on (--stays minutes), or of seconds that have nothing to do with the fixes
(--stays seconds, hardly two of which are of one kind); or they are found (--stays auto); or all are
of 9 minutes, at the same time (--stays fixed). A cold run begins with an empty state folder; a warm
one has the same state folder after it, and other traces, of other people, with other stays, for
another folder of outputs.

Each run is a process of its own. Seconds on the clock, and of all processors together, which do not
depend on what else the machine does; memory of the largest process. With --geolife, inputs are .plt
with a fix every 1 to 9 s. Run: python -m benchmarks.batch_speed [--most N] [--geolife] ...
"""

import csv
import io
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read, write
from trailveil.traces.trace import NANOSECONDS, Trace

FIXES = 1000
TRACES = (100, 1000, 10_000)
STAYS = ("minutes", "seconds", "auto", "fixed")
_STEP, _BEGIN = 5, 1_715_672_400
_FIXED = (2040, 2580)
_SHORTEST, _LONGEST = 300, 900
# Processes whose parent has ended become children of this one, where the system can do that.
_MEASURE = """
import contextlib, ctypes, os, resource, subprocess, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.run(sys.argv[1:], check=True, stdout=2)
with contextlib.suppress(ChildProcessError):
    while True:
        os.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


@dataclass(frozen=True)
class Took:
    """Seconds on the clock, of all processors, and the GiB of the largest process."""

    seconds: float
    busy: float
    largest: float


@dataclass(frozen=True)
class Fleet:
    """Traces as files, each in the folder of its person, and the rules of their stays."""

    folder: Path
    rules: Path


def stay(number: int, stays: str) -> tuple[int, int]:
    """Begin and end of the stay of a trace, in seconds from its start."""
    if stays == "fixed":
        return _FIXED
    random = np.random.default_rng((number, 1))
    length = int(random.integers(_SHORTEST, _LONGEST, endpoint=True))
    begin = int(random.integers(_SHORTEST, FIXES * _STEP - length - _SHORTEST))
    if stays == "minutes":
        length, begin = length // 60 * 60, begin // _STEP * _STEP
    return begin, begin + length


def trace(number: int, stays: str, *, irregular: bool = False) -> Trace:
    """Somebody who goes about, and stays for some minutes."""
    random = np.random.default_rng(number)
    velocity = np.repeat(random.normal(0, 2.0, (FIXES // 20, 2)), 20, axis=0) * _STEP
    begin, end = stay(number, stays)
    velocity[begin // _STEP : end // _STEP + 1] = 0
    places = np.cumsum(velocity, axis=0) + random.normal(0, 2.0, (FIXES, 2))
    steps = random.integers(1, 10, FIXES) if irregular else np.full(FIXES, _STEP)
    times = (_BEGIN + np.cumsum(steps, dtype=np.int64) - steps[0]) * NANOSECONDS
    degrees = np.array([46.2, -33.0]) + places / 111_000
    return Trace(times, degrees, np.zeros(FIXES, np.intp), (0,))


def as_geolife(trace: Trace) -> str:
    """The text of a .plt file."""
    head = ["Geolife trajectory", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,2,255", "0"]
    moments = np.datetime_as_string(trace.times.astype("datetime64[ns]"), unit="s").tolist()
    days = (trace.times / NANOSECONDS / 86_400 + 25_569).tolist()
    rows = zip(trace.positions.tolist(), days, moments, strict=True)
    lines = [f"{a:.6f},{b:.6f},0,492,{d:.10f},{m.replace('T', ',')}" for (a, b), d, m in rows]
    return "\r\n".join([*head, *lines, ""])


def fleet(folder: Path, numbers: range, suffix: str, stays: str) -> Fleet:
    """These traces as files, and what is known of their stays."""
    fleet = Fleet(folder / "rides", folder / "rules.csv")
    folder.mkdir()
    with fleet.rules.open("w", newline="") as text:
        rows = csv.writer(text)
        rows.writerow(["trace", "from", "to"])
        for number in numbers:
            own = fleet.folder / f"p{number}"
            own.mkdir(parents=True)
            if suffix == ".plt":
                made_up = as_geolife(trace(number, stays, irregular=True))
                (own / f"ride{suffix}").write_text(made_up, newline="")
            else:
                with (own / f"ride{suffix}").open("wb") as out:
                    write(trace(number, stays), out, suffix)
            begin, end = stay(number, stays)
            rows.writerow([f"p{number}/ride{suffix}", f"start+{begin}s", f"start+{end}s"])
    return fleet


def bare(folder: Path, suffix: str, wanted: str) -> Took:
    """Read, clean and write each, and no more: by the same reader and writer, in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.perf_counter()
    for path in folder.glob(f"*/*{suffix}"):
        out = io.BytesIO()
        write(clean(read(path))[0], out, wanted)
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF)
    busy = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Took(seconds, busy, after.ru_maxrss / 2**20)


def measured(words: Sequence[str], state: Path) -> Took:
    """What a run of the program took."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "XDG_STATE_HOME": str(state)}
    begun = time.perf_counter()
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "trailveil", *words]
    done = subprocess.run(  # noqa: S603  # this program, files of ours
        command, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    seconds = time.perf_counter() - begun
    busy, largest = done.stdout.split()
    return Took(seconds, float(busy), int(largest) / 2**20)


def asked(stays: str, mechanism: str, rides: Fleet) -> list[str]:
    """What is asked of each trace, as options of the batch."""
    words = ["--mechanism", mechanism]
    if stays == "fixed":
        return [*words, "--between", *(f"start+{one}s" for one in _FIXED)]
    if stays == "auto":
        return [*words, "--stops", "auto"]
    return [*words, "--rules", str(rides.rules)]


@click.command()
@click.option("--most", default=100, show_default=True, help="Of 100, 1,000 and 10,000 traces.")
@click.option("--traces", "counts", type=int, multiple=True, help="So many, in place of --most.")
@click.option("--mechanism", "each", default=["cut", "noise"], show_default=True, multiple=True)
@click.option("--workers", default=[1, 2], show_default=True, multiple=True)
@click.option("--suffix", default=".parquet", show_default=True, help="Of all files: .gpx, ...")
@click.option("--stays", default="minutes", show_default=True, type=click.Choice(STAYS))
@click.option("--geolife", is_flag=True, help="Inputs are irregular .plt, outputs as --suffix.")
def main(
    most: int,
    counts: Sequence[int],
    each: Sequence[str],
    workers: Sequence[int],
    suffix: str,
    stays: str,
    *,
    geolife: bool,
) -> None:
    """Print a table for each mechanism."""
    source = ".plt" if geolife else suffix
    for mechanism in each:
        print(f"\n{FIXES} fixes a trace, {source} to {suffix}, stays: {stays}, {mechanism}\n")
        print("| traces | what | s | points/s | of bare | CPU ms a trace | GiB, largest process |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for count in counts or [one for one in TRACES if one <= most]:
            with tempfile.TemporaryDirectory() as scratch:
                place = Path(scratch)
                cold = fleet(place / "cold", range(count), source, stays)
                warm = fleet(place / "warm", range(count, 2 * count), source, stays)
                plain = bare(cold.folder, source, suffix)
                told(count, "bare read and write", plain, plain)
                for number in workers:
                    words = ["--workers", str(number), "--subject-from", "folder"]
                    words += ["--whole-files", "--suffix", suffix, "--allow-refusals"]
                    for name, rides in (("cold", cold), ("warm", warm)):
                        more = asked(stays, mechanism, rides)
                        took = batch(rides, place, [*words, *more], f"state{number}")
                        processes = "1 worker" if number == 1 else f"{number} workers"
                        told(count, f"{processes}, {name}", took, plain)


def batch(rides: Fleet, place: Path, words: Sequence[str], state: str) -> Took:
    """One run, to a folder of outputs of its own that is not kept."""
    out = place / "out"
    took = measured(["batch", str(rides.folder), "-o", str(out), *words], place / state)
    shutil.rmtree(out)
    return took


def told(count: int, what: str, took: Took, plain: Took) -> None:
    """Print one row."""
    rate, each = FIXES * count / took.seconds, 1000 * took.busy / count
    share = plain.seconds / took.seconds
    print(
        f"| {count:,} | {what} | {took.seconds:.1f} | {rate:,.0f} | {share:.2f} | {each:.1f} "
        f"| {took.largest:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
