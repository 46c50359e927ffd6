"""Invented files in GeoLife's format, at a place where nobody lives."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEADER = "\r\n".join(
    [
        "Geolife trajectory",
        "WGS 84",
        "Altitude is in Feet",
        "Reserved 3",
        "0,2,255,My Track,0,0,2,8421376",
        "0",
        "",
    ]
)
LABEL_HEADER = "Start Time\tEnd Time\tTransportation Mode\r\n"
MORNING = np.datetime64("2009-05-04T06:00:00")
DAYS = 39937.25  # the same moment, in days since 1899-12-30

Floats = NDArray[np.float64]


def plt_text(seconds: Sequence[float] | Floats, degrees: Floats) -> str:
    """A .plt file of fixes at whole seconds after MORNING."""
    rows = []
    for after, (latitude, longitude) in zip(seconds, degrees, strict=True):
        moment = MORNING + np.timedelta64(int(after), "s")
        stamp = ",".join(str(moment).split("T"))
        days = f"{DAYS + after / 86_400:.10f}"
        rows.append(f"{latitude:.6f},{longitude:.6f},0,160,{days},{stamp}\r\n")
    return HEADER + "".join(rows)


def walked(count: int, seed: int, period: float = 5.0, pace: float = 1.3) -> tuple[Floats, Floats]:
    """Seconds, and degrees (n, 2), of a random walk with some memory in the South Pacific."""
    rng = np.random.default_rng(seed)
    seconds = period * np.arange(float(count))
    velocity = np.zeros((count, 2))
    for row in range(1, count):
        velocity[row] = 0.9 * velocity[row - 1] + pace * 0.44 * rng.standard_normal(2)
    metres = np.cumsum(velocity, axis=0) * period + 1.5 * rng.standard_normal((count, 2))
    return seconds, np.array([-45.0, -125.0]) + metres / 111_195


def write_user(
    place: Path,
    seeds: Sequence[int],
    count: int = 70,
    period: float = 5.0,
    labels: str | None = None,
) -> None:
    """A user's folder with a file for each seed, in the order of the seeds."""
    place.mkdir(parents=True)
    for number, seed in enumerate(seeds):
        (place / f"{number:03}.plt").write_text(plt_text(*walked(count, seed, period)), newline="")
    if labels is not None:
        owner = place.parent if place.name == "Trajectory" else place
        (owner / "labels.txt").write_text(LABEL_HEADER + labels, newline="")
