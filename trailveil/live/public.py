"""What is public already around the time of a stream, as far as its ledger says so by now."""

from dataclasses import dataclass

from trailveil.ledger import Ledger
from trailveil.ledger.public import public_around
from trailveil.privacy.movement import LONGEST_CUT
from trailveil.release.public import Position
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
