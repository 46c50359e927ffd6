"""Noise for the protected parts of a series: sought at few times, judged at all.

Each crop has noise of its own: splines in time with coefficients drawn together. It is sought at
few of the times (trailveil.release.crops), made at all of them, judged there by its recomputed
losses, and made larger until all is met (trailveil.release.judging).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from trailveil.designer.columns import turn
from trailveil.designer.requirements import Demand
from trailveil.designer.robust import QUICKLY, Tolerances
from trailveil.designer.several import SeveralRequest, sought
from trailveil.designer.spaces import Splines, splines
from trailveil.errors import NumericalError, Refused, TooCoarse
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import split
from trailveil.gp.statespace import is_markov
from trailveil.privacy.adversary import PLAIN
from trailveil.privacy.exposure import Exposure, worst_of
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop
from trailveil.release.judging import Judged, judged, judged_again

# Those that noise is sought for are these shares of the way into the stay.
_WITHIN = (0.03, 0.08, 0.2, 0.5, 0.8, 0.92, 0.97)
# Where this share of what may be lost is lost already, the noise is made larger, if at all.
_AS_GOOD = 1 + 1e-4
# How often noise is sought, and what it may miss by (relative) to be made larger instead. Where it
# is lost by so many times, and there are no more rows than this, it is sought at every one of them:
# what is told by those that were left out, more of the same noise does not hide.
_SOUGHT, _NEARLY, _FAR, _ALL_ROWS = 2, 0.03, 1.5, 500
# Columns of less than this share of the noise are left out; splines that others make up for, at the
# times that were looked at, are worth no more than this.
_HARDLY_ANY, _DEPENDENT = 1e-6, 1e-10
# How much more noise is tried, in units of what is missing, and besides; how slowly losses may fall
# with it at most; and how often. Beyond e to this power times the noise, more of it is no help.
_MORE, _LEAST_STEP, _FLATTEST, _MOST_STEPS = 1.02, 1e-5, -0.02, 40
_MOST_GROWN = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Designed:
    """The noise of a whole series, and what is left of each part, in order.

    gap: how far above the least noise at the times that were looked at, or None where no bound is
    claimed.
    """

    mechanism: Mechanism
    exposures: tuple[Exposure, ...]
    gap: float | None


@dataclass(frozen=True, slots=True)
class _Aims:
    """What a design aims at besides, where it missed at times that were not looked at.

    tight: how much lower than the bound. places: times within a stay (seconds, of the crop).
    """

    tight: float = 1.0
    places: tuple[float, ...] = ()

    def after(self, crop: Crop, bound: float, exposures: Judged) -> "_Aims":
        """The aims that would have met what these exposures have missed."""
        worst = max(exposures, key=lambda place: exposures[place].loss)
        missed = exposures[worst].loss / bound
        place = None if worst is None else worst - crop.start
        if missed <= 1:
            return self
        if place is None or place in {
            *self.places,
            *(edge for span in crop.spans for edge in span),
        }:
            return replace(self, tight=self.tight * missed)
        return replace(self, places=tuple(sorted({*self.places, place})))


def optimal(crops: Sequence[Crop], base: Mechanism, bound: float) -> Designed:
    """The least noise whose loss is at most `bound` (1 / unit^2) at every part of every crop.

    base: the rows that are withheld. Raises Refused where splines cannot hide so much;
    NumericalError where no noise that was tried meets the bound.
    """
    factors: list[tuple[Crop, FloatArray]] = []
    by_part: dict[int, Exposure] = {}
    gaps: list[float | None] = []
    for crop in crops:
        mechanism, gap = _optimal_of(crop, crop.part_of(base), bound)
        mechanism, exposed = _until_met(crop, mechanism, bound)
        factors.append((crop, mechanism.factor))
        by_part.update(zip(crop.parts, map(_worst, exposed), strict=True))
        gaps.append(gap)
    whole = np.zeros((base.times.size, sum(factor.shape[1] for _, factor in factors)))
    used = 0
    for crop, factor in factors:
        whole[crop.rows, used : used + factor.shape[1]] = factor
        used += factor.shape[1]
    gap = gaps[0] if len(gaps) == 1 else None
    return Designed(replace(base, factor=whole), tuple(by_part[i] for i in sorted(by_part)), gap)


def only_withheld(crops: Sequence[Crop], base: Mechanism, bound: float) -> Designed:
    """No noise at all. Raises Refused where what is withheld is not enough."""
    by_part = {
        part: _worst(judged(crop, crop.part_of(base), i, bound))
        for crop in crops
        for i, part in enumerate(crop.parts)
    }
    worst = max(exposure.loss for exposure in by_part.values()) / bound
    if worst > 1:
        raise Refused(
            f"withholding alone must reach the target, got {worst:.3g} times what may be lost; "
            "withhold longer (--withhold SECONDS), or leave --mechanism out to add the noise that "
            "is missing"
        )
    return Designed(base, tuple(by_part[i] for i in sorted(by_part)), None)


def _worst(exposures: Judged) -> Exposure:
    return worst_of(exposures.values())


def _until_met(crop: Crop, mechanism: Mechanism, bound: float) -> tuple[Mechanism, list[Judged]]:
    """The noise, or a little more of it, that meets the bound, and what is left of each part."""
    parts, quickly = range(len(crop.parts)), True
    for _ in range(_MOST_STEPS):
        exposed = [judged(crop, mechanism, i, bound, quickly=quickly) for i in parts]
        missed = {i: each for i, each in enumerate(exposed) if _worst(each).loss > bound}
        if not missed and not quickly:
            return mechanism, exposed
        mechanism = _with_more(crop, mechanism, bound, missed) if missed else mechanism
        quickly = False
    raise _never_met()


def _with_more(
    crop: Crop, mechanism: Mechanism, bound: float, missed: dict[int, Judged]
) -> Mechanism:
    """More of the noise, until no more is lost than may be where too much was.

    More noise is worse for everybody: all else needs no second look. By secants, since losses may
    fall slowly with the noise.
    """
    excess = float(np.log(max(_worst(each).loss for each in missed.values()) / bound))
    slope, grown = -1.0, 0.0
    for _ in range(_MOST_STEPS):
        step = (_MORE * excess + _LEAST_STEP) / -slope
        mechanism = mechanism.scaled(float(np.exp(step)))
        grown += step
        if grown > _MOST_GROWN:
            raise _never_met()
        again = [judged_again(crop, mechanism, i, before) for i, before in missed.items()]
        share = max(_worst(each).loss for each in again) / bound
        if share <= 1:
            return mechanism
        slope = min(max((float(np.log(share)) - excess) / step, -1.0), _FLATTEST)
        excess = float(np.log(share))
    raise _never_met()


def _never_met() -> NumericalError:
    return NumericalError(
        "a designed release must meet its own target, got one that does not: ask for less, or "
        "withhold the protected part (--withhold)"
    )


def _optimal_of(crop: Crop, base: Mechanism, bound: float) -> tuple[Mechanism, float | None]:
    """The noise of one crop as it was sought, and how far it is above the least at these times."""
    gaps = []
    effort = replace(QUICKLY, below=None) if len(crop.parts) > 1 else QUICKLY
    for number in range(len(crop.parts)):
        base, gap = _with_noise_for(crop, base, number, bound, effort)
        gaps.append(gap)
    return base, gaps[0] if len(gaps) == 1 else None


def _with_noise_for(
    crop: Crop, base: Mechanism, number: int, bound: float, effort: Tolerances
) -> tuple[Mechanism, float | None]:
    """The noise there is, and that for one part more; sought again where it misses by much."""
    if base.factor.shape[1]:
        exposures = judged(crop, base, number, bound, quickly=True)
        if _worst(exposures).loss / bound <= _AS_GOOD:
            return base, None
    aims = _Aims()
    for last in (*[False] * (_SOUGHT - 1), True):
        mechanism, gap = _noise_for(crop, base, number, bound, effort, aims)
        if last and base.times.size > _ALL_ROWS:
            return mechanism, gap
        exposures = judged(crop, mechanism, number, bound, quickly=True)
        if _worst(exposures).loss / bound <= (_FAR if last else 1 + _NEARLY):
            return mechanism, gap
        aims = aims.after(crop, bound, exposures)
    return _noise_for(crop, base, number, bound, effort, aims, every=True)


def _noise_for(
    crop: Crop,
    base: Mechanism,
    number: int,
    bound: float,
    effort: Tolerances,
    aims: _Aims,
    *,
    every: bool = False,
) -> tuple[Mechanism, float | None]:
    """The noise there is, and that for one part more, as it is sought once. every: at all rows."""
    # What is far can tell as much as what is near, of a prior that is not Markov.
    whole = not is_markov(crop.prior.kernel, crop.prior.times)
    rows = np.arange(crop.prior.times.size) if whole or every else crop.few(aims.places)
    prior = Prior(crop.prior.kernel, crop.prior.times[rows])
    existing = Mechanism(
        prior.times, base.factor[rows], base.floor, base.process, np.asarray(base.released)[rows]
    )
    request = SeveralRequest(
        *(prior, _demands(crop, prior, number, bound, aims), (PLAIN,)),
        *(_stand_for(crop, rows), existing, effort),
        finer=False,  # what is released is judged as it is drawn: in double precision
    )
    factor, gap = _sought_whole(request) if whole else _sought(crop, request, number)
    return base.plus(Mechanism(base.times, factor, released=base.released)), gap


def _demands(
    crop: Crop, prior: Prior, number: int, bound: float, aims: _Aims
) -> tuple[Demand, ...]:
    """What noise is sought for. prior: at the times that are looked at; others are judged later."""
    begin, end = crop.spans[number]
    level = split(crop.prior.kernel)[1]
    # What counts as flat is a level of the prior: a little more is lost than against it.
    allowed = bound / aims.tight - (1.0 / level if level > 0 else 0.0)
    if begin == end:
        return (Demand(Secret.at(begin), allowed),)
    times = prior.times[(prior.times >= begin) & (prior.times <= end)]
    some = np.quantile(times, _WITHIN, method="nearest").tolist() if times.size else []
    places = [Secret.at(time) for time in sorted({begin, end, *some, *aims.places})]
    places += [Secret.mean(times)] if times.size > 1 else []
    return tuple(Demand(place, allowed) for place in places)


def _sought_whole(request: SeveralRequest) -> tuple[FloatArray, float | None]:
    """Columns (n, r) of noise that may be anything at any row, beside what exists."""
    solution, make = sought(request)
    if solution.trace == 0.0:
        return np.zeros((request.prior.times.size, 0)), 0.0
    return make(solution.trace).factor[:, request.existing.factor.shape[1] :], solution.gap


def _sought(crop: Crop, request: SeveralRequest, number: int) -> tuple[FloatArray, float | None]:
    """Columns (n, r) at every row of a crop, for one of its parts, beside what exists."""
    nothing = np.zeros((crop.prior.times.size, 0))
    heard = request.existing.rows
    times = request.prior.times[heard]
    for few, more in _splines_of(crop, number):
        columns = _columns(few, times), _columns(more, times)
        if not all(np.any(column) for column in columns):
            return nothing, None  # nothing recorded there
        try:
            factor, gap = _sought_whole(replace(request, sought_in=columns))
        except TooCoarse:
            continue
        return (_everywhere(crop, more, times, factor[heard]) if factor.size else nothing), gap
    raise Refused(
        "smooth noise must be able to hide so much, got a target that what is released between its "
        "knots tells too much for: withhold some minutes around it (--withhold), or ask for less "
        "(a smaller --radius, a larger --epsilon)"
    )


def _splines_of(crop: Crop, number: int) -> Iterator[tuple[Splines, Splines]]:
    """Few splines around one part of a crop, and more; then more at once, if few cannot do."""
    lay = partial(splines, crop.reach, [crop.spans[number]], crop.lag, fading=crop.fading)
    fine = lay()
    yield lay(coarse=True), fine
    yield fine, fine


def _columns(splines: Splines, times: FloatArray) -> FloatArray:
    """The splines that are anything at all at some times (n, p)."""
    values = splines.at(times)
    return values[:, np.any(values != 0, axis=0)]


def _everywhere(crop: Crop, splines: Splines, times: FloatArray, factor: FloatArray) -> FloatArray:
    """Columns at every row of a crop, that were found as combinations of splines at some times.

    Those that hardly add to the noise are left out; the rest are turned against splines in the
    order of their distance from what is protected, which no library's rounding changes.
    """
    _, sizes, basis = svd(factor, full_matrices=False)
    chosen = basis[sizes**2 > _HARDLY_ANY * np.sum(sizes**2)].T
    columns = splines.at(times)
    coefficients = np.linalg.lstsq(columns, factor @ chosen, rcond=_DEPENDENT)[0]
    whole = splines.at(crop.prior.times)
    middle = float(np.mean(crop.spans))
    peaks = np.abs(crop.prior.times[np.argmax(whole, axis=0)] - middle)
    reference = whole[:, np.argsort(peaks, kind="stable")[: chosen.shape[1]]]
    combined = whole @ coefficients
    return combined @ turn(combined, reference)


def _stand_for(crop: Crop, rows: NDArray[np.intp]) -> FloatArray:
    """How many rows of the crop each of some stands for (m,)."""
    middles = (rows[1:] + rows[:-1]) / 2.0
    bounds = np.concatenate([[-0.5], middles, [crop.prior.times.size - 0.5]])
    return np.maximum(np.diff(bounds), 0.5)
