"""Somebody with a street map, who knows how people move on streets and how the noise varies.

Many hypotheses (a particle filter) move over the streets, from where the released track is nearly
exact to what is sought, from both sides at once where there are two. If a hypothesis is right, what
its noise is, is Gaussian: the covariance of the coefficients is the same for all hypotheses, and
only the means differ (a Rao-Blackwellised filter, after Doucet et al. (2000), UAI). So each has its
exact likelihood under Gamma, and what is left at the end is the posterior over places. Where
nothing is released, hypotheses move on unseen, each on its way to somewhere.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from trailveil.checks.attacks.contract import Background, Estimate, Evidence, when
from trailveil.checks.attacks.riders import Riders, aimed, moved, started
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.mechanism import Mechanism
from trailveil.traces.streets.network import Integers, Network, StreetPoints

# Hypotheses that are kept, and how many ways of moving on are tried of each; how often anew, with
# more of them, where none of them explains the track: mean log likelihood of a fix.
_HYPOTHESES, _CHILDREN = 1500, 4
_TRIES, _MORE, _LOST = 3, 2, -2.5
# Of hypotheses there are so many times as many at first, and from fix to fix this share of them.
_AT_FIRST, _FEWER = 8, 0.8
# Seconds between the fixes that are looked at, and of nearly exact fixes that are looked at; metres
# a coordinate that are nearly exact.
_STEP, _WARM, _EXACT = 5.0, 180.0, 3.0
# Metres a coordinate by which a fix is off the middle of its street.
_OFF_STREET = 6.0
# Deviations, and metres, within which a first place is looked for; places that are looked at.
_FIRST, _AROUND, _MOST_FIRST = 3.5, 40.0, 4000
# Beyond this squared distance, in deviations, no hypothesis is worse than another.
_FURTHEST = 40.0
# Metres within which two hypotheses of one place meet; seconds unseen for which one has an aim.
_MEET, _UNSEEN = 20.0, 30.0
# Metres a second; the share of the usual pace below which somebody counts as standing.
_SLOWEST, _STANDS = 0.3, 0.3
# Components of a process of less than this share of its largest are none.
_NOTHING = 1e-6
# Hypotheses that the smallest circle is looked for around.
_CENTRES = 300


def on_streets(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """Where each secret most likely is: the middle of the smallest circle that holds 68 %.

    Where it is not known how the noise varies, what is released is taken for exact.
    """
    if known.streets is None:
        raise InvalidValue("this attack must have a street network, got none: name a file of one")
    exact = Mechanism(view.times, np.empty((view.times.size, 0)))
    mechanism = known.mechanism or exact
    random = np.random.default_rng(view.draws)
    estimates: list[Estimate | None] = []
    for secret in known.secrets:
        if view.times.size < 2:
            estimates.append(None)
            continue
        moment = sum(when(secret)) / 2
        circles = [
            smallest_circle(places_left(known.streets, place, mechanism, moment, random), random)
            for place in view.places
        ]
        centres = np.array([centre for centre, _ in circles])
        radius = float(np.mean([radius for _, radius in circles]))
        estimates.append(Estimate(centres, max(radius / CIRCLE_68, _OFF_STREET)))
    return tuple(estimates)


def places_left(
    streets: Network,
    places: FloatArray,
    mechanism: Mechanism,
    moment: float,
    random: np.random.Generator,
) -> FloatArray:
    """The posterior of where somebody was at a moment: places (n, 2) on the streets, all as likely.

    places: (m, 2) metres, the released rows of the mechanism.
    """
    best = (-np.inf, places[:1])
    for again in range(_TRIES):
        candidates = _Search(streets, places, mechanism, _HYPOTHESES * _MORE**again, random).at(
            moment
        )
        best = max(best, candidates, key=lambda pair: pair[0])
        if best[0] > _LOST:
            break
    return best[1]


def smallest_circle(places: FloatArray, random: np.random.Generator) -> tuple[FloatArray, float]:
    """The middle (2,) and the radius of the smallest circle around a place that holds 68 %."""
    count = min(_CENTRES, len(places))
    middles = places[random.choice(len(places), count, replace=False)]
    radii = np.quantile(cdist(middles, places), 0.68, axis=1)
    best = int(np.argmin(radii))
    return middles[best], float(radii[best])


class _Search:
    """Hypotheses (count) of where somebody was, and what the noise is if they are right.

    Of each side of what is sought, before and after, there is a place. means: (count, r, 2) of the
    coefficients of the noise; covariance: (r, r), of all hypotheses.
    """

    def __init__(
        self,
        streets: Network,
        places: FloatArray,
        mechanism: Mechanism,
        count: int,
        random: np.random.Generator,
    ) -> None:
        self._streets, self._places, self._random = streets, places, random
        self._count = self._usual = count
        self._times = mechanism.times[mechanism.rows]
        self._stds = np.sqrt(mechanism.variances[mechanism.rows])
        self._factor = _columns(mechanism)
        self._white = mechanism.floor + _OFF_STREET**2
        self._means = np.zeros((count, self._factor.shape[1], 2))
        self._covariance = np.eye(self._factor.shape[1])
        self._pace = usual_pace(self._times, places, self._stds)
        self._sides: list[Riders | None] = [None, None]
        self._reached = [0.0, 0.0]
        self._logs: list[float] = []

    def at(self, moment: float) -> tuple[float, FloatArray]:
        """The mean log likelihood of a fix, and places (count, 2) at a moment."""
        for side, row in self._steps(moment):
            riders = self._sides[side]
            if riders is None:
                self._begins(side, row)
            else:
                self._goes_on(side, riders, row)
            self._learns(side, row)
            self._reached[side] = float(self._times[row])
        self._unseen(moment)
        ends = [side.places(self._streets) for side in self._sides if side is not None]
        fits = float(np.mean(self._logs)) if self._logs else 0.0
        return fits, self._met(*ends) if len(ends) == 2 else ends[0]

    def _steps(self, moment: float) -> Iterator[tuple[int, int]]:
        """Sides (0 before, 1 after) and fixes, inwards; first the side that begins better known."""
        # A fix at the moment itself is looked at last, on the side where there are others.
        before = self._times <= moment if np.any(self._times < moment) else self._times < moment
        sides = [np.flatnonzero(before), np.flatnonzero(~before)[::-1]]
        looked_at = [self._looked_at(rows) for rows in sides]
        order = sorted((0, 1), key=lambda i: self._stds[looked_at[i][:1]].sum())
        yield from ((side, row) for side in order for row in looked_at[side])

    def _looked_at(self, rows: Integers) -> list[int]:
        """Fixes from somewhat before the noise begins to the last of them, a step apart."""
        if not rows.size:
            return []
        exact = np.flatnonzero(self._stds[rows] <= _EXACT)
        first = int(exact[-1]) if exact.size else int(np.argmin(self._stds[rows]))
        far = np.abs(self._times[rows] - self._times[rows[first]])
        first = int(np.argmax(far <= _WARM)) if exact.size else first
        spaced = [int(rows[first])]
        for row in rows[first + 1 :]:
            if abs(self._times[row] - self._times[spaced[-1]]) >= _STEP or row == rows[-1]:
                spaced.append(int(row))
        return spaced

    def _expected(self, row: int) -> tuple[FloatArray, float]:
        """What is released less the expected noise (count, 2), and how sure (variance) that is."""
        columns = self._factor[row]
        expected = self._places[row] - np.einsum("r,nrd->nd", columns, self._means)
        return expected, float(columns @ self._covariance @ columns) + self._white

    def _learns(self, side: int, row: int) -> None:
        """Take in what the noise at a fix is where each hypothesis is right."""
        riders = self._sides[side]
        expected, variance = self._expected(row)
        gain = self._covariance @ self._factor[row] / variance
        off = expected if riders is None else expected - riders.places(self._streets)
        self._means = self._means + gain[:, None] * off[:, None, :]
        self._covariance = self._covariance - variance * np.outer(gain, gain)

    def _begins(self, side: int, row: int) -> None:
        """Begin at any place on the streets where the fix may have been."""
        target, variance = self._expected(row)
        far = float(np.hypot(*target.std(axis=0))) + np.sqrt(variance)
        points = self._first_points(target.mean(axis=0), _FIRST * far + _AROUND)
        off = cdist(target, self._streets.places(points), "sqeuclidean") / variance
        weights = np.exp(-np.minimum(off, _FURTHEST) / 2)
        integers = self._resampled(np.log(weights.sum(axis=1)))
        chances = np.cumsum(weights[integers], axis=1)
        drawn = self._random.random((_AT_FIRST, integers.size)) * chances[:, -1]
        which = np.concatenate([np.argmax(chances > number[:, None], axis=1) for number in drawn])
        points = StreetPoints(points.edges[which], points.offsets[which])
        riders = started(points, self._pace, self._random)
        self._keep(side, riders, np.tile(integers, _AT_FIRST))
        self._count = self._usual * _AT_FIRST

    def _first_points(self, middle: FloatArray, radius: float) -> StreetPoints:
        """Points on streets around a place, further away where there are none."""
        while not (points := self._streets.within(middle, radius)).edges.size:
            radius *= 2
        count = points.edges.size
        if count <= _MOST_FIRST:
            return points
        some = self._random.choice(count, _MOST_FIRST, replace=False)
        return StreetPoints(points.edges[some], points.offsets[some])

    def _goes_on(self, side: int, riders: Riders, row: int) -> None:
        """Move on to a fix, in several ways each, and keep those that explain it."""
        tried = np.repeat(np.arange(self._count), _CHILDREN)
        seconds = abs(float(self._times[row]) - self._reached[side])
        riders = moved(self._streets, riders.taken(tried), seconds, self._pace, self._random)
        target, variance = self._expected(row)
        off = np.sum((target[tried] - riders.places(self._streets)) ** 2, axis=1) / variance
        logs = -np.minimum(off, _FURTHEST) / 2
        self._logs.append(float(np.log(np.mean(np.exp(logs)))))
        self._count = max(self._usual, int(_FEWER * self._count))
        integers = self._resampled(logs)
        self._keep(side, riders.taken(integers), tried[integers])

    def _keep(self, side: int, riders: Riders, integers: Integers) -> None:
        """Go on with hypotheses that come from some rows of those that there were."""
        self._sides[side] = riders
        other = self._sides[1 - side]
        self._sides[1 - side] = None if other is None else other.taken(integers)
        self._means = self._means[integers]

    def _unseen(self, moment: float) -> None:
        """Move on to a moment from where the last fixes were released."""
        gaps = [abs(moment - at) for at in self._reached]
        ends = [None if side is None else side.places(self._streets) for side in self._sides]
        apart = np.zeros((self._count, 2))
        if ends[0] is not None and ends[1] is not None:
            apart = (ends[1] - ends[0]) / max(self._pace * sum(gaps), _MEET)
        for side, riders in enumerate(self._sides):
            if riders is not None:
                self._sides[side] = self._gone(riders, gaps[side], -apart if side else apart)

    def _gone(self, riders: Riders, gap: float, drift: FloatArray) -> Riders:
        """Where hypotheses are after so many seconds unseen, with a drift (count, 2)."""
        gone = aimed(riders, drift, self._random) if gap > _UNSEEN else riders
        for seconds in [_STEP] * int(gap // _STEP) + [gap % _STEP]:
            gone = moved(self._streets, gone, seconds, self._pace, self._random)
        return gone

    def _met(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Where both sides come together. Without noise, any of one goes with any of the other."""
        if self._factor.shape[1]:
            off = np.sum((before - after) ** 2, axis=1) / _MEET**2
            return before[self._resampled(-np.minimum(off, 10 * _FURTHEST) / 2)]
        off = cdist(before, after, "sqeuclidean") / _MEET**2
        nearest = off.min()
        return before[self._resampled(np.log(np.exp((nearest - off) / 2).sum(axis=1) + 1e-300))]

    def _resampled(self, logs: FloatArray) -> Integers:
        """Rows (count,) drawn by log weights, evenly."""
        sums = np.cumsum(np.exp(logs - logs.max()))
        marks = (self._random.random() + np.arange(self._count)) / self._count * sums[-1]
        return np.asarray(np.minimum(np.searchsorted(sums, marks), logs.size - 1))


def _columns(mechanism: Mechanism) -> FloatArray:
    """A factor (m, r) of the noise at released rows, but for what is independent of fix to fix."""
    rows = mechanism.rows
    factor = mechanism.factor[rows]
    if mechanism.process is not None:
        times = mechanism.times[rows]
        values, vectors = eigh(mechanism.process(times, times))
        large = values > _NOTHING * values[-1]
        factor = np.hstack([factor, vectors[:, large] * np.sqrt(values[large])])
    return np.asarray(factor[:, np.any(factor != 0, axis=0)])


def usual_pace(times: FloatArray, places: FloatArray, stds: FloatArray) -> float:
    """The usual pace, in metres a second, where the noise (deviations (m,)) of fixes is least."""
    if times.size < 2:
        return 1.0
    paces = np.hypot(*np.diff(places, axis=0).T) / np.diff(times)
    noise = np.maximum(stds[1:], stds[:-1])
    paces = paces[noise <= np.median(noise)]
    moving = paces[paces >= _STANDS * np.median(paces)]
    return max(float(np.median(moving)), _SLOWEST)
