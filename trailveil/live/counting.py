"""What the ledger knows of a stream: a row for each day, which grows as places are visited."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from trailveil.errors import Refused
from trailveil.ledger import NO_ID, Book, Entry, Ledger, Mark
from trailveil.ledger.places import EVERYTHING, epsilon_of
from trailveil.ledger.recorded import to_bytes
from trailveil.release.request import Method, Request
from trailveil.traces.trace import NANOSECONDS

_DAY = 86_400 * NANOSECONDS
_VISITS_A_DAY = 2
"""Of one place, under noise: as `trailveil.ledger.marks` counts a recording at most."""


@dataclass(slots=True)
class Visits:
    """The visits of a place that were cut.

    information: 1 / m^2 that they tell. spans: the end (ns) of each by its begin.
    """

    information: float = 0.0
    spans: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class StreamRow:
    """The row of a stream on a day. ident: what the ledger knows the stream by.

    begin, end: nanoseconds; number: of the row, 0 for none yet. visits: of each place of a name, by
    its ident, and of those without a name, by NO_ID. crossed: whether the same times were released
    otherwise.
    """

    ledger: Ledger
    ident: bytes
    subject: str
    request: Request
    begin: int = 0
    end: int = 0
    number: int = 0
    visits: dict[bytes, Visits] = field(default_factory=dict)
    crossed: bool = False
    _accepted: bool = False

    def cover(self, time: int, fresh: Mapping[bytes, Visits], *, again: bool) -> None:
        """Count a time (ns) and further visits, durably.

        Raises Refused, unless `again`, where the stream begins at times that were released
        otherwise.
        """
        if self.number and self.begin <= time <= self.end and not fresh:
            return
        with self.ledger.open() as book:
            if not (self.number and self.begin <= time <= self.end):
                self._open(book, time, again=again)
            for place, more in fresh.items():
                counted = self.visits.setdefault(place, Visits())
                if more.information and not (
                    more.spans and more.spans.keys() <= counted.spans.keys()
                ):
                    counted.information += more.information
                    counted.spans |= more.spans
                else:
                    counted.spans |= {a: b for a, b in more.spans.items() if a in counted.spans}
            if fresh or not self.number:
                self._write(book)

    def close(self, time: int) -> None:
        """The stream ended in order: the row ends there, too."""
        if self.number and self.begin <= time < self.end:
            self.end = time
            with self.ledger.open() as book:
                self._write(book)

    def _open(self, book: Book, time: int, *, again: bool) -> None:
        """Begin the row of a day, or go on with one that a crash has left open."""
        end = (time // _DAY + 1) * _DAY - 1
        rows = book.overlapping(self.subject, "", time, end)
        others = [row for row in rows if row.request != self.ident]
        if others and not (again or self._accepted):
            raise Refused(
                "a stream must be of times that were not released yet, got some that were: the two "
                "together can give protected places away to a few metres; add --again to accept "
                f"both, or name whose it is (--subject) if it is not of {self.subject!r}"
            )
        self._accepted, self.crossed = True, self.crossed or bool(others)
        self.begin, self.end, self.number, self.visits = time, end, 0, {}
        for row in rows:
            if row.request == self.ident and row.begin <= time <= row.end:
                self.begin, self.end, self.number = row.begin, row.end, row.number
                self._restore(book)

    def _restore(self, book: Book) -> None:
        from trailveil.ledger.recorded import unpacked

        spans = unpacked(book.blob(self.number)).visits
        for mark in book.entry(self.number, self.ident).marks:
            information = float(mark.information[0])
            self.visits[mark.place] = Visits(information, dict(spans.get(mark.place, [])))

    def _write(self, book: Book) -> None:
        """Put the row as it is now in the place of that of before."""
        if self.number:
            book.withdraw(self.number)
        self.number = book.add(self._entry())

    def _entry(self) -> Entry:
        cuts = self.request.method is Method.CUT
        arrays = {
            "times": np.array([self.begin, self.end]),
            "released": np.array([True, True]),
            "plain": np.array([False]),  # what was released when is not kept: it may be all
            "parts": np.zeros((0, 2), dtype=np.int64),
            **{
                f"visits {place.hex()}": np.array(list(v.spans.items()))
                for place, v in self._named.items()
            },
        }
        if not cuts:
            self.visits[NO_ID] = Visits(_VISITS_A_DAY * self.request.bound)
        tells = [
            epsilon_of(self.request.radius, v.information, self.request.order)
            for v in self.visits.values()
        ]
        epsilon = max([self.request.epsilon, *tells]) if cuts else self.request.epsilon
        if self.crossed:
            epsilon = epsilon_of(self.request.radius, EVERYTHING, self.request.order)
        body = {
            "mechanism": f"live {self.request.method.value}",
            "noise_trace": 0.0,
            "epsilon": epsilon,
            "visits": {place.hex(): len(v.spans) for place, v in self._named.items()},
        }
        about = (self.subject, "", self.begin, self.end, self.ident, epsilon, body)
        return Entry(*about, to_bytes(arrays), self._marks())

    @property
    def _named(self) -> dict[bytes, Visits]:
        return {place: visits for place, visits in self.visits.items() if place != NO_ID}

    def _marks(self) -> tuple[Mark, ...]:
        """As those of a recording: a place without a name may be any."""
        named = [
            Mark(place, place, np.array([visits.information, float(len(visits.spans))]))
            for place, visits in self._named.items()
        ]
        unnamed = self.visits.get(NO_ID, Visits()).information
        return (*named, *([Mark(NO_ID, NO_ID, np.array([unnamed]))] if unnamed else []))
