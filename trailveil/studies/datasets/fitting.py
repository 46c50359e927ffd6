"""A prior from windows of motion: each fitted on its own, or all with shared parameters."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant
from trailveil.privacy.priors import LEVEL_STD, FittedOn, PriorSpec
from trailveil.studies.datasets.stretches import Stretches
from trailveil.studies.datasets.workers import Watch, mapped, unwatched
from trailveil.studies.fit import FAMILIES, Family, Fit, FitSeries, fit

How = Literal["median", "pooled"]

LEAST_NOISE: Final = 1.0
"""Metres. Receivers that smooth their track leave less noise between fixes than is in them: on
held-out GeoLife drives, 1 to 2 m predict positions better than the 0.1 m of the likelihood."""


# Where readings lie is left open: the level is so many times as uncertain as they vary.
_LEVEL = 1000.0


@dataclass(frozen=True, slots=True)
class _Window:
    """One window to fit."""

    series: FitSeries
    family: Family
    starts: int
    level_std: float


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A prior, and the fits it is made of: one for each window, or the one of all together."""

    spec: PriorSpec
    fits: tuple[Fit, ...]


def motion_family(kernel: str = "integrated-ou") -> Family:
    """A family of FAMILIES for traces in metres and seconds, its noise LEAST_NOISE at least."""
    return FAMILIES[kernel].set(noise_std=(LEAST_NOISE, 2.0 * LEAST_NOISE, 1000.0))


@dataclass(frozen=True, slots=True)
class Scale:
    """What values are measured in: their unit, the families to fit, and the level of the prior."""

    unit: str
    family: Callable[[str], Family]
    level_std: float


METRES = Scale("metres", motion_family, LEVEL_STD)
"""Of traces."""


def scale_of(windows: Stretches, unit: str) -> Scale:
    """The scale of readings: ranges suit how far apart in value and time they are.

    Raises InvalidValue for readings that are all the same.
    """
    spread = float(np.median([np.std(series.values) for series in windows.series]))
    step = float(np.median([np.median(np.diff(series.times)) for series in windows.series]))
    length = float(max(series.times[-1] for series in windows.series))
    if not spread > 0:
        raise InvalidValue("readings must vary for a fit, got some that are all the same")

    def family(kernel: str) -> Family:
        family_set = FAMILIES[kernel].set(noise_std=(1e-3 * spread, 0.1 * spread, spread))
        if kernel == "integrated-ou":
            ranges = {"std": (1e-4 * spread / step, 0.1 * spread / step, 100 * spread / step)}
            return family_set.set(time_constant=(step / 2, 5 * step, length), **ranges)
        family_set = family_set.set(std=(1e-2 * spread, spread, 100 * spread))
        if kernel == "periodic":
            longest = max(length / 2, 4 * step)  # what comes once in a window is no period
            day = min(max(86_400.0, 4 * step), longest)
            return family_set.set(period=(4 * step, day, longest))
        return family_set.set(length_scale=(step / 2, 5 * step, length))

    return Scale(unit, family, _rounded(_LEVEL * spread))


def fit_prior(
    windows: Stretches,
    name: str,
    *,
    kernel: str = "integrated-ou",
    how: How = "median",
    starts: int = 6,
    scale: Scale = METRES,
    watch: Watch = unwatched,
    workers: int | None = None,
) -> Fitted:
    """A prior for traces in metres, or readings in the unit of `scale`, with a level of its own.

    how: "median" fits each window and takes the median of each parameter over the windows, so that
    a few wild ones count for little; "pooled" maximises the likelihood of all with one set of
    parameters. name: what the prior is called.
    """
    family, level = scale.family(kernel), scale.level_std
    fits: Sequence[Fit]
    if how == "pooled":
        fits = [fit(windows.series, family, level_std=level, starts=starts)]
        values = np.array(fits[0].values)
        errors = np.nan_to_num(np.array(fits[0].standard_errors))
        spread = np.stack([values - errors, values, values + errors])
    else:
        tasks = [_Window(series, family, starts, level) for series in windows.series]
        fits = mapped(_fitted, tasks, label="Fitting", watch=watch, workers=workers)
        spread = np.percentile([fit.values for fit in fits], [25, 50, 75], axis=0)
    names = [parameter.name for parameter in family.parameters]
    low, middle, high = ([_rounded(value) for value in row] for row in spread.tolist())
    basis = FittedOn(
        files=len(set(windows.sources)),
        windows=len(windows.series),
        fixes=windows.fixes,
        seconds=windows.seconds,
        how=how,
        spread={n: (a, b, c) for n, a, b, c in zip(names, low, middle, high, strict=True)},
        at_bounds=dict(Counter(name for fit in fits for name in fit.at_bounds)),
        unfinished=sum(not fit.converged for fit in fits),
    )
    prior = family.build(middle) + Constant(level)
    return Fitted(PriorSpec(name, prior, scale.unit, basis), tuple(fits))


def _rounded(value: float) -> float:
    """Four digits: all that data can tell, and the same on every machine."""
    return float(f"{value:.4g}")


def _fitted(window: _Window) -> Fit:
    return fit(window.series, window.family, level_std=window.level_std, starts=window.starts)


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
