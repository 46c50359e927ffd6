"""Whether positions lie on a grid of whole metres of some map: the step, however it is turned."""

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray

# Metres, the coarsest first; radians that a map is turned by at most.
_STEPS, _MOST_TURNED = (100.0, 50.0, 25.0, 20.0, 10.0, 5.0, 2.5, 2.0, 1.0, 0.5), 0.13
# Of one fix to the next, over the next and so on; ways of at most so many steps, and how many.
_AHEAD, _LONGEST, _MOST = (1, 2, 3, 5, 8, 13), 30.0, 600
# Steps off the grid: of numbers without one a share of 0.09 is so near on both axes.
_NEAR_STEPS = 0.15
# How many places there must be, and different ways, and the share of all that must be on the grid.
_LEAST_PLACES, _DISTINCT_WAYS, _SHARE_ON = 20, 12, 0.95
_ANGLES = np.arange(-_MOST_TURNED, _MOST_TURNED, _NEAR_STEPS / _LONGEST)
_TURNS = np.stack(
    [[np.cos(_ANGLES), np.sin(_ANGLES)], [-np.sin(_ANGLES), np.cos(_ANGLES)]]
).transpose(2, 0, 1)
_SPIN = np.exp(1j * _ANGLES)
# Ways that are looked at first, whichever way they are turned.
_FIRST = 40
# Fixes in a row that are looked at, at up to three places of a long recording.
_BLOCK = 1000
# Degrees: where the map of Web Mercator ends.
_LAST = 85.06
# WGS84: metres of the longer axis, and the square of the eccentricity.
_AXIS, _ECCENTRICITY = 6_378_137.0, 0.0066943799901413


def projected_step(positions: FloatArray) -> float:
    """Metres of the grid that positions (n, 2) in degrees were rounded to on some map; 0 for none.

    Web Mercator is a map whose metres are short: it has a plane of its own. Of 12 ways without a
    grid, one of some 2,000 steps and turns has 12 on it once in 10^9 times.
    """
    beyond = len(positions) - _BLOCK
    firsts = range(0, beyond + 1, max(beyond // 2, _BLOCK)) if beyond > 0 else [0]
    parts = [positions[first : first + _BLOCK] for first in firsts]
    true = _map_step([_near_metres(part) for part in parts])
    short = float(np.max(np.cos(np.radians(positions[:, 0])), initial=0.0))
    return max(true, short * _map_step([_mercator(part) for part in parts]))


def _map_step(parts: list[FloatArray]) -> float:
    """The coarsest step of a square grid that the ways in parts (n, 2), metres, are of; or 0."""
    ways = np.vstack([_ways(part) for part in parts])
    ways = ways[:: len(ways) // (_MOST * len(_AHEAD)) + 1]
    lengths = np.hypot(*ways.T)
    ways, lengths = ways[lengths > 0], lengths[lengths > 0]
    tried = []
    for step in _STEPS:
        short = np.flatnonzero(lengths <= _LONGEST * step)
        some = short[:: short.size // _MOST + 1]
        # Short ways are near no way at all on every grid.
        long = some[lengths[some] > (0.5 + _NEAR_STEPS) * step]
        if long.size >= _DISTINCT_WAYS:
            tried.append((step, some, ways[long[:: long.size // _FIRST + 1]] / step))
    for number, turns in _likely([first for _, _, first in tried]):
        step, some, first = tried[number]
        near = np.mean(_nearest_steps(first @ _TURNS[turns])[1], axis=1)
        likely = turns[near >= _SHARE_ON - _NEAR_STEPS]
        if _on_grid(ways[some] / step, _TURNS[likely]):
            return step
    return 0.0


def _ways(metres: FloatArray) -> FloatArray:
    """The ways (m, 2) from places (n, 2) to those soon after them."""
    moved = np.concatenate([[True], np.any(np.diff(metres, axis=0) != 0, axis=1)])
    metres = metres[moved[: len(metres)]]
    if len(metres) < _LEAST_PLACES:
        return np.empty((0, 2))
    return np.vstack([metres[ahead:] - metres[:-ahead] for ahead in _AHEAD])


def _mercator(positions: FloatArray) -> FloatArray:
    """Places (n, 2) on the plane of Web Mercator (EPSG:3857), metres; a pole is at infinity."""
    east = (positions[:, 1] - positions[:1, 1] + 180) % 360 - 180
    latitude = np.clip(positions[:, 0], -_LAST, _LAST)
    north = np.arcsinh(np.tan(np.radians(latitude)))
    return _AXIS * np.column_stack([np.radians(east), north])


def _near_metres(positions: FloatArray) -> FloatArray:
    """Metres (n, 2) east and north; ways between near places are true to a thousandth."""
    latitude = np.radians(positions[:, 0])
    east = (positions[:, 1] - positions[:1, 1] + 180) % 360 - 180
    root = np.sqrt(1 - _ECCENTRICITY * np.sin(latitude) ** 2)
    wide = _AXIS * np.cos(latitude) / root
    high = _AXIS * (1 - _ECCENTRICITY) / root**3
    # Each way is measured where it is, so that the whole may be wide.
    steps = np.column_stack(
        [
            np.diff(np.radians(east)) * (wide[1:] + wide[:-1]) / 2,
            np.diff(latitude) * (high[1:] + high[:-1]) / 2,
        ]
    )
    return np.vstack([np.zeros((1, 2)), np.cumsum(steps, axis=0)])[: len(positions)]


def _likely(each: list[FloatArray]) -> list[tuple[int, NDArray[np.intp]]]:
    """Which of some ways (n, 2), in steps, may be of a square grid, and at which of all turns.

    Of each the first few alone are looked at: most turns miss more of them than they may of all.
    """
    if not each:
        return []
    most_off = np.array([(1 - _SHARE_ON + _NEAR_STEPS) * len(ways) for ways in each])
    few = _SPIN[:, None] * (np.stack([ways[:_DISTINCT_WAYS] for ways in each]) @ [1, 1j])[:, None]
    off = [abs(part - np.rint(part)) > _NEAR_STEPS + 1e-9 for part in (few.real, few.imag)]
    likely = np.count_nonzero(off[0] | off[1], axis=2) <= most_off[:, None]
    return [(int(i), np.flatnonzero(likely[i])) for i in np.flatnonzero(likely.any(axis=1))]


def _on_grid(ways: FloatArray, turns: FloatArray) -> bool:
    """Whether ways (n, 2), in steps, are of a square grid at one of some turns (t, 2, 2)."""
    for turn in turns:
        whole, near = _nearest_steps(ways @ turn)
        if np.mean(near) >= _SHARE_ON and len(np.unique(whole[near], axis=0)) >= _DISTINCT_WAYS:
            return True
    return False


def _nearest_steps(turned: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The whole steps (..., n, 2) nearest to ways, and which (..., n) are near them."""
    whole = np.floor(turned + 0.5)
    near = np.abs(turned - whole) <= _NEAR_STEPS
    return whole, near[..., 0] & near[..., 1]
