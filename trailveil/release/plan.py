"""A designed release: what is cut, what noise there is, and what that guarantees.

`plan_parts` finds the least cut or the least noise for stated parts; drawing adds it. A cut
releases nothing around a protected part, and all else as it was recorded. Noise never meets a
coordinate in floating point: coordinates and noise are integers of one micrometre, their sum is
exact, and it is rounded to a public grid of degrees. X is whole and rounding is floor(x + 1/2), so
X + round(G) is round(X + G): what leaves is a function of X + G, and the guarantee holds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Refused
from trailveil.gp.kernels import noise_variance
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.mechanism import LARGEST_STD, Mechanism, no_noise
from trailveil.release.cutting import (
    Window,
    at_one_place,
    leaving,
    reckoned_together,
    silent,
    windows_of,
)
from trailveil.release.layers import Layer
from trailveil.release.places import Common, Visited, named_in_full
from trailveil.release.request import HAS_THE_REST, Method, Request, check_target
from trailveil.traces.grid import LEAST, CoarseSubset, Grid, coarse_subset, position_grid
from trailveil.traces.projection import MICRO, Frame, placed
from trailveil.traces.selection import RETURN, Stretch
from trailveil.traces.structure import Structure, structure_of
from trailveil.traces.trace import Trace

if TYPE_CHECKING:  # a cut alone is planned without what designs noise
    from trailveil.designer.random_curves import WindowNoise
    from trailveil.designer.table import Cache
    from trailveil.privacy.anytime import Worst
    from trailveil.privacy.knowledge import Knowledge


# Metres: whatever is released of a recording that reaches no farther is at what is hidden.
_ONE_PLACE = 200.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What the release guarantees of one stretch.

    fixes: recorded in it. withheld: of those. exposures: what each adversary is left with. cut:
    seconds before and after it of which nothing is released, or None. sides: how many sides are
    recorded beyond the cut, 1 or 2. place: the number of the place that it may be at, the same for
    parts that may be at one. together: with how many of these it is reckoned, see
    `trailveil.release.cutting.reckoned_together`.
    """

    stretch: Stretch
    fixes: int
    withheld: int
    guarantee: Guarantee
    exposures: tuple[Exposure, ...]
    cut: float | None = None
    sides: int = 2
    place: int = 0
    together: int = 1

    @property
    def deviation(self) -> float:
        """Metres per coordinate that an adversary with no idea of the place is left with."""
        return min(
            exposure.posterior for exposure in self.exposures if exposure.prior == float("inf")
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A designed release, before any noise is drawn. It holds the true trace: keep it private.

    lattice: the places (n, 2) in micrometres. mechanism: the noise of each coordinate. designs:
    of the noise of each part, with its proof; none without noise. everywhere: of noise for every
    place at once, the worst case of each kind of adversary. common: noise shared with other
    releases, the last columns of the mechanism. visited: the places with names that it counts on.
    subject, key: whose it is and under which key. version: its name. layer: its base, if any.
    """

    trace: Trace
    frame: Frame
    lattice: NDArray[np.int64]
    request: Request
    mechanism: Mechanism
    findings: tuple[Finding, ...]
    designs: "tuple[WindowNoise, ...]" = ()
    everywhere: "tuple[Worst, ...]" = ()
    common: tuple[Common, ...] = ()
    visited: tuple[Visited, ...] = ()
    subject: str | None = None
    key: bytes | None = None
    version: str = ""
    layer: Layer | None = None

    @property
    def worst(self) -> tuple[Guarantee, float]:
        """What is told of the place that is protected least, and metres that a stranger is left.

        Cuts of what may be one place, as both ends may, count together. Raises InvalidValue where
        no part is stated.
        """
        if not self.findings:
            raise InvalidValue("a guarantee must be of a part, got noise for every place: see text")
        cut = self.request.method is Method.CUT
        joint = [finding for finding in self.findings if cut and finding.together > 1]
        return max(
            (
                (
                    Guarantee(math.hypot(*(part.guarantee.mu for part in place)), order),
                    math.hypot(*(1 / part.deviation for part in place)) ** -1,
                )
                for place in [
                    *([finding] for finding in self.findings),
                    *([joint] if joint else []),
                ]
                for order in [self.request.order]
            ),
            key=lambda told: told[0].mu,
        )

    @property
    def guarantee(self) -> Guarantee:
        """Of the place that is protected least: as `worst`."""
        return self.worst[0]

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        """What each adversary learns of each part."""
        return tuple(exposure for finding in self.findings for exposure in finding.exposures)

    @property
    def identity(self) -> tuple[bytes, ...]:
        """All that a release depends on: times, places, the whole design, what came of it.

        To be hashed with a key.
        """
        recording = self.trace.times.astype("<i8").tobytes(), self.lattice.astype("<i8").tobytes()
        if self.layer is not None:
            return (*recording, *self.layer.about)
        asked = (repr(self.frame).encode(), self.request.design.encode())
        return (*recording, *asked, *named_in_full(self.common), *self.mechanism.fingerprint)

    @property
    def grid(self) -> Grid:
        """The grid that the recorded positions lie on."""
        return _grids_of(self.trace)[0]

    @property
    def coarse(self) -> CoarseSubset:
        """The recorded fixes that lie on a coarser grid than the others."""
        return _grids_of(self.trace)[1]

    @property
    def structure(self) -> Structure:
        """What is exact in the recording."""
        return _structure_of(self.trace)

    @property
    def components(self) -> int:
        """How many single mechanisms the noise is the sum of."""
        return int(self.mechanism.factor.shape[1]) + (self.mechanism.floor > 0)

    @property
    def own_columns(self) -> int:
        """How many columns of the mechanism are of this release alone: the first ones."""
        return int(self.mechanism.factor.shape[1] - sum(n.columns.shape[1] for n in self.common))


@lru_cache(maxsize=1)
def _grids_of(trace: Trace) -> tuple[Grid, CoarseSubset]:
    """The grids of a trace, found once: audits draw a release thousands of times."""
    grid = position_grid(trace.positions)
    return grid, coarse_subset(trace.positions, grid)


@lru_cache(maxsize=1)
def _structure_of(trace: Trace) -> Structure:
    return structure_of(trace, _grids_of(trace)[0])


def plan_parts(
    trace: Trace,
    request: Request,
    common: Sequence[Common] = (),
    cache: "Cache | None" = None,
    at_once: bool = False,
) -> Plan:
    """Find the cut or the noise for a trace, and compute what it guarantees.

    common: noise that other releases share, on which no finding counts. cache: where designs are
    kept beyond this process. at_once: design nothing now, see `trailveil.release.mixture`. Fields
    are left out, see `trailveil.release.cutting`. Raises Refused where nothing would be released,
    no noise is enough or fields are not reckoned with; InvalidValue for nothing to be protected.
    """
    if not (request.stretches or common) or request.method is Method.EVERYWHERE:
        raise InvalidValue("something must be protected, got nothing: state a time or a stay")
    request = request.framed(placed(trace.positions)[0])
    check_target(request)
    windows, cuts = cuts_of(trace, request)
    released = _released(trace, request, windows, cuts, common)
    base = no_noise(trace.seconds).withholding(~released)
    designs = _designed(windows, request, cache, at_once)
    mechanism = _sum_of(base, windows, designs)
    if mechanism.max_std > LARGEST_STD:
        raise Refused(
            f"the noise must stay below {LARGEST_STD / 1000:g} km, got more: state a smaller "
            "radius, a larger epsilon, or --mechanism cut"
        )
    trace = leaving(trace, request, silent(windows, cuts, request.uncertain), common, base.rows[0])
    places = at_one_place(trace, request.stretches, request.radius)
    together = reckoned_together(trace, request.stretches, places)
    findings = tuple(
        replace(_finding(window, request, mechanism, seconds), place=place, together=count)
        for window, seconds, place, count in zip(windows, cuts, places, together, strict=True)
    )
    plan = Plan(trace, *placed(trace.positions), request, mechanism, findings, tuple(designs))
    return with_common(plan, common)


def cuts_of(trace: Trace, request: Request) -> tuple[list[Window], list[float | None]]:
    """The windows of a request, and seconds outward from each of which nothing is released.

    None for no cut. What is reckoned together must leave so many times as much.
    """
    parts = request.stretches
    windows = windows_of(trace, parts, request.uncertain, request.public_in_frame)
    # The seconds around a part in which it may really begin or end go with it.
    asked = None if request.withhold is None else max(request.withhold - request.uncertain, 0.0)
    if not request.method.cuts:
        return windows, [asked] * len(windows)
    together = reckoned_together(trace, parts, at_one_place(trace, parts, request.radius))
    variances = [
        max(count * request.variance, part.variance * request.wide**2)
        for part, count in zip(parts, together, strict=True)
    ]
    return windows, [
        max(window.least_cut(request.paces, variance), asked or 0.0)
        for window, variance in zip(windows, variances, strict=True)
    ]


def released_rows(
    trace: Trace, request: Request, common: Sequence[Common] = ()
) -> NDArray[np.intp]:
    """The indices of the fixes that such a release has. Raises Refused for fewer than two."""
    return np.flatnonzero(_released(trace, request, *cuts_of(trace, request), common))


def _released(
    trace: Trace,
    request: Request,
    windows: Sequence[Window],
    cuts: Sequence[float | None],
    common: Sequence[Common],
) -> NDArray[np.bool_]:
    """Which fixes (n,) are released: nothing that is cut. Raises Refused for fewer than two."""
    released = np.ones(len(trace), dtype=np.bool_)
    for noise in common:
        released &= ~noise.withheld
    for window, seconds in zip(windows, cuts, strict=True):
        if seconds is not None:
            released[window.within(seconds)] = False
    if np.count_nonzero(released) < 2:
        raise _nothing_left(trace, request, cuts)
    return released


def _designed(
    windows: Sequence[Window], request: Request, cache: "Cache | None", at_once: bool
) -> "list[WindowNoise]":
    """The noise of each window; none for a cut."""
    if request.method is Method.CUT:
        return []
    from trailveil.release.mixture import noise_for

    return [noise_for(*asked, cache, at_once) for asked in asked_of_noise(windows, request)]


def designed_before(trace: Trace, request: Request, cache: "Cache | None") -> bool:
    """Whether a plan of this request, framed and with a pace, takes no new design of noise.

    Raises BeyondPrior as `plan_parts` does.
    """
    from trailveil.designer.table import stored_noise

    windows = windows_of(trace, request.stretches, request.uncertain)
    return all(stored_noise(*asked, cache) for asked in asked_of_noise(windows, request))


def asked_of_noise(
    windows: Sequence[Window], request: Request
) -> "Iterator[tuple[float, int, tuple[Knowledge, ...], float]]":
    """What `trailveil.designer.table.noise_of` is asked for, of each window."""
    for window in windows:
        # To the nanosecond: a proof may be of no shorter window than there is.
        length = (window.stretch.end - window.stretch.begin) / 1e9 + 2 * request.uncertain
        yield length, window.sides(), request.adversaries, request.noise_bound


def _sum_of(
    base: Mechanism, windows: Sequence[Window], designs: "Sequence[WindowNoise]"
) -> Mechanism:
    """The independent noises of all windows, together: zeros but near them."""
    if not designs:
        return base
    from trailveil.designer.random_curves import together

    spans = [(window.begin, window.end) for window in windows]
    return replace(base, factor=together(base.times, spans, designs))


def of_one_place(trace: Trace) -> bool:
    """Whether a recording is nowhere but at one place: no part of it can be hidden."""
    return float(np.hypot(*np.ptp(placed(trace.positions)[1], axis=0))) <= _ONE_PLACE * MICRO


def _nothing_left(trace: Trace, request: Request, cuts: Sequence[float | None]) -> Refused:
    minutes = (max((cut or 0.0 for cut in cuts), default=0.0) + request.uncertain) / 60
    parts = len(request.stretches)
    named = any(stretch.variance for stretch in request.stretches)
    returns = any(RETURN in stretch.label for stretch in request.stretches)
    ends = trace.times[[0, -1]].tolist()
    whole = any(part.begin <= ends[0] and ends[1] <= part.end for part in request.stretches)
    if whole or of_one_place(trace):
        return Refused(
            "a recording must leave the place that is protected, got one that stays there: do not "
            "publish it"
        )
    return Refused(
        f"at least two fixes must remain, got fewer: {minutes:.1f} min are cut on each side of "
        f"{parts} protected part{'s' * (parts != 1)}, of a recording of {trace.duration / 60:.1f} "
        "min; state a smaller --radius, or a faster --activity or --floor, or use --mechanism "
        "noise (which a street map can undo)"
        + (", or state fewer --ways (of trailveil place)" if named else "")
        + (", or leave other visits as recorded (--no-returns)" if returns else "")
    )


def with_common(plan: Plan, common: Sequence[Common]) -> Plan:
    """The plan with noise besides that other releases share, and independent noise where any is.

    The latter hides what is exact: it is as wide as a step of the recorded grid, and of the coarser
    one that some fixes lie on, as LEAST, and as the measurement noise of the prior, of which a
    recording that repeats or smooths has none.
    """
    mechanism = plan.mechanism
    for noise in common:
        columns = Mechanism(mechanism.times, noise.columns, released=~noise.withheld)
        mechanism = mechanism.plus(columns)
    if mechanism.max_std > 0:
        measured = noise_variance(plan.request.kernel, mechanism.times) ** 0.5
        least = max(plan.grid.metres, plan.coarse.metres, LEAST, measured)
        mechanism = mechanism.hiding(least)
    return replace(plan, mechanism=mechanism, common=(*plan.common, *common))


def _finding(window: Window, request: Request, mechanism: Mechanism, cut: float | None) -> Finding:
    exposures = []
    if cut is not None and request.method is not Method.NOISE:
        # A visit that another recording had may be longer ago than its cut. Elsewhere a gap counts
        # for nothing: what is said of a part follows from its cut alone.
        silent = np.nextafter(window.silence, 0.0) if window.stretch.variance else 0.0
        variance = window.variance(request.paces, max(cut, silent))
        exposures.append(Exposure.of_loss(HAS_THE_REST, 1 / variance))
    if request.method is not Method.CUT:
        bound = request.noise_bound
        for adversary in request.adversaries:
            known = adversary.variance(window.sides(), adversary.place)
            exposures.append(Exposure.of_loss(adversary.name, bound, known**0.5))
    worst = max(exposure.loss for exposure in exposures)
    radius, wide = request.radius * request.scale, request.wide
    released = np.asarray(mechanism.released)[window.rows]
    return Finding(
        window.stretch,
        released.size,
        released.size - int(np.count_nonzero(released)),
        Guarantee(radius * worst**0.5, request.order),
        tuple(
            exposure
            if wide == 1
            else Exposure.of_loss(
                exposure.adversary, exposure.loss * wide**2, exposure.prior / wide
            )
            for exposure in exposures
        ),
        None if cut is None else cut + request.uncertain,
        window.sides(cut or 0.0),
    )
