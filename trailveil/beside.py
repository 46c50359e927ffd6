"""What releases at other times tell of a protected time, of this release and of those near it.

Under a Markov prior, what lies beyond a recording tells of it only where the person was, and how
fast, at the nearest moment. So a release that shares no time with another is counted as if it were
recorded there, for a minute, twenty times a second, and released as it is; one that is near and
short is taken as it was made, noise and all. What that adds, against who knows how people move, is
added to what the worst adversary loses.

What is days away is taken for two days away: numbers have no digits for more. It adds

    1 / Var(p | Z, X) - 1 / Var(p | Z)  =  c^T (V + R)^-1 c

to the precision of p, with Z what is released, X the places far before and after, V (diagonal)
their variances given the ends of the recording, R what p and Z leave of what the ends say of X, and
c how that moves with p. Only V depends on how far X is. So where V is k times as large, it adds at
most (v + r) / (k v + r) as much, v the least of V, r a bound of R: twice what people move in the
time of the recording and a day.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trailveil.composition import Release, joint_loss
from trailveil.errors import InvalidValue, NumericalError, Unavailable
from trailveil.gaussian import FloatArray
from trailveil.kernels import Kernel, stopped
from trailveil.ledger import Recorded
from trailveil.mechanism import Mechanism, no_noise
from trailveil.secrets import Secret
from trailveil.statespace import is_markov
from trailveil.trace import NANOSECONDS
from trailveil.ways import movement

EVERYTHING = 1e30
"""1 / m^2: the loss that counts where all may be told."""

# Seconds: releases this near are taken as they were made, up to so many rows together; of those
# this near, what a new one tells of their parts is counted.
_NEAR, _MOST_ROWS, _SAME_DAY = 3600.0, 1500, 86_400.0
# Seconds: what is farther off is taken for so near. Under a Markov prior the nearer moment tells
# more, and beside times of years the moments of a recording have no digits left.
_FAR = 2 * 86_400.0
# Seconds before an end at which it is as if a release was recorded and released as it is.
_STATE = np.arange(0.0, 60.0, 0.05)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A release, as far as it concerns others.

    begin, end: nanoseconds. mechanism: its own noise, at seconds since 1970; None for noise that
    is not kept. parts: (begin, end) that it protects, nanoseconds; epsilons: of each, alone.
    """

    begin: int
    end: int
    mechanism: Mechanism | None
    parts: tuple[tuple[int, int], ...]
    epsilons: tuple[float, ...]


Load = Callable[[Recorded], Piece]
"""The piece of a release in the ledger."""


def worst_beside(
    new: Piece, rows: Sequence[Recorded], load: Load, kernels: Sequence[Kernel], scale: float
) -> float:
    """Epsilon of the worst part of a release, and of those within a day of it; 0 for no part.

    rows: the releases before it. scale: epsilon for a loss of 1 / m^2.
    """
    found = [*_epsilons(new, [(one, load) for one in rows], kernels, scale)]
    for one in rows:
        if 0 <= _gap(one, new) < _SAME_DAY * NANOSECONDS:
            others = [(other, load) for other in rows if other.number != one.number]
            found += _epsilons(load(one), [*others, (new, lambda _: new)], kernels, scale)
    return max(found, default=0.0)


def _epsilons(
    target: Piece,
    others: Sequence[tuple[Recorded | Piece, Callable[..., Piece]]],
    kernels: Sequence[Kernel],
    scale: float,
) -> list[float]:
    """Epsilon of each part of one release, with all the others that share no time with it."""
    if not target.parts or target.mechanism is None:
        return list(target.epsilons)
    beside = [one for one in others if _gap(one[0], target) >= 0]
    if not beside:
        return list(target.epsilons)
    far = _FAR if all(is_markov(kernel) for kernel in kernels) else np.inf
    for near in (_NEAR, 0.0):  # where a near one cannot be taken as it is, as if it had no noise
        try:
            added = _added(target, beside, kernels, near, far)
        except (NumericalError, Unavailable, InvalidValue):
            continue
        if min(_gap(one[0], target) for one in beside) >= far * NANOSECONDS:
            added = added * _fallen(beside, target, kernels)
        return [e + scale * more for e, more in zip(target.epsilons, added, strict=True)]
    return [scale * EVERYTHING]


def _fallen(
    beside: Sequence[tuple[Recorded | Piece, Callable[..., Piece]]],
    target: Piece,
    kernels: Sequence[Kernel],
) -> float:
    """How much of what is told from two days away is told from where all of them are, at most."""
    lasts, away = target.end - target.begin, min(_gap(one[0], target) for one in beside)
    times = np.array([_FAR, away / NANOSECONDS, lasts / NANOSECONDS + _SAME_DAY])
    moved = [np.diagonal(movement(kernel, times)) for kernel in kernels]
    found = [(two + 2 * own) / (far + 2 * own) for two, far, own in moved if two > 0]
    return max([*found, 0.0]) if len(found) == len(moved) else 1.0


def _added(
    target: Piece,
    beside: Sequence[tuple[Recorded | Piece, Callable[..., Piece]]],
    kernels: Sequence[Kernel],
    near: float,
    far: float,
) -> FloatArray:
    """The loss (1 / m^2) that the others add to each part (k,), at most.

    near, far: seconds; what is less far off is taken as it is, what is farther as if it were not.
    """
    own = target.mechanism
    if own is None:
        raise InvalidValue("a release must have noise that is known, got none")
    earlier = [one for one in beside if one[0].end <= target.begin]
    later = [one for one in beside if one[0].end > target.begin]
    earlier.sort(key=lambda one: -one[0].end)
    later.sort(key=lambda one: one[0].begin)
    room = _MOST_ROWS - own.rows.size
    pieces, states = [], []
    for side, sign in ((earlier, -1.0), (later, 1.0)):
        taken, known = _side(side, target, sign, near, far, room)
        pieces += taken
        states.append(known)
        room -= sum(one.mechanism.rows.size for one in taken if one.mechanism is not None)
    exact = np.unique(np.concatenate(states))
    mechanisms = [one.mechanism for one in pieces if one.mechanism is not None]
    start = min(
        float(one[0]) for one in (own.times, exact, *(m.times for m in mechanisms)) if one.size
    )
    spans = [part for one in (target, *pieces) for part in one.parts if part[0] < part[1]]
    stays = [(a / NANOSECONDS - start, b / NANOSECONDS - start) for a, b in spans]
    mine = Release(replace(own, times=own.times - start), "own")
    others = [Release(replace(one, times=one.times - start), "other") for one in mechanisms]
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
    others: Iterable[tuple[Recorded | Piece, Callable[..., Piece]]],
    target: Piece,
    sign: float,
    near: float,
    far: float,
    room: int,
) -> tuple[list[Piece], FloatArray]:
    """Of one side: those taken as they were made, and when the next one is as if known (n,)."""
    taken: list[Piece] = []
    for one, load in others:
        if _gap(one, target) < near * NANOSECONDS:
            piece = load(one)
            if piece.mechanism is not None and piece.mechanism.rows.size <= room:
                taken.append(piece)
                room -= piece.mechanism.rows.size
                continue
        most = min(_gap(one, target) / NANOSECONDS, far)
        edge = (target.begin if sign < 0 else target.end) / NANOSECONDS + sign * most
        return taken, np.asarray(edge + sign * _STATE)
    return taken, np.empty(0)


def _gap(one: Recorded | Piece, other: Recorded | Piece) -> int:
    """Nanoseconds between two releases; below 0 where they share time."""
    return max(other.begin - one.end, one.begin - other.end)
