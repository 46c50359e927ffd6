"""Made-up rides for tests of the release: traces, their GPX, and the program run on them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trailveil.formats.moments import format_moments
from trailveil.trace import NANOSECONDS, Trace

BEGIN = 1_715_672_400  # 2024-05-14T07:40:00Z
PATIENCE = 600.0
"""Seconds that are waited for what takes a few: on machines that are slow, or busy."""
ROOT = Path(__file__).parents[1]


def ride(
    count: int = 60,
    step: float = 20.0,
    *,
    still: tuple[int, int] | None = None,
    seed: int = 1,
    begin: int = BEGIN,
    at: tuple[float, float] = (48.137, 11.575),
) -> Trace:
    """A trace of `count` fixes, `step` seconds apart, that wanders, but not within `still`."""
    random = np.random.default_rng(seed)
    stays = np.exp(-step / 60)
    velocity, place = np.zeros((count, 2)), np.zeros((count, 2))
    velocity[0] = 3.0 * random.standard_normal(2)
    for i in range(1, count):
        kick = 3.0 * np.sqrt(1 - stays**2) * random.standard_normal(2)
        velocity[i] = stays * velocity[i - 1] + kick
        moves = still is None or not still[0] < i <= still[1]
        place[i] = place[i - 1] + (step * velocity[i] if moves else 0)
    place += 2.0 * random.standard_normal(place.shape)
    degrees = np.array(at) + place[:, ::-1] / (111_000 * np.array([1.0, np.cos(np.radians(at[0]))]))
    times = begin * NANOSECONDS + np.round(np.arange(count) * step * NANOSECONDS).astype(np.int64)
    return Trace(times, degrees, np.zeros(count, dtype=np.intp), (0,))


def gpx(trace: Trace) -> bytes:
    """The trace as GPX, with every decimal."""
    lines = [
        f'<trkpt lat="{latitude!r}" lon="{longitude!r}"><time>{time}</time></trkpt>'
        for (latitude, longitude), time in zip(
            trace.positions.tolist(), format_moments(trace.times), strict=True
        )
    ]
    body = "\n".join(lines)
    return f'<gpx version="1.1"><trk><trkseg>\n{body}\n</trkseg></trk></gpx>\n'.encode()


def written(path: Path, trace: Trace) -> Path:
    """The trace in a GPX file."""
    path.write_bytes(gpx(trace))
    return path


def command(*arguments: str | Path) -> list[str]:
    """The program as a command for subprocess."""
    return [sys.executable, "-m", "trailveil", *(os.fspath(one) for one in arguments)]


def run(
    *arguments: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A real process of the program, to its end."""
    return subprocess.run(
        command(*arguments),
        env=environment(env),
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a child process: ours, and the package under test."""
    return {
        **os.environ,
        "PYTHONPATH": os.fspath(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
        **(more or {}),
    }


def left_behind(folder: Path, known: Sequence[str]) -> list[str]:
    """The names in a folder beside those that are known."""
    return sorted({one.name for one in folder.iterdir()} - set(known))
