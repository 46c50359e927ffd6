"""A prior from windows of motion: each fitted on its own, or all with shared parameters."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from trailveil.datasets.stretches import Stretches
from trailveil.datasets.workers import Watch, mapped, unwatched
from trailveil.fit import FAMILIES, Family, Fit, Series, fit
from trailveil.kernels import Constant
from trailveil.priors import LEVEL_STD, FittedOn, PriorSpec

How = Literal["median", "pooled"]

LEAST_NOISE: Final = 1.0
"""Metres. Receivers that smooth their track leave less noise between fixes than is in them: on
held-out GeoLife drives, 1 to 2 m predict positions better than the 0.1 m of the likelihood."""


@dataclass(frozen=True, slots=True)
class _Window:
    """One window to fit."""

    series: Series
    family: Family
    starts: int


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A prior, and the fits it is made of: one for each window, or the one of all together."""

    spec: PriorSpec
    fits: tuple[Fit, ...]


def motion_family(kernel: str = "integrated-ou") -> Family:
    """A family of FAMILIES for traces in metres and seconds, its noise LEAST_NOISE at least."""
    return FAMILIES[kernel].set(noise_std=(LEAST_NOISE, 2.0 * LEAST_NOISE, 1000.0))


def fit_prior(
    windows: Stretches,
    name: str,
    *,
    kernel: str = "integrated-ou",
    how: How = "median",
    starts: int = 6,
    watch: Watch = unwatched,
    workers: int | None = None,
) -> Fitted:
    """A prior for traces in metres, with a level of LEVEL_STD.

    how: "median" fits each window and takes the median of each parameter over the windows, so that
    a few wild ones count for little; "pooled" maximises the likelihood of all with one set of
    parameters. name: what the prior is called.
    """
    family = motion_family(kernel)
    fits: Sequence[Fit]
    if how == "pooled":
        fits = [fit(windows.series, family, level_std=LEVEL_STD, starts=starts)]
        values = np.array(fits[0].values)
        errors = np.nan_to_num(np.array(fits[0].standard_errors))
        spread = np.stack([values - errors, values, values + errors])
    else:
        tasks = [_Window(series, family, starts) for series in windows.series]
        fits = mapped(_fitted, tasks, label="Fitting", watch=watch, workers=workers)
        spread = np.percentile([one.values for one in fits], [25, 50, 75], axis=0)
    names = [parameter.name for parameter in family.parameters]
    low, middle, high = ([_rounded(value) for value in row] for row in spread.tolist())
    basis = FittedOn(
        files=len(set(windows.sources)),
        windows=len(windows.series),
        fixes=windows.fixes,
        seconds=windows.seconds,
        how=how,
        spread={n: (a, b, c) for n, a, b, c in zip(names, low, middle, high, strict=True)},
        at_bounds=dict(Counter(name for one in fits for name in one.at_bounds)),
        unfinished=sum(not one.converged for one in fits),
    )
    found = family.build(middle) + Constant(LEVEL_STD)
    return Fitted(PriorSpec(name, found, "metres", basis), tuple(fits))


def _rounded(value: float) -> float:
    """Four digits: all that data can tell, and the same on every machine."""
    return float(f"{value:.4g}")


def _fitted(window: _Window) -> Fit:
    return fit(window.series, window.family, level_std=LEVEL_STD, starts=window.starts)
