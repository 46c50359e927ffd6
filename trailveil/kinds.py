"""Kinds of protected parts: what noise can be designed for once, and used for every recording.

Nothing of a recording matters to its noise but when its fixes are. So noise is designed for a
recording of fixes at *every* step of a clock, as many as can matter, around a part of a length; and
whoever has fewer of these fixes may use it: what is released is then a part of what was reckoned
with, and nobody learns more from a part (the data processing inequality). This holds of each
adversary by itself:

- what is secret of the part at its fixes is among what is secret at every step;
- who knows one true place knows it of a fix, which is one of the steps;
- who knows the path knows less of it, but the fix that is nearest to the part on either side, if
  any is. What is lost to them is reckoned of who knows all of it, beside what is known with that
  nearest fix alone;
- who sees that the person stood still sees it of the same part;
- the mean of the fixes of a stay is another place where some are missing: it is judged by itself.

Fixes further away than can matter may be at any time: as of every crop (trailveil.crops), what they
tell is counted in.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trailveil.adversaries import Named
from trailveil.adversary import PATH_AWAY
from trailveil.crops import MARGIN, MARGIN_FIXES, REACH, Crop, crops, flat, starts_anywhere
from trailveil.demands import Target
from trailveil.design.splines import lag_of
from trailveil.kernels import Kernel, split
from trailveil.statespace import is_markov
from trailveil.trace import NANOSECONDS

# Seconds: the steps of a clock that recordings are held against, longest first.
_STEPS = (60, 30, 15, 10, 5, 2, 1)
# Seconds: of recordings that begin within so long before a part, or end within so long after it,
# no more need be reckoned with; of others, all that can matter.
_SHORT = 1200
# The longest lag (seconds) that is looked for, and the most steps of one kind.
_LONGEST_LAG, _MOST_STEPS = 3600.0, 30_000
# A recording of fewer fixes near its part than this has noise of its own in little time; so has one
# that is so many times sparser than its clock.
_FEW, _SPARSE = 400, 2.5
# The reach is followed to this much more than it is, so that a crop has its edges.
_BEYOND = 1.001
_MOMENTS = np.array([0.0, 1.0])
# Seconds: less than any step.
_MOMENT = 1e-3


class DesignFor(StrEnum):
    """What noise is designed for."""

    AUTO = "auto"
    """For a kind, where it has one, and that takes about as long as for the recording."""

    KIND = "kind"
    """For a kind, wherever the recording has one."""

    RECORDING = "recording"
    """For the recording alone: the least noise."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A part of a length within recordings on a clock.

    step, length: nanoseconds. offset: from the part's beginning to the first step in or after it.
    before, after: the steps before that one, and after the last that is in or before the part.
    kernel, target: what the noise is for.
    """

    step: int
    length: int
    offset: int
    before: int
    after: int
    kernel: Kernel
    target: Target

    @property
    def inside(self) -> int:
        """How many steps are in the part."""
        return (self.length - self.offset) // self.step + 1

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.before + self.inside + self.after

    @property
    def surely(self) -> float:
        """Seconds of the path next to what nobody knows that a recording must have: one fix's.

        To reckon with half a minute would take 0.5 % less noise, and many more kinds.
        """
        return self.step / NANOSECONDS - _MOMENT

    def crop(self) -> Crop:
        """The recording of fixes at every step, as far as it can matter."""
        times = np.arange(self.steps) * self.step / NANOSECONDS
        begin = self.before * self.step - self.offset
        span = begin / NANOSECONDS, (begin + self.length) / NANOSECONDS
        return crops(self.kernel, times, [span], self.target.deviation)[0]

    @property
    def name(self) -> str:
        """All that it is, in one line."""
        return repr(self)


def kind_of(
    times: NDArray[np.int64],
    begin: int,
    end: int,
    kernel: Kernel,
    target: Target,
    wanted: DesignFor,
) -> Kind | None:
    """The kind of a part from begin to end of a recording with fixes at times (n,), nanoseconds.

    None where noise must be, or had better be, designed for the recording alone.
    """
    reach = None if wanted is DesignFor.RECORDING else _reach(kernel, target)
    if reach is None:
        return None
    # MARGIN_FIXES of the longest step may be longer than MARGIN.
    far = round((reach + max(MARGIN, MARGIN_FIXES * float(_STEPS[0]))) * NANOSECONDS)
    near = times[(times >= begin - far) & (times <= end + far)]
    step = _step(near)
    if step is None:
        return None
    offset = int((near[0] - begin) % step)
    rest = (end - begin - offset) % step
    knows = Named.PATH in target.who
    # A recording that goes on beyond a gap, however long, is one of which all is reckoned with.
    ends = bool(times[0] == near[0]), bool(times[-1] == near[-1])
    before = _side(begin - near[::-1], offset, reach, step, ends=ends[0], knows=knows)
    after = _side(near - end, rest, reach, step, ends=ends[1], knows=knows)
    if before is None or after is None:
        return None
    kind = Kind(step, end - begin, offset, before, after, kernel, target)
    few = near.size < _FEW or kind.steps > _SPARSE * near.size
    too_long = kind.steps > _MOST_STEPS
    return None if too_long or (few and wanted is DesignFor.AUTO) else kind


@lru_cache(maxsize=32)
def _reach(kernel: Kernel, target: Target) -> float | None:
    """Seconds around a part within which there may be noise; None where no kind can have it."""
    whole = flat(kernel)
    if target.left is not None or not (starts_anywhere(whole) and is_markov(whole, _MOMENTS)):
        return None
    lag = lag_of(split(whole)[0], 0.0, target.deviation, _LONGEST_LAG)
    return None if lag >= _LONGEST_LAG else _BEYOND * REACH * lag


def _step(times: NDArray[np.int64]) -> int | None:
    """The longest step of a clock that shows all of these times (n,); None for none."""
    apart = int(np.gcd.reduce(np.diff(times)))
    for seconds in _STEPS:
        if apart and apart % (seconds * NANOSECONDS) == 0:
            return seconds * NANOSECONDS
    return None


def _side(
    away: NDArray[np.int64], rest: int, reach: float, step: int, *, ends: bool, knows: bool
) -> int | None:
    """The steps of one side of a part, of which fixes are so many nanoseconds away, growing.

    rest: nanoseconds from a step in or beside the part to that side of it. ends: whether there are
    no others. knows: whether somebody may know the path. None where the nearest fix that they may
    know is not recorded.
    """
    there, nearest = int(away[-1]), round(PATH_AWAY * NANOSECONDS)
    most = max(_SHORT * NANOSECONDS, nearest)
    if ends and there <= 0:  # the recording begins or ends with the part
        most = 0
    elif ends and knows and there < nearest:
        most = nearest - 1
    elif knows and not np.any((away >= nearest) & (away < nearest + step)):
        return None
    elif there > most or not ends:
        beyond = max(MARGIN, (MARGIN_FIXES + 2) * step / NANOSECONDS) + 2 * step / NANOSECONDS
        most = max(most, round((reach + beyond) * NANOSECONDS))
    return (most + rest) // step
