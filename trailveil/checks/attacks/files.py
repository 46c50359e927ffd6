"""A released file as attackers see it, and as its owner does.

Which of its fixes is which, and in which frame: for attackers. And whether it holds a draw of the
noise that a design states: its owner can tell. Of every sum of released places that the design
leaves without noise, a file must hold what was recorded, but for the public grid; and the others
must be as large as their deviations say. That is a test of this one draw: a file that passes may
still have been chosen among several.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, svd
from scipy.special import chdtr, chdtrc, ndtr

from trailveil.checks.scan.matching import How, cells, matched
from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism
from trailveil.traces.projection import MICRO, Frame, frame_for, microdegrees
from trailveil.traces.retiming import SHIFTED_TO
from trailveil.traces.trace import Recording, Trace

# Degrees of latitude: more than the largest noise, five times over.
_FURTHEST = 15.0
# Metres: what the grid moves a coordinate by is less than half of this; sums whose noise is below
# this deviation are not looked at for its size, since the grid is not Gaussian.
_GRID, _LEAST = 0.12, 1.0
# Times the median deviation: noise beyond this is judged by itself, too.
_LARGE = 3.0
# Rows of the largest matrix: of more, as many are looked at, evenly.
_MOST_ROWS = 1500
LEVEL = 1e-4
"""The chance of a false alarm, of each protected part."""


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
    north = trace.positions[indices[known], 0] - positions[known, 0]
    if np.any(np.abs(north) > _FURTHEST):
        raise _of_others("released fixes in another part of the world")
    rows, first = np.unique(indices[known], return_index=True)
    return Aligned(frame, rows, frame.to_lattice(positions[known][first]) / MICRO)


def _of_others(got: str) -> Refused:
    return Refused(
        f"both files must be of one recording, got {got}: name the file that was made from ORIGINAL"
    )


def line_of(track: Recording, frame: Frame) -> FloatArray:
    """An earlier track as a line (k, 2) in metres of a frame, in the order of the file."""
    with np.errstate(invalid="ignore"):
        sound = (np.abs(track.positions) <= [90.0, 180.0]).all(axis=1)
    return np.asarray(frame.to_lattice(track.positions[sound]) / MICRO)


@dataclass(frozen=True, slots=True)
class Drawn:
    """How the noise of a file compares with its design, around one protected part.

    off: metres, the furthest that a coordinate is from where noise of the design could have put it;
    allowed: what rounding to the released grid explains of that.
    chance: that noise of the design is as unlikely as the file's in how much there is of it, or how
    far one fix is from the others; at most 1.
    """

    part: int
    off: float
    chance: float
    allowed: float = _GRID

    @property
    def as_designed(self) -> bool:
        """Whether it may be."""
        return self.off <= self.allowed and self.chance >= LEVEL


def drawn(
    part: int, mechanism: Mechanism, recorded: FloatArray, released: FloatArray, step: float = 0.0
) -> Drawn:
    """Compare the released places (m, 2) of a mechanism's rows with those recorded (n, 2): metres.

    part: which one, for the record. step: of the grid that places were released on.
    """
    noise = released - recorded[mechanism.rows]
    ways, sizes = _spectrum(mechanism, step)
    if len(ways) < len(noise):
        noise = noise[_evenly(len(noise), len(ways))]
    parts = ways.T @ noise
    outside = noise - ways @ parts
    off = float(np.max(np.abs(outside), initial=0.0))
    heard = sizes > _LEAST
    chance = _chance(ways[:, heard], parts[heard], sizes[heard])
    return Drawn(part, off, chance, max(_GRID, step))


def _chance(ways: FloatArray, parts: FloatArray, sizes: FloatArray) -> float:
    """Of noise with deviations (r,) along ways (m, r), of which the parts (r, 2) were drawn.

    The least of the chances of how much there is of it in either coordinate and in both, of that in
    the ways where it is largest alone, and, where each fix has noise of its own, of the fix that is
    furthest from where all others say: times how many these are.
    """
    if not sizes.size:
        return 1.0
    tried = []
    large = sizes > _LARGE * np.median(sizes)
    for some in (np.ones_like(large), large) if np.any(large) else (np.ones_like(large),):
        each = np.sum((parts[some] / sizes[some, None]) ** 2, axis=0)
        for total, count in ((each[0], 1), (each[1], 1), (each.sum(), 2)):
            degrees = count * int(some.sum())
            below, above = float(chdtr(degrees, total)), float(chdtrc(degrees, total))
            tried.append(2 * min(below, above))
    if sizes.size == len(ways):
        inverse = ways / sizes
        scores = (
            np.abs(inverse @ (parts / sizes[:, None])) / np.linalg.norm(inverse, axis=1)[:, None]
        )
        tried.append(2 * scores.size * float(ndtr(-np.max(scores))))
    return min(1.0, len(tried) * min(tried))


def _spectrum(mechanism: Mechanism, step: float) -> tuple[FloatArray, FloatArray]:
    """Directions (m, r) that have noise, orthonormal, and its deviations (r,) with rounding."""
    rows = mechanism.rows
    if (
        mechanism.floor == 0
        and mechanism.process is None
        and not np.any(mechanism.independent_variances)
    ):
        axes, sizes, _ = svd(mechanism.factor[rows], full_matrices=False)
        large = sizes > _GRID / 10
        return axes[:, large], sizes[large]
    rows = rows[_evenly(rows.size, min(rows.size, _MOST_ROWS))]
    few = np.zeros(mechanism.times.size, dtype=np.bool_)
    few[rows] = True
    shown = mechanism.withholding(~few)
    rounding = np.where(shown.variances[shown.rows] > 0, step**2 / 12, 0.0)
    values, vectors = eigh(shown.covariance() + np.diag(rounding))
    large = values > (_GRID / 10) ** 2
    return vectors[:, large], np.sqrt(values[large])


def _evenly(count: int, most: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, count - 1, most).astype(np.intp))
