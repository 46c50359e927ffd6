"""Exact fixes, late, but for those near a visit: the cut of a recording, decided as it goes on.

A visit lasts from a to b. Nothing is released from a - before to b + after: a part of `uncertain`
seconds, of which nothing is assumed, and beyond it so long that what is known of both sides leaves
the variance that was asked for,

    1 / V(before - uncertain) + 1 / V(after - uncertain) <= 1 / variance,

V the variance of a displacement given the velocities at its ends (`trailveil.privacy.movement`).
A fix of time t leaves when one later than t + delay comes, and delay >= before. Whether a visit
begins by t + before is known by then. So what leaves is what this rule would release of the whole
recording, at a lag that is always the same: to hesitate tells nothing more. What the pauses tell is
what the times of such a cut tell, see docs/guarantees.md, "Times that are chosen by place".

The slowest pace of a way that goes on (`Paces.middle`) is reckoned with; behind a stay of three
minutes, that of an end. Where the stream begins, also after a crash, it is as if a visit of any of
the places had just ended. At the end, what was not yet released never is.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trailveil.errors import Refused
from trailveil.ledger import NO_ID, Ledger
from trailveil.ledger.places import load_places
from trailveil.live.counting import Visits
from trailveil.live.lines import Fix
from trailveil.privacy.movement import Movement, least_cut
from trailveil.release.request import Request
from trailveil.traces.stops import ABSENCE
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import Circle, visits

_STAY = 180 * NANOSECONDS
_NEVER = -(2**63)
_MOST_PENDING = 100_000
"""Fixes that wait at most: more a second than any receiver has; further ones are left out."""


@dataclass(frozen=True, slots=True)
class Margins:
    """Nanoseconds around a visit in which nothing is released, and what the rest tells of it.

    before: it begins. stay, passing: after the end of one of at least three minutes, and of any
    other. told: 1 / m^2, at most.
    """

    before: int
    stay: int
    passing: int
    told: float

    @classmethod
    def of(cls, request: Request, variance: float, least: float, delay: float | None) -> "Margins":
        """The least for a variance (m^2), and at least so many seconds; delay: as of `Cutting`.

        Raises Refused for a delay that is too short.
        """
        middle, sure = request.paces.middle, request.uncertain
        before = max(least_cut(middle, variance, 2) + sure, least)
        if delay is not None and delay < before:
            shortest = max(least_cut(middle, variance, 1) + sure + 1, least)
            if delay < shortest:
                raise Refused(
                    f"the delay must be at least {shortest:,.0f} s, got less: by then it is known "
                    "whether you come to a place; state a longer --delay, a faster --activity or a "
                    "smaller radius"
                )
            before = max(float(int(delay)), least)
        both = [cls._after(pace, variance, before - sure) for pace in (request.paces.end, middle)]
        after = [max(seconds + sure, least, ABSENCE - before) for seconds, _ in both]
        begin, *ends = (round(seconds * NANOSECONDS) for seconds in (before, *after))
        return cls(begin, ends[0], ends[1], max(told for _, told in both))

    @staticmethod
    def _after(pace: Movement, variance: float, before: float) -> tuple[float, float]:
        """Seconds beyond the window after a visit, given those before it, and what both tell."""
        known = 1 / pace.bridged(before)
        after = least_cut(pace, 1 / (1 / variance - known), 1)
        return after, known + 1 / pace.bridged(after)


@dataclass(slots=True, eq=False, repr=False)
class _Watched:
    """A place, or announced stays (circle: None), and the latest visit of it.

    silent: until when (ns) an earlier visit keeps everything back.
    """

    ident: bytes
    circle: Circle | None
    margins: Margins
    begin: int = _NEVER
    end: int = _NEVER
    silent: int = _NEVER
    reported: bool = True

    def visited(self, begin: int, end: int) -> dict[bytes, Visits]:
        """Take a visit, or more of one (ns); it is returned where it is another than before."""
        if begin - self.end < ABSENCE * NANOSECONDS and self.begin > _NEVER:
            self.end = max(self.end, end)
            return {}
        self.silent = self.until
        self.begin, self.end, self.reported = begin, end, False
        return {self.ident: Visits(self.margins.told, {begin: end})}

    def over(self, time: int) -> dict[bytes, Visits]:
        """What is known of a visit that is over, once, where it cannot go on at a time (ns)."""
        if self.reported or time - self.end < ABSENCE * NANOSECONDS:
            return {}
        self.reported = True
        return {self.ident: Visits(0.0, {self.begin: self.end})}

    @property
    def until(self) -> int:
        """The time (ns) up to which nothing is released because of visits so far."""
        if self.begin == _NEVER:
            return self.silent
        long = self.end - self.begin >= _STAY
        return max(self.silent, self.end + (self.margins.stay if long else self.margins.passing))


@dataclass(slots=True, eq=False, repr=False)
class Cutting:
    """Releases fixes as they are, away from visits. lag: nanoseconds.

    staying: since when (ns) an announced stay lasts. leaving: until the next fix. visits: that were
    not counted yet.
    """

    lag: int
    watched: list[_Watched]
    stays: _Watched
    staying: int | None = None
    leaving: bool = False
    visits: dict[bytes, Visits] = field(default_factory=dict)
    _pending: deque[Fix] = field(default_factory=deque)
    _previous: Fix | None = None

    @classmethod
    def of(
        cls, ledger: Ledger, request: Request, delay: float | None, record: dict[str, Any] | None
    ) -> "Cutting":
        """For the places that have names now. record: of an earlier run.

        delay: seconds that fixes leave late; None for the least that makes all cuts least.
        """
        least = request.withhold or 0.0
        stays = _Watched(NO_ID, None, Margins.of(request, request.variance, least, delay))
        watched = [stays]
        for place in (place for place in load_places(ledger) if not place.gone):
            withheld = max(least, place.withhold or 0.0)
            margins = Margins.of(request, place.variance, withheld, delay)
            watched.append(_Watched(place.ident, place.wide, margins))
        lag = max(known.margins.before for known in watched)
        lag = lag if delay is None else max(lag, round(delay * NANOSECONDS))
        held = record or {}
        return cls(lag, watched, stays, held.get("staying"), held.get("leaving", False))

    @property
    def record(self) -> dict[str, Any]:
        """What a restart must know, JSON-able: no place."""
        return {"staying": self.staying, "leaving": self.leaving}

    @property
    def delay(self) -> float:
        """Seconds that a fix leaves late, at least."""
        return self.lag / NANOSECONDS

    def advance(self, fix: Fix) -> bool:
        """Look at where a fix is; what it keeps back is dropped. Nothing more need be saved."""
        for watched in self.watched:
            if self._previous is None:
                watched.silent = fix.time + watched.margins.passing
            span = self._span(watched, fix)
            self.visits |= watched.visited(*span) if span else watched.over(fix.time)
            if span:
                self._drop(span[0] - watched.margins.before)
        if self.leaving:
            self.staying, self.leaving = None, False
        if self._previous is None:
            self.visits.setdefault(NO_ID, Visits()).information += self.stays.margins.told
        self._previous = fix
        silent = max(watched.until for watched in self.watched)
        if fix.time > silent and len(self._pending) < _MOST_PENDING:
            self._pending.append(fix)
        return False

    def take(self, fix: Fix) -> list[Fix]:
        """The fixes that leave now, as they were recorded."""
        self.visits = {}
        released = []
        while self._pending and self._pending[0].time < fix.time - self.lag:
            released.append(self._pending.popleft())
        return released

    def stay(self) -> None:
        """A stay begins, with the last fix."""
        self.leaving = False
        if self.staying is None:
            self.staying = _NEVER if self._previous is None else self._previous.time
        if self.staying > _NEVER:  # it is one even if it is over before another fix
            self.visits |= self.stays.visited(self.staying, self.staying)
            self._drop(self.staying - self.stays.margins.before)

    def go(self) -> None:
        """It is over: until the next fix, since nobody knows for how long the last one is past."""
        self.leaving = self.staying is not None

    def _drop(self, since: int) -> None:
        while self._pending and self._pending[-1].time >= since:
            self._pending.pop()

    def _span(self, watched: _Watched, fix: Fix) -> tuple[int, int] | None:
        """When the way from the previous fix to this one was at a place, or in a stay."""
        if watched.circle is None:
            if self.staying is None:
                return None
            self.staying = fix.time if self.staying == _NEVER else self.staying
            return self.staying, fix.time
        fixes = [fix] if self._previous is None else [self._previous, fix]
        trace = Trace(
            np.array([each.time for each in fixes]),
            np.array([(each.latitude, each.longitude) for each in fixes]),
            np.zeros(len(fixes), dtype=np.intp),
            (0,),
        )
        spans = visits(trace, watched.circle)
        return spans[-1] if spans else None
