"""Files that appear whole or not at all, and never in place of something else unless asked."""

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from trailveil.errors import UnwritableOutput


def check_output(path: Path, source: Path | None, *, overwrite: bool) -> None:
    """Refuse an output that exists, is the input, or has no folder: UnwritableOutput."""
    if source is not None and _same(path, source):
        raise UnwritableOutput(
            f"the output must be another file than the input, got {path.name!r} for both; "
            "choose another name with -o"
        )
    if path.is_dir():
        raise UnwritableOutput(
            f"the output must be a file, got the folder {path.name!r}; add a name"
        )
    if not path.parent.is_dir():
        raise UnwritableOutput(
            f"the output's folder must exist, got none for {path.name!r}; make it"
        )
    if _exists(path) and not overwrite:
        raise UnwritableOutput(
            f"the output must not exist yet, got {path.name!r}; choose another with -o, or "
            "--overwrite"
        )


def write_atomically(
    path: Path, write: Callable[[BinaryIO], None], *, overwrite: bool, private: bool = False
) -> None:
    """Write a file through a temporary one beside it that only the user can read.

    private: keep it readable by the user alone. On any error, an interrupt included, nothing is
    left behind. Raises UnwritableOutput where the file system says no, or the file appeared in the
    meantime.
    """
    rough = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(rough, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            rough.chmod(0o666 & ~_umask())
        _put(rough, path, overwrite=overwrite)
        _sync_folder(path.parent)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnwritableOutput(
            f"the output must be writable, got {reason!r} for {path.name!r}; choose another place "
            "with -o"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            rough.unlink(missing_ok=True)


def _put(rough: Path, path: Path, *, overwrite: bool) -> None:
    if overwrite:
        rough.replace(path)
        return
    try:
        os.link(rough, path)  # atomic, and fails where the name is taken
    except FileExistsError:
        raise UnwritableOutput(
            f"the output must not exist yet, got {path.name!r}; choose another with -o, or "
            "--overwrite"
        ) from None
    except OSError:  # a file system without links, such as that of a memory card
        check_output(path, None, overwrite=False)
        rough.replace(path)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where folders can be synchronised."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return path.absolute() == other.absolute()
