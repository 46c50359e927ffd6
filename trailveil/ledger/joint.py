"""What releases tell together, by their joint law: of one recording, and of times near each other.

Under a Markov prior, what lies beyond a recording tells of it only where the person was, and how
fast, at the nearest moment. So a release that shares no time with another is counted as if it were
recorded there, for a minute, twenty times a second, and released as it is; one that is near and
short is taken as it was made, noise and all. What that adds, against who knows how people move, is
added to what the worst adversary loses.

Most of it takes no computation. What is promised of a part is proved by a false track that is 1
around it and 0 from some seconds on (of a cut: where something is released). It costs the same to
somebody who knows all that lies farther. On a side on which the recording has nothing, the track
stays 1: let it fade to 0 before the next release, and it costs 1 / V more, V the variance of a
displacement in that time, given the velocities at both ends (docs/paper.md). What is nearer is
computed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np

from trailveil.errors import InvalidValue, NumericalError, Unavailable
from trailveil.gp.gaussian import FloatArray, largest_eigenvalue
from trailveil.gp.kernels import IntegratedOU, Kernel, stopped
from trailveil.gp.statespace import is_markov
from trailveil.ledger import Book, LedgerRow
from trailveil.ledger.marks import MOST_JOINT, kernels_for, own_noise, unnamed_parts
from trailveil.ledger.places import EVERYTHING, epsilon_of
from trailveil.ledger.recorded import reach_of, unpacked
from trailveil.ledger.relatives import Relatives, finest_alone, finest_of
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.movement import Movement
from trailveil.privacy.secrets import Secret
from trailveil.release.plan import Plan
from trailveil.traces.retiming import SHIFTED_TO
from trailveil.traces.trace import NANOSECONDS

# Seconds: releases this near are taken as they were made, up to so many rows together; of those
# this near, what a new one tells of their parts is counted.
_NEAR, _MOST_ROWS, _SAME_DAY = 3600.0, MOST_JOINT, 86_400.0
# Seconds: what is farther off is taken for so near. Under a Markov prior the nearer moment tells
# more, and beside times of years the moments of a recording have no digits left.
_FAR = 2 * 86_400.0
# What is added without a computation is at most this share of what a part alone tells.
_LITTLE = 0.05
# An epsilon from which on a place is as good as told: no more digits are computed.
_DISCLOSED = 1e3
# Seconds before an end at which it is as if a release was recorded and released as it is.
_STATE = np.arange(0.0, 60.0, 0.05)


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
    if len(mechanisms) < len(noises) or rows > MOST_JOINT or not parts:
        return everything
    shift = min(first, *(int(release.times[0]) for release in stored)) / NANOSECONDS
    releases = [
        Release(replace(mechanism, times=mechanism.times - shift)) for mechanism in mechanisms
    ]
    sure = shift - request.uncertain, shift + request.uncertain
    spans = [(a / NANOSECONDS, b / NANOSECONDS) for a, b in parts]
    # Of any movement within the time that is uncertain, no more is told than of none.
    windows = stopped([(a - sure[1], b - sure[0]) for a, b in spans])
    worst, one_place, radius = 0.0, 0.0, request.radius * request.wide
    moments = [begin for begin, _ in windows.windows]
    for kernel in kernels_for(request):
        still = kernel.warp(windows)
        try:
            loss = joint_loss(still, releases, Secret.at(moments)).matrix
            if epsilon_of(radius, largest_eigenvalue(loss), request.order) > _DISCLOSED:
                return everything
            singles = [
                largest_eigenvalue(joint_loss(still, releases, Secret.at([moment])).matrix)
                for moment in moments
            ]
        except (NumericalError, Unavailable, InvalidValue):
            return everything
        worst, one_place = max(worst, *singles), max(one_place, float(np.sum(loss)))
    return one_place * request.wide**2, worst * request.wide**2


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
        float(plan.request.steady),
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
    others: Sequence[tuple[LedgerRow | NearbyRelease, Callable[..., NearbyRelease]]],
    kernels: Sequence[Kernel],
    scale: float,
) -> list[float]:
    """Epsilon of each part of one release, with all the others that share no time with it."""
    if not target.parts or target.mechanism is None:
        return list(target.epsilons)
    nearby = [other for other in others if _gap(other[0], target) >= 0]
    if not nearby:
        return list(target.epsilons)
    faded = [scale * _faded(target, part, nearby, kernels) for part in target.parts]
    if all(more <= _LITTLE * e for e, more in zip(target.epsilons, faded, strict=True)):
        return [e + more for e, more in zip(target.epsilons, faded, strict=True)]
    far = _FAR if all(is_markov(kernel) for kernel in kernels) else inf
    for near in (_NEAR, 0.0):  # where a near one cannot be taken as it is, as if it had no noise
        try:
            added = _added(target, nearby, kernels, near, far)
        except (NumericalError, Unavailable, InvalidValue):
            continue
        return [e + scale * more for e, more in zip(target.epsilons, added, strict=True)]
    return [scale * EVERYTHING]


def _faded(
    target: NearbyRelease,
    part: tuple[int, int],
    nearby: Sequence[tuple[LedgerRow | NearbyRelease, Callable[..., NearbyRelease]]],
    kernels: Sequence[Kernel],
) -> float:
    """The loss (1 / m^2) that the others add to a part, at most, by its false track."""
    movements = [_movement(kernel) for kernel in kernels]
    if target.mechanism is None or None in movements:
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
            variances = [
                movement.bridged(fading) for movement in movements if movement and fading > 0
            ]
            added += 1 / min(variances) if variances else inf
        elif seconds < target.reach and seconds < inf:
            added = inf
    return added


def _movement(kernel: Kernel) -> Movement | None:
    """A prior as a movement with a level; None for another one."""
    terms = [term for term in kernel.terms() if not (term.is_white() or term.level_variance())]
    if len(terms) != 1 or not isinstance(terms[0], IntegratedOU):
        return None
    return Movement(terms[0].std, terms[0].time_constant)


def _added(
    target: NearbyRelease,
    nearby: Sequence[tuple[LedgerRow | NearbyRelease, Callable[..., NearbyRelease]]],
    kernels: Sequence[Kernel],
    near: float,
    far: float,
) -> FloatArray:
    """The loss (1 / m^2) that the others add to each part (k,), at most.

    near, far: seconds; what is less far off is taken as it is, what is farther as if it were not.
    """
    noise = target.mechanism
    if noise is None:
        raise InvalidValue("a release must have noise that is known, got none")
    earlier = [pair for pair in nearby if pair[0].end <= target.begin]
    later = [pair for pair in nearby if pair[0].end > target.begin]
    earlier.sort(key=lambda pair: -pair[0].end)
    later.sort(key=lambda pair: pair[0].begin)
    room = _MOST_ROWS - noise.rows.size
    pieces, states = [], []
    for side, sign in ((earlier, -1.0), (later, 1.0)):
        taken, known = _side(side, target, sign, near, far, room)
        pieces += taken
        states.append(known)
        room -= sum(piece.mechanism.rows.size for piece in taken if piece.mechanism is not None)
    exact = np.unique(np.concatenate(states))
    mechanisms = [piece.mechanism for piece in pieces if piece.mechanism is not None]
    start = min(
        float(moments[0])
        for moments in (noise.times, exact, *(m.times for m in mechanisms))
        if moments.size
    )
    spans = [part for release in (target, *pieces) for part in release.parts if part[0] < part[1]]
    stays = [(a / NANOSECONDS - start, b / NANOSECONDS - start) for a, b in spans]
    mine = Release(replace(noise, times=noise.times - start), "own")
    others = [
        Release(replace(mechanism, times=mechanism.times - start), "other")
        for mechanism in mechanisms
    ]
    if exact.size:
        others.append(Release(no_noise(exact - start), "other"))
    places = [Secret.at(a / NANOSECONDS - start) for a, _ in target.parts]
    more = np.zeros(len(places))
    for kernel in kernels:
        still = kernel.warp(stopped(stays)) if stays else kernel
        for i, place in enumerate(places):
            alone = joint_loss(still, [mine], place).matrix[0, 0]
            both = joint_loss(still, [mine, *others], place).matrix[0, 0]
            more[i] = max(more[i], both - alone)
    return more


def _side(
    others: Iterable[tuple[LedgerRow | NearbyRelease, Callable[..., NearbyRelease]]],
    target: NearbyRelease,
    sign: float,
    near: float,
    far: float,
    room: int,
) -> tuple[list[NearbyRelease], FloatArray]:
    """Of one side: those taken as they were made, and when the next one is as if known (n,)."""
    taken: list[NearbyRelease] = []
    for other, load in others:
        if _gap(other, target) < near * NANOSECONDS:
            piece = load(other)
            if piece.mechanism is not None and piece.mechanism.rows.size <= room:
                taken.append(piece)
                room -= piece.mechanism.rows.size
                continue
        most = min(_gap(other, target) / NANOSECONDS, far)
        edge = (target.begin if sign < 0 else target.end) / NANOSECONDS + sign * most
        return taken, np.asarray(edge + sign * _STATE)
    return taken, np.empty(0)


def _gap(first: LedgerRow | NearbyRelease, other: LedgerRow | NearbyRelease) -> int:
    """Nanoseconds between two releases; below 0 where they share time."""
    return max(other.begin - first.end, first.begin - other.end)
