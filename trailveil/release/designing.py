"""Noise for the protected parts of a recording: sought at few fixes, judged at all.

Each crop has noise of its own: splines in time with coefficients drawn together. It is sought at
few of the fixes (trailveil.release.crops), made at all of them, judged there by its recomputed
losses, and made larger until all is met.
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
from trailveil.gp.statespace import is_markov
from trailveil.privacy.adversary import Adversary
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.release.crops import Crop
from trailveil.release.demands import (
    Aims,
    PartExposure,
    Target,
    demanded,
    judged,
    judged_again,
    still_missed,
)

# Where this share of what may be lost is lost already, the noise is made larger, if at all.
_AS_GOOD = 1 + 1e-4
# How often noise is sought, and what it may miss by (relative) to be made larger instead. Where it
# is lost by so many times, and there are no more rows than this, it is sought at every one of them:
# what is told by those that were left out, more of the same noise does not hide.
_SOUGHT, _NEARLY, _FAR, _ALL_ROWS = 2, 0.03, 1.5, 500
# Columns of less than this share of the noise are left out; splines that others make up for, at the
# fixes that were looked at, are worth no more than this.
_HARDLY_ANY, _DEPENDENT = 1e-6, 1e-10
# How much more noise is tried, in units of what is missing, and besides; how slowly losses may fall
# with it at most; and how often. Beyond e to this power times the noise, more of it is no help.
_MORE, _LEAST_STEP, _FLATTEST, _MOST_STEPS = 1.02, 1e-5, -0.02, 40
_MOST_GROWN = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Designed:
    """The noise of a whole recording, and what each adversary is left with of each part, in order.

    gap: how far above the least noise at the fixes that were looked at, or None where no bound is
    claimed.
    """

    mechanism: Mechanism
    left: tuple[tuple[PartExposure, ...], ...]
    gap: float | None


def optimal(crops: Sequence[Crop], base: Mechanism, target: Target) -> Designed:
    """The least noise that meets a target in every crop, beside the withheld rows of `base`.

    Raises Refused for a target beyond what an adversary knows without any release.
    """
    factors: list[tuple[Crop, FloatArray]] = []
    left: dict[int, tuple[PartExposure, ...]] = {}
    gaps: list[float | None] = []
    for crop in crops:
        mechanism, gap = _optimal_of(crop, part_of(base, crop), target)
        mechanism, seen = _until_met(crop, mechanism, target)
        factors.append((crop, mechanism.factor))
        left.update(zip(crop.parts, seen, strict=True))
        gaps.append(gap)
    whole = np.zeros((base.times.size, sum(factor.shape[1] for _, factor in factors)))
    used = 0
    for crop, factor in factors:
        whole[crop.rows, used : used + factor.shape[1]] = factor
        used += factor.shape[1]
    gap = gaps[0] if len(gaps) == 1 else None
    return Designed(replace(base, factor=whole), tuple(left[i] for i in sorted(left)), gap)


def only_withheld(crops: Sequence[Crop], base: Mechanism, target: Target) -> Designed:
    """No noise at all: what is withheld must be enough."""
    designed = _as_it_is(crops, base, target)
    worst = max(target.missed(one) for one in designed.left)
    if worst > 1:
        raise Refused(
            f"withholding alone must reach the target, got {worst:.3g} times what may be lost; "
            "withhold longer (--withhold SECONDS), or leave --mechanism out to add the noise that "
            "is missing"
        )
    return designed


def _as_it_is(crops: Sequence[Crop], mechanism: Mechanism, target: Target) -> Designed:
    left: dict[int, tuple[PartExposure, ...]] = {}
    for crop in crops:
        own = part_of(mechanism, crop)
        left.update(
            {part: tuple(judged(crop, own, i, target)) for i, part in enumerate(crop.parts)}
        )
    return Designed(mechanism, tuple(left[i] for i in sorted(left)), None)


def part_of(mechanism: Mechanism, crop: Crop) -> Mechanism:
    """The mechanism at the rows of a crop."""
    return Mechanism(
        crop.prior.times,
        mechanism.factor[crop.rows],
        mechanism.floor,
        mechanism.process,
        np.asarray(mechanism.released)[crop.rows],
        independent=mechanism.independent_variances[crop.rows],
    )


def _until_met(
    crop: Crop, mechanism: Mechanism, target: Target
) -> tuple[Mechanism, list[tuple[PartExposure, ...]]]:
    """The noise, or a little more of it, that meets the target, and what all are left with."""
    parts = range(len(crop.parts))
    quick = [judged(crop, mechanism, i, target, quickly=True) for i in parts]
    mechanism = _with_more(crop, mechanism, target, [target.missed_by(part) for part in quick])
    seen = [judged(crop, mechanism, i, target) for i in parts]
    for _ in range(_MOST_STEPS):
        missed = [target.missed_by(part) for part in seen]
        if not any(missed):
            return mechanism, [tuple(part) for part in seen]
        mechanism = _with_more(crop, mechanism, target, missed)
        again = [judged_again(crop, mechanism, i, target, part) for i, part in enumerate(seen)]
        seen = [part or judged(crop, mechanism, i, target) for i, part in enumerate(again)]
    raise _never_met()


def _with_more(
    crop: Crop, mechanism: Mechanism, target: Target, missed: Sequence[tuple[PartExposure, ...]]
) -> Mechanism:
    """More of the noise, until those of each part who learned too much where they did no longer do.

    More noise is worse for everybody: the others need no second look. By secants, since losses may
    fall slowly with the noise.
    """
    if not any(missed):
        return mechanism
    excess, slope = max(float(np.log(target.missed(part))) for part in missed if part), -1.0
    grown = 0.0
    for _ in range(_MOST_STEPS):
        step = (_MORE * excess + _LEAST_STEP) / -slope
        mechanism = mechanism.scaled(float(np.exp(step)))
        grown += step
        if grown > _MOST_GROWN:
            raise _never_met()
        found = max(still_missed(crop, mechanism, i, target, part) for i, part in enumerate(missed))
        if found <= 1:
            return mechanism
        slope = min(max((float(np.log(found)) - excess) / step, -1.0), _FLATTEST)
        excess = float(np.log(found))
    raise _never_met()


def _never_met() -> NumericalError:
    return NumericalError(
        "a designed release must meet its own target, got one that does not: ask for less, or "
        "withhold the protected part (--withhold)"
    )


def _optimal_of(crop: Crop, base: Mechanism, target: Target) -> tuple[Mechanism, float | None]:
    """The noise of one crop as it was sought, and how far it is above the least at these fixes."""
    gaps = []
    effort = replace(QUICKLY, below=None) if len(crop.parts) > 1 else QUICKLY
    for number in range(len(crop.parts)):
        base, gap = _with_noise_for(crop, base, number, target, effort)
        gaps.append(gap)
    return base, gaps[0] if len(gaps) == 1 else None


def _with_noise_for(
    crop: Crop, base: Mechanism, number: int, target: Target, effort: Tolerances
) -> tuple[Mechanism, float | None]:
    """The noise there is, and that for one part more; sought again where it misses by much."""
    if base.factor.shape[1]:
        there = judged(crop, base, number, target, quickly=True)
        if target.missed(there) <= _AS_GOOD:
            return base, None
    aims = Aims()
    for last in (*[False] * (_SOUGHT - 1), True):
        made, gap = _noise_for(crop, base, number, target, effort, aims)
        if last and base.times.size > _ALL_ROWS:
            return made, gap
        part_exposures = judged(crop, made, number, target, quickly=True)
        if target.missed(part_exposures) <= (_FAR if last else 1 + _NEARLY):
            return made, gap
        aims = aims.after(crop, target, part_exposures)
    return _noise_for(crop, base, number, target, effort, aims, every=True)


def _noise_for(
    crop: Crop,
    base: Mechanism,
    number: int,
    target: Target,
    effort: Tolerances,
    aims: Aims,
    *,
    every: bool = False,
) -> tuple[Mechanism, float | None]:
    """The noise there is, and that for one part more, as it is sought once. every: at all rows."""
    factor, gap = _sought(crop, base, number, target, effort, aims, every=every)
    return base.plus(Mechanism(base.times, factor, released=base.released)), gap


def _sought(
    crop: Crop,
    base: Mechanism,
    number: int,
    target: Target,
    effort: Tolerances,
    aims: Aims,
    *,
    every: bool,
) -> tuple[FloatArray, float | None]:
    """Columns (n, r) for one part of a crop, beside the noise of `base`."""
    who = [one for _, one in demanded(crop, crop.prior, number, target, aims)]
    away = sorted({known.away for one in who for known in (one.point, one.path) if known})
    # What is far can tell as much as what is near: then all is looked at, for one adversary.
    whole = not is_markov(crop.prior.kernel, crop.prior.times) and len(set(who)) == 1
    all_rows = np.arange(crop.prior.times.size)
    rows = all_rows if whole or every else crop.few(away, aims.places)
    prior = Prior(crop.prior.kernel, crop.prior.times[rows])
    together: list[Adversary] = []
    demands: list[Demand] = []
    for demand, one in demanded(crop, prior, number, target, aims):
        if one not in together:
            together.append(one)
        demands.append(replace(demand, against=(together.index(one),)))
    existing = Mechanism(
        prior.times, base.factor[rows], base.floor, base.process, np.asarray(base.released)[rows]
    )
    heard = existing.rows
    several_request = SeveralRequest(
        *(prior, tuple(demands), tuple(together), _stand_for(crop, rows), existing, effort),
        finer=False,  # what is released is judged as it is drawn: in double precision
    )
    if whole:
        found, make = sought(several_request)
        if found.trace == 0.0:
            return np.zeros((crop.prior.times.size, 0)), 0.0
        return make(found.trace).factor[:, existing.factor.shape[1] :], found.gap
    for few, more in _splines_of(crop, number, away):
        columns = _columns(few, prior.times[heard]), _columns(more, prior.times[heard])
        if not all(np.any(column) for column in columns):
            return np.zeros((crop.prior.times.size, 0)), None  # nothing recorded there
        try:
            found, make = sought(replace(several_request, sought_in=columns))
        except TooCoarse:
            continue
        if found.trace == 0.0:
            return np.zeros((crop.prior.times.size, 0)), 0.0
        factor = make(found.trace).factor[:, existing.factor.shape[1] :]
        return _everywhere(crop, more, prior.times[heard], factor[heard]), found.gap
    raise _too_little_hidden()


def _too_little_hidden() -> Refused:
    return Refused(
        "smooth noise must be able to hide so much, got a target that what is released between its "
        "knots tells too much for: withhold some minutes around it (--withhold), or ask for less "
        "(a smaller --radius, a larger --epsilon)"
    )


def _splines_of(
    crop: Crop, number: int, away: Sequence[float]
) -> Iterator[tuple[Splines, Splines]]:
    """Few splines around one part of a crop, and more; then more at once, if few cannot do."""
    lay = partial(splines, crop.reach, [crop.spans[number]], crop.lag, away, fading=crop.fading)
    fine = lay()
    yield lay(coarse=True), fine
    yield fine, fine


def _columns(splines: Splines, times: FloatArray) -> FloatArray:
    """The splines that are anything at all at some times (n, p)."""
    found = splines.at(times)
    return found[:, np.any(found != 0, axis=0)]


def _everywhere(crop: Crop, splines: Splines, times: FloatArray, factor: FloatArray) -> FloatArray:
    """Columns at every row of a crop, that were found as combinations of splines at some times.

    Those that hardly add to the noise are left out; the rest are turned against splines in the
    order of their distance from what is protected, which no library's rounding changes.
    """
    _, sizes, basis = svd(factor, full_matrices=False)
    kept = basis[sizes**2 > _HARDLY_ANY * np.sum(sizes**2)].T
    columns = splines.at(times)
    coefficients = np.linalg.lstsq(columns, factor @ kept, rcond=_DEPENDENT)[0]
    whole = splines.at(crop.prior.times)
    middle = float(np.mean(crop.spans))
    peaks = np.abs(crop.prior.times[np.argmax(whole, axis=0)] - middle)
    reference = whole[:, np.argsort(peaks, kind="stable")[: kept.shape[1]]]
    found = whole @ coefficients
    return found @ turn(found, reference)


def _stand_for(crop: Crop, rows: NDArray[np.intp]) -> FloatArray:
    """How many rows of the crop each of some stands for (m,)."""
    middles = (rows[1:] + rows[:-1]) / 2.0
    bounds = np.concatenate([[-0.5], middles, [crop.prior.times.size - 0.5]])
    return np.maximum(np.diff(bounds), 0.5)
