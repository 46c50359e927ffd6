"""What noise around one window must hold, in units in which numbers are about 1."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, cholesky, solve_triangular

from trailveil.designer.ellipsoid import Limit
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import ACCURACY, Knowledge

AIM = 0.996
"""The share of the bound that is aimed at."""
# How many known places noise is sought against at first. At how many it is then looked at: some 1 %
# apart, since against many metres the loss peaks between places that are 5 % apart.
_PLACES, _LOOKED_AT = 36, 1440
# The share of the bound above which noise is sought against the place of a peak, too.
MOST = 0.9995
# Unit of time (seconds) in which values and slopes have about one size.
_UNIT = 1000.0


class WindowProblem:
    """The false tracks of some adversaries of a window, and what they may cost.

    knots: of each side. sides: 1 or 2. bound: 1 / m^2. seconds: the length of the window. units:
    what makes coefficients of values and slopes of those of this problem (size,).
    """

    def __init__(self, knots: Knots, sides: int, bound: float, seconds: float) -> None:
        self.knots, self.sides, self.bound, self.seconds = knots, sides, bound, seconds
        side = np.array([1.0, *([1.0, 1 / _UNIT] * (len(knots.seconds) - 2))])
        self.blocks = (side.size, side.size - 1) if sides == 2 else (side.size,)
        self.units = np.hstack([side, side[1:]]) if sides == 2 else side

    def doubled(self, form: FloatArray) -> FloatArray:
        """A form (size, size) of the even part as one of both parts, scaled."""
        whole = block_diag(form, form[1:, 1:]) if self.sides == 2 else form
        return np.asarray(self.units[:, None] * whole * self.units)

    def limits(self, knowledge: Knowledge) -> list[Limit]:
        """Those of an adversary that noise is sought against at first."""
        limits = [self.limit(knowledge, None)]
        if knowledge.place is not None:
            places = np.geomspace(knowledge.place, 0.95 * self.knots.end, _PLACES)
            limits += [self.limit(knowledge, float(away)) for away in places]
        return limits

    def limit(self, knowledge: Knowledge, away: float | None) -> Limit:
        """What the false tracks of an adversary may cost, relative to the bound.

        away: seconds from the window to the place that is known, if any.
        """
        limit = self._without_place(knowledge, away is not None)
        form = limit.form
        if away is not None:
            row = self._rows([away])[0]
            form = form + np.outer(row, row) / (ACCURACY**2 * self.bound)
        known = 1 / knowledge.variance(self.sides, away)
        return Limit(form, limit.fixed, limit.free, AIM + known / self.bound)

    def violated(
        self, covariance: FloatArray, adversaries: Sequence[Knowledge], most: float
    ) -> list[tuple[Knowledge, float]]:
        """The places of peaks of the loss at which it comes too near to the bound."""
        factor, violated = cholesky(covariance, lower=True), []
        for adversary in adversaries:
            if adversary.place is None:
                continue
            places = np.geomspace(adversary.place, 0.999 * self.knots.end, _LOOKED_AT)
            loss = np.pad(self._losses(adversary, factor, places), 1)
            peaks = (loss[1:-1] > most) & (loss[:-2] <= loss[1:-1]) & (loss[1:-1] >= loss[2:])
            violated += [(adversary, float(away)) for away in places[peaks]]
        return violated

    def _losses(self, knowledge: Knowledge, factor: FloatArray, places: FloatArray) -> FloatArray:
        """The loss, relative to the bound, to an adversary who knows each of some places (n,).

        Of the false tracks w that cost least if no place is known, and S their inverse curvature:
        a known place adds (r w)^2 / (accuracy^2 + r S r^T), r what takes coefficients to phi there.
        """
        limit = self._without_place(knowledge, both=True)
        track, cost = cheapest(limit, factor)
        free = solve_triangular(factor, limit.free, lower=True)
        root = cholesky(free.T @ free + limit.free.T @ limit.form @ limit.free, lower=True)
        rows = self._rows(places)
        loose = solve_triangular(root, (rows @ limit.free).T, lower=True)
        spread = ACCURACY**2 * self.bound + np.sum(loose**2, axis=0)
        known = [1 / knowledge.variance(self.sides, float(away)) for away in places]
        return np.asarray(cost + (rows @ track) ** 2 / spread - np.array(known) / self.bound)

    def _without_place(self, knowledge: Knowledge, both: bool) -> Limit:
        """The limit of an adversary who knows no place. both: with tracks that differ by side."""
        form = self.doubled(self.sides * knowledge.movement.cost(self.knots)) / self.bound
        form[0, 0] += knowledge.movement.inside(self.seconds, self.sides) / self.bound
        fixed, free = knowledge.fixed(self.knots)
        size = fixed.size
        columns: NDArray[np.intp] = np.arange(free.start, free.stop)
        if self.sides == 2:
            fixed = np.hstack([fixed, np.zeros(size - 1)])
            if both:
                columns = np.hstack([columns, columns + size - 1])
        return Limit(form, fixed, np.eye(fixed.size)[:, columns], AIM)

    def _rows(self, places: Sequence[float] | FloatArray) -> FloatArray:
        """What takes coefficients to a curve's value at places on the one side (n, m)."""
        rows = self.knots.rows(places)
        return np.asarray(
            (np.hstack([rows, rows[:, 1:]]) if self.sides == 2 else rows) * self.units
        )

    def unscaled(self, covariance: FloatArray) -> FloatArray:
        """A covariance in square metres, and slopes in metres per second."""
        return np.asarray(self.units[:, None] * covariance * self.units / self.bound)


def cheapest(limit: Limit, factor: FloatArray) -> tuple[FloatArray, float]:
    """The false track that costs least against noise of a factor, and its cost."""
    fixed = solve_triangular(factor, limit.fixed, lower=True)
    free = solve_triangular(factor, limit.free, lower=True)
    gram = free.T @ free + limit.free.T @ limit.form @ limit.free
    along = free.T @ fixed + limit.free.T @ limit.form @ limit.fixed
    added = np.linalg.solve(gram, along)
    drawn, track = fixed - free @ added, limit.fixed - limit.free @ added
    return track, float(drawn @ drawn + track @ limit.form @ track)
