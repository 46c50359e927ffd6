"""The rows of a ledger in memory: checked once, found quickly, and appended to.

Each row is chained to the one before it by a keyed code (HMAC-SHA256) of all its columns and of
digests of what it refers to, so that no row can be changed, taken out or put in without the key.
"""

import hashlib
import hmac
import sqlite3
import struct
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from trailveil.errors import Refused
from trailveil.ledger.identity import ENOUGH, content_in, windows_in

ID_BYTES = 16
"""How long the names of places and draws are; none is this many zeros."""

DIGEST_BYTES = 32

_NUMBERS = struct.Struct("<5qd5q")


class LedgerRow(NamedTuple):
    """A row of the ledger: an entry without what it refers to.

    number: from 1 on. recorded: when (ns). withdraws: of a row that takes another one
    back, its number; else 0. places: which places and draws it has marks of. digest: of what it
    refers to. prints: what the recording is recognised by, see `trailveil.ledger.identity`.
    """

    number: int
    subject: str
    series: str
    begin: int
    end: int
    request: bytes
    epsilon: float
    recorded: int
    withdraws: int
    places: bytes
    digest: bytes
    prints: bytes = b""

    @property
    def marked(self) -> set[tuple[bytes, bytes]]:
        """(place, draw) of its marks."""
        whole = [
            self.places[i : i + 2 * ID_BYTES] for i in range(0, len(self.places), 2 * ID_BYTES)
        ]
        return {(pair[:ID_BYTES], pair[ID_BYTES:]) for pair in whole}


class _Spans:
    """The releases of one series of a subject, by when they begin."""

    def __init__(self, rows: Iterable[LedgerRow]) -> None:
        self._rows = sorted((row.begin, row.number, row) for row in rows)
        self._longest = max((row.end - row.begin for *_, row in self._rows), default=0)

    def add(self, ledger_row: LedgerRow) -> None:
        insort(self._rows, (ledger_row.begin, ledger_row.number, ledger_row))
        self._longest = max(self._longest, ledger_row.end - ledger_row.begin)

    def within(self, begin: int, end: int) -> list[LedgerRow]:
        first = bisect_left(self._rows, (begin - self._longest,))
        last = bisect_right(self._rows, (end, 2**63))
        rows = [row for *_, row in self._rows[first:last] if row.end >= begin]
        return sorted(rows, key=lambda row: row.number)


class RowChain:
    """All rows in their order; plains: as they are stored; codes: of each."""

    def __init__(self, plains: Iterable[bytes] = (), codes: Iterable[bytes] = ()) -> None:
        self.plains, self.codes = list(plains), list(codes)
        self.rows = [unpacked(plain) for plain in self.plains]
        self._whole = hashlib.sha256(b"".join(self.plains))
        self._gone = {row.withdraws for row in self.rows}
        self._own: dict[str, list[LedgerRow]] = {}
        self._latest: dict[str, dict[bytes, LedgerRow]] = {}
        self._spans: dict[tuple[str, str], _Spans] = {}
        self._prints: dict[tuple[str | bytes, ...], list[LedgerRow]] | None = None
        for row in self.rows:
            self._know(row)

    @property
    def last(self) -> bytes:
        """The code of the last row."""
        return self.codes[-1] if self.codes else b""

    @property
    def digest(self) -> bytes:
        """SHA-256 of all rows as they are stored; each tells its own length."""
        return self._whole.digest()

    def append(self, row: LedgerRow, plain: bytes, code: bytes) -> None:
        """One more row."""
        self.rows.append(row)
        self.plains.append(plain)
        self.codes.append(code)
        self._whole.update(plain)
        self._know(row)
        key = (row.subject, row.series)
        if row.withdraws:
            self._gone.add(row.withdraws)
            standing = self._own.get(row.subject, [])
            standing[:] = [other for other in standing if other.number != row.withdraws]
            self._spans.pop(key, None)
        elif key in self._spans:
            self._spans[key].add(row)

    def standing(self, subject: str | None = None) -> list[LedgerRow]:
        """The releases that were not withdrawn, of one subject or of all, in order."""
        if subject is not None:
            return list(self._own.get(subject, ()))
        return [row for row in self.rows if not row.withdraws and row.number not in self._gone]

    def overlapping(self, subject: str, series: str, begin: int, end: int) -> list[LedgerRow]:
        """The releases of a subject's series with times within begin to end, that stand."""
        key = (subject, series)
        if key not in self._spans:
            standing = self._own.get(subject, ())
            self._spans[key] = _Spans(row for row in standing if row.series == series)
        return self._spans[key].within(begin, end)

    def alike(self, subject: str, series: str, prints: bytes) -> list[LedgerRow]:
        """The releases of a subject that are of the recording of these prints, at any times."""
        if self._prints is None:
            self._prints = {}
            for row in self.rows:
                self._print(row)
        matches = {
            row.number: row
            for content in content_in(prints)
            for row in self._prints.get((subject, content), ())
        }
        shared = Counter(
            row
            for window in windows_in(prints)
            for row in self._prints.get((subject, series, window), ())
        )
        matches |= {row.number: row for row, times in shared.items() if times >= ENOUGH}
        return [matches[number] for number in sorted(matches.keys() - self._gone)]

    def latest(self, subject: str) -> list[LedgerRow]:
        """Of rows of a subject with marks of the same places, the last: all kinds of them."""
        return list(self._latest.get(subject, {}).values())

    def _know(self, ledger_row: LedgerRow) -> None:
        if not ledger_row.withdraws and ledger_row.number not in self._gone:
            self._own.setdefault(ledger_row.subject, []).append(ledger_row)
        if ledger_row.places:
            self._latest.setdefault(ledger_row.subject, {})[ledger_row.places] = ledger_row
        self._print(ledger_row)

    def _print(self, ledger_row: LedgerRow) -> None:
        if self._prints is not None and ledger_row.prints:
            contents = [(ledger_row.subject, content) for content in content_in(ledger_row.prints)]
            series = [
                (ledger_row.subject, ledger_row.series, window)
                for window in windows_in(ledger_row.prints)
            ]
            for name in (*contents, *series):
                self._prints.setdefault(name, []).append(ledger_row)


def packed(row: LedgerRow) -> bytes:
    """A row as the bytes that are stored and coded."""
    number, subject, series, begin, end, request, epsilon, when, withdraws, places, digest, _ = row
    texts = (subject.encode(), series.encode(), request, places, digest + row.prints)
    numbers = (number, begin, end, when, withdraws, epsilon)
    return b"".join((_NUMBERS.pack(*numbers, *map(len, texts)), *texts))


def unpacked(plain: bytes) -> LedgerRow:
    """The row that `packed` made bytes of."""
    number, begin, end, when, withdraws, epsilon, a, b, c, d, e = _NUMBERS.unpack_from(plain)
    a += _NUMBERS.size
    b += a
    c += b
    d += c
    subject, series = plain[_NUMBERS.size : a].decode(), plain[a:b].decode()
    digest, prints = plain[d : d + DIGEST_BYTES], plain[d + DIGEST_BYTES : d + e]
    others = (plain[b:c], epsilon, when, withdraws, plain[c:d], digest, prints)
    return LedgerRow(number, subject, series, begin, end, *others)


def code_of(key: bytes, last: bytes, plain: bytes) -> bytes:
    """The keyed code of a row that follows one of code `last`."""
    return hmac.digest(key, last + plain, "sha256")


def chained(
    connection: sqlite3.Connection, key: bytes, sealed: int, digest: bytes, where: str
) -> RowChain:
    """All rows as they are stored.

    sealed: how many rows are known by the digest of them all; those after them, by their codes.
    Raises Refused where any is not what was recorded.
    """
    stored = connection.execute("SELECT plain, code FROM entries ORDER BY number").fetchall()
    plains, codes = [row[0] for row in stored], [row[1] for row in stored]
    if sealed > len(stored):
        raise damaged(f"{sealed} rows were sealed, {len(stored)} are there", where)
    if digest_of(plains[:sealed]) != digest:
        raise damaged("its rows are not as they were recorded", where)
    check_codes(plains, codes, key, where, begin=sealed)
    return RowChain(plains, codes)


def digest_of(plains: Iterable[bytes]) -> bytes:
    """SHA-256 of rows as they are stored; each tells its own length."""
    return hashlib.sha256(b"".join(plains)).digest()


def check_codes(
    plains: list[bytes], codes: list[bytes], key: bytes, where: str, *, begin: int = 0
) -> None:
    """Check the code of every row from one on. Raises Refused for one that is another."""
    last = codes[begin - 1] if begin else b""
    for number in range(begin, len(plains)):
        if code_of(key, last, plains[number]) != codes[number]:
            raise damaged(f"row {number + 1} is not as it was recorded", where)
        last = codes[number]


def damaged(what: str, where: str) -> Refused:
    """What is said of a ledger that is not as it was left."""
    return Refused(
        "the ledger of what was released must be as Trailveil left it, got a damaged one "
        f"({what}): {where}; restore it from a backup with its seal and key, or move the whole "
        "folder away to begin anew: what was released until now is then counted no more"
    )
