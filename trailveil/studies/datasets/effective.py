"""Effective length scales: a kernel's length scale over the sampling period, of many series."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.studies.fit import Fit, FitSeries, fit
from trailveil.studies.fit.families import Family


@dataclass(frozen=True, slots=True)
class LengthScaleTask:
    """A series, the family to fit to it, from how many starts, and its sampling period."""

    series: FitSeries
    family: Family
    starts: int
    period: float


@dataclass(frozen=True, slots=True, eq=False)
class EffectiveScales:
    """What many fits of a length scale gave.

    values: (k,) length scale over sampling period, in the order of the series. at_low, at_high:
    fits that ended at a bound of the length scale. several: fits whose starts ended in optima that
    differ by more than trailveil.studies.fit.search.AGREEMENT nats. unfinished: fits that did not
    converge. rejected: starts given up because their likelihood could not be computed.
    """

    values: FloatArray
    at_low: int
    at_high: int
    several: int
    unfinished: int
    rejected: int

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The quartiles of the values, by linear interpolation."""
        low, middle, high = np.percentile(self.values, [25, 50, 75]).tolist()
        return low, middle, high

    @property
    def at_bound(self) -> float:
        """The share of fits at a bound."""
        return (self.at_low + self.at_high) / len(self.values)


def fitted(task: LengthScaleTask) -> Fit:
    """The fit of a task, as a function that can be sent to another process."""
    return fit(task.series, task.family, starts=task.starts)


def collected(tasks: Sequence[LengthScaleTask], fits: Sequence[Fit]) -> EffectiveScales:
    """Length scales over periods, and how the fits went. At least one task."""
    lengths = np.array([fit["length_scale"] for fit in fits])
    held = [pair for pair in zip(tasks, fits, strict=True) if "length_scale" in pair[1].at_bounds]
    ranges = [(scale["length_scale"], task.family["length_scale"]) for task, scale in held]
    high = sum(length > (bound.low * bound.high) ** 0.5 for length, bound in ranges)
    return EffectiveScales(
        values=lengths / np.array([task.period for task in tasks]),
        at_low=len(held) - high,
        at_high=high,
        several=sum(fit.agreeing + fit.rejected < fit.starts for fit in fits),
        unfinished=sum(not fit.converged for fit in fits),
        rejected=sum(fit.rejected for fit in fits),
    )
