"""A live release: fixes go in as they are recorded, what may be released of them comes out.

Of exact fixes, the time of one counts once a later one has come; after a gap, once fixes have gone
on in order for a minute. Else a wrong time, later than the truth, would end the delay of all that
waits. Those that are contradicted, as an earlier one comes, never leave; where they were is looked
at as if it were at the time of that one. So when fixes leave is a function of the times that came
in, and what leaves is the cut of the others: hesitating tells no place.

Before a fix leaves, the file of the stream (`trailveil.live.state`) says durably that fixes up to a
time a little later left: after a crash, whatever is not later than that is refused. And the ledger
has a row for the stream and the day: it is counted until midnight (UTC) until it ends in order.
"""

import time
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, Unpack

from trailveil.errors import InvalidValue, Refused
from trailveil.gp.randomness import derive, fresh_seed
from trailveil.ledger import Ledger, user_ledger
from trailveil.ledger.identity import ME, subject_named
from trailveil.ledger.places import load_places, places_told
from trailveil.ledger.public import public_around
from trailveil.live.counting import StreamRow
from trailveil.live.cutting import Cutting
from trailveil.live.lines import Fix
from trailveil.live.moving import Moving
from trailveil.live.state import StreamFile
from trailveil.privacy.movement import LONGEST_CUT
from trailveil.release.options import Options, Selection, request_of
from trailveil.release.public import Position
from trailveil.release.request import Method
from trailveil.traces.trace import NANOSECONDS

_DAY = LONGEST_CUT * NANOSECONDS


@dataclass(slots=True, eq=False, repr=False)
class PublicSoFar:
    """Positions of a subject that are public. scale: metres of the frame in one, at most.

    It looks whether the ledger is another before each fix: positions may be imported meanwhile.
    """

    ledger: Ledger
    subject: str
    scale: float
    _positions: tuple[Position, ...] = ()
    _begin: int = 0
    _end: int = -1
    _stamp: tuple[int, ...] = ()

    def around(self, begin: int, end: int) -> tuple[Position, ...]:
        """Those from a day before some time to a day after (ns), at least, in order of time.

        It is the same object as long as they are the same.
        """
        stamp = self.ledger.stamp
        if not stamp or stamp != self._stamp or not self._begin <= begin <= end <= self._end:
            later = end + _DAY  # so that it is not looked up at each fix
            with self.ledger.open() as book:
                public = public_around(book, self.subject, begin, later)
            scaled = tuple(each._replace(deviation=each.deviation / self.scale) for each in public)
            if scaled != self._positions:
                self._positions = scaled
            self._stamp, self._begin, self._end = stamp, begin, later
        return self._positions


_AHEAD = 10 * NANOSECONDS
_FUTURE = 60 * NANOSECONDS
_GAP = 60 * NANOSECONDS
_BEFORE_ALL = -(2**63)
# Fixes that may wait for later ones, or be contradicted in a row: more than a fast device's minute.
_MOST_DOUBTFUL = 10_000


class Stream:
    """A live release of one person's fixes, under a name that a restart goes on with.

    With `everywhere`, each fix is moved by noise that is stationary, and leaves at once. Without,
    fixes leave as they are, `delay` seconds late, but for those near a place with a name
    (`trailveil place`), an announced stay, and where the stream begins: see
    `trailveil.live.cutting`. Use it in a `with` statement, or close it.
    """

    def __init__(
        self,
        name: str = "live",
        *,
        delay: float | None = None,
        ledger: Ledger | None = None,
        subject: str = ME,
        again: bool = False,
        **options: Unpack[Options],
    ) -> None:
        """Begin a stream, or go on with the one of this name.

        delay: seconds, None for the least that gives the least cut. ledger: of the user, where none
        is stated. again: count it besides what was released of the same times. options: of
        `trailveil.protect`, but for what is protected. Raises Refused for a stream that runs, one
        that began with other options, or a delay that is too short; InvalidValue for options that
        make no sense.
        """
        if stated := sorted(set(options) & (set(Selection.__annotations__))):
            raise InvalidValue(f"a stream must not state parts of a recording, got {stated[0]}")
        request = request_of(options)
        if request.method not in (Method.CUT, Method.EVERYWHERE):
            raise InvalidValue(
                f"a stream must cut, or protect everywhere, got {request.method}: state "
                "everywhere, or leave the mechanism out"
            )
        if request.method is Method.EVERYWHERE and (request.leave or request.withhold):
            raise InvalidValue("everywhere must come without leave and withhold, got one of them")
        self._request, self._again = request, again
        self._ledger = user_ledger() if ledger is None else ledger
        self._file = StreamFile(self._ledger, name)
        try:
            self._open(name, subject_named(subject), delay)
        except BaseException:
            self._file.close()
            raise

    def _open(self, name: str, subject: str, delay: float | None) -> None:
        record = self._file.load() or {}
        asked = repr((self._request, subject))
        if record and record["asked"] != asked:
            raise Refused(
                f"a stream must go on as it began, got other options: {name}; state the same as "
                "before, or begin another stream (--name), which is counted besides"
            )
        self._ident: str = record.get("ident") or fresh_seed().hex()
        self._through: int = record.get("through", _BEFORE_ALL)
        self._saved: dict[str, Any] = {"asked": asked, "ident": self._ident}
        self._begun = bool(record)
        self._rule: Moving | Cutting | None = None
        if self._request.method is Method.CUT:
            how = (delay, record.get("rule"), self._through)
            self._rule = Cutting.of(self._ledger, self._request, *how)
        elif delay is not None:
            raise InvalidValue("noise must come without a delay, got one: leave it out")
        elif record:
            self._rule = Moving.restored(record["rule"])
        ident = derive(self._ledger.key, [b"stream", self._ident.encode()])
        self._row = StreamRow(self._ledger, ident, subject, self._request)
        self._public = PublicSoFar(self._ledger, subject, self._request.scale)
        self._last = self._left = self._through
        self._waiting: list[Fix] = []
        self._contradicted: list[Fix] = []

    @property
    def delay(self) -> float:
        """Seconds that a fix leaves late, at least."""
        return self._rule.delay if isinstance(self._rule, Cutting) else 0.0

    @property
    def first(self) -> float:
        """Seconds from the first fix to when one leaves, at least."""
        return self._rule.first if isinstance(self._rule, Cutting) else 0.0

    @property
    def moved(self) -> float | None:
        """Metres that noise moves a fix by (root mean square); None before the first, or a cut."""
        return self._rule.rms if isinstance(self._rule, Moving) else None

    @property
    def spent(self) -> list[str]:
        """The names of places of which further visits tell more than was stated."""
        if not isinstance(self._rule, Cutting):
            return []
        places = [place for place in load_places(self._ledger) if not place.gone]
        with self._ledger.open() as book:
            told = places_told(book, places, self._row.subject)
        return [account.name for account in told if account.more < 1]

    @property
    def contradicted(self) -> int:
        """How many fixes in a row were left out, as an earlier one came after them."""
        return len(self._contradicted)

    def take(self, fix: Fix) -> list[Fix]:
        """A fix as it was recorded; the fixes that are released now, in the order of time.

        Raises InvalidValue, and forgets the fix, for a time that is not later than the last one
        that counts, or in the future, and for a place too far away; Refused where the stream cannot
        go on.
        """
        self._check(fix)
        if self._request.method is not Method.CUT:
            return self._taken(fix)
        if self._waiting and fix.time < self._waiting[0].time:
            self._contradict()
        self._waiting.append(fix)
        first = self._waiting[0].time
        gap = self._last > _BEFORE_ALL and first - self._last > _GAP
        if gap and fix.time - first < _GAP:
            self._check_doubtful(self._waiting)
            return []
        confirmed, self._waiting = self._waiting[:-1], [fix]
        return [released for each in confirmed for released in self._taken(each)]

    def _contradict(self) -> None:
        self._contradicted += self._waiting
        self._waiting = []
        self._check_doubtful(self._contradicted)

    def _check_doubtful(self, fixes: list[Fix]) -> None:
        """Raise Refused for more of them than memory is meant for."""
        if len(fixes) > _MOST_DOUBTFUL:
            raise Refused(
                "fixes must come in the order of time, of one device, got too many in a row that "
                "contradict each other or come in one minute: sort them, or keep devices apart"
            )

    def _taken(self, fix: Fix) -> list[Fix]:
        """Take a fix whose time counts."""
        since = fix.time
        if isinstance(self._rule, Cutting):
            since = self._rule.since(fix.time)
        (self._rule or Moving).reckon_with(self._public.around(since, fix.time), fix.time)
        rule = self._rule or Moving.begun(self._request, fix)
        changed, last = rule.advance(fix) or not self._begun, fix.time
        if isinstance(rule, Cutting):
            for last, doubtful in enumerate(self._contradicted, fix.time + 1):
                rule.look(replace(doubtful, time=last))
            self._contradicted = []
        self._row.cover(fix.time, rule.visits, again=self._again)
        self._rule, self._last = rule, last
        released = rule.take(fix)
        self._left = released[-1].time if released else self._left
        if changed or self._left > self._through:
            self._save(max(self._through, self._left + _AHEAD) if released else self._through)
        return released

    def stay(self) -> None:
        """Announce a stay that begins now: with the last fix. Raises InvalidValue for noise."""
        self._cutting().stay()
        self._save(self._through)

    def go(self) -> None:
        """The announced stay is over: from the next fix on. Raises InvalidValue for noise."""
        self._cutting().go(len(self._waiting))
        self._save(self._through)

    def close(self) -> None:
        """End in order: what was not released yet never is. A restart may go on."""
        try:
            if self._last > _BEFORE_ALL:
                self._save(self._left if isinstance(self._rule, Moving) else self._through)
                self._row.close(self._last)
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def _check(self, fix: Fix) -> None:
        waiting = self._waiting
        disorder = bool(waiting) and waiting[0].time <= fix.time <= waiting[-1].time
        if fix.time <= self._last or disorder:
            raise InvalidValue("a fix must be later than the last one, got another: left out")
        if fix.time > time.time_ns() + _FUTURE:
            raise InvalidValue(
                "a fix must be of now, got one more than a minute ahead of this computer's clock: "
                "left out"
            )

    def _cutting(self) -> Cutting:
        if not isinstance(self._rule, Cutting):
            raise InvalidValue(
                "a stay must be announced to a stream that cuts, got one that protects everywhere: "
                "it protects stays without being told"
            )
        return self._rule

    def _save(self, through: int) -> None:
        if self._rule is None or self._last == _BEFORE_ALL:
            return  # nothing has begun
        self._through, self._begun = through, True
        self._file.save({**self._saved, "through": through, "rule": self._rule.record})
