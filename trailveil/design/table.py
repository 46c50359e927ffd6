"""Noise that was designed before: shipped with the package, or earlier in this process."""

import json
import math
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from trailveil.design.window import VERSION, WindowNoise, window_noise
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import Knowledge

# Seconds: the shortest and the longest window that noise is shaped for, and the steps between.
_SHORTEST, _LONGEST, _STEP = 60.0, 86_400.0, 1.25


def shaped_for(seconds: float) -> float:
    """The window length that noise for a window of so many seconds is shaped for.

    The guarantee does not depend on it, and the noise hardly does.
    """
    steps = round(math.log(min(max(seconds, _SHORTEST), _LONGEST) / _SHORTEST, _STEP))
    return float(round(_SHORTEST * _STEP**steps))


def noise_of(
    seconds: float, sides: int, adversaries: tuple[Knowledge, ...], bound: float
) -> WindowNoise:
    """Noise for a window: from the table, or designed now. As `window_noise` otherwise."""
    length = shaped_for(seconds)
    known = _shipped().get(key_of(length, sides, adversaries, bound))
    return _designed(length, sides, adversaries, bound) if known is None else read(known)


def key_of(length: float, sides: int, adversaries: tuple[Knowledge, ...], bound: float) -> str:
    """All that a design depends on, in one line."""
    return repr((VERSION, length, sides, bound, adversaries))


@lru_cache(maxsize=64)
def _designed(
    length: float, sides: int, adversaries: tuple[Knowledge, ...], bound: float
) -> WindowNoise:
    return window_noise(length, sides, adversaries, bound)


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Any]:
    file = resources.files("trailveil.design") / "table.json"
    return dict(json.loads(file.read_text(encoding="ascii"))) if file.is_file() else {}


def read(stored: dict[str, Any]) -> WindowNoise:
    """Noise from what `written` made of it."""
    proof = stored["proof"]
    odd = np.array(proof["odd"]) if proof["odd"] else None
    return WindowNoise(
        Knots(tuple(proof["knots"])), np.array(proof["even"]), odd, proof, stored["gap"]
    )


def written(noise: WindowNoise) -> dict[str, Any]:
    """Noise as JSON has it."""
    return {"gap": noise.gap, "proof": noise.proof}
