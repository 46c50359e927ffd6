"""What a release that is counted already tells, with all that was released before and since."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trailveil.gp.gaussian import FloatArray
from trailveil.ledger import Book, LedgerRow
from trailveil.ledger.accounting import Account, account
from trailveil.ledger.relatives import Relatives, is_finer_version, versions_in
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


def recounted(book: Book, number: int, plan: Plan, others: Sequence[int], prints: bytes) -> Account:
    """What a release that is in the book tells with all others that are by now.

    Of places it counts for what it was counted for: what others of its recording count for depends
    on that. others: the numbers of these. prints: what the recording is recognised by.
    """
    stored = book.entry(number, b"")
    said = {each: versions_in(book.body(each)) for each in (number, *others)}
    finer = tuple(each for each in others if is_finer_version(said, each, number))
    coarser = tuple(each for each in others if is_finer_version(said, number, each))
    without = _Without(book.connection, book.key, book.chain, book.where, number)
    about = (without, plan, stored.marks, stored.subject)
    joint, _ = account(*about, others, prints=prints, kin=Relatives(finer, coarser))
    counted, _ = account(*about, (), nearby=False)
    wider = joint.stated.epsilon(1.0) / counted.stated.epsilon(1.0)
    return replace(
        joint,
        epsilon=counted.epsilon,
        places=counted.places,
        one_place=counted.one_place * wider,
        fresh=counted.fresh * wider,
    )
