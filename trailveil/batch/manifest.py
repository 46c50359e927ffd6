"""What a batch has done, in the user's own state folder: never among what is published.

One SQLite file for each folder of outputs, readable by its owner alone. It holds keyed digests of
inputs and rules, and what changes when an input does, so that a changed one is noticed; the SHA-256
of each output; and what was promised. Protected times are not in it; that, and of what the outputs
were made, is for the owner.

A row is durable before its release is counted, and that before its file appears: whichever file of
a name is there, the row knows it, as the one before or the one that was about to come.

In the folder of outputs are, for as long as a run lasts, two hidden names: a lock, so that a second
run, by whoever, is noticed; and a place to put files aside, so that a complete one goes to its
place in one step of the file system. What a run leaves that was killed, the next one clears away.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trailveil.errors import NoRoom, UnwritableOutput
from trailveil.files.output import make_private
from trailveil.files.source import named

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (version INTEGER NOT NULL, outputs TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS traces (
    output TEXT PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, source BLOB, rules BLOB,
    sha256 BLOB, before BLOB, about TEXT NOT NULL) WITHOUT ROWID;
"""
_COLUMNS = ("output", "name", "status", "source", "rules", "sha256", "before", "about")
_PATIENCE = 60.0
COMING, DONE, REFUSED = "coming", "done", "refused"
"""Of a row: its file may have appeared; has; never will by what was asked."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one output.

    output: its path below the folder of outputs. name: of the trace. source, rules: keyed digests.
    sha256: of the file that is there, or about to be; before: of the one that it replaces. about:
    what was promised, or why it was refused; JSON-able.
    """

    output: str
    name: str
    status: str
    source: bytes = b""
    rules: bytes = b""
    sha256: bytes = b""
    before: bytes = b""
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """The rows of one folder of outputs."""

    connection: sqlite3.Connection
    path: Path

    def row(self, output: str) -> Row | None:
        """What is known of an output."""
        with _refusing(self.path):
            values = self.connection.execute(
                "SELECT * FROM traces WHERE output = ?", (output,)
            ).fetchone()
        if values is None:
            return None
        return Row(**dict(zip(_COLUMNS, values, strict=True)) | {"about": json.loads(values[-1])})

    def put(self, rows: Iterable[Row]) -> None:
        """Write rows over those of the same outputs: durable, and all of them or none."""
        values = [
            (
                *(row.output, row.name, row.status, row.source, row.rules, row.sha256, row.before),
                json.dumps(row.about, sort_keys=True),
            )
            for row in rows
        ]
        with _refusing(self.path), self.connection:
            self.connection.executemany(
                "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values
            )


def folder_of(state: Path, outdir: Path) -> Path:
    """Where the state folder keeps what it knows of a folder of outputs."""
    name = hashlib.sha256(os.path.realpath(outdir).encode(errors="surrogateescape")).hexdigest()
    return state / "batches" / name[:32]


@contextlib.contextmanager
def opened(folder: Path, outdir: Path) -> Iterator[Manifest]:
    """The manifest of a folder of outputs, made where there is none.

    Raises UnwritableOutput where it cannot be used.
    """
    path = folder / "manifest.sqlite"
    with _refusing(path):
        make_private(folder)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, timeout=_PATIENCE)
    with contextlib.closing(connection):
        with _refusing(path), connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.executescript(_SCHEMA)
            stated = connection.execute("SELECT version FROM meta").fetchall()
            if not stated:
                about = (_VERSION, os.path.realpath(outdir))
                connection.execute("INSERT INTO meta VALUES (?, ?)", about)
        if stated and stated != [(_VERSION,)]:
            raise _unusable(path, "one of another version")
        yield Manifest(connection, path)


def refused(output: str, name: str, line: str, kind: str, old: Row | None) -> Row:
    """The row of a trace that was refused; what is known of a file that is there stays known."""
    sha256, before = (b"", b"") if old is None else (old.sha256, old.before)
    about = {"kind": kind, "line": line}
    return Row(output, name, REFUSED, sha256=sha256, before=before, about=about)


def may_be(row: Row | None, sha256: bytes) -> bool:
    """Whether a file of this digest is one that the row tells of."""
    return row is not None and sha256 in (row.sha256, row.before)


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _unusable(path, f"the error '{error}'") from error


def _unusable(path: Path, what: str) -> UnwritableOutput:
    return UnwritableOutput(
        f"what a batch has done must be kept in the state folder, got {what}: {named(path)}; free "
        "some space, set XDG_STATE_HOME to a folder of your own, or move that file away (what is "
        "in the folder of outputs is then taken for files of somebody else)"
    )


_LOCK = ".trailveil-batch.lock"
_ASIDE = ".trailveil-batch-"


@contextlib.contextmanager
def alone(outdir: Path) -> Iterator[Path]:
    """Hold the folder, made where there is none; the folder for files that are put aside.

    Raises UnwritableOutput where another run holds it, or it cannot be written.
    """
    with contextlib.ExitStack() as held:
        try:
            outdir.mkdir(parents=True, exist_ok=True)
            held.enter_context(_locked(outdir / _LOCK))
            for abandoned in outdir.glob(f"{_ASIDE}*.aside"):
                _clear(abandoned)
            aside = _new_aside(outdir)
            held.callback(_clear, aside, ignore_errors=True)
            aside.mkdir(mode=0o700)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UnwritableOutput(
                f"-o must be a folder that can be written, got the error '{reason}': "
                f"{named(outdir)}; choose another"
            ) from error
        yield aside


def _new_aside(outdir: Path) -> Path:
    return outdir / f"{_ASIDE}{secrets.token_hex(8)}.aside"


def _clear(aside: Path, *, ignore_errors: bool = False) -> None:
    """Remove what was put aside, while workers that are about to end may still write.

    It gets another name first: whoever begins a file from then on finds no folder for it.
    """
    with contextlib.suppress(OSError):  # where the system does not rename what is in use
        aside = aside.rename(_new_aside(aside.parent))
    shutil.rmtree(aside, ignore_errors=ignore_errors)


def check_room(kinds: Iterable[str], outdir: Path) -> None:
    """End the run where one of these errors, by their names, is a disk that is full.

    All traces that are left would meet it, once they are designed. Raises NoRoom.
    """
    if NoRoom.__name__ in kinds:
        raise NoRoom(
            "the folder of outputs must have room for them, got a disk that is full: "
            f"{named(outdir)}; free some space, and give the same command again: what is done is "
            "kept"
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file that is removed at the end; whoever waited for it must look again."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(descriptor, path)
            same = path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
        except BaseException:
            os.close(descriptor)
            raise
        if same:
            break
        os.close(descriptor)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    """The lock, at once or not at all; where the system has none, runs are not told apart."""
    with contextlib.suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnwritableOutput(
                f"-o must be used by one run at a time, got one that another uses now: "
                f"{named(path.parent)}; wait for it, or choose another folder"
            ) from None
