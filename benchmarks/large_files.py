"""A recording of ten million fixes, ten years of a phone: read, protected and audited.

Prints processor time and peak memory of each in a process of its own with one BLAS thread. The
files are made in a temporary folder: 4 GB. Run: python -m benchmarks.large_files [FIXES].
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from trailveil.traces.formats import read, write
from trailveil.traces.formats.moments import format_moments
from trailveil.traces.trace import NANOSECONDS, Trace

FIXES = 10_000_000
SUFFIXES = (".parquet", ".csv", ".gpx", ".kml", ".geojson")
PROTECTED = (".parquet", ".csv", ".gpx")
_STEP = 30  # seconds
_PART = 100_000
_DAY = 86_400 // _STEP


def days(count: int) -> Trace:
    """Nights at home and days at some place within 15 km, in segments of a hundred days."""
    random = np.random.default_rng(1)
    at = np.arange(count)
    times = 1_400_000_000 * NANOSECONDS + at * _STEP * NANOSECONDS
    away = np.interp(at % _DAY / _DAY, [0, 0.33, 0.36, 0.7, 0.73, 1], [0, 0, 1, 1, 0, 0])
    places = random.normal(0, 0.05, (count // _DAY + 1, 2))[at // _DAY]
    positions = np.array([46.2, -33.0]) + away[:, None] * places
    positions += random.normal(0, 5e-5, (count, 2))
    segments = at // (100 * _DAY)
    return Trace(times, positions, segments, (0,) * (int(segments[-1]) + 1))


def records(trace: Trace) -> Iterator[bytes]:
    """The trace as Records.json of a Takeout."""
    yield b'{"locations": ['
    for begin in range(0, len(trace), _PART):
        part = slice(begin, begin + _PART)
        stamps = format_moments(trace.times[part])
        e7 = np.round(trace.positions[part] * 1e7).astype(int).tolist()
        lines = [
            f'{{"latitudeE7": {a}, "longitudeE7": {b}, "accuracy": 13, "source": "WIFI", '
            f'"deviceTag": 7, "timestamp": "{stamp}"}}'
            for (a, b), stamp in zip(e7, stamps, strict=True)
        ]
        yield (",\n" * (begin > 0) + ",\n".join(lines)).encode()
    yield b"]}"


def make(folder: Path, count: int) -> list[Path]:
    """A file of each format."""
    trace = days(count)
    found = [folder / f"years{suffix}" for suffix in SUFFIXES]
    for path in found:
        with path.open("wb") as stream:
            write(trace, stream, path.suffix)
    with (folder / "Records.json").open("wb") as stream:
        stream.writelines(records(trace))
    return [*found, folder / "Records.json"]


def alone(name: str, path: Path, *arguments: str) -> None:
    """Run a command in a process of its own, and print a row."""
    state = {"XDG_STATE_HOME": str(path.parent / "state"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(  # noqa: S603  # this program, files of ours
        command, env={**os.environ, **state}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        said = process.stderr.read().decode() if process.stderr else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
    what = f"{name} {path.name}, {path.stat().st_size / 1e6:,.0f} MB"
    failed = f" {said.strip().splitlines()[-1]}" if process.returncode and said.strip() else ""
    click.echo(f"| {what} | {seconds:.0f} s | {memory:.1f} GiB |{failed}")


def main() -> None:
    """Print the table; with the name of a file, read it."""
    if len(sys.argv) > 2:
        read(sys.argv[2])
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else FIXES
    with tempfile.TemporaryDirectory() as folder:
        files = make(Path(folder), count)
        click.echo(f"{count:,} fixes\n\n| what | processor time | memory |\n|---|---|---|")
        for path in files:
            alone("read", path, "benchmarks.large_files", "read", str(path))
        for path in files:
            if path.suffix in PROTECTED:
                about = ("--between", "2014-06-02T01:05Z", "2014-06-02T01:10Z")
                alone("protect", path, "trailveil", "protect", str(path), *about, "--again")
                audited = str(path.with_suffix(f".private{path.suffix}"))
                alone("audit", path, "trailveil", "audit", str(path), audited, *about)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    click.echo(f"\nMaking the files took {peak:.1f} GiB.")


if __name__ == "__main__":
    main()
