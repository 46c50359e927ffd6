"""Noise that all visits of a place share: one draw, made for a stated number of ways.

A way is one side of a visit, to the place or from it. The noise is one curve (see
trailveil.privacy.false_tracks) of the seconds outward from a visit, the same on every side. So a
false track of the place is one curve w, too, and each way adds the form B of its side:

    1 / Q  =  min over w of  w^T (K^-1 + n B) w  =  n min over w of  w^T ((n K)^-1 + B) w.

Noise for n ways is that for one way and 1/n of the loss, divided by sqrt(n). What fewer ways tell
is less, and of more ways it grows no faster than their number (docs/paper.md, "Visits that share
their noise", proves this and what follows).

Between two visits of one outing the curve turns: up to some moment it is that of the visit before,
from some moment on that of the visit after, and between these it goes from a slope to its opposite
as cheaply as movement allows. With a turn of d seconds that costs coth(d / 2 tau) times as much as
two ways. Visits with less than `TOGETHER` between them are one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve

from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.movement import Matern, Movement
from trailveil.release.request import Request

if TYPE_CHECKING:
    from trailveil.designer.table import Cache

MOST_WAYS = 50
"""More ways than this would take noise over days."""

DEFAULT_WAYS = 4
"""Two roads, each there and back."""

# Seconds: about how long a visit is that the noise is shaped for; around a visit within which
# nothing is assumed, and beyond that within which no noise turns.
_SHAPED_FOR, _UNCERTAIN, _APART = 600.0, 60.0, 240.0
# Seconds: the time constant of a turn; it takes from 4 to 24 of these.
_FADING, _LEAST, _MOST = 60.0, 4, 24

TOGETHER = 2 * (_UNCERTAIN + _APART) + _LEAST * _FADING
"""Seconds: visits of an outing with less between them are one."""

Window = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class PlaceNoise:
    """The common noise of a place, of a coordinate: a curve with coefficients root c, c ~ N(0, I).

    root: (r, r) metres, lower triangular. exposures: what each adversary learns by all ways.
    """

    knots: Knots
    root: FloatArray
    exposures: tuple[Exposure, ...]

    @property
    def reach(self) -> float:
        """Seconds from a visit beyond which fixes are released as they are."""
        return self.knots.end + _UNCERTAIN

    @property
    def std(self) -> float:
        """Metres per coordinate that the place itself is moved by (deviation)."""
        return float(np.linalg.norm(self.root[0]))

    def at(self, seconds: FloatArray, visits: Sequence[Window]) -> FloatArray:
        """The columns (n, r) of fixes at times (n,). visits: (begin, end) in seconds, in order."""
        begins, ends = np.array(_windows(visits)).T
        number = np.searchsorted(begins, seconds, side="right")
        since = np.append(-np.inf, ends)[number]
        until = np.append(begins, np.inf)[number]
        away = np.clip(np.minimum(seconds - since, until - seconds), 0.0, None)
        rows = self.knots.rows(away)
        half = (until - since) / 2
        turn = np.minimum(half - _APART, _MOST / 2 * _FADING)
        turning = away > half - turn
        if np.any(turning):
            half, turn, away = half[turning], turn[turning], away[turning]
            reached, part = turn / _FADING, (half - away) / _FADING
            height = (np.cosh(reached) - np.cosh(part)) / np.sinh(reached)
            slopes = self.knots.rows(half - turn, slopes=True)
            rows[turning] = self.knots.rows(half - turn) + _FADING * height[:, None] * slopes
        return np.asarray(rows @ self.root)

    def ways(self, released: FloatArray, visits: Sequence[Window], of: Request) -> float:
        """How many ways a recording has, at most: one for each side, a little more where it turns.

        released: (n,) seconds of its fixes that are released. of: what the noise is made for.
        Infinite where it turns between a visit of this recording and one of another: what that
        costs is not known.
        """
        windows = _windows(visits)
        count = float(np.any(released < windows[0][0])) + float(np.any(released > windows[-1][1]))
        first, last = released.min(initial=np.inf), released.max(initial=-np.inf)
        for (_, since), (until, _) in pairwise(windows):
            if not np.any((released > since) & (released < until)):
                continue
            half = (until - since) / 2
            turn = min(half - _APART, _MOST / 2 * _FADING)
            if half - turn >= self.knots.end:
                count += 2
            elif since < first or until > last:
                return float("inf")
            else:
                movements = [adversary.movement for adversary in of.adversaries]
                taus = [
                    movement.time_constant
                    for movement in movements
                    if isinstance(movement, Movement)
                ]
                count += 2 * max(1.0, *(_of_turn(turn / _FADING, tau) for tau in taus))
        return count

    def loss(self, ways: float, of: Request) -> float:
        """What so many ways tell, 1 / m^2, at most: by its cheapest false tracks.

        To each adversary but those who know a place: of these, knowledge of each way was assumed.
        """
        precision = cho_solve((self.root, True), np.eye(len(self.root)))
        losses = [0.0]
        for adversary in of.adversaries:
            if adversary.place is None:
                track, free = adversary.fixed(self.knots)
                form = precision + ways * adversary.movement.cost(self.knots)
                track[free] = np.linalg.solve(form[free, free], -(form @ track)[free])
                losses.append(float(track @ form @ track) - ways / adversary.variance(1))
        return max(losses)


def place_noise(
    request: Request, ways: int = DEFAULT_WAYS, cache: "Cache | None" = None
) -> PlaceNoise:
    """The least noise by which a place loses at most the bound of a request in so many ways.

    cache: where designs are kept beyond this process. Raises InvalidValue for ways that are none,
    or metres to leave in place of a bound; Refused where no noise can hide so much.
    """
    from trailveil.designer.table import noise_of  # a place is shown without it

    if not 1 <= ways <= MOST_WAYS:
        raise InvalidValue(f"ways must be in 1..{MOST_WAYS}, got {ways}")
    if request.leave is not None:
        raise InvalidValue("a place must have an epsilon, got metres to leave")
    who = request.adversaries
    if any(isinstance(adversary.movement, Matern) for adversary in who):
        raise Refused(
            "the prior of a place with a name must be integrated-ou with a level, got another: "
            "what many visits tell is not proved for it; take a built-in prior, or --mechanism cut"
        )
    if any(max(adversary.steady, adversary.path or 0) > _APART for adversary in who):
        raise InvalidValue(f"what is known must begin within {_APART:g} s of a window, got later")
    noise = noise_of(_SHAPED_FOR, 1, who, request.bound / ways, cache)
    exposures = [
        Exposure.of_loss(
            f"{x.name}{'' if x.place is None else ' of each way'}",
            request.bound,
            (x.variance(1, x.place) / ways) ** 0.5,
        )
        for x in who
    ]
    return PlaceNoise(noise.knots, noise.even / ways**0.5, tuple(exposures))


def _windows(visits: Sequence[Window]) -> list[Window]:
    """Windows in which nothing is assumed, of visits in order of time: those that are near, one."""
    windows: list[Window] = []
    for begin, end in visits:
        if windows and begin - windows[-1][1] < TOGETHER - _UNCERTAIN:
            windows[-1] = windows[-1][0], max(windows[-1][1], end + _UNCERTAIN)
        else:
            windows.append((begin - _UNCERTAIN, end + _UNCERTAIN))
    return windows


def _of_turn(reached: float, tau: float) -> float:
    """What a turn costs movement of a time constant, beside what two ways would cost from there.

    reached: half of the turn, in its own time constants. coth(reached) where both are the same.
    """
    ratio, twice = _FADING / tau, np.sinh(2 * reached) / 2
    cost = twice + reached + ratio**2 * (twice - reached)
    return float(cost / (2 * ratio * np.sinh(reached) ** 2))
