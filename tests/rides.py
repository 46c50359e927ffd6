"""Made-up rides for tests of the release: traces, their GPX, and the program run on them."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trailveil.traces.formats.moments import format_moments
from trailveil.traces.stops import Interval
from trailveil.traces.trace import NANOSECONDS, Trace

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


@dataclass(frozen=True)
class Case:
    """A recording of which it is known when it must be protected.

    covered: the times (nanoseconds) that bare `protect` must cover. homes: true places (k, 2) in
    degrees, of which no fix within 50 m may leave as recorded.
    """

    name: str
    trace: Trace
    covered: tuple[Interval, ...]
    homes: np.ndarray

    def __str__(self) -> str:
        return self.name


def degrees_of(metres: np.ndarray, at: tuple[float, float] = (48.137, 11.575)) -> np.ndarray:
    """Metres east and north (n, 2) of a place, in degrees."""
    scale = 111_195 * np.array([1.0, np.cos(np.radians(at[0]))])
    return np.asarray(np.array(at) + metres[:, ::-1] / scale)


def route(
    name: str,
    points: Sequence[tuple[float, float, float]],
    covered: Sequence[tuple[float, float]],
    *,
    step: float = 10.0,
    noise: np.ndarray | float = 3.0,
    seed: int = 1,
    homes: Sequence[tuple[float, float]] = ((0.0, 0.0),),
    only: Sequence[tuple[float, float]] = (),
) -> Case:
    """A recording along points (seconds, metres east, metres north), straight between them.

    noise: metres a coordinate, or all of it (n, 2). only: the seconds that were recorded, all where
    none are stated; a track for each.
    """
    corners = np.array(points, dtype=float)
    seconds = np.arange(corners[0, 0], corners[-1, 0] + step / 2, step)
    inside = [(seconds >= a) & (seconds <= b) for a, b in only or [(-np.inf, np.inf)]]
    place = np.stack([np.interp(seconds, corners[:, 0], axis) for axis in corners[:, 1:].T], axis=1)
    random = np.random.default_rng(seed)
    scatter = noise * random.standard_normal(place.shape) if np.ndim(noise) == 0 else noise
    times = BEGIN * NANOSECONDS + np.round(seconds * NANOSECONDS).astype(np.int64)
    tracks = np.argmax(inside, axis=0)
    whole = Trace(times, degrees_of(place + scatter), tracks, tuple(range(len(inside))))
    moments = [(BEGIN + a, BEGIN + b) for a, b in covered]
    exact = tuple((round(a * NANOSECONDS), round(b * NANOSECONDS)) for a, b in moments)
    return Case(name, whole.only(np.any(inside, axis=0)), exact, degrees_of(np.array(homes)))


def days(count: int = 2) -> Case:
    """A timeline: home and work, day after day, two fixes of one place for each visit."""
    hour, work = 3600.0, (6_000.0, -2_500.0)
    stays = [(0.0, 2 * hour, 0.0, 0.0), (2.5 * hour, 11 * hour, *work)]
    for day in range(1, count):
        begin = 24 * hour * day
        stays.append((begin - 12.5 * hour, begin + 2 * hour, 0.0, 0.0))
        stays.append((begin + 2.5 * hour, begin + 11 * hour, *work))
    edges = [(when, x, y) for a, b, x, y in stays for when in (a, b)]
    times = np.array([BEGIN + when for when, _, _ in edges]) * NANOSECONDS
    places = degrees_of(np.array([[x, y] for _, x, y in edges]))
    trace = Trace(times.astype(np.int64), places, np.zeros(len(edges), dtype=np.intp), (0,))
    moments = trace.times.reshape(-1, 2).tolist()
    covered = tuple((int(a), int(b)) for a, b in moments)
    return Case(f"{count} days of a timeline", trace, covered, degrees_of(np.array([[0, 0], work])))


def tracks(count: int = 2, seed: int = 1) -> Case:
    """A track a day: half an hour at home, an hour out and back, half an hour at home."""
    points, covered, only = [], [], []
    for day in range(count):
        begin = 86_400.0 * day
        legs = ((0, 0, 0), (1800, 0, 0), (3600, 6000, 2000), (5400, 0, 0), (7200, 0, 0))
        points += [(begin + when, x, y) for when, x, y in legs]
        covered += [(begin, begin + 1800), (begin + 5400, begin + 7200)]
        only.append((begin, begin + 7200))
    return route(f"{count} tracks", points, covered, only=only, seed=seed)


def returning(seed: int = 1) -> Iterator[Case]:
    """Recordings that come back to where they began, to stay or in passing."""
    yield days()
    yield days(5)
    yield tracks()
    yield tracks(4, seed)
    out, back = (1500, 5000, 1000), (3000, 10, 10)
    ends = [(0, 0), (6000, 6000)]
    halfway = [(0, 0, 0), out, back, (4500, -5000, 3000), (6000, 0, 0)]
    yield route("a loop through home", halfway, [*ends, (2990, 3010)], seed=seed)
    stop = [(0, 0, 0), out, back, (3600, 10, 10), (4500, -5000, 3000), (6000, -9000, 0)]
    both = ((0.0, 0.0), (-9000.0, 0.0))
    yield route("home at midday", stop, [(0, 0), (3000, 3600), (6000, 6000)], seed=seed, homes=both)
    for aside, speed, step in ((25, 8.3, 1.0), (40, 8.3, 1.0), (0, 25.0, 1.0), (45, 4.0, 5.0)):
        way = 2000 / speed
        passing = [(1500 - way, -2000, aside), (1500, 0, aside), (1500 + way, 2000, aside)]
        points = [(0, 0, 0), (700, 3000, -2000), *passing, (3000, 5000, 5000)]
        reach = (50**2 - aside**2) ** 0.5 / speed
        yield route(
            f"home passed {aside} m aside at {speed} m/s",
            points,
            [(0, 0), (1500 - reach, 1500 + reach), (3000, 3000)],
            step=step,
            seed=seed,
            noise=2.0,
            homes=((0.0, 0.0), (5000.0, 5000.0)),
        )


def _scatters(count: int, random: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """What receivers add (count, 2) while somebody is at one place, metres."""
    white = random.standard_normal((count, 2))
    for size in (8.0, 15.0, 25.0):
        yield f"scatter of {size:g} m", size * white
    drift = np.zeros((count, 2))
    for i in range(1, count):
        drift[i] = np.clip(drift[i - 1] + 4.0 * random.standard_normal(2), -40.0, 40.0)
    yield "scatter that drifts", drift + 5.0 * white
    stray = 8.0 * white
    stray[random.integers(5, count - 1, 6)] += 200.0
    yield "strays of 200 m", stray
    last = 8.0 * white
    last[-1] += 200.0
    yield "a last fix astray", last
    bounces = 12.0 * white
    for begin in random.integers(10, count - 20, 5):
        bounces[begin : begin + 12] += 120.0 * random.standard_normal(2)
    yield "bounces indoors", bounces
    garden = 5.0 * white
    for begin in random.integers(10, count - 20, 8):
        garden[begin : begin + 9, 0] += 45.0 * np.sin(np.linspace(0, np.pi, 9))
    yield "walks in the garden", garden


def settling(seed: int = 1, step: float = 10.0) -> Iterator[Case]:
    """Half an hour of riding, then 90 minutes at one place, which the receiver sees badly."""
    points = [(0, -9000, 0), (1800, 0, 0), (7200, 0, 0)]
    riding, whole = int(1800 / step), int(7200 / step) + 1
    covered, homes = [(0.0, 0.0), (1800.0, 7200.0)], ((0.0, 0.0), (-9000.0, 0.0))
    random = np.random.default_rng(seed)
    for name, scatter in _scatters(whole - riding, random):
        noise = np.concatenate([3.0 * random.standard_normal((riding, 2)), scatter])
        yield route(name, points, covered, step=step, noise=noise, homes=homes)
    gaps = [(0.0, 2400.0), (4000.0, 5000.0), (6900.0, 7200.0)]
    yield route("gaps", points, covered, step=step, noise=10.0, seed=seed, homes=homes, only=gaps)


def pausing(seed: int = 1) -> Iterator[Case]:
    """Recordings that stand still for a while: at an end, at both, all along, and at lights."""
    far = ((0.0, 0.0), (5000.0, 0.0))
    start = [(0, 0, 0), (3, 10, 0), (113, 10, 0), (2012, 5000, 0)]
    only = [(0.0, 3.0), (113.0, 2012.0)]
    covered = [(0.0, 113.0), (2012.0, 2012.0)]
    yield route(
        "a pause at the start", start, covered, step=1, noise=1, seed=seed, homes=far, only=only
    )
    for step, (still, until, end) in ((5.0, (30, 90, 120)), (1.0, (120, 180, 300))):
        points = [(0, 0, 0), (still, 0, 0), (until, 0, 200), (end, 0, 200)]
        both = [(0.0, float(still)), (float(until), float(end))]
        homes = ((0.0, 0.0), (0.0, 200.0))
        name = f"still, 200 m, still, every {step:g} s"
        yield route(name, points, both, step=step, noise=1, seed=seed, homes=homes)
    stood = [(0, 0, 0), (3600, 0, 0)]
    yield route("standing still", stood, [(0.0, 3600.0)], step=1, seed=seed)
    lights, when = [(0.0, 0.0, 0.0)], 0.0
    for light in range(1, 6):
        lights += [(when + 100, 800.0 * light, 0.0), (when + 160, 800.0 * light, 0.0)]
        when += 160
    lights.append((when + 125, 5000.0, 0.0))
    both = [(0.0, 0.0), (when + 125, when + 125)]
    yield route("lights", lights, both, step=1, noise=2, seed=seed, homes=far)


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
    return [sys.executable, "-m", "trailveil", *(os.fspath(argument) for argument in arguments)]


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


def stated_key(path: Path) -> Path:
    """A key that is the same in every run, in a file: where chance could make noise small."""
    path.write_text(f"trailveil key 1\n{'07' * 32}\n")
    path.chmod(0o600)
    return path


def left_behind(folder: Path, known: Sequence[str]) -> list[str]:
    """The names in a folder beside those that are known."""
    return sorted({one.name for one in folder.iterdir()} - set(known))
