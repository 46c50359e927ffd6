"""Releases that their owner takes back, or would have to: which they are, and their files."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypedDict

from trailveil.files.source import named
from trailveil.ledger import Book, LedgerRow

_MOST = 4


class Retraction(TypedDict):
    """A release that counts no more. None for a file or a version without a name."""

    number: int
    output: str | None
    version: str | None
    made_utc: str
    hidden: list[str]
    epsilon: float


def retractions(book: Book, rows: Iterable[LedgerRow]) -> tuple[Retraction, ...]:
    """Releases in the ledger, as what is said of them once they are taken back."""
    bodies = [(row, book.body(row.number)) for row in rows]
    return tuple(
        Retraction(
            number=row.number,
            output=body.get("output"),
            version=(body.get("version") or {}).get("name"),
            made_utc=in_utc(row.recorded),
            hidden=[*dict.fromkeys([*body.get("parts", []), *body.get("places", [])])],
            epsilon=row.epsilon,
        )
        for row, body in bodies
    )


def listed_files(taken: Sequence[Retraction], most: int = _MOST) -> str:
    """The files of releases, and when these were made."""
    names = [
        f"{named(each['output'] or 'a file')} (made {each['made_utc'][:16]} UTC)"
        for each in taken[:most]
    ]
    more = len(taken) - most
    return ", ".join([*names, *([f"{more} more (trailveil ledger show)"] if more > 0 else [])])


def in_utc(when: int) -> str:
    """Nanoseconds since 1970 as a date and a time to the second."""
    return datetime.fromtimestamp(when // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
