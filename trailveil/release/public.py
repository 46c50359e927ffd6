"""Positions that are public already, and what they tell of a part that is to be hidden.

A position is known to be exact, or to some deviation. Each false track proves a bound of what an
adversary is left with (docs/paper.md, "What is public already"): here it is 1 all over the window,
and on each side it fades to 0 where a position is known or where the recording is released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from trailveil.errors import Refused
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.movement import LONGEST_CUT, Movement
from trailveil.traces.trace import NANOSECONDS, Trace


class Position(NamedTuple):
    """A time at which a position is public. when: nanoseconds.

    deviation: metres per coordinate to which it is known, 0 where it is exact.
    """

    when: int
    deviation: float


Side = tuple[tuple[float, float], ...]
"""Seconds outward from a window, and metres to which a position there is known; nearest first."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is public in a window, and on both sides of it.

    inside: 1 / m^2, what positions in it tell together. sides: before and after it.
    """

    inside: float = 0.0
    sides: tuple[Side, Side] = ((), ())

    @classmethod
    def of(cls, positions: Sequence[Position], begin: int, end: int, uncertain: float) -> "Around":
        """Around a part from begin to end (ns). uncertain: seconds that belong to it."""
        if not positions:
            return NOTHING_PUBLIC
        sure, inside = round(uncertain * NANOSECONDS), 0.0
        before: list[tuple[float, float]] = []
        after: list[tuple[float, float]] = []
        for when, deviation in positions:
            if when < begin - sure:
                before.append(((begin - sure - when) / NANOSECONDS, deviation))
            elif when > end + sure:
                after.append(((when - end - sure) / NANOSECONDS, deviation))
            else:
                inside += _precision(deviation)
        return cls(inside, (_nearest(before), _nearest(after)))

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return self.inside > 0 or any(self.sides)

    def precision(self, movement: Movement, seconds: float, recorded: tuple[bool, bool]) -> float:
        """1 / m^2 to which the place of the window can be known, at most.

        seconds: outward from which on all of the recording is released, on sides where it is.
        """
        parts = zip(self.sides, recorded, strict=True)
        return self.inside + sum(_of_side(movement, side, seconds, so) for side, so in parts)

    def beyond(self, movement: Movement, seconds: tuple[float, float]) -> float:
        """The same where all is released on both sides, from other seconds on before and after."""
        parts = zip(self.sides, seconds, strict=True)
        return self.inside + sum(_of_side(movement, side, away, True) for side, away in parts)


NOTHING_PUBLIC = Around()


def _precision(deviation: float) -> float:
    return deviation**-2 if deviation > 0 else inf


def _nearest(side: list[tuple[float, float]]) -> Side:
    """Positions as far as they matter: beyond an exact one, none does. Nearest first."""
    side.sort()
    exact = next((i for i, (_, deviation) in enumerate(side) if deviation == 0), len(side))
    return tuple(pair for pair in side[: exact + 1] if pair[0] < LONGEST_CUT)


def _of_side(movement: Movement, side: Side, seconds: float, recorded: bool) -> float:
    """What one side tells, at most: the cheapest of some false tracks.

    Each fades to 0 at one of the positions or where the recording is released, and is at most 1
    at all positions before that.
    """
    passed, costs = 0.0, []
    for away, deviation in side:
        if recorded and away >= seconds:
            break
        costs.append(passed + _fading(movement, away))
        passed += _precision(deviation)
    costs.append(passed + (_fading(movement, seconds) if recorded else 0.0))
    return min(costs)


def _fading(movement: Movement, seconds: float) -> float:
    """What it costs to fade from 1 to 0 within some seconds."""
    left = movement.bridged(seconds) if seconds > 0 else 0.0
    return 1 / left if left > 0 else inf


def relevant(
    positions: Sequence[Position], parts: Sequence[tuple[int, int]], uncertain: float
) -> tuple[Position, ...]:
    """Those of positions that tell anything of parts (begin, end), nanoseconds."""
    sure, chosen = round(uncertain * NANOSECONDS), set()
    for begin, end in parts:
        for side in (
            sorted((p for p in positions if p.when < begin - sure), reverse=True),
            sorted(p for p in positions if p.when > end + sure),
        ):
            for position in side:
                edge = max(begin - position.when, position.when - end)
                if edge > LONGEST_CUT * NANOSECONDS + sure:
                    break
                chosen.add(position)
                if position.deviation == 0:
                    break
        inside = [p for p in positions if begin - sure <= p.when <= end + sure]
        exact = [p for p in inside if p.deviation == 0]
        chosen |= {exact[0]} if exact else set(inside)
    return tuple(sorted(chosen))


def check_noise(
    trace: Trace,
    path_from: float | None,
    positions: Sequence[Position],
    parts: Sequence[tuple[int, int]],
) -> None:
    """Refuse noise that is not proved against what is public already.

    path_from: seconds from a part from which on an adversary knows the path; None for none. parts:
    (begin, end), nanoseconds. Such an adversary knows all positions there, as far as the recording
    goes on. Nothing is proved against others.
    """
    first, last = int(trace.times[0]), int(trace.times[-1])
    reach = round((path_from or 0.0) * NANOSECONDS)
    day = LONGEST_CUT * NANOSECONDS
    for when, _ in positions:
        spans = parts or [(first, last)]
        nearest = min(max(begin - when, when - end, 0) for begin, end in spans)
        known = path_from is not None and parts and nearest >= reach and first <= when <= last
        if nearest < day and not known:
            raise Refused(
                "noise must be proved against what is public already, got a position that is "
                "nearer to a protected part than the noise reckons with, or beyond the recording: "
                "try --mechanism cut, which reckons with it, or state parts that are farther from "
                "that time"
            )


def nothing_hidden(around: Around, variance: float) -> Refused:
    """What is said of a part that is public already. variance: square metres that are left."""
    circle = CIRCLE_68 * variance**0.5  # as it is stated, 68 times in 100
    left = (
        f"tells it within {circle:,.0f} m 68 times in 100" if variance > 0 else "tells it exactly"
    )
    where = "in it" if around.inside > 0 else "beside it"
    return Refused(
        f"a protected part must be of a place that is not public, got one of which what is public "
        f"already {left}, by a position {where}: nothing more can be hidden of it; state parts "
        "that are farther from that time, or a smaller --radius"
    )
