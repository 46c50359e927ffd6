"""Curves over time and over what is asked for: posteriors, noise, readings, prices."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.attacks.posterior import posterior_over_time
from trailveil.errors import InvalidValue, TrailveilError, check_kind, check_number
from trailveil.gp.gaussian import FloatArray
from trailveil.plots.drawing import (
    CIRCLE,
    GRID,
    INK,
    NOISE,
    RECORDED,
    RELEASED,
    dressed,
    legend,
    new_figure,
    on,
)
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Times at which a posterior is drawn at most, and points of a line.
_TIMES, _POINTS = 200, 1500
# Of several curves, told apart by dashes as well.
_COLOURS = (NOISE, RELEASED, RECORDED, CIRCLE)
# Units of time: seconds, and from so many of them on.
_UNITS = (("days", 86400.0, 3.0), ("hours", 3600.0, 3.0), ("minutes", 60.0, 2.0), ("s", 1.0, 0.0))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Series:
    """Readings over time.

    seconds: (m,) of the released values (m,). recorded: times (n,) and true values (n,), or None.
    spans: protected, seconds. guesses: (time, value, half of an interval), what is left at
    protected times. size: half of an interval that stands beside, or None.
    """

    seconds: FloatArray
    values: FloatArray
    recorded: tuple[FloatArray, FloatArray] | None = None
    spans: Sequence[tuple[float, float]] = ()
    guesses: Sequence[tuple[float, float, float]] = ()
    size: float | None = None


def posterior(
    prior: Prior,
    mechanism: Mechanism,
    released: FloatArray,
    *,
    truth: FloatArray | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """What somebody who knows the prior and the noise thinks at each time; returns the axes.

    The mean, and one standard deviation either way, of one coordinate. released: (m,) values of the
    released rows. truth: (n,) the recorded ones, which makes the picture a private one.
    Raises InvalidValue where the shapes do not fit.
    """
    check_kind("prior", prior, Prior)
    check_kind("mechanism", mechanism, Mechanism, "the first of what tv.design returns")
    if truth is not None and np.shape(truth) != prior.times.shape:
        raise InvalidValue(f"truth must have {prior.times.size} values, got {np.shape(truth)}")
    at = prior.times[np.unique(np.linspace(0, prior.times.size - 1, _TIMES).round().astype(int))]
    mean, deviation = posterior_over_time(prior, mechanism, released, at)
    axes = on(ax)
    name, unit = _unit(float(np.ptp(prior.times)))
    axes.fill_between(
        at / unit,
        mean - deviation,
        mean + deviation,
        color=CIRCLE,
        alpha=0.2,
        linewidth=0,
        label="within one deviation",
    )
    axes.plot(at / unit, mean, color=CIRCLE, linewidth=1.2, label="best guess")
    few = _few(mechanism.rows.size)
    values = np.asarray(released, dtype=np.float64)[few]
    when = mechanism.times[mechanism.rows[few]] / unit
    axes.plot(when, values, ".", color=RELEASED, markersize=2.5, label="released")
    if truth is not None:
        axes.plot(prior.times / unit, truth, "--", color=RECORDED, linewidth=1.1, label="recorded")
    dressed(axes, name, "value")
    legend(axes)
    return axes


def trade_off(
    designed: Callable[[float], Mechanism] | Mapping[str, Callable[[float], Mechanism]],
    asked: Sequence[float],
    *,
    label: str = "epsilon",
    unit: str = "m",
    squared: bool = False,
    ax: "Axes | None" = None,
) -> "Axes":
    """What it costs to ask for more: how far the noise moves each value, against what is asked for.

    designed: the noise for one of the values of `asked` (an epsilon, metres to be left with), such
    as a call of `tv.design`; or several such functions by name, which a legend tells apart. label:
    what is asked for. squared: the mean squared error in place of its root. Returns the axes,
    logarithmic. A point that has no design is left out, with a UserWarning that says which. Raises
    InvalidValue where no point has one, for fewer than two values, or ones that are not positive.
    """
    check_kind("asked", asked, Iterable, "two values or more")
    for number in asked:
        check_number("each of asked", number)
    values = np.sort(np.asarray(asked, dtype=np.float64))
    if values.size < 2 or not np.all((values > 0) & np.isfinite(values)):
        raise InvalidValue(f"asked must be two or more positive numbers, got {list(asked)}")
    several = designed if isinstance(designed, Mapping) else {"": designed}
    curves: dict[str, list[float]] = {name: [] for name in several}
    for name, design in several.items():
        for value in values:
            curves[name].append(_rms(design, float(value), name, label) ** (2 if squared else 1))
    if not np.isfinite(list(curves.values())).any():
        raise InvalidValue(f"asked must have a value with a design, got none in {list(asked)}")
    axes = on(ax)
    looks = cycle(zip(_COLOURS, ("-", "--", ":", "-."), strict=True))
    for (name, moved), (colour, dashes) in zip(curves.items(), looks, strict=False):
        (line,) = axes.plot(values, moved, dashes, color=colour, marker="o", label=name or None)
        line.set(markersize=3, linewidth=1.2)
    _logarithmic(axes)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    measure = f"mean squared error ({unit}\u00b2)" if squared else f"noise, rms ({unit})"
    dressed(axes, label, measure if unit else measure.partition(" (")[0])
    if any(several):
        legend(axes)
    return axes


def _rms(design: Callable[[float], Mechanism], value: float, name: str, label: str) -> float:
    """How far the noise for a value moves each value of the series; NaN where there is none."""
    if not callable(design):
        raise InvalidValue(f"designed must be a function, got {type(design).__name__}")
    try:
        noise = design(value)
    except TrailveilError as error:
        point = f"{name + ' at ' if name else ''}{label} {value:g}"
        warnings.warn(f"{point} is left out: {error}", UserWarning, stacklevel=3)
        return math.nan
    check_kind("what is designed", noise, Mechanism, "take the first of what tv.design returns")
    return noise.rms


def noise_figure(
    seconds: FloatArray, spread: FloatArray, spans: Sequence[tuple[float, float]], unit: str
) -> "Figure":
    """The standard deviation of the noise (n,) over time (n,), NaN where nothing is released.

    spans: what is protected, (start, end) in seconds. A private picture: it tells when.
    """
    figure = new_figure(3.5, 1.9)
    axes = figure.add_subplot()
    name, scale = _unit(float(np.ptp(seconds)))
    _shade(axes, spans, scale)
    rows = _largest(spread)
    axes.plot(seconds[rows] / scale, spread[rows], color=NOISE, linewidth=1.2, label="noise")
    axes.set_ylim(bottom=0)
    dressed(axes, f"{name} since the first one", f"moved by{f' ({unit})' if unit else ''}")
    if spans:
        legend(axes)
    return figure


def series_figure(shown: Series) -> "Figure":
    """Readings over time, in their own unit."""
    figure = new_figure(3.5, 2.5)
    axes = figure.add_subplot()
    length = max(float(np.ptp(shown.seconds)), *(b for _, b in shown.spans), 1.0)
    name, scale = _unit(length)
    _shade(axes, shown.spans, scale)
    if shown.recorded is not None:
        times, values = shown.recorded
        rows = _few(times.size)
        axes.plot(
            times[rows] / scale, values[rows], "--", color=RECORDED, linewidth=1.1, label="recorded"
        )
    rows = _few(shown.seconds.size)
    axes.plot(
        shown.seconds[rows] / scale,
        shown.values[rows],
        color=RELEASED,
        linewidth=1.1,
        label="released",
    )
    guesses = [(at / scale, value, half) for at, value, half in shown.guesses]
    if shown.size is not None:
        middle = (float(np.min(shown.values)) + float(np.max(shown.values))) / 2
        guesses.append((1.06 * length / scale, middle, shown.size))
    for number, (at, value, half) in enumerate(guesses):
        axes.errorbar(
            at,
            value,
            half,
            color=CIRCLE,
            capsize=3,
            linewidth=1.2,
            label="_" if number else "size of what is left" if shown.size else "guess",
        )
    dressed(axes, f"{name} since the first one", "value")
    legend(axes)
    return figure


def chances_figure(right: float) -> "Figure":
    """How often the best guess between two places is right, beside a coin: of 100 times."""
    figure = new_figure(3.5, 0.95)
    axes = figure.add_subplot()
    axes.barh([1.0], [right], color=CIRCLE, height=0.5)
    axes.barh([0.0], [50.0], color=GRID, height=0.5)
    axes.set_yticks([0.0, 1.0], ["a tossed coin", "the best guess"])
    axes.set_xlim(0, 100)
    axes.set_xticks([0, 50, 100])
    dressed(axes, "", "").tick_params(left=False)
    axes.tick_params(axis="y", labelcolor=INK)
    for at, value in ((1.0, right), (0.0, 50.0)):
        axes.annotate(
            f"{value:.0f}",
            (value, at),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
            color=INK,
        )
    return figure


def _logarithmic(axes: "Axes") -> None:
    """Both axes logarithmic, with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _shade(axes: "Axes", spans: Sequence[tuple[float, float]], scale: float) -> None:
    for number, (begin, end) in enumerate(spans):
        label = "_" if number else "protected"
        axes.axvspan(begin / scale, end / scale, color=CIRCLE, alpha=0.15, linewidth=0, label=label)
        axes.axvline((begin + end) / 2 / scale, color=CIRCLE, linewidth=0.8, alpha=0.6)


def _few(count: int) -> NDArray[np.intp]:
    """Of so many rows, evenly chosen ones; first and last are kept."""
    indices = np.linspace(0, count - 1, min(count, _POINTS)).round().astype(np.intp)
    return np.asarray(np.unique(indices))


def _largest(values: FloatArray) -> NDArray[np.intp]:
    """Of so many rows, evenly chosen stretches, and in each the row of the largest value."""
    edges = np.unique(np.linspace(0, values.size, _POINTS + 1).round().astype(np.intp))
    sizes = np.where(np.isnan(values), -np.inf, values)
    return np.array([a + np.argmax(sizes[a:b]) for a, b in pairwise(edges)], dtype=np.intp)


def _unit(length: float) -> tuple[str, float]:
    """The unit of time for so many seconds, and how many seconds it has."""
    return next((name, size) for name, size, least in _UNITS if length >= least * size)


# Rows of a heat map at most: more are no pixels.
_MOST = 400


def covariance(
    mechanism: Mechanism,
    *,
    samples: int = 3,
    generator: np.random.Generator | None = None,
    ax: "tuple[Axes, Axes] | None" = None,
) -> "tuple[Axes, Axes]":
    """The covariance of the noise over the released rows as a heat map, above draws from it.

    The draws are of the picture alone, and are never those of a release. generator: of the draws;
    None for fresh ones. ax: for the map and for the draws. Of many rows about 400 are shown, evenly
    chosen. Returns both axes. Raises InvalidValue where nothing is released.
    """
    check_kind("mechanism", mechanism, Mechanism, "the first of what tv.design returns")
    rows = mechanism.rows
    if not rows.size:
        raise InvalidValue("a mechanism must release something to be drawn, got no row")
    rows = rows[:: max(1, -(-rows.size // _MOST))]
    few = np.zeros(mechanism.times.size, bool)
    few[rows] = True
    gamma = mechanism.withholding(~few).covariance()
    upper, lower = ax or _two()
    times = mechanism.times[rows]
    top = float(np.max(np.abs(gamma))) or 1.0
    box = (float(times[0]), float(times[-1]), float(times[-1]), float(times[0]))
    shown = upper.imshow(gamma / top, cmap="RdBu_r", vmin=-1, vmax=1, extent=box, aspect="auto")
    bar = upper.figure.colorbar(shown, ax=upper, aspect=12)
    bar.set_label(f"covariance / {top:.3g}")
    draws = _draws(gamma, samples, generator or np.random.default_rng())
    for draw, dashes in zip(draws, ("-", "--", ":", "-.") * (samples // 4 + 1), strict=False):
        lower.plot(times, draw, dashes, color=NOISE, linewidth=1)
    dressed(upper, "", "seconds")
    dressed(lower, "seconds", "noise")
    return upper, lower


def _draws(gamma: FloatArray, count: int, generator: np.random.Generator) -> FloatArray:
    """Draws (count, n) from N(0, Gamma), by its eigenvectors: Gamma may be of any rank."""
    values, vectors = np.linalg.eigh(gamma)
    root = vectors * np.sqrt(np.where(values > 0, values, 0.0))
    return np.asarray((root @ generator.standard_normal((values.size, count))).T)


def _two() -> "tuple[Axes, Axes]":
    figure = new_figure(3.5, 4.4)
    upper, lower = figure.subplots(2, 1, height_ratios=[1.4, 1.0])
    return upper, lower
