"""A ledger of an earlier version, written anew: who is who, and nothing that noise comes from.

Requests of versions 1 and 2 were what the noise of their releases was drawn from, by the key beside
them: with a release they gave the recording back. They are replaced by hashes of themselves, so
such a release is counted and never made again. Names become canonical, and what is told of a place
is then added up over all that one person released.
"""

import sqlite3
from dataclasses import replace

from trailveil.errors import InvalidValue
from trailveil.gp.randomness import derive
from trailveil.ledger.book import CLAIMS, SHARING, Book
from trailveil.ledger.chain import RowChain
from trailveil.ledger.identity import subject_named


def upgraded(
    connection: sqlite3.Connection, key: bytes, chain: RowChain, version: int, where: str
) -> RowChain:
    """All rows as this version writes them, within the transaction that is open.

    key: of the codes. version: of the ledger, 1 or 2. Raises Refused for one that is damaged.
    """
    for asked in (*(SHARING if version == 1 else ()), CLAIMS, "PRAGMA secure_delete = ON"):
        connection.execute(asked)
    old = Book(connection, key, chain, where)
    entries = [(row, old.entry(row.number, _hidden(key, row.request))) for row in old.rows]
    for table in ("entries", "contents", "marks", "uses", "shared"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608  # of these alone
    new = Book(connection, key, RowChain(), where)
    for row, entry in entries:
        if row.withdraws:
            new.withdraw(row.withdraws, row.made)
        else:
            new.add(replace(entry, subject=_name(key, entry.subject)), row.made)
    return new.chain


def _name(key: bytes, subject: str) -> str:
    """A name as it is now; one that none could have any more is replaced, and counted by itself."""
    try:
        return subject_named(subject)
    except InvalidValue:
        return f"earlier name {derive(key, [subject.encode()])[:4].hex()}"


def _hidden(key: bytes, request: bytes) -> bytes:
    return derive(key, [b"request of an earlier version", request])
