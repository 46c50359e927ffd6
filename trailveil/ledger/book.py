"""The entries of a ledger, within one exclusive transaction: read, checked, appended.

What a row refers to, its digest covers (`trailveil.ledger.chain`): body, blob, marks, and the names
of arrays that many releases share, which are stored once and named by their SHA-256.
"""

import hashlib
import json
import sqlite3
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.randomness import derive
from trailveil.ledger.chain import (
    ID_BYTES,
    LedgerRow,
    RowChain,
    check_codes,
    code_of,
    damaged,
    packed,
)
from trailveil.ledger.identity import series_named, subject_named

_SHARING = (
    "CREATE TABLE shared (name BLOB PRIMARY KEY, data BLOB NOT NULL)",
    "CREATE TABLE uses (number INTEGER NOT NULL, name BLOB NOT NULL)",
    "CREATE INDEX of_user ON uses (number)",
)
"""What ledgers of version 1 have not."""

_CLAIMS = "CREATE TABLE claims (number INTEGER PRIMARY KEY, count INTEGER NOT NULL)"
"""How many runs rely on a row and did not say that they failed; no ledger before version 3."""

SCHEMA = """
CREATE TABLE meta (version INTEGER NOT NULL, key BLOB NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, plain BLOB NOT NULL, code BLOB NOT NULL);
CREATE TABLE contents (number INTEGER PRIMARY KEY, body TEXT NOT NULL, blob BLOB NOT NULL);
CREATE TABLE marks (
    number INTEGER NOT NULL, place BLOB NOT NULL, draw BLOB NOT NULL,
    told BLOB NOT NULL, total BLOB NOT NULL);
CREATE INDEX of_entry ON marks (number);
""" + "".join(f"{statement};\n" for statement in (*_SHARING, _CLAIMS))

NO_ID = bytes(ID_BYTES)


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """That a release visited a place, and what it tells of it.

    place, draw: which place, and which draw of common noise; NO_ID for one without a name.
    information: of any shape; the ledger adds it up.
    """

    place: bytes
    draw: bytes
    information: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One release. No true position is in it.

    series: "" for a trace, else the name of the column of readings. begin, end: first and last fix,
    nanoseconds since 1970. request: its keyed hash. epsilon: of the worst part, by itself. body:
    what people and programs read, JSON-able. blob: times and mechanism, see
    trailveil.ledger.recorded. shared: what the blob refers to that other releases have, too, by the
    SHA-256 of each. prints: what the recording is recognised by, see `trailveil.ledger.identity`.
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
    shared: Mapping[bytes, bytes] = field(default_factory=dict)
    prints: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Book:
    """A ledger while it is open: nobody else reads or writes it meanwhile. chain: its rows.

    without: the number of a release that counts as if it were not in it, to read; 0 for none.
    """

    connection: sqlite3.Connection
    key: bytes = field(repr=False)
    chain: RowChain
    where: str
    without: int = 0

    @property
    def rows(self) -> list[LedgerRow]:
        """All rows, checked."""
        return self.chain.rows

    def standing(self, subject: str | None = None) -> list[LedgerRow]:
        """The releases that were not withdrawn, of one subject or of all, in order."""
        rows = self.chain.standing(None if subject is None else subject_named(subject))
        return [row for row in rows if row.number != self.without] if self.without else rows

    def overlapping(self, subject: str, series: str, begin: int, end: int) -> list[LedgerRow]:
        """The releases of a subject's series with times within begin to end, that stand."""
        whose = subject_named(subject), series_named(series)
        return self.chain.overlapping(*whose, begin, end)

    def alike(self, subject: str, series: str, prints: bytes) -> list[LedgerRow]:
        """The releases of a subject that are of one recording, whenever it is said to begin.

        prints: what it is recognised by. Of another series it is the same content alone.
        """
        return self.chain.alike(subject_named(subject), series_named(series), prints)

    def totals(self, subject: str, place: bytes) -> dict[bytes, tuple[int, FloatArray]]:
        """What all releases of a subject tell of a place, by the draw of common noise; flat.

        With the number of the last release that has anything of it, be it withdrawn.
        """
        latest: dict[bytes, int] = {}
        for latest_row in self.chain.latest(subject_named(subject)):
            for which, draw in latest_row.marked:
                if which == place:
                    latest[draw] = max(latest.get(draw, 0), latest_row.number)
        sums = {}
        for draw, number in latest.items():
            rows = [row for row in self._marks(number) if row[1] == place and row[2] == draw]
            source = self.rows[number - 1].withdraws or number
            sums[draw] = (source, np.frombuffer(rows[-1][4], dtype="<f8"))
            if self.without and (place, draw) in self.rows[self.without - 1].marked:
                sums[draw] = (source, self._without(subject, (place, draw), self.without))
        return sums

    def count_of(self, subject: str, place: bytes) -> int:
        """How many releases visited a place."""
        return sum(
            any(p == place for p, _ in row.marked) for row in self.standing(subject) if row.places
        )

    def body(self, number: int) -> dict[str, Any]:
        """What people and programs read of a row."""
        body: dict[str, Any] = json.loads(self._checked(number)[0])
        return body

    def blob(self, number: int) -> bytes:
        """The times and the mechanism of a release, as they were recorded, and what they share."""
        _, blob, _, names = self._checked(number)
        return b"".join((blob, *(self._shared(name) for name in names)))

    def entry(self, number: int, request: bytes) -> Entry:
        """A row as it was added, under another request."""
        plain = self.rows[number - 1]
        body, blob, marks, names = self._checked(number)
        return Entry(
            *(plain.subject, plain.series, plain.begin, plain.end, request, plain.epsilon),
            json.loads(body),
            blob,
            tuple(Mark(row[1], row[2], np.frombuffer(row[3], dtype="<f8")) for row in marks),
            {name: self._shared(name) for name in names},
            plain.prints,
        )

    def add(self, entry: Entry, recorded: int | None = None) -> int:
        """Append a release; it is durable when the book is closed. Returns its number.

        made: when it was released (ns), for one of before. Who adds it relies on it, as after
        `claim`.
        """
        number = self._append(entry, 0, recorded)
        self.claim(number)
        return number

    def claim(self, number: int) -> None:
        """Rely on a row: a run is about to let a file appear that it counts."""
        self.connection.execute(
            "INSERT INTO claims VALUES (?, 1) ON CONFLICT (number) DO UPDATE SET count = count + 1",
            (number,),
        )

    def let_go(self, number: int) -> None:
        """Say that a run which relied on a row failed, and no file of it appeared.

        The row is withdrawn once nobody else relies on it: no run that goes on, none that let a
        file appear, and none that was killed, of which nobody knows.
        """
        run = self.connection.execute
        run("UPDATE claims SET count = count - 1 WHERE number = ?", (number,))
        count = run("SELECT count FROM claims WHERE number = ?", (number,)).fetchone()
        if count == (0,):
            self.withdraw(number)

    def withdraw(self, number: int, recorded: int | None = None) -> None:
        """Record that a release never appeared: it counts no more. made: as of `add`."""
        withdrawn = self.rows[number - 1]
        plain = (
            withdrawn.subject,
            withdrawn.series,
            withdrawn.begin,
            withdrawn.end,
            withdrawn.request,
            0.0,
        )
        marks = tuple(
            Mark(row[1], row[2], -np.frombuffer(row[3], dtype="<f8")) for row in self._marks(number)
        )
        self._append(Entry(*plain, {"withdrawn": number}, b"", marks), number, recorded)

    def _without(self, subject: str, pair: tuple[bytes, bytes], number: int) -> FloatArray:
        """What the releases that stand tell, but for one: added up anew, not subtracted.

        A large number that is taken back would have swallowed the small ones.
        """
        information = [
            np.frombuffer(row[3], dtype="<f8")
            for other in self.standing(subject)
            if other.number != number and pair in other.marked
            for row in self._marks(other.number)
            if (row[1], row[2]) == pair
        ]
        gone = [row for row in self._marks(number) if (row[1], row[2]) == pair]
        return np.asarray(sum(information, np.zeros(len(gone[0][3]) // 8)))

    def check_contents(self) -> None:
        """Check what every row refers to. Raises Refused for anything that was changed."""
        check_codes(self.chain.plains, self.chain.codes, self.key, self.where)
        used = {name for row in self.rows for name in self._checked(row.number)[3]}
        stored = {name for (name,) in self.connection.execute("SELECT name FROM shared")}
        for name in used:
            self._shared(name)
        strays = self.connection.execute(
            "SELECT (SELECT COUNT(*) FROM contents WHERE number > ?) + "
            "(SELECT COUNT(*) FROM marks WHERE number > ?) + "
            "(SELECT COUNT(*) FROM uses WHERE number > ?) + "
            "(SELECT COUNT(*) FROM claims WHERE number > ?)",
            (len(self.rows),) * 4,
        ).fetchone()[0]
        if strays or stored - used:
            raise damaged("rows that belong to no release", self.where)

    def _append(self, entry: Entry, withdraws: int, recorded: int | None = None) -> int:
        number = len(self.rows) + 1
        entry = replace(
            entry, subject=subject_named(entry.subject), series=series_named(entry.series)
        )
        marks: list[tuple[Any, ...]] = []
        running: dict[tuple[bytes, bytes], FloatArray] = {}
        for mark in entry.marks:
            pair, information = (
                (mark.place, mark.draw),
                np.ascontiguousarray(mark.information, "<f8").ravel(),
            )
            if pair not in running:
                before = self.totals(entry.subject, mark.place).get(mark.draw)
                running[pair] = np.zeros(information.size) if before is None else before[1]
            running[pair] = (
                self._without(entry.subject, pair, withdraws)
                if withdraws
                else running[pair] + information
            )
            marks.append((number, *pair, information.tobytes(), running[pair].tobytes()))
        body = json.dumps(entry.body, sort_keys=True)
        plain = (entry.subject, entry.series, entry.begin, entry.end, entry.request)
        last = (float(entry.epsilon), time.time_ns() if recorded is None else recorded, withdraws)
        places = b"".join(sorted(place + draw for place, draw in running))
        digest = _digest(body, entry.blob, marks, entry.shared)
        row = LedgerRow(number, *plain, *last, places, digest, entry.prints)
        plain_row = packed(row)
        code = code_of(self.key, self.chain.last, plain_row)
        run = self.connection.execute
        run("INSERT INTO entries VALUES (?, ?, ?)", (number, plain_row, code))
        run("INSERT INTO contents VALUES (?, ?, ?)", (number, body, entry.blob))
        self.connection.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?)", marks)
        for name, data in entry.shared.items():
            self._share(name, data)
            run("INSERT INTO uses VALUES (?, ?)", (number, name))
        self.chain.append(row, plain_row, code)
        return number

    def _share(self, name: bytes, data: bytes) -> None:
        """Store an array, unless it is there: then it was checked when it came."""
        run = self.connection.execute
        if run("SELECT 1 FROM shared WHERE name = ?", (name,)).fetchone() is not None:
            return
        if hashlib.sha256(data).digest() != name:
            raise InvalidValue("what releases share must be named by its SHA-256, got another name")
        run("INSERT INTO shared VALUES (?, ?)", (name, data))

    def _shared(self, name: bytes) -> bytes:
        """What releases share, as long as it is what was recorded."""
        run = self.connection.execute
        stored = run("SELECT data FROM shared WHERE name = ?", (name,)).fetchone()
        if stored is None or hashlib.sha256(stored[0]).digest() != name:
            raise damaged("what several rows share is not as it was recorded", self.where)
        return bytes(stored[0])

    def _marks(self, number: int) -> list[tuple[Any, ...]]:
        return self._checked(number)[2]

    def _checked(self, number: int) -> tuple[str, bytes, list[tuple[Any, ...]], list[bytes]]:
        """Body, blob, marks and names of a row, as long as they are what was recorded."""
        run = self.connection.execute
        stored = run("SELECT body, blob FROM contents WHERE number = ?", (number,)).fetchone()
        marks = run("SELECT * FROM marks WHERE number = ? ORDER BY rowid", (number,)).fetchall()
        uses = run("SELECT name FROM uses WHERE number = ? ORDER BY rowid", (number,)).fetchall()
        names = [use[0] for use in uses]
        whole = None if stored is None else _digest(stored[0], stored[1], marks, names)
        if whole is None or whole != self.rows[number - 1].digest:
            raise damaged(f"row {number} is not as it was recorded", self.where)
        return stored[0], stored[1], marks, names


def _digest(
    body: str, blob: bytes, marks: Iterable[tuple[Any, ...]], names: Iterable[bytes]
) -> bytes:
    """SHA-256 of all that a row refers to."""
    digest = hashlib.sha256()
    for part in (body.encode(), blob):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    for number, place, draw, information, total in marks:
        texts = (place, draw, information, total)
        digest.update(struct.pack("<5q", number, *map(len, texts)))
        digest.update(b"".join(texts))
    for name in names:  # which no mark is like: they begin with a row's number
        digest.update(len(name).to_bytes(8, "big"))
        digest.update(name)
    return digest.digest()


def upgraded(
    connection: sqlite3.Connection, key: bytes, chain: RowChain, version: int, where: str
) -> RowChain:
    """All rows of an earlier version as this one writes them, within the transaction that is open.

    Requests of versions 1 and 2 were what the noise of their releases was drawn from, by the key
    beside them: with a release they gave the recording back. They are replaced by hashes of
    themselves, so such a release is counted and never made again. Names become canonical, and what
    is told of a place is then added up over all that one person released.

    key: of the codes. version: of the ledger, 1 or 2. Raises Refused for one that is damaged.
    """
    for statement in (*(_SHARING if version == 1 else ()), _CLAIMS, "PRAGMA secure_delete = ON"):
        connection.execute(statement)
    old = Book(connection, key, chain, where)
    entries = [(row, old.entry(row.number, _hidden(key, row.request))) for row in old.rows]
    for table in ("entries", "contents", "marks", "uses", "shared"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608  # of these alone
    new = Book(connection, key, RowChain(), where)
    for row, entry in entries:
        if row.withdraws:
            new.withdraw(row.withdraws, row.recorded)
        else:
            new.add(replace(entry, subject=_name(key, entry.subject)), row.recorded)
    return new.chain


def _name(key: bytes, subject: str) -> str:
    """A name as it is now; one that none could have any more is replaced, and counted by itself."""
    try:
        return subject_named(subject)
    except InvalidValue:
        return f"earlier name {derive(key, [subject.encode()])[:4].hex()}"


def _hidden(key: bytes, request: bytes) -> bytes:
    return derive(key, [b"request of an earlier version", request])
