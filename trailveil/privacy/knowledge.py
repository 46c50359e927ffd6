"""What adversaries of a track know besides how people move.

All of them may know the movement within a window, to the last detail; none knows where it lies.
"""

from dataclasses import dataclass

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.movement import Matern, Movement

ACCURACY = 10.0
"""Metres: how well an adversary knows a true place."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """One adversary of a protected window.

    movement: at least how fast the person moves outside. steady: seconds beyond the window within
    which nothing is assumed of the movement, either. place: seconds outward from the window, from
    which on one true place is known, to `ACCURACY`. path: seconds outward from the window beyond
    which the whole path is known, exactly. At most one of the two.
    """

    name: str
    movement: Movement | Matern
    steady: int = 0
    place: int | None = None
    path: int | None = None

    def __post_init__(self) -> None:
        """Check that they go together."""
        least = min(x for x in (self.steady, self.place, self.path) if x is not None)
        if least < 0 or (self.path is not None and self.path <= self.steady):
            raise InvalidValue(f"seconds must be 0 or more, the path's beyond steady, got {self}")
        if self.place is not None and (self.path is not None or self.place <= self.steady):
            raise InvalidValue(f"a place must be known beyond steady, and no path, got {self}")

    def variance(self, sides: int, away: float | None = None) -> float:
        """Square metres per coordinate that the window's place is known to without any release.

        sides: how many sides of the window there are, 1 or 2. away: seconds from the window to the
        place that is known. Without any place: infinite, but for a prior whose mean is known.
        """
        if self.path is not None:
            return self.movement.given_path(self.path - self.steady, sides)
        if away is not None:
            return self.movement.given_place(away - self.steady, ACCURACY)
        return self.movement.alone

    def fixed(self, knots: Knots) -> tuple[FloatArray, slice]:
        """A false track (size,) that is all this adversary must grant, and what may be added to it.

        The slice is of the coefficients of one side that are free.
        """
        first = knots.before(self.steady + 1)
        track = np.zeros(knots.size)
        track[0] = 1.0
        track[1:first:2] = 1.0
        last = knots.size if self.path is None else knots.before(self.path)
        return track, slice(first, last)
