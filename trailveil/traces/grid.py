"""The grid that recorded numbers lie on, found from the numbers alone.

Instruments and files round: positions to decimal degrees, minutes, seconds, semicircles or single
precision, readings to tenths of a unit. What is rounded is exact, and exact structure beside noise
of low rank can be solved for (docs/paper.md, "A grid under the noise"). So noise must be at least
as wide as the grid, and what is released must not be finer than it.

Positions in whole metres of a conformal map (UTM, Lambert, Gauss and Krueger, a national grid) lie
on no grid of degrees. But the ways between fixes that are near each other are whole steps of one
square grid, turned by the convergence of the map (trailveil.traces.map_grid).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.traces.map_grid import projected_step

MICRO = 1_000_000
METRES_A_DEGREE = 111_700.0
"""At least as long as a degree of latitude or longitude anywhere on WGS84."""

LEAST = 0.3
"""Metres: independent noise is never narrower, whatever the grid is."""

# How near a grid line a number must be, in steps: a grid may have been printed with other digits.
_NEAR = 0.05
# The chance that numbers without a grid look as if they had one (four decimal digits that are 0).
_CHANCE = 1.001e-4
# Numbers this close are one. Where too few numbers tell, positions are taken to have as many
# decimals as they have, but at least so many: a place may have a round coordinate by chance.
_SAME, _ASSUMED = 1e-10, 2
# A grid of any step is looked for in so many distinct numbers, or where each comes so often.
_ENOUGH, _REPEATED = 20, 4
# Numbers times steps that are looked at at once, so that they stay in the cache.
_TOGETHER = 2**14
# Cells beyond which a step is one of how numbers are stored.
_MOST_CELLS = 1e7
# The steps that positions are rounded to, in degrees, and how likely chance is near a line of one.
_FAMILIES = [
    *((1 / unit * 10.0**-power, 0.1) for unit in (1, 60, 3600) for power in range(1, 8)),
    *((1 / unit, 0.1) for unit in (60, 3600)),
    *((180.0 * 2.0**-power, 0.5) for power in range(20, 32)),
    *((2.0**-power, 0.5) for power in range(7, 25)),
]
# Distinct places on a coarser grid, at least, that may solve for noise. The chance of one test: of
# three for each of some 50 steps, so that a false alarm is below 1e-6. Degrees: no grid is finer.
_SOLVES, _FALSE_ALARM, _FINEST = 5, 5e-9, 1e-7
# Recorded steps that a fix may be off a line of the coarser grid: fewer than half, so that one
# point of the recorded grid at most is near each line.
_AROUND = 0.49


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of recorded numbers.

    step: in their unit; 0 where none was found. micro: released numbers are whole multiples of so
    many millionths of the unit, which is no finer than the step.
    """

    step: float
    micro: int

    @property
    def metres(self) -> float:
        """The step in metres, of positions in degrees: along a meridian, the longer way."""
        return self.step * METRES_A_DEGREE

    @property
    def released_step(self) -> float:
        """What released numbers are whole multiples of, in their unit."""
        return self.micro / MICRO

    def rounded(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whole millionths of the unit, to the released grid: floor(x + 1/2) of its steps."""
        return (values + self.micro // 2) // self.micro * self.micro

    def rounded_places(self, degrees: NDArray[np.int64]) -> NDArray[np.int64]:
        """Latitudes and longitudes (n, 2) in microdegrees, likewise; they stay on the globe."""
        places = self.rounded(degrees)
        places[:, 0] = np.clip(places[:, 0], -90 * MICRO, 90 * MICRO)
        places[:, 1] = (places[:, 1] + 180 * MICRO) % (360 * MICRO) - 180 * MICRO
        return places


@dataclass(frozen=True, slots=True, eq=False)
class CoarseSubset:
    """Fixes that lie on a coarser grid than the others.

    step: of that grid, in degrees; 0 where there are none. fixes: (n,), which they are.
    """

    step: float
    fixes: NDArray[np.bool_]

    @property
    def metres(self) -> float:
        """The step in metres, as of `Grid`."""
        return self.step * METRES_A_DEGREE

    @property
    def count(self) -> int:
        """How many fixes there are."""
        return int(np.sum(self.fixes))


def position_grid(positions: FloatArray) -> Grid:
    """The grid of positions (n, 2) in degrees: the coarser of latitudes and longitudes.

    Looked for: decimals of degrees, minutes and seconds, semicircles (180 / 2^31 degrees, as FIT
    has them) and single precision; and metres of a map, see `trailveil.traces.map_grid`.
    """
    grid = _grid_of([positions[:, 0], positions[:, 1]], _FAMILIES, readings=False)
    metres = projected_step(positions)
    if metres <= grid.metres:
        return grid
    return Grid(metres / METRES_A_DEGREE, _decimal(metres / METRES_A_DEGREE))


def coarse_subset(positions: FloatArray, grid: Grid) -> CoarseSubset:
    """Find the coarsest grid on which more of positions (n, 2) lie than by chance, in O(n).

    grid: that of all of them. Either coordinate counts, or both. A position on a grid of step g
    lies on one of step s by chance with probability g / s a coordinate. The number of distinct
    points of the coarser grid is below a Poisson number of that mean (Hoeffding 1956, Ann. Math.
    Stat. 27). A false alarm is rarer than 1e-6 where fixes are independent modulo the steps.
    """
    finest = max(grid.step, _FINEST)
    cells = np.floor(positions / finest + 0.5)
    finer = np.full(positions.shape, finest)
    subset = CoarseSubset(0.0, np.zeros(len(positions), dtype=np.bool_))
    # Both coordinates come first: what they explain is no news of either.
    views = [np.array(axes) for axes in ([0, 1], [0], [1])]
    distinct = [np.unique(_codes(cells[:, axes]), return_index=True)[1] for axes in views]
    pairs = list(zip(views, distinct, strict=True))
    steps = [step for step, _ in sorted(_FAMILIES) if step > finest * (1 + _NEAR)]
    fewest = np.array(
        [[rows.size * (finest / step) ** axes.size for step in steps] for axes, rows in pairs]
    )
    # Five deviations above the mean are still likelier than a false alarm may be.
    least = np.maximum(_SOLVES, fewest + 5 * np.sqrt(fewest))
    likely = np.any(_on_lines(positions, steps, _AROUND * finest) >= least, axis=0)
    for step in (steps[number] for number in np.flatnonzero(likely)):
        lines = np.floor(positions / step + 0.5)
        near = np.abs(positions - lines * step) <= _AROUND * finest
        # What lies on a grid that was noticed lies on coarser ones more often by chance.
        for axes, rows in pairs:
            on = near[:, axes[0]] & near[:, axes[-1]]
            chances = np.minimum(1.0, finer[np.ix_(rows, axes)] / step)
            expected = float(np.sum(np.prod(chances, axis=1)))
            if _no_chance(lines[on][:, axes], expected):
                finer[np.ix_(on, axes)] = step
                subset = CoarseSubset(step, on)
    return subset


def _on_lines(positions: FloatArray, steps: Sequence[float], around: float) -> NDArray[np.intp]:
    """How many positions (n, 2) are so near lines of each step: in both coordinates, and in each.

    (3, s); a few steps at a time.
    """
    counts = [np.zeros((3, 0), dtype=np.intp)]
    together = max(1, _TOGETHER // max(1, positions.size))
    for first in range(0, len(steps), together):
        some = np.array(steps[first : first + together])[:, None, None]
        near = np.abs(positions.T - np.floor(positions.T / some + 0.5) * some) <= around
        all_three = [near[:, 0] & near[:, 1], near[:, 0], near[:, 1]]
        counts.append(np.array([np.count_nonzero(on, axis=1) for on in all_three]))
    return np.hstack(counts)


def _codes(lines: FloatArray) -> NDArray[np.int64]:
    """A whole number for each row of numbers of grid lines (n, 1 or 2), below 2^31 each."""
    whole = lines.astype(np.int64)
    return np.asarray(whole[:, 0] * 2**32 + whole[:, -1])


def _no_chance(points: FloatArray, expected: float) -> bool:
    """Whether there are so many distinct grid points (k, 1 or 2) that it is no chance."""
    least = max(_SOLVES, expected + 1)
    if len(points) < least:
        return False
    count = len(np.unique(_codes(points)))
    from scipy.special import pdtrc  # heavy, and only needed for noise

    return bool(count >= least and pdtrc(count - 1, expected) <= _FALSE_ALARM)


def reading_grid(values: FloatArray) -> Grid:
    """The grid of readings (n,): decimals, halves and fifths of them, and powers of a half.

    Where none of these is found, a step of any size that all numbers are whole multiples apart.
    """
    families = [(10.0**-power, 0.1) for power in range(-3, 7)]
    families += [(5 * 10.0**-power, 0.2) for power in range(-2, 7)]
    families += [(2 * 10.0**-power, 0.5) for power in range(-2, 7)]
    families += [(2.0**-power, 0.5) for power in range(1, 13)]
    return _grid_of([values], families, readings=True)


def _grid_of(
    axes: Sequence[FloatArray], families: Sequence[tuple[float, float]], *, readings: bool
) -> Grid:
    """The coarsest grid of any axis, or of all of them together.

    readings: that come again and again lie on a grid; positions do so where somebody stands still.
    """
    ordered = sorted(families, reverse=True)
    distinct = [_distinct(axis) for axis in axes]
    step = _step(distinct, ordered)
    even = 0.0
    for values, axis in zip(distinct, axes, strict=True):
        repeated = readings and values.size > 2 and axis.size >= _REPEATED * values.size
        if values.size >= _ENOUGH or repeated:
            even = max(even, _even_step(values))
    if even > step * (1 + _NEAR):
        whole = np.concatenate(distinct) / even
        aligned = np.all(np.abs(whole - np.floor(whole + 0.5)) <= _NEAR)
        return Grid(even, _released(even) if aligned else _decimal(even))
    if step == 0.0 and max(values.size for values in distinct) < _ENOUGH:
        step = _assumed(np.concatenate(distinct), 0 if readings else _ASSUMED)
    return Grid(step, _released(step))


def _distinct(values: FloatArray) -> FloatArray:
    ordered = np.unique(values)
    return ordered[np.concatenate([[True], np.diff(ordered) > _SAME])] if ordered.size else ordered


def _step(axes: Sequence[FloatArray], families: Sequence[tuple[float, float]]) -> float:
    """The coarsest step on whose whole multiples most numbers lie, of one axis or all; 0 for none.

    axes: numbers in order. families: steps, the coarsest first, and how likely chance is near one.
    """
    near = np.array([_near_lines(values, [step for step, _ in families]) for values in axes])
    # Most steps have fewer near them than any chance asks for.
    sizes = np.array([[values.size] for values in axes])
    likely = np.any(near / np.maximum(sizes, 1) >= 0.5, axis=0)
    for number in np.flatnonzero(likely).tolist():
        step, chance = families[number]
        pairs = list(zip(axes, near[:, number].tolist(), strict=True))
        if any(_is_on(some, step, chance) for some in (pairs, *([pair] for pair in pairs))):
            return step
    return 0.0


def _near_lines(values: FloatArray, steps: Sequence[float]) -> list[int]:
    """How many numbers are near a whole multiple of each step; a few steps at a time."""
    counts: list[int] = []
    together = max(1, _TOGETHER // max(1, values.size))
    for first in range(0, len(steps), together):
        some = np.array(steps[first : first + together])[:, None]
        away = np.abs(values - np.floor(values / some + 0.5) * some)
        counts += np.count_nonzero(away <= _NEAR * some, axis=1).tolist()
    return counts


def _is_on(axes: Sequence[tuple[FloatArray, int]], step: float, chance: float) -> bool:
    """Whether so many of the numbers of some axes are near a step that it is no chance.

    What counts as evidence is how many cells of that size there are numbers in, not how many
    numbers: those of one cell say the same.
    """
    share = sum(near for _, near in axes) / max(1, sum(values.size for values, _ in axes))
    if share < (1 + chance) / 2:
        return False
    cells = [np.floor(values / step + 0.5) for values, _ in axes]
    tried = sum(1 + int(np.sum(np.diff(cell) > 0)) for cell in cells)
    from scipy.special import bdtrc

    return chance**tried <= _CHANCE and bool(
        bdtrc(int(share * tried) - 1, tried, chance) <= _CHANCE
    )


def _even_step(values: FloatArray) -> float:
    """The step that all distinct values are whole multiples apart, whatever it is; 0 for none."""
    away = values - values[0]
    step = float(np.min(np.diff(values)))
    cells = np.floor(away / step + 0.5)
    step = float(cells @ away / (cells @ cells))
    cells = np.floor(away / step + 0.5)
    lies = np.abs(away - cells * step) <= _NEAR * step
    return step if np.all(lies) and cells[-1] < _MOST_CELLS else 0.0


def _assumed(values: FloatArray, least: int) -> float:
    """For numbers too few to tell: the decimals that they have, of at least so many; 0 for many."""
    for power in range(least, 8):
        scaled = values * 10.0**power
        if np.all(np.abs(scaled - np.floor(scaled + 0.5)) <= _NEAR):
            return float(10.0**-power)
    return 0.0


def _released(step: float) -> int:
    """Millionths that are the step, or, where it is no whole number of them, the next decimals."""
    exact = step * MICRO
    whole = round(exact)
    return whole if whole >= 1 and abs(exact - whole) <= 1e-6 * exact else _decimal(step)


def _decimal(step: float) -> int:
    """The least power of ten in millionths that is no finer than a step."""
    exact = step * MICRO
    return int(10 ** max(0, int(np.ceil(np.log10(exact) - 1e-9)))) if exact > 0 else 1
