"""A small sketch of a track for a terminal: where it is published, and where it is hidden.

It is drawn from true places, so it is for the owner's screen alone: no report and no file has it.
"""

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.release.plan import Plan
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Trace

ROWS, COLUMNS = 7, 48
"""Of characters, besides the legend."""

HIDDEN = "\u2588"
LEGEND = f"\u28ff published   {HIDDEN} hidden"

# Dots of a braille character, down and across, and the bit of each in it.
_DOWN, _ACROSS = 4, 2
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BLANK = 0x2800
# Points that are drawn of a line, at most.
_MOST = 20_000


def sketch(plan: Plan, released: Trace) -> list[str]:
    """Lines of a sketch, north up: at most ROWS and the legend; none where all is at one place.

    released: the fixes as they are drawn, at their recorded times. Braille dots are the published
    track. A block stands where a recorded fix is left out, or protected by noise.
    """
    recorded = plan.lattice / MICRO
    hidden = ~np.asarray(plan.mechanism.released)
    if plan.mechanism.noise_trace:
        for finding in plan.findings:
            hidden |= finding.stretch.rows(plan.trace)
    published = plan.frame.to_lattice(released.positions) / MICRO
    low = np.minimum(recorded.min(axis=0), published.min(axis=0))
    size = np.maximum(recorded.max(axis=0), published.max(axis=0)) - low
    dots = np.array([COLUMNS * _ACROSS, ROWS * _DOWN]) - 1.0
    if not size.max() > 0:
        return []
    scale = float(np.min(dots / np.maximum(size, 1e-9)))
    shape = np.floor(size * scale / [_ACROSS, _DOWN]).astype(int) + 1

    def cells(points: FloatArray, shown: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Braille bits (rows, columns) of lines between points (n, 2) of which both are shown."""
        across, up = _along((points - low) * scale, shown).T
        down = shape[1] * _DOWN - 1 - up
        bits = np.zeros((shape[1], shape[0]), dtype=np.intp)
        at = down // _DOWN, across // _ACROSS
        np.bitwise_or.at(bits, at, _BITS[down % _DOWN, across % _ACROSS])
        return bits

    rows = plan.mechanism.rows
    apart = np.zeros(rows.size, dtype=np.bool_)
    apart[1:] = np.diff(rows) > 1
    lines = cells(published, ~apart) + _BLANK
    covered = cells(recorded, hidden) > 0
    texts = ["".join(map(chr, line)) for line in lines.tolist()]
    whole = [
        "".join(HIDDEN if block else dot for dot, block in zip(text, row, strict=True))
        for text, row in zip(texts, covered.tolist(), strict=True)
    ]
    return [*(f"  {line}".rstrip(f" {chr(_BLANK)}") for line in whole), f"  {LEGEND}"]


def _along(points: FloatArray, joined: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Whole dots (k, 2) of points (n, 2) that are joined to the one before them, and of the lines.

    A point that is not joined is drawn only as the beginning of a line.
    """
    steps = np.max(np.abs(np.diff(points, axis=0)), axis=1, initial=0.0)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    count = min(int(2 * length[-1]) + 2, _MOST)
    at = np.union1d(np.linspace(0.0, length[-1], count), length)
    after = np.minimum(np.searchsorted(length, at), len(points) - 1)
    at = at[joined[after]]
    return np.column_stack([np.interp(at, length, axis) for axis in points.T]).astype(np.intp)
