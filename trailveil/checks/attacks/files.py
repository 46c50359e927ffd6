"""A released file as attackers see it: which fix is which, and in which frame."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.scan.matching import How, cells, matched
from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.projection import MICRO, Frame, frame_for, microdegrees
from trailveil.traces.retiming import SHIFTED_TO
from trailveil.traces.trace import Recording, Trace

# Degrees of latitude: more than the largest noise, five times over.
_FURTHEST = 15.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Aligned:
    """Released fixes of a recording. rows: (m,) of its fixes, in order. places: (m, 2) metres."""

    frame: Frame
    rows: NDArray[np.intp]
    places: FloatArray

    def as_designed(self, released: NDArray[np.intp]) -> FloatArray | None:
        """The places, if they are those of the fixes that a design releases; else None."""
        return self.places if np.array_equal(self.rows, released) else None


def aligned(trace: Trace, released: Recording) -> Aligned:
    """The released fixes that are of a recording, by time, in its frame.

    By times as they were, rounded, or shifted to where `trailveil.traces.retiming` shifts them:
    those of many a recording are so many seconds apart. Raises Refused where fewer than half of the
    fixes are of the recording, fewer than two, or one is further off than any noise moves it.
    """
    frame = frame_for(trace.positions)
    with np.errstate(invalid="ignore"):
        sound = (np.abs(released.positions) <= [90.0, 180.0]).all(axis=1)
    sound &= ~np.isnat(released.times)
    times = released.times[sound].astype("datetime64[ns]").astype(np.int64)
    positions = released.positions[sound]
    indices = np.full(times.size, -1, dtype=np.intp)
    if times.size:
        true, grid = microdegrees(trace.positions), microdegrees(positions)
        match = matched(trace.times, cells(true), times, cells(grid))
        shifted = match.how is How.SHIFTED and int(times.min()) != SHIFTED_TO
        indices = indices if shifted or match.how is How.ORDER else match.rows
    known = indices >= 0
    if known.sum() < 2 or 2 * known.sum() < times.size:
        raise _of_others(
            f"{int(known.sum())} of {times.size} released fixes at its times (two are the least, "
            "and shifted times must begin in 2000, as --shift-times has them)"
        )
    if np.any(_degrees_off(trace.positions[indices[known]], positions[known]) > _FURTHEST):
        raise _of_others("released fixes in another part of the world")
    rows, first = np.unique(indices[known], return_index=True)
    return Aligned(frame, rows, frame.to_lattice(positions[known][first]) / MICRO)


def _degrees_off(true: FloatArray, released: FloatArray) -> FloatArray:
    """How many degrees of latitude a fix is off (m,)."""
    return np.asarray(np.abs(true[:, 0] - released[:, 0]))


def _of_others(got: str) -> Refused:
    return Refused(
        f"both files must be of one recording, got {got}: name the file that was made from ORIGINAL"
    )


def line_of(track: Recording, frame: Frame) -> FloatArray:
    """An earlier track as a line (k, 2) in metres of a frame, in the order of the file."""
    with np.errstate(invalid="ignore"):
        sound = (np.abs(track.positions) <= [90.0, 180.0]).all(axis=1)
    return np.asarray(frame.to_lattice(track.positions[sound]) / MICRO)
