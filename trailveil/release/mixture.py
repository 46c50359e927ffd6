"""Noise that holds for a request without a design of its own: a mixture of designs that ship.

Take designs for the bounds a < b on the loss, against the same adversaries, with covariances K and
K' of their curves, and false tracks phi and phi' that prove them. For 0 <= s <= 1 the independent
sum with covariance s K + (1 - s) K' holds for the bound s a + (1 - s) b, by the false track
s phi + (1 - s) phi'. This is 1 m all over the window, and 0 wherever both must be. What movement
and knowledge cost is a square, so it is convex. What noise costs is convex in track and covariance
together, for curves of different knots too: f^T K^-1 f is the most of 2 u^T f - u^T K u. So

    cost  <=  s cost(phi) + (1 - s) cost(phi')  <=  s a + (1 - s) b + 1 / P

Noise for a window of one length holds for every other. So a mixture is a valid release, of no less
noise than the least one. It is shown while that is sought, and never released.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.table import (
    key_of,
    noise_of,
    read,
    rounded_bound,
    shaped_for,
    shipped,
    stored_noise,
)
from trailveil.errors import Unavailable
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots
from trailveil.release.request import Request

if TYPE_CHECKING:
    from trailveil.designer.table import Cache
    from trailveil.privacy.knowledge import Knowledge

RADII = (700.0, 550.0, 400.0, 280.0, 200.0, 140.0, 100.0, 70.0, 50.0, 30.0, 17.0, 10.0, 5.0)
"""Metres: a design of a single time ships for each, and is what mixtures are of."""
LENGTH = shaped_for(2 * Request(()).uncertain)
"""Seconds: what those designs are shaped for."""
BOUNDS = [rounded_bound(replace(Request(()), radius=radius).bound) for radius in RADII]
"""1 / m^2: the most that each lets be lost, growing."""


def noise_for(
    seconds: float,
    sides: int,
    adversaries: "tuple[Knowledge, ...]",
    bound: float,
    cache: "Cache | None",
    at_once: bool,
) -> WindowNoise:
    """Noise for a window: that of `noise_of`, or what there is at once. Raises as they do."""
    noise = mixture_of if at_once else noise_of
    return noise(seconds, sides, adversaries, bound, cache)


def mixture_of(
    seconds: float,
    sides: int,
    adversaries: "tuple[Knowledge, ...]",
    bound: float,
    cache: "Cache | None" = None,
) -> WindowNoise:
    """Noise for a window, at once: what `noise_of` gives if it was designed before, else a mixture.

    Its proof is left empty, and its gap infinite. Raises Unavailable where no designs ship for the
    adversaries, or none for so small a bound.
    """
    if (stored := stored_noise(seconds, sides, adversaries, bound, cache)) is not None:
        return stored
    above = bisect_right(BOUNDS, bound)
    pair = BOUNDS[max(above - 1, 0) : above + 1]
    designs = [shipped(key_of(LENGTH, sides, adversaries, each)) for each in pair]
    if not above or None in designs:
        raise Unavailable("designs must ship for noise to be known at once, got none: wait for it")
    noises = [read(design) for design in designs if design]
    share = (pair[-1] - bound) / (pair[-1] - pair[0]) if len(pair) > 1 else 1.0
    return mixed(noises, [share, 1 - share])


def mixed(noises: Sequence[WindowNoise], shares: Sequence[float]) -> WindowNoise:
    """The independent sum of noises of one kind, each with its share of its variance."""
    knots = Knots(tuple(sorted({knot for noise in noises for knot in noise.knots.seconds})))
    pairs = list(zip(noises, np.sqrt(shares), strict=False))
    even = np.hstack([root * _on(knots, noise.knots) @ noise.even for noise, root in pairs])
    odd = [
        root * _on(knots, noise.knots)[1:, 1:] @ noise.odd
        for noise, root in pairs
        if noise.odd is not None
    ]
    return WindowNoise(knots, even, np.hstack(odd) if odd else None, {}, float("inf"))


def _on(knots: Knots, coarser: Knots) -> FloatArray:
    """Takes coefficients of curves to those of the same curves on more knots (size, size)."""
    inner = knots.seconds[1:-1]
    rows = np.zeros((knots.size, coarser.size))
    rows[0, 0] = 1.0
    rows[1::2], rows[2::2] = coarser.rows(inner), coarser.rows(inner, slopes=True)
    return rows
