"""What releases tell together, by their joint law: of one recording, and of times near each other.

What is promised of a part is proved by a false track that is 1 around it and 0 from some seconds on
(of a cut: where something is released). It costs the same to somebody who knows all that lies
farther. On a side on which the recording has nothing, the track stays 1: let it fade to 0 before
the next release, and it costs 1 / V more, V the variance of a displacement in that time, given the
velocities at both ends (docs/paper.md). What is nearer is computed, against an adversary who knows
all movement in the window in which nothing is assumed of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np
from scipy.linalg import block_diag

from trailveil.errors import InvalidValue, NumericalError, Unavailable
from trailveil.gp.gaussian import FloatArray, largest_eigenvalue
from trailveil.gp.kernels import Kernel, stopped
from trailveil.ledger import Book, LedgerRow
from trailveil.ledger.marks import MOST_JOINT, kernels_for, own_noise, unnamed_parts
from trailveil.ledger.places import EVERYTHING, epsilon_of
from trailveil.ledger.recorded import reach_of, steady_of, unpacked
from trailveil.ledger.relatives import Relatives, finest_alone, finest_of
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.movement import Matern, Movement, movement_of, slowest_of
from trailveil.privacy.secrets import Secret
from trailveil.privacy.window_loss import window_loss
from trailveil.release.plan import Plan
from trailveil.release.request import Request
from trailveil.traces.retiming import SHIFTED_TO
from trailveil.traces.trace import NANOSECONDS

# What is added without a computation is at most this share of what a part alone tells.
_LITTLE = 0.05
# Seconds: of parts of releases this near, what a new one tells is counted. With a shorter gap than
# the second, as long as a cut on both sides takes, a person may have gone on through a place.
_SAME_DAY, _ONE_WAY = 86_400.0, 3600.0
# An epsilon from which on a place is as good as told: no more digits are computed.
_DISCLOSED = 1e3
# Square metres: of what the ledger keeps of independent noise, no more is counted.
_MEASURED = 4.0


Span = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class NearbyRelease:
    """A release, as far as it concerns others.

    begin, end: nanoseconds. mechanism: its own noise, at seconds since 1970; None for noise that
    is not kept. parts: (begin, end) that it protects, nanoseconds; epsilons: of each, alone.
    steady: seconds around each in which nothing is assumed. reach: seconds from a part to where its
    false track is 0, on a side that is recorded; infinite where that is not known.
    """

    begin: int
    end: int
    mechanism: Mechanism | None
    parts: tuple[tuple[int, int], ...]
    epsilons: tuple[float, ...]
    steady: float = inf
    reach: float = inf


Nearby = tuple[LedgerRow | NearbyRelease, Callable[..., NearbyRelease]]
"""Another release, by when it was, and what gives all of it."""
Load = Callable[[LedgerRow], NearbyRelease]
"""The piece of a release in the ledger."""


def of_one_recording(book: Book, numbers: Sequence[int], plan: Plan) -> tuple[float, float]:
    """What a release and those that overlap it tell more of one place, and of any time: 1 / m^2.

    Everything, where that is not computed: see the module.
    """
    request = plan.request
    everything = EVERYTHING, EVERYTHING
    stored = [unpacked(book.blob(number)) for number in numbers]
    if (
        plan.common
        or plan.mechanism.process is not None
        or any(release.roots for release in stored)
    ):
        return everything
    first, last = int(plan.trace.times[0]), int(plan.trace.times[-1])
    others = [book.rows[number - 1] for number in numbers]
    if any(
        other.end <= first
        or other.begin >= last
        or (other.begin == SHIFTED_TO and other.end != last)
        for other in others
    ):
        return everything  # of the same recording, as if at other times
    latest = replace(plan.mechanism, times=plan.trace.times / NANOSECONDS)
    noises = [latest, *(release.mechanism for release in stored)]
    parts = [(finding.stretch.begin, finding.stretch.end) for finding in plan.findings]
    parts += [part for release in stored for part in release.parts]
    mechanisms = [noise for noise in noises if noise is not None]
    rows = sum(mechanism.rows.size for mechanism in mechanisms)
    sure = max(steady_of(plan), *(release.proved[0] for release in stored))
    if len(mechanisms) < len(noises) or rows > MOST_JOINT or not parts or sure == inf:
        return everything
    shift = min(first, *(int(release.times[0]) for release in stored)) / NANOSECONDS
    releases = [
        Release(replace(mechanism, times=mechanism.times - shift)) for mechanism in mechanisms
    ]
    spans = [(a / NANOSECONDS - shift, b / NANOSECONDS - shift) for a, b in parts]
    told = [_of_windows(releases, _wider(spans, s), request) for s in {request.uncertain, sure}]
    one_place, worst = (min(max(each), EVERYTHING) for each in zip(*told, strict=True))
    return one_place * request.wide**2, worst * request.wide**2


def _wider(spans: Sequence[Span], seconds: float) -> list[Span]:
    return [(begin - seconds, end + seconds) for begin, end in spans]


def _of_windows(
    releases: Sequence[Release], spans: Sequence[Span], request: Request
) -> tuple[float, float]:
    """What releases of one recording tell of one place and of any window: 1 / m^2.

    As if nobody moved in a window, and as if all its movement were known.
    """
    windows, kernels = stopped(spans), kernels_for(request)
    worst, one_place, radius = 0.0, 0.0, request.radius * request.wide
    moments = [begin for begin, _ in windows.windows]
    for kernel in kernels:
        still = kernel.warp(windows)
        try:
            loss = joint_loss(still, releases, Secret.at(moments)).matrix
            most = epsilon_of(radius, largest_eigenvalue(loss), request.order)
            if most > _DISCLOSED:
                return inf, inf
            singles = [
                largest_eigenvalue(joint_loss(still, releases, Secret.at([moment])).matrix)
                for moment in moments
            ]
        except (NumericalError, Unavailable, InvalidValue):
            return inf, inf
        worst, one_place = max(worst, *singles), max(one_place, float(np.sum(loss)))
    movements = [movement_of(kernel) for kernel in kernels]
    for window in spans:
        seen = _Observed(window)
        for release in releases:
            seen.add(release.mechanism, 0.0)
        worst = max(worst, seen.loss([each for each in movements if isinstance(each, Movement)]))
    return max(worst, one_place), worst


def with_nearby(book: Book, plan: Plan, subject: str, versions: Relatives, scale: float) -> float:
    """Epsilon of the worst protected time of this release and of those near it.

    versions: of its recording, if all that is out of it are such: the finest stands for all.
    scale: epsilon for a loss of 1 / m^2.
    """
    rows = finest_alone(book, [row for row in book.standing(subject) if not row.series])
    finest = finest_of(book, versions.finer)
    kernels = kernels_for(plan.request)
    if finest is not None:
        others = [row for row in rows if row.number not in {*versions.finer, *versions.coarser}]
        return worst_nearby(
            _load(book, book.rows[finest - 1]), others, partial(_load, book), kernels, scale
        )
    rows = [row for row in rows if row.number not in versions.coarser]
    first = int(plan.trace.times[0])
    parts = unnamed_parts(plan)  # the others are counted for their places
    spans = [part.stretch.seconds(plan.trace) for part in parts]
    mechanism = own_noise(plan, spans)
    new = NearbyRelease(
        first,
        int(plan.trace.times[-1]),
        replace(mechanism, times=mechanism.times + first / NANOSECONDS)
        if mechanism.process is None
        else None,
        tuple((part.stretch.begin, part.stretch.end) for part in parts),
        tuple(part.guarantee.epsilon for part in parts),
        float(steady_of(plan)),
        reach_of(plan),
    )
    return worst_nearby(new, rows, partial(_load, book), kernels, scale)


def _load(book: Book, row: LedgerRow) -> NearbyRelease:
    """A release in the ledger, as far as it concerns others."""
    stored = unpacked(book.blob(row.number))
    parts = tuple(stored.unnamed)
    epsilons = (row.epsilon,) * len(parts)
    return NearbyRelease(row.begin, row.end, stored.mechanism, parts, epsilons, *stored.proved)


def worst_nearby(
    new: NearbyRelease,
    rows: Sequence[LedgerRow],
    load: Load,
    kernels: Sequence[Kernel],
    scale: float,
) -> float:
    """Epsilon of the worst part of a release, and of those within a day of it; 0 for no part.

    rows: the releases before it. scale: epsilon for a loss of 1 / m^2.
    """
    epsilons = [*_epsilons(new, [(row, load) for row in rows], kernels, scale)]
    for row in rows:
        if 0 <= _gap(row, new) < _SAME_DAY * NANOSECONDS:
            others = [(other, load) for other in rows if other.number != row.number]
            epsilons += _epsilons(load(row), [*others, (new, lambda _: new)], kernels, scale)
    return max(epsilons, default=0.0)


def _epsilons(
    target: NearbyRelease,
    others: Sequence[Nearby],
    kernels: Sequence[Kernel],
    scale: float,
) -> list[float]:
    """Epsilon of each part of one release, with all the others that share no time with it."""
    if not target.parts or target.mechanism is None:
        return list(target.epsilons)
    nearby = [other for other in others if _gap(other[0], target) >= 0]
    if not nearby:
        return list(target.epsilons)
    movements = [movement_of(kernel) for kernel in kernels]
    epsilons = []
    for part, epsilon in zip(target.parts, target.epsilons, strict=True):
        more = _faded(target, part, nearby, movements)
        nearest = min(_gap(other, target) for other, _ in nearby)
        one_way = target.reach == 0 and nearest < _ONE_WAY * NANOSECONDS
        if one_way or scale * more > _LITTLE * epsilon:
            both = _together(target, part, nearby, movements)
            alone = _together(target, part, [], movements) if both < inf else 0.0
            joint = max(both - epsilon / scale, both - alone)
            more = joint if one_way else min(joint, more)
        epsilons.append(epsilon + scale * min(more, EVERYTHING))
    return epsilons


def _faded(
    target: NearbyRelease,
    part: tuple[int, int],
    nearby: Sequence[Nearby],
    movements: Sequence[Movement | Matern],
) -> float:
    """The loss (1 / m^2) that the others add to a part, at most, by its false track."""
    if target.mechanism is None:
        return inf
    times = target.mechanism.times[target.mechanism.rows]
    begin, end = (time / NANOSECONDS for time in part)
    before = [begin - other.end / NANOSECONDS for other, _ in nearby if other.end <= target.begin]
    after = [other.begin / NANOSECONDS - end for other, _ in nearby if other.begin >= target.end]
    recorded = times < begin - target.steady, times > end + target.steady
    added = 0.0
    for nearest, is_recorded in zip((before, after), recorded, strict=True):
        seconds = min(nearest, default=inf)
        if seconds < inf and not np.any(is_recorded):
            fading = seconds - target.steady
            variances = [each.given_path(fading, 1) for each in movements if fading > 0]
            added += 1 / min(variances) if variances else inf
        elif seconds < target.reach and seconds < inf:
            added = inf
    return added


def _together(
    target: NearbyRelease,
    part: tuple[int, int],
    nearby: Sequence[Nearby],
    movements: Sequence[Movement | Matern],
) -> float:
    """The loss (1 / m^2) of a part with others, at most; infinite where it is not computed."""
    start = part[0] / NANOSECONDS
    window = -target.steady, (part[1] - part[0]) / NANOSECONDS + target.steady
    seen = _Observed(window, target.reach)
    if target.mechanism is None or not np.isfinite(target.steady):
        return inf
    seen.add(target.mechanism, start)
    for other, load in sorted(nearby, key=lambda pair: _gap(pair[0], target)):
        begin, end = other.begin / NANOSECONDS - start, other.end / NANOSECONDS - start
        if end <= seen.known[0] or begin >= seen.known[1]:
            continue
        mechanism = load(other).mechanism
        if mechanism is None or mechanism.process is not None:
            seen.know(np.array([begin, end]))
        else:
            seen.add(mechanism, start)
    return seen.loss(movements)


class _Observed:
    """What is released near a window: rows with noise, and when all is known on either side."""

    def __init__(self, window: tuple[float, float], reach: float = inf) -> None:
        self.window, self.known = window, (-inf, inf)
        # Beyond its reach, noise hides nothing of the part: what is there counts as exact.
        self._near = -reach, window[0] + window[1] + reach
        self._pieces: list[tuple[FloatArray, FloatArray, FloatArray]] = []

    def know(self, times: FloatArray) -> None:
        """At these times, place and velocity are known."""
        middle = (self.window[0] + self.window[1]) / 2
        before, after = times[times < middle], times[times >= middle]
        self.known = (
            max(self.known[0], float(before.max(initial=-inf))),
            min(self.known[1], float(after.min(initial=inf))),
        )

    def add(self, mechanism: Mechanism, start: float) -> None:
        """A release; start: of its times, what 0 is here. Rows that little moves count as exact."""
        rows = mechanism.rows
        times, factor = mechanism.times[rows] - start, mechanism.factor[rows]
        moved = np.any(factor != 0, axis=1) | (mechanism.floor > 0)
        moved &= (times > self._near[0]) & (times < self._near[1])
        self.know(times[~moved])
        independent = np.minimum(mechanism.independent_variances[rows], _MEASURED)
        self._pieces.append((times[moved], factor[moved], (independent + mechanism.floor)[moved]))

    def loss(self, movements: Sequence[Movement | Matern]) -> float:
        """The loss (1 / m^2) against the worst of the movements."""
        pieces = [piece for piece in self._pieces if piece[0].size]
        times = np.concatenate([np.empty(0), *(times for times, _, _ in pieces)])
        variances = np.concatenate([np.empty(0), *(alone for _, _, alone in pieces)])
        factor = block_diag(*(factor for _, factor, _ in pieces)) if pieces else np.empty((0, 0))
        moving = [movement for movement in movements if isinstance(movement, Movement)]
        if len(moving) < len(movements):
            return inf
        slowest = slowest_of(moving)
        return window_loss(slowest, self.window, times, factor, variances, self.known)


def _gap(first: LedgerRow | NearbyRelease, other: LedgerRow | NearbyRelease) -> int:
    """Nanoseconds between two releases; below 0 where they share time."""
    return max(other.begin - first.end, first.begin - other.end)
