"""Noise that was designed before: shipped with the package, kept for the user, or in this process.

The shipped table is a zip file with an entry for each design, so that one is read without the
others. `make designs` makes it anew (benchmarks/_shipped_designs.py).
"""

import hashlib
import json
import math
import zipfile
from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from importlib import resources
from io import BytesIO
from typing import Any, BinaryIO, Protocol

import numpy as np

from trailveil.designer.random_curves import (
    NOISE_DIGITS,
    TRACK_DIGITS,
    VERSION,
    WindowNoise,
    units,
)
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.movement import Matern

# Seconds: the shortest and the longest window that noise is shaped for, and the steps between.
_SHORTEST, _LONGEST, _STEP = 60.0, 86_400.0, 1.25
# Designs are for bounds of so many digits, at least so much below what is asked for: the last
# digits, in which machines may differ, do not matter.
_DIGITS, _BELOW = Context(prec=12, rounding=ROUND_FLOOR), Decimal("1e-12")
# Designs in memory, of some 0.2 MB each.
_MOST = 64
_known: dict[str, WindowNoise] = {}


class Cache(Protocol):
    """Where designs are kept beyond this process. It gives back what was put there, or nothing."""

    def get(self, key: str) -> bytes | None:
        """What was put under a key; None where there is nothing, or nothing that is as it was."""

    def put(self, key: str, data: bytes) -> None:
        """Keep a design, if that is possible."""


def shaped_for(seconds: float) -> float:
    """The window length that noise for a window of so many seconds is shaped for.

    The guarantee does not depend on it, and the noise hardly does.
    """
    steps = round(math.log(min(max(seconds, _SHORTEST), _LONGEST) / _SHORTEST, _STEP))
    return float(round(_SHORTEST * _STEP**steps))


def noise_of(
    seconds: float,
    sides: int,
    adversaries: tuple[Knowledge, ...],
    bound: float,
    cache: Cache | None = None,
) -> WindowNoise:
    """Noise for a window: shipped, kept, or designed now and kept. As `window_noise` otherwise."""
    noise = stored_noise(seconds, sides, adversaries, bound, cache)
    if noise is None:
        from trailveil.designer.window import window_noise  # heavy, and only for what is new

        asked = asked_of(seconds, sides, adversaries, bound)
        noise = _remembered(key_of(*asked), window_noise(*asked))
        if cache is not None:
            cache.put(key_of(*asked), written(noise))
    return noise


@lru_cache(maxsize=512)  # asked for again and again, of every window of a batch
def asked_of(
    seconds: float, sides: int, adversaries: tuple[Knowledge, ...], bound: float
) -> tuple[float, int, tuple[Knowledge, ...], float]:
    """What is designed for such noise: of a length, and a bound, that many requests share."""
    # A prior with a mean makes it matter how long a window is: no proof is of a longer one.
    exact = any(isinstance(adversary.movement, Matern) for adversary in adversaries)
    length = float(math.ceil(seconds)) if exact else shaped_for(seconds)
    return length, sides, adversaries, rounded_bound(bound)


def stored_noise(
    seconds: float,
    sides: int,
    adversaries: tuple[Knowledge, ...],
    bound: float,
    cache: Cache | None = None,
) -> WindowNoise | None:
    """The same where it was designed before; else None."""
    key = key_of(*asked_of(seconds, sides, adversaries, bound))
    if key in _known:
        return _known[key]
    stored = shipped(key)
    if stored is None and cache is not None:
        stored = cache.get(key)
    return None if stored is None else _remembered(key, read(stored))


def _remembered(key: str, noise: WindowNoise) -> WindowNoise:
    while len(_known) >= _MOST:
        del _known[next(iter(_known))]
    _known[key] = noise
    return noise


def forget() -> None:
    """Forget the designs of this process: as a new one would begin."""
    _known.clear()


def rounded_bound(bound: float) -> float:
    """A bound of 12 digits that is a little smaller."""
    return float(_DIGITS.create_decimal(Decimal(bound) * (1 - _BELOW)))


@lru_cache(maxsize=512)
def key_of(length: float, sides: int, adversaries: tuple[Knowledge, ...], bound: float) -> str:
    """All that a design depends on, in one line."""
    return repr((VERSION, length, sides, bound, adversaries))


def write_table(out: BinaryIO, designs: Iterable[tuple[str, WindowNoise]]) -> None:
    """Write a table of designs by their keys; the same designs are the same bytes."""
    with zipfile.ZipFile(out, "w") as table:
        for key, noise in designs:
            entry = zipfile.ZipInfo(_entry(key))
            table.writestr(entry, written(noise), zipfile.ZIP_DEFLATED, compresslevel=9)


def shipped(key: str) -> bytes | None:
    """What the table has of a design, as `written` made it; None where it has none."""
    table = _table()
    if table is None:
        return None
    try:
        return table.read(_entry(key))
    except KeyError:
        return None


@lru_cache(maxsize=1)
def _table() -> zipfile.ZipFile | None:
    file = resources.files("trailveil.designer") / "table.zip"
    return zipfile.ZipFile(BytesIO(file.read_bytes())) if file.is_file() else None


def _entry(key: str) -> str:
    """The name of a design in the table."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def written(noise: WindowNoise) -> bytes:
    """Noise and its proof in a few kilobytes, once compressed: numbers are whole numbers."""
    proof = dict(noise.proof)
    proof["even"] = _whole(proof["even"], NOISE_DIGITS, 0)
    proof["odd"] = _whole(proof["odd"], NOISE_DIGITS, 1)
    proof["adversaries"] = [
        {**adversary, "tracks": [_packed(track) for track in adversary["tracks"]]}
        for adversary in proof["adversaries"]
    ]
    return json.dumps({"gap": noise.gap, "proof": proof}, separators=(",", ":")).encode("ascii")


def read(data: bytes) -> WindowNoise:
    """Noise from what `written` made of it, to the last digit."""
    stored = json.loads(data)
    proof = stored["proof"]
    even = _fractional(proof["even"], NOISE_DIGITS, 0)
    odd = _fractional(proof["odd"], NOISE_DIGITS, 1) if proof["odd"] else None
    proof["even"], proof["odd"] = even.tolist(), [] if odd is None else odd.tolist()
    for adversary in proof["adversaries"]:
        adversary["tracks"] = [_unpacked(*track) for track in adversary["tracks"]]
    return WindowNoise(Knots(tuple(proof["knots"])), even, odd, proof, stored["gap"])


def _packed(track: dict[str, Any]) -> list[Any]:
    sides = (_whole(track[name], TRACK_DIGITS, slope) for slope, name in enumerate(("even", "odd")))
    return [track["away"], *sides]


def _unpacked(away: float | None, even: list[int], odd: list[int]) -> dict[str, Any]:
    return {
        "away": away,
        "even": _fractional(even, TRACK_DIGITS, 0).tolist(),
        "odd": _fractional(odd, TRACK_DIGITS, 1).tolist(),
    }


def _whole(numbers: Sequence[Any], digits: tuple[int, int], slope: int) -> list[Any]:
    """Values and slopes as multiples of their units; of a triangle without the zeros above."""
    array = np.array(numbers, dtype=np.float64)
    numerators = (array * units(array.shape, digits, slope)).astype(np.int64).tolist()
    return [row[: i + 1] for i, row in enumerate(numerators)] if array.ndim == 2 else numerators


def _fractional(numbers: Sequence[Any], digits: tuple[int, int], slope: int) -> FloatArray:
    """The inverse of `_whole`."""
    size = len(numbers)
    if size and isinstance(numbers[0], list):
        numbers = [[*row, *[0] * (size - len(row))] for row in numbers]
    array = np.array(numbers, dtype=np.float64)
    return np.asarray(array / units(array.shape, digits, slope))
