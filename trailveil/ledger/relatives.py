"""Which releases in the ledger are versions of one another, as their entries say."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trailveil.ledger import Book, LedgerRow


class Relatives(NamedTuple):
    """The numbers of the releases of a recording that are finer versions of one, and coarser."""

    finer: tuple[int, ...] = ()
    coarser: tuple[int, ...] = ()


def versions_in(body: dict[str, Any]) -> Relatives:
    """What an entry says of other versions."""
    said = body.get("version") or {}
    return Relatives(tuple(said.get("finer", ())), tuple(said.get("coarser", ())))


def finest_of(book: Book, numbers: Iterable[int]) -> int | None:
    """Of releases that are versions of one another, the one that tells all; None for none."""
    said = {number: versions_in(book.body(number)) for number in numbers}
    return next((a for a in said if not any(is_finer_version(said, b, a) for b in said)), None)


def relatives_of(book: Book, number: int, standing: Iterable[int]) -> set[int]:
    """Of the releases that count, a release and its versions."""
    said = {each: versions_in(book.body(each)) for each in {number, *standing}}
    ours = {n for n in said if is_finer_version(said, n, number)}
    return ours | {n for n in said if n == number or is_finer_version(said, number, n)}


def finest_alone(book: Book, rows: Sequence[LedgerRow]) -> list[LedgerRow]:
    """Releases without those of which a finer version is among them: these tell nothing more."""
    coarser = coarser_ones(book, rows)
    return [row for row in rows if row.number not in coarser]


def coarser_ones(book: Book, rows: Sequence[LedgerRow]) -> dict[int, int]:
    """Of releases, each of which a finer version is among them; with the first of such."""
    spans = Counter((row.begin, row.end) for row in rows)
    several = [row.number for row in rows if spans[row.begin, row.end] > 1]
    said = {number: versions_in(book.body(number)) for number in several}
    finer = {n: [other for other in said if is_finer_version(said, other, n)] for n in said}
    return {n: min(others) for n, others in finer.items() if others}


def is_finer_version(said: Mapping[int, Relatives], a: int, b: int) -> bool:
    """Whether one release is a finer version of another, by what the entries of both say."""
    return a in said[b].finer or b in said[a].coarser


def name_in(book: Book, number: int) -> str:
    """What a version is called; by its number where it has no name."""
    return str((book.body(number).get("version") or {}).get("name") or f"number {number}")
