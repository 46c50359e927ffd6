"""Key files: 32 secret bytes that make releases repeatable, on any machine that has the file.

Without one, the noise of a release comes from the operating system's randomness, and is repeatable
only where it is recorded (trailveil.ledger). A file is two short lines of text, readable by its
owner alone. No message holds any of it.
"""

import os
import re
import stat
from pathlib import Path

from trailveil.errors import Refused, UnreadableInput, UnwritableOutput, check_kind
from trailveil.files.output import KEY_HEAD, check_output, write_atomically
from trailveil.files.source import SMALL, load, named
from trailveil.gp.randomness import SEED_BYTES, derive, fresh_seed

_FILE = re.compile(rb"trailveil key 1\r?\n([0-9a-f]{64})\r?\n?")


def new_key(path: Path) -> None:
    """Make a key from the operating system's randomness, in a file of its own, mode 0600.

    Raises UnwritableOutput where it exists, whatever it is: a key that is lost makes its releases
    unrepeatable, so none is ever overwritten.
    """
    if path.exists() or path.is_symlink():
        raise UnwritableOutput(
            f"a new key must have a name of its own, got one that exists: {named(path)}; choose "
            "another: no key is replaced, since what was released with it could not be made again"
        )
    check_output(path, overwrite=False, what="key")
    make_key(path)


def make_key(path: Path) -> None:
    """As `new_key`, without a look at the place: also for the state folder's own."""
    data = f"{KEY_HEAD.decode()}1\n{fresh_seed().hex()}\n".encode()
    write_atomically(path, lambda out: out.write(data), overwrite=False, private=True, what="key")


def key_of(stated: bytes | str | os.PathLike[str]) -> bytes:
    """The 32 bytes of a key, stated themselves or by the name of their file; see `load_key`."""
    if isinstance(stated, bytes):
        name_of(stated)  # raises for another number of bytes
        return stated
    check_kind("key", stated, str | os.PathLike, "name a key file, or give its 32 bytes")
    return load_key(Path(stated))


def load_key(path: Path) -> bytes:
    """The 32 bytes of a key file.

    Raises Refused where others can read it, or it is no key; UnreadableInput where it cannot be
    read.
    """
    if not path.exists():
        raise UnreadableInput(
            f"a key must be a file that exists, got none: {named(path)}; make one with `trailveil "
            "key new`"
        )
    match = _FILE.fullmatch(load(path, SMALL))
    if match is None:
        raise Refused(
            f"a key must be a file made by `trailveil key new`, got another: {named(path)}; make "
            "one, or restore it from a backup"
        )
    check_private(path, "a key")
    return bytes.fromhex(match[1].decode())


def check_private(path: Path, what: str) -> None:
    """Refuse a file that others can read, where the file system knows of others."""
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise Refused(
            f"{what} must be readable by you alone, got one open to others: {named(path)}; chmod "
            "600 it"
        )


def name_of(key: bytes) -> bytes:
    """What a key is recognised by; it tells nothing of the key. Raises InvalidValue for no key."""
    return derive(key, [b"name"])[: SEED_BYTES // 4]
