"""The bytes of a file that somebody named: bounded, and every failure is one clear line."""

import os
import shlex
import stat
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from trailveil.errors import InvalidValue, UnreadableInput

LARGEST = 2_000_000_000
"""Bytes of a recording that are read at most where nothing else is said."""

SMALL = 2**20
"""Bytes that are read at most of a key, a prior and the like."""

_STEP = 2**24  # bytes that are read at once of a file that grows
_NAME_LENGTH = 80
_BEGINNING = 4096


def named(path: str | PathLike[str]) -> str:
    """A path as it may stand in a message: one line, and its end where it is long."""
    text = "".join(c if c.isprintable() else "?" for c in os.fspath(path))
    return text if len(text) <= _NAME_LENGTH else "..." + text[3 - _NAME_LENGTH :]


def quoted(path: str | PathLike[str]) -> str:
    """A path as a command takes it, whole; as `named` where it cannot stand in a line."""
    text = os.fspath(path)
    return shlex.quote(text) if text.isprintable() else named(text)


def load(path: str | PathLike[str], largest: int = LARGEST) -> bytes:
    """The content of a regular file of 1 to `largest` bytes. Raises UnreadableInput otherwise."""
    try:
        with open(path, "rb", opener=_open_at_once) as stream:
            state = os.fstat(stream.fileno())
            _check(stat.S_IFMT(state.st_mode), path)
            large = state.st_size > largest
            data = b"" if large else _read(stream, state.st_size, largest)
    except (OSError, ValueError) as error:
        raise UnreadableInput(_why(path, error)) from None
    if large or len(data) > largest:
        raise UnreadableInput(
            f"input must be at most {in_words(largest)}, got more: {named(path)}; split it first"
        )
    if not data:
        raise UnreadableInput(f"input must hold a recording, got an empty file: {named(path)}")
    return data


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, the `object_pairs_hook` of what comes from outside.

    Where a key stands twice, programs differ in which they take. Raises InvalidValue.
    """
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise InvalidValue("each key must stand once in its object, got one twice")
    return entries


def in_words(size: int) -> str:
    """A number of bytes: "2,000 MB"."""
    return f"{size / 10**6:,.0f} MB"


def _read(stream: BinaryIO, size: int, largest: int) -> bytes:
    """All of a file of this size, or one byte more than may be where it grows meanwhile.

    What is asked for is room that is taken, however little there is: so what grows is read in
    steps, and never cut off within what may be.
    """
    data = stream.read(size + 1)
    if len(data) <= size:
        return data
    grown = bytearray(data)
    while len(grown) <= largest and (more := stream.read(min(_STEP, largest + 1 - len(grown)))):
        grown += more
    return bytes(grown)


def beginning(path: str | PathLike[str]) -> bytes:
    """The first bytes of a file, which tell its format; none where it cannot be read."""
    try:
        with open(path, "rb", opener=_open_at_once) as stream:
            regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            return stream.read(_BEGINNING) if regular else b""
    except (OSError, ValueError):
        return b""


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting, as a pipe that nobody writes would have it, to look what it is."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check(kind: int, path: str | PathLike[str]) -> None:
    if kind == stat.S_IFREG:
        return
    what = {stat.S_IFIFO: "a pipe"}.get(kind, "a device or socket")
    raise UnreadableInput(
        f"input must be a file, got {what}: {named(path)}; save the recording to a file first"
    )


def _why(path: str | PathLike[str], error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"input must be a file that exists, got none: {named(path)}; check the name"
    denied = isinstance(error, PermissionError)
    if isinstance(error, IsADirectoryError) or (denied and Path(path).is_dir()):  # on Windows
        return f"input must be a file, got a directory: {named(path)}; name the file in it"
    if denied:
        return f"input must be readable, got no permission: {named(path)}; change its mode"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "no valid name"
    return f"input must be readable, got the error '{reason}': {named(path)}"


def stamp_of(path: Path) -> tuple[int, ...]:
    """What changes when a file does, whoever changes it; nothing where it cannot be told."""
    try:
        state = path.stat()
    except OSError:
        return ()
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
