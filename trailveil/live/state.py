"""The file of a live release: what a restart must know, and no place where anybody was.

In the state folder, readable by its owner alone, with a code of the ledger's key. It is written
whole or not at all, and durably. A lock that the system takes back from whoever ends, however that
is, keeps a second run of the same stream away.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.keys import check_private
from trailveil.files.output import make_private, write_atomically
from trailveil.files.source import SMALL, load, named
from trailveil.gp.randomness import derive
from trailveil.ledger import Ledger

_VERSION = 1
_LONGEST = 40


class StreamFile:
    """The file of one stream, locked until it is closed."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        """Lock it. Raises Refused where another run has it, InvalidValue for no name of a file."""
        if not name.replace("-", "").replace("_", "").isalnum() or len(name) > _LONGEST:
            raise InvalidValue(
                f"the name of a stream must be up to {_LONGEST} letters, digits, - and _, got "
                "another: choose one such as live"
            )
        self._ledger, self._name = ledger, name
        folder = ledger.folder / "streams"
        make_private(folder)
        self._path = folder / f"{name}.json"
        self._lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._lock)
        except OSError:
            os.close(self._lock)
            raise Refused(
                f"a stream must run once at a time, got one that runs: {name}; end that run, or "
                "choose another --name"
            ) from None

    def load(self) -> dict[str, Any] | None:
        """What was saved, None for nothing. Raises Refused for a file that is not as it was."""
        path = self._path
        if not path.exists() and not path.is_symlink():
            return None
        check_private(path, "the file of a stream")
        try:
            whole, _, code = load(path, SMALL).rpartition(b"\n")
            if self._code(whole) != code:
                raise _changed(path)
            record: dict[str, Any] = json.loads(whole)
        except (UnreadableInput, ValueError) as error:
            raise _changed(path) from error
        if record.get("version") != _VERSION:
            raise _changed(path)
        return record

    def save(self, record: dict[str, Any]) -> None:
        """Write it whole, durably. Raises UnwritableOutput."""
        whole = json.dumps({"version": _VERSION, **record}).encode()
        data = whole + b"\n" + self._code(whole)
        write_atomically(self._path, lambda out: out.write(data), overwrite=True, private=True)

    def close(self) -> None:
        """Let another run have it."""
        os.close(self._lock)

    def _code(self, whole: bytes) -> bytes:
        return derive(self._ledger.key, [b"stream", self._name.encode(), whole]).hex().encode()


def _lock(descriptor: int) -> None:
    with contextlib.suppress(ImportError):  # where the system has such a lock
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _changed(path: Path) -> Refused:
    return Refused(
        f"the file of a stream must be as Trailveil wrote it, got another: {named(path)}; begin "
        "another stream (--name), which is counted besides"
    )
