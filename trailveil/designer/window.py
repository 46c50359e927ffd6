"""The least noise around one protected window, in continuous time, with its proof.

It depends on what is promised and on nothing of a recording: what it guarantees holds for every
sampling, and for a window of every length (only how little noise it is depends on the length). The
noise is a random curve (trailveil.privacy.false_tracks): the same all over the window, and the sum
of an even and an odd part of the seconds outward from it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cholesky, solve_triangular

from trailveil.designer.cancelling import check_cancelled
from trailveil.designer.ellipsoid import Limit, smallest_ellipsoid
from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.checker import unproved
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import ACCURACY, Knowledge
from trailveil.privacy.movement import Matern, Movement

FORMAT, VERSION = "trailveil-noise", 1
# Seconds: the first knot, how much wider each next piece is, and where noise ends, at most.
_FIRST, _WIDER, _END, _LONGEST = 20.0, 1.9, 5100, 86_400
# How many known places noise is sought against, and the share of the bound that is aimed at.
_PLACES, _AIM, _GAP = 24, 0.996, 2e-3
# The share of the bound above which a place between them is one of them, too.
_MOST = 0.9995
# The share of its own variance that a movement leaves where noise ends, if not twice the bound.
_NEAR_ALL = 0.98
# Unit of time (seconds) in which values and slopes have about one size.
_UNIT = 1000.0
# Binary digits after the point of values and slopes, of noise (metres) and of tracks.
NOISE_DIGITS, TRACK_DIGITS = (16, 26), (16, 26)
# Noise is made larger by this until its proof holds, and so often at most.
_MORE, _TIMES = 1.001, 12
# How far apart known places of false tracks are at first, and at least (seconds).
_APART, _CLOSE = 1.5, 2


@dataclass(frozen=True, slots=True, eq=False)
class WindowNoise:
    """Noise around a window: metres, for one coordinate.

    knots: of each side. even: (size, size) factor of the sum of both sides, the value at the window
    first. odd: (size - 1, size - 1) of their difference; None where there is one side. proof: what
    `trailveil.privacy.checker` reads. gap: how far above the least of such noise, relative.
    """

    knots: Knots
    even: FloatArray
    odd: FloatArray | None
    proof: dict[str, Any]
    gap: float

    @property
    def size(self) -> int:
        """How many random numbers it takes."""
        return int(self.even.shape[1] + (0 if self.odd is None else self.odd.shape[1]))

    def columns(self, before: FloatArray, after: FloatArray, *, slopes: bool = False) -> FloatArray:
        """The factor (n, r) at times so many seconds before and after the window.

        Both are 0 within it. Where there is one side, the other's seconds are not looked at:
        nothing may be released there. slopes: how fast it changes with time (1 / s) instead.
        """
        rows = self.knots.rows(np.maximum(before, after), slopes=slopes)
        side = np.where(before > after, -1.0, 1.0)[:, None]
        even = rows @ self.even
        if slopes:  # that of what is the same on both sides has two signs
            even *= side
        if self.odd is None:
            return even
        odd = rows[:, 1:] @ self.odd
        return np.hstack([even, odd if slopes else side * odd])


def together(around: Sequence[tuple[FloatArray, FloatArray, WindowNoise]]) -> FloatArray:
    """The factor (n, r) of independent noises, read-only: zeros that take no memory but near each.

    around: of each window, seconds before and after it (n,) each, and its noise.
    """
    count = around[0][0].size if around else 0
    whole = np.zeros((count, sum(noise.size for *_, noise in around)))
    used = 0
    for before, after, noise in around:
        rows = np.flatnonzero(np.maximum(before, after) <= noise.knots.end)
        near = slice(rows[0], rows[-1] + 1) if rows.size else slice(0)  # times are in order
        whole[near, used : used + noise.size] = noise.columns(before[near], after[near])
        used += noise.size
    whole.flags.writeable = False
    return whole


def window_noise(
    seconds: float, sides: int, adversaries: Sequence[Knowledge], bound: float
) -> WindowNoise:
    """The least noise of a window of so many seconds, whose place loses at most `bound` (1 / m^2).

    sides: 2, or 1 where a recording begins or ends within the window. Raises Refused where no noise
    can hide so much.
    """
    for adversary in adversaries:
        _check_room(adversary, seconds, bound)
    knots = _knots(adversaries, _end(adversaries, sides, bound))
    problem = _Scaled(knots, sides, bound, seconds)
    value, _, _ = knots.forms()
    objective = sides * value
    objective[0, 0] += seconds
    sought = [
        (adversary, away) for adversary in adversaries for away in _sought_at(adversary, knots)
    ]
    more = 1.0
    for _ in range(_TIMES):
        limits = [problem.limit(*each) for each in sought]
        ellipsoid = smallest_ellipsoid(problem.doubled(objective), limits, problem.blocks, _GAP)
        missed = problem.missed(ellipsoid.covariance, adversaries)
        if missed:
            sought += missed
            continue
        even, odd = _noise(knots, sides, problem.unscaled(ellipsoid.covariance) * more)
        proof = _proof(problem, even, odd, adversaries)
        if proof is not None:
            return WindowNoise(knots, even, odd, proof, (1 + ellipsoid.gap) * more - 1)
        more *= _MORE
    raise NumericalError("noise must be proved to hold, got noise that is not: report this request")


def proved(
    even: FloatArray,
    odd: FloatArray | None,
    knots: Knots,
    asked: tuple[float, int, Sequence[Knowledge], float],
) -> WindowNoise | None:
    """Noise of lower triangular factors with its proof; None where it does not hold.

    asked: what `window_noise` is asked for.
    """
    seconds, sides, adversaries, bound = asked
    proof = _proof(_Scaled(knots, sides, bound, seconds), even, odd, adversaries)
    return None if proof is None else WindowNoise(knots, even, odd, proof, float("nan"))


def is_enough(
    even: FloatArray,
    odd: FloatArray | None,
    knots: Knots,
    asked: tuple[float, int, Sequence[Knowledge], float],
) -> bool:
    """Whether noise holds in floating point, a little to spare: as of `proved`, and quicker."""
    seconds, sides, adversaries, bound = asked
    problem = _Scaled(knots, sides, bound, seconds)
    factor = even if odd is None else np.asarray(block_diag(even, odd))
    scaled = factor * bound**0.5 / problem.units[:, None]
    limits = (problem.limit(adversary, None) for adversary in adversaries)
    if any(_cheapest(limit, scaled)[1] > limit.bound for limit in limits):
        return False
    return not problem.missed(scaled @ scaled.T, adversaries)


def shortened(even: FloatArray, odd: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
    """Factors of noise by few binary digits, as designs have them."""
    short = None if odd is None else _shortened(odd, NOISE_DIGITS, slope=1)
    return _shortened(even, NOISE_DIGITS, slope=0), short


def _check_room(knowledge: Knowledge, seconds: float, bound: float) -> None:
    """Refuse a prior under which a window of so many seconds tells its own place, if noise or not.

    A shift of the window costs that much, whatever phi is outside; of a mean that is not known, the
    rest of the recording tells it.
    """
    if isinstance(knowledge.movement, Movement):
        return
    information = knowledge.movement.inside(seconds, 2)
    if knowledge.movement.levels and knowledge.path is None:
        information += 1 / knowledge.movement.spread
    if information >= _AIM * bound:
        raise Refused(
            f"the prior must leave the place of {seconds / 60:.0f} min open to more than "
            f"{bound**-0.5:.0f} m, got one that tells it to {information**-0.5:.0f} m by itself: "
            "nobody stays so long away from its mean; fit an integrated-ou prior (trailveil fit), "
            "ask for a smaller radius, or use --mechanism cut"
        )


def _end(adversaries: Sequence[Knowledge], sides: int, bound: float) -> int:
    """Where noise ends: where movement alone leaves twice what must be left, or nearly all it can.

    After a day in any case.
    """
    slowest = [
        (adversary.movement, adversary.steady)
        for adversary in adversaries
        if adversary.path is None
    ]
    end = _END
    while end < _LONGEST and any(
        who.given_path(end - steady, sides) < min(2 / bound, _NEAR_ALL * who.spread)
        for who, steady in slowest
    ):
        end = min(2 * end, _LONGEST)
    return end


def _knots(adversaries: Sequence[Knowledge], end: int) -> Knots:
    """Knots that are dense at the window, and everywhere that adversaries have an edge."""
    edges = {
        x
        for adversary in adversaries
        for x in (adversary.steady, adversary.place, adversary.path)
        if x
    }
    marks = sorted(edges)
    knots, wide = [0.0], _FIRST
    for mark in [*marks, end]:
        while knots[-1] + 1.3 * wide < mark:
            knots.append(round(knots[-1] + wide))
            wide *= _WIDER
        knots.append(mark)
        wide = max(wide, mark / 4)
    return Knots(tuple(int(knot) for knot in knots))


def _sought_at(knowledge: Knowledge, knots: Knots) -> list[float | None]:
    """Where an adversary is taken to know a place while noise is sought."""
    if knowledge.place is None:
        return [None]
    return [None, *np.geomspace(knowledge.place, 0.95 * knots.end, _PLACES)]


class _Scaled:
    """Limits in units in which numbers are about 1."""

    def __init__(self, knots: Knots, sides: int, bound: float, seconds: float) -> None:
        self.knots, self.sides, self.bound, self.seconds = knots, sides, bound, seconds
        side = np.array([1.0, *([1.0, 1 / _UNIT] * (len(knots.seconds) - 2))])
        self.blocks = (side.size, side.size - 1) if sides == 2 else (side.size,)
        self.units = np.hstack([side, side[1:]]) if sides == 2 else side

    def doubled(self, form: FloatArray) -> FloatArray:
        """A form (size, size) of the even part as one of both parts, scaled."""
        whole = block_diag(form, form[1:, 1:]) if self.sides == 2 else form
        return np.asarray(self.units[:, None] * whole * self.units)

    def limit(self, knowledge: Knowledge, away: float | None) -> Limit:
        """What the false tracks of an adversary may cost, relative to the bound."""
        form = self.doubled(self.sides * knowledge.movement.cost(self.knots)) / self.bound
        form[0, 0] += knowledge.movement.inside(self.seconds, self.sides) / self.bound
        if away is not None:
            row = self.knots.rows([away])[0]
            scaled_row = (np.hstack([row, row[1:]]) if self.sides == 2 else row) * self.units
            form = form + np.outer(scaled_row, scaled_row) / (ACCURACY**2 * self.bound)
        fixed, free = knowledge.fixed(self.knots)
        size = fixed.size
        columns = np.arange(free.start, free.stop)
        if self.sides == 2:
            fixed = np.hstack([fixed, np.zeros(size - 1)])
            if away is not None:
                columns = np.hstack([columns, columns + size - 1])
        known = 1 / knowledge.variance(self.sides, away)
        return Limit(form, fixed, np.eye(fixed.size)[:, columns], _AIM + known / self.bound)

    def missed(
        self, covariance: FloatArray, adversaries: Sequence[Knowledge]
    ) -> list[tuple[Knowledge, float]]:
        """The places, of those between the ones noise was sought against, where it falls short."""
        factor, places_missed = cholesky(covariance, lower=True), []
        for adversary in adversaries:
            if adversary.place is None:
                continue
            places = np.geomspace(adversary.place, 0.999 * self.knots.end, 6 * _PLACES)
            over = [0.0]
            for away in places:
                limit = self.limit(adversary, float(away))
                over.append(_cheapest(limit, factor)[1] - (limit.bound - _AIM))
            peaks = zip(over, over[1:], [*over[2:], 0.0], places, strict=False)
            places_missed += [
                (adversary, float(x)) for a, b, c, x in peaks if b > _MOST and a <= b >= c
            ]
        return places_missed

    def unscaled(self, covariance: FloatArray) -> FloatArray:
        """A covariance in square metres, and slopes in metres per second."""
        return np.asarray(self.units[:, None] * covariance * self.units / self.bound)


def _noise(
    knots: Knots, sides: int, covariance: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """The factors of noise of a covariance, of few binary digits."""
    size = knots.size
    even = cholesky(covariance[:size, :size], lower=True)
    odd = None if sides == 1 else cholesky(covariance[size:, size:], lower=True)
    return shortened(even, odd)


def _proof(
    problem: _Scaled, even: FloatArray, odd: FloatArray | None, adversaries: Sequence[Knowledge]
) -> dict[str, Any] | None:
    """What the checker reads: noise with the false tracks that cost least. None if it fails."""
    proof = {
        "format": FORMAT,
        "version": VERSION,
        "knots": list(problem.knots.seconds),
        "sides": 1 if odd is None else 2,
        "bound": problem.bound,
        "even": even.tolist(),
        "odd": [] if odd is None else odd.tolist(),
    }
    factor = even if odd is None else np.asarray(block_diag(even, odd))
    stated = [_stated(problem, factor, adversary, proof) for adversary in adversaries]
    return None if None in stated else {**proof, "adversaries": stated}


def _stated(
    problem: _Scaled, factor: FloatArray, knowledge: Knowledge, proof: dict[str, Any]
) -> dict[str, Any] | None:
    """An adversary with few false tracks that prove the noise: more of them where it takes more."""
    stated: dict[str, Any] = {
        "name": knowledge.name,
        **asdict(knowledge.movement),
        "steady": knowledge.steady,
        "place": knowledge.place,
        "path": knowledge.path,
        "accuracy": ACCURACY,
    }
    if isinstance(knowledge.movement, Matern):
        stated["seconds"] = problem.seconds
    tracks: dict[float | None, dict[str, Any]] = {}
    places = _places(knowledge, problem.knots)
    while True:
        for away in [*places, None]:
            check_cancelled()
            if away not in tracks:
                tracks[away] = _track(problem, factor, knowledge, away)
        stated["tracks"] = [tracks[away] for away in [*sorted(places), None]]
        gaps = [at for _, at in unproved({**proof, "adversaries": [stated]})]
        if not gaps:
            return stated
        if any(not at or at[1] - at[0] < _CLOSE for at in gaps):
            return None
        places |= {float(round((at[0] + at[1]) / 2)) for at in gaps}


def _places(knowledge: Knowledge, knots: Knots) -> set[float]:
    """Some places that an adversary may know, all knots among them; none if there is no such."""
    if knowledge.place is None:
        return set()
    places = {float(k) for k in knots.seconds if k > knowledge.place}
    away = float(knowledge.place)
    while away < knots.end:
        places.add(float(round(away)))
        away = max(away * _APART, away + 1)
    return places


def _track(
    problem: _Scaled, factor: FloatArray, knowledge: Knowledge, away: float | None
) -> dict[str, Any]:
    """The false track that costs an adversary least against noise of a factor."""
    problem = _Scaled(problem.knots, problem.sides, 1.0, problem.seconds)
    w = (
        problem.units
        * _cheapest(problem.limit(knowledge, away), factor / problem.units[:, None])[0]
    )
    size = problem.knots.size
    even = _shortened(w[:size], TRACK_DIGITS, slope=0)
    odd = _shortened(w[size:], TRACK_DIGITS, slope=1)
    return {"away": away, "even": even.tolist(), "odd": odd.tolist()}


def _cheapest(limit: Limit, factor: FloatArray) -> tuple[FloatArray, float]:
    """The false track that costs least against noise of a factor, and its cost."""
    fixed = solve_triangular(factor, limit.fixed, lower=True)
    free = solve_triangular(factor, limit.free, lower=True)
    gram = free.T @ free + limit.free.T @ limit.form @ limit.free
    along = free.T @ fixed + limit.free.T @ limit.form @ limit.fixed
    added = np.linalg.solve(gram, along)
    drawn, track = fixed - free @ added, limit.fixed - limit.free @ added
    return track, float(drawn @ drawn + track @ limit.form @ track)


def _shortened(numbers: FloatArray, digits: tuple[int, int], slope: int) -> FloatArray:
    """Values and slopes by rows with few binary digits: their fractions are short."""
    unit = units(numbers.shape, digits, slope)
    return np.asarray(np.round(numbers * unit) / unit)


def units(shape: tuple[int, ...], digits: tuple[int, int], slope: int) -> FloatArray:
    """What makes whole numbers of values and slopes by rows with so many binary digits.

    slope: 0 where the first row is a value of the edge, 1 where it is the first knot's value.
    """
    rows = np.arange(shape[0]) + slope
    powers = np.where((rows > 0) & (rows % 2 == 0), digits[1], digits[0]).astype(np.float64)
    return np.asarray((2.0**powers).reshape(-1, *[1] * (len(shape) - 1)))
