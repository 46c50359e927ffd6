"""The entries of a ledger, within one exclusive transaction: read, checked, appended.

Each row is chained to the one before it by a keyed code (HMAC-SHA256) of all its columns and of
digests of what it refers to, so that no row can be changed, taken out or put in without the key.
"""

import hashlib
import hmac
import json
import sqlite3
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from trailveil.errors import Refused
from trailveil.gaussian import FloatArray

SCHEMA = """
CREATE TABLE meta (version INTEGER NOT NULL, key BLOB NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, plain BLOB NOT NULL, code BLOB NOT NULL);
CREATE TABLE contents (number INTEGER PRIMARY KEY, body TEXT NOT NULL, blob BLOB NOT NULL);
CREATE TABLE marks (
    number INTEGER NOT NULL, place BLOB NOT NULL, draw BLOB NOT NULL,
    told BLOB NOT NULL, total BLOB NOT NULL);
CREATE INDEX of_entry ON marks (number);
"""
ID_BYTES = 16
"""How long the names of places and draws are; none is this many zeros."""

NO_ID = bytes(ID_BYTES)
_NUMBERS = struct.Struct("<5qd5q")


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """That a release visited a place, and what it tells of it.

    place, draw: which place, and which draw of common noise; NO_ID for one without a name.
    told: information, any shape; the ledger adds it up.
    """

    place: bytes
    draw: bytes
    told: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One release. No true position is in it.

    series: "" for a trace, else the name of the column of readings. begin, end: first and last fix,
    nanoseconds since 1970. request: its keyed hash. epsilon: of the worst part, by itself. body:
    what people and programs read, JSON-able. blob: times and mechanism, see trailveil.recorded.
    """

    subject: str
    series: str
    begin: int
    end: int
    request: bytes
    epsilon: float
    body: dict[str, Any]
    blob: bytes = b""
    marks: tuple[Mark, ...] = ()


class Recorded(NamedTuple):
    """A row of the ledger: an entry without what it refers to.

    number: from 1 on. made: when it was recorded (ns). withdraws: of a row that takes another one
    back, its number; else 0. places: which places and draws it has marks of.
    """

    number: int
    subject: str
    series: str
    begin: int
    end: int
    request: bytes
    epsilon: float
    made: int
    withdraws: int
    places: bytes
    digest: bytes

    @property
    def marked(self) -> set[tuple[bytes, bytes]]:
        """(place, draw) of its marks."""
        whole = [
            self.places[i : i + 2 * ID_BYTES] for i in range(0, len(self.places), 2 * ID_BYTES)
        ]
        return {(one[:ID_BYTES], one[ID_BYTES:]) for one in whole}


@dataclass(frozen=True, slots=True, eq=False)
class Book:
    """A ledger while it is open: nobody else reads or writes it meanwhile.

    rows: all of them, checked; plains: as they are stored; codes: of each.
    """

    connection: sqlite3.Connection
    key: bytes = field(repr=False)
    rows: list[Recorded]
    plains: list[bytes]
    codes: list[bytes]
    where: str

    def standing(self, subject: str | None = None) -> list[Recorded]:
        """The releases that were not withdrawn, of one subject or of all, in order."""
        gone = {one.withdraws for one in self.rows}
        return [
            one
            for one in self.rows
            if not one.withdraws
            and one.number not in gone
            and (subject is None or one.subject == subject)
        ]

    def overlapping(self, subject: str, series: str, begin: int, end: int) -> list[Recorded]:
        """The releases of a subject's series with times within begin to end, that stand."""
        return [
            one
            for one in self.standing(subject)
            if one.series == series and one.begin <= end and one.end >= begin
        ]

    def totals(self, subject: str, place: bytes) -> dict[bytes, tuple[int, FloatArray]]:
        """What all releases of a subject tell of a place, by the draw of common noise; flat.

        With the number of the last release that has anything of it, be it withdrawn.
        """
        latest: dict[bytes, int] = {}
        last = {one.places: one for one in self.rows if one.places and one.subject == subject}
        for one in last.values():
            for which, draw in one.marked:
                if which == place:
                    latest[draw] = max(latest.get(draw, 0), one.number)
        found = {}
        for draw, number in latest.items():
            rows = [row for row in self._marks(number) if row[1] == place and row[2] == draw]
            source = self.rows[number - 1].withdraws or number
            found[draw] = (source, np.frombuffer(rows[-1][4], dtype="<f8"))
        return found

    def count_of(self, subject: str, place: bytes) -> int:
        """How many releases visited a place."""
        return sum(
            any(p == place for p, _ in one.marked) for one in self.standing(subject) if one.places
        )

    def body(self, number: int) -> dict[str, Any]:
        """What people and programs read of a row."""
        found: dict[str, Any] = json.loads(self._checked(number)[0])
        return found

    def blob(self, number: int) -> bytes:
        """The times and the mechanism of a release, as they were recorded."""
        return self._checked(number)[1]

    def add(self, entry: Entry) -> int:
        """Append a release; it is durable when the book is closed. Returns its number."""
        return self._append(entry, 0)

    def withdraw(self, number: int) -> None:
        """Record that a release never appeared: it counts no more."""
        one = self.rows[number - 1]
        plain = (one.subject, one.series, one.begin, one.end, one.request, 0.0)
        marks = tuple(
            Mark(row[1], row[2], -np.frombuffer(row[3], dtype="<f8")) for row in self._marks(number)
        )
        self._append(Entry(*plain, {"withdrawn": number}, b"", marks), number)

    def _without(self, subject: str, pair: tuple[bytes, bytes], number: int) -> FloatArray:
        """What the releases that stand tell, but for one: added up anew, not subtracted.

        A large number that is taken back would have swallowed the small ones.
        """
        told = [
            np.frombuffer(row[3], dtype="<f8")
            for one in self.standing(subject)
            if one.number != number and pair in one.marked
            for row in self._marks(one.number)
            if (row[1], row[2]) == pair
        ]
        gone = [row for row in self._marks(number) if (row[1], row[2]) == pair]
        return np.asarray(sum(told, np.zeros(len(gone[0][3]) // 8)))

    def check_contents(self) -> None:
        """Check what every row refers to. Raises Refused for anything that was changed."""
        check_codes(self.plains, self.codes, self.key, self.where)
        for one in self.rows:
            self._checked(one.number)
        strays = self.connection.execute(
            "SELECT (SELECT COUNT(*) FROM contents WHERE number > ?) + "
            "(SELECT COUNT(*) FROM marks WHERE number > ?)",
            (len(self.rows),) * 2,
        ).fetchone()[0]
        if strays:
            raise damaged("rows that belong to no release", self.where)

    def _append(self, entry: Entry, withdraws: int) -> int:
        number = len(self.rows) + 1
        marks: list[tuple[Any, ...]] = []
        running: dict[tuple[bytes, bytes], FloatArray] = {}
        for mark in entry.marks:
            pair, told = (mark.place, mark.draw), np.ascontiguousarray(mark.told, "<f8").ravel()
            if pair not in running:
                before = self.totals(entry.subject, mark.place).get(mark.draw)
                running[pair] = np.zeros(told.size) if before is None else before[1]
            running[pair] = (
                self._without(entry.subject, pair, withdraws) if withdraws else running[pair] + told
            )
            marks.append((number, *pair, told.tobytes(), running[pair].tobytes()))
        body = json.dumps(entry.body, sort_keys=True)
        plain = (entry.subject, entry.series, entry.begin, entry.end, entry.request)
        last = (float(entry.epsilon), time.time_ns(), withdraws)
        places = b"".join(sorted(place + draw for place, draw in running))
        row = Recorded(number, *plain, *last, places, _digest(body, entry.blob, marks))
        plain_row = packed(row)
        code = code_of(self.key, self.codes[-1] if self.codes else b"", plain_row)
        run = self.connection.execute
        run("INSERT INTO entries VALUES (?, ?, ?)", (number, plain_row, code))
        run("INSERT INTO contents VALUES (?, ?, ?)", (number, body, entry.blob))
        self.connection.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?)", marks)
        self.rows.append(row)
        self.plains.append(plain_row)
        self.codes.append(code)
        return number

    def _marks(self, number: int) -> list[tuple[Any, ...]]:
        return self._checked(number)[2]

    def _checked(self, number: int) -> tuple[str, bytes, list[tuple[Any, ...]]]:
        """Body, blob and marks of a row, as long as they are what was recorded."""
        run = self.connection.execute
        found = run("SELECT body, blob FROM contents WHERE number = ?", (number,)).fetchone()
        marks = run("SELECT * FROM marks WHERE number = ? ORDER BY rowid", (number,)).fetchall()
        if found is None or _digest(found[0], found[1], marks) != self.rows[number - 1].digest:
            raise damaged(f"row {number} is not as it was recorded", self.where)
        return found[0], found[1], marks


def packed(row: Recorded) -> bytes:
    """A row as the bytes that are stored and coded."""
    number, subject, series, begin, end, request, epsilon, made, withdraws, places, digest = row
    texts = (subject.encode(), series.encode(), request, places, digest)
    numbers = (number, begin, end, made, withdraws, epsilon)
    return b"".join((_NUMBERS.pack(*numbers, *map(len, texts)), *texts))


def unpacked(plain: bytes) -> Recorded:
    """The row that `packed` made bytes of."""
    number, begin, end, made, withdraws, epsilon, a, b, c, d, e = _NUMBERS.unpack_from(plain)
    a += _NUMBERS.size
    b += a
    c += b
    d += c
    subject, series = plain[_NUMBERS.size : a].decode(), plain[a:b].decode()
    rest = (plain[b:c], epsilon, made, withdraws, plain[c:d], plain[d : d + e])
    return Recorded(number, subject, series, begin, end, *rest)


def code_of(key: bytes, last: bytes, plain: bytes) -> bytes:
    """The keyed code of a row that follows one of code `last`."""
    return hmac.digest(key, last + plain, "sha256")


def chained(
    connection: sqlite3.Connection, key: bytes, sealed: int, digest: bytes, where: str
) -> tuple[list[Recorded], list[bytes], list[bytes]]:
    """All rows, as they are stored, and their codes.

    sealed: how many rows are known by the digest of them all; those after them, by their codes.
    Raises Refused where any is not what was recorded.
    """
    found = connection.execute("SELECT plain, code FROM entries ORDER BY number").fetchall()
    plains, codes = [one[0] for one in found], [one[1] for one in found]
    if sealed > len(found):
        raise damaged(f"{sealed} rows were sealed, {len(found)} are there", where)
    if digest_of(plains[:sealed]) != digest:
        raise damaged("its rows are not as they were recorded", where)
    last = codes[sealed - 1] if sealed else b""
    for number, (plain, code) in enumerate(found[sealed:], start=sealed + 1):
        if code_of(key, last, plain) != code:
            raise damaged(f"row {number} is not as it was recorded", where)
        last = code
    rows = [unpacked(plain) for plain in plains]
    return rows, plains, codes


def digest_of(plains: Iterable[bytes]) -> bytes:
    """SHA-256 of rows as they are stored; each tells its own length."""
    return hashlib.sha256(b"".join(plains)).digest()


def check_codes(plains: Iterable[bytes], codes: Iterable[bytes], key: bytes, where: str) -> None:
    """Check the code of every row. Raises Refused for one that is another."""
    last = b""
    for number, (plain, code) in enumerate(zip(plains, codes, strict=True), start=1):
        if code_of(key, last, plain) != code:
            raise damaged(f"row {number} is not as it was recorded", where)
        last = code


def damaged(what: str, where: str) -> Refused:
    """What is said of a ledger that is not as it was left."""
    return Refused(
        "the ledger of what was released must be as Trailveil left it, got a damaged one "
        f"({what}): {where}; restore it from a backup with its seal and key, or move the whole "
        "folder away to begin anew: what was released until now is then counted no more"
    )


def _digest(body: str, blob: bytes, marks: Iterable[tuple[Any, ...]]) -> bytes:
    """SHA-256 of all that a row refers to."""
    found = hashlib.sha256()
    for part in (body.encode(), blob):
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    for number, place, draw, told, total in marks:
        texts = (place, draw, told, total)
        found.update(struct.pack("<5q", number, *map(len, texts)))
        found.update(b"".join(texts))
    return found.digest()
