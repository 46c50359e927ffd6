"""How long nothing leaves around a visit, so that what is known beside it tells little of it.

A visit lasts from a to b. Nothing is released from a - before to b + after: a part of `uncertain`
seconds, of which nothing is assumed, and beyond it so long that what is known of both sides leaves
the variance that was asked for,

    1 / V(before - uncertain) + 1 / V(after - uncertain) <= 1 / variance,

V the variance of a displacement given the velocities at its ends (`trailveil.privacy.movement`).
What is public already tells more (`trailveil.release.public`). The silence before a visit is past
by then and cannot grow, so `after` does, or nothing can be hidden any more.

The slowest pace of a way that goes on (`Paces.middle`) is reckoned with; behind a stay of three
minutes, that of an end.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trailveil.errors import Refused
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.movement import LONGEST_CUT, Movement, least_cut
from trailveil.release.public import Around, Position
from trailveil.release.request import Paces, Request
from trailveil.traces.stops import ABSENCE
from trailveil.traces.trace import NANOSECONDS

_STAY = 180 * NANOSECONDS
# Seconds of silence after a visit that a stated delay may lead to at most, and times the least: the
# shorter the one, the longer the other, up to a day.
_LONGEST_AFTER, _TIMES = 7200, 2


def checked_delay(delay: float, request: Request, asked: Iterable[tuple[float, float]]) -> None:
    """Refuse a delay that is too short for places and stays; the least that is long enough is said.

    delay: seconds. asked: of each of them, the variance (m^2) and the least seconds of silence.
    """
    middle, shortest = request.paces.middle, 0.0
    for variance, least in asked:
        after = max(_LONGEST_AFTER, _TIMES * least_cut(middle, variance, 2))
        most = 1 / middle.bridged(min(after, LONGEST_CUT))  # what is known after a visit, at least
        one_side = 1 / max(1 / variance - most, 1e-30)
        cut = least_cut(middle, one_side, 1) + request.uncertain
        shortest = max(shortest, math.ceil(max(cut, least)))
    if delay < shortest:
        raise Refused(
            f"the delay must be at least {shortest:.0f} s, got less: by then it is known whether "
            "you come to a place, and what leaves after a visit need not wait for hours; state "
            f"--delay {shortest:.0f} or more (without --delay, it is what makes the cuts least), a "
            "faster --activity or --floor, or a smaller radius"
        )


@dataclass(frozen=True, slots=True)
class Margins:
    """Nanoseconds around a visit in which nothing is released, and what all else tells of it.

    before: it begins. stay, passing: after the end of one of at least three minutes, and of any
    other. information: 1 / m^2, at most. variance: square metres that must be left. uncertain:
    seconds around a visit that belong to it.
    """

    before: int
    stay: int
    passing: int
    information: float
    variance: float
    paces: Paces
    uncertain: int

    @classmethod
    def of(cls, request: Request, variance: float, least: float, delay: float | None) -> "Margins":
        """The least for a variance (m^2), and at least so many seconds; delay: as of `Cutting`."""
        middle, sure = request.paces.middle, request.uncertain
        before = max(least_cut(middle, variance, 2) + sure, least)
        if delay is not None and delay < before:
            before = max(float(int(delay)), least)
        both = [_after(pace, variance, before - sure) for pace in (request.paces.end, middle)]
        after = [max(seconds + sure, least, ABSENCE - before) for seconds, _ in both]
        begin, *ends = (round(seconds * NANOSECONDS) for seconds in (before, *after))
        most = max(information for _, information in both)
        return cls(begin, ends[0], ends[1], most, variance, request.paces, sure)

    def after(self, begin: int, end: int, public: Sequence[Position]) -> int:
        """Nanoseconds of silence after a visit from begin to end (ns), by what is public already.

        Raises Refused where nothing can be hidden of it any more.
        """
        stays = end - begin >= _STAY
        least = self.stay if stays else self.passing
        around = Around.of(public, begin, end, self.uncertain)
        if not around:
            return least
        pace = self.paces.end if stays else self.paces.middle
        before = self.before / NANOSECONDS - self.uncertain

        def known(seconds: float) -> float:
            return around.beyond(pace, (before, seconds))

        shortest = max(0, math.ceil(least / NANOSECONDS - self.uncertain))
        if known(LONGEST_CUT) > 1 / self.variance:
            raise self._nothing_hidden(1 / known(LONGEST_CUT))
        whole = range(shortest, LONGEST_CUT + 1)
        cut = whole[bisect_left(whole, -1 / self.variance, key=lambda h: -known(h))]
        return max(least, (cut + self.uncertain) * NANOSECONDS)

    def _nothing_hidden(self, variance: float) -> Refused:
        """variance: square metres that are left of a visit."""
        circle = CIRCLE_68 * variance**0.5
        known = f"within {circle:,.0f} m 68 times in 100" if variance > 0 else "exactly"
        wait = math.ceil((self.before / NANOSECONDS + self.uncertain) / 60)
        return Refused(
            "nothing can be hidden any more: a stream must not come from a place that is public, "
            f"got one that what you imported, or an earlier run, tells {known}; begin again "
            f"{wait} min or more after that"
        )


def _after(pace: Movement, variance: float, before: float) -> tuple[float, float]:
    """Seconds beyond the window after a visit, given those before it, and what both tell."""
    known = 1 / pace.bridged(before)
    after = least_cut(pace, 1 / (1 / variance - known), 1)
    return after, known + 1 / pace.bridged(after)
