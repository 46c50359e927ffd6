"""One row a format: its name, its suffixes, what its content looks like, who reads and writes it.

A new format is a module with `read` and `write`, two lines that import it on demand, and a row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import PurePath
from typing import BinaryIO

from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput, UnwritableOutput
from trailveil.formats.source import named
from trailveil.trace import Recording, Trace

Reader = Callable[[bytes, str], Recording]
"""From the content of a file, and its name for messages, to a recording."""

Writer = Callable[[Trace, ArrayLike, BinaryIO], None]
"""Writes times of a trace and positions in whole microdegrees (n, 2)."""

_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table. `looks_like` judges the first 4 KiB, lower case, without zero bytes."""

    name: str
    suffixes: tuple[str, ...]
    looks_like: Callable[[bytes], bool]
    read: Reader
    write: Writer


def _read_gpx(data: bytes, where: str) -> Recording:
    from trailveil.formats.gpx import read

    return read(data, where)


def _write_gpx(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    from trailveil.formats.gpx import write

    write(trace, grid, stream)


FORMATS: tuple[Format, ...] = (
    Format("GPX", (".gpx",), lambda head: b"<gpx" in head, _read_gpx, _write_gpx),
)


def format_of(path: str | PathLike[str], data: bytes) -> Format:
    """The format of a file: by suffix, else by content. Raises UnreadableInput for none."""
    suffix = _suffix(path)
    head = data[:_HEAD].replace(b"\0", b"").lower()  # UTF-16 without its zeros reads as ASCII
    for row in FORMATS:
        if suffix in row.suffixes:
            return row
    for row in FORMATS:
        if row.looks_like(head):
            return row
    raise UnreadableInput(
        f"input must be of a format that is read ({_names()}), got another: {named(path)}; "
        "convert it first"
    )


def format_to_write(suffix: str) -> Format:
    """The format that writes files of a suffix such as ".gpx". Raises UnwritableOutput for none."""
    for row in FORMATS:
        if suffix.lower() in row.suffixes:
            return row
    raise UnwritableOutput(
        f"output must be of a format that is written ({_names()}), got the suffix "
        f"'{named(suffix)}': choose another name"
    )


def _suffix(path: str | PathLike[str]) -> str:
    return PurePath(fspath(path)).suffix.lower()


def _names() -> str:
    return ", ".join(f"{row.name} {' '.join(row.suffixes)}" for row in FORMATS)
