"""What a release that is counted already tells, with all that was released before and since."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trailveil.gp.gaussian import FloatArray
from trailveil.ledger import Book, LedgerRow
from trailveil.ledger.accounting import Account, account
from trailveil.release.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class _Without(Book):
    """A book as if one of its releases were not in it, to read. gone: its number."""

    gone: int = 0

    def standing(self, subject: str | None = None) -> list[LedgerRow]:
        return [row for row in Book.standing(self, subject) if row.number != self.gone]

    def totals(self, subject: str, place: bytes) -> dict[bytes, tuple[int, FloatArray]]:
        totals, marked = Book.totals(self, subject, place), self.rows[self.gone - 1].marked
        return {
            draw: (number, self._without(subject, (place, draw), self.gone))
            if (place, draw) in marked
            else (number, total)
            for draw, (number, total) in totals.items()
        }


def recounted(book: Book, number: int, plan: Plan, others: Sequence[int]) -> Account:
    """What a release that is in the book tells with all others that are by now.

    It counts for what it was counted for: what others of its recording tell besides depends on
    that. others: the numbers of these, of which what was recorded is taken, not computed again.
    """
    stored = book.entry(number, b"")
    without = _Without(book.connection, book.key, book.chain, book.where, number)
    total, _ = account(without, plan, stored.marks, stored.subject, ())
    bodies = [book.body(other) for other in (*others, number)]
    known = max((body.get("known") or 0.0 for body in bodies), default=0.0)
    shared = [body.get("times", body.get("known")) or 0.0 for body in bodies] if others else []
    return replace(
        total,
        times=max(total.times, *shared, 0.0),
        overlapping=len(others),
        before=max(total.before, known),
    )
