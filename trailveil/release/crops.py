"""The parts of a long recording that its protected parts have to do with, and few of their fixes.

What lies far from a protected part is released as it is, and tells nothing more of it than its
nearest fixes do. So noise is designed and judged on a crop of the recording, and, while it is only
sought, on few of its fixes: dense where a protected part begins and ends, ever sparser from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.designer.spaces import lag_of
from trailveil.errors import Unavailable
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Scaled,
    White,
    split,
)
from trailveil.gp.statespace import is_markov
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.priors import LEVEL_STD

Span = tuple[float, float]

# Noise fades within so many lags (in which the series moves by what is to be left) of what it is
# for; fixes are released as they are at least so many seconds, and so many of them, beyond.
REACH, MARGIN, MARGIN_FIXES = 30.0, 600.0, 60
# Fixes that are looked at while noise is sought are this far apart, in lags and as a share of the
# distance from the nearest edge, outside and within.
_SPACING, _WIDENING, _WITHIN = 0.03, 0.05, 0.025
# Full matrices: 0.2 GB each, and a design in minutes.
LARGEST_FULL_MATRIX = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Crop:
    """Rows first to last (exclusive) of a recording, for some protected parts, by number.

    prior: at the times of these rows less `start` (seconds since the first fix): they begin at 0
    where the prior allows for it.
    reach: where noise may be, in the crop's own time. edges: where the recording goes on.
    fading: whether noise must fade to nothing at either end of its reach.
    """

    first: int
    last: int
    start: float
    prior: Prior
    parts: tuple[int, ...]
    spans: tuple[Span, ...]
    reach: Span
    edges: tuple[float, ...]
    fading: tuple[bool, bool]
    lag: float

    @property
    def rows(self) -> slice:
        """The rows, of those of the recording."""
        return slice(self.first, self.last)

    def inside(self, number: int) -> FloatArray:
        """The times of the fixes within part `number`, in the crop's own time."""
        (begin, end), times = self.spans[number], self.prior.times
        return np.asarray(times[(times >= begin) & (times <= end)])

    def part_of(self, mechanism: Mechanism) -> Mechanism:
        """A mechanism for the recording, at the rows of the crop."""
        return Mechanism(
            self.prior.times,
            mechanism.factor[self.rows],
            mechanism.floor,
            mechanism.process,
            np.asarray(mechanism.released)[self.rows],
            independent=mechanism.independent_variances[self.rows],
        )

    def few(self, places: Sequence[float] = ()) -> NDArray[np.intp]:
        """The rows to look at while noise is sought, of those of the crop.

        places: more times (seconds) that matter.
        """
        times = self.prior.times
        edges = np.array([*(edge for span in self.spans for edge in span), *places])
        near = np.min(np.abs(times[:, None] - edges), axis=1)
        inside = np.zeros(times.size, dtype=np.bool_)
        for a, b in self.spans:
            inside |= (times >= a) & (times <= b)
        steps = _SPACING * self.lag + np.where(inside, _WITHIN, _WIDENING) * near
        chosen = [0, times.size - 1]
        passed = times[0]
        for row in range(times.size):
            if times[row] - passed >= steps[row]:
                chosen.append(row)
                passed = times[row]
        for edge in edges:
            at = int(np.searchsorted(times, edge))
            chosen += [at - 1, at, at + 1]
        rows = np.unique(chosen)
        return rows[(rows >= 0) & (rows < times.size)]


def crops(kernel: Kernel, times: FloatArray, spans: Sequence[Span], left: float) -> list[Crop]:
    """The crops for protected parts (start, end) of a recording at times (n,), both in seconds.

    left: the deviation that is to be left. Parts that are within the reach of each other's noise
    share a crop; where only their noises meet, each has its own, and more noise than is counted.
    A level of the prior counts as at least 100 km.
    Raises Unavailable for a prior that is not Markov and a recording too long for full matrices.
    """
    kernel = flat(kernel)
    base, _ = split(kernel)
    length = float(times[-1] - times[0])
    lag = lag_of(base, float(times[times.size // 2]), left, max(length, 1.0))
    if not is_markov(kernel, times):
        if times.size > LARGEST_FULL_MATRIX:
            raise Unavailable(
                f"a recording under a prior that is not Markov must have at most "
                f"{LARGEST_FULL_MATRIX} fixes, got {times.size}: take a Matern or integrated-ou "
                "prior, or protect a shorter recording"
            )
        order = sorted(range(len(spans)), key=lambda i: spans[i])
        return [_crop(kernel, times, [spans[i] for i in order], order, np.inf, lag)]
    reach = REACH * lag
    groups: list[list[int]] = []
    ends: list[float] = []
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        if groups and spans[i][0] - ends[-1] < reach:
            groups[-1].append(i)
            ends[-1] = max(ends[-1], spans[i][1])
        else:
            groups.append([i])
            ends.append(spans[i][1])
    return [_crop(kernel, times, [spans[i] for i in group], group, reach, lag) for group in groups]


def starts_anywhere(kernel: Kernel) -> bool:
    """Whether a crop may begin at 0: the prior is the same there, or else knows more than it did.

    An integrated series is 0 at its origin, so only with a level does it not know where that is.
    """
    terms = [term.kernel if isinstance(term, Scaled) else term for term in kernel.terms()]
    stationary = (Matern12, Matern32, Matern52, White, Constant)
    level = split(kernel)[1] > 0
    return all(
        isinstance(term, stationary) or (level and isinstance(term, IntegratedOU)) for term in terms
    )


def flat(kernel: Kernel) -> Kernel:
    """The prior with its level, if it has one, at least as uncertain as where nobody has an idea.

    What is lost is counted against an adversary with no idea of the level, whatever is stated.
    """
    level = split(kernel)[1]
    missing = LEVEL_STD**2 - level
    return kernel + Constant(float(np.sqrt(missing))) if level > 0 and missing > 0 else kernel


def _crop(
    kernel: Kernel,
    times: FloatArray,
    spans: Sequence[Span],
    parts: Sequence[int],
    reach: float,
    lag: float,
) -> Crop:
    begin, end = min(a for a, _ in spans) - reach, max(b for _, b in spans) + reach
    first = int(np.searchsorted(times, begin - MARGIN))
    last = int(np.searchsorted(times, end + MARGIN, side="right"))
    first = max(0, min(first, int(np.searchsorted(times, begin)) - MARGIN_FIXES))
    last = min(times.size, max(last, int(np.searchsorted(times, end)) + MARGIN_FIXES))
    own = times[first:last]
    start = float(own[0]) if starts_anywhere(kernel) else 0.0
    fading = (bool(begin > times[0]), bool(end < times[-1]))
    edges = [float(own[0]) - start] * (first > 0) + [float(own[-1]) - start] * (last < times.size)
    return Crop(
        first,
        last,
        start,
        Prior(kernel, own - start),
        tuple(parts),
        tuple((a - start, b - start) for a, b in spans),
        (max(begin, float(own[0])) - start, min(end, float(own[-1])) - start),
        tuple(edges),
        fading,
        lag,
    )
