"""The ledger of one user: where it is, how it is opened, and how damage is noticed.

In the user's own state folder (mode 0700), all readable by the owner alone: `key`, 32 random bytes;
`ledger.sqlite`, the entries, chained by codes of the key; and `ledger.seal`, how many rows there
are and the code of the last one, written after them. A row is durable before what it is
about appears. A ledger that is ahead of its seal was interrupted between the two, which is no harm;
a seal that is ahead of its ledger, a row that is not what was written, and a file that is gone are
refused: nothing is released, since it would be counted too little.

What cannot be noticed: ledger and seal put back together as they were before, or the whole folder
taken away; and whatever else was published, by other means or from another machine.
"""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trailveil.errors import Refused, UnwritableOutput, check_kind
from trailveil.files.keys import check_private, name_of
from trailveil.files.output import SEAL, make_private, state_folder, write_atomically
from trailveil.files.source import named, stamp_of
from trailveil.gp.randomness import SEED_BYTES, derive, fresh_seed
from trailveil.ledger.book import SCHEMA, Book, upgraded
from trailveil.ledger.chain import RowChain, chained, damaged, digest_of

# Of the file; and of what a request is hashed with, so that those of older files stay the same.
VERSION, _REQUESTS = 3, 2
_FILE, _SEAL, _KEY = "ledger.sqlite", SEAL, "key"
# What else was made under a key, besides ledger and seal.
_MADE = ("places.json", "batches", "batch.key", "designs", "streams")
# Seconds that another run may hold the ledger.
_PATIENCE = 60.0


@dataclass(slots=True, eq=False, repr=False)
class Session:
    """What one process knows of a ledger that it opens again and again: rows need no second look.

    chain: None, or all rows as they were left, when its file had this stamp.
    """

    chain: RowChain | None = None
    stamp: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The state folder of one user, and the key in it."""

    folder: Path
    key: bytes = field(repr=False)

    def request_id(self, seed: bytes) -> bytes:
        """What a request is recognised by: a keyed hash of the seed of its noise.

        The seed is a function of the recording and stored nowhere, and this does not give it back.
        """
        return derive(self.key, [b"release", bytes([_REQUESTS]), seed])

    @property
    def stamp(self) -> tuple[int, ...]:
        """What changes whenever anybody writes to it; nothing where it cannot be told."""
        return stamp_of(self.folder / _FILE)

    @contextlib.contextmanager
    def open(self, known: Session | None = None) -> Iterator[Book]:
        """One exclusive look at the ledger: all that is added is durable when it is left.

        known: of this ledger, of the same process, if it was opened before: rows that were checked
        then are not read again, as long as neither file nor seal was touched by anybody else.

        Where it is left by an exception, nothing is added. Raises Refused for a ledger that is not
        as it was left, or that another run holds; UnwritableOutput where it cannot be written.
        """
        path = self.folder / _FILE
        _check_file(path, "the ledger of what was released")
        where, known = named(path), Session() if known is None else known
        with contextlib.closing(_connected(path)) as connection:
            with _told_apart(path):
                connection.execute("BEGIN IMMEDIATE")
                chain = self._as_left(connection, known) or self._checked(connection, where)
            known.chain = None
            try:
                yield Book(connection, _code_key(self.key), chain, where)
            except sqlite3.Error as error:
                raise _of_sqlite(error, path) from error
            with _told_apart(path):
                connection.execute("COMMIT")
            stamp = stamp_of(path)
            if self._sealed()[1] != chain.last:
                self._seal(chain)
        known.chain, known.stamp = chain, stamp

    def verify(self) -> int:
        """Check every row and all that it refers to; how many releases stand."""
        with self.open() as book:
            with _told_apart(self.folder / _FILE):
                book.check_contents()
            return len(book.standing())

    def _as_left(self, connection: sqlite3.Connection, known: Session) -> RowChain | None:
        """The rows that are known, unless the file, its last row or the seal is another now."""
        chain = known.chain
        stamp = stamp_of(self.folder / _FILE)
        if chain is None or not stamp or stamp != known.stamp:
            return None
        asked = "SELECT number, code FROM entries ORDER BY number DESC LIMIT 1"
        last = connection.execute(asked).fetchone() or (0, b"")
        same = last == (len(chain.rows), chain.last)
        whole = (len(chain.rows), chain.last, chain.digest)
        return chain if same and self._sealed() == whole else None

    def _checked(self, connection: sqlite3.Connection, where: str) -> RowChain:
        """The rows and their codes, as long as they are what the key and the seal say."""
        meta = connection.execute("SELECT version, key FROM meta").fetchall()
        if len(meta) != 1 or meta[0][0] not in (1, 2, VERSION):
            raise damaged("another version", where)
        if meta[0][1] != name_of(self.key):
            raise damaged("another key", where)
        sealed, last, digest = self._sealed()
        key, version = _code_key(self.key), meta[0][0]
        chain = chained(connection, key, sealed, digest, where)
        if sealed and chain.codes[sealed - 1] != last:
            raise damaged("its last sealed row is another", where)
        if version != VERSION:
            # Ahead of its seal it is sound, old or new, wherever this is interrupted.
            self._seal(RowChain())
            chain = upgraded(connection, key, chain, version, where)
            connection.execute("UPDATE meta SET version = ?", (VERSION,))
        elif sealed < len(chain.codes):
            self._seal(chain)
        return chain

    def _sealed(self) -> tuple[int, bytes, bytes]:
        """How many rows were written, the code of the last, and the digest of all."""
        path = self.folder / _SEAL
        if not path.is_file() or path.is_symlink():
            raise damaged("its seal is gone", named(path))
        check_private(path, "the seal of the ledger")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise _unusable(error, self.folder) from error
        whole, code = data[:-SEED_BYTES], data[-SEED_BYTES:]
        if derive(self.key, [b"seal", whole]) != code:
            raise damaged("its seal was changed", named(path))
        return int.from_bytes(whole[:8], "big"), whole[40:], whole[8:40]

    def _seal(self, chain: RowChain) -> None:
        _write_seal(self.folder, self.key, len(chain.rows), chain.digest + chain.last)


def user_ledger() -> Ledger:
    """The ledger of the user."""
    return open_ledger(state_folder())


def open_ledger(folder: str | os.PathLike[str]) -> Ledger:
    """The ledger in a folder; all of it is made at first use.

    Raises Refused where a part of it is gone, damaged, open to others or of another user;
    UnwritableOutput where the folder cannot be used.
    """
    check_kind("folder", folder, str | os.PathLike)
    folder = Path(folder)
    try:
        make_private(folder)
        _check_own(folder)
        earlier = (folder / "releases").is_dir() and any((folder / "releases").iterdir())
        if earlier:
            raise Refused(
                "what was released must be in a ledger, got records of an earlier version, which "
                f"cannot be counted: {named(folder / 'releases')}; move that folder away to go on, "
                "and do not release those recordings again"
            )
        with _locked(folder):
            if not os.path.lexists(folder / _KEY):
                _make(folder)
        key = _key_in(folder)
    except OSError as error:
        raise _unusable(error, folder) from error
    if len(key) != SEED_BYTES:
        raise Refused(
            f"the key of the ledger must be {SEED_BYTES} bytes, got fewer or more: "
            f"{named(folder / _KEY)}; restore it from a backup, without it nothing can be counted"
        )
    check_private(folder / _KEY, "the key of the ledger")
    return Ledger(folder, key)


def _check_own(folder: Path) -> None:
    """Refuse a folder that others own or may look into, where the file system knows of others."""
    if os.name != "posix":
        return
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise Refused(
            f"the state folder must be your own, got one of another user: {named(folder)}; set "
            "XDG_STATE_HOME to a folder of your own"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise Refused(
            f"the state folder must be for you alone, got one open to others: {named(folder)}; "
            "chmod 700 it, and look whether anything in it was changed"
        )


def _key_in(folder: Path) -> bytes:
    """What the key's file holds; a pipe or a device, which may have no end, is not read."""
    path = folder / _KEY
    if not stat.S_ISREG(path.stat().st_mode):
        raise Refused(
            f"the key of the ledger must be a file, got something else: {named(path)}; restore it "
            "from a backup, without it nothing can be counted"
        )
    with path.open("rb") as stream:
        return stream.read(SEED_BYTES + 1)


def _make(folder: Path) -> None:
    """An empty ledger and its seal, and last of all the key: what has none was never used."""
    path = folder / _FILE
    present = [name for name in _MADE if os.path.lexists(folder / name)]
    if present or _sealed_rows(folder / _SEAL) or (path.exists() and _rows(path)):
        raise Refused(
            f"the key of the ledger must be there, got none: {named(folder / _KEY)}; restore it "
            "from a backup, or move the whole folder away to begin anew: what was released until "
            "now is then counted no more"
        )
    fresh, key = path.with_name(f"{_FILE}.new"), fresh_seed()
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with _told_apart(path), contextlib.closing(_connected(fresh)) as connection:
        connection.executescript(SCHEMA)
        connection.execute("INSERT INTO meta VALUES (?, ?)", (VERSION, name_of(key)))
    fresh.replace(path)
    _write_seal(folder, key, 0, digest_of([]))
    _store(folder / _KEY, key)


def _sealed_rows(path: Path) -> bool:
    """Whether a seal without a key is of any row, or of what cannot be told."""
    if not os.path.lexists(path):
        return False
    with contextlib.suppress(OSError):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                return stream.read(8) != bytes(8)
    return True


def _rows(path: Path) -> bool:
    """Whether a ledger without a key has anything in it, or may have."""
    try:
        with contextlib.closing(_connected(path)) as connection:
            tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            if not tables:
                return False
            return bool(connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0])
    except sqlite3.Error:
        return True


def _connected(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    except sqlite3.Error as error:
        raise _of_sqlite(error, path) from error
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA trusted_schema = OFF")
    except sqlite3.Error as error:
        connection.close()
        raise _of_sqlite(error, path) from error
    return connection


def _write_seal(folder: Path, key: bytes, rows: int, digests: bytes) -> None:
    whole = rows.to_bytes(8, "big") + digests
    _store(folder / _SEAL, whole + derive(key, [b"seal", whole]))


def _code_key(key: bytes) -> bytes:
    return derive(key, [b"ledger"])


def _check_file(path: Path, what: str) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError as error:
        raise damaged("its file is gone", named(path)) from error
    except OSError as error:
        raise _unusable(error, path.parent) from error
    if not stat.S_ISREG(status.st_mode):
        raise damaged("it is no file", named(path))
    check_private(path, what)


@contextlib.contextmanager
def _told_apart(path: Path) -> Iterator[None]:
    """What SQLite says, in our words."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise _of_sqlite(error, path) from error


def _of_sqlite(error: Exception, path: Path) -> Refused | UnwritableOutput:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return Refused(
            f"the ledger must be free within {_PATIENCE:g} s, got one that another run holds: "
            f"{named(path)}; wait for that run, or end it"
        )
    unwritable = {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
    }
    if code in unwritable:
        return UnwritableOutput(
            f"the ledger must be writable, got the error '{error}': {named(path)}; free some space "
            "or set XDG_STATE_HOME to a folder of your own: nothing was released"
        )
    return damaged(f"{type(error).__name__}", named(path))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone in the folder while the ledger is made, where the system has such a lock."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _store(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, lambda out: out.write(data), overwrite=True, private=True)
    except UnwritableOutput as error:
        cause = error.__cause__
        raise _unusable(cause if isinstance(cause, OSError) else OSError(), path.parent) from error


def _unusable(error: OSError, folder: Path) -> UnwritableOutput:
    reason = error.strerror or type(error).__name__
    return UnwritableOutput(
        f"the state folder must be usable, got the error '{reason}': {named(folder)}; set "
        "XDG_STATE_HOME to a folder of your own: what was released is counted there"
    )
