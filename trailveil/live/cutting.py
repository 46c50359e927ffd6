"""Exact fixes, late, but for those near a visit: the cut of a recording, decided as it goes on.

A visit lasts from a to b. Nothing is released from a - before to b + after: see
`trailveil.live.margins`. A fix of time t leaves when one later than t + delay comes, and delay >=
before. Whether a visit begins by t + before is known by then. So what leaves is what this rule
would release of the whole recording, at a lag that is always the same: to hesitate tells nothing
more. What the pauses tell is what the times of such a cut tell, see docs/guarantees.md, "Times that
are chosen by place".

Where the stream begins, also after a crash, it is as if a visit of any of the places had just
ended. At the end, what was not yet released never is.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trailveil.ledger import NO_ID, Ledger
from trailveil.ledger.places import load_places
from trailveil.live.counting import Visits
from trailveil.live.lines import Fix
from trailveil.live.margins import Margins, checked_delay
from trailveil.release.public import Position
from trailveil.release.request import Request
from trailveil.traces.stops import ABSENCE
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import Circle, visits

_NEVER = -(2**63)
_MOST_PENDING = 100_000
"""Fixes that wait at most: more a second than any receiver has; further ones are left out."""


@dataclass(slots=True)
class _Visit:
    """A visit from begin to end (ns), or where the stream began, and until when nothing leaves.

    since: when an earlier run released its last fix. counted: 1 / m^2. until: None where it is not
    known yet. reported: whether the ledger knows its end.
    """

    begin: int
    end: int
    since: int
    counted: float
    until: int | None = None
    reported: bool = True


@dataclass(slots=True, eq=False, repr=False)
class _Watched:
    """A place, or announced stays (circle: None), and its visits.

    since: when an earlier run released its last fix (ns). latest: the visit that may go on.
    earlier: others whose silence may not be over. public: what is public already, in order of time.
    """

    ident: bytes
    circle: Circle | None
    margins: Margins
    since: int = _NEVER
    latest: _Visit | None = None
    earlier: list[_Visit] = field(default_factory=list)
    public: tuple[Position, ...] = ()

    def begin_at(self, time: int) -> None:
        """The stream begins: as if a visit had just ended."""
        self.earlier = [_Visit(time, time, _NEVER, self._information(time))]

    def reckon_with(self, public: tuple[Position, ...], time: int) -> float:
        """Other positions are public now; 1 / m^2 that visits tell more.

        A silence that was over at a time (ns) stays as it was: what came after it is out.
        """
        self.public, more = public, 0.0
        for visit in self._lasting(time):
            information = max(visit.counted, self._information(visit.begin))
            more += information - visit.counted
            visit.counted, visit.until = information, None
        return more

    def visited(self, begin: int, end: int) -> Visits | None:
        """Take a visit, or more of one (ns); it is returned where it is another than before."""
        latest = self.latest
        if latest is not None and begin - latest.end < ABSENCE * NANOSECONDS:
            if end > latest.end:
                latest.end, latest.until = end, None
            return None
        self.earlier, information = self._standing, self._information(begin)
        self.latest = _Visit(begin, end, self.since, information, reported=False)
        return Visits(information, {begin: end})

    def over(self, time: int) -> Visits | None:
        """What is known of a visit that is over, once, where it cannot go on at a time (ns)."""
        latest = self.latest
        if latest is None or latest.reported or time - latest.end < ABSENCE * NANOSECONDS:
            return None
        latest.reported = True
        return Visits(0.0, {latest.begin: latest.end})

    def holds(self, time: int) -> bool:
        """Whether a fix of some time (ns) must not leave because of visits so far.

        Raises Refused where nothing can be hidden any more of one of them.
        """
        self.earlier = [visit for visit in self.earlier if self._until(visit) >= time]
        return any(time <= self._until(visit) for visit in self._standing)

    def begin_of(self, time: int) -> int:
        """When the earliest visit began whose silence may not be over at a time (ns)."""
        return min((visit.begin for visit in self._lasting(time)), default=time)

    def _lasting(self, time: int) -> list[_Visit]:
        return [each for each in self._standing if each.until is None or each.until >= time]

    @property
    def _standing(self) -> list[_Visit]:
        return [*self.earlier, *([] if self.latest is None else [self.latest])]

    def _information(self, begin: int) -> float:
        """1 / m^2 that a visit tells, at most."""
        near = self.public or begin - self.since < self.margins.before
        return 1 / self.margins.variance if near else self.margins.information

    def _until(self, visit: _Visit) -> int:
        if visit.until is None:
            public = self.public
            if visit.since > _NEVER:
                public = (*public, Position(visit.since, 0.0))
            visit.until = visit.end + self.margins.after(visit.begin, visit.end, public)
        return visit.until


@dataclass(slots=True, eq=False, repr=False)
class Cutting:
    """Releases fixes as they are, away from visits. lag: nanoseconds.

    staying: since when (ns) an announced stay lasts. leaving: how many fixes it lasts yet, 0 where
    nobody knows. visits: that were not counted yet.
    """

    lag: int
    watched: list[_Watched]
    stays: _Watched
    staying: int | None = None
    leaving: int = 0
    visits: dict[bytes, Visits] = field(default_factory=dict)
    _pending: deque[Fix] = field(default_factory=deque)
    _previous: Fix | None = None
    _public: tuple[Position, ...] = ()

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        request: Request,
        delay: float | None,
        record: dict[str, Any] | None,
        since: int = _NEVER,
    ) -> "Cutting":
        """For the places that have names now. record: of an earlier run.

        delay: seconds that fixes leave late; None for the least that makes all cuts least. since:
        when an earlier run released its last fix (ns). Raises Refused for a delay that is too
        short.
        """
        least = request.withhold or 0.0
        asked: list[tuple[bytes, Circle | None, float, float]] = [
            (NO_ID, None, request.variance, least),
            *(
                (place.ident, place.wide, place.variance, max(least, place.withhold or 0.0))
                for place in load_places(ledger)
                if not place.gone
            ),
        ]
        if delay is not None:
            checked_delay(delay, request, [pair[2:] for pair in asked])
        watched = [
            _Watched(ident, circle, Margins.of(request, variance, quiet, delay), since)
            for ident, circle, variance, quiet in asked
        ]
        lag = max(each.margins.before for each in watched)
        lag = lag if delay is None else max(lag, round(delay * NANOSECONDS))
        held = record or {}
        return cls(lag, watched, watched[0], held.get("staying"), int(held.get("leaving", 0)))

    @property
    def record(self) -> dict[str, Any]:
        """What a restart must know, JSON-able: no place."""
        return {"staying": self.staying, "leaving": self.leaving}

    @property
    def delay(self) -> float:
        """Seconds that a fix leaves late, at least."""
        return self.lag / NANOSECONDS

    @property
    def first(self) -> float:
        """Seconds from the first fix to when one leaves, at least."""
        silent = max(watched.margins.passing for watched in self.watched)
        return (silent + self.lag) / NANOSECONDS

    def since(self, time: int) -> int:
        """When the earliest visit began (ns) that matters to a fix of some time."""
        return min(time, *(watched.begin_of(time) for watched in self.watched))

    def reckon_with(self, public: tuple[Position, ...], time: int) -> None:
        """Hide from now on as what is public around the time of a fix (ns) demands."""
        if public is self._public:
            return
        self._public = public
        for watched in self.watched:
            if more := watched.reckon_with(public, time):
                self._count(watched.ident, Visits(more))

    def advance(self, fix: Fix) -> bool:
        """Look at where a fix is; what it keeps back is dropped. Nothing more need be saved.

        Raises Refused where nothing can be hidden any more of where somebody was.
        """
        if self._previous is None:
            for watched in self.watched:
                watched.begin_at(fix.time)
            self._count(NO_ID, Visits(self.stays.earlier[0].counted))
        visited = self.look(fix)
        if self.leaving:
            self.leaving -= 1
            self.staying = self.staying if self.leaving else None
        if visited or any(watched.holds(fix.time) for watched in self.watched):
            return False
        if len(self._pending) < _MOST_PENDING:
            self._pending.append(fix)
        return False

    def look(self, fix: Fix) -> bool:
        """Look at where a fix is that never leaves; whether it is in a visit, or came from one."""
        visited = False
        for watched in self.watched:
            if span := self._span(watched, fix):
                self._count(watched.ident, watched.visited(*span))
                self._drop(span[0] - watched.margins.before)
                visited |= span[1] >= fix.time
            elif watched.ident not in self.visits:
                self._count(watched.ident, watched.over(fix.time))
        self._previous = fix
        return visited

    def take(self, fix: Fix) -> list[Fix]:
        """The fixes that leave now, as they were recorded."""
        self.visits = {}
        released = []
        while self._pending and self._pending[0].time < fix.time - self.lag:
            released.append(self._pending.popleft())
        return released

    def stay(self) -> None:
        """A stay begins, with the last fix."""
        self.leaving = 0
        if self.staying is None:
            self.staying = _NEVER if self._previous is None else self._previous.time
        if self.staying > _NEVER:  # it is one even if it is over before another fix
            self._count(NO_ID, self.stays.visited(self.staying, self.staying))
            self._drop(self.staying - self.stays.margins.before)

    def go(self, waiting: int = 0) -> None:
        """It is over: until the next fix, since nobody knows for how long the last one is past.

        waiting: how many fixes came before, and were not looked at yet.
        """
        self.leaving = 0 if self.staying is None else 1 + waiting

    def _count(self, ident: bytes, more: Visits | None) -> None:
        if more is not None:
            counted = self.visits.setdefault(ident, Visits())
            counted.information += more.information
            counted.spans |= more.spans

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
